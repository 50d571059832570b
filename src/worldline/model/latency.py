"""Latencies: how long a message is under way.

Each is a quantile function: it turns one keyed draw of 64 bits into whole nanoseconds, so a message's latency costs
one draw and is monotone in it. Each states its minimum, from which all lookahead comes, and its maximum, after which
a message can be forgotten; even the unbounded distributions have one, since 64 bits have a largest value.

The functions (`fixed`, `uniform`, ...) take times as text or nanoseconds and check them; the structs hold plain
integers and are what recordings carry. A text such as ``"uniform(4ms, 9ms)"`` calls these functions where there is no
Python: in configuration files and on the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from worldline.model import quantiles
from worldline.model.errors import ConfigurationError, shown
from worldline.model.randomness import BITS_MAX, open_unit
from worldline.model.reading import as_latency, as_time
from worldline.model.time import TIME_MAX, TimeLike, format_time, is_time


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
        return max(self.minimum, self.mean + round(self.deviation * quantiles.normal(open_unit(bits))))


class Exponential(Struct, frozen=True, tag="exponential"):
    """`minimum` plus an exponentially distributed delay of mean `mean`."""

    minimum: int
    mean: int

    @property
    def maximum(self) -> int:
        return self.draw(BITS_MAX)

    def draw(self, bits: int) -> int:
        return self.minimum + round(self.mean * -quantiles.log(1.0 - open_unit(bits)))


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


# What a text can call, and the names of what it passes.
_CALLED: dict[str, tuple[Callable[..., Latency], tuple[str, ...]]] = {
    "fixed": (fixed, ("latency",)),
    "uniform": (uniform, ("minimum", "maximum")),
    "normal": (normal, ("mean", "deviation", "minimum")),
    "exponential": (exponential, ("minimum", "mean")),
}
# The same for what isn't a message's latency, with numbers of any kind.
_SPREADS: dict[str, Callable[..., Latency]] = {
    "fixed": Fixed,
    "uniform": Uniform,
    "normal": Normal,
    "exponential": Exponential,
}
_FORMS = {**{kind: f"{kind}({', '.join(names)})" for kind, (_, names) in _CALLED.items()}, "table": "table(a, b, ...)"}
_CALL = re.compile(r"\s*([a-z]+)\s*\(([^()]*)\)\s*")


def as_distribution(latency: Latency | TimeLike) -> Latency:
    """Take a latency, a time, which is a fixed one, or a text such as ``"normal(6ms, 1ms, minimum=4ms)"``."""
    if isinstance(latency, Latency):
        return latency
    if not isinstance(latency, str) or ("(" not in latency and ")" not in latency):
        return fixed(latency)
    call = _CALL.fullmatch(latency)
    if call is None or call[1] not in _FORMS:
        advice = f"write a time such as 5ms, or {', '.join(_FORMS.values())}"
        raise ConfigurationError(f"{shown(latency)} isn't a latency", advice=advice)
    drawn = _called(call[1], call[2], latency)
    check_latency(drawn, shown(latency))
    return drawn


def as_delay(delay: Latency | TimeLike, what: str = "a delay") -> Latency:
    """Take a delay as `as_distribution` takes a latency; it may be 0."""
    made = delay
    if not isinstance(made, Latency):
        called = as_spread(made, as_time, what) if isinstance(made, str) else None
        made = Fixed(as_time(made, what)) if called is None else called
    if made.minimum > made.maximum or made.minimum < 0:
        raise ConfigurationError(f"{shown(delay)} isn't {what}", advice="its minimum is larger than its maximum")
    if made.maximum > TIME_MAX:
        raise ConfigurationError(f"{shown(delay)} can exceed the largest time, {format_time(TIME_MAX)}")
    return made


def as_spread(text: str, read: Callable[[str], int], what: str) -> Latency | None:
    """Take a text such as ``"uniform(-5ms, 5ms)"``, whose numbers are read by `read`; None if it calls nothing."""
    call = _CALL.fullmatch(text)
    if call is None or call[1] not in _FORMS:
        return None
    passed = _arguments(call[1], call[2], text, what)
    if not passed:
        raise ConfigurationError(f"{shown(text)} isn't {what}", advice="a table needs at least one value")
    numbers = {name: read(number) for name, number in passed.items()}
    return Table(tuple(numbers.values())) if call[1] == "table" else _SPREADS[call[1]](**numbers)


def delay_text(delay: Latency) -> str:
    """Write a delay as a text that `as_delay` reads."""
    return format_time(delay.latency) if isinstance(delay, Fixed) else spread_text(delay, format_time)


def spread_text(spread: Latency, write: Callable[[int], str]) -> str:
    """Write a distribution as a call, such as ``uniform(4ms, 9ms)``; `write` writes its numbers."""
    numbers = spread.values if isinstance(spread, Table) else [getattr(spread, key) for key in spread.__struct_fields__]
    return f"{spread.__struct_config__.tag}({', '.join(map(write, numbers))})"


def _called(kind: str, arguments: str, latency: str) -> Latency:
    passed = _arguments(kind, arguments, latency, "a latency")
    return table(passed.values()) if kind == "table" else _CALLED[kind][0](**passed)


def _arguments(kind: str, arguments: str, text: str, what: str) -> dict[str, str]:
    """Return what a text passes, by name; to a table, by place."""
    if kind == "table":
        parts = arguments.split(",") if arguments.strip() else ()
        return {str(place): part.strip() for place, part in enumerate(parts)}
    passed = passed_in(arguments, _CALLED[kind][1])
    if passed is None:
        raise ConfigurationError(f"{shown(text)} isn't {what}", advice=f"write {_FORMS[kind]}")
    return passed


def passed_in(arguments: str, names: tuple[str, ...]) -> dict[str, str] | None:
    """Return what stands between the brackets of a call, by name; None if that isn't each of the names once."""
    passed: dict[str, str] = {}
    for place, part in enumerate(arguments.split(",")):
        before, equals, after = (piece.strip() for piece in part.partition("="))
        name = before if equals else names[place] if place < len(names) else ""
        if name not in names or name in passed:
            return None
        passed[name] = after if equals else before
    return passed if len(passed) == len(names) else None


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
            advice="use at least 1ns",
        )
    if latency.maximum > TIME_MAX:
        raise ConfigurationError(f"{link}: the latency can exceed the largest time, {format_time(TIME_MAX)}")
