"""Reads <link>: its shapes, its friction, its mass."""

from __future__ import annotations

from worldline.world.description import GRAY, Collision, Color, Friction, RigidLink, Visual
from worldline.world.inertia import UNIT_INERTIA, WATER, Inertia, combined, cone_inertia, scaled, shape_inertia
from worldline.world.pose import Pose
from worldline.world.sdf.element import SdfElement
from worldline.world.sdf.frames import FrameScope
from worldline.world.sdf.shapes import cone_in, read_shape


def read_link(element: SdfElement, scope: FrameScope, placed: Pose, prefix: str, *, static: bool) -> RigidLink:
    """Read a link. `placed` is where its scope's origin is in the whole model, and `prefix` begins its full name."""
    name = element.name()
    gravity = element.child("gravity")
    collisions = [(each, solid) for each in element.children("collision") if (solid := _collision(each, name, scope))]
    visuals = [(each, seen) for each in element.children("visual") if (seen := _visual(each, name, scope))]
    about = {("collision", index): each for index, (each, _) in enumerate(collisions)}
    about |= {("visual", index): each for index, (each, _) in enumerate(visuals)}
    with element.blamed(about):
        return RigidLink(
            name=prefix + name,
            pose=placed.compose(scope.pose_of(name, element)),
            inertia=_inertia(element, name, scope, collisions, static),
            collisions=tuple(each for _, each in collisions),
            visuals=tuple(each for _, each in visuals),
            gravity=gravity is None or gravity.boolean(),
        )


def _collision(element: SdfElement, link: str, scope: FrameScope) -> Collision | None:
    with element.blamed():
        shape = read_shape(element)
        if shape is None:
            element.discard_but("geometry")
            return None
        pose = scope.resolve_in(link, element.child("pose"), element)
        return Collision(name=element.name(), shape=shape, pose=pose, friction=_friction(element))


def _visual(element: SdfElement, link: str, scope: FrameScope) -> Visual | None:
    with element.blamed():
        shape = read_shape(element)
        if shape is None:
            element.discard_but("geometry")
            return None
        pose = scope.resolve_in(link, element.child("pose"), element)
        return Visual(name=element.name(), shape=shape, pose=pose, color=_color(element))


def _friction(collision: SdfElement) -> Friction:
    friction = _inside(collision, "surface", "friction")
    if friction is None:
        return Friction()
    mu = mu2 = 1.0
    torsion = 0.0
    for engine, first, second in (("bullet", "friction", "friction2"), ("ode", "mu", "mu2")):  # The last one counts.
        given = friction.child(engine)
        if given is not None:
            mu, mu2 = _number(given, first, mu), _number(given, second, mu2)
    torsional = friction.child("torsional")
    if torsional is not None:
        torsion = _number(torsional, "coefficient", torsion)
    with friction.blamed():
        return Friction(mu, mu2, torsion)


def _color(visual: SdfElement) -> Color:
    """Return what a visual's material scatters; the other colors of a material only matter to a renderer."""
    material = visual.child("material")
    given = material.child("diffuse") if material is not None else None
    if given is None:
        return GRAY
    r, g, b, *opacity = given.numbers(3 if len(given.words()) == 3 else 4)
    return (_bright(r), _bright(g), _bright(b), _bright(opacity[0]) if opacity else 1.0)


def _bright(part: float) -> float:
    return min(max(part, 0.0), 1.0)


_Solids = list[tuple[SdfElement, Collision]]


def _inertia(link: SdfElement, name: str, scope: FrameScope, solids: _Solids, static: bool) -> Inertia:
    """Read what is given; without it, SDF says 1 kg with moments of 1 kg m², whatever the shape."""
    inertial = link.child("inertial")
    densities = {id(each): each.child("density") for each in link.children("collision")}
    if inertial is None:
        return UNIT_INERTIA
    mass = inertial.child("mass")
    with inertial.blamed():
        if (inertial.attribute("auto") or "false").strip().lower() in ("true", "1"):
            usual = _number(inertial, "density", WATER)
            numbers = {key: usual if density is None else density.number() for key, density in densities.items()}
            whole = UNIT_INERTIA if static else _automatic(inertial, link, name, scope, solids, numbers)
            return whole if mass is None else scaled(whole, mass.number())
        moments = inertial.child("inertia")
        xx, yy, zz, xy, xz, yz = (
            default if moments is None else _number(moments, tag, default)
            for tag, default in (("ixx", 1.0), ("iyy", 1.0), ("izz", 1.0), ("ixy", 0.0), ("ixz", 0.0), ("iyz", 0.0))
        )
        pose = scope.resolve_in(name, inertial.child("pose"), inertial)
        return Inertia(1.0 if mass is None else mass.number(), pose, (xx, yy, zz, xy, xz, yz))


def _automatic(
    inertial: SdfElement, link: SdfElement, name: str, scope: FrameScope, solids: _Solids, densities: dict[int, float]
) -> Inertia:
    parts = [(solid.pose, shape_inertia(solid.shape, densities[id(each)])) for each, solid in solids]
    collisions = link.children("collision")
    if not collisions:
        raise inertial.error("there is no shape to work out an inertia from", "give the link a <collision>")
    known = {id(each) for each, _ in solids}
    for each in collisions:
        if id(each) not in known:
            cone = cone_in(each)
            if cone is None:
                inertial.remark("an inertia is worked out without the shapes that aren't supported")
            else:
                with each.blamed():
                    pose = scope.resolve_in(name, each.child("pose"), each)
                    parts.append((pose, cone_inertia(*cone, densities[id(each)])))
    return combined(parts) if parts else UNIT_INERTIA


def _inside(element: SdfElement, *tags: str) -> SdfElement | None:
    found: SdfElement | None = element
    for tag in tags:
        found = found.child(tag) if found is not None else None
    return found


def _number(element: SdfElement, tag: str, default: float) -> float:
    found = element.child(tag)
    return default if found is None else found.number()
