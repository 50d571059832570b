"""What diagrams share: a sheet with a title, a legend and a caption; axes; and samples of lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from worldline.pictures import svg
from worldline.pictures.svg import Look, Point, Svg, Value

MARGIN = 20.0
SMALL = 12.5
_LEGEND = 13.0
_CAPTION = 13.0
_LINE = 19.0
_GRID = "#eef1f4"

_Chosen = TypeVar("_Chosen")
Sample = Callable[[float, float], str]
"""Draws a sample of what stands in a picture, from this x to the right, at the height y."""

Entries = Sequence[tuple[str, Sample]]
"""What a legend explains: texts, each with its sample."""


class Sheet:
    """A picture's title, the legend below it, and the caption at the bottom; what is drawn begins below `top`."""

    def __init__(self, title: str, width: float, entries: Entries = ()) -> None:
        self.title = title
        self.width = width
        self._legend, self.top = legend(entries, 50.0 if title else 24.0, width)

    def text(
        self,
        content: Iterable[str],
        caption: Iterable[str],
        top: float,
        *,
        kind: str,
        untitled: str,
        alarms: Iterable[str] = (),
        definitions: Iterable[str] = (),
        style: str = "",
    ) -> Svg:
        """Write the whole picture, with its caption below `top`, which begins with what is alarming.

        Its kind is its CSS class, and `untitled` what it is called without a title.
        """
        room = self.width - 2 * MARGIN
        title = (
            svg.text_at(MARGIN, 28, svg.fitted(self.title, room, 17), size=17, font_weight=600) if self.title else ""
        )
        lines = [(line, svg.ALARM) for alarm in alarms for line in svg.wrapped(alarm, room, _CAPTION)]
        lines += [(line, svg.SOFT) for each in caption for line in svg.wrapped(each, room, _CAPTION)]
        written = [
            svg.text_at(MARGIN, top + _LINE * place, line, size=_CAPTION, fill=color)
            for place, (line, color) in enumerate(lines)
        ]
        defined = "".join(definitions)
        whole = (svg.element("defs", defined) if defined else "", title, *self._legend, *content, *written)
        height = top + _LINE * len(lines)
        return svg.document(self.width, height, whole, kind=kind, title=self.title or untitled, style=style)


class Lines(NamedTuple):
    """How lines are drawn of which there are many: how wide, how opaque, and how long arrows' heads are."""

    stroke: float
    opacity: float
    head: float

    def drawn(self, arrows: Iterable[Arrow], kind: str) -> Iterator[str]:
        """Draw arrows of a CSS class, those of one color together."""
        colored: dict[str, list[str]] = {}
        for arrow in arrows:
            colored.setdefault(arrow.look.color, []).append(self._arrow(arrow, kind))
        for color, lines in colored.items():
            yield svg.element(
                "g", lines, fill="none", stroke=color, stroke_width=self.stroke, stroke_opacity=self.opacity
            )

    def _arrow(self, arrow: Arrow, kind: str) -> str:
        (start, end), look = arrow.line, arrow.look
        parts = [svg.hover(arrow.said)]
        if arrow.is_target:
            parts.append(svg.path((start, end), class_="target", stroke_opacity=0, stroke_width=9))
        if arrow.fate in ("received", "absorbed"):
            head = svg.arrow_end(look.color, self.head) if svg.distance(start, end) > self.head else None
            parts.append(svg.path((start, end), stroke_dasharray=look.dashes, marker_end=head))
        elif arrow.fate in ("lost", "dropped"):
            cross = svg.cross(*end, self.head * 0.48)
            parts.append(svg.path((start, end), stroke_dasharray="4 3"))
            parts.append(svg.element("path", d=cross, stroke_width=max(1.4, self.stroke), stroke_opacity=1))
        else:
            parts += svg.fading(start, end)
        return svg.element("g", parts, class_=f"{kind} {arrow.fate.replace(' ', '-')}")


class Arrow(NamedTuple):
    """A message or a lambda: from where to where it is drawn, how, what is said under the mouse, and its fate.

    With `is_target`, it is easy to hit with the mouse.
    """

    line: tuple[Point, Point]
    look: Look
    said: str
    fate: str
    is_target: bool = False


