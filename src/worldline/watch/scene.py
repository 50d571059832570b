"""The solids of a world and how they move, for the page: from what worlds tell as Foxglove's scenes and transforms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, json

from worldline.history.diff.account import Sending

MOMENTS_MAX = 1500
"""How many moments of a world's motion a page gets; it draws straight lines between them."""

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


def scene_of(sendings: Iterable[Sending]) -> dict[str, Any] | None:
    """Return the solids and their ways; None if the run is of no world."""
    entities: dict[str, _Entity] = {}
    motions: list[tuple[int, bytes]] = []
    for at, _, topic, payload, _, _ in sendings:
        if topic == _SCENE and payload:
            entities.update({each.id: each for each in _scene_in(payload).entities})
        elif topic == _MOTION and payload:
            motions.append((at, payload))
    if not entities or not motions:
        return None
    stride = -(-len(motions) // MOMENTS_MAX)
    kept = motions[::stride] if (len(motions) - 1) % stride == 0 else [*motions[::stride], motions[-1]]
    ways: dict[str, list[list[float]]] = {}
    for place, (_, payload) in enumerate(kept):
        for each in _motion_in(payload).transforms:
            way = ways.setdefault(each.child_frame_id, [])
            pose = _seven(each.translation, each.rotation)
            way.extend([pose] * (place + 1 - len(way)))  # What wasn't told stayed where it was told first.
    return {
        "times": [at for at, _ in kept],
        "ways": ways,
        "solids": [solid for entity in entities.values() for solid in _solids(entity)],
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
