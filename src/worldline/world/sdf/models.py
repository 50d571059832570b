"""Reads <model>: links, joints, frames, plugins, and the models nested in it.

Nested models become part of the outer one: their links and joints are called `inner::name`, and move as the joints
between them say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any, TypeVar, cast

from worldline.model.errors import nearest, shown
from worldline.world.description import (
    GRAY,
    JOINT_KINDS,
    Collision,
    Color,
    DiffDrive,
    Friction,
    Joint,
    JointKind,
    RigidLink,
    Visual,
    WorldModel,
)
from worldline.world.pose import ORIGIN, Pose, Vector, length
from worldline.world.sdf.element import MODEL_FRAME, FrameScope, SdfElement, local_pose
from worldline.world.sdf.plugins import ModelParts, note_plugin, read_plugins
from worldline.world.shapes import (
    UNIT_INERTIA,
    WATER,
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    Inertia,
    PlaneShape,
    Shape,
    SphereShape,
    combined,
    cone_inertia,
    scaled,
    shape_inertia,
)

# Reads <geometry>.

_Numbers = TypeVar("_Numbers", tuple[float], Vector)
_Part = TypeVar("_Part", Collision, Visual)


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
    return BoxShape(_given(element, "size", (1.0, 1.0, 1.0)))


def _length(element: SdfElement, tag: str, default: float) -> float:
    return _given(element, tag, (default,))[0]


def _given(element: SdfElement, tag: str, default: _Numbers) -> _Numbers:
    """Return what a shape says of its size. Gazebo takes a default for what is missing, and complains."""
    found = element.child(tag)
    if found is None:
        numbers = " ".join(f"{number:g}" for number in default)
        element.remark(f"a <{element.shown_tag}> without <{tag}> has {numbers}, as in Gazebo")
        return default
    return cast("_Numbers", tuple(found.numbers(len(default))))


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
    "sphere": lambda each: SphereShape(_length(each, "radius", 1.0)),
    "cylinder": lambda each: CylinderShape(_length(each, "radius", 1.0), _length(each, "length", 1.0)),
    "capsule": lambda each: CapsuleShape(_length(each, "radius", 0.5), _length(each, "length", 1.0)),
    "ellipsoid": lambda each: EllipsoidShape(_given(each, "radii", (1.0, 1.0, 1.0))),
    "plane": _plane,
}


# Reads <link>: its shapes, its friction, its mass.


def read_link(element: SdfElement, scope: FrameScope, placed: Pose, prefix: str, *, static: bool) -> RigidLink:
    """Read a link. `placed` is where its scope's origin is in the whole model, and `prefix` begins its full name."""
    name = element.name()
    collisions = _shaped(
        element, "collision", scope, lambda each, **parts: Collision(**parts, friction=_friction(each))
    )
    visuals = _shaped(element, "visual", scope, lambda each, **parts: Visual(**parts, color=_color(each)))
    about = {("collision", index): each for index, (each, _) in enumerate(collisions)}
    about |= {("visual", index): each for index, (each, _) in enumerate(visuals)}
    with element.blamed(about):
        return RigidLink(
            name=prefix + name,
            pose=placed.compose(scope.pose_of(name, element)),
            inertia=_inertia(element, name, scope, collisions, static),
            collisions=tuple(each for _, each in collisions),
            visuals=tuple(each for _, each in visuals),
            gravity=element.boolean_in("gravity", True),
        )


def _shaped(
    link: SdfElement, tag: str, scope: FrameScope, build: Callable[..., _Part]
) -> list[tuple[SdfElement, _Part]]:
    """Read a link's collisions or visuals; those whose shapes aren't supported are left out, and noted."""
    found = []
    for element in link.children(tag):
        with element.blamed():
            shape = read_shape(element)
            if shape is None:
                element.discard_but("geometry")
                continue
            pose = scope.resolve_in(link.name(), element.child("pose"), element)
            found.append((element, build(element, name=element.name(), shape=shape, pose=pose)))
    return found


def _friction(collision: SdfElement) -> Friction:
    friction = collision.at("surface", "friction")
    if friction is None:
        return Friction()
    mu = mu2 = 1.0
    torsion = 0.0
    for engine, first, second in (("bullet", "friction", "friction2"), ("ode", "mu", "mu2")):  # The last one counts.
        given = friction.child(engine)
        if given is not None:
            mu, mu2 = given.number_in(first, mu), given.number_in(second, mu2)
    torsional = friction.child("torsional")
    if torsional is not None:
        torsion = torsional.number_in("coefficient", torsion)
    with friction.blamed():
        return Friction(mu, mu2, torsion)


