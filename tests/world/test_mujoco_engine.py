"""MuJoCo does what the description says, and ends a run that can't go on by a name and a step."""

from __future__ import annotations

from dataclasses import replace
from math import atan2, cos, isclose, nan, sin
from pathlib import Path
from struct import pack

import pytest

from tests.leaks.running import EXAMPLES
from tests.world.crowd import crowd, ground, movers_of, pendulum, robot, solid, started, thing, wall
from worldline.model.errors import ConfigurationError, ModelError, UsageError
from worldline.model.time import MS, SECOND
from worldline.world.description import (
    DriveCommand,
    Joint,
    ScriptedMotion,
    VelocityDrive,
    Waypoint,
    WorldDescription,
    WorldModel,
)
from worldline.world.engine import SimulatedGroup
from worldline.world.engines import open_engine
from worldline.world.extents import link_radius
from worldline.world.inertia import Inertia
from worldline.world.pose import Pose
from worldline.world.sdf import read_world
from worldline.world.shapes import BoxShape, SphereShape

pytest.importorskip("mujoco", reason="MuJoCo isn't installed")

CUBE = BoxShape((0.4, 0.4, 0.4))


def world(*models: WorldModel, step: int = 2 * MS) -> WorldDescription:
    return WorldDescription(name="w", step=step, models={each.name: each for each in (ground(), *models)})


def group(*models: WorldModel) -> SimulatedGroup:
    found = world(*models)
    return started(open_engine("mujoco", found), found)


def hoverer(name: str = "hoverer", z: float = 0.5, **velocity: tuple[float, float, float]) -> WorldModel:
    return WorldModel(
        name=name, pose=Pose((0, 0, z)), links=(solid("body", CUBE, 3.0),), drive=VelocityDrive(**velocity)
    )


def position(running: SimulatedGroup, name: str) -> tuple[float, float, float]:
    return running.model_poses()[name].position


# --- What moves ---


def test_what_falls_comes_to_rest_on_the_ground() -> None:
    running = group(thing("ball", SphereShape(0.2), (0, 0, 1)))
    running.advance(150)
    assert isclose(position(running, "ball")[2], 1 - 9.8 / 2 * 0.3**2, abs_tol=0.01)
    running.advance(500)
    assert isclose(position(running, "ball")[2], 0.2, abs_tol=0.005)
    assert [(each.one, each.other) for each in running.contacts()] == [(("ball", "body"), ("ground", "g"))]


def test_wheels_drive_as_commanded() -> None:
    running = group(robot("r", 0, 0, 0, 0.5))
    running.advance(150)  # The file turns it around then.
    x, y, z = position(running, "r")
    assert isclose(x, 0.5 * 0.3 - 0.5 * 0.05, abs_tol=0.02)  # The ramp takes 0.1 s.
    assert abs(y) < 1e-3
    assert isclose(z, 0.15, abs_tol=0.005)
    running.advance(1)
    running.command("r", (0, 0, 0), (0, 0, 1.0))
    running.advance(500)
    w, _, _, turned = running.model_poses()["r"].quaternion
    assert isclose(2 * atan2(turned, w), 1.0, abs_tol=0.15)  # Its wheels are broad, and slip a little when it turns.


def test_a_velocity_drive_holds_its_height_and_turns() -> None:
    running = group(hoverer(linear=(1.0, 0, 0), angular=(0, 0, 1.0)))
    running.advance(500)
    x, y, z = position(running, "hoverer")
    assert isclose(x, sin(1.0), abs_tol=0.05)
    assert isclose(y, 1 - cos(1.0), abs_tol=0.05)
    assert isclose(z, 0.5, abs_tol=1e-3)


def test_a_velocity_drive_is_stopped_by_a_wall() -> None:
    running = group(hoverer(linear=(1.0, 0, 0)), wall("wall", (0.7, 0, 0.5)))
    running.advance(1000)
    assert isclose(position(running, "hoverer")[0], 0.4, abs_tol=0.02)


def test_a_file_s_command_is_in_force_from_its_time() -> None:
    still = hoverer()
    moving = WorldModel(
        name="later",
        pose=Pose((0, 3, 0.5)),
        links=still.links,
        drive=VelocityDrive(),
        commands=(DriveCommand(time=51 * MS, linear=(1.0, 0, 0)),),
    )
    running = group(still, moving)
    running.advance(26)
    assert position(running, "later")[0] == 0
    running.advance(1)
    assert position(running, "later")[0] > 0


