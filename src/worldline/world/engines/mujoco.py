"""MuJoCo as physics engine: one model for each group.

What makes the guarantees of `engine` hold:

*States (E1).* With these options, all that a step uses of the last one is qpos and qvel: the solver starts cold, there
are no activations, nothing sleeps. Controls and applied forces are set in every step from the drive's own state: the
command in force and, for wheels, the speeds that the ramp has reached; and from that of motors: what they were told,
and what their controllers carry along. MuJoCo's clock isn't used.

*Builds (E2).* A model is built by `MjSpec` from the description, in one order. MuJoCo derives weights for its solver
from the initial poses, so these are always the file's.

*Independence (E3).* MuJoCo doesn't promise it. It was measured, for the pinned version, and `tests/world` measures it
again. It takes all of these, and each was seen to be needed: a sparse Jacobian and islands, so that trees that don't
touch are solved as if alone; no warm start, which carries more than the state; the integrator IMPLICITFAST. The unit is
the group in any case, so this is the second line of defense: the same groups give the same bits without it. And the
weights that MuJoCo derives at the file's poses depend, in their last bits, on what else is in the model. So each mover
is also built alone, once, and has the weights of that model in all others.

*Extents (E4).* A link's collisions are in a ball around its origin, which turning doesn't change. How fast origins can
move follows from qvel: each rotation counts with the longest arm that it could have had in the step. Slides make arms
longer, and neither open ends nor soft limits say by how much, so they count as far as they are out. A push may make
something faster, so the bound is twice that of the fastest in the group, scripted or not, and more. After every step it
is compared with what happened; and at every look, the boxes are compared with what was said of them at the last.

*Failures (E5).* By default, MuJoCo answers numbers that aren't finite by a reset of the whole model, and writes a log
file. Both are disabled. Each of its warnings is an error here.

A velocity drive is a force toward the commanded velocity, and its model's weight is held. Setting the velocity itself
would press it into walls: contacts are soft, and would have only one step to stop it.

Deliberately not handled: limits of speed of joints that nothing moves at a speed; velocities of scripted models, which
push what is in their way but don't drag along what lies on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import dist, inf
from operator import mul
from platform import machine
from struct import Struct, pack, unpack
from sys import byteorder
from typing import Any, NamedTuple

import mujoco
import numpy as np

from worldline.model.errors import ConfigurationError, ModelError, UsageError, shown
from worldline.model.time import SECOND
from worldline.world.description import (
    DiffDrive,
    Joint,
    JointMotor,
    RigidLink,
    VelocityDrive,
    WorldDescription,
    WorldModel,
)
from worldline.world.engines.drives import (
    DrivenMover,
    MotorState,
    Twist,
    command_in_force,
    command_steps,
    controlled,
    motor_command_steps,
    motor_commands_in_force,
    motor_speed,
    pose_at,
    scripted_speed,
    wheel_speeds,
)
from worldline.world.engines.engine import (
    Extent,
    MoverSeen,
    PhysicsEngine,
    SimulatedGroup,
    check_extents,
    checked_motor_command,
    checked_pose,
    link_radius,
    model_arm,
    probe_digest,
    sorted_parts,
)
from worldline.world.engines.mujoco_model import MOTOR_LAG, MujocoBuilder, Servo, entity_of, link_tree
from worldline.world.pose import Pose, Vector, cross, length

_SPEED_SPARE = 5.0  # Meters per second that a push may add to twice the fastest speed of a group.
_SPEED_MAX = 1e8  # Whatever is faster has exploded.
_SMALL = 8  # Movers of a group that is small.
_POINT = Struct("<3d")
_MOTOR = Struct("<3d")  # Its state.

# Without a handler, MuJoCo writes them to a file in the current directory. They are counted in the data all the same.
mujoco.set_mju_user_warning(lambda _text: None)


class MujocoEngine(PhysicsEngine):
    """Simulates rigid bodies with contacts, friction and joints."""

    def __init__(self, world: WorldDescription) -> None:
        super().__init__(world)
        self._alone: dict[str, _Alone] = {}

    def change_world(self, world: WorldDescription) -> None:
        self._alone = {
            name: alone
            for name, alone in self._alone.items()
            if name in world.models and _is_same(world.models[name], self.world.models[name])
        }
        self.world = world

    @property
    def fingerprint(self) -> str:
        return f"mujoco {mujoco.__version__} {machine()} {probe_digest(MujocoEngine)}"

    def initial_state(self, entity: str, step: int = 0) -> bytes:
        (model,), _ = sorted_parts(self.world, [entity], ())
        return self._state_at(model, self._found_alone(model), step)

    def newcomer(self, entity: str, step: int, steps: int) -> MoverSeen:
        """Return it without a model of its own: that was built once, and what the step decides is worked out here."""
        (model,), _ = sorted_parts(self.world, [entity], ())
        alone = self._found_alone(model)
        step_ns = self.world.step
        position, (center, half), fastest = alone.position, alone.box, 0.0
        if model.motion is not None:
            pose = pose_at(model.motion, step * step_ns)
            position, (center, half) = pose.position, _box_at(model, pose)
            fastest = _scripted_speed(model, step, step_ns, steps)
        else:
            wanted, commands = command_in_force(model, step_ns, step), command_steps(model, step_ns)
            fastest = _wanted_speed(wanted, commands, alone.arm, step, steps)
            told = motor_commands_in_force(model, step_ns, step)
            fastest += _servo_speed(model, told, [0.0] * len(told), step_ns / SECOND)
        extent = Extent(center, half, _speed_bound(self.world, fastest, steps))
        check_extents({entity: extent}, step, step_ns)
        return MoverSeen(self._state_at(model, alone, step), position, extent)

    def _state_at(self, model: WorldModel, alone: _Alone, step: int) -> bytes:
        told, rest = b"", alone.state
        if model.drive is not None:
            linear, angular = command_in_force(model, self.world.step, step)
            told, rest = pack("<6d", *linear, *angular) + rest[48:64], rest[64:]
        for wanted in motor_commands_in_force(model, self.world.step, step):
            told += _MOTOR.pack(*MotorState(wanted))
        return told + rest[_MOTOR.size * len(model.motors) :]

    def build(self, movers: Iterable[str], statics: Iterable[str] = ()) -> MujocoGroup:
        parts = sorted_parts(self.world, movers, statics)
        group = MujocoGroup(self.world, *parts)
        for model in parts[0]:
            group.take_weights(model.name, self._found_alone(model))
        return group

    def _found_alone(self, model: WorldModel) -> _Alone:
        if model.name not in self._alone:
            self._alone[model.name] = MujocoGroup(self.world, (model,), ()).alone()
        return self._alone[model.name]


class _Alone(NamedTuple):
    """What is found out about a mover in a model of its own: how the file has it, and weights for MuJoCo's solver.

    The model itself isn't kept: it takes half a megabyte.
    """

    state: bytes
    position: Vector
    box: tuple[Vector, Vector]
    arm: float
    dof_mass: Any
    dof_weights: Any
    body_weights: Any


class _SpeedBounds:
    """A bound of how fast the origins of links are, for each of a group's movers that have joints (E4)."""

    def __init__(self, tracks: Iterable[_MujocoTrack], data: Any, step_ns: int) -> None:
        self.tracks = [track for track in tracks if track.parts.dofs.start < track.parts.dofs.stop]
        self._qpos, self._qvel = data.qpos, data.qvel  # Views.
        self._step_ns = step_ns
        parts = [track.parts for track in self.tracks]
        self._starts = np.array([each.dofs.start for each in parts], dtype=np.intp)
        self._arms = np.zeros(len(data.qvel))
        for each in parts:
            self._arms[each.dofs] = each.arms
        self._levers = [(each.dofs, each.arms.tolist(), each.slides) for each in parts]

    def are_within(self, limit: float) -> bool:
        """Whether no mover was faster in the last step. What isn't finite is not."""
        if len(self._levers) > _SMALL:
            return bool((self.found(1) <= limit).all())
        speeds = self._qvel.tolist()  # For a few, that is many times as fast as arrays.
        return all(
            sum(map(mul, map(abs, speeds[dofs]), arms)) + (self._added(slides, speeds, 1) if slides else 0.0) <= limit
            for dofs, arms, slides in self._levers
        )

    def found(self, steps: int) -> Any:
        """Return the bounds for the way of so many steps at the velocities of now, whether it ends or starts here."""
        if not self._levers:
            return np.zeros(0)
        with np.errstate(over="ignore", invalid="ignore"):  # What isn't finite is found by the caller.
            speeds = np.add.reduceat(np.abs(self._qvel) * self._arms, self._starts)
            for number, (_, _, slides) in enumerate(self._levers):
                if slides:
                    speeds[number] += self._added(slides, self._qvel.tolist(), steps)
            return speeds

    def _added(self, slides: Iterable[_Slide], speeds: list[float], steps: int) -> float:
        """Return what the arms that slides make longer add, given qvel."""
        added = 0.0
        for place, slide_dof, above in slides:
            out = abs(float(self._qpos[place])) + abs(speeds[slide_dof]) * (steps * self._step_ns / SECOND)
            added += out * sum(abs(speeds[dof]) for dof in above)
        return added


