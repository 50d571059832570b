"""Temporary folders that only this user can open, and that don't outlive their process for long, even if it is killed.

The process that has made a folder holds a lock on it, which the system takes back however the process ends. Whoever
makes the next folder removes those that nobody holds any more. A folder that was made this very moment isn't locked
yet; it counts only once its sticky bit, which means nothing to a folder of one user, says that it was.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import weakref
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

_PREFIX = "worldline-"
_LOCKED = stat.S_IRWXU | stat.S_ISVTX


class ScratchFolder(TemporaryDirectory[str]):
    """A temporary folder, with a word in its name that says what it is for, if one is given."""

    def __init__(self, use: str = "", place: str | None = None) -> None:
        sweep_scratch_folders(place)
        super().__init__(prefix=f"{_PREFIX}{use}-" if use else _PREFIX, dir=place, ignore_cleanup_errors=True)
        lock = os.open(self.name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._unlock = weakref.finalize(self, os.close, lock)  # Also if it is dropped,
        self._unlock.atexit = False  # but not before the folder is removed when the process ends.
        with suppress(OSError):  # Where nothing can be locked, nobody else removes it either.
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
