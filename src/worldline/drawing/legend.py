"""A legend: samples of what stands in a picture, each with a text, in rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from worldline.drawing.svg import element, text_at, text_width

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
