"""Lines of several kinds, told apart by their colors and dashes; and lines that fade."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from worldline.drawing.plane import Point, between
from worldline.drawing.svg import PALETTE, path

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
