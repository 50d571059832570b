"""Time: whole nanoseconds in an `int`.

Simulated time starts at 0 and ends at `TIME_MAX`, 2**60 - 1 ns or about 36 years. `FOREVER` is later than every time,
also than a time plus a latency; it stands for "never" where a time is expected. Even sums with it stay far below 2**63,
so compiled queues and other languages' clients need no overflow checks.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, SupportsIndex

from msgspec import Meta

TIME_MAX: Final = 2**60 - 1
FOREVER: Final = 2**61

NS = 1
US = 1_000
MS = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

Int64 = Annotated[int, Meta(ge=-(2**62), le=2**62)]
"""A number that others send: so large that sums of two still fit into 64 bits. Decoders refuse what is larger."""

Count = Annotated[int, Meta(ge=0, le=2**62)]
"""A number of things that others send."""

TimeLike = SupportsIndex | str | timedelta
"""What stands for a time: nanoseconds as an int or any other whole number, text such as ``"5ms"``, or a timedelta."""


def is_time(value: object) -> bool:
    """Whether this is a time in nanoseconds: an int, not a bool, in range."""
    return type(value) is int and 0 <= value <= TIME_MAX


def rounded_time(time: int) -> str:
    """Format a time for people: one of hours or days that isn't whole in its three largest units, ``3h 25min 45s``."""
    exact = format_time(time)
    if not HOUR <= time < FOREVER or exact[-1] != "s":
        return exact
    rest = time
    parts: list[str] = []
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")):
        count, rest = divmod(rest, unit)
        if count or parts:
            parts.append(f"{count}{name}")
    return " ".join(parts[:3])


def format_time(time: int) -> str:
    """Format a time so that `parse_time` reads it back exactly: ``5ms``, ``1.5s``, ``2h``."""
    if time >= FOREVER:
        return "forever"
    if time < 0:
        return f"-{format_time(-time)}"
    if time == 0:
        return "0s"
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if time % unit == 0:
            return f"{time // unit}{name}"
    for unit, name in ((SECOND, "s"), (MS, "ms"), (US, "us")):
        if time >= unit:
            whole, rest = divmod(time, unit)
            if rest == 0:
                return f"{whole}{name}"
            digits = len(str(unit)) - 1
            return f"{whole}.{rest:0{digits}d}".rstrip("0") + name
    return f"{time}ns"
