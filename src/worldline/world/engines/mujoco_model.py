"""Builds MuJoCo's models from the description, always in one way: entity by entity, link by link, at the file's poses.

Friction: Gazebo takes the smaller coefficient of two shapes, MuJoCo the larger one, except that a geom of higher
priority decides alone. So a geom's priority is the higher the smaller its coefficient is. The smaller one of `mu` and
`mu2` counts in all directions.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite
from struct import pack
from typing import Any, NamedTuple

import mujoco
import numpy as np

from worldline.model.errors import ConfigurationError
from worldline.model.time import SECOND
from worldline.world.description import (
    Collision,
    DiffDrive,
    Joint,
    RigidLink,
    VelocityDrive,
    WorldDescription,
    WorldModel,
)
from worldline.world.pose import ORIGIN, Pose
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    Moments,
    PlaneShape,
    SphereShape,
    combined,
)

MOTOR_LAG = 0.01  # Seconds that velocity drives take for most of the way to a new speed.
_WHEEL_LAG = 2e-3  # The same for wheels: 10 ms let a load slow them down by percents, and without a lag they hop.
_SERVO_LAG = 1e-4  # The same for other joints. Gazebo's have none.
_GRIP = 100.0  # How much harder friction is than contacts: with 1, what rests on a slope creeps. Costs solver time.
_SINKING = 0.001  # Meters by which contacts give way at most, whatever rests on them.
_UNLIMITED = 1e9  # Radians or meters: what a joint's open end is, for MuJoCo knows only two limits or none.


def link_tree(model: WorldModel) -> list[tuple[RigidLink, Joint | None]]:
    """Return the links in the order of their bodies, each with the joint that holds it: roots by name, depth first."""
    held = {joint.child: joint for joint in model.joints}
    below: dict[str | None, list[RigidLink]] = {}
    for link in model.links:
        parent = held[link.name].parent if link.name in held else None
        below.setdefault(parent, []).append(link)
    ordered = []
    waiting = below.get(None, [])[::-1]
    while waiting:
        link = waiting.pop()
        ordered.append((link, held.get(link.name)))
        waiting += below.get(link.name, [])[::-1]
    return ordered


class MujocoBuilder:
    """Builds one model, entity by entity."""

    def __init__(self, world: WorldDescription) -> None:
        self.bodies: dict[tuple[str, str], Any] = {}
        self.servos: dict[tuple[str, str], Servo] = {}  # By model and joint.
        self._seconds = world.step / SECOND
        self._spec = spec = mujoco.MjSpec()
        spec.compiler.degree = False
        option = spec.option
        option.timestep = self._seconds
        option.gravity = world.gravity
        option.jacobian = mujoco.mjtJacobian.mjJAC_SPARSE
        option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        option.impratio = _GRIP
        option.disableflags = int(mujoco.mjtDisableBit.mjDSBL_WARMSTART) | int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)

    def compiled(self) -> tuple[Any, Any]:
        try:
            model = self._spec.compile()
        except ValueError as error:
            raise ConfigurationError(
                f"MuJoCo can't build {', '.join(sorted({e for e, _ in self.bodies}))}: {error}"
            ) from error
        return model, mujoco.MjData(model)

    def add(self, model: WorldModel) -> None:
        fixed = model.static or model.motion is not None
        tree: list[tuple[RigidLink, Joint | None]] = (
            [(link, None) for link in model.links] if fixed else link_tree(model)
        )
        links = {link.name: link for link in model.links}
        wheels = _wheels(model)
        for link, held in tree:
            parent = held.parent if held is not None else None
            if parent is None:
                above, pose = self._spec.worldbody, model.pose.compose(link.pose)
            else:
                above, pose = self.bodies[model.name, parent], links[parent].pose.inverse().compose(link.pose)
            body = above.add_body(name=_name(model, link.name), pos=pose.position, quat=pose.quaternion)
            self.bodies[model.name, link.name] = body
            body.mocap = model.motion is not None
            if not model.static:
                self._weigh(body, link)
                held_up = isinstance(model.drive, VelocityDrive) or not link.gravity
                body.gravcomp = 1.0 if held_up else 0.0
            if not fixed:
                self._hold(body, model, held)
            for collision in link.collisions:
                for part in _crowned(collision) if link.name in wheels else (collision,):
                    _add_geom(body, part)
        if not fixed and not model.self_collide:
            solid = [link for link in model.links if link.collisions]
            for number, one in enumerate(solid):
                for other in solid[number + 1 :]:
                    self._spec.add_exclude(bodyname1=_name(model, one.name), bodyname2=_name(model, other.name))
        if isinstance(model.drive, DiffDrive):
            self._add_wheels(model, model.drive)
        for motor in model.motors:
            if motor.sets_speed:
                self._add_servo(model, motor.joint, _moved_inertia(model, motor.joint), _SERVO_LAG)

    def _weigh(self, body: Any, link: RigidLink) -> None:
        inertia = combined([(ORIGIN, link.inertia)])  # Its moments along the link's own axes.
        body.explicitinertial = True
        body.mass = inertia.mass
        body.ipos = inertia.pose.position
        body.fullinertia = _possible(inertia.moments)

    def _hold(self, body: Any, model: WorldModel, held: Joint | None) -> None:
        if held is None:
            body.add_freejoint()
            return
        if held.kind == "fixed":
            return
        kinds = {
            "revolute": mujoco.mjtJoint.mjJNT_HINGE,
            "prismatic": mujoco.mjtJoint.mjJNT_SLIDE,
            "ball": mujoco.mjtJoint.mjJNT_BALL,
        }
        joint = body.add_joint(name=_name(model, held.name), type=kinds[held.kind], pos=held.anchor, axis=held.axis)
        joint.damping[0] = held.damping
        joint.frictionloss = held.friction
        if held.kind != "ball" and (isfinite(held.lower) or isfinite(held.upper)):
            joint.limited = mujoco.mjtLimited.mjLIMITED_TRUE
            joint.range = (max(held.lower, -_UNLIMITED), min(held.upper, _UNLIMITED))

    def _add_wheels(self, model: WorldModel, drive: DiffDrive) -> None:
        wheels = (*drive.left_joints, *drive.right_joints)
        mass = 0.0
        for link in model.links:
            mass += link.inertia.mass
        for wheel in wheels:
            self._add_servo(model, wheel, mass / len(wheels) * drive.wheel_radius * drive.wheel_radius, _WHEEL_LAG)

    def _add_servo(self, model: WorldModel, name: str, inertia: float, lag: float) -> None:
        """Have a joint kept at a speed, against all that resists. `inertia` is about how hard it is to move.

        The force is a multiple of what is missing of the speed, and MuJoCo reckons with what comes of it within a
        step, so it may be large. But a limit of the force would be unknown to that reckoning, and the speed would jump
        to and fro. So the speed that a servo of limited effort is told is limited instead (`Servo.reach`), and its lag
        is a step at least, so that it has half of its effort to speed up with.
        """
        (joint,) = (each for each in model.joints if each.name == name)
        stiffness = inertia / (lag if joint.effort == inf else max(_WHEEL_LAG, self._seconds))
        servo = self._spec.add_actuator(target=_name(model, name), trntype=mujoco.mjtTrn.mjTRN_JOINT)
        servo.set_to_velocity(kv=stiffness)
        self.servos[model.name, name] = Servo(servo, joint.velocity, joint.effort / stiffness)


class Servo(NamedTuple):
    """An actuator that keeps a joint at a speed, the fastest one, and how much faster than it is it may be told."""

    actuator: Any
    speed_max: float
    reach: float


def _moved_inertia(model: WorldModel, name: str) -> float:
    """Return about how hard it is to move a joint: the mass of all that hangs on it, or their moments about it."""
    (joint,) = (each for each in model.joints if each.name == name)
    links = {link.name: link for link in model.links}
    center = links[joint.child].pose.place(joint.anchor)
    found = 0.0
    hanging = [joint.child]
    while hanging:
        link = links[hanging.pop()]
        inertia = link.inertia
        x, y, z = (a - b for a, b in zip(link.pose.place(inertia.pose.position), center, strict=True))
        turned = inertia.mass * (x * x + y * y + z * z) + max(inertia.moments[:3])
        found += inertia.mass if joint.kind == "prismatic" else turned
        hanging += [each.child for each in model.joints if each.parent == link.name]
    return found


def _possible(moments: Moments) -> Moments:
    """Return moments of which MuJoCo takes none to be larger than the other two together.

    The description tolerates moments that break this by their last digits, as those of thin plates do. What is missing
    is added to all three: that changes the sum of two by twice as much as the third.
    """
    xx, yy, zz, xy, xz, yz = moments
    least, middle, most = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).tolist()
    missing = most - least - middle
    if missing < -1e-9 * most:
        return moments
    more = missing + 2e-9 * most
    return (xx + more, yy + more, zz + more, xy, xz, yz)


def _name(model: WorldModel, part: str) -> str:
    """Return how a link or joint of a model is called; with the length, no two can be mixed up."""
    return f"{len(model.name)} {model.name} {part}"


def entity_of(name: str) -> str:
    """Return the model of which a part is called so."""
    length, _, rest = name.partition(" ")
    return rest[: int(length)]


def _wheels(model: WorldModel) -> frozenset[str]:
    """Return the links that a drive turns."""
    if not isinstance(model.drive, DiffDrive):
        return frozenset()
    turned = {*model.drive.left_joints, *model.drive.right_joints}
    return frozenset(joint.child for joint in model.joints if joint.name in turned)


def _crowned(wheel: Collision) -> tuple[Collision, ...]:
    """Return a wheel's cylinder with a tread along its middle, by a hair larger than the rest, as tires are crowned.

    MuJoCo has a cylinder stand on the two ends of a line. Then a vehicle turns about the outer ends of its wheels, so
    it turns too slowly, by as much as its wheels are broad.
    """
    shape = wheel.shape
    if not isinstance(shape, CylinderShape):
        return (wheel,)
    lower = shape.radius - min(shape.radius / 10, max(shape.radius / 100, _SINKING))
    tread, rim = CylinderShape(shape.radius, shape.length / 50), CylinderShape(lower, shape.length)
    return replace(wheel, shape=tread), replace(wheel, shape=rim)


def _add_geom(body: Any, collision: Collision) -> None:
    pose = collision.pose
    kinds = mujoco.mjtGeom
    size: tuple[float, ...]
    match collision.shape:
        case BoxShape((x, y, z)):
            kind, size = kinds.mjGEOM_BOX, (x / 2, y / 2, z / 2)
        case SphereShape(radius):
            kind, size = kinds.mjGEOM_SPHERE, (radius, 0, 0)
        case CylinderShape(radius, height):
            kind, size = kinds.mjGEOM_CYLINDER, (radius, height / 2, 0)
        case CapsuleShape(radius, height):
            kind, size = kinds.mjGEOM_CAPSULE, (radius, height / 2, 0)
        case EllipsoidShape(radii):
            kind, size = kinds.mjGEOM_ELLIPSOID, radii
        case PlaneShape(normal):
            kind, size = kinds.mjGEOM_PLANE, (0, 0, 1)  # Without end.
            pose = pose.compose(Pose.facing(normal))
    mu, torsion = min(collision.friction.mu, collision.friction.mu2), collision.friction.torsion
    geom = body.add_geom(type=kind, size=size, pos=pose.position, quat=pose.quaternion)
    geom.friction = (mu, torsion, 0.0)
    geom.condim = 4 if torsion else 3 if mu else 1
    geom.priority = -int.from_bytes(pack(">f", min(mu, 1e30)))  # The bits of floats above 0 have the order of floats.
