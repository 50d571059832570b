"""Writes SVG: elements, texts, lines and signs, in one way only, so that equal pictures are equal bytes.

Only what every viewer knows is used, converters to PNG and PDF too: SVG 1.1 without what only browsers understand. So
looks are given by attributes rather than by a style sheet, except for what happens under the mouse; and a picture that
is put into a web page changes nothing else there. `tests/pictures/portable.py` is the list of what is used.

Points are computed by sums, products and square roots alone, which every machine rounds in the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from worldline.model.text import printable_lines

INK = "#1f2933"
SOFT = "#66727f"
FAINT = "#cbd2d9"
PAPER = "#ffffff"
ALARM = "#b3261e"

# Okabe and Ito's colors, which the color-blind can tell apart, without the yellow that can't be seen on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5c00", "#3f3f3f")

_FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"  # Some viewers look at the first one only, and know no others.
_GLYPH = 0.58  # The width of a usual letter, in font sizes; narrow enough fonts only leave more room.
_BOLD = 1.16  # How much wider bold letters are.
_WIDE_FROM = "\u1100"  # From here on most scripts have letters as wide as they are high.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # By XML, also when escaped.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})

Value = str | int | float
Point = tuple[float, float]


def number(value: float) -> str:
    """Write a coordinate: two digits are a hundredth of a pixel."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def escaped(text: str) -> str:
    """Write a text so that it can stand in an element or an attribute, whatever is in it."""
    return printable_lines(_FORBIDDEN.sub("\ufffd", text)).translate(_ESCAPES)


def element(tag: str, content: str | Iterable[str] = "", /, **attributes: Value | None) -> str:
    """Write an element. Attributes that are None are left out; ``stroke_width`` is stroke-width, ``class_`` class."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escaped(value) if isinstance(value, str) else number(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inner = content if isinstance(content, str) else "".join(content)
    return f"<{tag}{written}>{inner}</{tag}>" if inner else f"<{tag}{written}/>"


def hover(text: str, most: int = 240) -> str:
    """Write what is shown when the mouse rests on an element that contains this."""
    return element("title", escaped(shortened(text, most)))


def text_at(x: float, y: float, text: str, *, size: float, **attributes: Value | None) -> str:
    """Write a text; y is its base line."""
    return element("text", escaped(text), x=x, y=y, font_size=size, **attributes)


def path(points: Iterable[Point], **attributes: Value | None) -> str:
    return element("path", "", d=way(points), **attributes)


def way(points: Iterable[Point]) -> str:
    """Write straight lines from point to point, as the `d` of a path."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def cross(x: float, y: float, arm: float) -> str:
    """Write a lying cross, as the `d` of a path."""
    return "".join(way((x + arm * dx, y + arm * dy) for dx, dy in line) for line in _STROKES["cross"])


# A sign is drawn from parts, one over the other: a shape, its arm or radius, and how wide its stroke is. Shapes are
# filled with their color if their names say so, and with paper otherwise.
Parts = Sequence[tuple[str, float, float]]

_RHOMB = (((0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)),)
_STROKES: dict[str, Sequence[Sequence[Point]]] = {
    "cross": (((-1.0, -1.0), (1.0, 1.0)), ((-1.0, 1.0), (1.0, -1.0))),
    "bar": (((0.0, -1.0), (0.0, 1.0)),),
    "plus": (((0.0, -1.0), (0.0, 1.0)), ((-0.6, 0.0), (0.6, 0.0))),
    "plug": (  # Pulled out.
        ((0.0, -1.0), (0.0, -0.4)),
        ((0.0, 0.4), (0.0, 1.0)),
        ((-0.6, -0.4), (0.6, -0.4)),
        ((-0.6, 0.4), (0.6, 0.4)),
    ),
    "rhomb": _RHOMB,
    "full rhomb": _RHOMB,
    "full square": (((-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0)),),
}


def sign(parts: Parts, x: float, y: float, color: str, size: float = 1.0) -> str:
    """Draw a sign at a point; `size` is 1 where there is plenty of room."""
    drawn = []
    for shape, arm, stroke in parts:
        looks = {
            "fill": color if shape.startswith("full") else PAPER if shape in ("ring", "rhomb") else "none",
            "stroke": color if stroke else None,
            "stroke_width": stroke * size or None,
        }
        if shape in ("ring", "full ring"):
            drawn.append(element("circle", cx=x, cy=y, r=arm * size, **looks))
        else:
            lines = (way((x + dx * arm * size, y + dy * arm * size) for dx, dy in line) for line in _STROKES[shape])
            drawn.append(element("path", d="".join(lines), **looks))
    return "".join(drawn)


def arrow_head(color: str, size: float) -> str:
    """Define what `arrow_end` refers to: a line that has it ends in the arrow's tip."""
    return element(
        "marker",
        element("path", d="M0 0.8L10 5L0 9.2L2.4 5z", fill=color),
        id=_head_name(color, size),
        viewBox="0 0 10 10",
        refX=9.6,
        refY=5,
        markerWidth=size,
        markerHeight=size,
        markerUnits="userSpaceOnUse",
        orient="auto",
    )


def arrow_end(color: str, size: float) -> str:
    return f"url(#{_head_name(color, size)})"


