"""The kinematic engine against formulas, and under the same guarantees as the others."""

from __future__ import annotations

from dataclasses import replace
from math import cos, inf, isclose, nan, pi, sin
from struct import pack

import pytest

from tests.world.crowd import crowd, movers_of, robot, solid, started
from tests.world.small_worlds import model_poses
from worldline.model.errors import ModelError
from worldline.model.time import MS, SECOND
from worldline.world.description import (
    DriveCommand,
    ScriptedMotion,
    SpeedLimits,
    VelocityDrive,
    Waypoint,
    WorldDescription,
    WorldModel,
)
from worldline.world.engines import open_engine
from worldline.world.engines.drives import command_steps, pose_at, ramped
from worldline.world.engines.engine import SimulatedGroup
from worldline.world.engines.kinematic import moved_by
from worldline.world.pose import Pose
from worldline.world.shapes import BoxShape

STEP = 10 * MS
NO_LIMITS = SpeedLimits()
LINKS = (solid("body", BoxShape((1.0, 1.0, 1.0))),)


def group(*models: WorldModel) -> SimulatedGroup:
    world = WorldDescription(name="w", step=STEP, models={model.name: model for model in models})
    return started(open_engine("kinematic", world), world)


def commanded(*commands: DriveCommand, limits: SpeedLimits = NO_LIMITS) -> WorldModel:
    found = robot("r", 1.0, 2.0, 0.0, 0.0)
    assert found.drive is not None
    return replace(found, drive=replace(found.drive, linear=limits), commands=commands)


def near(one: tuple[float, ...], other: tuple[float, ...], tolerance: float = 1e-12) -> bool:
    return all(isclose(a, b, abs_tol=tolerance) for a, b in zip(one, other, strict=True))


def test_a_differential_drive_goes_along_a_circle() -> None:
    running = group(commanded(DriveCommand(time=0, linear=(2.0, 0, 0), angular=(0, 0, 0.5))))
    for quarter in range(1, 5):
        running.advance(157)
        angle = 0.5 * 1.57 * quarter
        expected = (1 + 4 * sin(angle), 2 + 4 * (1 - cos(angle)), 0.15)
        assert near(model_poses(running)["r"].position, expected)


def test_a_drive_ramps_up_evenly() -> None:
    limits = SpeedLimits(speed_max=1.0, acceleration_min=-1.0, acceleration_max=2.0)
    running = group(commanded(DriveCommand(time=0, linear=(5.0, 0, 0)), limits=limits))
    running.advance(100)
    # At 2 m/s² it takes 50 steps, whose speeds are 0.02, 0.04, …, 1.
    assert near(model_poses(running)["r"].position, (1 + 0.01 * 0.02 * 50 * 51 / 2 + 0.5, 2, 0.15))


def test_a_command_given_at_a_step_comes_after_the_file_s() -> None:
    running = group(commanded(DriveCommand(time=0, linear=(1.0, 0, 0)), DriveCommand(time=SECOND, linear=(2.0, 0, 0))))
    running.advance(50)
    running.command("r", (-1.0, 0, 0), (0, 0, 0))
    running.advance(50)
    assert near(model_poses(running)["r"].position, (1.0, 2, 0.15))
    running.advance(50)
    assert near(model_poses(running)["r"].position, (2.0, 2, 0.15))
    running.command("r", (0, 0, 0), (0, 0, 0))
    running.advance(50)
    assert near(model_poses(running)["r"].position, (2.0, 2, 0.15))


def test_velocities_in_a_turning_frame_make_a_screw() -> None:
    model = WorldModel(name="v", links=LINKS, drive=VelocityDrive(linear=(1.0, 0, 0.25), angular=(0, 0, pi)))
    running = group(model)
    running.advance(50)
    assert near(model_poses(running)["v"].position, (1 / pi, 1 / pi, 0.125))
    running.advance(150)
    assert near(model_poses(running)["v"].position, (0, 0, 0.5))


@pytest.mark.parametrize("rate", [1e-12, 1e-10, 2e-9, 1e-6, 1e-3])
def test_slow_turns_are_as_exact_as_fast_ones(rate: float) -> None:
    moved = moved_by((1.0, 0, 0), (0, 0, rate), 1.0)
    assert near(moved.position, (1.0 - rate**2 / 6, rate / 2 - rate**3 / 24, 0))
    assert near(moved.quaternion, (cos(rate / 2), 0, 0, sin(rate / 2)))


