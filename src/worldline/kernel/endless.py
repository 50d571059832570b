"""Says that a run goes on for too long to have an end."""

from __future__ import annotations

from worldline.model.errors import Stuck


def endless(events_max: int, now: int) -> Stuck:
    return Stuck(
        f"it hasn't ended after {events_max:,} events",
        at=now,
        advice="does it ever end? If it takes longer, raise --events-max, or events_max",
    )