class Svg(str):
    """The text of a picture, which a notebook shows as that picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def document(width: float, height: float, content: Iterable[str], *, kind: str, title: str, style: str = "") -> Svg:
    """Write the whole picture, on white, however dark the surroundings."""
    whole = (
        element("title", escaped(title)),
        element("style", style) if style else "",
        element("rect", width=width, height=height, fill=PAPER),
        *content,
    )
    whole_text = element(
        "svg",
        (f"\n{part}" for part in whole if part),
        xmlns="http://www.w3.org/2000/svg",
        class_=f"worldline-{kind}",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
        font_family=_FONT,
        fill=INK,
    )
    return Svg(f"{whole_text.removesuffix('</svg>')}\n</svg>\n")


def shortened(text: str, most: int) -> str:
    """Put a text on one line, of so many characters at most."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: max(0, most - 1)].rstrip()}…"


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Guess how wide a text is, in whatever font the viewer has."""
    wide = sum(letter >= _WIDE_FROM for letter in text)
    return size * (wide + _GLYPH * (len(text) - wide)) * (_BOLD if bold else 1.0)


def fitted(text: str, width: float, size: float) -> str:
    """Shorten a text so that it isn't wider than this."""
    most = max(1, int(width / (size * _GLYPH)))
    while most > 1 and text_width(shortened(text, most), size) > width:
        most -= 1
    return shortened(text, most)


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Put a text on as many lines as it takes, none of which is wider than this; words that are too long are cut."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(fitted(word, width, size))
    return lines


def _head_name(color: str, size: float) -> str:
    # The name says what it looks like: pictures on one page may have the same names for the same things only.
    return f"head-{color.removeprefix('#')}-{number(size).replace('.', '_')}"


# Texts with a halo, so that they can be read where they lie on lines.
#
# The halo is a copy of the texts, drawn below all of them with a thick pale stroke. One text with `paint-order` would
# do in a browser; but other viewers don't know that, paint the stroke over the letters, and show nothing at all.

_HALO = 3.0


def haloed(texts: Iterable[str], *, class_: str, **attributes: Value | None) -> list[str]:
    """Return a group of texts, after a group that is their halo. Nothing, if there are none."""
    written = "".join(texts)
    if not written:
        return []
    halo: dict[str, Value] = {"stroke": PAPER, "stroke_width": _HALO, "stroke_linejoin": "round"}
    return [
        element("g", written, class_="halo", aria_hidden="true", **attributes, **halo),
        element("g", written, class_=class_, **attributes),
    ]


# Points and lines in the plane.

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


def without_near(line: Sequence[Point], least: float = 0.4) -> list[Point]:
    """Leave out points of a line that can't be told from the one before, but not the last."""
    kept = [line[0]]
    for spot in line[1:-1]:
        if distance(kept[-1], spot) >= least:
            kept.append(spot)
    return [*kept, *line[1:][-1:]]


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
_STEP = 6.0


Disc = tuple[float, float, float]
"""A place that is taken: x, y and radius."""


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
                nearest = min(nearest, distance((x, y), disc[:2]) - radius - disc[2])
        return nearest

    def written(
        self,
        text: str,
        spots: Iterable[Point],
        size: float,
        *,
        avoiding: Iterable[LabelSpace | None] = (None,),
        within: Point = (-math.inf, math.inf),
        bold: bool = False,
        fill: str | None = None,
    ) -> str:
        """Write a text at the first of these spots, where it would begin, at which it covers no other; or nothing.

        `avoiding` are what else it shouldn't cover, the best first. `within` are the edges that it has to stay between.
        """
        width = text_width(text, size, bold=bold)
        inside = [spot for spot in spots if within[0] <= spot[0] <= within[1] - width]
        for other in avoiding:
            for left, base in inside:
                discs = text_discs((left + width / 2, base - size * 0.36), width, size)
                if self.is_free(discs) and (other is None or other.is_free(discs)):
                    self.take(discs)
                    return text_at(left, base, text, size=size, fill=fill)
        return ""


def text_discs(middle: Point, width: float, size: float, along: Point = (1.0, 0.0)) -> list[Disc]:
    """Cover a text of this width, whose middle is here and which runs in this direction (of length 1)."""
    radius = size * 0.62
    count = max(1, math.ceil(width / (1.6 * radius)))
    step = max(0.0, width - 2 * radius) / max(1, count - 1)
    offsets = [step * (place - (count - 1) / 2) for place in range(count)]
    return [(middle[0] + along[0] * offset, middle[1] + along[1] * offset, radius) for offset in offsets]


def line_discs(line: Sequence[Point], radius: float = 2.0) -> Iterator[Disc]:
    """Cover a line so that no text fits between."""
    for start, end in pairwise(line):
        count = int(distance(start, end) / _STEP) + 1
        for step in range(count + 1):
            yield (*between(start, end, step / count), radius)


def _cells(disc: Disc) -> Iterator[tuple[int, int]]:
    x, y, radius = disc
    for column in range(math.floor((x - radius) / _CELL), math.floor((x + radius) / _CELL) + 1):
        for row in range(math.floor((y - radius) / _CELL), math.floor((y + radius) / _CELL) + 1):
            yield column, row
