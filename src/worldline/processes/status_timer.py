"""How often a run looks up from its work: to say how far it is, and to hear whether it may go on.

It reads a clock, and nothing that happens in the run depends on that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

from worldline.history.outcome import Status, Watch
from worldline.model.time import FOREVER

LOOK_EVERY_S = 0.1
"""How often a run that goes on looks up."""
_EVENTS_MAX = 1_000_000

Look = Callable[[int, int], int]
"""Is called with the time and the number of events from time to time; returns how many events may pass until the next.
"""


class StatusTimer:
    """Tells a watcher every now and then how far a run is, and decides how many events pass in between."""

    def __init__(self, tell: Callable[[int, int], None]) -> None:
        self._tell = tell
        self._looked = time.monotonic()
        self._told = -inf
        self._events = 1  # Each may take long; if not, it soon becomes more.
        self._counted = 0

    def __call__(self, now: int, events: int) -> int:
        clock = time.monotonic()
        if events != self._counted:  # Otherwise it has only waited, which says nothing of events.
            if clock - self._looked > LOOK_EVERY_S:
                self._events = max(1, self._events // 2)
            elif clock - self._looked < LOOK_EVERY_S / 4:
                self._events = min(2 * self._events, _EVENTS_MAX)
        self._looked = clock
        self._counted = events
        if clock - self._told >= LOOK_EVERY_S and events:
            if now:  # Until then nothing is known of how far it is, and the next look is told of as well.
                self._told = clock
            self._tell(now, events)
        return self._events


def telling(watch: Watch | None, end: int) -> Callable[[int, int], None]:
    """Return what tells a watcher, if there is one, how far a run is that has this end."""

    def tell(now: int, events: int) -> None:
        if watch is not None:
            watch(Status(now, end, events))

    return tell


def looks(watch: Watch | None, end: int) -> Look:
    """Return what looks up now and then to tell a watcher how far a run is; if there is none, it never needs to."""
    return StatusTimer(telling(watch, end)) if watch is not None else lambda _now, _events: FOREVER
