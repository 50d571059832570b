"""A probe of what decides about bits: a small world that each engine simulates once per process, for its fingerprint.

The versions of an engine and a processor's name don't tell everything apart: sines are those of the C library, and
matrices those of whatever NumPy was built with. So the fingerprint also has a hash of what comes out here. Equal ones
prove nothing for other worlds, but most differences of that kind show in it.

It has some of all that is computed in different ways: wheels, joints, contacts, a script that turns, and plates so thin
that their moments have to be corrected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from math import sin

from worldline.model.time import MS
from worldline.world.description import (
    Collision,
    DiffDrive,
    DriveCommand,
    Joint,
    RigidLink,
    ScriptedMotion,
    SpeedLimits,
    Waypoint,
    WorldDescription,
    WorldModel,
)
from worldline.world.engines.engine import PhysicsEngine
from worldline.world.inertia import WATER, Inertia, shape_inertia
from worldline.world.pose import ZERO, Pose, Vector
from worldline.world.shapes import BoxShape, CylinderShape, PlaneShape, Shape, SphereShape

_STEPS = 24
_PLATES = 8


@cache
def probe_digest(engine: Callable[[WorldDescription], PhysicsEngine]) -> str:
    """Return a short hash, in hex, of what an engine makes of the world below."""
    world = _probe_world()
    running = engine(world)
    movers = [name for name, model in world.models.items() if not model.static]
    group = running.build(movers, ["ground"])
    group.set_states(0, {name: running.initial_state(name) for name in movers})
    found = blake2b(digest_size=4)
    for _ in range(_STEPS):
        group.advance()
        found.update(b"".join(group.states().values()))
        found.update(group.packed_poses())
    return found.hexdigest()


def _probe_world() -> WorldDescription:
    ground = RigidLink(name="ground", collisions=(Collision(name="plane", shape=PlaneShape()),))
    wheel = CylinderShape(0.1, 0.05)
    robot = WorldModel(
        name="robot",
        pose=Pose.from_rpy((0.0, 0.0, 0.099), 0.0, 0.0, 0.7),
        links=(
            _solid("chassis", BoxShape((0.5, 0.3, 0.1)), ZERO),
            _solid("left", wheel, (0.1, 0.2, 0.0), roll=1.5707963267948966),
            _solid("right", wheel, (0.1, -0.2, 0.0), roll=1.5707963267948966),
            _solid("weight", SphereShape(0.05), (-0.2, 0.0, -0.04)),
        ),
        joints=(
            Joint(name="left", kind="revolute", child="left", parent="chassis"),
            Joint(name="right", kind="revolute", child="right", parent="chassis"),
            Joint(name="weight", kind="ball", child="weight", parent="chassis", anchor=(0.1, 0.0, 0.0)),
        ),
        drive=DiffDrive(
            left_joints=("left",),
            right_joints=("right",),
            wheel_separation=0.4,
            wheel_radius=0.1,
            linear=SpeedLimits(acceleration_min=-30.0, acceleration_max=30.0),
        ),
        commands=(DriveCommand(time=0, linear=(2.1, 0.0, 0.0), angular=(0.0, 0.0, 1.3)),),
    )
    script = ScriptedMotion(
        waypoints=(
            Waypoint(time=0, pose=Pose.from_rpy((0.45, 0.45, 0.2), 0.1, 0.2, 0.3)),
            Waypoint(time=110 * MS, pose=Pose.from_rpy((0.25, 0.25, 0.2), 0.7, -0.5, 1.9)),
        )
    )
    models = (
        WorldModel(name="ground", static=True, links=(ground,)),
        WorldModel(name="plates", links=tuple(map(_plate, range(_PLATES)))),
        WorldModel(name="pusher", links=(_solid("body", BoxShape((0.2, 0.3, 0.4)), ZERO),), motion=script),
        robot,
    )
    return WorldDescription(name="probe", step=5 * MS, models={model.name: model for model in models})


def _solid(name: str, shape: Shape, at: Vector, roll: float = 0.0) -> RigidLink:
    return RigidLink(
        name=name,
        pose=Pose.from_rpy(at, roll, 0.0, 0.0),
        inertia=shape_inertia(shape, WATER),
        collisions=(Collision(name=name, shape=shape),),
    )


def _plate(number: int) -> RigidLink:
    """Return a plate that falls, turned in a way of its own."""
    x, y, angle = 0.3 + 0.02 * number, 0.2 + 0.03 * number, 0.37 * number
    turned = Pose.from_rpy(ZERO, angle, sin(angle), 0.5 * angle)
    return RigidLink(
        name=f"plate_{number:02}",
        pose=Pose.from_rpy((1.0 + 0.5 * number, 1.0, 0.05), 0.1, 0.2, angle),
        inertia=Inertia(1.3, turned, (x, y, x + y, 0.0, 0.0, 0.0)),
        collisions=(Collision(name="plate", shape=BoxShape((y, x, 0.01))),),
    )
