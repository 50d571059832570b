"""Texts with a halo, so that they can be read where they lie on lines.

The halo is a copy of the texts, drawn below all of them with a thick pale stroke. One text with `paint-order` would do
in a browser; but other viewers don't know that, paint the stroke over the letters, and show nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterable

from worldline.drawing.svg import PAPER, Value, element

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