class _Boxes:
    """The boxes around each mover's links, as centers and half sizes, and what the last look said of them (E4)."""

    def __init__(self, movers: tuple[WorldModel, ...], statics: tuple[WorldModel, ...], data: Any) -> None:
        # Statics come first, and the bodies of a mover are next to each other.
        self._at = data.xpos[1 + sum(len(model.links) for model in statics) :]  # A view.
        self._starts = np.cumsum([0, *(len(model.links) for model in movers[:-1])], dtype=np.intp)
        self._radii = np.array([link_radius(link) for model in movers for link in _bodies_of(model)])[:, np.newaxis]
        self._last: tuple[int, Any, Any] | None = None  # The last step for which boxes hold, and these.

    def now(self) -> tuple[Any, Any]:
        """Return the boxes, if the poses are those of now."""
        with np.errstate(over="ignore", invalid="ignore"):
            low = np.minimum.reduceat(self._at - self._radii, self._starts)
            high = np.maximum.reduceat(self._at + self._radii, self._starts)
            center = (low + high) / 2
            # A rounded center may be nearer to one end.
            return center, np.maximum(high - center, center - low) * (1 + 1e-12)

    def forget(self) -> None:
        self._last = None

    def expect(self, boxes: tuple[Any, Any], step: int, steps: int) -> None:
        """Remember boxes that hold from a step on for so many, if they grow by what the movers' speed allows."""
        self._last = (step, step + steps, boxes)

    def first_outside(self, boxes: tuple[Any, Any], step: int, speed: float, step_ns: int) -> int | None:
        """Return the number of a mover that isn't where the last look expected it, whatever else was checked."""
        if self._last is None or step > self._last[1]:
            return None
        since, _, (centers, halves) = self._last
        way = speed * (step - since) * step_ns / SECOND
        # By as much as a box of the same place and size may differ after rounding.
        outside = np.abs(boxes[0] - centers) + boxes[1] > (halves + way) * (1 + 1e-9)
        return int(outside.any(axis=1).argmax()) if outside.any() else None


