"""Lets Python's threads take turns far more often, so that those that race show it: for `worldline verify`.

A thread that has little to do is usually done before the next one begins. Here each gives way after each of its first
lines, for long enough that others begin meanwhile, even on a busy machine; and later on after a microsecond.
"""

from __future__ import annotations

import sys
import threading
from time import sleep  # The real one, also in the thread of a machine's program.
from types import FrameType
from typing import Any

_INTERVAL_S = 1e-6
_LINES = 200
_PAUSE_S = 5e-5


def make_restless() -> None:
    """Do so from now on, in this process."""
    sys.setswitchinterval(_INTERVAL_S)
    threading.settrace(_tracing)


class _Lines:
    """Counts the lines of one thread, and gives way after each of the first."""

    def __init__(self) -> None:
        self._left = _LINES

    def trace(self, _frame: FrameType, _event: str, _argument: object) -> Any:
        self._left -= 1
        if self._left <= 0:
            sys.settrace(None)
            return None
        sleep(_PAUSE_S)
        return self.trace


def _tracing(frame: FrameType, event: str, argument: object) -> Any:
    """Begin with a thread."""
    lines = _Lines()
    sys.settrace(lines.trace)
    return lines.trace(frame, event, argument)
