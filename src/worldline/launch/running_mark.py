"""Whose program runs in a process that several share, noted where others can read it, even after the process is gone.

A process that a program ends by `os._exit`, or that crashes, says nothing any more. So who runs is noted in four bytes
of a file that is mapped into the process's memory, which costs hardly more than an assignment.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Final

_NOBODY = 0
_BYTE_ORDER: Final = "little"
_SIZE = 4


class RunningMark:
    """The process's end: it notes the places, counted from 0, of those who run."""

    def __init__(self, file: Path) -> None:
        with _mark_of(file).open("w+b") as opened:
            opened.write(bytes(_SIZE))
            opened.flush()
            self._bytes = mmap.mmap(opened.fileno(), _SIZE)

    def note(self, place: int | None) -> None:
        """Note who runs from now on; None: nobody."""
        self._bytes[:] = (_NOBODY if place is None else place + 1).to_bytes(_SIZE, _BYTE_ORDER)


def running_in(file: Path) -> int | None:
    """Return the place of the one that runs, or ran when the process ended; None: nobody, or it isn't known."""
    try:
        noted = int.from_bytes(_mark_of(file).read_bytes(), _BYTE_ORDER)
    except OSError:
        return None
    return None if noted == _NOBODY else noted - 1


def forget_running(file: Path) -> None:
    """Remove what a process has noted that is gone: the next one notes its own."""
    _mark_of(file).unlink(missing_ok=True)


def _mark_of(file: Path) -> Path:
    return file.with_suffix(".running")
