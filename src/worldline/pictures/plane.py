"""Points and lines in the plane, and room for labels there.

Only sums, products and square roots are used here, which every machine rounds in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from worldline.pictures.svg import PALETTE, path

Point = tuple[float, float]

Curve = tuple[Point, Point, Point]
"""Where it begins, the point that it bends toward, and where it ends."""


def distance(a: Point, b: Point) -> float:
    x, y = a[0] - b[0], a[1] - b[1]
    return math.sqrt(x * x + y * y)


def between(a: Point, b: Point, share: float) -> Point:
    """Return the point of a line that is at this share of its length."""
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share


def toward(a: Point, b: Point, length: float) -> Point:
    """Return the point so far from the first on the way to the second, but not beyond the middle."""
    return between(a, b, min(0.5, length / (distance(a, b) or 1.0)))


def distance_from_line(point: Point, a: Point, b: Point) -> float:
    """Return how far a point is from a line with two ends."""
    x, y = b[0] - a[0], b[1] - a[1]
    share = ((point[0] - a[0]) * x + (point[1] - a[1]) * y) / ((x * x + y * y) or 1.0)
    return distance(point, between(a, b, max(0.0, min(1.0, share))))


def on_curve(curve: Curve, share: float) -> Point:
    start, bend, end = curve
    return between(between(start, bend, share), between(bend, end, share), share)


def at_origin(points: Sequence[Point]) -> list[Point]:
    """Move points so that the smallest coordinates are 0."""
    left, top = min(x for x, _ in points), min(y for _, y in points)
    return [(x - left, y - top) for x, y in points]


# Lines of several kinds, told apart by their colors and dashes; and lines that fade.

_DASHES = (None, "9 3", "9 2 2 2", "3 2")
KINDS_MAX = len(PALETTE) * len(_DASHES)
"""So many kinds of lines can be told apart."""

_SHADES = (0.9, 0.65, 0.42, 0.25, 0.1)


class Look(NamedTuple):
    """How lines of one kind are drawn."""

    color: str
    dashes: str | None


def looks_of(kinds: Iterable[str]) -> dict[str, Look]:
    """Give kinds colors, in their order; when there are no more colors, dashes tell them apart."""
    return {
        kind: Look(PALETTE[place % len(PALETTE)], _DASHES[place // len(PALETTE) % len(_DASHES)])
        for place, kind in enumerate(kinds)
    }


def fading(start: Point, end: Point) -> list[str]:
    """Draw a line that gets fainter and fainter."""
    points = [between(start, end, place / len(_SHADES)) for place in range(len(_SHADES) + 1)]
    return [path(pair, stroke_opacity=shade) for pair, shade in zip(pairwise(points), _SHADES, strict=True)]


# Room for labels: what would cover another one is put elsewhere, or left out.

_CELL = 32.0


class Disc(NamedTuple):
    """A place that is taken."""

    x: float
    y: float
    radius: float


class LabelSpace:
    """Knows what is taken. Texts are taken for rows of discs, which works at every angle."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], list[Disc]] = {}

    def take(self, discs: Iterable[Disc]) -> None:
        for disc in discs:
            for cell in _cells(disc):
                self._cells.setdefault(cell, []).append(disc)

    def is_free(self, discs: Iterable[Disc]) -> bool:
        return all(self.clearance(disc) >= 0 for disc in discs)

    def clearance(self, disc: Disc) -> float:
        """Return how far it is from here to what is nearest, or less than 0; only what is near by is looked at."""
        nearest = _CELL
        for cell in _cells(disc):
            for x, y, radius in self._cells.get(cell, ()):
                nearest = min(nearest, distance((x, y), (disc.x, disc.y)) - radius - disc.radius)
        return nearest


def text_discs(middle: Point, width: float, size: float, along: Point = (1.0, 0.0)) -> list[Disc]:
    """Cover a text of this width, whose middle is here and which runs in this direction (of length 1)."""
    radius = size * 0.62
    count = max(1, math.ceil(width / (1.6 * radius)))
    step = max(0.0, width - 2 * radius) / max(1, count - 1)
    offsets = [step * (place - (count - 1) / 2) for place in range(count)]
    return [Disc(middle[0] + along[0] * offset, middle[1] + along[1] * offset, radius) for offset in offsets]


def _cells(disc: Disc) -> Iterator[tuple[int, int]]:
    x, y, radius = disc
    for column in range(math.floor((x - radius) / _CELL), math.floor((x + radius) / _CELL) + 1):
        for row in range(math.floor((y - radius) / _CELL), math.floor((y + radius) / _CELL) + 1):
            yield column, row