def _color(visual: SdfElement) -> Color:
    """Return what a visual's material scatters; the other colors of a material only matter to a renderer."""
    given = visual.at("material", "diffuse")
    if given is None:
        return GRAY
    parts = given.numbers(3 if len(given.words()) == 3 else 4)
    r, g, b, opacity, *_ = (*(min(max(part, 0.0), 1.0) for part in parts), 1.0)
    return (r, g, b, opacity)


_Solids = list[tuple[SdfElement, Collision]]


def _inertia(link: SdfElement, name: str, scope: FrameScope, solids: _Solids, static: bool) -> Inertia:
    """Read what is given; without it, SDF says 1 kg with moments of 1 kg m², whatever the shape."""
    inertial = link.child("inertial")
    densities = {id(each): each.child("density") for each in link.children("collision")}
    if inertial is None:
        return UNIT_INERTIA
    mass = inertial.child("mass")
    with inertial.blamed():
        if inertial.says("auto"):
            usual = inertial.number_in("density", WATER)
            numbers = {key: usual if density is None else density.number() for key, density in densities.items()}
            whole = UNIT_INERTIA if static else _automatic(inertial, link, name, scope, solids, numbers)
            return whole if mass is None else scaled(whole, mass.number())
        moments = inertial.child("inertia")
        xx, yy, zz, xy, xz, yz = (
            default if moments is None else moments.number_in(tag, default)
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


# Reads <joint>.

_UNSUPPORTED = ("gearbox", "revolute2", "screw", "universal")


def read_joint(element: SdfElement, scope: FrameScope, prefix: str) -> Joint | None:
    """Read a joint; return None if it is of a kind that isn't supported, which is then noted."""
    name, kind = element.name(), element.attribute("type")
    if kind in _UNSUPPORTED:
        element.discard()
        element.note(f"joint {shown(name)} is of type {kind}, which isn't supported: it connects nothing")
        return None
    if kind == "continuous":
        kind = "revolute"
    elif kind not in JOINT_KINDS:
        known = (*JOINT_KINDS, "continuous")
        raise element.error(
            f"{shown(kind)} is no type of joint", nearest(kind, known) or f"there are {', '.join(known)}"
        )
    parent, child = element.needed("parent"), element.needed("child")
    held = scope.link_of(child.word(), child)
    anchor = _anchor(element, child.word(), held, scope)
    axis = element.child("axis") if kind in ("revolute", "prismatic") else None
    with element.blamed():
        joint = Joint(
            name=prefix + name,
            kind=cast("JointKind", kind),
            child=prefix + held,
            parent=None if parent.word() == "world" else prefix + scope.link_of(parent.word(), parent),
            anchor=anchor.position,
        )
    if axis is None:
        return joint
    with axis.blamed():
        joint = replace(joint, axis=_direction(axis, held, scope, anchor), **_dynamics(axis))
        return replace(joint, **_limits(axis, is_continuous=element.attribute("type") == "continuous"))


def _anchor(element: SdfElement, child: str, held: str, scope: FrameScope) -> Pose:
    """Return the joint's frame relative to the link that it holds."""
    pose = element.child("pose")
    if child == held and FrameScope.relative_to(pose) in (None, held):
        return local_pose(pose)
    return scope.pose_of(held, element).inverse().compose(scope.resolve(pose, child, element))


def _direction(axis: SdfElement, held: str, scope: FrameScope, anchor: Pose) -> Vector:
    """Return the axis in the frame of the link that the joint holds. It is written in the joint's own frame."""
    xyz = axis.child("xyz")
    vector = axis.vector_in("xyz", (0.0, 0.0, 1.0))
    size = length(vector)
    if xyz is not None and not 1e-9 < size < 1e9:
        raise xyz.error("an axis needs some length")
    unit = (vector[0] / size, vector[1] / size, vector[2] / size)
    frame = xyz.attribute("expressed_in") if xyz is not None else ""
    if axis.boolean_in("use_parent_model_frame"):
        frame = MODEL_FRAME
    if not frame:
        return anchor.rotate(unit)
    if frame == held:
        return unit
    return scope.pose_of(held, axis).inverse().rotate(scope.pose_of(frame, axis).rotate(unit))


def _dynamics(axis: SdfElement) -> dict[str, Any]:
    dynamics = axis.child("dynamics")
    found = {tag: dynamics.child(tag) for tag in ("damping", "friction")} if dynamics is not None else {}
    return {tag: given.number() for tag, given in found.items() if given is not None}


def _limits(axis: SdfElement, *, is_continuous: bool) -> dict[str, Any]:
    """Read a joint's limits. Of effort and velocity, SDF writes -1 for none."""
    limit = axis.child("limit")
    tags = ("effort", "velocity") if is_continuous else ("lower", "upper", "effort", "velocity")
    found = {tag: limit.child(tag) for tag in tags} if limit is not None else {}
    numbers = {tag: given.limit() for tag, given in found.items() if given is not None}
    return {tag: inf if tag in ("effort", "velocity") and number < 0 else number for tag, number in numbers.items()}


_NESTED_MAX = 20


def outline(element: SdfElement, models_in: Callable[[SdfElement], list[SdfElement]], depth: int = 0) -> FrameScope:
    """Collect all names in a model and in those nested in it, for poses may name what is written later.

    `models_in` returns the models that an element has or includes.
    """
    if depth > _NESTED_MAX:
        raise element.error(f"models are nested more than {_NESTED_MAX} deep", "does a file include itself?")
    models = models_in(element)  # First: it brings in what is merged.
    links = element.children("link")
    frames = FrameScope(element, MODEL_FRAME, [outline(each, models_in, depth + 1) for each in models])
    for link in links:
        frames.add(link, link=link.name())
    frames.add_nested()
    for joint in element.children("joint"):
        child = joint.child("child")
        held = child.word() if child is not None else None
        frames.add(joint, base=held, link=held)
    frames.add_frames()
    canonical = element.attribute("canonical_link")
    if canonical:
        frames.canonical_link = frames.link_of(canonical, element)
    elif links:
        frames.canonical_link = links[0].name()
    elif frames.nested:
        frames.canonical_link = frames.link_of(frames.nested[0].owner.name(), element)
    return frames


def read_model(model: FrameScope, pose: Pose) -> WorldModel:
    """Read a model of the world, at its pose there."""
    element = model.owner
    is_static = element.boolean_in("static")
    parts = ModelParts(is_static)
    _collect(model, ORIGIN, "", parts)
    read_plugins(element, parts)
    _note_unused_speeds(parts)
    for inner in model.nested:
        _note_nested(inner, is_static)
    with element.blamed(parts.about):
        return WorldModel(
            name=element.name(),
            pose=pose,
            static=is_static,
            self_collide=element.boolean_in("self_collide"),
            links=tuple(parts.links),
            joints=tuple(parts.joints),
            canonical_link=model.canonical_link or "",
            drive=parts.drive,
            commands=parts.commands,
            motion=parts.motion,
            motors=tuple(parts.motors),
            motor_commands=parts.motor_commands,
        )


def _collect(model: FrameScope, placed: Pose, prefix: str, parts: ModelParts) -> None:
    """Add the links and joints of a model whose frame is `placed` in the outermost one."""
    model.check()
    for element in model.owner.children("link"):
        parts.about["link", len(parts.links)] = element
        parts.links.append(read_link(element, model, placed, prefix, static=parts.static))
    for element in model.owner.children("joint"):
        joint = read_joint(element, model, prefix)
        if joint is not None:
            parts.about["joint", len(parts.joints)] = element
            parts.joints.append(joint)
    for inner in model.nested:
        name = inner.owner.name()
        with inner.owner.blamed():
            inner_placed = placed.compose(model.pose_of(name, inner.owner))
        _collect(inner, inner_placed, f"{prefix}{name}::", parts)


def _note_unused_speeds(parts: ModelParts) -> None:
    """Note limits of speed that aren't simulated: those of joints that nothing moves at a speed."""
    paced = {motor.joint for motor in parts.motors if motor.sets_speed}
    if isinstance(parts.drive, DiffDrive):
        paced.update(parts.drive.left_joints, parts.drive.right_joints)
    for index, joint in enumerate(parts.joints):
        if joint.velocity < inf and not (joint.is_locked or joint.name in paced or parts.static):
            velocity = parts.about["joint", index].at("axis", "limit", "velocity")
            if velocity is not None:
                velocity.remark("<velocity> in <limit> isn't simulated for joints that nothing moves at a speed")


def _note_nested(inner: FrameScope, is_static: bool) -> None:
    """Note what a nested model asks for that only an outermost one can have."""
    static = inner.owner.child("static")
    if static is not None and static.boolean() and not is_static:
        static.note("a model nested in one that moves can't be static: it moves along")
    for plugin in inner.owner.children("plugin"):
        note_plugin(plugin)
    for each in inner.nested:
        _note_nested(each, is_static)
