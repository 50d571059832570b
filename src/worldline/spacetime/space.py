"""Minkowski space of so many dimensions: what makes and checks its points and velocities."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.time import SECOND, TIME_MAX
from worldline.spacetime.geometry import Vector, as_vector, as_velocity, from_speeds

Point = Vector | Sequence[float]

_DIMENSIONS_MAX = 64
_SMALLEST = 1e-280  # Squares that are smaller than this may have lost digits.


class Minkowski:
    """A space of `n` dimensions: lab time, and n − 1 of space. With one dimension it is ordinary time.

    The speed of light is 1, and the product is x·y = x₁y₁ − x₂y₂ − x₃y₃ …
    """

    def __init__(self, n: int) -> None:
        if type(n) is not int or not 1 <= n <= _DIMENSIONS_MAX:
            raise ConfigurationError(
                f"a space can't have {shown(n)} dimensions", advice=f"use 1 to {_DIMENSIONS_MAX}, time included"
            )
        self.n = n
        self.origin = Vector([0.0] * n)
        self.rest = Vector([1.0] + [0.0] * (n - 1))

    def point(self, *coordinates: float) -> Vector:
        """Return a point: ``space.point(0, 1, 0, 0)``, lab time first."""
        given: Any = coordinates[0] if len(coordinates) == 1 and self.n > 1 else coordinates
        return as_vector(given, self.n, "a point")

    def velocity(self, *speeds: float) -> Vector:
        """Return the 4-velocity of an ordinary velocity: ``space.velocity(0.6, 0, 0)`` is (1.25, 0.75, 0, 0)."""
        if len(speeds) != self.n - 1:
            raise UsageError(
                f"{shown(speeds)} isn't a velocity in a space of {self.n} dimension{'' if self.n == 1 else 's'}",
                advice=f"give {self.n - 1} numbers, whose unit is the speed of light",
            )
        numbers = as_vector((0.0, *speeds), self.n, "a velocity").coordinates()[1:]
        return from_speeds(numbers)

    def as_velocity(self, given: Point) -> Vector:
        """Take a 4-velocity, V·V = 1 and V₁ > 0."""
        return as_velocity(given, self.n)

    def is_future(self, later: Point, earlier: Point) -> bool:
        """Whether a point is in the future of another: it can be reached from there more slowly than light."""
        return _is_ahead(later, earlier) and sign_of_interval(later, earlier) > 0

    def is_past(self, earlier: Point, later: Point) -> bool:
        return self.is_future(later, earlier)

    def is_spacelike(self, one: Point, other: Point) -> bool:
        """Whether neither point can be reached from the other, not even by light."""
        return sign_of_interval(one, other) < 0

    def can_reach(self, later: Point, earlier: Point) -> bool:
        """Whether a point is in the future of another, on its light cone, or the same."""
        return sign_of_interval(later, earlier) >= 0 and later[0] >= earlier[0]

    def __repr__(self) -> str:
        return f"Minkowski({self.n})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Minkowski) and other.n == self.n

    def __hash__(self) -> int:
        return hash(self.n)


def _is_ahead(later: Point, earlier: Point) -> bool:
    return later[0] > earlier[0]


def sign_of_interval(one: Point, other: Point) -> int:
    """Return the sign of (X − Y)·(X − Y), exactly: 1 if they are in time after each other, −1 if apart in space."""
    differences = [x - y for x, y in zip(one, other, strict=True)]
    squares = [each * each for each in differences]
    size = sum(squares)
    interval = squares[0] - sum(squares[1:])
    if abs(interval) > 1e-9 * size > _SMALLEST:
        return 1 if interval > 0 else -1
    exact = [Fraction(x) - Fraction(y) for x, y in zip(one, other, strict=True)]
    rest = exact[0] ** 2 - sum((each**2 for each in exact[1:]), Fraction(0))
    return (rest > 0) - (rest < 0)


# -- Lab times as observers, recordings and errors count them: as whole nanoseconds, as if their unit was the second

_SHOWN_MAX = 1e9


def nanoseconds(lab_time: float) -> int:
    """Return a lab time as an observer counts it."""
    return max(0, round(lab_time * SECOND))


def shown_time(lab_time: float) -> int:
    """Return a lab time as a status counts it, which goes no further than a billion."""
    return nanoseconds(min(lab_time, _SHOWN_MAX))


def time_of_failure(lab_time: float) -> int | None:
    """Return when something has failed; None, if that is too late to be counted."""
    return nanoseconds(lab_time) if lab_time * SECOND < TIME_MAX else None
