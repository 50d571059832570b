"""Surroundings: which static models a group needs around it.

A group's model has the static models near its movers. Far ones change nothing, but cost time in every step. So that a
group isn't rebuilt with every meter it goes, it gets all that are within a *region* larger than needed, and keeps them
until it gets near that region's edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite
from typing import NamedTuple

from worldline.world.description import WorldModel
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

MARGIN = 2.0
"""Meters by which a region is larger than needed, on every side."""


class Region(NamedTuple):
    """A box along the world's axes, from its least to its greatest corner."""

    low: Vector
    high: Vector

    def touches(self, other: Region) -> bool:
        return all(
            a_low <= b_high and b_low <= a_high
            for a_low, a_high, b_low, b_high in zip(self.low, self.high, other.low, other.high, strict=True)
        )

    def holds(self, other: Region) -> bool:
        return all(a <= b for a, b in zip(self.low, other.low, strict=True)) and all(
            a >= b for a, b in zip(self.high, other.high, strict=True)
        )

    def grown(self, by: float) -> Region:
        x, y, z = self.low
        a, b, c = self.high
        return Region((x - by, y - by, z - by), (a + by, b + by, c + by))


def joined(regions: Iterable[Region]) -> Region:
    """Return the least region that holds them all."""
    lows, highs = zip(*regions, strict=True)
    x, y, z = map(min, zip(*lows, strict=True))
    a, b, c = map(max, zip(*highs, strict=True))
    return Region((x, y, z), (a, b, c))


def static_region(model: WorldModel) -> Region | None:
    """Return the box around all of a static model that can be touched; None if nothing can."""
    regions = [
        _shape_region(model.pose.compose(link.pose).compose(collision.pose), collision.shape)
        for link in model.links
        for collision in link.collisions
    ]
    return joined(regions).grown(1e-6) if regions else None  # More than roundings can have taken off.


def _shape_region(pose: Pose, shape: Shape) -> Region:
    half = _half_size(shape)
    if not all(map(isfinite, half)):
        return Region((-inf, -inf, -inf), (inf, inf, inf))
    a, b, c = half
    ways = [pose.rotate(way) for way in ((a, 0.0, 0.0), (0.0, b, 0.0), (0.0, 0.0, c))]
    a, b, c = (sum(abs(way[axis]) for way in ways) for axis in range(3))
    x, y, z = pose.position
    return Region((x - a, y - b, z - c), (x + a, y + b, z + c))


def _half_size(shape: Shape) -> Vector:
    match shape:
        case BoxShape((x, y, z)):
            return x / 2, y / 2, z / 2
        case SphereShape(radius):
            return radius, radius, radius
        case CylinderShape(radius, height):
            return radius, radius, height / 2
        case CapsuleShape(radius, height):
            return radius, radius, radius + height / 2
        case EllipsoidShape(radii):
            return radii
        case PlaneShape():
            return inf, inf, inf


class Surroundings:
    """The static models that are loaded, and where they are."""

    def __init__(self, models: Iterable[WorldModel]) -> None:
        ordered = sorted(models, key=lambda model: model.name)
        self.names = tuple(model.name for model in ordered)
        self._regions = [(model.name, region) for model in ordered if (region := static_region(model)) is not None]

    def near(self, region: Region) -> tuple[str, ...]:
        return tuple(name for name, each in self._regions if each.touches(region))
