"""Poses of a model's links as bytes: 7 little-endian doubles for each link, x y z and qw qx qy qz."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from worldline.world.description import WorldModel
from worldline.world.pose import Pose, Quaternion, Vector

POSE_NUMBERS = 7
_ONE = Struct(f"<{POSE_NUMBERS}d")


def pack_poses(poses: Iterable[Pose]) -> bytes:
    return b"".join(_ONE.pack(*pose.position, *pose.quaternion) for pose in poses)


class ModelTracker:
    """Finds out where a model is from where its links are: its frame is fixed to its canonical link."""

    def __init__(self, model: WorldModel) -> None:
        names = [link.name for link in model.links]
        place = names.index(model.canonical_link)
        self._offset = place * _ONE.size
        self._back = model.links[place].pose.inverse()

    def pose(self, poses: bytes) -> Pose:
        numbers = _ONE.unpack_from(poses, self._offset)
        position: Vector = numbers[:3]
        quaternion: Quaternion = numbers[3:]
        return Pose.from_quaternion(position, quaternion).compose(self._back)