def test_a_scripted_model_is_where_its_script_says() -> None:
    motion = ScriptedMotion(
        waypoints=(
            Waypoint(time=SECOND, pose=Pose((0, 0, 1))),
            Waypoint(time=2 * SECOND, pose=Pose.from_rpy((2, 0, 1), 0, 0, 1.0)),
            Waypoint(time=3 * SECOND, pose=Pose((0, 0, 1))),
        ),
        loop=True,
    )
    running = group(WorldModel(name="s", links=LINKS, motion=motion))
    assert model_poses(running)["s"] == motion.waypoints[0].pose
    running.advance(150)
    halfway = Pose.from_rpy((1, 0, 1), 0, 0, 0.5)
    assert near(model_poses(running)["s"].position, halfway.position)
    assert near(model_poses(running)["s"].quaternion, halfway.quaternion)
    running.advance(50)
    assert model_poses(running)["s"] == motion.waypoints[1].pose
    assert pose_at(motion, 3 * SECOND) == pose_at(motion, 5 * SECOND) == motion.waypoints[2].pose
    assert near(pose_at(motion, 3 * SECOND + 500 * MS).position, (1, 0, 1))
    speed = running.extents(10)["s"].speed
    assert 2.0 <= speed < 2.01


def test_a_script_that_ends_elsewhere_than_it_starts_jumps_and_says_so() -> None:
    motion = ScriptedMotion(
        waypoints=(Waypoint(time=0, pose=Pose((0, 0, 0))), Waypoint(time=SECOND, pose=Pose((5, 0, 0)))), loop=True
    )
    running = group(WorldModel(name="s", links=LINKS, motion=motion))
    running.advance(99)
    assert running.extents(2)["s"].speed > 4.9 / 0.02


def test_states_carry_everything() -> None:
    world = crowd()
    engine = open_engine("kinematic", world)
    whole = started(engine, world)
    states = whole.states()
    for step in range(40):
        whole.advance()
        after = {}
        for name in movers_of(world):
            alone = engine.build([name])
            alone.set_states(step, {name: states[name]})
            alone.advance()
            after |= alone.states()
        states = after
        assert states == whole.states()
    assert whole.contacts() == {}


def test_a_placed_model_goes_on_from_there() -> None:
    running = group(commanded(DriveCommand(time=0, linear=(1.0, 0, 0))))
    running.place("r", Pose.from_rpy((5, 5, 0), 0, 0, pi / 2))
    running.advance(100)
    assert near(model_poses(running)["r"].position, (5, 6, 0))


def test_what_gets_too_far_is_named() -> None:
    model = WorldModel(name="rocket", links=LINKS, drive=VelocityDrive(linear=(1e308, 0, 0)))
    running = group(replace(model, pose=Pose((1.7e308, 0, 0))))
    with pytest.raises(ModelError, match=r"'rocket' can't be moved in step \d+") as caught:
        running.advance(100)
    assert caught.value.facts["entity"] == "rocket"


def test_states_that_are_not_finite_are_refused() -> None:
    running = group(WorldModel(name="thing", links=LINKS))
    with pytest.raises(ModelError, match="'thing' has a state that isn't one, in step 2"):
        running.set_states(2, running.states() | {"thing": pack("<7d", nan, 0, 0, 1, 0, 0, 0)})


def test_commands_come_into_force_at_the_first_step_from_their_time() -> None:
    model = commanded(*(DriveCommand(time=time, linear=(time, 0, 0)) for time in (0, 1, 2, STEP, STEP + 1)))
    assert {step: linear[0] for step, (linear, _) in command_steps(model, STEP).items()} == {
        0: 0,
        1: STEP,
        2: STEP + 1,
    }


def test_ramps_end_exactly_where_they_lead_to() -> None:
    limits = SpeedLimits(speed_min=-1.0, acceleration_max=0.1)
    assert ramped(limits, 0.0, 1.0, 1.0) == 0.1
    assert ramped(limits, 0.95, 1.0, 1.0) == 1.0
    assert ramped(limits, 0.3, -7.0, 1.0) == -1.0
    assert ramped(SpeedLimits(), 0.1, 0.3, 1e-3) == 0.3
    assert ramped(SpeedLimits(acceleration_max=inf), 0.1, 0.7, 1.0) == 0.7
