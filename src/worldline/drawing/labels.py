"""Finds room for labels: what would cover another one is put elsewhere, or left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from worldline.drawing.plane import Point, distance

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
