"""Draws light cones: where a lambda can be absorbed that is emitted at a point."""

from __future__ import annotations

import math
from collections.abc import Sequence

from worldline.drawing.plane import Point, distance
from worldline.drawing.svg import element, number, path, way
from worldline.spacetime.build import LambdaField
from worldline.spacetime.pictures.frame import Frame
from worldline.spacetime.pictures.happenings import shift_of, thinned
from worldline.spacetime.pictures.projection import Projection
from worldline.spacetime.pictures.signs import LIGHT

_MOST = 6
_AMONG = 600  # Emissions; of more, so many are looked at.
_HIGH = 150.0
_SHADE = "worldline-light"
_BENT = 20  # Straight pieces of a hyperbola, on either side.


def apexes(emissions: Sequence[Point], frame: Frame) -> list[Point]:
    """Choose a few emissions for cones: far from each other, and with room above them."""
    high = _height(frame)
    some = thinned(emissions, _AMONG)
    roomy = [each for each in some if each[1] - high > frame.top] or some
    if not roomy:
        return []
    found = [roomy[0]]
    gaps = [_gap(each, found[0], frame) for each in roomy]
    while len(found) < _MOST:
        best = max(range(len(roomy)), key=lambda place: (gaps[place], -place))
        if gaps[best] < 1.5 * high:
            break
        found.append(roomy[best])
        gaps = [min(gap, _gap(each, roomy[best], frame)) for gap, each in zip(gaps, roomy, strict=True)]
    return found


def definitions(frame: Frame) -> list[str]:
    """Define how cones fade, and where the picture ends for them."""
    stops = [
        element("stop", offset=place, stop_color=LIGHT, stop_opacity=shade) for place, shade in ((0, 0), (1, 0.38))
    ]
    rectangle = element("rect", x=frame.left, y=frame.top, width=frame.width, height=frame.height)
    return [
        element("linearGradient", stops, id=_SHADE, x1=0, y1=0, x2=0, y2=1),
        element("clipPath", rectangle, id=_clip_name(frame)),
    ]


def drawn(places: Sequence[Point], frame: Frame, projection: Projection, field: LambdaField | None) -> list[str]:
    """Draw cones from these points on: of light, or where the field is another one, of what lambdas do."""
    shift = shift_of(field, len(projection.direction) + 1)
    aside, above = projection.along(shift[1:]) * frame.across, shift[0] * frame.up
    delay = 0.0 if field is None else math.sqrt(field.c) * frame.up
    cones = []
    for x, y in places:
        edge = _edge((x + aside, y - above), delay, _height(frame), frame.stretch)
        lead = path(((x, y), (x + aside, y - above)), stroke_dasharray="2 2") if aside or above else ""
        fill = element("path", d=f"{way(edge)}z", fill=f"url(#{_SHADE})", stroke="none")
        cones.append(element("g", (lead, fill, path(edge, fill="none")), class_="cone"))
    clip = f"url(#{_clip_name(frame)})"
    return [element("g", cones, stroke=LIGHT, stroke_width=0.8, stroke_opacity=0.8, clip_path=clip)] if cones else []


def _edge(apex: Point, delay: float, high: float, stretch: float) -> list[Point]:
    """Return the edge of a cone, from the left to the right; with a delay it is a hyperbola."""
    x, y = apex
    count = _BENT if delay else 1
    # Close to the apex it is bent most, so there the pieces are short.
    ways = [high * (place / count) * abs(place / count) for place in range(-count, count + 1)]
    return [(x + way_ * stretch, y - math.sqrt(way_ * way_ + delay * delay)) for way_ in ways]


def _gap(one: Point, other: Point, frame: Frame) -> float:
    """Return how far points are from each other, as seen by light."""
    return distance((one[0] / frame.stretch, one[1]), (other[0] / frame.stretch, other[1]))


def _height(frame: Frame) -> float:
    return min(0.2 * frame.height, _HIGH)


def _clip_name(frame: Frame) -> str:
    # The name says what it looks like: pictures on one page may have the same names for the same things only.
    sides = (frame.left, frame.top, frame.width, frame.height)
    return "clip-" + "-".join(number(side).replace(".", "_") for side in sides)
