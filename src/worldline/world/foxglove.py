"""A world as messages that Foxglove's 3-D panel draws: transforms of links, and a scene of their shapes.

A link of a mover is a frame, named "model/link", whose parent is "world". Its shapes are in that frame and follow it,
so the scene is told again only when other models are loaded. A scene is always whole, since a viewer that jumps to
a time shows the last one before it and nothing else.

Equal worlds are equal bytes: fields have a fixed order, and floats one spelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from struct import Struct as Layout
from typing import Any

from msgspec import json

from worldline.history.observer import Observer
from worldline.history.plain import plain
from worldline.model import Plan
from worldline.model.time import SECOND
from worldline.recording import Provenance, Recorder, Schema
from worldline.recording.output import RecordingTarget
from worldline.world.description import GRAY, Color, Level, RigidLink, WorldDescription, WorldModel
from worldline.world.orders import HASH_SIZE, chained
from worldline.world.pose import ORIGIN, UPRIGHT, Pose, Vector
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    PlaneShape,
    Shape,
    SphereShape,
)
from worldline.world.spectator import POSE_NUMBERS, WORLD_MEMBER, Spectator

TF, SCENE, STATE, INTERACTIONS = "/tf", "/scene", "worldline/state", "worldline/interactions"

# What the messages on a world's topics look like: Foxglove's schemas for its 3-D panel, and two of Worldline's own.
# They say what https://docs.foxglove.dev/docs/visualization/message-schemas/introduction says, as far as tools read it:
# names, types and titles.
_SCHEMA_NAMES = {
    TF: "foxglove.FrameTransforms",
    SCENE: "foxglove.SceneUpdate",
    STATE: "worldline.WorldState",
    INTERACTIONS: "worldline.Interaction",
}


def _schema(name: str) -> Schema:
    file = Path(__file__).parent / "schemas" / f"{name}.json"
    return Schema(name, "jsonschema", json.encode(json.decode(file.read_bytes())))


WORLD_SCHEMAS: dict[str, Schema] = {topic: _schema(name) for topic, name in _SCHEMA_NAMES.items()}
"""By topic, as a `Recorder` takes them."""

WORLD_ENCODINGS: dict[str, str] = dict.fromkeys(WORLD_SCHEMAS, "json")


WORLD_FRAME = "world"

_PLANE_THICK = 0.01
_PLANE_WIDE = 100.0  # Meters, of a plane that is only there to collide with: it has no end.
_LEVEL_COLOR: Color = (0.34, 0.71, 0.91, 0.12)
_LEVEL_INK: Color = (0.12, 0.45, 0.7, 1.0)
_MATCHING_ID = 0

_encode = json.Encoder().encode


_Json = dict[str, Any]


def frame_of(model: str, link: str) -> str:
    """Return the name of a link's frame. Slashes in the model's name are escaped, so no two links share a frame."""
    return f"{model.replace('%', '%25').replace('/', '%2F')}/{link}"


class TransformsEncoder:
    """Encodes the poses of links. It builds the message of each mover once, and then only puts numbers into it."""

    def __init__(self, models: Mapping[str, WorldModel]) -> None:
        self._time = _time(0)
        self._movers = {
            name: [
                {
                    "timestamp": self._time,
                    "parent_frame_id": WORLD_FRAME,
                    "child_frame_id": frame_of(name, link.name),
                    "translation": dict.fromkeys("xyz"),
                    "rotation": dict.fromkeys("xyzw"),
                }
                for link in model.links
            ]
            for name, model in sorted(models.items())
            if not model.static
        }
        self._layouts = {name: Layout(f"<{POSE_NUMBERS * len(frames)}d") for name, frames in self._movers.items()}

    def encode(self, time: int, poses: Mapping[str, bytes]) -> bytes:
        """Return the transforms of all movers whose poses are given, in the order of their names."""
        self._time.update(_time(time))
        told: list[_Json] = []
        for name, frames in self._movers.items():
            packed = poses.get(name)
            if packed is None:
                continue
            numbers = iter(self._layouts[name].unpack(packed))
            for frame, x, y, z, w, i, j, k in zip(frames, *(numbers,) * POSE_NUMBERS, strict=True):
                translation, rotation = frame["translation"], frame["rotation"]
                translation["x"], translation["y"], translation["z"] = x, y, z
                rotation["x"], rotation["y"], rotation["z"], rotation["w"] = i, j, k, w
            told += frames
        return _encode({"transforms": told})


def encoded_scene(
    time: int, levels: Iterable[Level], models: Mapping[str, WorldModel], before: Iterable[str] = ()
) -> tuple[bytes, list[str]]:
    """Return all that there is to see, and the ids of its parts; those of `before` that are gone are removed."""
    stamp = _time(time)
    entities = [_level_entity(stamp, level) for level in levels]
    for name, model in sorted(models.items()):
        entities += [_link_entity(stamp, name, model, link) for link in model.links]
    shown = [entity["id"] for entity in entities]
    there = set(shown)
    deletions = [{"timestamp": stamp, "type": _MATCHING_ID, "id": each} for each in before if each not in there]
    return _encode({"deletions": deletions, "entities": entities}), shown


def _entity(stamp: _Json, frame: str, name: str) -> _Json:
    """Return an entity of which nothing is to be seen yet."""
    about = {"timestamp": stamp, "frame_id": frame, "id": name, "lifetime": _time(0), "frame_locked": True}
    kinds = ("metadata", "arrows", "cubes", "spheres", "cylinders", "lines", "triangles", "texts", "models")
    return {**about, **{kind: [] for kind in kinds}}


def _link_entity(stamp: _Json, name: str, model: WorldModel, link: RigidLink) -> _Json:
    frame = frame_of(name, link.name)
    entity = _entity(stamp, WORLD_FRAME if model.static else frame, frame)
    at = model.pose.compose(link.pose) if model.static else ORIGIN
    for shape, pose, color in _seen(link):
        _draw(entity, shape, at.compose(pose), _color(color))
    return entity


def _seen(link: RigidLink) -> Iterator[tuple[Shape, Pose, Color]]:
    """Yield what a link looks like, or what collides if it looks like nothing."""
    for visual in link.visuals:
        yield visual.shape, visual.pose, visual.color
    if not link.visuals:
        for collision in link.collisions:
            shape = collision.shape
            if isinstance(shape, PlaneShape):
                width, depth = shape.size
                shape = PlaneShape(shape.normal, (max(width, _PLANE_WIDE), max(depth, _PLANE_WIDE)))
            yield shape, collision.pose, GRAY


def _draw(entity: _Json, shape: Shape, pose: Pose, color: _Json) -> None:
    match shape:
        case BoxShape(size):
            entity["cubes"].append(_solid(pose, size, color))
        case SphereShape(radius):
            entity["spheres"].append(_ball(pose, (radius, radius, radius), color))
        case EllipsoidShape(radii):
            entity["spheres"].append(_ball(pose, radii, color))
        case CylinderShape(radius, height):
            entity["cylinders"].append(_column(pose, radius, height, color))
        case CapsuleShape(radius, height):
            entity["cylinders"].append(_column(pose, radius, height, color))
            for end in (height / 2, -height / 2):
                entity["spheres"].append(_ball(pose.compose(Pose((0.0, 0.0, end))), (radius, radius, radius), color))
        case PlaneShape(normal, (width, depth)):
            slab = pose.compose(Pose.facing(normal)).compose(Pose((0.0, 0.0, -_PLANE_THICK / 2)))
            entity["cubes"].append(_solid(slab, (width, depth, _PLANE_THICK), color))


def _solid(pose: Pose, size: Vector, color: _Json) -> _Json:
    """Return a cube or a sphere."""
    return {"pose": _pose(pose), "size": _xyz(size), "color": color}


def _ball(pose: Pose, radii: Vector, color: _Json) -> _Json:
    x, y, z = radii
    return _solid(pose, (2 * x, 2 * y, 2 * z), color)


def _column(pose: Pose, radius: float, height: float, color: _Json) -> _Json:
    size = _xyz((2 * radius, 2 * radius, height))
    return {"pose": _pose(pose), "size": size, "bottom_scale": 1.0, "top_scale": 1.0, "color": color}


def _level_entity(stamp: _Json, level: Level) -> _Json:
    entity = _entity(stamp, WORLD_FRAME, f"/level/{level.name}")  # No frame starts with a slash.
    entity["cubes"].append(_solid(Pose(level.center), level.size, _color(_LEVEL_COLOR)))
    x, y, z = level.center
    above = Pose((x, y, z + level.size[2] / 2), UPRIGHT)
    entity["texts"].append(
        {
            "pose": _pose(above),
            "billboard": True,
            "font_size": 16.0,
            "scale_invariant": True,
            "color": _color(_LEVEL_INK),
            "text": level.name,
        }
    )
    return entity


def _time(time: int) -> _Json:
    return dict(zip(("sec", "nsec"), divmod(time, SECOND), strict=True))


def _xyz(vector: Vector) -> _Json:
    return dict(zip("xyz", vector, strict=True))


def _color(color: Color) -> _Json:
    return dict(zip("rgba", color, strict=True))


def _pose(pose: Pose) -> _Json:
    w, x, y, z = pose.quaternion
    return {"position": _xyz(pose.position), "orientation": {"x": x, "y": y, "z": z, "w": w}}


# Tells an observer of a history, such as a recorder, what happens in a world, as messages of one member.


class WorldTeller(Spectator):
    """Messages are sent at iteration × step size, so their times rise even when the world is reset.

    A recorder needs WORLD_SCHEMAS and WORLD_ENCODINGS to say what they are. They have no receiver, so they are final as
    soon as the next iteration has begun. States are told in every iteration, poses in `every` so many. Who simulates
    what isn't told: it is no part of the history.
    """

    def __init__(self, observer: Observer, *, every: int = 1) -> None:
        self.every = every
        self._observer = observer
        self._sent = 0
        self._chain = bytes(HASH_SIZE)
        self._models: Mapping[str, WorldModel] | None = None
        self._step_ns = 0
        self._levels: tuple[Level, ...] = ()
        self._shown: list[str] = []  # What the last scene had, to be removed when it is there no longer.
        self._transforms = TransformsEncoder({})

    def began(self, description: WorldDescription) -> None:
        self._step_ns = description.step
        self._levels = description.levels
        self._observer.began(WORLD_MEMBER, 0)

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        if models == self._models:
            return
        self._models = dict(models)
        self._transforms = TransformsEncoder(models)
        at = self._reach(iteration)
        scene, self._shown = encoded_scene(at, self._levels, models, self._shown)
        self._send(SCENE, at, scene)

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        self._chain = chained(self._chain, state_hash)
        at = self._reach(iteration)
        if poses:  # First, so that a comparison finds the mover that differs before the hash.
            self._send(TF, at, self._transforms.encode(at, poses))
        state = {"iteration": iteration, "step": step, "state_hash": state_hash.hex()}
        self._observer.noted(WORLD_MEMBER, STATE, at, _encode(state))

    def interacted(self, iteration: int, step: int, interaction: Any) -> None:
        at = self._reach(iteration)
        self._send(INTERACTIONS, at, _encode({"iteration": iteration, "step": step, "interaction": plain(interaction)}))

    def ended(self, iteration: int, step: int) -> None:
        at = self._reach(iteration)
        self._observer.ended(WORLD_MEMBER, at, self._chain)
        self._observer.passed(at + 1)

    def _reach(self, iteration: int) -> int:
        """Return the time of an iteration. Whatever was before it is final (H3)."""
        at = iteration * self._step_ns
        self._observer.passed(at)
        return at

    def _send(self, topic: str, at: int, payload: bytes) -> None:
        self._observer.sent(WORLD_MEMBER, self._sent, topic, at, payload, at)
        self._sent += 1


def world_recorder(
    target: RecordingTarget, name: str, planned: Plan, *, provenance: Provenance | None = None
) -> Recorder:
    """Return what records a world, for a `WorldTeller` to tell; schemas are Foxglove's where it has one."""
    return Recorder(
        target,
        planned,
        federation=name,
        encodings=WORLD_ENCODINGS,
        schemas=WORLD_SCHEMAS,
        provenance=provenance,
        overwrite=True,
    )
