"""JSON schemas of the messages on a world's topics: Foxglove's for its 3-D panel, and two of Worldline's own.

They say what https://docs.foxglove.dev/docs/visualization/message-schemas/introduction says, as far as tools read it:
names, types and titles.
"""

from __future__ import annotations

from typing import Any

from msgspec import json

from worldline.recording import Schema

TF, SCENE, STATE, INTERACTIONS = "/tf", "/scene", "worldline/state", "worldline/interactions"

_Json = dict[str, Any]

_TEXT: _Json = {"type": "string"}
_NUMBER: _Json = {"type": "number"}
_FLAG: _Json = {"type": "boolean"}
_COUNT: _Json = {"type": "integer", "minimum": 0}
_NANOSECONDS: _Json = {"type": "integer", "minimum": 0, "maximum": 999_999_999}


def _object(title: str, **properties: _Json) -> _Json:
    return {"title": title, "type": "object", "properties": properties}


def _array(items: _Json) -> _Json:
    return {"type": "array", "items": items}


def _choice(title: str, *names: str) -> _Json:
    return {"title": title, "oneOf": [{"title": name, "const": number} for number, name in enumerate(names)]}


_TIME = _object("time", sec=_COUNT, nsec=_NANOSECONDS)
_DURATION = _object("duration", sec={"type": "integer"}, nsec=_NANOSECONDS)
_VECTOR = _object("foxglove.Vector3", x=_NUMBER, y=_NUMBER, z=_NUMBER)
_POINT = _object("foxglove.Point3", x=_NUMBER, y=_NUMBER, z=_NUMBER)
_QUATERNION = _object("foxglove.Quaternion", x=_NUMBER, y=_NUMBER, z=_NUMBER, w=_NUMBER)
_POSE = _object("foxglove.Pose", position=_VECTOR, orientation=_QUATERNION)
_COLOR = _object("foxglove.Color", r=_NUMBER, g=_NUMBER, b=_NUMBER, a=_NUMBER)

_TRANSFORM = _object(
    "foxglove.FrameTransform",
    timestamp=_TIME,
    parent_frame_id=_TEXT,
    child_frame_id=_TEXT,
    translation=_VECTOR,
    rotation=_QUATERNION,
)
_DELETION = _object(
    "foxglove.SceneEntityDeletion",
    timestamp=_TIME,
    type=_choice("foxglove.SceneEntityDeletionType", "MATCHING_ID", "ALL"),
    id=_TEXT,
)
_ENTITY = _object(
    "foxglove.SceneEntity",
    timestamp=_TIME,
    frame_id=_TEXT,
    id=_TEXT,
    lifetime=_DURATION,
    frame_locked=_FLAG,
    metadata=_array(_object("foxglove.KeyValuePair", key=_TEXT, value=_TEXT)),
    arrows=_array(
        _object(
            "foxglove.ArrowPrimitive",
            pose=_POSE,
            shaft_length=_NUMBER,
            shaft_diameter=_NUMBER,
            head_length=_NUMBER,
            head_diameter=_NUMBER,
            color=_COLOR,
        )
    ),
    cubes=_array(_object("foxglove.CubePrimitive", pose=_POSE, size=_VECTOR, color=_COLOR)),
    spheres=_array(_object("foxglove.SpherePrimitive", pose=_POSE, size=_VECTOR, color=_COLOR)),
    cylinders=_array(
        _object(
            "foxglove.CylinderPrimitive",
            pose=_POSE,
            size=_VECTOR,
            bottom_scale=_NUMBER,
            top_scale=_NUMBER,
            color=_COLOR,
        )
    ),
    lines=_array(
        _object(
            "foxglove.LinePrimitive",
            type=_choice("foxglove.LineType", "LINE_STRIP", "LINE_LOOP", "LINE_LIST"),
            pose=_POSE,
            thickness=_NUMBER,
            scale_invariant=_FLAG,
            points=_array(_POINT),
            color=_COLOR,
            colors=_array(_COLOR),
            indices=_array(_COUNT),
        )
    ),
    triangles=_array(
        _object(
            "foxglove.TriangleListPrimitive",
            pose=_POSE,
            points=_array(_POINT),
            color=_COLOR,
            colors=_array(_COLOR),
            indices=_array(_COUNT),
        )
    ),
    texts=_array(
        _object(
            "foxglove.TextPrimitive",
            pose=_POSE,
            billboard=_FLAG,
            font_size=_NUMBER,
            scale_invariant=_FLAG,
            color=_COLOR,
            text=_TEXT,
        )
    ),
    models=_array(
        _object(
            "foxglove.ModelPrimitive",
            pose=_POSE,
            scale=_VECTOR,
            color=_COLOR,
            override_color=_FLAG,
            url=_TEXT,
            media_type=_TEXT,
            data={"type": "string", "contentEncoding": "base64"},
        )
    ),
)


def _schema(whole: _Json) -> Schema:
    return Schema(whole["title"], "jsonschema", json.encode(whole))


WORLD_SCHEMAS: dict[str, Schema] = {
    TF: _schema(_object("foxglove.FrameTransforms", transforms=_array(_TRANSFORM))),
    SCENE: _schema(_object("foxglove.SceneUpdate", deletions=_array(_DELETION), entities=_array(_ENTITY))),
    STATE: _schema(_object("worldline.WorldState", iteration=_COUNT, step=_COUNT, state_hash=_TEXT)),
    INTERACTIONS: _schema(_object("worldline.Interaction", iteration=_COUNT, step=_COUNT, interaction={})),
}
"""By topic, as a `Recorder` takes them."""

WORLD_ENCODINGS: dict[str, str] = dict.fromkeys(WORLD_SCHEMAS, "json")
