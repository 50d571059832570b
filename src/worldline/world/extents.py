"""Extents: how much room a model's links take up, however they are turned."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot, inf

from worldline.world.description import RigidLink, WorldModel
from worldline.world.pose import Vector, length
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    PlaneShape,
    Shape,
    SphereShape,
)


def link_radius(link: RigidLink) -> float:
    """Return the radius of a ball around a link's origin that holds all that collides."""
    return max((length(each.pose.position) + shape_radius(each.shape) for each in link.collisions), default=0.0)


def shape_radius(shape: Shape) -> float:
    match shape:
        case BoxShape((x, y, z)):
            return hypot(x, y, z) / 2
        case SphereShape(radius):
            return radius
        case CylinderShape(radius, height):
            return hypot(radius, height / 2)
        case CapsuleShape(radius, height):
            return radius + height / 2
        case EllipsoidShape(radii):
            return max(radii)
        case PlaneShape():
            return inf


def model_arm(model: WorldModel) -> float:
    """Return how far from a rigid model's origin the origin of one of its links can be."""
    return max(length(link.pose.position) for link in model.links)


def box_around(balls: Iterable[tuple[Vector, float]]) -> tuple[Vector, Vector]:
    """Return center and half size of the box around some balls."""
    found = list(balls)
    lows = [min(at[axis] - radius for at, radius in found) for axis in range(3)]
    highs = [max(at[axis] + radius for at, radius in found) for axis in range(3)]
    x, y, z = ((low + high) / 2 for low, high in zip(lows, highs, strict=True))
    # A rounded center may be nearer to one end than to the other.
    a, b, c = (
        max(high - center, center - low) * (1 + 1e-12) for low, high, center in zip(lows, highs, (x, y, z), strict=True)
    )
    return (x, y, z), (a, b, c)
