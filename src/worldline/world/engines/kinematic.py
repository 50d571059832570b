"""A kinematic engine: drives and scripted motions move models, and nothing else does.

For tests and huge worlds. There are no contacts, no gravity and no joints that move: a model is one rigid thing. A
drive's velocities are constant during a step, and the pose after it is exact for them: a differential drive goes along
arcs, not along polygons.

The guarantees of `engine` hold for simple reasons: each model's pose is a fixed sequence of float operations on its own
state (E1, E3), names are sorted (E2), and speeds follow from the commands in force (E4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import cos, isfinite, sin, sqrt
from platform import machine
from struct import Struct

from worldline.model.errors import ConfigurationError, ModelError, UsageError, shown
from worldline.world.description import DiffDrive, WorldDescription, WorldModel
from worldline.world.engines.drives import (
    DrivenMover,
    Twist,
    command_in_force,
    pose_at,
    scripted_speed,
)
from worldline.world.engines.engine import (
    Extent,
    MoverSeen,
    PhysicsEngine,
    SimulatedGroup,
    check_extents,
    checked_pose,
    link_radius,
    probe_digest,
    sorted_parts,
)
from worldline.world.pose import UPRIGHT, ZERO, Pose, Quaternion, Vector, cross, length

_POINT = Struct("<3d")
_POSE = Struct("<7d")
_DRIVEN = Struct("<15d")  # The pose, the command in force, and how fast the drive is now, ahead and turning.


class KinematicEngine(PhysicsEngine):
    """Moves models by their drives and scripts alone."""

    @property
    def fingerprint(self) -> str:
        return f"kinematic 1 {machine()} {probe_digest(KinematicEngine)}"

    def initial_state(self, entity: str, step: int = 0) -> bytes:
        (model,), _ = sorted_parts(self.world, [entity], ())
        if model.drive is None:
            return _POSE.pack(*model.pose.position, *model.pose.quaternion)
        linear, angular = command_in_force(model, self.world.step, step)
        return _DRIVEN.pack(*model.pose.position, *model.pose.quaternion, *linear, *angular, 0.0, 0.0)

    def newcomer(self, entity: str, step: int, steps: int) -> MoverSeen:
        state = self.initial_state(entity, step)
        alone = self.build([entity])
        alone.set_states(step, {entity: state})
        extent = alone.extents(steps)[entity]
        return MoverSeen(state, extent.center, extent)

    def build(self, movers: Iterable[str], statics: Iterable[str] = ()) -> KinematicGroup:
        return KinematicGroup(self.world, *sorted_parts(self.world, movers, statics))


class KinematicGroup(SimulatedGroup):
    def __init__(
        self, world: WorldDescription, movers: tuple[WorldModel, ...], statics: tuple[WorldModel, ...]
    ) -> None:
        super().__init__(world, movers, statics)
        self._tracks: dict[str, _KinematicTrack] = {model.name: _KinematicTrack(model, world.step) for model in movers}

    def set_states(self, step: int, states: Mapping[str, bytes]) -> None:
        super().set_states(step, states)
        for name, track in self._tracks.items():
            try:
                track.load(states[name])
            except ConfigurationError as error:  # Poses refuse what isn't finite.
                raise ModelError(
                    f"model {shown(name)} has a state that isn't one, in step {step}: {error.problem}",
                    at=step * self._world.step,
                    entity=name,
                    step=step,
                ) from error

    def states(self) -> dict[str, bytes]:
        return {name: track.saved() for name, track in self._tracks.items()}

    def command_motors(self, entity: str, topic: str, value: float) -> None:
        """No joint moves, whatever motors are told."""
        self._check_mover(entity)

    def place(self, entity: str, pose: Pose) -> None:
        self._check_mover(entity)
        if self._tracks[entity].model.motion is not None:
            raise UsageError(f"model {shown(entity)} has a scripted motion and can't be put elsewhere")
        self._tracks[entity].place(checked_pose(pose))

    def advance(self, steps: int = 1) -> None:
        for _ in range(steps):
            self.step += 1
            for track in self._tracks.values():
                if track.model.drive is not None:
                    track.advance(self.step)

    def packed_positions(self) -> bytes:
        return b"".join([_POINT.pack(*track.position(self.step)) for track in self._tracks.values()])

    def packed_poses(self) -> bytes:
        poses = (
            track.pose(self.step).compose(link.pose) for track in self._tracks.values() for link in track.model.links
        )
        return b"".join(_POSE.pack(*pose.position, *pose.quaternion) for pose in poses)

    def contacts(self) -> dict[tuple[str, str], float]:
        return {}

    def extents(self, steps: int) -> dict[str, Extent]:
        extents = {name: track.extent(self.step, steps) for name, track in self._tracks.items()}
        check_extents(extents, self.step, self._world.step)
        return extents

    def limit_speeds(self, speed: float) -> None:
        """No mover is pushed, so none gets faster than expected."""


class _KinematicTrack(DrivenMover):
    """A mover's state, and what moves it. The pose is plain tuples: to check a `Pose` takes longer than to move it."""

    def __init__(self, model: WorldModel, step_ns: int) -> None:
        super().__init__(model, step_ns)
        self._position, self._quaternion = model.pose.position, model.pose.quaternion
        # A ball around the model's origin holds it however it turns.
        self._radius = max(length(link.pose.position) + link_radius(link) for link in model.links) * (1 + 1e-12)
        self._twist: Twist | None = None
        self._increment: tuple[Vector, Quaternion] = (ZERO, UPRIGHT)

    def load(self, state: bytes) -> None:
        form = _POSE if self.model.drive is None else _DRIVEN
        if len(state) != form.size:
            raise UsageError(f"{len(state)} bytes are no state of model {shown(self.model.name)}")
        numbers = form.unpack(state)
        self.place(Pose(numbers[:3], numbers[3:7]))
        if self.model.drive is not None:
            self.wanted = (numbers[7:10], numbers[10:13])
            self.speeds = numbers[13:]

    def saved(self) -> bytes:
        if self.model.drive is None:
            return _POSE.pack(*self._position, *self._quaternion)
        linear, angular = self.wanted
        return _DRIVEN.pack(*self._position, *self._quaternion, *linear, *angular, *self.speeds)

    def place(self, pose: Pose) -> None:
        self._position, self._quaternion = pose.position, pose.quaternion
        self.speeds = (0.0, 0.0)
        self._reached = None

    def advance(self, step: int) -> None:
        """Go on to a step, and take the file's command for it."""
        twist = self._next_twist()
        try:
            if twist is not self._twist:  # Mostly it is the last one again. An equal one may have zeros of other signs.
                increment = moved_by(*twist, self._seconds)
                self._twist, self._increment = twist, (increment.position, increment.quaternion)
            self._position, self._quaternion = _composed(self._position, self._quaternion, *self._increment)
        except (ArithmeticError, ValueError, ConfigurationError) as error:  # Poses refuse what isn't finite.
            raise ModelError(
                f"model {shown(self.model.name)} can't be moved in step {step}, at a velocity of {shown(twist)}",
                at=step * self._step_ns,
                advice="command less, or place it nearer to the origin",
                entity=self.model.name,
                step=step,
            ) from error
        self.wanted = self._commands.get(step, self.wanted)

    def _next_twist(self) -> Twist:
        drive = self.model.drive
        if not isinstance(drive, DiffDrive):
            return self.wanted
        if self._twist is not None and self._reached is self.wanted:
            return self._twist
        if self._ramp(drive):
            self._reached = self.wanted
        ahead, turning = self.speeds
        return (ahead, 0.0, 0.0), (0.0, 0.0, turning)

    def pose(self, step: int) -> Pose:
        if self.model.motion is not None:
            return pose_at(self.model.motion, step * self._step_ns)
        return Pose(self._position, self._quaternion)

    def position(self, step: int) -> Vector:
        return self._position if self.model.motion is None else self.pose(step).position

    def extent(self, step: int, steps: int) -> Extent:
        return Extent(self.position(step), (self._radius, self._radius, self._radius), self._speed(step, steps))

    def _speed(self, step: int, steps: int) -> float:
        """Return what the origin's speed doesn't exceed."""
        if self.model.motion is not None:
            return scripted_speed(self.model.motion, 0.0, step * self._step_ns, self._step_ns, steps)
        if self.model.drive is None:
            return 0.0
        fastest = max(length(self.wanted[0]), abs(self.speeds[0]))  # Ramps are nowhere faster than at their ends.
        for later in range(step + 1, step + steps) if self._commands else ():
            if later in self._commands:
                fastest = max(fastest, length(self._commands[later][0]))
        return fastest * (1 + 1e-9)


