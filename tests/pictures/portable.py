"""What pictures may be made of: SVG that every viewer draws alike, browsers, cairosvg, librsvg, Inkscape and LaTeX.

What isn't on these lists isn't used before somebody has looked at it in all of them. Among what at least one of them
doesn't know, or draws in another way: `paint-order`, `dominant-baseline`, `textPath`, `textLength`, `mask`, `filter`,
`vector-effect`, `context-stroke`, `currentColor`, `var(...)`, `rgba(...)`, colors of eight digits, media queries,
styles other than attributes, lengths with units, `foreignObject`, raised and lowered digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

_SVG = "{http://www.w3.org/2000/svg}"

_PLACED = {"class", "id", "transform", "aria-hidden", "x", "y", "width", "height"}
_PAINTED = {
    "clip-path",
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-dasharray",
    "stroke-linejoin",
    "stroke-opacity",
    "stroke-width",
}
_WRITTEN = {"font-family", "font-size", "font-style", "font-weight", "text-anchor"}
_USUAL = _PLACED | _PAINTED | _WRITTEN
ELEMENTS: dict[str, set[str]] = {
    "svg": _USUAL | {"viewBox"},
    "title": set(),
    "style": set(),
    "defs": set(),
    "g": _USUAL,
    "text": _USUAL,
    "rect": _USUAL | {"rx"},
    "circle": _USUAL | {"cx", "cy", "r"},
    "path": _USUAL | {"d", "marker-end"},
    "clipPath": {"id"},
    "linearGradient": {"id", "x1", "x2", "y1", "y2"},
    "stop": {"offset", "stop-color", "stop-opacity"},
    "marker": {"id", "viewBox", "refX", "refY", "markerWidth", "markerHeight", "markerUnits", "orient"},
}
_COLOR = re.compile(r"#[0-9a-f]{6}|none|url\(#[\w-]+\)")
_USED = re.compile(r"url\(#?(.*)\)")  # A picture needs nothing but itself.
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_RULES = re.compile(r"(\.[\w-]+( \.[\w-]+)*:hover( [.\w-]+)?\{[a-z-]+:[#\w.]+(;[a-z-]+:[#\w.]+)*\})*")
_VALUES = {
    **dict.fromkeys(("fill", "stroke", "stop-color"), _COLOR),
    **dict.fromkeys(
        ("x", "y", "width", "height", "cx", "cy", "r", "font-size", "font-weight", "stroke-width"), _NUMBER
    ),
    **dict.fromkeys(("fill-opacity", "stroke-opacity", "stop-opacity", "offset"), _NUMBER),
    "transform": re.compile(r"(matrix\(-?[\d.]+( -?[\d.]+){3}|translate\()( ?-?[\d.]+){2}\)"),
    "text-anchor": re.compile("start|middle|end"),
    "font-style": re.compile("italic"),
    "orient": re.compile("auto"),
    "d": re.compile(r"[-\d. MLQz]+"),
}


# Letters that the usual fonts have: viewers that don't look for another font show boxes for all else.
_LETTERS = re.compile("[\x20-\x7e\xa0-\xff\u2026\u2212]*")


def strange(svg: str) -> list[str]:
    """Return what in a picture isn't known to be drawn alike everywhere."""
    return sorted(set(_strange(ElementTree.fromstring(svg))))


def _strange(root: ElementTree.Element) -> Iterator[str]:
    defined = {each.get("id") for each in root.iter()}
    for each in root.iter():
        tag = each.tag.removeprefix(_SVG)
        if tag not in ELEMENTS:
            yield f"<{tag}>"
            continue
        if tag == "style" and not _RULES.fullmatch(each.text or ""):
            yield f"style: {each.text}"
        if tag == "text" and not _LETTERS.fullmatch(each.text or ""):
            yield f"text: {each.text}"
        for name, value in each.items():
            if name not in ELEMENTS[tag]:
                yield f"<{tag} {name}>"
            elif (name in _VALUES and not _VALUES[name].fullmatch(value)) or (
                (used := _USED.fullmatch(value)) and used[1] not in defined
            ):
                yield f"<{tag} {name}={value}>"
