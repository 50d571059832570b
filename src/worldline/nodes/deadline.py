"""A limit for code that may never come back: a loop without an end in a user's node."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from worldline.model.errors import Stuck


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `Stuck` in what runs here if it takes longer; only in a main thread, where the system allows it."""
    if seconds is None or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise Stuck(
            f"it has taken more than {seconds:g} seconds of real time",
            advice="is there a loop without an end in a node? If it needs longer, allow it more",
        )

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
