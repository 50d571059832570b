"""Remembers, now and then, how far a run was: so that what the lock counts in events can be told in seconds.

The lock has no clock, and to note the time of every event would cost every event something. So the server notes, as
often as it looks at its clock anyway, how many events there have been; when one of them was is known to within such a
look. Of what is long past, fewer looks are kept.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

_KEPT = 256
_APART_S = 0.05
_LATELY_S = 2.0
_LEAST_S = 0.25  # What happens in less says nothing of a pace.


class Milestone(NamedTuple):
    """How many events there had been at some moment, and how far simulated time was."""

    events: int
    wall_s: float
    time: int


class Milestones:
    """The moments of one run that are remembered, the oldest first."""

    def __init__(self) -> None:
        self._passed: list[Milestone] = []

    def note(self, events: int, wall_s: float, time: int) -> None:
        """Remember a moment, unless nothing has happened since the last one, or that was just now."""
        passed = self._passed
        if passed and (passed[-1].events == events or wall_s - passed[-1].wall_s < _APART_S):
            return
        passed.append(Milestone(events, wall_s, time))
        if len(passed) > _KEPT:
            half = len(passed) // 2
            del passed[1:half:2]

    def when(self, event: int) -> float | None:
        """Return the first look after which this event had happened; None if nobody has looked since."""
        place = bisect_right(self._passed, event, key=lambda milestone: milestone.events)
        return self._passed[place].wall_s if place < len(self._passed) else None

    def pace(self, events: int, wall_s: float, time: int) -> tuple[float | None, float | None]:
        """Return how many simulated seconds have passed per second lately, and how many events; None: nobody knows."""
        place = bisect_right(self._passed, wall_s - _LATELY_S, key=lambda milestone: milestone.wall_s)
        since = self._passed[max(0, place - 1)] if self._passed else None
        if since is None or wall_s - since.wall_s < _LEAST_S:
            return None, None
        elapsed = wall_s - since.wall_s
        return (time - since.time) / elapsed / 1e9, (events - since.events) / elapsed
