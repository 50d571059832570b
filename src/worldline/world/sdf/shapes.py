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


def cone_in(owner: SdfElement) -> tuple[float, float] | None:
    """Return the radius and the length of a collision's cone, which has an inertia, though nothing collides with it."""
    geometry = owner.needed("geometry")
    cone = next((each for each in geometry.content if each.tag == "cone"), None)  # It stays unread, so it is noted.
    return None if cone is None else (_length(cone, "radius", 0.5), _length(cone, "length", 1.0))


def read_box(owner: SdfElement, what: str) -> BoxShape:
    """Return the box that is needed here."""
    geometry = owner.needed("geometry", what)
    box = geometry.child("box")
    if box is None:
        raise geometry.error(f"{what} needs a <box>")
    with box.blamed():
        return _box(box)


def _box(element: SdfElement) -> BoxShape:
    size = _given(element, "size", "1 1 1")
    return BoxShape((1.0, 1.0, 1.0) if size is None else size.vector())


def _sphere(element: SdfElement) -> SphereShape:
    return SphereShape(_length(element, "radius", 1.0))


def _cylinder(element: SdfElement) -> CylinderShape:
    return CylinderShape(_length(element, "radius", 1.0), _length(element, "length", 1.0))


def _capsule(element: SdfElement) -> CapsuleShape:
    return CapsuleShape(_length(element, "radius", 0.5), _length(element, "length", 1.0))


def _ellipsoid(element: SdfElement) -> EllipsoidShape:
    radii = _given(element, "radii", "1 1 1")
    return EllipsoidShape((1.0, 1.0, 1.0) if radii is None else radii.vector())


def _length(element: SdfElement, tag: str, default: float) -> float:
    found = _given(element, tag, f"{default:g}")
    return default if found is None else found.number()


def _given(element: SdfElement, tag: str, default: str) -> SdfElement | None:
    """Return what a shape says of its size. Gazebo takes a default for what is missing, and complains."""
    found = element.child(tag)
    if found is None:
        element.remark(f"a <{element.shown_tag}> without <{tag}> has {default}, as in Gazebo")
    return found


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
