"""A time axis: where its ticks are, and what is written at them."""

from __future__ import annotations

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
