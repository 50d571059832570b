"""A machine's disk: a folder of its own for the whole run, and what a power failure leaves of it.

What a program writes is in the system's memory until it is synced. If its disk is volatile, a crash may take back what
isn't, as is drawn: of each file, or of those that a rename ties together, all since the last sync, or the end of it.

D1. What was synced is never taken back: a file's content and its name by its own `fsync`, as on ext4, and the names in
    a folder by the folder's.
D2. Files that were renamed are taken back together: a name leads to what it led to before, or to what it does now.
D3. Folders, symbolic links and databases in SQLite are never taken back, nor is a file whose name one of them took:
    SQLite syncs what it must, unseen by Python.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import suppress
from hashlib import blake2s
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from worldline.programs.reals import really

_FOLDER = "worldline.programs disk"
_UNSYNCED = "worldline.programs unsynced "


class Unsynced(NamedTuple):
    """What is known of a file that was changed: what it is if all of that is taken back (None: it isn't there).

    `content` is what was synced of what it holds now; None if that is all. `tied` are the files it was renamed from
    or to.
    """

    before: bytes | None
    content: bytes | None
    tied: tuple[str, ...] = ()


def take(participant: Any, original: Path, is_volatile: bool) -> Disk:
    """Return a machine's disk: a copy of a folder, made once in a run, since a crash doesn't empty it."""
    stable = participant.stable
    if _FOLDER not in stable:
        made = take_folder(participant.name, "disk", original)
        shutil.copytree(original, made, dirs_exist_ok=True)
        atexit.register(give_back_folder, made)  # If it isn't removed before.
        stable[_FOLDER] = made
    return Disk(Path(stable[_FOLDER]), stable, is_volatile)


def give_back(participant: Any) -> None:
    """Remove a machine's disk, if it has one."""
    if (folder := participant.stable.get(_FOLDER)) is not None:
        give_back_folder(folder)


class Disk:
    """The disk of one machine. `stable` is what outlives its crashes."""

    def __init__(self, folder: Path, stable: MutableMapping[str, Any], is_volatile: bool) -> None:
        self.folder = folder
        self.stable = stable
        self._is_volatile = is_volatile

    def has(self, path: str) -> bool:
        """Whether a path leads there, with all links followed."""
        return f"{path}{os.sep}".startswith(f"{self.folder}{os.sep}")

    # --- What a program does, said before it does it ---

    def change(self, path: str) -> None:
        """Note that what a file holds may be changed from here on."""
        if self._keeps_track_of(path):
            found = self._of(path)
            self._set(path, found if found.content is not None else found._replace(content=_content(path) or b""))

    def remove(self, path: str) -> None:
        if _kind(path) == stat.S_IFDIR:
            with really():
                can_be_removed = not os.listdir(path)  # noqa: PTH208 - it is a text, as all paths here
            if can_be_removed:
                self.forget(path)
        elif self._keeps_track_of(path):
            self._set(path, self._of(path)._replace(content=None))

    def rename(self, path: str, to: str) -> None:
        kind = _kind(path)
        if not self._is_volatile or kind is None:
            return
        if kind != stat.S_IFREG:
            self.forget(to)
            self._move(path, to)
            return
        moved = self._of(path) if self.has(path) else Unsynced(None, None)
        if self.has(path):
            self._set(path, moved._replace(content=None, tied=(*moved.tied, to) if self.has(to) else moved.tied))
        if self.has(to):
            replaced = self._of(to)
            tied = (*replaced.tied, path) if self.has(path) else replaced.tied
            self._set(to, replaced._replace(content=moved.content, tied=tied))

    def link(self, path: str, to: str) -> None:
        """Note that a file has another name from here on."""
        if self._keeps_track_of(path) and self._keeps_track_of(to):
            self._set(to, self._of(to)._replace(content=self._of(path).content))

    def make(self, path: str) -> None:
        """Note that a folder or a symbolic link is about to be made; where there is something, it isn't."""
        if _kind(path) is None:
            self.forget(path)

    def forget(self, path: str) -> None:
        """Let what has been in a place, a file or all in a folder, be as it is now for good."""
        for each in self._changed() if self._is_volatile else ():
            if f"{each}{os.sep}".startswith(f"{path}{os.sep}"):
                for other in self._group_of(each):
                    self._settle(other, self._of(other).content)
                self.stable.pop(_UNSYNCED + each, None)

    def sync(self, path: str) -> None:
        """Let a file, or the names in a folder, be safe from a power failure."""
        if not self._is_volatile or not self.has(path):
            return
        if _kind(path) != stat.S_IFDIR:
            self._settle(path, _content(path))
            return
        for each in self._changed():
            if os.path.dirname(each) == path:  # noqa: PTH120
                self._settle(each, self._of(each).content)

    def sync_all(self) -> None:
        for each in self._changed():
            self._settle(each, _content(each))

    # --- A power failure ---

    def recover(self, sometimes: Callable[[str], bool], cut: Callable[[int], int]) -> None:
        """Take back what is drawn to be lost. `cut` draws how much there is of something: from nothing to all."""
        with really():
            for group in self._groups():
                names = ", ".join(map(self._name, group))
                if self._differs(group) and sometimes(f"the crash takes back what wasn't synced of {names}"):
                    for each in group:
                        _put_back(each, self._of(each).before)
                    continue
                for each in group:
                    self._tear(each, sometimes, cut)
            for each in self._changed():
                del self.stable[_UNSYNCED + each]

    def _differs(self, group: list[str]) -> bool:
        return any(_content(each) != self._of(each).before for each in group)

    def _tear(self, path: str, sometimes: Callable[[str], bool], cut: Callable[[int], int]) -> None:
        """Perhaps let the end of what was written not be there: of several blocks, those that came last."""
        synced, now = self._of(path).content, _content(path)
        if synced is None or now is None or now == synced:
            return
        if sometimes(f"the crash takes back the end of {self._name(path)}"):
            length = cut(len(now))
            _put_back(path, now[:length] + synced[length:])

    def _groups(self) -> Iterator[list[str]]:
        """Yield the files that were changed, those together that renames tie together."""
        left = dict.fromkeys(self._changed())
        while left:
            group = self._group_of(next(iter(left)))
            for each in group:
                del left[each]
            yield group

    def _group_of(self, path: str) -> list[str]:
        group, queue = set(), [path]
        while queue:
            each = queue.pop()
            if each not in group and _UNSYNCED + each in self.stable:
                group.add(each)
                queue += self._of(each).tied
        return sorted(group)

    def _name(self, path: str) -> str:
        """Return what a file is called; a name needn't be one that can be written in UTF-8."""
        return os.fsencode(os.path.relpath(path, self.folder)).decode(errors="backslashreplace")

    # --- What is known of files ---

    def _keeps_track_of(self, path: str) -> bool:
        return self._is_volatile and self.has(path) and _kind(path) in (stat.S_IFREG, None)

    def _changed(self) -> list[str]:
        return sorted(each.removeprefix(_UNSYNCED) for each in self.stable if each.startswith(_UNSYNCED))

    def _of(self, path: str) -> Unsynced:
        found: Unsynced | None = self.stable.get(_UNSYNCED + path)
        return Unsynced(_content(path), None) if found is None else found

    def _set(self, path: str, unsynced: Unsynced) -> None:
        self.stable[_UNSYNCED + path] = unsynced

    def _move(self, path: str, to: str) -> None:
        """Let what is known of the files in a folder be known of them elsewhere."""

        def moved(file: str) -> str:
            return to + file.removeprefix(path) if file.startswith(path + os.sep) else file

        known = {each: self._of(each) for each in self._changed()}
        for each in known:
            del self.stable[_UNSYNCED + each]
        for each, unsynced in known.items():
            self._set(moved(each), unsynced._replace(tied=tuple(map(moved, unsynced.tied))))

    def _settle(self, path: str, content: bytes | None) -> None:
        """Let a name be safe, and so much of what it leads to; None: all. It may still be open, and change again."""
        tied, now = self._of(path).tied, _content(path)
        safe = now if now is None or content is None else content
        self._keep(path, Unsynced(safe, safe))
        for each in tied:
            other = self._of(each)
            if _content(each) is None:  # It was renamed to this, which is safe now.
                other = Unsynced(None, None, other.tied)
            self._keep(each, other._replace(tied=tuple(name for name in other.tied if name != path)))

    def _keep(self, path: str, unsynced: Unsynced) -> None:
        """Keep what is known of a file, unless there is none and never was: names of temporary files are many."""
        if unsynced == Unsynced(None, None) and _content(path) is None:
            self.stable.pop(_UNSYNCED + path, None)
        else:
            self._set(path, unsynced)


def _kind(path: str) -> int | None:
    """Return what is there, as in `stat`; None if nothing is."""
    with really(), suppress(OSError):
        return stat.S_IFMT(os.lstat(path).st_mode)
    return None


def _content(path: str) -> bytes | None:
    """Return what a file holds; None if there is none."""
    with really(), suppress(OSError):
        file = Path(path)
        return file.read_bytes() if file.is_file() else None  # A pipe would be waited for.
    return None


def _put_back(path: str, content: bytes | None) -> None:
    file = Path(path)
    if content is None or (file.exists() and file.stat().st_nlink > 1):  # By another name, it stays as it is.
        file.unlink(missing_ok=True)
    if content is not None:
        file.write_bytes(content)


# --- Real folders ---

# A program may say where its files are, to others or to a hash. So a folder has the same name in every run, that of
# whose it is; a run that is not the only one at the time takes another by number. It is held by a lock on a file beside
# it, which ends with its process: what a killed process has left is found and removed by the next.

_NAME_LENGTH_MAX = 50  # Of a participant's: those of files are limited.

_held: dict[str, int] = {}  # The locks of folders that are taken, by descriptor.


def _leave_to_parent() -> None:
    """Forget, in a process that was forked, what its parent has taken: its own end isn't the end of that."""
    for lock in _held.values():
        os.close(lock)
    _held.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


def take_folder(name: str, *purpose: object) -> str:
    """Return an empty folder of this process alone."""
    with really():
        place = _place()
        digest = blake2s("\0".join(map(str, (name, *purpose))).encode(), digest_size=4).hexdigest()
        readable = re.sub(r"[^\w.-]", "_", name)[:_NAME_LENGTH_MAX]
        for number in count():
            folder = place / f"{readable}-{digest}{f'-{number}' if number else ''}"
            if (lock := _locked(folder.with_name(f"{folder.name}.lock"))) is not None:
                _remove_folder(folder)
                folder.mkdir(0o700)
                _held[str(folder)] = lock
                return str(folder)
    raise AssertionError("there is always another number")


def give_back_folder(folder: str) -> None:
    """Remove a folder that was taken; one that was given back already is left to others."""
    with really():
        if (lock := _held.pop(folder, None)) is None:
            return
        _remove_folder(folder)
        Path(f"{folder}.lock").unlink(missing_ok=True)
        os.close(lock)


def _remove_folder(folder: str | Path) -> None:
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
