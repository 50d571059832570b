"""What a physics engine must do: two small classes, which the world's runner knows and every engine derives from.

Theory of operation
-------------------
An *engine* knows the whole world description and is the same in every process. A *simulated group* is one physics
model: some movers and the static entities around them, wherever it is hosted. Its secondary gives it the states of its
movers at a step, steps it, and takes the states out again.

What every engine guarantees:

E1. A state is exact and complete. Setting a state that was got changes nothing that follows: it may be set in a fresh
    model, in another process of the same kind of machine, after every step. Nothing else is carried from model to
    model. What follows from the step alone (scripted motions, the file's commands to come) isn't in it.
E2. Models are built in one way: statics first, then movers, both by name, and always at the poses of the file. How the
    names were given and what happened before can't show.
E3. The bits of a mover depend only on what it touches, directly or through others, not on what else is in its model.
    So groups may merge, split and be coarser than needed, as long as movers that touch are in one of them.
E4. Extents are honest. Until the given number of steps has passed, every link stays in its entity's box grown by
    speed × time. A mover that turns out faster is a `ModelError` with the fact `too_fast`, because a contact may have
    been missed: its secondary goes back, and looks again before that step.
E5. Whatever isn't finite, or can't be computed, is a `ModelError` with the entity and the step. No engine repairs or
    resets anything in silence.

What isn't promised: equal bits on different processors, or by different versions of an engine or of the libraries that
it computes with. `fingerprint` tells them apart at joining.

Times are steps: the state at step n is the one at n × the world's step size. A file's command is in force from the
first step at or after its time. One that is given at step n comes after the file's for n, and before n + 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from hashlib import blake2b
from math import hypot, inf, isfinite, sin
from typing import NamedTuple

from worldline.model.errors import ModelError, UsageError, shown
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
from worldline.world.engines.drives import DrivenMover
from worldline.world.pose import ZERO, Pose, Vector, length
from worldline.world.shapes import (
    WATER,
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    Inertia,
    PlaneShape,
    Shape,
    SphereShape,
    shape_inertia,
)

RATE_MAX = 1e6
"""The fastest command that is taken, in meters and radians per second."""

FORCE_MAX = 1e9
"""The largest command that a motor takes, in meters, radians, newtons and all that."""

FAR_MAX = 1e9
"""How far from the origin a model may be put, along each axis, in meters: doubles are 0.1 µm apart there."""


class Extent(NamedTuple):
    """A box that holds an entity in any orientation of its links, and the speed that none of these exceeds (E4)."""

    center: Vector
    half: Vector
    speed: float


class MoverSeen(NamedTuple):
    """What groups and hand-overs need of a mover: its exact state, its position, and its extent."""

    state: bytes
    position: Vector
    extent: Extent


class SimulatedGroup(ABC):
    """One physics model. It has no states until `set_states` gave it some; `step` is the one that it has reached."""

    _tracks: Mapping[str, DrivenMover]

    def __init__(
        self, world: WorldDescription, movers: tuple[WorldModel, ...], statics: tuple[WorldModel, ...]
    ) -> None:
        self.step = 0
        self.movers = tuple(model.name for model in movers)
        self.statics = tuple(model.name for model in statics)
        self._world = world

    def set_states(self, step: int, states: Mapping[str, bytes]) -> None:
        """Put all movers into these states, which they have at this step."""
        if sorted(states) != list(self.movers):
            raise UsageError(f"states of {shown(sorted(states))} are no states of {shown(list(self.movers))}")
        self.step = step

    @abstractmethod
    def states(self) -> dict[str, bytes]:
        """Return the exact states of all movers, by name."""

    def command(self, entity: str, linear: Vector, angular: Vector) -> None:
        """Have an entity's drive move like this from now on, until the file's next command."""
        self._check_mover(entity)
        if self._tracks[entity].model.drive is None:
            raise UsageError(f"model {shown(entity)} has no drive")
        self._tracks[entity].wanted = checked_twist(linear, angular)

    @abstractmethod
    def command_motors(self, entity: str, topic: str, value: float) -> None:
        """Have those of an entity's motors that hear a topic do this from now on, until the file's next command."""

    @abstractmethod
    def place(self, entity: str, pose: Pose) -> None:
        """Put an entity somewhere else, as the file has it but for the pose, and at rest."""

    @abstractmethod
    def advance(self, steps: int = 1) -> None: ...

    @abstractmethod
    def packed_positions(self) -> bytes:
        """Return where the movers are, one after the other, as little-endian doubles: cheap enough for every step."""

    @abstractmethod
    def packed_poses(self) -> bytes:
        """Return where all links are, mover by mover, in the order of each model's links, relative to the world.

        These are little-endian doubles: x, y, z, and the quaternion's w, x, y, z.
        """

    @abstractmethod
    def contacts(self) -> dict[tuple[str, str], float]:
        """Return the pairs of entities that touched when the last step was computed; none before the first.

        With each goes how deep they were in each other at most, in meters; below 0 if they were apart.
        """

    @abstractmethod
    def extents(self, steps: int) -> dict[str, Extent]:
        """Return what the groups have to know about each mover if they are next looked at after this many steps.

        The speeds hold as long as no other mover joins the group: `limit_speeds` says otherwise.
        """

    @abstractmethod
    def limit_speeds(self, speed: float) -> None:
        """Have any mover that gets faster end the run, until the next look (E4)."""

    def _check_mover(self, entity: str) -> None:
        if entity not in self._tracks:
            raise UsageError(f"model {shown(entity)} isn't in this group")


class PhysicsEngine(ABC):
    """Builds groups of one world."""

    def __init__(self, world: WorldDescription) -> None:
        self.world = world

    def change_world(self, world: WorldDescription) -> None:
        """Build groups of this world from now on: the same, with other models in it."""
        self.world = world

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """All that decides about bits; processes of one run must have the same. It ends with a hash of a small run."""

    @abstractmethod
    def initial_state(self, entity: str, step: int = 0) -> bytes:
        """Return a mover's state if it first appears at this step: as in the file."""

    @abstractmethod
    def newcomer(self, entity: str, step: int, steps: int) -> MoverSeen:
        """Return what is to be known of a mover that first appears at this step, if the next look is `steps` later."""

    @abstractmethod
    def build(self, movers: Iterable[str], statics: Iterable[str] = ()) -> SimulatedGroup: ...


