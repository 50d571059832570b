"""What models look like from above: a circle where it is one, and otherwise a convex polygon.

Only sums, products and square roots are used, which every machine rounds in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import sqrt
from typing import NamedTuple

from worldline.pictures.svg import Point
from worldline.world.description import RigidLink, WorldModel
from worldline.world.pose import Pose, Vector
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    PlaneShape,
    Shape,
    SphereShape,
)

_UPRIGHT = 1 - 1e-9  # A column that leans less than this is seen as a circle.
_HALF = sqrt(0.5)
_LONG, _SHORT = sqrt(2 + sqrt(2)) / 2, sqrt(2 - sqrt(2)) / 2
_EIGHTHS = ((1.0, 0.0), (_LONG, _SHORT), (_HALF, _HALF), (_SHORT, _LONG))
_CIRCLE = tuple(
    point for x, y in _EIGHTHS for point in ((x, y), (-y, x), (-x, -y), (y, -x))
)  # Sixteen points of the unit circle.


class Round(NamedTuple):
    center: Point
    radius: float


Outline = Round | tuple[Point, ...]
"""A polygon's corners go around counterclockwise."""


def model_outlines(model: WorldModel, at: Pose) -> list[Outline]:
    """Return what a model looks like whose frame is there, with its links as they were at the start.

    Planes look like nothing: they are everywhere.
    """
    return [outline for link in model.links for outline in _link_outlines(link, at.compose(link.pose))]


def _link_outlines(link: RigidLink, at: Pose) -> Iterator[Outline]:
    for each in link.visuals or link.collisions:
        if not isinstance(each.shape, PlaneShape):
            yield _outline(each.shape, at.compose(each.pose))


def _outline(shape: Shape, at: Pose) -> Outline:
    x, y, _ = at.position
    match shape:
        case SphereShape(radius):
            return Round((x, y), radius)
        case CylinderShape(radius, _) | CapsuleShape(radius, _) if abs(at.rotate((0.0, 0.0, 1.0))[2]) >= _UPRIGHT:
            return Round((x, y), radius)
    return _hull(at.place(point)[:2] for point in _corners(shape))


def _corners(shape: Shape) -> Iterator[Vector]:
    """Yield points whose hull is a shape, or nearly so."""
    match shape:
        case BoxShape((x, y, z)):
            yield from ((i * x / 2, j * y / 2, k * z / 2) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1))
        case CylinderShape(radius, length):
            yield from ((radius * i, radius * j, k * length / 2) for i, j in _CIRCLE for k in (-1, 1))
        case CapsuleShape(radius, length):
            yield from ((x, y, z + k * length / 2) for x, y, z in _ball((radius, radius, radius)) for k in (-1, 1))
        case EllipsoidShape(radii):
            yield from _ball(radii)


def _ball(radii: Vector) -> Iterator[Vector]:
    a, b, c = radii
    for i, j in _CIRCLE:
        for x, y, z in ((i, j, 0.0), (i, 0.0, j), (0.0, i, j), (i * _HALF, i * _HALF, j), (i * _HALF, -i * _HALF, j)):
            yield (a * x, b * y, c * z)


def _hull(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return the corners of the least convex polygon around some points."""
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return tuple(ordered)
    return (*_half_hull(ordered), *_half_hull(ordered[::-1]))


def _half_hull(ordered: Iterable[Point]) -> list[Point]:
    chain: list[Point] = []
    for point in ordered:
        while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    return chain[:-1]


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
