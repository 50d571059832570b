"""Times of simulators that count seconds as floats, to and from whole nanoseconds.

In this room a float is a number of seconds, as it is for Drake and MuJoCo. A text has its unit with it. A whole number
is refused: it is nanoseconds everywhere else in Worldline and seconds everywhere in Drake, so somebody would be wrong.
"""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from math import inf, nextafter

from worldline.model import UsageError, as_time
from worldline.model.time import SECOND, TIME_MAX

Seconds = float | str | timedelta

_BITS = 4


def as_nanoseconds(seconds: Seconds, what: str) -> int:
    """Return a time that a user gives, rounded to the nearest nanosecond."""
    if isinstance(seconds, str | timedelta):
        return as_time(seconds, what)
    if isinstance(seconds, float) or hasattr(seconds, "dtype"):  # numpy's floats may not derive from Python's.
        value = float(seconds)
        if not 0 <= value <= TIME_MAX / SECOND:
            raise UsageError(f"{what} of {value} seconds isn't possible", advice="use 0 or more seconds")
        return nanoseconds(value)
    if isinstance(seconds, int):
        raise UsageError(
            f"{what} of {seconds!r} may be meant in seconds or in nanoseconds",
            advice=f'write {seconds}.0 or "{seconds}ns"',
        )
    raise UsageError(f"{what} is seconds or a text, not {type(seconds).__name__}", advice='write 0.01 or "10ms"')


def nanoseconds(seconds: float) -> int:
    """Return the nearest whole nanosecond."""
    return round(seconds * SECOND)


def furthest(seconds: float, time: int) -> float:
    """Return the last float, within a few bits of this one, that is still the same nanosecond.

    No product of a number and a period that means this nanosecond lies beyond: it is rounded once or twice.
    """
    for _ in range(_BITS):
        following = nextafter(seconds, inf)
        if nanoseconds(following) != time:
            break
        seconds = following
    return seconds


class Grid:
    """The times offset + k × period, as a simulator computes them, and as whole nanoseconds.

    The product of two floats often lies beside the float that is nearest to its nanosecond. A simulator that is sent to
    the latter stops before its own event, or just after it, once in eight times for a period of 10 ms. So whoever means
    the event has to name the simulator's own float.
    """

    def __init__(self, period: float, offset: float = 0.0) -> None:
        self.period = period
        self._offset = offset
        self._period_ns = period * SECOND

    def at(self, time: int) -> float | None:
        """Return the grid's own float for a time in nanoseconds; None if that isn't on the grid.

        With an offset, processors differ in the last bit, as they round the product before the sum or not: it is the
        lesser of the two.
        """
        number = round((time - self._offset * SECOND) / self._period_ns)
        seconds = self._offset + number * self.period
        if self._offset:
            seconds = min(seconds, float(Fraction(self._offset) + number * Fraction(self.period)))
        return seconds if nanoseconds(seconds) == time else None

    def after(self, time: int) -> int:
        """Return the first time on the grid after a time, in nanoseconds."""
        number = max(0, int((time - self._offset * SECOND) / self._period_ns) - 1)
        while (found := nanoseconds(self._offset + number * self.period)) <= time:
            number += 1
        return found
