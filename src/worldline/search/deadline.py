"""A limit for code that may never come back: a loop without an end in a user's program."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from worldline.model.errors import Stuck
from worldline.workers.interruptions import BreakOff

SECONDS_MAX = 60.0
"""How long a run may take where nobody says anything else."""


_AGAIN_S = 1.0  # An alarm that rings where Python swallows exceptions, in a destructor, has to ring again.


class Expired(BreakOff):
    """Time is up. Not an `Exception`: code that goes on whatever happens would go on."""

    def stuck(self) -> Stuck:
        """Return the error that says so."""
        return Stuck(
            str(self),
            advice="is there an endless loop? If it needs longer, raise --seconds-max, or seconds_max",
            is_expired=True,
        )


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """End what runs here with `Stuck` if it takes longer; only in a main thread, where the system allows it."""
    is_possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if seconds is None or seconds == math.inf or not is_possible:
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise Expired(f"it has taken more than {seconds:g} second{'' if seconds == 1 else 's'} of real time")

    before = signal.signal(signal.SIGALRM, ring)
    began = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)
    try:
        yield
    except Expired as expired:
        raise expired.stuck() from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # Somebody else's alarm is still to ring: when it would have, or at once.
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 1e-6), interval)
