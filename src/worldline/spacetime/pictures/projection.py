"""Chooses what is drawn of space: a coordinate, the direction in which agents are spread most, or columns side by side.

Only sums, products and square roots are used here, which every machine rounds in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from worldline.model.errors import UsageError, shown
from worldline.spacetime.pictures.happenings import SpacetimePicture, thinned
from worldline.spacetime.story import Coordinates

_POINTS_UP_TO = 2_000
_ROUNDS = 48
_NEARLY = 0.995  # If agents are spread so much along a coordinate, as a share of the most, that is drawn.


class Projection:
    """Says where an agent's point is, to the right: along `direction`, or if there is none in the agent's column."""

    def __init__(self, direction: Sequence[float], title: str, columns: dict[str, int]) -> None:
        self.direction = direction
        self.title = title
        self._columns = columns

    @property
    def has_space(self) -> bool:
        return bool(self.direction)

    @property
    def is_exact(self) -> bool:
        """Whether nothing of space is lost, so that light is seen as fast as it is."""
        return len(self.direction) == 1

    def of(self, name: str, at: Coordinates) -> float:
        if not self.direction:
            return float(self._columns[name])
        return self.along(at[1:])

    def along(self, vector: Sequence[float]) -> float:
        """Return the component of a vector in space."""
        return _product(vector, self.direction)


def projection_of(story: SpacetimePicture, n: int, axis: int | None) -> Projection:
    """Choose what is drawn: the axis that is asked for, or where there are several, the most telling direction."""
    if axis is not None:
        check_axis(axis, n)
    if n == 1:
        return Projection((), "", {life.name: place for place, life in enumerate(story.lives)})
    if axis is None:
        direction = [1.0] if n == 2 else _principal([at[1:] for life in story.lives for at in life.corners], n - 1)
    else:
        direction = [1.0 if place == axis else 0.0 for place in range(1, n)]
    return Projection(direction, _title(direction, n), {})


def check_axis(axis: object, n: int) -> None:
    if n == 1:
        raise UsageError("a space of one dimension is time alone, and has no axis to draw", advice="leave it out")
    if type(axis) is not int or not 1 <= axis < n:
        raise UsageError(
            f"there is no axis {shown(axis)} in a space of {n} dimensions",
            advice="use 1" if n == 2 else f"use 1 to {n - 1}; lab time, 0, is drawn anyway",
        )


def axis_name(axis: int, n: int) -> str:
    return "x" if n == 2 else f"x{axis}"


def _title(direction: Sequence[float], n: int) -> str:
    terms = []
    for axis, share in enumerate(direction, 1):
        name = axis_name(axis, n)
        if share == 1.0:
            return name
        if abs(share) >= 0.005:
            terms.append((abs(share), f"{'−' if share < 0 else '+'} {abs(share):.2f} {name}"))
    terms.sort(key=lambda term: -term[0])
    written = " ".join(text for _, text in terms[:4]).removeprefix("+ ")
    return written + (" …" if len(terms) > 4 else "")


def _principal(points: Sequence[Sequence[float]], size: int) -> list[float]:
    """Return the direction in which points are spread most, of length 1; its largest component is positive."""
    some = thinned(points, _POINTS_UP_TO)
    if not some:
        return _unit(0, size)
    means = [_total(each[i] / len(some) for each in some) for i in range(size)]
    extent = max(abs(each[i] - means[i]) for each in some for i in range(size))
    if not extent > 0:
        return _unit(0, size)
    columns = [[(each[i] - means[i]) / extent for each in some] for i in range(size)]
    half = [[_product(columns[i], columns[j]) for j in range(i + 1)] for i in range(size)]
    table = [[half[max(i, j)][min(i, j)] for j in range(size)] for i in range(size)]
    best = max(range(size), key=lambda i: (table[i][i], -i))
    # Not exactly an axis: that might be across the direction that is looked for, and would stay so.
    direction = [1.0 if i == best else 1e-3 for i in range(size)]
    for _ in range(_ROUNDS):
        turned = [_product(row, direction) for row in table]
        length = math.sqrt(_product(turned, turned))
        if not length > 0:
            break
        direction = [each / length for each in turned]
    if table[best][best] >= _NEARLY * _product(direction, [_product(row, direction) for row in table]):
        return _unit(best, size)
    largest = max(range(size), key=lambda i: (abs(direction[i]), -i))
    return [each if direction[largest] > 0 else -each for each in direction]


def _unit(axis: int, size: int) -> list[float]:
    return [1.0 if i == axis else 0.0 for i in range(size)]


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return _total(a * b for a, b in zip(one, other, strict=True))


def _total(numbers: Iterable[float]) -> float:
    """Add numbers, one after the other: what `sum` does with floats depends on the version of Python."""
    total = 0.0
    for each in numbers:
        total += each
    return total
