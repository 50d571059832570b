"""Standard output and error that can't be written any more: the reader is gone (`| head -1`), or the disk is full.

What prints then, a command, a model, or a worker, mustn't be blamed for it. So what is raised is an error of ours
that says what is the matter, once; what is printed after that goes nowhere.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from worldline.model.errors import LossError, Unread, WorldlineError


def unwritable(error: OSError) -> WorldlineError:
    """Return what it means that something can't be shown."""
    if isinstance(error, BrokenPipeError):
        return Unread("the reader closed the pipe")
    return LossError(f"what is to be shown can't be written: {error.strerror or error}")


def guard_output() -> None:
    """See to both streams of this process. Those that aren't the system's own, but in memory, stay as they are."""
    sys.stdout = _guarded(sys.stdout, _refuse)
    sys.stderr = _guarded(sys.stderr, lambda _: None)  # There is nowhere left to say it.


def _refuse(error: OSError) -> None:
    raise unwritable(error) from None


def _guarded(stream: TextIO, tell: Callable[[OSError], None]) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    is_buffered = isinstance(stream.buffer, io.BufferedWriter)
    raw = stream.buffer.raw if is_buffered else stream.buffer
    if type(raw) is not io.FileIO:  # Perhaps it is guarded already.
        return stream
    stream.flush()
    guarded = _GuardedFile(raw.fileno(), tell)
    return io.TextIOWrapper(
        io.BufferedWriter(guarded) if is_buffered else guarded,
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


class _GuardedFile(io.FileIO):
    """An open file of this process that tells once that it can't be written."""

    def __init__(self, descriptor: int, tell: Callable[[OSError], None]) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._tell = tell
        self.name = {1: "<stdout>", 2: "<stderr>"}.get(descriptor, str(descriptor))

    def write(self, data: Any, /) -> int | None:  # type: ignore[override]
        if not data:  # A caller tries whether it takes bytes, and doesn't want to hear of anything else.
            return 0
        try:
            return super().write(data)
        except BlockingIOError:
            raise
        except OSError as error:
            void = os.open(os.devnull, os.O_WRONLY)
            os.dup2(void, self.fileno())
            os.close(void)
            self._tell(error)
            return len(data)
