"""Stamps: lines of a participant's output that carry its simulated time from its process to the launcher's.

The launcher knows only how far a participant has come when it last said so; the participant itself knows better.
"""

from __future__ import annotations

import io
from typing import TextIO

from worldline.federation.participant import Operations

STAMPING = "WORLDLINE_STAMPING"
"""Set in the environment of processes whose launcher understands stamps."""

_BEGIN, _END = "\x1e", "\x1f"


class StampedOutput(io.TextIOBase):
    """Stands in for standard output, and puts the participant's time before every line."""

    def __init__(self, output: TextIO, participant: Operations) -> None:
        self._output = output
        self._participant = participant
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            stamp = f"{_BEGIN}{self._participant.now}{_END}"
            self._output.write("".join(f"{stamp}{line}\n" for line in lines))
            self._output.flush()
        return len(text)

    def finish(self) -> None:
        if self._rest:
            self.write("\n")

    def close(self) -> None:
        """Do nothing: what is behind it isn't ours to close, nor to flush when this is forgotten."""

    def flush(self) -> None:
        self._output.flush()


def read_stamp(line: str) -> tuple[int | None, str]:
    """Return the time that a line was printed at, if it says so, and the line itself."""
    if line.startswith(_BEGIN):
        time, end, text = line[1:].partition(_END)
        if end and time.isdecimal():
            return int(time), text
    return None, line
