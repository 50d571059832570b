"""What stands for what in a space-time diagram: lines, marks, and the legend that explains them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from worldline.nodes.pictures.happenings import Story
from worldline.nodes.pictures.plane import Point, between
from worldline.nodes.pictures.svg import (
    ALARM,
    INK,
    PALETTE,
    PAPER,
    SOFT,
    arrow_end,
    cross,
    element,
    path,
    shortened,
    text_at,
    text_width,
    way,
)

ROW = 18.0
_KINDS_UP_TO = 14
_DASHES = (None, "9 3", "9 2 2 2", "3 2")
_SHADES = (0.9, 0.65, 0.42, 0.25, 0.1)

_MARK_NAMES = {"Start": "start", "Timer": "timer", "Crash": "crash", "Recover": "recovery", "": "other event"}


class Look(NamedTuple):
    """How messages of one kind are drawn."""

    colour: str
    dashes: str | None


class Entry(NamedTuple):
    """One thing that the legend explains."""

    text: str
    sample: Callable[[float, float], str]

    @property
    def width(self) -> float:
        return 30 + text_width(self.text, 11) + 16


class Legend:
    """Explains what there is in a story, in as many rows as it takes."""

    def __init__(self, story: Story, looks: Mapping[str, Look], head: float, room: float) -> None:
        self._entries = _entries(story, looks, head)
        self._rows = _rows([entry.width for entry in self._entries], room)
        self.height = ROW * (max(self._rows, default=-1) + 1)

    def drawn(self, left: float, top: float) -> list[str]:
        parts = []
        x, row = left, 0
        for entry, own_row in zip(self._entries, self._rows, strict=True):
            if own_row != row:
                x, row = left, own_row
            y = top + ROW * row
            parts.append(element("g", (entry.sample(x, y - 4), text_at(x + 30, y, entry.text, size=11))))
            x += entry.width
        return [element("g", parts, class_="legend")] if parts else []


def _entries(story: Story, looks: Mapping[str, Look], head: float) -> list[Entry]:
    sent = [message.what for message in story.messages]
    entries = [
        Entry(f"{shortened(kind, 40)} ({sent.count(kind):,})", _line_sample(look, head))
        for kind, look in list(looks.items())[:_KINDS_UP_TO]
    ]
    if len(looks) > _KINDS_UP_TO:
        entries.append(Entry(f"and {len(looks) - _KINDS_UP_TO} other kinds", _no_sample))
    fates = [message.fate for message in story.messages]
    if "lost" in fates or "dropped" in fates:
        entries.append(Entry("lost", _lost_sample))
    if "under way" in fates:
        entries.append(Entry("still under way", _fading_sample))
    shown = [_mark_name(mark.what) for mark in story.marks]
    entries += [Entry(name, _glyph_sample(what)) for what, name in _MARK_NAMES.items() if name in shown]
    if story.notes:
        entries.append(Entry("logged", _note_sample))
    return entries


def looks_of(kinds: Iterable[str]) -> dict[str, Look]:
    """Give kinds of messages colours, in their order; when there are no more colours, dashes tell them apart."""
    return {
        kind: Look(PALETTE[place % len(PALETTE)], _DASHES[place // len(PALETTE) % len(_DASHES)])
        for place, kind in enumerate(kinds)
    }


def _rows(widths: Iterable[float], room: float) -> list[int]:
    """Return for each of some things the row in which it has room."""
    rows, row, used = [], 0, 0.0
    for width in widths:
        if used and used + width > room:
            row, used = row + 1, 0.0
        rows.append(row)
        used += width
    return rows


def fading(start: Point, end: Point) -> list[str]:
    """Draw a line that gets fainter and fainter."""
    points = [between(start, end, place / len(_SHADES)) for place in range(len(_SHADES) + 1)]
    return [path(pair, stroke_opacity=shade) for pair, shade in zip(pairwise(points), _SHADES, strict=True)]


def _mark_name(what: str) -> str:
    return _MARK_NAMES.get(what, _MARK_NAMES[""])


def glyph(what: str, x: float, y: float) -> str:
    """Draw what stands for an event that isn't a message."""
    if what == "Start":
        return path(((x, y - 5), (x, y + 5)), stroke=INK, stroke_width=2)
    if what == "Timer":
        return element("path", d=f"{way(((x, y - 4), (x + 4, y), (x, y + 4), (x - 4, y)))}z", fill=PAPER, stroke=INK)
    if what == "Crash":
        return element("path", d=cross(x, y, 5), stroke=ALARM, stroke_width=2.6, fill="none")
    if what == "Recover":
        return element("circle", cx=x, cy=y, r=4.5, fill=PAPER, stroke="#00734f", stroke_width=2)
    return element("rect", x=x - 3, y=y - 3, width=6, height=6, fill=SOFT)


def _glyph_sample(what: str) -> Callable[[float, float], str]:
    return lambda x, y: glyph(what, x + 12, y)


def _line_sample(look: Look, head: float) -> Callable[[float, float], str]:
    return lambda x, y: path(
        ((x, y), (x + 24, y)),
        stroke=look.colour,
        stroke_width=1.6,
        stroke_dasharray=look.dashes,
        marker_end=arrow_end(look.colour, head),
    )


def _no_sample(_x: float, _y: float) -> str:
    return ""


def _note_sample(x: float, y: float) -> str:
    return element("circle", cx=x + 12, cy=y, r=2.2)


def _lost_sample(x: float, y: float) -> str:
    line = path(((x, y), (x + 20, y)), stroke=SOFT, stroke_width=1.4, stroke_dasharray="4 3")
    return line + element("path", d=cross(x + 20, y, 3.6), stroke=SOFT, stroke_width=1.6)


def _fading_sample(x: float, y: float) -> str:
    return element("g", fading((x, y), (x + 24, y)), stroke=SOFT, stroke_width=1.6)
