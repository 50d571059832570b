"""Reads pictures back: what is in them, and where."""

from __future__ import annotations

import re
from xml.etree import ElementTree

Element = ElementTree.Element
Spot = tuple[float, float]


def parsed(svg: str) -> Element:
    """Read a picture; what isn't well-formed is refused."""
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return root


def of_class(root: Element, name: str) -> list[Element]:
    return [each for each in root.iter() if name in each.get("class", "").split()]


def of_tag(root: Element, tag: str) -> list[Element]:
    return list(root.iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def texts(root: Element) -> list[str]:
    return [each.text or "" for each in of_tag(root, "text")]


def titles(root: Element) -> list[str]:
    """Return what is shown when the mouse rests on the elements in it."""
    return [each.text or "" for each in of_tag(root, "title")]


def points(path: Element) -> list[Spot]:
    """Return the points of a path without curves."""
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[0-9.]+) (-?[0-9.]+)", path.get("d", ""))]
