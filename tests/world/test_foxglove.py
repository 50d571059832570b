"""What a world's recording holds for Foxglove: messages as their schemas say, that are whole by themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import make_reader

from tests.world.stage import HASH, affinities, loaded, perform, poses_at, shaped, stage
from worldline.model.plan import Plan
from worldline.model.time import SECOND
from worldline.recording import Recorder
from worldline.world.description import RigidLink, WorldModel
from worldline.world.foxglove import (
    INTERACTIONS,
    SCENE,
    STATE,
    TF,
    WORLD_ENCODINGS,
    WORLD_SCHEMAS,
    TransformsEncoder,
    WorldTeller,
    encoded_scene,
    frame_of,
)
from worldline.world.shapes import BoxShape, CapsuleShape, PlaneShape

PLAN = Plan(roster=("world",), seed=1)
LAYOUT = Path(__file__).parent.parent.parent / "docs" / "foxglove-world.json"


def mismatches(value: Any, schema: dict[str, Any], at: str = "") -> list[str]:
    """Return where a value isn't what its schema says. All properties must be there, and no others."""
    if "oneOf" in schema:
        return [] if value in [each["const"] for each in schema["oneOf"]] else [at]
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
    }
    kind = schema.get("type")
    if kind is None:
        return []
    if not isinstance(value, kinds[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return [f"{at}: {kind}"]
    if kind == "object":
        if list(value) != list(schema["properties"]):
            return [f"{at}: {list(value)}"]
        return [each for key in value for each in mismatches(value[key], schema["properties"][key], f"{at}.{key}")]
    if kind == "array":
        return [each for part in value for each in mismatches(part, schema["items"], f"{at}[]")]
    if kind in ("integer", "number"):
        return [] if schema.get("minimum", value) <= value <= schema.get("maximum", value) else [at]
    return []


def test_the_check_finds_mismatches() -> None:
    schema = json.loads(WORLD_SCHEMAS[STATE].data)
    assert mismatches({"iteration": 1, "step": 1, "state_hash": "x"}, schema) == []
    assert mismatches({"iteration": -1, "step": 1, "state_hash": "x"}, schema) == [".iteration"]
    assert mismatches({"iteration": True, "step": 1, "state_hash": 1}, schema) == [
        ".iteration: integer",
        ".state_hash: string",
    ]
    assert mismatches({"iteration": 1}, schema) != []


def recorded(path: Path, **options: Any) -> list[tuple[str, str, int, Any]]:
    """Record a run; return topic, name of the schema, time and content of all messages, checked by their schemas."""
    recorder = Recorder(path, PLAN, encodings=WORLD_ENCODINGS, schemas=WORLD_SCHEMAS)
    teller = WorldTeller(recorder, **options)
    perform(teller, stage())
    recorder.close()
    found = []
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            assert schema is not None
            assert (schema.encoding, channel.message_encoding) == ("jsonschema", "json")
            content = json.loads(message.data)
            assert mismatches(content, json.loads(schema.data)) == []
            found.append((channel.topic, schema.name, message.log_time, content))
    return found


def test_a_recording(tmp_path: Path) -> None:
    messages = recorded(tmp_path / "a.mcap")
    names = {topic: name for topic, name, _, _ in messages}
    assert names == {
        TF: "foxglove.FrameTransforms",
        SCENE: "foxglove.SceneUpdate",
        STATE: "worldline.WorldState",
    }
    times = {topic: [at for each, _, at, _ in messages if each == topic] for topic in names}
    step = stage().step
    assert times[STATE] == [step * place for place in range(101)]
    assert times[TF] == times[STATE]
    assert times[SCENE] == [0, 50 * step]
    states = [content for topic, _, _, content in messages if topic == STATE]
    assert states[7] == {"iteration": 7, "step": 7, "state_hash": HASH.hex()}
    for topic, _, at, content in messages:
        if topic == TF:
            stamps = [each["timestamp"] for each in content["transforms"]]
            assert stamps == [{"sec": at // SECOND, "nsec": at % SECOND}] * 5


def test_interactions_and_a_reset_are_told_at_rising_times(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    recorder = Recorder(path, PLAN, encodings=WORLD_ENCODINGS, schemas=WORLD_SCHEMAS)
    teller = WorldTeller(recorder, every=0)
    world = stage()
    teller.began(world)
    teller.changed(0, 0, world.models, affinities(world.models))
    teller.stepped(0, 0, {}, HASH)
    teller.stepped(1, 1, {}, HASH)
    teller.interacted(1, 1, world.performers[0])
    teller.changed(1, 0, world.models, affinities(world.models))
    teller.stepped(2, 1, {}, HASH)
    teller.ended(2, 1)
    recorder.close()
    with path.open("rb") as file:
        found = [(channel.topic, m.log_time, m.data) for _, channel, m in make_reader(file).iter_messages()]
    assert [topic for topic, _, _ in found] == [SCENE, STATE, STATE, INTERACTIONS, STATE]
    assert [at // world.step for _, at, _ in found] == [0, 0, 1, 1, 2]
    told = json.loads(found[3][2])
    assert mismatches(told, json.loads(WORLD_SCHEMAS[INTERACTIONS].data)) == []
    assert told == {
        "iteration": 1,
        "step": 1,
        "interaction": {"name": "left one", "model": "left", "size": [1.0, 1.0, 1.0]},
    }


def test_transforms_are_the_poses_of_all_links() -> None:
    models = stage().models
    told = json.loads(TransformsEncoder(models).encode(1_500_000_000, poses_at(models, 0.0)))["transforms"]
    assert [each["child_frame_id"] for each in told] == [
        "east_box/body",
        "left/arm",
        "left/chassis",
        "right/arm",
        "right/chassis",
        "west_box/body",
    ]
    assert {each["parent_frame_id"] for each in told} == {"world"}
    assert told[0]["translation"] == {"x": 6.0, "y": 3.0, "z": 0.25}
    assert told[0]["rotation"] == {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}
    assert told[0]["timestamp"] == {"sec": 1, "nsec": 500_000_000}
    assert told[2]["translation"]["z"] == pytest.approx(0.2)
    assert told[2]["rotation"]["z"] == pytest.approx(0.149438, abs=1e-6)


def test_every_scene_is_whole_and_deletes_what_is_gone() -> None:
    world = stage()
    shown: list[str] = []
    scenes = []
    for place, without in enumerate([("east_box", "east_egg"), ("west_box", "east_egg")]):
        scene, shown = encoded_scene(place, world.levels, loaded(world, *without), shown)
        scenes.append(json.loads(scene))
    assert [[each["id"] for each in scene["entities"]] for scene in scenes] == [
        ["/level/east", "/level/west", *ids, "pillar/body", "right/arm", "right/chassis", "wall/body", *rest]
        for ids, rest in (
            (["ground/body", "left/arm", "left/chassis"], ["west_box/body"]),
            (["east_box/body", "ground/body", "left/arm", "left/chassis"], []),
        )
    ]
    assert scenes[0]["deletions"] == []
    assert scenes[1]["deletions"] == [{"timestamp": {"sec": 0, "nsec": 1}, "type": 0, "id": "west_box/body"}]


def scene_of(*models: WorldModel) -> dict[str, dict[str, Any]]:
    found = json.loads(encoded_scene(0, (), {model.name: model for model in models})[0])
    return {each["id"]: each for each in found["entities"]}


def test_links_look_like_their_visuals_or_else_like_what_collides() -> None:
    scene = scene_of(*stage().models.values())
    chassis, arm, wall = scene["left/chassis"], scene["left/arm"], scene["wall/body"]
    assert chassis["cubes"][0]["color"] == {"r": 1.0, "g": 0.0, "b": 0.0, "a": 1.0}
    assert arm["spheres"][0]["size"] == {"x": 0.2, "y": 0.2, "z": 0.2}
    assert (arm["frame_id"], arm["frame_locked"]) == ("left/arm", True)
    assert arm["spheres"][0]["pose"]["position"] == {"x": 0.0, "y": 0.0, "z": 0.0}
    assert wall["frame_id"] == "world"
    assert wall["cubes"][0]["pose"]["position"] == {"x": -6.0, "y": 0.0, "z": 0.5}
    assert scene["east_egg/body"]["spheres"][0]["size"] == {"x": 0.6, "y": 0.4, "z": 0.2}
    assert scene["pillar/body"]["cylinders"][0]["size"] == {"x": 0.8, "y": 0.8, "z": 2.0}


def test_a_capsule_is_a_cylinder_between_spheres() -> None:
    entity = scene_of(shaped("m", CapsuleShape(0.5, 2.0), (0.0, 0.0, 0.0)))["m/body"]
    assert entity["cylinders"][0]["size"] == {"x": 1.0, "y": 1.0, "z": 2.0}
    assert [each["pose"]["position"]["z"] for each in entity["spheres"]] == [1.0, -1.0]


@pytest.mark.parametrize(
    ("normal", "center", "turn"),
    [
        ((0.0, 0.0, 1.0), (0.0, 0.0, -0.005), (0.0, 0.0, 0.0, 1.0)),
        ((1.0, 0.0, 0.0), (-0.005, 0.0, 0.0), (0.0, 0.7071067811865476, 0.0, 0.7071067811865476)),
        ((0.0, 0.0, -1.0), (0.0, 0.0, 0.005), (1.0, 0.0, 0.0, 0.0)),
    ],
)
def test_a_plane_is_a_thin_slab_below_its_surface(normal: Any, center: Any, turn: Any) -> None:
    slab = scene_of(shaped("m", PlaneShape(normal), (0.0, 0.0, 0.0), static=True))["m/body"]["cubes"][0]
    assert slab["size"] == {"x": 100.0, "y": 100.0, "z": 0.01}
    assert tuple(slab["pose"]["position"].values()) == pytest.approx(center)
    assert tuple(slab["pose"]["orientation"].values()) == pytest.approx(turn)


def test_no_two_links_share_a_frame() -> None:
    parts = [("a", "b/c"), ("a/b", "c"), ("a%2Fb", "c")]
    assert len({frame_of(*each) for each in parts}) == 3
    models = {
        model: replace(shaped(model, BoxShape((1, 1, 1)), (0, 0, 0)), links=(RigidLink(name=link),), canonical_link="")
        for model, link in parts
    }
    scene = json.loads(encoded_scene(0, (), models)[0])
    assert len({each["id"] for each in scene["entities"]}) == 3


def test_the_layout_shows_what_is_recorded() -> None:
    layout = json.loads(LAYOUT.read_text())
    topics = layout["configById"]["3D!world"]["topics"]
    assert {topic: facts["visible"] for topic, facts in topics.items()} == {SCENE: True, TF: True}
    assert {layout["layout"]["first"], layout["layout"]["second"]} == set(layout["configById"])