def chosen(choices: Iterable[tuple[float, _Chosen]], count: int) -> _Chosen:
    """Return the first choice that is good for so many."""
    return next(choice for most, choice in choices if count <= most)


def counts(words: Mapping[str, str], fates: Sequence[str]) -> str:
    """Say how many there are of each fate, in these words; of the first also if there are none."""
    first = next(iter(words))
    return ", ".join(f"{fates.count(fate):,} {said}" for fate, said in words.items() if fate == first or fate in fates)


def left_out(missing: int) -> list[str]:
    """Say that names are missing, if they are."""
    names = "a name is" if missing == 1 else f"{missing:,} names are"
    return [f"For want of room, {names} left out."] if missing else []


# A legend: samples of what stands in a picture, each with a text, in rows.

_ROW = 18.0


def legend(entries: Entries, top: float, width: float, margin: float = MARGIN) -> tuple[list[str], float]:
    """Explain what there is in a picture, in as many rows as it takes; return that, and where it ends."""
    parts = []
    x = margin
    for text, sample in entries:
        wide = 46 + svg.text_width(text, _LEGEND)
        if x > margin and x + wide > width - margin:
            x, top = margin, top + _ROW
        parts.append(svg.element("g", (sample(x, top - 4), svg.text_at(x + 30, top, text, size=_LEGEND))))
        x += wide
    return ([svg.element("g", parts, class_="legend")], top + _ROW) if parts else ([], top)


def line_sample(color: str, width: float, dashes: str | None, head: float | None = None) -> Sample:
    """Return how a legend shows a line; with a head, it is an arrow."""
    end = None if head is None else svg.arrow_end(color, head)
    return lambda x, y: svg.path(
        ((x, y), (x + 24, y)), stroke=color, stroke_width=width, stroke_dasharray=dashes, marker_end=end
    )


def fading_sample(width: float) -> Sample:
    return lambda x, y: svg.element("g", svg.fading((x, y), (x + 24, y)), stroke=svg.SOFT, stroke_width=width)


# Axes.


def axes(
    box: tuple[float, float, float, float],
    columns: Iterable[tuple[float, str]],
    rows: Sequence[tuple[float, str]],
    titles: tuple[str, str],
) -> list[str]:
    """Draw a grid in a box (left, top, right, bottom), with labels below its columns and to the left of its rows."""
    left, top, right, bottom = box
    columns = list(columns)
    grid = [svg.way(((left, y), (right, y))) for y, _ in rows] + [svg.way(((x, top), (x, bottom))) for x, _ in columns]
    texts = [svg.text_at(left - 6, y + 3.5, label, size=SMALL, text_anchor="end") for y, label in rows]
    texts += [svg.text_at(x, bottom + 15, label, size=SMALL, text_anchor="middle") for x, label in columns]
    turned = f"matrix(0 -1 1 0 {svg.number(left - 16 - label_width(rows))} {svg.number((top + bottom) / 2)})"
    places: list[dict[str, Value]] = [{"x": (left + right) / 2, "y": bottom + 32}, {"transform": turned}]
    for title, place in zip(titles, places, strict=True):
        if title:
            texts.append(
                svg.element(
                    "text", svg.escaped(title), **place, font_size=SMALL, text_anchor="middle", font_style="italic"
                )
            )
    edge = ((left, top), (left, bottom), (right, bottom)) if rows else ((left, bottom), (right, bottom))
    return [
        svg.element("path", d="".join(grid), stroke=_GRID, stroke_width=1),
        svg.path(edge, stroke="#8a96a3", stroke_width=1, fill="none"),
        svg.element("g", texts, class_="axis", fill=svg.SOFT),
    ]


def label_width(ticks: Iterable[tuple[float, str]]) -> float:
    return max((svg.text_width(label, SMALL) for _, label in ticks), default=0.0)


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

    def placed(self, place_of: Callable[[float], float]) -> list[tuple[float, str]]:
        """Return where the ticks are in a picture, and their labels."""
        return [(place_of(value), label) for value, label in zip(self.values, self.labels, strict=True)]

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
