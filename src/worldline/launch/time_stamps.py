"""Stamps: lines of a participant's output that carry its simulated time from its process to the launcher's.

The launcher knows only how far a participant has come when it last said so; the participant itself knows better. Where
several share a process, lines also carry the name of the one that has printed them.

What stands in for standard output and standard error are ordinary text files on the same descriptors, so whatever works
with those works here, too: `buffer`, `fileno`, `reconfigure`, other programs that write there. Only what bypasses
Python has no stamp.
"""

from __future__ import annotations

import io
import os
import re
import sys
import threading
from collections.abc import Callable
from typing import Any

STAMPING = "WORLDLINE_STAMPING"
"""Set in the environment of processes whose launcher understands stamps."""

_BEGIN, _BY, _END = "\x1e", "\x1d", "\x1f"
_STAMPED = re.compile(rf"{_BEGIN}(?P<time>[0-9]{{1,19}}){_END}(?P<text>.*)", re.DOTALL)  # No time is longer.


class TimeStamps:
    """Puts the participant's time before every line of both outputs. `now` tells it, once it is known.

    Where several share the process, `speaker` tells whose program runs.
    """

    def __init__(self) -> None:
        self.now: Callable[[], int | None] = lambda: None
        self.speaker: Callable[[], str | None] = lambda: None
        self._lock = threading.RLock()
        self._unfinished: tuple[int, str | None] | None = None  # Where, and whose, a line is that hasn't ended.

    def install(self) -> None:
        """Stand in for standard output and standard error, from here on."""
        sys.stdout = self._stamped(1, "<stdout>", "strict")
        sys.stderr = self._stamped(2, "<stderr>", "backslashreplace")

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all of it, with a stamp for each line that begins."""
        with self._lock:
            speaker, now = self.speaker(), self.now()
            by = "" if speaker is None else f"{_BY}{speaker}{_END}"
            stamp = (by if now is None else f"{by}{_BEGIN}{now}{_END}").encode()
            # All outputs lead to the same place: what begins there doesn't go on with a line of another one.
            place = descriptor, speaker
            text = b"\n" if self._unfinished not in (None, place) else b""
            text += b"" if self._unfinished == place else stamp
            lines = data.split(b"\n")
            is_whole = not lines[-1]
            text += (b"\n" + stamp).join(lines[:-1] if is_whole else lines) + (b"\n" if is_whole else b"")
            self._unfinished = None if is_whole else place
            _write_all(descriptor, text)

    def _stamped(self, descriptor: int, name: str, errors: str) -> io.TextIOWrapper:
        binary = _Stamped(descriptor, self, name)
        return io.TextIOWrapper(binary, encoding="utf-8", errors=errors, newline="\n", write_through=True)


def _write_all(descriptor: int, text: bytes) -> None:
    """Write it, apart from the lock: a signal's handler that raised at the loop's jump back would leave it locked."""
    left = memoryview(text)
    while left:
        left = left[os.write(descriptor, left) :]


class _Stamped(io.FileIO):
    """A descriptor that lines are stamped on."""

    def __init__(self, descriptor: int, stamps: TimeStamps, name: str) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._stamps = stamps
        self.name = name

    def write(self, data: Any, /) -> int:
        taken = bytes(data)
        if taken:
            self._stamps.write(self.fileno(), taken)
        return len(taken)


def read_stamp(line: str) -> tuple[int | None, str]:
    """Return the time that a line was printed at, if it says so, and the line itself."""
    match = _STAMPED.fullmatch(line)
    return (None, line) if match is None else (int(match["time"]), match["text"])


def read_speaker(line: str) -> tuple[str | None, str]:
    """Return who has printed a line, if it says so, and the rest of it, which may be stamped with the time."""
    if not line.startswith(_BY):
        return None, line
    name, _, rest = line[1:].partition(_END)
    return name, rest
