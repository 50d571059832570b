"""Writes SVG: elements, numbers and texts, in one way only, so that equal pictures are equal bytes.

Only what every viewer knows is used, converters to PNG and PDF too: SVG 1.1 without what only browsers understand. So
looks are given by attributes rather than by a style sheet, except for what happens under the mouse; and a picture that
is put into a web page changes nothing else there. `tests/pictures/portable.py` is the list of what is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from worldline.model.text import printable_lines

INK = "#1f2933"
SOFT = "#66727f"
FAINT = "#cbd2d9"
PAPER = "#ffffff"
ALARM = "#b3261e"

# Okabe and Ito's colors, which the color-blind can tell apart, without the yellow that nobody can see on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5c00", "#3f3f3f")

_FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"  # Some viewers look at the first one only, and know no others.
_GLYPH = 0.58  # The width of a usual letter, in font sizes; narrow enough fonts only leave more room.
_WIDE_FROM = "\u1100"  # From here on most scripts have letters as wide as they are high.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # By XML, also when escaped.
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})

Value = str | int | float


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


def path(points: Iterable[tuple[float, float]], **attributes: Value | None) -> str:
    return element("path", "", d=way(points), **attributes)


def way(points: Iterable[tuple[float, float]]) -> str:
    """Write straight lines from point to point, as the `d` of a path."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def cross(x: float, y: float, arm: float) -> str:
    """Write a lying cross, as the `d` of a path."""
    return f"{way(((x - arm, y - arm), (x + arm, y + arm)))}{way(((x - arm, y + arm), (x + arm, y - arm)))}"


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


def document(width: float, height: float, content: Iterable[str], *, kind: str, title: str, style: str = "") -> str:
    """Write the whole picture, on white, however dark the surroundings."""
    whole = (
        element("title", escaped(title)),
        element("style", style) if style else "",
        element("rect", width=width, height=height, fill=PAPER),
        *content,
    )
    return element(
        "svg",
        (f"\n{part}" for part in whole if part),
        xmlns="http://www.w3.org/2000/svg",
        class_=f"worldline-{kind}",
        width=width,
        height=height,
        viewBox=f"0 0 {number(width)} {number(height)}",
        font_family=_FONT,
        fill=INK,
    ).removesuffix("</svg>") + "\n</svg>\n"  # fmt: skip


def shortened(text: str, most: int) -> str:
    """Put a text on one line, of so many characters at most."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: max(0, most - 1)].rstrip()}…"


def text_width(text: str, size: float) -> float:
    """Guess how wide a text is, in whatever font the viewer has."""
    wide = sum(letter >= _WIDE_FROM for letter in text)
    return size * (wide + _GLYPH * (len(text) - wide))


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

_WIDTH = 3.0


def haloed(texts: Iterable[str], *, class_: str, **attributes: Value | None) -> list[str]:
    """Return a group of texts, after a group that is their halo. Nothing, if there are none."""
    written = "".join(texts)
    if not written:
        return []
    halo: dict[str, Value] = {"stroke": PAPER, "stroke_width": _WIDTH, "stroke_linejoin": "round"}
    return [
        element("g", written, class_="halo", aria_hidden="true", **attributes, **halo),
        element("g", written, class_=class_, **attributes),
    ]
