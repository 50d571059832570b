"""Latencies: how long a message is under way.

Each is a quantile function: it turns one keyed draw of 64 bits into whole nanoseconds, so a message's latency costs
one draw and is monotone in it. Each states its minimum, from which all lookahead comes, and its maximum, after which
a message can be forgotten; even the unbounded distributions have one, since 64 bits have a largest value.

The functions (`fixed`, `uniform`, ...) take times as text or nanoseconds and check them; the structs hold plain
integers and are what configuration files and recordings carry.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

from msgspec import Struct

from worldline.model.errors import ConfigurationError, shown
from worldline.model.randomness import BITS_MAX, open_unit
from worldline.model.reading import as_latency, as_time
from worldline.model.time import TIME_MAX, TimeLike, format_time, is_time

_STANDARD_NORMAL = NormalDist()


class Fixed(Struct, frozen=True, tag="fixed"):
    """Always the same."""

    latency: int

    @property
    def minimum(self) -> int:
        return self.latency

    @property
    def maximum(self) -> int:
        return self.latency

    def draw(self, bits: int) -> int:
        return self.latency


class Uniform(Struct, frozen=True, tag="uniform"):
    """Every whole nanosecond from `minimum` to `maximum`, both included, equally often."""

    minimum: int
    maximum: int

    def draw(self, bits: int) -> int:
        return self.minimum + (bits * (self.maximum - self.minimum + 1) >> 64)


class Normal(Struct, frozen=True, tag="normal"):
    """Normally distributed; what would fall below `minimum` is `minimum`."""

    mean: int
    deviation: int
    minimum: int

    @property
    def maximum(self) -> int:
        return self.draw(BITS_MAX)

    def draw(self, bits: int) -> int:
        return max(self.minimum, self.mean + round(self.deviation * _STANDARD_NORMAL.inv_cdf(open_unit(bits))))


class Exponential(Struct, frozen=True, tag="exponential"):
    """`minimum` plus an exponentially distributed delay of mean `mean`."""

    minimum: int
    mean: int

    @property
    def maximum(self) -> int:
        return self.draw(BITS_MAX)

    def draw(self, bits: int) -> int:
        return self.minimum + round(self.mean * -math.log(1.0 - open_unit(bits)))


class Table(Struct, frozen=True, tag="table"):
    """One of the measured values, equally often; a value that stands there twice comes twice as often."""

    values: tuple[int, ...]

    @property
    def minimum(self) -> int:
        return min(self.values)

    @property
    def maximum(self) -> int:
        return max(self.values)

    def draw(self, bits: int) -> int:
        return self.values[bits * len(self.values) >> 64]


Latency = Fixed | Uniform | Normal | Exponential | Table


def fixed(latency: TimeLike) -> Fixed:
    return Fixed(as_latency(latency))


def uniform(minimum: TimeLike, maximum: TimeLike) -> Uniform:
    low, high = as_latency(minimum, "the minimum latency"), as_latency(maximum, "the maximum latency")
    if low > high:
        raise ConfigurationError(f"a uniform latency from {format_time(low)} to {format_time(high)} is empty")
    return Uniform(low, high)


def normal(mean: TimeLike, deviation: TimeLike, minimum: TimeLike) -> Normal:
    return Normal(
        as_time(mean, "the mean latency"),
        as_time(deviation, "the standard deviation"),
        as_latency(minimum, "the minimum latency"),
    )


def exponential(minimum: TimeLike, mean: TimeLike) -> Exponential:
    return Exponential(as_latency(minimum, "the minimum latency"), as_time(mean, "the mean delay"))


def table(values: Iterable[TimeLike]) -> Table:
    measured = tuple(as_latency(value, "a measured latency") for value in values)
    if not measured:
        raise ConfigurationError("a latency table needs at least one measured value")
    return Table(measured)


def check_latency(latency: Latency, link: str) -> None:
    """Refuse a latency that breaks the lock's only demand: at least 1 ns, and finite. `link` is its name."""
    if not isinstance(latency, Latency):
        raise ConfigurationError(
            f"{link}: {shown(latency)} isn't a latency", advice="use fixed, uniform, normal, exponential or table"
        )
    times = (
        latency.values
        if isinstance(latency, Table)
        else tuple(getattr(latency, name) for name in latency.__struct_fields__)
    )
    if not times:
        raise ConfigurationError(f"{link}: the latency table is empty")
    for time in times:
        if not is_time(time):
            raise ConfigurationError(
                f"{link}: a latency of {shown(time)} isn't possible", advice="use whole nanoseconds, at least 1"
            )
    if isinstance(latency, Uniform) and latency.minimum > latency.maximum:
        raise ConfigurationError(f"{link}: the latency's minimum is larger than its maximum")
    if latency.minimum < 1:
        raise ConfigurationError(
            f"{link}: a latency of {format_time(latency.minimum)} isn't possible",
            advice="use at least 1ns, the microstep",
        )
    if latency.maximum > TIME_MAX:
        raise ConfigurationError(f"{link}: the latency can exceed the largest time, {format_time(TIME_MAX)}")
