"""Finds room for labels: what would cover another one is put elsewhere, or left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from worldline.pictures.plane import Point, distance
from worldline.pictures.svg import element, text_at, text_width

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


# A legend: samples of what stands in a picture, each with a text, in rows.

_ROW = 18.0


class Entry(NamedTuple):
    """One thing that the legend explains: `sample` draws it, from this x to the right, at the height y."""

    text: str
    sample: Callable[[float, float], str]

    @property
    def width(self) -> float:
        return 30 + text_width(self.text, 11) + 16


class Legend:
    """Explains what there is in a picture, in as many rows as it takes."""

    def __init__(self, entries: Sequence[Entry], width: float) -> None:
        self._entries = entries
        self._rows = _rows([entry.width for entry in entries], width)
        self.height = _ROW * (max(self._rows, default=-1) + 1)

    def drawn(self, left: float, top: float) -> list[str]:
        parts = []
        x, row = left, 0
        for entry, own_row in zip(self._entries, self._rows, strict=True):
            if own_row != row:
                x, row = left, own_row
            y = top + _ROW * row
            parts.append(element("g", (entry.sample(x, y - 4), text_at(x + 30, y, entry.text, size=11))))
            x += entry.width
        return [element("g", parts, class_="legend")] if parts else []


def _rows(widths: Iterable[float], width_most: float) -> list[int]:
    """Return for each of some things the row in which it has room."""
    rows, row, used = [], 0, 0.0
    for width in widths:
        if used and used + width > width_most:
            row, used = row + 1, 0.0
        rows.append(row)
        used += width
    return rows
