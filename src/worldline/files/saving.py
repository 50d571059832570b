"""Files that are whole or not there: what is saved gets its name at the end, and no scratch folder is left behind."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import weakref
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import NamedTuple

from worldline.model.errors import LossError, UsageError

# Where a file is to be written, and what may be done there: judged by what stands there, before anything is written.
#
# What can only be streamed to (a pipe, a device such as /dev/null, a descriptor such as /dev/stdout) is written to and
# stays what it is. A regular file, or a new one, is written beside its place and put there when it is whole, so half of
# it is never seen. A link is followed, and stays. Everything else is refused: a folder, a block device, a socket, what
# can't be written to.

_LINKS_MAX = 40
_DESCRIPTORS = re.compile(r"/dev/fd|/proc/(?P<process>[0-9]+)(/task/[0-9]+)?/fd")
_REFUSED = {stat.S_IFDIR: "it is a folder", stat.S_IFBLK: "it is a block device", stat.S_IFSOCK: "it is a socket"}
_numbers = count()


class Destination(NamedTuple):
    """What a path leads to. `file` is where a link leads; a stream may be an open `descriptor` of this process."""

    path: Path
    file: Path
    is_stream: bool = False
    is_new: bool = False
    descriptor: int | None = None

    def open_stream(self) -> int:
        """Open what can only be streamed to; a pipe waits for its reader."""
        try:
            if self.descriptor is not None:
                return os.dup(self.descriptor)
            return os.open(self.path, os.O_WRONLY | os.O_NOCTTY)
        except OSError as error:
            raise refusal(self.path, error.strerror or str(error)) from error


def destination(path: str | os.PathLike[str], *, called: str | None = None) -> Destination:
    """Return what may be written there, or refuse it by the name that its user calls it."""
    path = Path(path)
    name = str(path) if called is None else called
    try:
        descriptor = _descriptor(path)
        found = path.stat() if descriptor is None else os.fstat(descriptor)
    except FileNotFoundError:
        file = _file(path)
        _check_folder(name, file)
        return Destination(path, file, is_new=True)
    except (OSError, ValueError) as error:
        raise refusal(name, getattr(error, "strerror", None) or str(error)) from error
    if descriptor is not None:
        return Destination(path, path, is_stream=True, descriptor=descriptor)
    kind = stat.S_IFMT(found.st_mode)
    if kind in _REFUSED:
        raise refusal(name, _REFUSED[kind])
    if not os.access(path, os.W_OK):
        raise refusal(name, "it is write-protected")
    if kind != stat.S_IFREG:
        return Destination(path, path, is_stream=True)
    file = _file(path)
    _check_folder(name, file)
    return Destination(path, file)


def file_named(name: str, suffix: str) -> str:
    """Return how a file is called after something: in no other folder, not hidden, and not like an option."""
    return f"{name.replace('/', '-').lstrip('.-') or 'unnamed'}{suffix}"


def save(path: Path, data: bytes) -> None:
    """Write a file whole, or leave what was there; write to what can only be streamed to."""
    save_parts(path, (data,))


def save_parts(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file piece by piece, in the same way; if a piece can't be had, nothing is left of it."""
    to = destination(path)
    try:
        if to.is_stream:
            _stream(to.open_stream(), parts)
        else:
            _replace(to, parts)
    except OSError as error:
        raise LossError(f"{path} can't be written: {error.strerror or error}") from error


def _stream(descriptor: int, parts: Iterable[bytes]) -> None:
    try:
        for part in parts:
            write_all(descriptor, part)
    finally:
        os.close(descriptor)


def _replace(to: Destination, parts: Iterable[bytes]) -> None:
    beside = to.file.with_name(f".worldline-{os.getpid()}-{next(_numbers)}.part")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        if not to.is_new:
            os.fchmod(descriptor, stat.S_IMODE(to.file.stat().st_mode))  # It stays as accessible as it was.
        _stream(descriptor, parts)
        beside.replace(to.file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it to an open file, however little it takes at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def refusal(path: object, problem: str) -> UsageError:
    return UsageError(f"{path} can't be written: {problem}", advice="choose another place")


def _file(path: Path) -> Path:
    """Return where a link leads; what isn't one stays as its user named it."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _check_folder(name: str, file: Path) -> None:
    folder = file.parent
    if not folder.is_dir():
        raise UsageError(f"{name} can't be written: there is no folder {folder}", advice="make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise refusal(name, f"the folder {folder} is write-protected")


def _descriptor(path: Path) -> int | None:
    """Return the number of an open file of this process that a path such as /dev/stdout leads to.

    It is told by the way there: where it leads to may be a file, and to put another in its place would leave a program
    that has opened it with the old one.
    """
    at = path
    for _ in range(_LINKS_MAX):
        folder = Path(os.path.realpath(at.parent))
        match = _DESCRIPTORS.fullmatch(str(folder)) if at.name.isascii() and at.name.isdecimal() else None
        if match is not None and match["process"] in (None, str(os.getpid())):
            return int(at.name)
        at = folder / at.name
        if not at.is_symlink():
            return None
        at = folder / at.readlink()
    return None


_PREFIX = "worldline-"
_LOCKED = stat.S_IRWXU | stat.S_ISVTX


# Scratch folders: only this user can open them, and they don't outlive their process for long, even if it is killed.
#
# The process that has made a folder holds a lock on it, which the system takes back however the process ends. The next
# process that makes one removes those that are held no more. A folder that was made this very moment isn't locked yet;
# it counts only once its sticky bit, which means nothing to a folder of one user, says that it was.


SHORT = "/tmp"
"""Where there is always room for a socket's path."""


class ScratchFolder(TemporaryDirectory[str]):
    """A temporary folder, with a word in its name that says what it is for, if one is given.

    Its path is shorter than `path_max` bytes if that can be: a socket's path has little room.
    """

    def __init__(self, use: str = "", place: str | None = None, *, path_max: int | None = None) -> None:
        sweep_scratch_folders(place)
        try:
            if path_max is not None and len(gettempdir().encode()) >= path_max:
                place = SHORT
            super().__init__(prefix=f"{_PREFIX}{use}-" if use else _PREFIX, dir=place, ignore_cleanup_errors=True)
        except OSError as error:  # Also if there is no temporary folder at all.
            problem = f"no temporary folder can be made: {error.strerror or error}"
            raise LossError(problem, advice="set TMPDIR to a folder that you may write to") from error
        lock = os.open(self.name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._unlock = weakref.finalize(self, os.close, lock)  # Also if it is dropped,
        self._unlock.atexit = False  # but not before the folder is removed when the process ends.
        with suppress(OSError):  # Where nothing can be locked, no other process removes it either.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(lock, _LOCKED)

    def cleanup(self) -> None:
        super().cleanup()
        self._unlock()


def sweep_scratch_folders(place: str | None = None) -> None:
    """Remove what processes of this user that were killed have left behind."""
    with suppress(OSError):
        for found in Path(place or gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError):  # It is in use, or another one removes it, too.
                known = found.lstat()
                if known.st_uid == os.getuid() and known.st_mode == stat.S_IFDIR | _LOCKED:
                    _remove_if_unlocked(found)


def _remove_if_unlocked(folder: Path) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