def test_a_scripted_model_pushes_and_is_where_it_should_be() -> None:
    motion = ScriptedMotion(
        waypoints=(
            Waypoint(time=0, pose=Pose((0, 0, 0.2))),
            Waypoint(time=400 * MS, pose=Pose.from_rpy((0.4, 0, 0.2), 0, 0, 0.2)),
        )
    )
    pusher = WorldModel(name="pusher", links=(solid("body", CUBE),), motion=motion)
    running = group(pusher, thing("box", CUBE, (0.45, 0, 0.2)))
    running.advance(100)
    assert running.model_poses()["pusher"].position == (0.2, 0, 0.2)
    running.advance(200)
    assert running.model_poses()["pusher"] == motion.waypoints[-1].pose
    assert position(running, "box")[0] > 0.75
    assert running.states()["pusher"] == b""


def test_joints_keep_their_limits() -> None:
    running = group(pendulum("p", 0, 0))
    running.advance(400)
    rod, second, weight = running.poses()["p"]
    assert rod.quaternion != running.poses()["p"][1].quaternion
    tilt = 2 * rod.quaternion[1]
    assert 0.15 < tilt < 0.55  # The file's 0.5, less 0.3 at most.
    assert second.position[2] > weight.position[2]


def test_the_smaller_friction_counts() -> None:
    slide = WorldModel(name="ice", pose=Pose((0, 0, 0.2)), links=(solid("body", CUBE, mu=0.0),))
    grip = WorldModel(name="rubber", pose=Pose((0, 2, 0.2)), links=(solid("body", CUBE, mu=1.0),))
    tilted = WorldDescription(
        name="w", step=2 * MS, gravity=(2.0, 0, -9.8), models={m.name: m for m in (ground(), slide, grip)}
    )
    running = started(open_engine("mujoco", tilted), tilted)
    running.advance(500)
    assert isclose(position(running, "ice")[0], 1.0, abs_tol=0.02)
    assert abs(position(running, "rubber")[0]) < 0.05


def test_robots_collide_in_one_group_and_pass_through_each_other_in_two() -> None:
    found = world(robot("a", 0, 0, 0, 0.0), robot("b", 1.0, 0, 3.141592653589793, 0.0))
    engine = open_engine("mujoco", found)

    def run(*names: str) -> dict[str, Pose]:
        running = engine.build(names, ["ground"])
        running.set_states(200, {name: engine.initial_state(name, 200) for name in names})
        for name in names:
            running.command(name, (1.0, 0, 0), (0, 0, 0))
        running.advance(400)
        return running.model_poses()

    together, apart = run("a", "b"), run("a") | run("b")
    assert together["b"].position[0] - together["a"].position[0] > 0.55
    assert apart["b"].position[0] < 0.5 < apart["a"].position[0]


def test_two_robots_push_a_box() -> None:
    found = read_world(EXAMPLES / "world" / "push_box.sdf")
    running = started(open_engine("mujoco", found), found)
    running.advance(3900)
    assert abs(position(running, "box")[0]) < 0.01
    running.advance(1100)
    assert position(running, "box")[0] > 0.3
    running.advance(800)
    touching = {(each.one[0], each.other[0]) for each in running.contacts()}
    assert {("box", "vehicle_east"), ("box", "vehicle_west")} <= touching


def test_a_placed_model_is_there_at_rest() -> None:
    running = group(robot("r", 0, 0, 0, 1.0))
    running.advance(50)
    there = Pose.from_rpy((5, 5, 0.15), 0, 0, 1.0)
    running.place("r", there)
    now = running.model_poses()["r"]
    assert all(isclose(a, b, abs_tol=1e-9) for a, b in zip(now.position, there.position, strict=True))
    running.command("r", (0, 0, 0), (0, 0, 0))
    running.advance(50)
    assert isclose(position(running, "r")[0], 5, abs_tol=0.01)


# --- What is known ---


def test_an_entity_that_appears_later_has_the_command_of_then() -> None:
    engine = open_engine("mujoco", world(robot("r", 0, 0, 0, 1.0)))
    assert engine.initial_state("r", 150) == engine.initial_state("r")
    assert engine.initial_state("r", 151)[:8] == pack("<d", -1.0)


def test_extents_hold_links_and_grow_with_speed() -> None:
    running = group(robot("r", 3, 0, 0, 1.0), thing("ball", SphereShape(0.2), (0, 0, 2)))
    extents = running.extents(1)
    assert extents["ball"].half == pytest.approx((0.2, 0.2, 0.2))
    assert extents["r"].half[0] >= 0.3
    assert extents["ball"].speed > 5
    running.advance(100)
    assert running.extents(1)["ball"].speed > extents["ball"].speed


