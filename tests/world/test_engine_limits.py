"""What is too far or too fast for physics is refused where it is given; if a file asks for it, it is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.world.crowd import solid, started
from worldline.model.errors import ModelError, UsageError
from worldline.model.time import MS
from worldline.world.description import VelocityDrive, WorldDescription, WorldModel
from worldline.world.engines import open_engine
from worldline.world.engines.engine import SimulatedGroup
from worldline.world.pose import Pose
from worldline.world.shapes import BoxShape

ROCKET = WorldModel(name="rocket", links=(solid("body", BoxShape((1, 1, 1))),), drive=VelocityDrive())


def world_of(model: WorldModel) -> WorldDescription:
    return WorldDescription(name="w", step=10 * MS, models={model.name: model})


@pytest.fixture(params=["kinematic", "mujoco"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "mujoco":
        pytest.importorskip("mujoco", reason="MuJoCo isn't installed")
    return str(request.param)


def group(engine: str, model: WorldModel = ROCKET) -> SimulatedGroup:
    return started(open_engine(engine, world_of(model)), world_of(model))


def test_commands_have_limits(engine: str) -> None:
    running = group(engine)
    for linear, angular in (((1e300, 0, 0), (0, 0, 0)), ((0, 0, 0), (0, 0, -1.1e6))):
        with pytest.raises(UsageError, match="too fast for any physics") as caught:
            running.command("rocket", linear, angular)
        assert caught.value.advice == "command at most 1e+06 m/s and rad/s along each axis"
    running.command("rocket", (1e6, 0, 0), (0, 0, 0))
    running.extents(10)


def test_poses_have_limits(engine: str) -> None:
    running = group(engine)
    with pytest.raises(UsageError, match="too far away for any physics") as caught:
        running.place("rocket", Pose((0, -1e300, 0)))
    assert caught.value.advice == "stay within 1e+09 m of the origin along each axis"
    running.place("rocket", Pose((0, -1e9, 0)))
    running.extents(10)
    running.advance()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "model",
    [
        replace(ROCKET, drive=VelocityDrive(linear=(1e300, 0, 0))),
        replace(ROCKET, pose=Pose((1e308, 1e308, 1e308))),
    ],
)
def test_what_a_file_wants_and_numbers_cannot_say_is_named(engine: str, model: WorldModel) -> None:
    running = group(engine, model)
    running.set_states(7, running.states())
    for ask in (lambda: running.extents(10), lambda: open_engine(engine, world_of(model)).newcomer("rocket", 7, 10)):
        with pytest.raises(ModelError, match="'rocket' is too far away or too fast to go on, in step 7") as caught:
            ask()
        assert (caught.value.facts["entity"], caught.value.facts["step"], caught.value.at) == ("rocket", 7, 70 * MS)
