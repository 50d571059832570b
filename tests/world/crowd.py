"""A crowded world of all that engines know, and ways to simulate it: as one model, in groups, in coarser groups.

    python -m tests.world.crowd STEPS

prints the digest of a run in groups, for a comparison between processes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from importlib.util import find_spec
from random import Random

import pytest

from worldline.model.time import MS
from worldline.world.description import (
    Collision,
    DiffDrive,
    DriveCommand,
    Friction,
    Joint,
    JointMotor,
    MotorCommand,
    PidGains,
    RigidLink,
    ScriptedMotion,
    SpeedLimits,
    VelocityDrive,
    Waypoint,
    WorldDescription,
    WorldModel,
)
from worldline.world.engines import open_engine
from worldline.world.engines.engine import PhysicsEngine, SimulatedGroup
from worldline.world.groups import Mover, find_groups
from worldline.world.pose import Pose, Vector
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    PlaneShape,
    Shape,
    SphereShape,
    scaled,
    shape_inertia,
)

needs_mujoco = pytest.mark.skipif(find_spec("mujoco") is None, reason="MuJoCo isn't installed")
ENGINES = ("kinematic", pytest.param("mujoco", marks=needs_mujoco))

TURN = 1.5707963267948966
Parts = tuple[tuple[str, ...], ...]


def solid(
    name: str, shape: Shape, mass: float = 1.0, at: Vector = (0, 0, 0), roll: float = 0.0, mu: float = 0.8
) -> RigidLink:
    return RigidLink(
        name=name,
        pose=Pose.from_rpy(at, roll, 0.0, 0.0),
        inertia=scaled(shape_inertia(shape, 1000.0), mass),
        collisions=(Collision(name=name, shape=shape, friction=Friction(mu, mu)),),
    )


def ground() -> WorldModel:
    return WorldModel(
        name="ground", static=True, links=(RigidLink(name="g", collisions=(Collision(name="g", shape=PlaneShape()),)),)
    )


def wall(name: str, at: Vector, size: Vector = (0.2, 2.0, 1.0)) -> WorldModel:
    shape = Collision(name="w", shape=BoxShape(size))
    return WorldModel(name=name, static=True, pose=Pose(at), links=(RigidLink(name="w", collisions=(shape,)),))


def thing(name: str, shape: Shape, at: Vector, mass: float = 1.0, yaw: float = 0.0) -> WorldModel:
    return WorldModel(name=name, pose=Pose.from_rpy(at, 0.1 * yaw, 0.2 * yaw, yaw), links=(solid("body", shape, mass),))


def robot(name: str, x: float, y: float, yaw: float, speed: float, *, turning: float = 0.0) -> WorldModel:
    wheel = CylinderShape(0.15, 0.06)
    return WorldModel(
        name=name,
        pose=Pose.from_rpy((x, y, 0.15), 0.0, 0.0, yaw),
        links=(
            solid("chassis", BoxShape((0.6, 0.4, 0.16)), 10.0, (0, 0, 0.05)),
            solid("left_wheel", wheel, 1.0, (0.12, 0.25, 0), -TURN, 1.0),
            solid("right_wheel", wheel, 1.0, (0.12, -0.25, 0), -TURN, 1.0),
            solid("slider", SphereShape(0.05), 0.5, (-0.2, 0, -0.1), mu=0.0),
        ),
        joints=(
            Joint(name="left", kind="revolute", child="left_wheel", parent="chassis", damping=0.01, effort=50.0),
            Joint(name="right", kind="revolute", child="right_wheel", parent="chassis", damping=0.01),
            Joint(name="mount", kind="fixed", child="slider", parent="chassis"),
        ),
        canonical_link="chassis",
        drive=DiffDrive(
            left_joints=("left",),
            right_joints=("right",),
            wheel_separation=0.5,
            wheel_radius=0.15,
            linear=SpeedLimits(acceleration_min=-5.0, acceleration_max=5.0),
        ),
        commands=(
            DriveCommand(time=0, linear=(speed, 0, 0), angular=(0, 0, turning)),
            DriveCommand(time=301 * MS, linear=(-speed, 0, 0)),
        ),
    )


def pendulum(name: str, x: float, y: float) -> WorldModel:
    """Hangs from the world by a hinge with limits; a ball joint and a slide hang below."""
    rod, weight = CapsuleShape(0.05, 0.3), SphereShape(0.1)
    return WorldModel(
        name=name,
        pose=Pose.from_rpy((x, y, 1.5), 0.5, 0.0, 0.0),
        links=(
            solid("rod", rod, 2.0),
            solid("second", rod, 0.5, (0, 0, -0.5)),
            solid("weight", weight, 0.05, (0, 0, -0.9)),
        ),
        joints=(
            Joint(
                name="hinge",
                kind="revolute",
                child="rod",
                parent=None,
                anchor=(0, 0, 0.2),
                axis=(1, 0, 0),
                lower=-0.3,
                upper=0.2,
                friction=0.01,
            ),
            Joint(name="ball", kind="ball", child="second", parent="rod", anchor=(0, 0, 0.25), damping=0.01),
            Joint(name="slide", kind="prismatic", child="weight", parent="second", lower=-0.2, upper=0.1),
        ),
    )


def crane(name: str, x: float, y: float) -> WorldModel:
    """Stands on the ground, turns and lifts: by a controller, at a speed and by a force."""
    return WorldModel(
        name=name,
        pose=Pose((x, y, 0.2)),
        links=(
            solid("foot", BoxShape((0.5, 0.5, 0.4)), 20.0),
            solid("boom", BoxShape((1.0, 0.1, 0.1)), 1.0, (0.3, 0, 0.4)),
            solid("hook", SphereShape(0.1), 0.5, (0.7, 0, 0.2)),
        ),
        joints=(
            Joint(name="turn", kind="revolute", child="boom", parent="foot", anchor=(-0.3, 0, 0), damping=0.1),
            Joint(name="lift", kind="prismatic", child="hook", parent="boom", lower=-0.4, upper=0.3, effort=30.0),
        ),
        canonical_link="foot",
        motors=(
            JointMotor(joint="turn", kind="position", topic="turn", initial=0.5, gains=PidGains(p=9.0, i=1.0, d=1.0)),
            JointMotor(joint="lift", kind="velocity", topic="/lift", initial=0.3),
            JointMotor(joint="turn", kind="force", topic="push", initial=0.2),
        ),
        motor_commands=(MotorCommand(time=150 * MS, topic="/lift", value=-0.5),),
    )


def crowd(seed: int = 0) -> WorldDescription:
    """Robots that meet head on, a stack that falls, pendulums, a scripted pusher, and a hovering pusher."""
    random = Random(seed)
    models = [
        ground(),
        wall("wall_near", (1.9, 0.0, 0.5)),
        wall("wall_far", (50.0, 50.0, 0.5)),
        robot("robot_a", -1.2, 0.0, 0.0, 1.5),
        robot("robot_b", 0.0, 0.1, 2 * TURN, 1.2, turning=0.3),
        robot("robot_c", 6.0, 0.0, TURN, 1.0, turning=1.0),
        pendulum("pendulum", 4.0, 4.0),
        crane("crane", 1.0, 3.0),
        WorldModel(
            name="hoverer",
            pose=Pose((-4.0, 4.0, 0.5)),
            links=(solid("body", BoxShape((0.4, 0.4, 0.4)), 3.0),),
            drive=VelocityDrive(linear=(2.0, 0, 0), angular=(0, 0, 0.5)),
        ),
        WorldModel(
            name="pusher",
            pose=Pose((-4.0, -4.0, 0.3)),
            links=(solid("body", BoxShape((0.4, 1.0, 0.4))),),
            motion=ScriptedMotion(
                waypoints=(
                    Waypoint(time=0, pose=Pose((-4.0, -4.0, 0.3))),
                    Waypoint(time=250 * MS, pose=Pose.from_rpy((-3.2, -4.0, 0.3), 0.0, 0.0, 0.4)),
                    Waypoint(time=500 * MS, pose=Pose((-4.0, -4.0, 0.3))),
                ),
                loop=True,
            ),
        ),
        thing("pushed", BoxShape((0.3, 0.3, 0.3)), (-3.5, -4.0, 0.15), 0.2),
        thing("hit", SphereShape(0.2), (-3.2, 4.0, 0.5), 0.01),
    ]
    for number in range(5):
        shape = (BoxShape((0.3, 0.2, 0.25)), SphereShape(0.15), CylinderShape(0.15, 0.3), CapsuleShape(0.1, 0.2))[
            number % 4
        ]
        at = (4.0 + random.uniform(-0.1, 0.1), -4.0 + random.uniform(-0.1, 0.1), 0.3 + 0.35 * number)
        models.append(thing(f"stack_{number}", shape, at, 10.0 ** random.uniform(-2, 2), random.uniform(0, 3)))
    return WorldDescription(name="crowd", step=2 * MS, models={model.name: model for model in models})


def movers_of(world: WorldDescription) -> tuple[str, ...]:
    return tuple(name for name, model in world.models.items() if not model.static)


def statics_of(world: WorldDescription) -> tuple[str, ...]:
    return tuple(name for name, model in world.models.items() if model.static)


def started(engine: PhysicsEngine, world: WorldDescription) -> SimulatedGroup:
    """Return a whole world as one group, at its beginning."""
    group = engine.build(movers_of(world), statics_of(world))
    group.set_states(0, {name: engine.initial_state(name) for name in group.movers})
    return group


def whole(world: WorldDescription, steps: int) -> Iterator[dict[str, bytes]]:
    """Yield the states after each step of one model that nobody ever touches."""
    group = started(open_engine("mujoco", world), world)
    for _ in range(steps):
        group.advance()
        yield group.states()


def same(parts: Parts) -> Parts:
    return parts


def grouped(
    world: WorldDescription,
    steps: int,
    *,
    every: int = 1,
    join: Callable[[Parts], Parts] = same,
    fresh: bool = False,
    seen: set[Parts] | None = None,
    start: int = 0,
    states: dict[str, bytes] | None = None,
) -> Iterator[dict[str, bytes]]:
    """Yield the states after each step of groups that are looked at every so many steps.

    `join` may make groups coarser. States move to new models when groups change, or always if `fresh`. `states` are
    those at the step `start`.
    """
    engine = open_engine("mujoco", world)
    states = states or {name: engine.initial_state(name) for name in movers_of(world)}
    running = _built(engine, world, tuple((name,) for name in sorted(states)), start, states)
    for step in range(start, start + steps):
        if (step - start) % every == 0:
            parts = join(_parts(running, every, world.step))
            if seen is not None:
                seen.add(parts)
            if fresh or parts != tuple(running):
                running = _built(engine, world, parts, step, states)
                for group in running.values():
                    group.extents(every)
        after: dict[str, bytes] = {}
        for group in running.values():
            group.advance()
            after |= group.states()
        states = {name: after[name] for name in sorted(after)}
        yield states


def _parts(running: Mapping[tuple[str, ...], SimulatedGroup], every: int, step_ns: int) -> Parts:
    movers = [
        Mover(name, extent.center, extent.half, extent.speed)
        for group in running.values()
        for name, extent in group.extents(every).items()
    ]
    return tuple(group.members() for group in find_groups(movers, every * step_ns))


def _built(
    engine: PhysicsEngine, world: WorldDescription, parts: Parts, step: int, states: Mapping[str, bytes]
) -> dict[tuple[str, ...], SimulatedGroup]:
    running = {}
    for part in parts:
        running[part] = engine.build(part, statics_of(world))
        running[part].set_states(step, {name: states[name] for name in part})
    return running


def digest(history: Iterator[dict[str, bytes]]) -> str:
    found = blake2b(digest_size=16)
    for states in history:
        for name, state in states.items():
            found.update(name.encode() + state)
    return found.hexdigest()


if __name__ == "__main__":
    print(digest(grouped(crowd(), int(sys.argv[1]))))