def moved_by(linear: Vector, angular: Vector, seconds: float) -> Pose:
    """Return the pose after some time at constant velocities in its own frame: the exponential of the twist."""
    rate = length(angular)
    angle = rate * seconds
    if angle < 1e-9:  # The series; what is left out is smaller than a rounding.
        half = seconds / 2
        x, y, z = angular[0] * half, angular[1] * half, angular[2] * half
        along = (linear[0] * seconds, linear[1] * seconds, linear[2] * seconds)
        a, b, c = cross((x, y, z), along)
        return Pose.from_quaternion((along[0] + a, along[1] + b, along[2] + c), (1.0, x, y, z))
    axis = (angular[0] / rate, angular[1] / rate, angular[2] / rate)
    # Rodrigues: p = v s + axis × v (1 - cos) / rate + axis × (axis × v) (angle - sin) / rate
    once = cross(axis, linear)
    twice = cross(axis, once)
    half_sine = sin(angle / 2)
    first = 2 * half_sine * half_sine / rate  # 1 - cos without cancellation.
    second = (angle - sin(angle)) / rate
    x, y, z = (linear[i] * seconds + first * once[i] + second * twice[i] for i in range(3))
    return Pose.from_quaternion(
        (x, y, z), (cos(angle / 2), axis[0] * half_sine, axis[1] * half_sine, axis[2] * half_sine)
    )


def _composed(at: Vector, turned: Quaternion, way: Vector, turn: Quaternion) -> tuple[Vector, Quaternion]:
    """Return the pose moved by an increment in its own frame, with a quaternion of length 1 however many there were."""
    w, x, y, z = turned
    p, q, r = way
    a, b, c = 2 * (y * r - z * q), 2 * (z * p - x * r), 2 * (x * q - y * p)
    position = (
        at[0] + p + w * a + y * c - z * b,
        at[1] + q + w * b + z * a - x * c,
        at[2] + r + w * c + x * b - y * a,
    )
    d, e, f, g = turn
    w, x, y, z = (
        w * d - x * e - y * f - z * g,
        w * e + x * d + y * g - z * f,
        w * f - x * g + y * d + z * e,
        w * g + x * f - y * e + z * d,
    )
    norm = sqrt(w * w + x * x + y * y + z * z)
    if not isfinite(position[0] + position[1] + position[2] + norm):
        raise ArithmeticError
    return position, (w / norm, x / norm, y / norm, z / norm)
