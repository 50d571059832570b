"""Finds places for the names of worldlines, where they cover no other text, and if possible no line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from worldline.pictures.labels import Disc, LabelSpace, text_discs
from worldline.pictures.plane import Point, between, distance
from worldline.pictures.svg import text_at, text_width

_LINES_UP_TO = 60  # Worldlines; with more of them, names can't stay off all lines.
_AT_THE_END = 4  # So many of the places for a name are where its line ends.
_BOLD = 1.16  # How much wider bold letters are.
_STEP = 7.0


class Name(NamedTuple):
    """A text that is to be put beside a line."""

    text: str
    color: str
    line: Sequence[Point]


class Names:
    """Puts texts into a picture whose left and right edges are here."""

    def __init__(self, left: float, right: float) -> None:
        self._left = left
        self._right = right
        self._texts = LabelSpace()
        self._lines = LabelSpace()

    def avoid(self, lines: Sequence[Sequence[Point]], axis: Sequence[Point]) -> None:
        """Keep texts off the axis, and off worldlines unless there are too many."""
        self._texts.take(_covering(axis))
        if len(lines) <= _LINES_UP_TO:
            for line in lines:
                self._lines.take(_covering(line))

    def placed(self, names: Sequence[Name], size: float) -> list[str]:
        """Write as many names as there is room for. Those that go to the best places are written first."""
        drawn: dict[int, str] = {}
        most = None if len(names) <= _LINES_UP_TO else _AT_THE_END
        for covers_lines in (False, True):
            for place, name in enumerate(names):
                if place not in drawn:
                    text = self._beside(name, size, covers_lines, most)
                    if text:
                        drawn[place] = text
        return [drawn[place] for place in sorted(drawn)]

    def note(self, places: Sequence[Point], text: str, size: float, *, covers_lines: bool = True) -> str:
        """Write a text beside one of some points, or nothing if there's no room."""
        width = text_width(text, size)
        spots = [(x + dx, y + dy) for x, y in places for dx in (7.0, -7.0 - width) for dy in (3.5, -6.0, 13.0)]
        for covers in (False, True) if covers_lines else (False,):
            for left, base in spots:
                written = self._tried(left, base, text, width, size, "", covers_lines=covers)
                if written:
                    return written
        return ""

    def _beside(self, name: Name, size: float, covers_lines: bool, most: int | None) -> str:
        width = text_width(name.text, size) * _BOLD
        for left, base in islice(_candidates(name.line, width, size), most):
            written = self._tried(left, base, name.text, width, size, name.color, covers_lines=covers_lines)
            if written:
                return written
        return ""

    def _tried(
        self, left: float, base: float, text: str, width: float, size: float, color: str, *, covers_lines: bool
    ) -> str:
        if left < self._left or left + width > self._right:
            return ""
        discs = text_discs((left + width / 2, base - size * 0.36), width, size)
        if not self._texts.is_free(discs) or not (covers_lines or self._lines.is_free(discs)):
            return ""
        self._texts.take(discs)
        return text_at(left, base, text, size=size, fill=color or None)


def _candidates(line: Sequence[Point], width: float, size: float) -> Iterator[Point]:
    """Yield where a text of this width might begin: over the line's end, beside it, along it, under its start."""
    x, y = line[-1]
    yield x - width / 2, y - 7
    yield x - width / 2, y - 9 - size
    yield x + 7, y + size * 0.4
    yield x - 7 - width, y + size * 0.4
    for share in (0.85, 0.6, 0.4, 0.2):
        x, y = _along(line, share)
        yield x + 8, y + size * 0.36
        yield x - 8 - width, y + size * 0.36
    x, y = line[0]
    yield x - width / 2, y + size + 6


def _along(line: Sequence[Point], share: float) -> Point:
    """Return the point of a line that is at this share of its height."""
    height = line[0][1] + (line[-1][1] - line[0][1]) * share
    for place in range(1, len(line)):
        start, end = line[place - 1], line[place]
        if end[1] <= height < start[1]:
            return between(start, end, (height - start[1]) / (end[1] - start[1]))
    return line[-1]


def _covering(line: Sequence[Point]) -> Iterator[Disc]:
    for place in range(1, len(line)):
        start, end = line[place - 1], line[place]
        count = int(distance(start, end) / _STEP) + 1
        for step in range(count + 1):
            yield Disc(*between(start, end, step / count), 2.0)
