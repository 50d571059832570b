"""Lab times as observers, recordings and errors count them: as whole nanoseconds, as if their unit was the second."""

from __future__ import annotations

from worldline.model.time import SECOND, TIME_MAX

_SHOWN_MAX = 1e9


def nanoseconds(lab_time: float) -> int:
    """Return a lab time as an observer counts it."""
    return max(0, round(lab_time * SECOND))


def shown_time(lab_time: float) -> int:
    """Return a lab time as a status counts it, which goes no further than a billion."""
    return nanoseconds(min(lab_time, _SHOWN_MAX))


def time_of_failure(lab_time: float) -> int | None:
    """Return when something has failed; None, if nobody can count to that."""
    return nanoseconds(lab_time) if lab_time * SECOND < TIME_MAX else None
