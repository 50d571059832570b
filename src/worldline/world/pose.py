"""Poses: where something is and which way it faces.

Meters; right-handed, z up. A quaternion is (w, x, y, z). Every formula is a fixed sequence of float operations, so one
pose has one value in every process of a machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, isfinite, sin, sqrt

from worldline.model.errors import ConfigurationError, shown

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

ZERO: Vector = (0.0, 0.0, 0.0)
UPRIGHT: Quaternion = (1.0, 0.0, 0.0, 0.0)

_UNIT_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Pose:
    """A position and a unit quaternion, both relative to some frame that the context names."""

    position: Vector = ZERO
    quaternion: Quaternion = UPRIGHT

    def __post_init__(self) -> None:
        if not all(map(isfinite, (*self.position, *self.quaternion))):
            raise ConfigurationError(f"a pose needs finite numbers, not {shown((*self.position, *self.quaternion))}")
        if abs(_norm(self.quaternion) - 1) > _UNIT_TOLERANCE:
            raise ConfigurationError(f"a pose needs a quaternion of length 1, not {shown(self.quaternion)}")

    @classmethod
    def from_rpy(cls, position: Vector, roll: float, pitch: float, yaw: float) -> Pose:
        """Return the pose with these angles in radians: first roll about x, then pitch about y, then yaw about z."""
        if not all(map(isfinite, (roll, pitch, yaw))):
            raise ConfigurationError(f"a pose needs finite angles, not {shown((roll, pitch, yaw))}")
        cr, sr = cos(roll / 2), sin(roll / 2)
        cp, sp = cos(pitch / 2), sin(pitch / 2)
        cy, sy = cos(yaw / 2), sin(yaw / 2)
        quaternion = (
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        )
        return cls(position, quaternion)

    @classmethod
    def from_quaternion(cls, position: Vector, quaternion: Quaternion) -> Pose:
        """Return the pose with this quaternion, which may have any length but 0."""
        norm = _norm(quaternion)
        if not isfinite(norm) or norm < _UNIT_TOLERANCE:
            raise ConfigurationError(f"a pose needs a quaternion of some length, not {shown(quaternion)}")
        w, x, y, z = quaternion
        return cls(position, (w / norm, x / norm, y / norm, z / norm))

    @classmethod
    def facing(cls, direction: Vector) -> Pose:
        """Return a turn that takes z to a direction, which has length 1."""
        x, y, z = direction
        if z < -0.999999:
            return cls(ZERO, (0.0, 1.0, 0.0, 0.0))
        return cls.from_quaternion(ZERO, (1 + z, -y, x, 0.0))

    def rotate(self, vector: Vector) -> Vector:
        """Return a direction of this pose's frame as seen from the outer frame."""
        w, *axis = self.quaternion
        x, y, z = axis
        a, b, c = cross((x, y, z), vector)
        a, b, c = 2 * a, 2 * b, 2 * c
        d, e, f = cross((x, y, z), (a, b, c))
        return (vector[0] + w * a + d, vector[1] + w * b + e, vector[2] + w * c + f)

    def place(self, point: Vector) -> Vector:
        """Return a point of this pose's frame as seen from the outer frame."""
        x, y, z = self.rotate(point)
        return (self.position[0] + x, self.position[1] + y, self.position[2] + z)

    def compose(self, inner: Pose) -> Pose:
        """Return a pose that is relative to this one as seen from the outer frame."""
        return Pose(self.place(inner.position), _product(self.quaternion, inner.quaternion))

    def inverse(self) -> Pose:
        """Return the outer frame as seen from this pose's frame."""
        w, x, y, z = self.quaternion
        turned = Pose(ZERO, (w, -x, -y, -z))
        a, b, c = turned.rotate(self.position)
        return Pose((-a, -b, -c), turned.quaternion)


def cross(a: Vector, b: Vector) -> Vector:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def length(vector: Vector) -> float:
    x, y, z = vector
    return sqrt(x * x + y * y + z * z)


def _norm(quaternion: Quaternion) -> float:
    w, x, y, z = quaternion
    return sqrt(w * w + x * x + y * y + z * z)


def _product(a: Quaternion, b: Quaternion) -> Quaternion:
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


ORIGIN = Pose()