class MujocoGroup(SimulatedGroup):
    def __init__(
        self, world: WorldDescription, movers: tuple[WorldModel, ...], statics: tuple[WorldModel, ...]
    ) -> None:
        super().__init__(world, movers, statics)
        builder = MujocoBuilder(world)
        for model in (*statics, *movers):
            builder.add(model)
        self._model, self._data = builder.compiled()
        self._tracks: dict[str, _MujocoTrack] = {
            model.name: _MujocoTrack(model, world, self._model, self._data, builder) for model in movers
        }
        self._active = [track for track in self._tracks.values() if track.acts]
        self._commanded = [track for track in self._active if track.has_commands]
        self._has_held = any(track.parts.canonical is None for track in self._tracks.values())
        self._warnings = self._data.warning.number  # A view.
        self._bounds = _SpeedBounds(self._tracks.values(), self._data, world.step)
        self._boxes = _Boxes(movers, statics, self._data)
        self._speed_max = _SPEED_MAX
        self._link_bodies = [body for track in self._tracks.values() for body in track.parts.bodies]
        self._stepped = False

    def alone(self) -> _Alone:
        """Return what is found out about the only mover."""
        (track,) = self._tracks.values()
        model = self._model
        self._look()
        ((center, half),) = _boxes_of(self._boxes.now())
        return _Alone(
            self.states()[track.model.name],
            track.position(self._data.qpos.tolist()),
            (center, half),
            track.arm(),
            model.dof_M0[track.parts.dofs].copy(),
            model.dof_invweight0[track.parts.dofs].copy(),
            model.body_invweight0[track.parts.bodies].copy(),
        )

    def take_weights(self, entity: str, alone: _Alone) -> None:
        """Give an entity the weights that it has in a model of its own (E3)."""
        track, model = self._tracks[entity], self._model
        model.dof_M0[track.parts.dofs] = alone.dof_mass
        model.dof_invweight0[track.parts.dofs] = alone.dof_weights
        model.body_invweight0[track.parts.bodies] = alone.body_weights

    # --- States ---

    def set_states(self, step: int, states: Mapping[str, bytes]) -> None:
        super().set_states(step, states)
        self._warnings[:] = 0
        for name, track in self._tracks.items():
            track.load(states[name])
            if not (
                np.isfinite(self._data.qpos[track.parts.places]).all()
                and np.isfinite(self._data.qvel[track.parts.dofs]).all()
            ):
                raise self._failure(name, "has a state that isn't finite")
        self._forget()

    def states(self) -> dict[str, bytes]:
        qpos, qvel = _packed(self._data.qpos), _packed(self._data.qvel)
        return {name: track.saved(qpos, qvel) for name, track in self._tracks.items()}

    def _forget(self) -> None:
        """Drop what was said of the way so far: bounds and contacts."""
        self._speed_max = _SPEED_MAX
        self._boxes.forget()
        self._stepped = False

    # --- Interaction ---

    def command_motors(self, entity: str, topic: str, value: float) -> None:
        self._check_mover(entity)
        self._tracks[entity].command_motors(topic, checked_motor_command(value))

    def place(self, entity: str, pose: Pose) -> None:
        self._check_mover(entity)
        self._tracks[entity].place(checked_pose(pose))
        self._forget()

    # --- Steps ---

    def advance(self, steps: int = 1) -> None:
        model, data = self._model, self._data
        for _ in range(steps):
            for track in self._active:
                track.act(self.step)
            mujoco.mj_step(model, data)
            self.step += 1
            self._check()
            for track in self._commanded:
                track.take_command(self.step)
        self._stepped = self._stepped or steps > 0

    def _check(self) -> None:
        """See that the step went well."""
        if self._bounds.are_within(self._speed_max) and not any(self._warnings.tobytes()):
            return
        for number, kind in enumerate(mujoco.mjtWarning.__members__.values()):
            if number < len(self._warnings) and self._warnings[number]:
                raise self._warned(kind)
        speeds = self._bounds.found(1) * (1 + 1e-12)  # Sums of few and of many are rounded in different ways.
        worst = next(i for i, speed in enumerate(speeds) if not speed <= self._speed_max)
        name = self._bounds.tracks[worst].model.name
        if not speeds[worst] <= _SPEED_MAX:
            raise self._failure(name, f"became unstable, at {float(speeds[worst]):g} m/s")
        raise self._failure(
            name,
            f"got faster than it could be expected to, {float(speeds[worst]):g} m/s: a contact may have been missed",
            too_fast=True,
        )

    def _warned(self, kind: Any) -> ModelError:
        info = int(self._data.warning.lastinfo[int(kind)])
        unstable = {
            mujoco.mjtWarning.mjWARN_BADQPOS: "got a position that isn't finite",
            mujoco.mjtWarning.mjWARN_BADQVEL: "got a velocity that isn't finite",
            mujoco.mjtWarning.mjWARN_BADQACC: "got an acceleration that isn't finite",
            mujoco.mjtWarning.mjWARN_INERTIA: "has an inertia that can't be computed with",
        }
        for track in self._bounds.tracks:
            numbers = track.parts.places if kind == mujoco.mjtWarning.mjWARN_BADQPOS else track.parts.dofs
            if kind in unstable and numbers.start <= info < numbers.stop:
                return self._failure(track.model.name, unstable[kind])
        text = mujoco.mju_warningText(int(kind), info)
        return self._failure(self.movers[0], f"and its group of {len(self.movers)} can't be simulated: {text}")

    def _failure(self, entity: str, what: str, *, too_fast: bool = False) -> ModelError:
        return ModelError(
            f"model {shown(entity)} {what}, in step {self.step}",
            at=self.step * self._world.step,
            advice="use a smaller step, softer motions or heavier links",
            entity=entity,
            step=self.step,
            too_fast=too_fast,
        )

    # --- What is to be seen ---

    def _look(self) -> None:
        """Have MuJoCo work out the poses of now: after a step, they are still those before it."""
        for track in self._active:
            track.follow(self.step)
        mujoco.mj_kinematics(self._model, self._data)

    def packed_positions(self) -> bytes:
        if self._has_held:
            self._look()
        numbers = self._data.qpos.tolist()
        return b"".join([_POINT.pack(*track.position(numbers)) for track in self._tracks.values()])

    def packed_poses(self) -> bytes:
        self._look()
        return _packed(np.concatenate((self._data.xpos, self._data.xquat), axis=1)[self._link_bodies])

    def contacts(self) -> dict[tuple[str, str], float]:
        found: dict[tuple[str, str], float] = {}
        if self._stepped:
            for geoms, distance in zip(self._data.contact.geom, self._data.contact.dist, strict=True):
                bodies = (self._model.body(self._model.geom_bodyid[geom]) for geom in geoms)
                one, other = sorted(entity_of(body.name) for body in bodies)
                found[one, other] = max(-float(distance), found.get((one, other), -inf))
        return found

    def extents(self, steps: int) -> dict[str, Extent]:
        if not self.movers:
            return {}
        self._look()
        boxes = self._boxes.now()
        if (outside := self._boxes.first_outside(boxes, self.step, self._speed_max, self._world.step)) is not None:
            problem = "got farther than it could be expected to: a contact may have been missed"
            raise self._failure(self.movers[outside], problem)
        speeds = (track.expected_speed(self.step, steps) for track in self._active)
        fastest = max([*self._bounds.found(steps).tolist(), *speeds, 0.0])
        self._speed_max = bound = _speed_bound(self._world, fastest, steps)
        self._boxes.expect(boxes, self.step, steps)
        extents = {
            name: Extent(center, half, bound)
            for name, (center, half) in zip(self.movers, _boxes_of(boxes), strict=True)
        }
        check_extents(extents, self.step, self._world.step)
        return extents

    def limit_speeds(self, speed: float) -> None:
        self._speed_max = speed