def test_every_link_is_in_its_box() -> None:
    found = crowd()
    running = started(open_engine("mujoco", found), found)
    for _ in range(3):
        extents = running.extents(20)
        running.advance(20)
        for name, poses in running.poses().items():
            center, half, speed = extents[name]
            for pose, link in zip(poses, found.models[name].links, strict=True):
                for axis in range(3):
                    room = half[axis] + speed * 20 * found.step / SECOND - link_radius(link)
                    assert abs(pose.position[axis] - center[axis]) <= room


def test_whoever_outruns_its_extent_ends_the_run() -> None:
    running = group(thing("ball", SphereShape(0.2), (0, 0, 100)))
    running.extents(1)
    with pytest.raises(ModelError, match=r"'ball' got faster than it could be expected.* in step 2[56]\d"):
        running.advance(1000)


# --- What can't go on ---


def test_what_explodes_is_named_and_nothing_is_reset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    running = group(thing("a", CUBE, (0, 0, 2)), thing("b", CUBE, (5, 0, 2)))
    states = running.states()
    states["b"] = states["b"][:56] + pack("<6d", 1e12, 0, 0, 0, 0, 0)
    running.set_states(7, states)
    with pytest.raises(ModelError, match="'b' got a velocity that isn't finite, in step 8") as caught:
        running.advance()
    assert (caught.value.facts["entity"], caught.value.facts["step"]) == ("b", 8)
    assert position(running, "b")[0] > 1e6
    assert list(tmp_path.iterdir()) == []  # By default, MuJoCo writes a log.


def test_states_that_are_not_finite_are_refused() -> None:
    running = group(thing("a", CUBE, (0, 0, 2)))
    with pytest.raises(ModelError, match="'a' has a state that isn't finite, in step 3"):
        running.set_states(3, {"a": pack("<13d", nan, *[0.0] * 12)})


def test_mistakes_are_told() -> None:
    found = world(thing("a", CUBE, (0, 0, 2)), hoverer())
    engine = open_engine("mujoco", found)
    running = started(engine, found)
    with pytest.raises(UsageError, match="12 bytes are no state of model 'a'"):
        running.set_states(0, running.states() | {"a": bytes(12)})
    with pytest.raises(UsageError, match="are no states of"):
        running.set_states(0, {})
    with pytest.raises(UsageError, match="'a' has no drive"):
        running.command("a", (0, 0, 0), (0, 0, 0))
    with pytest.raises(UsageError, match="finite numbers"):
        running.command("hoverer", (nan, 0, 0), (0, 0, 0))
    with pytest.raises(UsageError, match="isn't in this group"):
        running.command("ground", (0, 0, 0), (0, 0, 0))
    with pytest.raises(UsageError, match="there is no model 'nobody'"):
        engine.build(["nobody"])
    with pytest.raises(UsageError, match="'ground' is static"):
        engine.build(["ground"])
    with pytest.raises(UsageError, match="'ground' is static"):
        engine.initial_state("ground")
    with pytest.raises(UsageError, match="'a' is not static"):
        engine.build([], ["a"])
    with pytest.raises(UsageError, match="there is no physics engine 'ode'"):
        open_engine("ode", found)


def test_a_velocity_drive_needs_a_free_link() -> None:
    held = WorldModel(
        name="held",
        links=(solid("body", CUBE),),
        joints=(Joint(name="j", kind="revolute", child="body", parent=None),),
        drive=VelocityDrive(),
    )
    with pytest.raises(ConfigurationError, match="'held' has a velocity drive, but a joint holds"):
        group(held)


@pytest.mark.parametrize("most", [2.0, 2.000001])
def test_thin_plates_can_be_simulated(most: float) -> None:
    """Files give moments with few digits; the last of them may break the triangle inequality."""
    inertia = Inertia(1.0, Pose(), (1.0, 1.0, most, 0.0, 0.0, 0.0))
    plate = replace(solid("body", BoxShape((1, 1, 0.01))), inertia=inertia)
    group(WorldModel(name="plate", links=(plate,))).advance()


def test_an_empty_group_can_be_stepped() -> None:
    found = world()
    assert movers_of(found) == ()
    running = started(open_engine("mujoco", found), found)
    running.advance(2)
    assert (running.step, running.states(), running.extents(1)) == (2, {}, {})