def agreement(engine: PhysicsEngine) -> dict[str, str]:
    """Return what a primary and its secondaries must have in common, or their bits would differ."""
    return {"world": engine.world.content_hash(), "physics": engine.fingerprint}


def sorted_parts(
    world: WorldDescription, movers: Iterable[str], statics: Iterable[str]
) -> tuple[tuple[WorldModel, ...], tuple[WorldModel, ...]]:
    """Return the models of a group, each kind by name (E2), and check that they are of their kind."""
    found: list[tuple[WorldModel, ...]] = []
    for names, static in ((movers, False), (statics, True)):
        models = []
        for name in sorted(set(names)):
            model = _known_model(world, name)
            if model.static != static:
                raise UsageError(f"model {shown(name)} is {'not ' if static else ''}static")
            models.append(model)
        found.append(tuple(models))
    return found[0], found[1]


def _known_model(world: WorldDescription, name: str) -> WorldModel:
    try:
        return world.models[name]
    except KeyError:
        raise UsageError(f"there is no model {shown(name)}", advice="use a name of the world's file") from None


def checked_twist(linear: Vector, angular: Vector) -> tuple[Vector, Vector]:
    """Return a command if a drive can do anything with it."""
    if len(linear) != 3 or len(angular) != 3 or not all(map(isfinite, (*linear, *angular))):
        raise UsageError(f"a command needs two vectors of finite numbers, not {shown((linear, angular))}")
    if not all(abs(number) <= RATE_MAX for number in (*linear, *angular)):
        raise UsageError(
            f"a command of {shown((linear, angular))} is too fast for any physics",
            advice=f"command at most {RATE_MAX:g} m/s and rad/s along each axis",
        )
    return linear, angular


def checked_motor_command(value: float) -> float:
    """Return a motor's command if it can do anything with it."""
    if not abs(value) <= FORCE_MAX:
        raise UsageError(f"a motor needs a finite number up to {FORCE_MAX:g}, not {shown(value)}")
    return value


def checked_pose(pose: Pose) -> Pose:
    """Return a pose that a model is to have, if physics can still tell its surroundings apart there."""
    if not all(abs(number) <= FAR_MAX for number in pose.position):
        raise UsageError(
            f"{shown(pose.position)} is too far away for any physics",
            advice=f"stay within {FAR_MAX:g} m of the origin along each axis",
        )
    return pose


def check_extents(extents: Mapping[str, Extent], step: int, step_ns: int) -> None:
    """See that all figures are finite (E5): a file may ask for more than numbers can say."""
    for name, ((x, y, z), (a, b, c), speed) in extents.items():
        if not isfinite(x + y + z + a + b + c + speed):
            raise ModelError(
                f"model {shown(name)} is too far away or too fast to go on, in step {step}: within "
                f"{shown((a, b, c))} of {shown((x, y, z))}, at up to {speed:g} m/s",
                at=step * step_ns,
                advice="command less, or place it nearer to the origin",
                entity=name,
                step=step,
            )


# Extents: how much room a model's links take up, however they are turned.


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


# A probe of what decides about bits: a small world that each engine simulates once per process, for its fingerprint.
#
# The versions of an engine and a processor's name don't tell everything apart: sines are those of the C library, and
# matrices those of whatever NumPy was built with. So the fingerprint also has a hash of what comes out here. Equal ones
# prove nothing for other worlds, but most differences of that kind show in it.
#
# It has some of all that is computed in different ways: wheels, joints, contacts, a script that turns, and plates so
# thin that their moments have to be corrected.

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