_Slide = tuple[int, int, list[int]]
"""A prismatic joint: its places in qpos and qvel, and those in qvel of turns above it, whose arms it adds to."""

_Motor = tuple[JointMotor, int, int, float, Servo | None]
"""A motor, where its joint is in qpos and qvel, how strong it is, and its servo if it sets the joint's speed."""


def _built_motor(motor: JointMotor, model: WorldModel, compiled: Any, builder: MujocoBuilder) -> _Motor:
    (joint,) = (each for each in model.joints if each.name == motor.joint)
    number = int(compiled.body_jntadr[builder.bodies[model.name, joint.child].id])
    servo = builder.servos[model.name, motor.joint] if motor.sets_speed else None
    return motor, int(compiled.jnt_qposadr[number]), int(compiled.jnt_dofadr[number]), joint.effort, servo


class _MoverParts(NamedTuple):
    """Where a mover's numbers are in a compiled model.

    `bodies` are its links, `places` and `dofs` its ranges of qpos and qvel. `arms` says by how much each number of qvel
    can move the origin of a link, and `slides` which joints make arms longer. `free` are the links that no joint holds:
    their index, and where their numbers begin; one of them may be `canonical`. `mocaps` are those of a script.
    """

    bodies: list[int]
    places: slice
    dofs: slice
    arms: Any
    slides: list[_Slide]
    free: list[tuple[int, int, int]]
    mocaps: list[int]
    canonical: tuple[int, int, int] | None
    canonical_body: int
    to_model: Pose


