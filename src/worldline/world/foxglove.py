"""A world as messages that Foxglove's 3-D panel draws: transforms of links, and a scene of their shapes.

A link of a mover is a frame, named "model/link", whose parent is "world". Its shapes are in that frame and follow it,
so the scene is told again only when other models are loaded. A scene is always whole, since whoever jumps to a time is
shown the last one before it and nothing else.

Equal worlds are equal bytes: fields have a fixed order, and floats one spelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from struct import Struct as Layout
from typing import Any

from msgspec import Struct, json

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
from worldline.world.spectator import POSE_NUMBERS, Spectator

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


class _Timestamp(Struct):
    sec: int
    nsec: int


class _Xyz(Struct):
    x: float
    y: float
    z: float


class _Xyzw(Struct):
    x: float
    y: float
    z: float
    w: float


class _FrameTransform(Struct):
    timestamp: _Timestamp
    parent_frame_id: str
    child_frame_id: str
    translation: _Xyz
    rotation: _Xyzw


class _FrameTransforms(Struct):
    transforms: list[_FrameTransform]


class _PoseMessage(Struct):
    position: _Xyz
    orientation: _Xyzw


class _Rgba(Struct):
    r: float
    g: float
    b: float
    a: float


class _Solid(Struct):
    """A cube or a sphere."""

    pose: _PoseMessage
    size: _Xyz
    color: _Rgba


class _Cylinder(Struct):
    pose: _PoseMessage
    size: _Xyz
    bottom_scale: float
    top_scale: float
    color: _Rgba


class _Text(Struct):
    pose: _PoseMessage
    billboard: bool
    font_size: float
    scale_invariant: bool
    color: _Rgba
    text: str


class _SceneEntity(Struct, kw_only=True):
    timestamp: _Timestamp
    frame_id: str
    id: str
    lifetime: _Timestamp
    frame_locked: bool
    metadata: tuple[()] = ()
    arrows: tuple[()] = ()
    cubes: list[_Solid]
    spheres: list[_Solid]
    cylinders: list[_Cylinder]
    lines: tuple[()] = ()
    triangles: tuple[()] = ()
    texts: list[_Text]
    models: tuple[()] = ()


class _Deletion(Struct):
    timestamp: _Timestamp
    type: int
    id: str


class _SceneUpdate(Struct):
    deletions: list[_Deletion]
    entities: list[_SceneEntity]


def frame_of(model: str, link: str) -> str:
    """Return the name of a link's frame. Slashes in the model's name are escaped, so no two links share a frame."""
    return f"{model.replace('%', '%25').replace('/', '%2F')}/{link}"


class TransformsEncoder:
    """Encodes the poses of links. It builds the message of each mover once, and then only puts numbers into it."""

    def __init__(self, models: Mapping[str, WorldModel]) -> None:
        self._time = _Timestamp(0, 0)
        self._movers = {
            name: [
                _FrameTransform(
                    self._time, WORLD_FRAME, frame_of(name, link.name), _Xyz(0.0, 0.0, 0.0), _Xyzw(0.0, 0.0, 0.0, 1.0)
                )
                for link in model.links
            ]
            for name, model in sorted(models.items())
            if not model.static
        }
        self._layouts = {name: Layout(f"<{POSE_NUMBERS * len(frames)}d") for name, frames in self._movers.items()}

    def encode(self, time: int, poses: Mapping[str, bytes]) -> bytes:
        """Return the transforms of all movers whose poses are given, in the order of their names."""
        self._time.sec, self._time.nsec = divmod(time, SECOND)
        told: list[_FrameTransform] = []
        for name, frames in self._movers.items():
            packed = poses.get(name)
            if packed is None:
                continue
            numbers = iter(self._layouts[name].unpack(packed))
            for frame, x, y, z, w, i, j, k in zip(frames, *(numbers,) * POSE_NUMBERS, strict=True):
                translation, rotation = frame.translation, frame.rotation
                translation.x, translation.y, translation.z = x, y, z
                rotation.w, rotation.x, rotation.y, rotation.z = w, i, j, k
            told += frames
        return _encode(_FrameTransforms(told))


class SceneEncoder:
    """Encodes what there is to see. It remembers what was, to have it removed when it is there no longer."""

    def __init__(self, levels: Iterable[Level]) -> None:
        self._levels = list(levels)
        self._shown: list[str] = []

    def encode(self, time: int, models: Mapping[str, WorldModel]) -> bytes:
        stamp = _Timestamp(*divmod(time, SECOND))
        entities = [_level_entity(stamp, level) for level in self._levels]
        for name, model in sorted(models.items()):
            entities += [_link_entity(stamp, name, model, link) for link in model.links]
        shown = {entity.id for entity in entities}
        deletions = [_Deletion(stamp, _MATCHING_ID, gone) for gone in self._shown if gone not in shown]
        self._shown = [entity.id for entity in entities]
        return _encode(_SceneUpdate(deletions, entities))


def _entity(stamp: _Timestamp, frame: str, name: str) -> _SceneEntity:
    return _SceneEntity(
        timestamp=stamp,
        frame_id=frame,
        id=name,
        lifetime=_Timestamp(0, 0),
        frame_locked=True,
        cubes=[],
        spheres=[],
        cylinders=[],
        texts=[],
    )


def _link_entity(stamp: _Timestamp, name: str, model: WorldModel, link: RigidLink) -> _SceneEntity:
    frame = frame_of(name, link.name)
    entity = _entity(stamp, WORLD_FRAME if model.static else frame, frame)
    at = model.pose.compose(link.pose) if model.static else ORIGIN
    for shape, pose, color in _seen(link):
        _draw(entity, shape, at.compose(pose), _Rgba(*color))
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


def _draw(entity: _SceneEntity, shape: Shape, pose: Pose, color: _Rgba) -> None:
    match shape:
        case BoxShape(size):
            entity.cubes.append(_Solid(_pose(pose), _Xyz(*size), color))
        case SphereShape(radius):
            entity.spheres.append(_ball(pose, (radius, radius, radius), color))
        case EllipsoidShape(radii):
            entity.spheres.append(_ball(pose, radii, color))
        case CylinderShape(radius, height):
            entity.cylinders.append(_column(pose, radius, height, color))
        case CapsuleShape(radius, height):
            entity.cylinders.append(_column(pose, radius, height, color))
            for end in (height / 2, -height / 2):
                entity.spheres.append(_ball(pose.compose(Pose((0.0, 0.0, end))), (radius, radius, radius), color))
        case PlaneShape(normal, (width, depth)):
            slab = pose.compose(_facing(normal)).compose(Pose((0.0, 0.0, -_PLANE_THICK / 2)))
            entity.cubes.append(_Solid(_pose(slab), _Xyz(width, depth, _PLANE_THICK), color))


def _ball(pose: Pose, radii: Vector, color: _Rgba) -> _Solid:
    x, y, z = radii
    return _Solid(_pose(pose), _Xyz(2 * x, 2 * y, 2 * z), color)


def _column(pose: Pose, radius: float, height: float, color: _Rgba) -> _Cylinder:
    return _Cylinder(_pose(pose), _Xyz(2 * radius, 2 * radius, height), 1.0, 1.0, color)


def _facing(normal: Vector) -> Pose:
    """Return the pose whose z axis is this normal."""
    x, y, z = normal
    if z < -1 + 1e-9:
        return Pose(quaternion=(0.0, 1.0, 0.0, 0.0))
    return Pose.from_quaternion((0.0, 0.0, 0.0), (1.0 + z, -y, x, 0.0))


def _level_entity(stamp: _Timestamp, level: Level) -> _SceneEntity:
    entity = _entity(stamp, WORLD_FRAME, f"/level/{level.name}")  # No frame starts with a slash.
    entity.cubes.append(_Solid(_pose(Pose(level.center)), _Xyz(*level.size), _Rgba(*_LEVEL_COLOR)))
    x, y, z = level.center
    above = Pose((x, y, z + level.size[2] / 2), UPRIGHT)
    entity.texts.append(_Text(_pose(above), True, 16.0, True, _Rgba(*_LEVEL_INK), level.name))
    return entity


def _pose(pose: Pose) -> _PoseMessage:
    w, x, y, z = pose.quaternion
    return _PoseMessage(_Xyz(*pose.position), _Xyzw(x, y, z, w))


# Tells an observer of a history, such as a recorder, what happens in a world, as messages of one member.

WORLD_MEMBER = "world"
"""The member that a world is to whoever observes its history."""


class _WorldState(Struct):
    iteration: int
    step: int
    state_hash: str


class _ToldInteraction(Struct):
    iteration: int
    step: int
    interaction: Any


class WorldTeller(Spectator):
    """Messages are sent at iteration × step size, so their times rise even when the world is reset.

    A recorder needs WORLD_SCHEMAS and WORLD_ENCODINGS to say what they are. Nobody receives them: they are final as
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
        self._scene = SceneEncoder(())
        self._transforms = TransformsEncoder({})

    def began(self, description: WorldDescription) -> None:
        self._step_ns = description.step
        self._scene = SceneEncoder(description.levels)
        self._observer.began(WORLD_MEMBER, 0)

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        if models == self._models:
            return
        self._models = dict(models)
        self._transforms = TransformsEncoder(models)
        at = self._reach(iteration)
        self._send(SCENE, at, self._scene.encode(at, models))

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        self._chain = chained(self._chain, state_hash)
        at = self._reach(iteration)
        if poses:  # First, so that whoever looks for what differs finds who it is before the hash.
            self._send(TF, at, self._transforms.encode(at, poses))
        self._send(STATE, at, _encode(_WorldState(iteration, step, state_hash.hex())))

    def interacted(self, iteration: int, step: int, interaction: Any) -> None:
        at = self._reach(iteration)
        self._send(INTERACTIONS, at, _encode(_ToldInteraction(iteration, step, plain(interaction))))

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
