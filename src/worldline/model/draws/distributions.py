"""Distributions of draws that aren't latencies, and the values that a draw of any distribution may have.

A distribution turns 64 bits into a value. `checked_value` takes a value that is given instead, in the
distribution's own terms, and refuses one that the distribution could never yield: the lock relies on the bounds.
"""

from __future__ import annotations

import re

from msgspec import Struct

from worldline.model.errors import ConfigurationError, shown
from worldline.model.latency import Latency, spread_text
from worldline.model.randomness import unit
from worldline.model.reading import as_time, as_time_difference
from worldline.model.time import format_time

# Rates by which a clock differs from true time, in whole parts per billion, and as people write them.

RateLike = int | str
"""What stands for a rate: text such as ``"40ppm"``, or whole parts per billion."""

_RATE_UNITS = {"ppb": 1, "ppm": 1000, "%": 10**7}
_RATE = re.compile(r"([+-]?)\s*([0-9]{1,20})(?:\.([0-9]{1,20}))?\s*(ppb|ppm|%)", re.ASCII)


def as_rate(value: RateLike, what: str = "a rate") -> int:
    """Take a rate as text with a unit, ppb, ppm or %, or as whole parts per billion."""
    advice = 'write a number and a unit, such as "40ppm", "-300ppb" or "0.1%"'
    if isinstance(value, str):
        match = _RATE.fullmatch(value.strip())
        if match is None:
            raise ConfigurationError(f"{shown(value)} isn't {what}", advice=advice)
        sign, whole, fraction, unit = match[1], match[2], match[3] or "", _RATE_UNITS[match[4]]
        rate, rest = divmod(int(whole + fraction) * unit, int(10 ** len(fraction)))
        if rest:
            raise ConfigurationError(
                f"{shown(value)} isn't {what}", advice="it isn't a whole number of parts per billion"
            )
        return -rate if sign == "-" else rate
    if type(value) is not int:
        raise ConfigurationError(f"{shown(value)} isn't {what}", advice=advice)
    return value


def format_rate(rate: int) -> str:
    """Write a rate so that `as_rate` reads it back exactly."""
    if rate % 1000:
        return f"{rate}ppb"
    return f"{rate // 1000}ppm"


class Chance(Struct, frozen=True):
    """True with this probability."""

    probability: float

    def draw(self, bits: int) -> bool:
        return unit(bits) < self.probability


class UnitInterval(Struct, frozen=True):
    """A float from 0 to 1, without the 1: what `random()` draws."""

    def draw(self, bits: int) -> float:
        return unit(bits)


class RandomBits(Struct, frozen=True):
    """A whole number of so many bits, at most 64: what `getrandbits()` draws, and whatever is made of it."""

    count: int

    def draw(self, bits: int) -> int:
        return bits >> (64 - self.count)


class BitPlace(Struct, frozen=True):
    """Which of so many bits of a payload."""

    count: int

    @property
    def minimum(self) -> int:
        return 0

    @property
    def maximum(self) -> int:
        return self.count - 1

    def draw(self, bits: int) -> int:
        return bits * self.count >> 64


class Turn(Struct, frozen=True):
    """Which of the callbacks that are `ready`, named in their own order, runs next. By itself, the first."""

    ready: tuple[str, ...]

    @property
    def minimum(self) -> int:
        return 0

    @property
    def maximum(self) -> int:
        return len(self.ready) - 1

    def draw(self, bits: int) -> int:
        return 0


class _Spread(Struct, frozen=True):
    """What is drawn as a latency is, and may be negative."""

    spread: Latency

    @property
    def minimum(self) -> int:
        return self.spread.minimum

    @property
    def maximum(self) -> int:
        return self.spread.maximum

    def draw(self, bits: int) -> int:
        return self.spread.draw(bits)


class ClockOffset(_Spread, frozen=True):
    """What a clock shows at time 0, in nanoseconds."""


class ClockRate(_Spread, frozen=True):
    """A rate of a clock, or a change of it, in parts per billion, which `spread` has in place of nanoseconds."""


Distribution = Latency | Chance | UnitInterval | RandomBits | BitPlace | Turn | ClockOffset | ClockRate
DrawnValue = int | float | bool


def distribution_text(distribution: Distribution) -> str:
    """Write a distribution as a file would: ``uniform(4ms, 9ms)``, ``chance(0.1)``."""
    match distribution:
        case Chance():
            return f"chance({distribution.probability:g})"
        case UnitInterval():
            return "unit"
        case RandomBits():
            return f"bits({distribution.count})"
        case BitPlace():
            return f"bit-of({distribution.count})"
        case Turn():
            return f"turn-of({len(distribution.ready)})"
        case ClockOffset():
            return spread_text(distribution.spread, format_time)
        case ClockRate():
            return spread_text(distribution.spread, format_rate)
        case _:
            return spread_text(distribution, format_time)


def value_text(distribution: Distribution, value: DrawnValue) -> str:
    """Write a value as a table of draws would."""
    if isinstance(distribution, Latency | ClockOffset):
        return format_time(int(value))
    if isinstance(distribution, ClockRate):
        return format_rate(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def checked_value(distribution: Distribution, given: object) -> DrawnValue:
    """Return a given value as one that the distribution could have yielded; refuse any other."""
    match distribution:
        case Chance():
            return _checked_chance(distribution, given)
        case UnitInterval():
            return _checked_unit(given)
        case RandomBits():
            return _checked_bits(distribution, given)
        case BitPlace() | Turn():
            return _checked_place(distribution, given)
        case ClockOffset():
            value = as_time_difference(given, "an offset")  # type: ignore[arg-type] # It refuses what isn't one.
        case ClockRate():
            value = as_rate(given)  # type: ignore[arg-type] # As above.
        case _:
            value = as_time(given, "a latency")  # type: ignore[arg-type] # As above.
    if not distribution.minimum <= value <= distribution.maximum:
        least, most = (value_text(distribution, each) for each in (distribution.minimum, distribution.maximum))
        raise ConfigurationError(
            f"{value_text(distribution, value)} is outside of {distribution_text(distribution)}",
            advice=f"use {least} to {most}",
        )
    return value


def _checked_chance(distribution: Chance, given: object) -> bool:
    if not isinstance(given, bool):
        raise ConfigurationError(f"{shown(given)} is neither true nor false", advice="it happens or it doesn't")
    if distribution.probability == 1 and not given:
        raise ConfigurationError("false is outside of chance(1)", advice="it always happens")
    return given


def _checked_unit(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 1:
        raise ConfigurationError(f"{shown(given)} isn't a number from 0 to 1, without the 1")
    return float(given)


def _checked_bits(distribution: RandomBits, given: object) -> int:
    if type(given) is not int or not 0 <= given < 1 << distribution.count:
        limit = f"2**{distribution.count}"
        raise ConfigurationError(
            f"{shown(given)} isn't a whole number of {distribution.count} bits", advice=f"use 0 up to {limit} - 1"
        )
    return given


def _checked_place(distribution: BitPlace | Turn, given: object) -> int:
    if type(given) is not int or not 0 <= given <= distribution.maximum:
        what = "bits" if isinstance(distribution, BitPlace) else "callbacks"
        raise ConfigurationError(
            f"{shown(given)} isn't one of {distribution.maximum + 1} {what}", advice=f"use 0 to {distribution.maximum}"
        )
    return given
