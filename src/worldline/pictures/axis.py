"""A time axis: where its ticks are, and what is written at them."""

from __future__ import annotations

import math
from typing import NamedTuple

from worldline.model.time import DAY, HOUR, MINUTE, MS, NS, SECOND, US

_UNITS = (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", SECOND), ("ms", MS), ("µs", US), ("ns", NS))


def ticks(begin: int, end: int, most: float) -> tuple[str, int, int]:
    """Return the unit of a time axis, its size, and how far its ticks are apart: 1, 2 or 5 of some power of ten."""
    unit, size = next(((unit, size) for unit, size in _UNITS if end >= 2 * size), _UNITS[-1])
    least = max(1.0, (end - begin) / max(1.0, most))
    step = size
    while step > least and step % 10 == 0:
        step //= 10
    while step < least:
        step *= 10
    for part in (5, 2):
        if step % part == 0 and step // part >= least:
            return unit, size, step // part
    return unit, size, step


def decimal(time: int, size: int) -> str:
    """Write a time in a unit, exactly, if it has up to nine digits behind the point."""
    return f"{time / size:.9f}".rstrip("0").rstrip(".")


# An axis of numbers of any size: where its ticks are, and what is written at them.
#
# Powers of ten are read from texts, not computed: that is exact, and so the same on every machine.

_CLOSE = 1e-9  # Of a step: 1.2 isn't quite 6 × 0.2.
_DIGITS_MOST = 6  # A label may have so many before ticks are counted from the first one, or in powers of ten.


class Ticks(NamedTuple):
    """Ticks of an axis: their values and labels. A label means `label` × 10 to the `exponent`, counted from `base`."""

    values: list[float]
    labels: list[str]
    exponent: int
    base: float

    def titled(self, name: str) -> str:
        """Write what the axis shows: a name, and how labels are meant if not as they are."""
        counted = (
            f"{name} − {self.base:.15g}" if self.base > 0 else f"{name} + {-self.base:.15g}" if self.base else name
        )
        return f"{counted} (× 1e{self.exponent})" if self.exponent else counted


def ticks_between(begin: float, end: float, most: float) -> Ticks:
    """Put ticks at multiples of 1, 2 or 5 of some power of ten, no more than so many."""
    span = end - begin
    if not span > 0:
        return Ticks([begin], [f"{begin:.6g}"], 0, 0.0)
    digit, power = _step(span / max(1.0, most))
    step = float(f"{digit}e{power}")
    first, last = math.ceil(begin / step - _CLOSE), math.floor(end / step + _CLOSE)
    base = 0
    if max(abs(first), abs(last)) * digit >= 10**_DIGITS_MOST:
        base = first
    counts = range(first - base, last - base + 1)
    exponent = 0 if -4 <= power <= _DIGITS_MOST - 1 else power
    labels = [_decimal(count * digit, power - exponent) for count in counts]
    values = [(count + base) * step for count in counts]
    return Ticks(values, labels, exponent, base * step)


def _step(least: float) -> tuple[int, int]:
    """Return the least of 1, 2, 5 times a power of ten that isn't below a number, as that digit and the power."""
    mantissa, power = f"{least:.15e}".split("e")
    for digit in (1, 2, 5):
        if float(mantissa) <= digit:
            return digit, int(power)
    return 1, int(power) + 1


def _decimal(count: int, power: int) -> str:
    """Write count × 10 to the power, exactly."""
    if power >= 0:
        return str(count * 10**power).replace("-", "−")
    digits = str(abs(count)).rjust(1 - power, "0")
    text = f"{digits[:power]}.{digits[power:]}".rstrip("0").rstrip(".")
    return f"−{text}" if count < 0 else text
