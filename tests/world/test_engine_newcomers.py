"""What is to be known of a mover before anybody simulates it is what a group of it alone would say."""

from __future__ import annotations

from dataclasses import replace
from struct import unpack

import pytest

from tests.world.crowd import crowd, movers_of
from tests.world.small_worlds import course_of, local, run
from worldline.world.engines import open_engine
from worldline.world.pose import Pose

WORLD = crowd()


@pytest.mark.parametrize("name", ["kinematic", "mujoco"])
@pytest.mark.parametrize("step", [0, 140, 151])
def test_a_newcomer_is_as_a_group_alone_would_have_it(name: str, step: int) -> None:
    if name == "mujoco":
        pytest.importorskip("mujoco", reason="MuJoCo isn't installed")
    engine = open_engine(name, WORLD)
    for entity in movers_of(WORLD):
        found = engine.newcomer(entity, step, 20)
        alone = engine.build([entity])
        alone.set_states(step, {entity: found.state})
        assert found.state == engine.initial_state(entity, step)
        assert found.position == unpack("<3d", alone.packed_positions())
        extent = alone.extents(20)[entity]
        assert found.extent.center == pytest.approx(extent.center, abs=1e-12)
        assert found.extent.half == pytest.approx(extent.half, abs=1e-12)
        assert found.extent.speed == pytest.approx(extent.speed, rel=1e-12)


def test_the_primary_builds_each_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco", reason="MuJoCo isn't installed")
    from worldline.world.engines.mujoco_model import MujocoBuilder

    built = []
    add = MujocoBuilder.add
    monkeypatch.setattr(MujocoBuilder, "add", lambda self, model: built.append(model.name) or add(self, model))
    course = course_of(WORLD, ("a",), None, engine="mujoco")
    course.begin(1)
    assert sorted(built) == sorted(movers_of(WORLD))
    assert course.positions().keys() == set(movers_of(WORLD))
    assert len(built) == len(movers_of(WORLD))


def test_a_scripted_model_is_where_its_script_says_whatever_its_links() -> None:
    pytest.importorskip("mujoco", reason="MuJoCo isn't installed")
    pusher = WORLD.models["pusher"]
    tilted = replace(
        pusher, links=tuple(replace(link, pose=Pose.from_rpy((1, 2, 3), 0.1, 0.2, 0.3)) for link in pusher.links)
    )
    world = replace(WORLD, models={"pusher": tilted})
    course, exchange = course_of(world, ("a",), None, engine="mujoco"), local(world, ("a",), "mujoco")
    run(course, exchange, 250 * 10**6 // world.step)
    assert pusher.motion is not None
    assert course.positions()["pusher"] == pusher.motion.waypoints[1].pose.position
