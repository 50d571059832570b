"""Distributions of draws that aren't latencies, and the values that a draw of any distribution may have.

A distribution turns 64 bits into a value. `checked_value` takes a value that somebody gives instead, in the
distribution's own terms, and refuses one that the distribution could never yield: the lock relies on the bounds.
"""

from __future__ import annotations

from msgspec import Struct

from worldline.model.errors import ConfigurationError, shown
from worldline.model.latency import Exponential, Fixed, Latency, Normal, Table, Uniform
from worldline.model.randomness import unit
from worldline.model.reading import as_time
from worldline.model.time import format_time


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


Distribution = Latency | Chance | UnitInterval | RandomBits
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
        case Table():
            return f"table({', '.join(map(format_time, distribution.values))})"
        case Fixed():
            return f"fixed({format_time(distribution.latency)})"
        case Uniform() | Normal() | Exponential():
            times = (format_time(getattr(distribution, name)) for name in distribution.__struct_fields__)
            return f"{distribution.__struct_config__.tag}({', '.join(times)})"


def value_text(distribution: Distribution, value: DrawnValue) -> str:
    """Write a value as a table of draws would."""
    if isinstance(distribution, Latency):
        return format_time(int(value))
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
    latency = as_time(given, "a latency")  # type: ignore[arg-type] # It refuses what isn't one.
    if not distribution.minimum <= latency <= distribution.maximum:
        least, most = format_time(distribution.minimum), format_time(distribution.maximum)
        raise ConfigurationError(
            f"{format_time(latency)} is outside of {distribution_text(distribution)}", advice=f"use {least} to {most}"
        )
    return latency


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
