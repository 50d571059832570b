"""The solids of a world and how they move, for the page: from what worlds tell as Foxglove's scenes and transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct, json

from worldline.history.account import Sending
from worldline.recording.signals import Decode

MOMENTS_MAX = 3000
"""How many moments of a world's motion a page gets, at least half of that; it draws straight lines between them."""

_SCENE, _MOTION = "/scene", "/tf"


class _Vector(Struct):
    x: float
    y: float
    z: float
    w: float = 0.0


class _Pose(Struct):
    position: _Vector
    orientation: _Vector


class _Color(Struct):
    r: float
    g: float
    b: float
    a: float


class _Solid(Struct):
    pose: _Pose
    size: _Vector
    color: _Color


class _Entity(Struct):
    frame_id: str
    id: str
    cubes: list[_Solid] = []
    spheres: list[_Solid] = []
    cylinders: list[_Solid] = []


class _Scene(Struct):
    entities: list[_Entity] = []


class _Transform(Struct):
    child_frame_id: str
    translation: _Vector
    rotation: _Vector


class _Motion(Struct):
    transforms: list[_Transform] = []


_scene_in, _motion_in = json.Decoder(_Scene).decode, json.Decoder(_Motion).decode


def _places(payload: bytes) -> Any:
    transforms = _motion_in(payload).transforms
    return {each.child_frame_id: {axis: getattr(each.translation, axis) for axis in "xyz"} for each in transforms}


_READS: dict[str, Decode] = {_SCENE: bytes, _MOTION: _places}


def reads_worlds(decoder: Callable[[str], Decode]) -> Callable[[str], Decode]:
    """Return how payloads are read as values by name: of motion, the places of frames; of solids, none."""
    return lambda topic: _READS.get(topic) or decoder(topic)


class Motions:
    """The solids of a world, and where they were at some moments of all that were told, and at the last one."""

    def __init__(self) -> None:
        self._entities: dict[str, _Entity] = {}
        self._kept: list[tuple[int, bytes]] = []  # Every so many-th moment, read when it is asked for.
        self._stride = 1
        self._told = 0
        self._last: tuple[int, bytes] | None = None

    def take(self, sendings: Iterable[Sending]) -> None:
        """Go on with what was sent next."""
        for at, _, topic, payload, _, _ in sendings:
            if topic == _SCENE and payload:
                self._entities.update({each.id: each for each in _scene_in(payload).entities})
            elif topic == _MOTION and payload:
                self._last = at, payload
                if self._told % self._stride == 0:
                    self._kept.append(self._last)
                    if len(self._kept) > MOMENTS_MAX:
                        del self._kept[1::2]
                        self._stride *= 2
                self._told += 1

    def scene(self, have: int = 0, stride: int = 0) -> dict[str, Any] | None:
        """Return the solids and their ways, from a moment on that a page has not; None if there are none.

        `have` is how many it has, of every `stride`-th: what it was told as `kept` and `stride`. What comes behind
        those is only the last, and isn't kept. With another stride, it gets all.
        """
        if not self._entities or self._last is None:
            return None
        first = have if stride == self._stride else 0
        moments = self._kept[first:]
        if self._last[0] > self._kept[-1][0]:
            moments.append(self._last)
        ways: dict[str, list[list[float]]] = {}
        for place, (_, payload) in enumerate(moments):
            for each in _motion_in(payload).transforms:
                way = ways.setdefault(each.child_frame_id, [])
                pose = _seven(each.translation, each.rotation)
                way.extend([pose] * (place + 1 - len(way)))  # What wasn't told stayed where it was told first.
        return {
            "first": first,
            "kept": len(self._kept),
            "stride": self._stride,
            "times": [at for at, _ in moments],
            "ways": ways,
            "solids": [solid for entity in self._entities.values() for solid in _solids(entity)],
        }


def _solids(entity: _Entity) -> list[dict[str, Any]]:
    return [
        {
            "name": entity.id,
            "frame": entity.frame_id,
            "kind": kind,
            "pose": _seven(solid.pose.position, solid.pose.orientation),
            "size": [solid.size.x, solid.size.y, solid.size.z],
            "color": [solid.color.r, solid.color.g, solid.color.b, solid.color.a],
        }
        for kind, solids in (("cube", entity.cubes), ("sphere", entity.spheres), ("cylinder", entity.cylinders))
        for solid in solids
    ]


def _seven(position: _Vector, rotation: _Vector) -> list[float]:
    """Return a pose as seven numbers, to a hundredth of a millimetre: a picture needs no more."""
    numbers = (position.x, position.y, position.z, rotation.x, rotation.y, rotation.z, rotation.w)
    return [round(each, 5) for each in numbers]
