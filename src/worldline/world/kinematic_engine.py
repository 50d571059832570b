"""A kinematic engine: drives and scripted motions move models, and nothing else does.

For tests and huge worlds. There are no contacts, no gravity and no joints that move: a model is one rigid thing. A
drive's velocities are constant during a step, and the pose after it is exact for them: a differential drive goes along
arcs, not along polygons.

The guarantees of `engine` hold for simple reasons: each model's pose is a fixed sequence of float operations on its own
state (E1, E3), names are sorted (E2), and speeds follow from the commands in force (E4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import cos, sin, sqrt
from platform import machine
from struct import Struct

from worldline.model.errors import ConfigurationError, ModelError, UsageError, shown
from worldline.model.time import SECOND
from worldline.world.description import DiffDrive, WorldDescription, WorldModel
from worldline.world.drives import Twist, command_in_force, command_steps, pose_at, ramped, scripted_speed
from worldline.world.engine import EntityContact, Extent, checked_twist, known_model, sorted_parts
from worldline.world.extents import box_around, link_radius, model_arm
from worldline.world.pose import ZERO, Pose, Vector, cross, length

_POSE = Struct("<7d")
_DRIVEN = Struct("<15d")  # The pose, the command in force, and how fast the drive is now, ahead and turning.


class KinematicEngine:
    """Moves models by their drives and scripts alone."""

    def __init__(self, world: WorldDescription) -> None:
        self.world = world

    @property
    def fingerprint(self) -> str:
        return f"kinematic 1 {machine()}"  # The sines are those of the machine's C library.

    def initial_state(self, entity: str, step: int = 0) -> bytes:
        model = known_model(self.world, entity)
        if model.drive is None:
            return _POSE.pack(*model.pose.position, *model.pose.quaternion)
        linear, angular = command_in_force(model, self.world.step, step)
        return _DRIVEN.pack(*model.pose.position, *model.pose.quaternion, *linear, *angular, 0.0, 0.0)

    def build(self, movers: Iterable[str], statics: Iterable[str] = ()) -> KinematicGroup:
        return KinematicGroup(self.world, *sorted_parts(self.world, movers, statics))


class KinematicGroup:
    def __init__(
        self, world: WorldDescription, movers: tuple[WorldModel, ...], statics: tuple[WorldModel, ...]
    ) -> None:
        self.step = 0
        self.movers = tuple(model.name for model in movers)
        self.statics = tuple(model.name for model in statics)
        self._step_ns = world.step
        self._tracks = {model.name: _KinematicTrack(model, world.step) for model in movers}

    def set_states(self, step: int, states: Mapping[str, bytes]) -> None:
        if sorted(states) != list(self.movers):
            raise UsageError(f"states of {shown(sorted(states))} are no states of {shown(list(self.movers))}")
        self.step = step
        for name, track in self._tracks.items():
            try:
                track.load(states[name])
            except ConfigurationError as error:  # Poses refuse what isn't finite.
                raise ModelError(
                    f"model {shown(name)} has a state that isn't one, in step {step}: {error.problem}",
                    entity=name,
                    step=step,
                ) from error

    def states(self) -> dict[str, bytes]:
        return {name: track.saved() for name, track in self._tracks.items()}

    def command(self, entity: str, linear: Vector, angular: Vector) -> None:
        track = self._track(entity)
        if track.model.drive is None:
            raise UsageError(f"model {shown(entity)} has no drive")
        track.wanted = checked_twist(linear, angular)

    def place(self, entity: str, pose: Pose) -> None:
        track = self._track(entity)
        if track.model.motion is not None:
            raise UsageError(f"model {shown(entity)} has a scripted motion and can't be put elsewhere")
        track.pose = pose
        track.speeds = (0.0, 0.0)

    def advance(self, steps: int = 1) -> None:
        for _ in range(steps):
            self.step += 1
            for track in self._tracks.values():
                if track.model.drive is not None:
                    track.advance(self.step)

    def poses(self) -> dict[str, tuple[Pose, ...]]:
        return {
            name: tuple(pose.compose(link.pose) for link in self._tracks[name].model.links)
            for name, pose in self.model_poses().items()
        }

    def model_poses(self) -> dict[str, Pose]:
        return {name: track.pose_now(self.step) for name, track in self._tracks.items()}

    def contacts(self) -> tuple[EntityContact, ...]:
        return ()

    def extents(self, steps: int) -> dict[str, Extent]:
        return {name: track.extent(self.step, steps) for name, track in self._tracks.items()}

    def _track(self, entity: str) -> _KinematicTrack:
        if entity not in self._tracks:
            raise UsageError(f"model {shown(entity)} isn't in this group")
        return self._tracks[entity]


class _KinematicTrack:
    """A mover's state, and what moves it."""

    def __init__(self, model: WorldModel, step_ns: int) -> None:
        self.model = model
        self.pose = model.pose
        self.wanted: Twist = (ZERO, ZERO)
        self.speeds = (0.0, 0.0)
        self._step_ns = step_ns
        self._seconds = step_ns / SECOND
        self._commands = command_steps(model, step_ns)
        self._radii = [(link.pose, link_radius(link)) for link in model.links]
        self._arm = model_arm(model)
        self._twist: Twist | None = None
        self._increment = Pose()

    def load(self, state: bytes) -> None:
        form = _POSE if self.model.drive is None else _DRIVEN
        if len(state) != form.size:
            raise UsageError(f"{len(state)} bytes are no state of model {shown(self.model.name)}")
        numbers = form.unpack(state)
        self.pose = Pose(numbers[:3], numbers[3:7])
        if self.model.drive is not None:
            self.wanted = (numbers[7:10], numbers[10:13])
            self.speeds = numbers[13:]

    def saved(self) -> bytes:
        if self.model.drive is None:
            return _POSE.pack(*self.pose.position, *self.pose.quaternion)
        linear, angular = self.wanted
        return _DRIVEN.pack(*self.pose.position, *self.pose.quaternion, *linear, *angular, *self.speeds)

    def advance(self, step: int) -> None:
        """Go on to a step, and take the file's command for it."""
        twist = self._next_twist()
        try:
            if twist != self._twist:  # Mostly it is the last one again.
                self._twist, self._increment = twist, moved_by(*twist, self._seconds)
            self.pose = _normalized(self.pose, self._increment)
        except (ArithmeticError, ValueError, ConfigurationError) as error:  # Poses refuse what isn't finite.
            raise ModelError(
                f"model {shown(self.model.name)} can't be moved in step {step}, at a velocity of {shown(twist)}",
                advice="command less, or place it nearer to the origin",
                entity=self.model.name,
                step=step,
            ) from error
        self.wanted = self._commands.get(step, self.wanted)

    def _next_twist(self) -> Twist:
        drive = self.model.drive
        if not isinstance(drive, DiffDrive):
            return self.wanted
        (ahead, _, _), (_, _, turning) = self.wanted
        ahead = ramped(drive.linear, self.speeds[0], ahead, self._seconds)
        turning = ramped(drive.angular, self.speeds[1], turning, self._seconds)
        self.speeds = (ahead, turning)
        return (ahead, 0.0, 0.0), (0.0, 0.0, turning)

    def pose_now(self, step: int) -> Pose:
        return self.pose if self.model.motion is None else pose_at(self.model.motion, step * self._step_ns)

    def extent(self, step: int, steps: int) -> Extent:
        pose = self.pose_now(step)
        center, half = box_around((pose.place(link.position), radius) for link, radius in self._radii)
        return Extent(center, half, self._speed(step, steps))

    def _speed(self, step: int, steps: int) -> float:
        if self.model.motion is not None:
            return scripted_speed(self.model.motion, self._arm, step * self._step_ns, self._step_ns, steps)
        if self.model.drive is None:
            return 0.0
        # A ramp is never faster than where it begins or where it leads to.
        twists = [self.wanted, ((self.speeds[0], 0.0, 0.0), (0.0, 0.0, self.speeds[1]))]
        twists += [self._commands[later] for later in range(step + 1, step + steps) if later in self._commands]
        return max(length(linear) + length(angular) * self._arm for linear, angular in twists) * (1 + 1e-9)


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


def _normalized(pose: Pose, increment: Pose) -> Pose:
    """Return the composed pose, whose quaternion wouldn't stay of length 1 over millions of steps by itself."""
    moved = pose.compose(increment)
    w, x, y, z = moved.quaternion
    norm = sqrt(w * w + x * x + y * y + z * z)
    return Pose(moved.position, (w / norm, x / norm, y / norm, z / norm))
