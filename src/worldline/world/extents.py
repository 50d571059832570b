"""Extents: how much room a model's links take up, however they are turned."""

from __future__ import annotations

from math import hypot, inf

from worldline.world.description import RigidLink, WorldModel
from worldline.world.pose import length
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
