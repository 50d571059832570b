"""Drives and scripted motions: what commands and waypoints ask of a model at a step, whatever the engine."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from math import acos, sin
from struct import Struct

from worldline.model.time import SECOND
from worldline.world.description import (
    DiffDrive,
    DriveCommand,
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


def wheel_speeds(drive: DiffDrive, linear: float, angular: float) -> tuple[float, float]:
    """Return how fast the left and the right wheels must turn, in radians per second."""
    across = angular * drive.wheel_separation / 2
    return (linear - across) / drive.wheel_radius, (linear + across) / drive.wheel_radius


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
