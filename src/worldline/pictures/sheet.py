"""What diagrams share: a sheet with a title, a legend and a caption, axes, and samples of lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from worldline.model.time import DAY, HOUR, MINUTE, MS, NS, SECOND, US
from worldline.pictures.plane import fading
from worldline.pictures.svg import (
    SOFT,
    arrow_end,
    document,
    element,
    escaped,
    fitted,
    number,
    path,
    text_at,
    text_width,
)

MARGIN = 20.0
GRID = "#eef1f4"
_SMALL = 11.5

_Chosen = TypeVar("_Chosen")


class Sheet:
    """A picture's title, the legend below it, and the caption at the bottom; what is drawn begins below `top`.

    `heading` is the title's base line, and `untitled` that of the legend if there is no title.
    """

    def __init__(
        self, title: str, width: float, entries: Sequence[Entry] = (), *, heading: float = 28.0, untitled: float = 26.0
    ) -> None:
        self.title = title
        self.width = width
        self._heading = heading
        self._legend = Legend(entries, width - 2 * MARGIN)
        self._legend_top = heading + 24 if title else untitled
        self.top = self._legend_top + self._legend.height

    def text(
        self, height: float, content: Iterable[str], *, kind: str, untitled: str, definitions: str = "", style: str = ""
    ) -> str:
        """Write the whole picture. Its kind is its CSS class, and `untitled` what it is called without a title."""
        size = 15
        title = text_at(MARGIN, self._heading, fitted(self.title, self.width - 40, size), size=size, font_weight=600)
        whole = (definitions, title if self.title else "", *self._legend.drawn(MARGIN, self._legend_top), *content)
        return document(self.width, height, whole, kind=kind, title=self.title or untitled, style=style)

    def caption(self, lines: Iterable[str], top: float) -> list[str]:
        """Write lines below the picture, the first with its base line here."""
        return [
            text_at(MARGIN, top + 17 * place, fitted(line, self.width - 40, _SMALL), size=_SMALL, fill=SOFT)
            for place, line in enumerate(lines)
        ]


class Lines(NamedTuple):
    """How lines are drawn of which there are many: how wide, how opaque, and how long arrows' heads are."""

    stroke: float
    opacity: float
    head: float


def chosen(choices: Iterable[tuple[float, _Chosen]], count: int) -> _Chosen:
    """Return the first choice that is good for so many."""
    return next(choice for most, choice in choices if count <= most)


def upright(x: float, y: float, text: str) -> str:
    """Write the title of an axis that goes up; its middle is here."""
    turned = f"matrix(0 -1 1 0 {number(x)} {number(y)})"
    return element("text", escaped(text), transform=turned, font_size=10.5, text_anchor="middle", font_style="italic")


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


def line_sample(
    color: str, width: float, dashes: str | None, head: float | None = None
) -> Callable[[float, float], str]:
    """Return how a legend shows a line; with a head, it is an arrow."""
    end = None if head is None else arrow_end(color, head)
    return lambda x, y: path(
        ((x, y), (x + 24, y)), stroke=color, stroke_width=width, stroke_dasharray=dashes, marker_end=end
    )


def fading_sample(width: float) -> Callable[[float, float], str]:
    return lambda x, y: element("g", fading((x, y), (x + 24, y)), stroke=SOFT, stroke_width=width)


# A time axis: where its ticks are, and what is written at them.

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
