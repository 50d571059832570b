"""Reads <geometry>."""

from __future__ import annotations

from collections.abc import Callable

from worldline.world.pose import length
from worldline.world.sdf.element import SdfElement
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    PlaneShape,
    Shape,
    SphereShape,
)


def read_shape(owner: SdfElement) -> Shape | None:
    """Return the shape of a collision or visual; None if it is one that isn't supported, which is then noted."""
    geometry = owner.needed("geometry")
    for tag, read in _SHAPES.items():
        element = geometry.child(tag)
        if element is not None:
            with element.blamed():
                return read(element)
    if not geometry.content:
        raise geometry.error("<geometry> needs a shape", f"such as {', '.join(f'<{tag}>' for tag in _SHAPES)}")
    return None


def read_box(owner: SdfElement, what: str) -> BoxShape:
    """Return the box that is needed here."""
    geometry = owner.needed("geometry", what)
    box = geometry.child("box")
    if box is None:
        raise geometry.error(f"{what} needs a <box>")
    with box.blamed():
        return _box(box)


def _box(element: SdfElement) -> BoxShape:
    return BoxShape(element.needed("size").vector())


def _sphere(element: SdfElement) -> SphereShape:
    return SphereShape(element.needed("radius").number())


def _cylinder(element: SdfElement) -> CylinderShape:
    return CylinderShape(element.needed("radius").number(), element.needed("length").number())


def _capsule(element: SdfElement) -> CapsuleShape:
    return CapsuleShape(element.needed("radius").number(), element.needed("length").number())


def _ellipsoid(element: SdfElement) -> EllipsoidShape:
    return EllipsoidShape(element.needed("radii").vector())


def _plane(element: SdfElement) -> PlaneShape:
    said, size = element.child("normal"), element.child("size")
    x, y, z = said.vector() if said is not None else (0.0, 0.0, 1.0)
    norm = length((x, y, z))
    if said is not None and not 1e-9 < norm < 1e9:
        raise said.error("a plane's normal needs some length")
    width, depth = size.numbers(2) if size is not None else (1.0, 1.0)
    return PlaneShape((x / norm, y / norm, z / norm), (width, depth))


_SHAPES: dict[str, Callable[[SdfElement], Shape]] = {
    "box": _box,
    "sphere": _sphere,
    "cylinder": _cylinder,
    "capsule": _capsule,
    "ellipsoid": _ellipsoid,
    "plane": _plane,
}
