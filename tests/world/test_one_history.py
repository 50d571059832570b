"""One history of a world with contacts, whoever simulates what: by any number of secondaries, in any groups."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.world.crowd import TURN, crowd, ground, robot, thing, wall
from tests.world.small_worlds import Listener, Story, course_of, local, played, run
from worldline.model.time import MS
from worldline.world.course import Course
from worldline.world.description import (
    DiffDrive,
    DriveCommand,
    Level,
    Performer,
    SpeedLimits,
    WorldDescription,
    WorldModel,
)
from worldline.world.engines import open_engine
from worldline.world.sdf import read_world
from worldline.world.shapes import BoxShape, SphereShape

EXAMPLES = Path(__file__).parents[2] / "examples" / "world"


def racer(name: str, x: float, y: float, yaw: float) -> WorldModel:
    """Return a robot that goes straight on, and as fast as it can without spinning its wheels."""
    slow = robot(name, x, y, yaw, 0.0)
    drive = slow.drive
    assert isinstance(drive, DiffDrive)
    limits = SpeedLimits(acceleration_min=-6.0, acceleration_max=6.0)
    return replace(slow, drive=replace(drive, linear=limits), commands=(DriveCommand(time=0, linear=(3.0, 0.0, 0.0)),))


def crossing() -> WorldDescription:
    """Robots drive head on, cross levels on the way and push what lies there, near and on the borders of levels."""
    models = [
        ground(),
        wall("wall_b", (3.5, 2.6, 0.5)),
        racer("robot_1", -1.5, 0.0, 0.0),
        racer("robot_2", 2.7, 0.25, 2 * TURN),
        racer("robot_3", 1.0, -3.2, TURN),
        thing("box", BoxShape((0.3, 0.3, 0.3)), (0.55, 0.0, 0.15), 0.5),
        thing("ball", SphereShape(0.15), (1.0, -1.6, 0.15), 0.3),
        thing("far", BoxShape((0.3, 0.3, 0.3)), (3.5, 1.0, 0.3), 0.5),
    ]
    levels = (
        Level(name="A", center=(0.0, 0.0, 0.0), size=(1.0, 2.0, 2.0), buffer=0.1, entities=()),
        Level(name="B", center=(1.2, 0.0, 0.0), size=(1.2, 2.0, 2.0), buffer=0.1, entities=("far", "wall_b")),
        Level(name="C", center=(1.0, -1.8, 0.0), size=(2.0, 1.0, 2.0), buffer=0.1, entities=("ball",)),
    )
    performers = tuple(Performer(name=f"p{n}", model=f"robot_{n}", size=(0.4, 0.4, 0.4)) for n in (1, 2, 3))
    return WorldDescription(
        name="crossing",
        step=2 * MS,
        models={model.name: model for model in models},
        levels=levels,
        performers=performers,
    )


STEPS = 700


@cache
def alone() -> Story:
    return played(crossing(), STEPS, engine="mujoco").story


@pytest.mark.parametrize(("count", "run_ahead"), [(2, 10), (3, 1)])
def test_migrations_in_contact_and_merges_leave_every_bit_as_it_is(count: int, run_ahead: int) -> None:
    names = [f"s{number}" for number in range(count)]
    seen = played(crossing(), STEPS, names, run_ahead=run_ahead, engine="mujoco")
    assert seen.story == alone()
    homes: dict[str, set[str]] = {}
    for _, _, affinities in seen.changes:
        for mover, secondary in affinities.items():
            homes.setdefault(mover, set()).add(secondary)
    assert sum(len(secondaries) > 1 for secondaries in homes.values()) >= 2  # Wheels are on the ground all the while.
    assert {len(models) for _, models, _ in seen.changes} >= {5, 7, 8}


def test_it_is_the_history_of_the_whole_world_as_one_model() -> None:
    """Without levels, everything is loaded: one model of all is what groups and secondaries are to add up to."""
    world = crowd()
    names = ("a", "b", "c")
    engine_story = played(world, 160, engine="mujoco").story  # After 120 steps robots hit each other.
    assert played(world, 160, names, run_ahead=10, engine="mujoco").story == engine_story
    whole = Listener()
    # For so long that everybody could meet everybody.
    course = Course(open_engine("mujoco", world), ("a",), whole, look_every=3000)
    run(course, local(world, ("a",), "mujoco"), 160)
    assert len(course._arranged.groups) == 1
    assert whole.story == engine_story


def test_a_wall_that_is_loaded_next_to_a_robot_stops_it() -> None:
    """The robot's group was there before the wall, and near enough that no other static model is missing."""
    models = [ground(), racer("robot_1", -1.5, 0.0, 0.0), wall("wall", (1.0, 0.0, 0.5))]
    world = WorldDescription(
        name="stopped",
        step=2 * MS,
        models={model.name: model for model in models},
        levels=(Level(name="A", center=(0.5, 0.0, 0.0), size=(2.0, 2.0, 2.0), buffer=0.1, entities=("wall",)),),
        performers=(Performer(name="p", model="robot_1", size=(0.4, 0.4, 0.4)),),
    )
    listener = Listener()
    course = run(course_of(world, ("a",), listener, engine="mujoco"), local(world, ("a",), "mujoco"), 900)
    assert len(listener.loads) == 2
    assert 0.2 < course.positions()["robot_1"][0] < 1.0


@pytest.mark.parametrize("name", ["levels", "falling_boxes", "push_box"])
def test_examples_have_one_history(name: str) -> None:
    world = read_world(EXAMPLES / f"{name}.sdf")
    one = played(world, 150, engine="mujoco").story
    assert played(world, 150, ("a", "b", "c"), run_ahead=10, engine="mujoco").story == one
