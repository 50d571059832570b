"""Times of simulators that count seconds as floats, to and from whole nanoseconds.

In this room a float is a number of seconds, as it is for Drake and MuJoCo. A text has its unit with it. A whole number
is refused: it is nanoseconds everywhere else in Worldline and seconds everywhere in Drake, so somebody would be wrong.
"""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

from worldline.model import UsageError, as_time
from worldline.model.time import SECOND, TIME_MAX

Seconds = float | str | timedelta

_WHOLE = 1e-6  # By this much of a nanosecond, a period may be off and still count as whole.


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


class Grid:
    """The times offset + k × period, as a simulator computes them, and as whole nanoseconds.

    The product of two floats often lies beside the float that is nearest to its nanosecond. A simulator that is sent to
    the latter stops before its own event, or just after it, once in eight times for a period of 10 ms. So whoever means
    the event has to name the simulator's own float.
    """

    def __init__(self, period: float, offset: float = 0.0) -> None:
        self.period = period
        self.offset = offset
        self._period_ns = period * SECOND
        # A third of a second isn't a whole number of nanoseconds: each of its times is rounded, and so is a delay.
        self.is_rounded = any(abs(each * SECOND - nanoseconds(each)) > _WHOLE for each in (period, offset))

    def floats(self, time: int) -> tuple[float, ...]:
        """Return the grid's own floats for a time in nanoseconds: none if that isn't on the grid.

        With an offset there may be two: processors round the product before the sum, or not.
        """
        offset = self.offset
        number = round((time - offset * SECOND) / self._period_ns)
        seconds = offset + number * self.period
        if round(seconds * SECOND) != time or number < 0:
            return ()
        if not offset:
            return (seconds,)
        at_once = float(Fraction(self.offset) + number * Fraction(self.period))
        return (seconds,) if at_once == seconds else (seconds, at_once)

    def after(self, time: int) -> int:
        """Return the first time on the grid after a time, in nanoseconds."""
        number = max(0, int((time - self.offset * SECOND) / self._period_ns))
        while (found := nanoseconds(self.offset + number * self.period)) <= time:
            number += 1
        return found