def _parts(model: WorldModel, compiled: Any, builder: MujocoBuilder) -> _MoverParts:
    bodies = [builder.bodies[model.name, link.name].id for link in model.links]
    places, dofs = _ranges(compiled, bodies)
    free = [
        (number, int(compiled.jnt_qposadr[joint]), int(compiled.jnt_dofadr[joint]))
        for number, body in enumerate(bodies)
        for joint in range(compiled.body_jntadr[body], compiled.body_jntadr[body] + compiled.body_jntnum[body])
        if compiled.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
    ]
    canonical = next(link for link in model.links if link.name == model.canonical_link)
    return _MoverParts(
        bodies,
        places,
        dofs,
        np.concatenate([np.zeros(0), *(_arms(model, link, held) for link, held in link_tree(model))]),
        _slides(model, compiled, dict(zip((link.name for link in model.links), bodies, strict=True))),
        free,
        [int(compiled.body_mocapid[body]) for body in bodies] if model.motion else [],
        next((each for each in free if model.links[each[0]].name == model.canonical_link), None),
        int(builder.bodies[model.name, canonical.name].id),
        canonical.pose.inverse(),
    )


class _MujocoTrack(DrivenMover):
    """A mover: where its numbers are in the model, and what moves it."""

    def __init__(
        self, model: WorldModel, world: WorldDescription, compiled: Any, data: Any, builder: MujocoBuilder
    ) -> None:
        super().__init__(model, world.step)
        self.parts = _parts(model, compiled, builder)
        if isinstance(model.drive, VelocityDrive) and self.parts.canonical is None:
            raise ConfigurationError(
                f"model {shown(model.name)} has a velocity drive, but a joint holds link {shown(model.canonical_link)}",
                advice="a velocity drive moves models whose canonical link is free",
            )
        self._scripted = model.pose  # Where the script had it when it was last followed.
        self._compiled, self._data = compiled, data
        self._motor_commands = motor_command_steps(model, world.step)
        self._wheels: list[tuple[Servo, bool]] = []  # And whether it is a left one.
        if isinstance(model.drive, DiffDrive):
            for name in (*model.drive.left_joints, *model.drive.right_joints):
                self._wheels.append((builder.servos[model.name, name], name in model.drive.left_joints))
        self._motors = [_built_motor(motor, model, compiled, builder) for motor in model.motors]
        self._motor_states = [MotorState(wanted) for wanted in motor_commands_in_force(model, world.step, 0)]

    @property
    def acts(self) -> bool:
        """Whether MuJoCo is told something about it in every step."""
        return self.model.drive is not None or self.model.motion is not None or bool(self.model.motors)

    @property
    def has_commands(self) -> bool:
        return bool(self._commands or self._motor_commands)

    # --- The state ---

    def load(self, state: bytes) -> None:
        drive, motors = 64 * (self.model.drive is not None), _MOTOR.size * len(self._motors)
        places, dofs = (8 * (each.stop - each.start) for each in (self.parts.places, self.parts.dofs))
        if len(state) != drive + motors + places + dofs:
            raise UsageError(f"{len(state)} bytes are no state of model {shown(self.model.name)}")
        if drive:
            numbers = unpack("<8d", state[:64])
            self.wanted, self.speeds, self._reached = (numbers[:3], numbers[3:6]), numbers[6:], None
        at = drive + motors
        self._motor_states = [MotorState(*numbers) for numbers in _MOTOR.iter_unpack(state[drive:at])]
        self._data.qpos[self.parts.places] = np.frombuffer(state, "<f8", offset=at, count=places // 8)
        self._data.qvel[self.parts.dofs] = np.frombuffer(state, "<f8", offset=at + places)

    def saved(self, qpos: bytes, qvel: bytes) -> bytes:
        """Return the state, given the whole group's numbers: cutting bytes is faster than cutting arrays."""
        told = b"" if self.model.drive is None else pack("<8d", *self.wanted[0], *self.wanted[1], *self.speeds)
        for each in self._motor_states:
            told += _MOTOR.pack(*each)
        places, dofs = self.parts.places, self.parts.dofs
        return told + qpos[8 * places.start : 8 * places.stop] + qvel[8 * dofs.start : 8 * dofs.stop]

    def place(self, pose: Pose) -> None:
        if self.model.motion is not None or not self.parts.free:
            raise UsageError(f"model {shown(self.model.name)} is held or scripted and can't be put elsewhere")
        self._data.qpos[self.parts.places] = self._compiled.qpos0[self.parts.places]
        self._data.qvel[self.parts.dofs] = 0.0
        self.speeds, self._reached = (0.0, 0.0), None
        self._motor_states = [MotorState(each.wanted) for each in self._motor_states]
        for number, place, _ in self.parts.free:
            there = pose.compose(self.model.links[number].pose)
            self._data.qpos[place : place + 7] = (*there.position, *there.quaternion)

    # --- What moves it ---

    def act(self, step: int) -> None:
        """Set all that MuJoCo is told in a step."""
        if self.model.motion is not None:
            self.follow(step)
        elif isinstance(self.model.drive, DiffDrive):
            self._turn_wheels(self.model.drive)
        elif self.model.drive is not None:
            self._push()
        if self._motors:
            self._run_motors()

    def take_command(self, step: int) -> None:
        self.wanted = self._commands.get(step, self.wanted)
        for number, value in self._motor_commands.get(step, {}).items():
            self._motor_states[number] = self._motor_states[number]._replace(wanted=value)

    def command_motors(self, topic: str, value: float) -> None:
        heard = [number for number, each in enumerate(self.model.motors) if each.hears(topic, self.model.name)]
        if not heard:
            raise UsageError(f"model {shown(self.model.name)} has no motor that hears {shown(topic)}")
        for number in heard:
            self._motor_states[number] = self._motor_states[number]._replace(wanted=value)

    def follow(self, step: int) -> None:
        """Put a scripted model where it is at a step."""
        if self.model.motion is not None:
            self._scripted = pose_at(self.model.motion, step * self._step_ns)
            for mocap, link in zip(self.parts.mocaps, self.model.links, strict=True):
                there = self._scripted.compose(link.pose)
                self._data.mocap_pos[mocap] = there.position
                self._data.mocap_quat[mocap] = there.quaternion

    def _turn_wheels(self, drive: DiffDrive) -> None:
        if self._reached is self.wanted:  # MuJoCo keeps what it was told last.
            return
        if self._ramp(drive) and all(servo.reach == inf for servo, _ in self._wheels):
            self._reached = self.wanted
        left, right = wheel_speeds(drive, *self.speeds)
        for servo, is_left in self._wheels:
            self._pace(servo, left if is_left else right)

    def _pace(self, servo: Servo, speed: float) -> None:
        """Have a servo keep its joint at a speed, within its limits."""
        speed = min(max(speed, -servo.speed_max), servo.speed_max)
        number = servo.actuator.id
        if servo.reach < inf:
            now = float(self._data.qvel[self._compiled.jnt_dofadr[self._compiled.actuator_trnid[number, 0]]])
            speed = min(max(speed, now - servo.reach), now + servo.reach)
        self._data.ctrl[number] = speed

    def _run_motors(self) -> None:
        forces: dict[int, float] = {}
        for number, (motor, place, dof, effort, servo) in enumerate(self._motors):
            state = self._motor_states[number]
            if servo is not None:
                self._pace(servo, motor_speed(motor, state.wanted, float(self._data.qpos[place]), self._seconds))
                continue
            force = state.wanted
            if motor.gains is not None:
                now = self._data.qpos[place] if motor.kind == "position" else self._data.qvel[dof]
                force, self._motor_states[number] = controlled(
                    motor.gains, state, float(now) - state.wanted, self._seconds
                )
            forces[dof] = min(max(forces.get(dof, 0.0) + force, -effort), effort)
        for dof, force in forces.items():
            self._data.qfrc_applied[dof] = force

    def _push(self) -> None:
        """Push all links that no joint holds toward the velocities that a rigid model would have there."""
        assert self.parts.canonical is not None
        number, place, _ = self.parts.canonical
        link = self._pose_of_free(place)
        model = link.compose(self.model.links[number].pose.inverse())
        linear, angular = self.wanted
        turning = model.rotate(angular)
        origin = model.rotate(linear)
        lag = max(MOTOR_LAG, 4 * self._seconds)  # It must stay well above a step, or it overshoots.
        for _, place, dof in self.parts.free:
            at = self._pose_of_free(place)
            arm = tuple(a - b for a, b in zip(at.position, model.position, strict=True))
            swept = cross(turning, (arm[0], arm[1], arm[2]))
            wanted = (*(a + b for a, b in zip(origin, swept, strict=True)), *at.inverse().rotate(turning))
            here = slice(dof, dof + 6)
            self._data.qfrc_applied[here] = self._compiled.dof_M0[here] * (wanted - self._data.qvel[here]) / lag

    def _pose_of_free(self, place: int) -> Pose:
        x, y, z, *quaternion = map(float, self._data.qpos[place : place + 7])
        w, a, b, c = quaternion
        return Pose.from_quaternion((x, y, z), (w, a, b, c))

    # --- What is to be seen ---

    def position(self, numbers: list[float]) -> Vector:
        """Return the model's own position, given the group's qpos; unless it is free, poses must be those of now."""
        if self.parts.canonical is None:
            if self.model.motion is not None:
                return self._scripted.position
            x, y, z = self._data.xpos[self.parts.canonical_body].tolist()
            w, a, b, c = self._data.xquat[self.parts.canonical_body].tolist()
            return Pose((x, y, z), (w, a, b, c)).place(self.parts.to_model.position)
        place = self.parts.canonical[1]
        x, y, z, w, a, b, c = numbers[place : place + 7]
        p, q, r = self.parts.to_model.position
        if not (p or q or r):
            return x, y, z
        # As `Pose.place`, which would take longer than all the rest.
        d, e, f = 2 * (b * r - c * q), 2 * (c * p - a * r), 2 * (a * q - b * p)
        return x + p + w * d + b * f - c * e, y + q + w * e + c * d - a * f, z + r + w * f + a * e - b * d

    def expected_speed(self, step: int, steps: int) -> float:
        """Return how fast its links are to be by its script or its commands, if its poses are those of now."""
        if self.model.motion is not None:
            return _scripted_speed(self.model, step, self._step_ns, steps)
        speed = _wanted_speed(self.wanted, self._commands, self.arm(), step, steps)
        if not self._motors:
            return speed
        places = [float(self._data.qpos[place]) for _, place, _, _, _ in self._motors]
        return speed + _servo_speed(self.model, [each.wanted for each in self._motor_states], places, self._seconds)

    def arm(self) -> float:
        """Return how far from the model's origin the origin of a link can be, if poses are those of now."""
        here = self._data.xpos[self.parts.canonical_body].tolist()
        return max(dist(here, there) for there in self._data.xpos[self.parts.bodies].tolist()) + length(
            self.parts.to_model.position
        )


def _boxes_of(boxes: tuple[Any, Any]) -> Iterator[tuple[Vector, Vector]]:
    centers, halves = boxes
    yield from zip(map(tuple, centers.tolist()), map(tuple, halves.tolist()), strict=True)


def _box_at(model: WorldModel, pose: Pose) -> tuple[Vector, Vector]:
    """Return the center and half size of a box around the links of a rigid model."""
    balls = [(pose.place(link.pose.position), link_radius(link)) for link in model.links]
    low = [min(at[axis] - radius for at, radius in balls) for axis in range(3)]
    high = [max(at[axis] + radius for at, radius in balls) for axis in range(3)]
    x, y, z = center = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
    p, q, r = (max(b - c, c - a) * (1 + 1e-12) for a, b, c in zip(low, high, center, strict=True))
    return (x, y, z), (p, q, r)


def _speed_bound(world: WorldDescription, fastest: float, steps: int) -> float:
    """Return what no mover of a group is expected to exceed, given how fast the fastest is or will want to be."""
    return 2 * fastest + length(world.gravity) * steps * world.step / SECOND + _SPEED_SPARE


def _scripted_speed(model: WorldModel, step: int, step_ns: int, steps: int) -> float:
    assert model.motion is not None
    return scripted_speed(model.motion, model_arm(model), step * step_ns, step_ns, steps)


def _wanted_speed(wanted: Twist, commands: Mapping[int, Twist], arm: float, step: int, steps: int) -> float:
    """Return how fast a drive will want links to be whose origins are within `arm` of the model's."""
    twists = [wanted, *(commands[later] for later in range(step + 1, step + steps) if later in commands)]
    return max(length(linear) + length(angular) * arm for linear, angular in twists)


def _servo_speed(model: WorldModel, wanted: list[float], places: list[float], seconds: float) -> float:
    """Return how fast motors that set speeds will have links move, given what they are told and where joints are."""
    fastest = 0.0
    if not model.motors:
        return fastest
    held = {joint.name: (link, joint) for link, joint in link_tree(model) if joint is not None}
    for motor, told, place in zip(model.motors, wanted, places, strict=True):
        if motor.sets_speed:
            link, joint = held[motor.joint]
            (arm,) = _arms(model, link, joint).tolist()
            fastest += min(abs(motor_speed(motor, told, place, seconds)), joint.velocity) * arm
    return fastest


def _is_same(one: WorldModel, other: WorldModel) -> bool:
    """Return whether two descriptions are the same to the last bit: zeros of both signs are equal, but not the same."""
    return one is other or (one == other and repr(one) == repr(other))


def _packed(numbers: Any) -> bytes:
    """Return numbers as little-endian doubles."""
    return bytes(numbers.tobytes() if byteorder == "little" else numbers.astype("<f8").tobytes())


def _bodies_of(model: WorldModel) -> list[RigidLink]:
    """Return a model's links in the order of MuJoCo's bodies."""
    return list(model.links) if model.motion is not None else [link for link, _ in link_tree(model)]


def _ranges(compiled: Any, bodies: list[int]) -> tuple[slice, slice]:
    """Return where a mover's numbers are in qpos and qvel: next to each other, as its bodies are."""
    joints = [
        joint
        for body in bodies
        for joint in range(compiled.body_jntadr[body], compiled.body_jntadr[body] + compiled.body_jntnum[body])
    ]
    if not joints:
        return slice(0, 0), slice(0, 0)
    first, last = min(joints), max(joints)
    ends = ([*compiled.jnt_qposadr.tolist(), compiled.nq], [*compiled.jnt_dofadr.tolist(), compiled.nv])
    return slice(ends[0][first], ends[0][last + 1]), slice(ends[1][first], ends[1][last + 1])


def _arms(model: WorldModel, link: RigidLink, held: Joint | None) -> Any:
    """Return by how much each number of a joint's velocity can move the origin of a link at or below it."""
    if model.motion is not None:
        return np.zeros(0)
    arm = _arm_below(model, link.name)
    if held is None:
        return np.array([1.0, 1.0, 1.0, arm, arm, arm])
    arm += length(held.anchor)
    match held.kind:
        case "revolute":
            return np.array([arm])
        case "ball":
            return np.array([arm, arm, arm])
        case "prismatic":
            return np.array([1.0])
        case "fixed":
            return np.zeros(0)


def _arm_below(model: WorldModel, link: str) -> float:
    """Return the longest way from a link's origin to that of one below it if no slide is out, whatever turns."""
    at = {each.name: each.pose.position for each in model.links}
    arm = 0.0
    for joint in model.joints:
        if joint.parent == link:
            x, y, z = (a - b for a, b in zip(at[joint.child], at[link], strict=True))
            way = length((x, y, z)) + 2 * length(joint.anchor)
            arm = max(arm, way + _arm_below(model, joint.child))
    return arm


def _turns(compiled: Any, body: int) -> Iterable[int]:
    """Return where in qvel the rates are at which a body's own joint turns it."""
    if not compiled.body_jntnum[body]:
        return ()
    number, dof = compiled.body_jntadr[body], int(compiled.body_dofadr[body])
    match mujoco.mjtJoint(compiled.jnt_type[number]):
        case mujoco.mjtJoint.mjJNT_FREE:
            return range(dof + 3, dof + 6)
        case mujoco.mjtJoint.mjJNT_BALL:
            return range(dof, dof + 3)
        case mujoco.mjtJoint.mjJNT_HINGE:
            return (dof,)
    return ()


def _slides(model: WorldModel, compiled: Any, bodies: Mapping[str, int]) -> list[_Slide]:
    held = {joint.child: joint for joint in model.joints}
    slides = []
    for joint in model.joints:
        if joint.kind == "prismatic":
            number = int(compiled.body_jntadr[bodies[joint.child]])
            above: list[int] = []
            link = joint.parent
            while link is not None:
                above += _turns(compiled, bodies[link])
                link = held[link].parent if link in held else None
            slides.append((int(compiled.jnt_qposadr[number]), int(compiled.jnt_dofadr[number]), above))
    return slides
