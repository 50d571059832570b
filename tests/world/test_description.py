"""A description is sorted, checked, and says what is wrong and with which part."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from worldline.model.errors import ConfigurationError
from worldline.world.description import (
    Collision,
    DiffDrive,
    DriveCommand,
    Friction,
    Joint,
    Level,
    LoadingNote,
    Performer,
    RigidLink,
    ScriptedMotion,
    SpeedLimits,
    VelocityDrive,
    Visual,
    Waypoint,
    WorldDescription,
    WorldModel,
)
from worldline.world.pose import ORIGIN, Pose
from worldline.world.shapes import BoxShape, CapsuleShape, PlaneShape, SphereShape

UNIT = (1.0, 1.0, 1.0)
BODY = (RigidLink(name="body"),)


def model(name: str, **parts: Any) -> WorldModel:
    return WorldModel(name=name, **({"links": BODY} | parts))


def world(**parts: Any) -> WorldDescription:
    models = {name: model(name) for name in ("a", "b", "c")}
    return WorldDescription(**({"name": "w", "models": models} | parts))


def joint(name: str, child: str, parent: str | None, **parts: Any) -> Joint:
    return Joint(**({"name": name, "kind": "revolute", "child": child, "parent": parent} | parts))


def links(*names: str) -> tuple[RigidLink, ...]:
    return tuple(RigidLink(name=name) for name in names)


def level(name: str, *entities: str, **parts: Any) -> Level:
    return Level(**({"name": name, "center": (0, 0, 0), "size": UNIT, "entities": entities} | parts))


def performer(name: str, named: str) -> Performer:
    return Performer(name=name, model=named, size=UNIT)


def refused(text: str) -> Any:
    return pytest.raises(ConfigurationError, match=text)


def test_everything_is_sorted_by_name() -> None:
    made = world(
        models={name: model(name, links=links("z", "y")) for name in ("c", "a", "b")},
        levels=(level("south", "c", "b", "c"), level("north")),
        performers=(performer("q", "a"),),
        notes=(LoadingNote(7, "later"), LoadingNote(2, "earlier")),
    )
    assert list(made.models) == ["a", "b", "c"]
    assert [each.name for each in made.models["a"].links] == ["y", "z"]
    assert [each.name for each in made.levels] == ["north", "south"]
    assert made.levels[1].entities == ("b", "c")
    assert [note.line for note in made.notes] == [2, 7]


def test_what_no_level_names_is_always_there() -> None:
    made = world(levels=(level("one", "b"), level("two", "b")), performers=(performer("p", "a"),))
    assert made.default_entities == ("a", "c")


def test_a_world_can_be_sent_to_another_process() -> None:
    made = world(levels=(level("one", "b"),))
    assert pickle.loads(pickle.dumps(made)) == made


def test_the_content_hash_stands_for_all_that_is_simulated() -> None:
    made = world(levels=(level("one", "b"),))
    assert replace(made, real_time_factor=2.0).content_hash() == made.content_hash()
    assert pickle.loads(pickle.dumps(made)).content_hash() == made.content_hash()
    others = [replace(made, gravity=(0.0, 0.0, -1.0)), replace(made, step=2), replace(made, levels=())]
    assert len({made.content_hash(), *(each.content_hash() for each in others)}) == 4


@pytest.mark.parametrize(
    ("parts", "text", "about"),
    [
        ({"performers": (performer("p", "a"), performer("q", "d"))}, "names model 'd'", ("performer", 1)),
        ({"performers": (performer("p", "a"), performer("q", "a"))}, "'p' and 'q' are one model", ("performer", 1)),
        ({"performers": (performer("p", "a"), performer("p", "b"))}, "two performers 'p'", ("performer", 1)),
        ({"levels": (level("one"), level("one"))}, "two levels 'one'", ("level", 1)),
        ({"levels": (level("one", "d"),)}, "level 'one' names model 'd'", ("level", 0)),
        ({"levels": (level("one", "a"),), "performers": (performer("p", "a"),)}, "is a performer", ("level", 0)),
        ({"step": 0}, "a step is", None),
        ({"step": 0.5}, "a step is", None),
        ({"gravity": (0, 0, float("nan"))}, "gravity", None),
        ({"real_time_factor": -1}, "real-time factor", None),
        ({"name": ""}, "name a world", None),
        ({"models": {"a": model("b")}}, "listed as 'a'", None),
    ],
)
def test_worlds_are_checked(parts: dict[str, Any], text: str, about: object) -> None:
    with refused(text) as caught:
        world(**parts)
    assert caught.value.facts.get("about") == about


@pytest.mark.parametrize(
    ("parts", "text", "about"),
    [
        ({"links": ()}, "no link", None),
        ({"links": links("x", "x")}, "two links 'x'", ("link", 1)),
        ({"canonical_link": "x"}, "no link 'x'", None),
        ({"joints": (joint("j", "x", "body"),)}, "names link 'x'", ("joint", 0)),
        ({"joints": (joint("j", "body", "x"),)}, "names link 'x'", ("joint", 0)),
        (
            {"links": links("x", "y"), "joints": (joint("j", "x", "y"), joint("k", "x", None))},
            "both hold link 'x'",
            ("joint", 1),
        ),
        (
            {
                "links": links("x", "y", "z"),
                "joints": (joint("i", "z", "x"), joint("j", "x", "y"), joint("k", "y", "x")),
            },
            "circle",
            ("joint", 1),
        ),
        ({"joints": (joint("j", "body", "body"),)}, "circle", ("joint", 0)),
        (
            {"links": (RigidLink(name="x", collisions=(Collision(name="c", shape=PlaneShape()),)),)},
            "can't move",
            None,
        ),
        ({"commands": (DriveCommand(time=0),)}, "no drive", None),
        (
            {"drive": VelocityDrive(), "commands": (DriveCommand(time=5), DriveCommand(time=5))},
            "in the order of their times",
            ("command", 1),
        ),
        ({"drive": VelocityDrive(), "static": True}, "static", None),
        ({"motion": ScriptedMotion(waypoints=(Waypoint(time=0, pose=ORIGIN),)), "static": True}, "scripted", None),
    ],
)
def test_models_are_checked(parts: dict[str, Any], text: str, about: object) -> None:
    with refused(text) as caught:
        model("m", **parts)
    assert caught.value.facts.get("about") == about


def wheels(left: str, right: str) -> DiffDrive:
    return DiffDrive(left_joints=(left,), right_joints=(right,), wheel_separation=1, wheel_radius=0.2)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: BoxShape((1, 0, 1)), "size of a box"),
        (lambda: SphereShape(-1), "radius of a sphere"),
        (lambda: SphereShape(float("nan")), "radius of a sphere"),
        (lambda: CapsuleShape(1, float("inf")), "length of a capsule"),
        (lambda: PlaneShape((0, 0, 0)), "normal"),
        (lambda: Friction(-1), "friction"),
        (lambda: Visual(name="v", shape=SphereShape(1), color=(2, 0, 0, 1)), "color"),
        (lambda: joint("j", "a", None, kind="screw"), "no kind of joint"),
        (lambda: joint("j", "a", None, axis=(0, 0, 2)), "axis"),
        (lambda: joint("j", "a", None, lower=2, upper=1), "between"),
        (lambda: joint("j", "a", None, damping=-1), "damping"),
        (lambda: joint("j", "a", None, friction=float("inf")), "friction"),
        (lambda: joint("j", "a", None, anchor=(float("inf"), 0, 0)), "anchor"),
        (lambda: SpeedLimits(speed_min=1), "speeds"),
        (lambda: SpeedLimits(acceleration_max=float("nan")), "accelerations"),
        (lambda: replace(wheels("l", "r"), right_joints=()), "either side"),
        (lambda: DriveCommand(time=-1), "whole nanoseconds"),
        (lambda: Waypoint(time=0.5, pose=ORIGIN), "whole nanoseconds"),  # type: ignore[arg-type]
        (lambda: ScriptedMotion(waypoints=()), "at least one"),
        (lambda: ScriptedMotion(waypoints=(Waypoint(time=0, pose=Pose()),), loop=True), "at least two"),
        (lambda: level("l", size=(1, 1, -1)), "size of a level"),
        (lambda: level("l", buffer=-1), "buffer"),
        (lambda: level("l", center=(0, 0, float("inf"))), "center"),
        (lambda: Performer(name="p", model="m", size=(0, 1, 1)), "size of a performer"),
        (lambda: RigidLink(name=" x"), "name a link"),
    ],
)
def test_parts_are_checked(make: Any, text: str) -> None:
    with refused(text):
        make()
