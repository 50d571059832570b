"""Poses of a model's links as bytes: 7 little-endian doubles for each link, x y z and qw qx qy qz."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from worldline.world.description import WorldModel
from worldline.world.pose import Pose, Vector, cross

POSE_NUMBERS = 7
_ONE = Struct(f"<{POSE_NUMBERS}d")


def pack_poses(poses: Iterable[Pose]) -> bytes:
    return b"".join(_ONE.pack(*pose.position, *pose.quaternion) for pose in poses)


class Sighting(NamedTuple):
    """Where a model is, and the direction of its x axis."""

    position: Vector
    ahead: Vector


class ModelTracker:
    """Finds out where a model is from where its links are: its frame is fixed to its canonical link.

    It is asked for every mover again and again, so it does without a `Pose` and its checks.
    """

    def __init__(self, model: WorldModel) -> None:
        names = [link.name for link in model.links]
        place = names.index(model.canonical_link)
        back = model.links[place].pose.inverse()
        self._start = place * _ONE.size
        self._origin = back.position  # The model's, as seen from the link.
        self._ahead = back.rotate((1.0, 0.0, 0.0))

    def sighting(self, poses: bytes) -> Sighting:
        x, y, z, qw, qx, qy, qz = _ONE.unpack_from(poses, self._start)
        axis = (qx, qy, qz)
        a, b, c = _turned(qw, axis, self._origin)
        return Sighting((x + a, y + b, z + c), _turned(qw, axis, self._ahead))


def _turned(w: float, axis: Vector, vector: Vector) -> Vector:
    a, b, c = cross(axis, vector)
    d, e, f = cross(axis, (a, b, c))
    return (vector[0] + 2 * (w * a + d), vector[1] + 2 * (w * b + e), vector[2] + 2 * (w * c + f))
