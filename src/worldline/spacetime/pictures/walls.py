"""Draws boundaries: those that are lines in a Minkowski diagram, since they run across what is drawn of space."""

from __future__ import annotations

import math
from collections.abc import Iterable

from worldline.drawing.plane import Point, between
from worldline.drawing.svg import SOFT, element, fitted, hover, path
from worldline.spacetime.boundary import Boundary
from worldline.spacetime.pictures.frame import Frame, Wall
from worldline.spacetime.pictures.names import Names
from worldline.spacetime.pictures.projection import Projection
from worldline.spacetime.pictures.signs import WALL, WALL_DASHES

_NAMES_UP_TO = 6
_SHARES = (0.06, 0.94, 0.2, 0.8, 0.35, 0.65, 0.5)  # Of a wall's height, where its name may stand.
_ACROSS = 1e-9  # So much of a plane's normal may point elsewhere than where the picture goes.


def walls_of(boundaries: Iterable[Boundary], projection: Projection) -> list[Wall]:
    """Return the boundaries in space that are seen from the side."""
    found = []
    for each in boundaries:
        normal = each.normal.coordinates()
        if not projection.has_space or len(normal) != len(projection.direction) + 1:
            continue
        share = projection.along(normal[1:])
        rest = max(abs(one - share * other) for one, other in zip(normal[1:], projection.direction, strict=True))
        if share and rest <= _ACROSS * abs(share):
            # The plane is where normal·X + offset = 0, and the product counts space negative.
            found.append(Wall(each.name, each.offset / share, normal[0] / share))
    return [wall for wall in found if math.isfinite(wall.place) and math.isfinite(wall.speed)]


def drawn(walls: Iterable[Wall], frame: Frame, names: Names) -> list[str]:
    """Draw what of walls is inside the frame, and write their names there if they are few."""
    lines, texts = [], []
    for wall in walls:
        ends = [(frame.x(wall.at(frame.time_at(y))), y) for y in (frame.bottom, frame.top)]
        inside = _inside(ends[0], ends[1], frame.left, frame.right)
        if inside is not None:
            lines.append(element("g", (hover(wall.name), path(inside)), class_="boundary"))
            places = [between(*inside, share) for share in _SHARES]
            texts.append((places, fitted(wall.name, frame.width / 2, 9.5)))
    if not lines:
        return []
    shown = [names.note(places, text, 9.5, covers_lines=False) for places, text in texts[:_NAMES_UP_TO]]
    return [
        element("g", lines, stroke=WALL, stroke_width=1.4, stroke_dasharray=WALL_DASHES),
        element("g", shown, class_="boundaries", fill=SOFT) if any(shown) else "",
    ]


def _inside(start: Point, end: Point, left: float, right: float) -> tuple[Point, Point] | None:
    """Return the part of a line that isn't beside the frame."""
    first, last = 0.0, 1.0
    x, width = start[0], end[0] - start[0]
    if width == 0:
        return (start, end) if left <= x <= right else None
    for edge in (left, right):
        share = (edge - x) / width
        if (edge == left) == (width > 0):
            first = max(first, share)
        else:
            last = min(last, share)
    if first >= last:
        return None
    along = end[1] - start[1]
    return (x + width * first, start[1] + along * first), (x + width * last, start[1] + along * last)
