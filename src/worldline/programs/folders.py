"""Real folders for what a program writes, whose names are the same in every run.

A program may say where its files are, to others or to a hash. So a folder is named for whose it is, and a run that is
not the only one at the time takes another by number. It is held by a lock on a file beside it, which ends with its
process, so that what a killed process has left is found and removed by the next.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from hashlib import blake2s
from itertools import count
from pathlib import Path

from worldline.programs.reals import really

_NAME_LENGTH_MAX = 50  # Of a participant's: those of files are limited.

_held: dict[str, int] = {}  # The locks of folders that are taken, by descriptor.


def _leave_to_parent() -> None:
    """Forget, in a process that was forked, what its parent has taken: its own end isn't the end of that."""
    for lock in _held.values():
        os.close(lock)
    _held.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


def take(name: str, *purpose: object) -> str:
    """Return an empty folder of this process alone."""
    with really():
        place = _place()
        digest = blake2s("\0".join(map(str, (name, *purpose))).encode(), digest_size=4).hexdigest()
        readable = re.sub(r"[^\w.-]", "_", name)[:_NAME_LENGTH_MAX]
        for number in count():
            folder = place / f"{readable}-{digest}{f'-{number}' if number else ''}"
            if (lock := _locked(folder.with_name(f"{folder.name}.lock"))) is not None:
                _remove(folder)
                folder.mkdir(0o700)
                _held[str(folder)] = lock
                return str(folder)
    raise AssertionError("there is always another number")


def give_back(folder: str) -> None:
    """Remove a folder that was taken; one that was given back already is left to others."""
    with really():
        if (lock := _held.pop(folder, None)) is None:
            return
        _remove(folder)
        Path(f"{folder}.lock").unlink(missing_ok=True)
        os.close(lock)


def _remove(folder: str | Path) -> None:
    """Remove a folder, also if it has others that its program, or the folder it is a copy of, has protected."""
    with suppress(FileNotFoundError):
        os.chmod(folder, 0o700)  # noqa: PTH101 - it may be a text.
    for above, names, _ in os.walk(folder):
        for each in (Path(above, name) for name in names):
            if not each.is_symlink():
                each.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _place() -> Path:
    """Return where these folders are: in one that no other user can enter, or change."""
    place = Path(tempfile.gettempdir()).resolve() / f"worldline-{os.getuid()}"
    with suppress(FileExistsError):
        place.mkdir(0o700)
    found = place.lstat()
    # A folder with a group of its own hands that on, as a further bit, which lets no one in.
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
        return place
    return Path(tempfile.mkdtemp(prefix="worldline-")).resolve()


def _locked(file: Path) -> int | None:
    """Return a lock, as a descriptor; None if another has it."""
    lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(lock), file.stat()):
            return lock
    os.close(lock)  # It was removed in the meantime, so the folder is free.
    return _locked(file)
