"""Drives, motors and scripted motions: what commands and waypoints ask of a model at a step, whatever the engine."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from math import acos, sin
from struct import Struct
from typing import NamedTuple

from worldline.model.time import SECOND
from worldline.world.description import (
    DiffDrive,
    DriveCommand,
    JointMotor,
    PidGains,
    ScriptedMotion,
    SpeedLimits,
    VelocityDrive,
    WorldModel,
)
from worldline.world.pose import ZERO, Pose, Quaternion, Vector

Twist = tuple[Vector, Vector]
"""A linear and an angular velocity, in a model's frame."""

STILL: Twist = (ZERO, ZERO)

_PAIR = Struct("<2d")


def command_steps(model: WorldModel, step_ns: int) -> Mapping[int, Twist]:
    """Return the file's commands by the step at which they come into force: the first at or after their times.

    Of several at one step the last counts.
    """
    return {-(-each.time // step_ns): (each.linear, each.angular) for each in model.commands}


def command_in_force(model: WorldModel, step_ns: int, step: int) -> Twist:
    """Return what the file wants a drive to do at a step, whatever others have commanded."""
    found: DriveCommand | None = None
    for each in model.commands:
        if each.time > step * step_ns:
            break
        found = each
    if found is not None:
        return found.linear, found.angular
    if isinstance(model.drive, VelocityDrive):
        return model.drive.linear, model.drive.angular
    return STILL


def ramped(limits: SpeedLimits, speed: float, wanted: float, seconds: float) -> float:
    """Return a drive's speed after some time, on its way to the one that is wanted."""
    wanted = min(max(wanted, limits.speed_min), limits.speed_max)
    change = wanted - speed
    # An infinite acceleration times a time is infinite, and never in the way.
    change = min(max(change, limits.acceleration_min * seconds), limits.acceleration_max * seconds)
    # If nothing holds it back it gets there exactly, which a sum wouldn't promise.
    return wanted if change == wanted - speed else speed + change


def same_bits(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether two speeds and two others are the same to the last bit: 0.0 and -0.0 are equal, but lead apart."""
    return one == other and _PAIR.pack(*one) == _PAIR.pack(*other)


class DrivenMover:
    """A mover, what its drive was told last, and the speeds that the drive has reached, ahead and turning."""

    def __init__(self, model: WorldModel, step_ns: int) -> None:
        self.model = model
        self.wanted = command_in_force(model, step_ns, 0)
        self.speeds = (0.0, 0.0)
        self._reached: Twist | None = None  # A command at whose speeds it is: then the next step is like the last.
        self._step_ns, self._seconds = step_ns, step_ns / SECOND
        self._commands = command_steps(model, step_ns)

    def _ramp(self, drive: DiffDrive) -> bool:
        """Have the speeds of the next step; whether they are those of the last."""
        (ahead, _, _), (_, _, turning) = self.wanted
        before, self.speeds = (
            self.speeds,
            (
                ramped(drive.linear, self.speeds[0], ahead, self._seconds),
                ramped(drive.angular, self.speeds[1], turning, self._seconds),
            ),
        )
        return same_bits(before, self.speeds)


def wheel_speeds(drive: DiffDrive, linear: float, angular: float) -> tuple[float, float]:
    """Return how fast the left and the right wheels must turn, in radians per second."""
    across = angular * drive.wheel_separation / 2
    return (linear - across) / drive.wheel_radius, (linear + across) / drive.wheel_radius


def motor_command_steps(model: WorldModel, step_ns: int) -> Mapping[int, Mapping[int, float]]:
    """Return the file's commands of motors by the step at which they come into force: values by a motor's number."""
    found: dict[int, dict[int, float]] = {}
    for each in model.motor_commands:
        for number, motor in enumerate(model.motors):
            if motor.hears(each.topic, model.name):
                found.setdefault(-(-each.time // step_ns), {})[number] = each.value
    return found


def motor_commands_in_force(model: WorldModel, step_ns: int, step: int) -> list[float]:
    """Return what the file wants each motor to do at a step, whatever others have commanded."""
    values = [motor.initial for motor in model.motors]
    for at, changed in motor_command_steps(model, step_ns).items():
        if at <= step:
            for number, value in changed.items():
                values[number] = value
    return values


class MotorState(NamedTuple):
    """What a motor carries from step to step: what it was last told, and its controller's integral and last error."""

    wanted: float
    integral: float = 0.0
    error: float = 0.0


def controlled(gains: PidGains, state: MotorState, error: float, seconds: float) -> tuple[float, MotorState]:
    """Return a controller's output, and its state after that. The error is what is, less what is wanted."""
    integral = state.integral + gains.i * seconds * error
    if gains.i_min <= gains.i_max:
        integral = min(max(integral, gains.i_min), gains.i_max)
    output = gains.output_offset - gains.p * error - integral - gains.d * (error - state.error) / seconds
    if gains.output_min <= gains.output_max:
        output = min(max(output, gains.output_min), gains.output_max)
    return output, MotorState(state.wanted, integral, error)


def motor_speed(motor: JointMotor, wanted: float, position: float, seconds: float) -> float:
    """Return how fast a motor that sets a speed has its joint move in the next step."""
    speed = wanted if motor.kind == "velocity" else (wanted - position) / seconds
    return min(max(speed, -motor.speed_max), motor.speed_max)


def pose_at(motion: ScriptedMotion, time_ns: int) -> Pose:
    """Return where a scripted model is at a time."""
    points = motion.waypoints
    start, end = points[0].time, points[-1].time
    if motion.loop and time_ns > end:
        time_ns = start + (time_ns - start) % (end - start)
    if time_ns <= start:
        return points[0].pose
    number = bisect_right(points, time_ns, key=lambda point: point.time)
    if number == len(points):
        return points[-1].pose
    before, after = points[number - 1], points[number]
    return _between(before.pose, after.pose, (time_ns - before.time) / (after.time - before.time))


def scripted_speed(motion: ScriptedMotion, arm: float, time_ns: int, step_ns: int, steps: int) -> float:
    """Return a speed that no point within `arm` of a scripted model's origin exceeds, as seen after each step."""
    start = pose_at(motion, time_ns)
    fastest = 0.0
    for step in range(1, steps + 1):
        now = pose_at(motion, time_ns + step * step_ns)
        way = _distance(start.position, now.position) + arm * _chord(start.quaternion, now.quaternion)
        fastest = max(fastest, way * SECOND / (step * step_ns))
    return fastest * (1 + 1e-9)  # More than the roundings above can add up to.


def _between(one: Pose, other: Pose, part: float) -> Pose:
    (x, y, z), (a, b, c) = one.position, other.position
    position = (x + part * (a - x), y + part * (b - y), z + part * (c - z))
    return Pose.from_quaternion(position, _slerp(one.quaternion, other.quaternion, part))


def _slerp(one: Quaternion, other: Quaternion, part: float) -> Quaternion:
    """Turn evenly, the shorter way round."""
    dot = one[0] * other[0] + one[1] * other[1] + one[2] * other[2] + one[3] * other[3]
    sign = 1.0 if dot >= 0 else -1.0
    dot = min(abs(dot), 1.0)
    angle = acos(dot)
    # For tiny angles the sines' quotient is 0 / 0, and a straight line is as good.
    a, b = (1 - part, part) if angle < 1e-6 else (sin((1 - part) * angle), sin(part * angle))
    b *= sign
    return (
        a * one[0] + b * other[0],
        a * one[1] + b * other[1],
        a * one[2] + b * other[2],
        a * one[3] + b * other[3],
    )


def _distance(one: Vector, other: Vector) -> float:
    x, y, z = one[0] - other[0], one[1] - other[1], one[2] - other[2]
    return float((x * x + y * y + z * z) ** 0.5)


def _chord(one: Quaternion, other: Quaternion) -> float:
    """Return how far apart two orientations put a point at distance 1, at most: 2 sin(angle / 2)."""
    dot = one[0] * other[0] + one[1] * other[1] + one[2] * other[2] + one[3] * other[3]
    return float(2 * max(0.0, 1 - dot * dot) ** 0.5) + 1e-7 * (one != other)
