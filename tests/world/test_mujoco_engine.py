"""MuJoCo does what the description says, and ends a run that can't go on by a name and a step."""

from __future__ import annotations

from dataclasses import replace
from math import atan2, cos, dist, inf, isclose, nan, pi, sin
from pathlib import Path
from struct import pack

import pytest

from tests.leaks.running import EXAMPLES
from tests.world.crowd import ground, movers_of, pendulum, robot, solid, started, thing, wall
from tests.world.small_worlds import link_poses, model_poses
from worldline.model.errors import ConfigurationError, ModelError, UsageError
from worldline.model.time import MS
from worldline.world.description import (
    Collision,
    DriveCommand,
    Friction,
    Joint,
    JointMotor,
    MotorCommand,
    PidGains,
    RigidLink,
    ScriptedMotion,
    VelocityDrive,
    Waypoint,
    WorldDescription,
    WorldModel,
)
from worldline.world.engines import first_notes, open_engine
from worldline.world.engines.drives import MotorState, controlled
from worldline.world.engines.engine import SimulatedGroup
from worldline.world.pose import Pose
from worldline.world.sdf import read_world
from worldline.world.shapes import BoxShape, CylinderShape, Inertia, PlaneShape, SphereShape

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
    return model_poses(running)[name].position


# --- What moves ---


def test_what_falls_comes_to_rest_on_the_ground() -> None:
    running = group(thing("ball", SphereShape(0.2), (0, 0, 1)))
    running.advance(150)
    assert isclose(position(running, "ball")[2], 1 - 9.8 / 2 * 0.3**2, abs_tol=0.01)
    running.advance(500)
    assert isclose(position(running, "ball")[2], 0.2, abs_tol=0.005)
    assert list(running.contacts()) == [("ball", "ground")]


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
    w, _, _, turned = model_poses(running)["r"].quaternion
    assert isclose(2 * atan2(turned, w), 1.0, abs_tol=0.05)  # It is jerked at first.


@pytest.mark.parametrize(
    ("width", "ahead", "turning", "effort"),
    [(0.02, 0.0, 1.0, 20.0), (0.1, 0.5, 0.5, inf), (0.3, 0.5, -0.2, 20.0), (0.3, 0.0, 1.0, inf)],
)
def test_a_drive_turns_as_it_is_told_however_broad_its_wheels_are(
    width: float, ahead: float, turning: float, effort: float
) -> None:
    made = robot("r", 0, 0, 0, 0)
    links = [
        solid(each.name, CylinderShape(0.15, width), 1.0, each.pose.position, -pi / 2, 1.0)
        if "wheel" in each.name
        else each
        for each in made.links
    ]
    command = DriveCommand(time=0, linear=(ahead, 0, 0), angular=(0, 0, turning))
    joints = tuple(replace(each, effort=effort, damping=0.1) for each in made.joints)
    running = group(replace(made, links=tuple(links), joints=joints, commands=(command,)))

    def yaw() -> float:
        w, x, y, z = model_poses(running)["r"].quaternion
        return atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))

    running.advance(500)
    before = yaw()
    running.advance(500)
    assert isclose((yaw() - before + pi) % (2 * pi) - pi, turning, rel_tol=0.01)


@pytest.mark.parametrize("angle", [0.3, 0.5, 0.65])
def test_what_rests_on_a_slope_stays_there(angle: float) -> None:
    """Friction of 0.8 holds up to 0.67 radians."""
    surface = Collision(name="s", shape=PlaneShape(), friction=Friction(0.8, 0.8))
    slope = WorldModel(
        name="slope",
        static=True,
        pose=Pose.from_rpy((0, 0, 0), 0, angle, 0),
        links=(RigidLink(name="s", collisions=(surface,)),),
    )
    box = WorldModel(
        name="box",
        pose=Pose.from_rpy((0.2 * sin(angle), 0, 0.2 * cos(angle)), 0, angle, 0),
        links=(solid("body", CUBE, mu=0.8),),
    )
    found = WorldDescription(name="w", step=MS, models={"slope": slope, "box": box})
    running = started(open_engine("mujoco", found), found)
    running.advance(500)
    before = position(running, "box")
    running.advance(1000)
    assert dist(before, position(running, "box")) < 1e-4


# --- Locked joints ---


def arm(kind: str, at: float) -> WorldModel:
    """Return three cubes in a row that the world holds, the second by a joint that is locked at a position."""
    return WorldModel(
        name="arm",
        pose=Pose((0, 0, 3)),
        links=(solid("base", CUBE), solid("lower", CUBE, at=(1, 0, 0)), solid("hand", CUBE, at=(2, 0, 0))),
        joints=(
            Joint(name="mount", kind="fixed", child="base", parent=None),
            Joint(
                name="elbow",
                kind=kind,  # type: ignore[arg-type]
                child="lower",
                parent="base",
                anchor=(-0.5, 0, 0),
                axis=(0, 1, 0),
                lower=at,
                upper=at,
            ),
            Joint(name="wrist", kind="prismatic", child="hand", parent="lower", axis=(1, 0, 0), lower=0.0, upper=0.0),
        ),
    )


@pytest.mark.parametrize("engine", ["mujoco", "kinematic"])
@pytest.mark.parametrize(
    ("kind", "at", "hand"),
    [
        ("revolute", 0.0, (2, 0, 3)),
        ("revolute", pi / 2, (0.5, 0, 1.5)),
        ("prismatic", 0.0, (2, 0, 3)),
        ("prismatic", -0.3, (2, -0.3, 3)),
    ],
)
def test_a_locked_joint_is_fixed(engine: str, kind: str, at: float, hand: tuple[float, ...]) -> None:
    found = world(arm(kind, at))
    running = started(open_engine(engine, found), found)
    running.advance(200)
    assert link_poses(running)["arm"][1].position == pytest.approx(hand, abs=1e-9)
    assert replace(found.models["arm"], name="arm") == found.models["arm"]  # It isn't moved twice.


@pytest.mark.parametrize(("lower", "upper"), [(inf, inf), (2e9, 3e9), (-inf, -2e9)])
def test_a_joint_that_is_held_too_far_away_is_refused(lower: float, upper: float) -> None:
    with pytest.raises(ConfigurationError, match="a joint can't move between"):
        Joint(name="j", kind="prismatic", child="a", parent=None, lower=lower, upper=upper)


# --- Motors ---


def hinged(*motors: JointMotor, effort: float = inf, commands: tuple[MotorCommand, ...] = ()) -> WorldModel:
    """Return a rotor and a slider that the world holds. The rotor's axis is upright, so its weight does nothing."""
    return WorldModel(
        name="m",
        pose=Pose((0, 0, 3)),
        links=(solid("rotor", CUBE), solid("slider", CUBE, at=(2, 0, 0))),
        joints=(
            Joint(name="turn", kind="revolute", child="rotor", parent=None, damping=0.05, effort=effort),
            Joint(name="slide", kind="prismatic", child="slider", parent=None, effort=effort),
        ),
        motors=motors,
        motor_commands=commands,
    )


def angle_of(running: SimulatedGroup) -> float:
    w, _, _, z = link_poses(running)["m"][0].quaternion
    return 2 * atan2(z, w)


def height_of(running: SimulatedGroup) -> float:
    return link_poses(running)["m"][1].position[2]


def test_a_motor_keeps_a_joint_at_a_speed() -> None:
    turning = JointMotor(joint="turn", kind="velocity", topic="t", initial=1.0)
    sliding = JointMotor(joint="slide", kind="velocity", topic="s")
    running = group(hinged(turning, sliding))
    running.advance(500)
    assert isclose(angle_of(running), 1.0, abs_tol=0.01)
    assert isclose(height_of(running), 3.0, abs_tol=0.01)  # Against its weight.
    running.command_motors("m", "/model/m/t", -2.0)
    running.command_motors("m", "/model/m/s", 0.5)
    running.advance(500)
    assert isclose(angle_of(running), -1.0, abs_tol=0.02)
    assert isclose(height_of(running), 3.5, abs_tol=0.02)


@pytest.mark.parametrize(("effort", "rises"), [(9.0, False), (20.0, True)])
def test_a_motor_is_as_strong_as_its_joint_allows(effort: float, rises: bool) -> None:
    lifting = JointMotor(joint="slide", kind="velocity", topic="s", initial=1.0)
    running = group(hinged(lifting, effort=effort))  # It weighs 9.8 N.
    running.advance(500)
    assert (height_of(running) > 3) == rises


@pytest.mark.parametrize("gains", [None, PidGains(p=3.0, i=1.0, d=0.5)])
def test_a_motor_leads_a_joint_to_a_position(gains: PidGains | None) -> None:
    motor = JointMotor(joint="turn", kind="position", topic="t", gains=gains, speed_max=5.0 if gains is None else inf)
    running = group(hinged(motor))
    running.advance(10)
    assert isclose(angle_of(running), 0.0, abs_tol=1e-9)
    running.command_motors("m", "/model/m/t", 1.0)
    running.advance(50)
    assert angle_of(running) > 0.1
    running.advance(2500)
    assert isclose(angle_of(running), 1.0, abs_tol=0.01)


def test_a_controller_has_the_output_of_gazebos() -> None:
    gains = PidGains(p=2.0, i=10.0, d=0.5, i_min=-0.3, i_max=0.1, output_min=-8.0, output_max=9.0, output_offset=1.0)
    state, outputs = MotorState(0.0), []
    for error in (1.0, -1.0, -1.0, -4.0):
        output, state = controlled(gains, state, error, 0.1)
        outputs.append(output)
    # The offset, less p × error, less the integral between its limits, less d × the change by time.
    assert outputs == pytest.approx([1 - 2 - 0.1 - 5, 9.0, 1 + 2 + 0.3, 9.0])


def test_a_motor_applies_a_force_and_several_add_up() -> None:
    force = JointMotor(joint="slide", kind="force", topic="f", initial=9.8)
    running = group(hinged(force))
    running.advance(200)
    assert isclose(height_of(running), 3.0, abs_tol=1e-3)  # It holds its weight.
    more = group(hinged(force, replace(force, topic="g")))
    more.command_motors("m", "/model/m/g", 2.0)
    more.advance(500)
    assert isclose(height_of(more), 3 + 2.0 / 2, rel_tol=0.01)  # 1 kg, for a second.


def test_a_file_s_commands_reach_motors_and_newcomers() -> None:
    motor = JointMotor(joint="turn", kind="velocity", topic="t")
    found = world(hinged(motor, commands=(MotorCommand(time=100 * MS, topic="t", value=3.0),)))
    engine = open_engine("mujoco", found)
    running = started(engine, found)
    running.advance(50)
    assert angle_of(running) == 0
    running.advance(100)
    assert isclose(angle_of(running), 0.6, abs_tol=0.01)
    later = engine.build(["m"])
    later.set_states(1000, {"m": engine.newcomer("m", 1000, 10).state})
    later.advance(50)
    assert isclose(angle_of(later), 0.3, abs_tol=0.01)


@pytest.mark.parametrize("kind", ["position", "velocity", "force"])
@pytest.mark.parametrize("gains", [None, PidGains(p=3.0, i=1.0, d=0.2)])
def test_what_motors_carry_along_is_in_the_state(kind: str, gains: PidGains | None) -> None:
    motor = JointMotor(
        joint="turn",
        kind=kind,  # type: ignore[arg-type]
        topic="t",
        initial=0.5,
        gains=gains,
    )
    found = world(hinged(motor, commands=(MotorCommand(time=80 * MS, topic="t", value=-0.2),)))
    whole = started(open_engine("mujoco", found), found)
    states = whole.states()
    engine = open_engine("mujoco", found)
    for step in range(88):
        whole.advance()
        if step < 8 or step >= 76:  # At the start, and around the command.
            fresh = engine.build(["m"], ["ground"])
            fresh.set_states(step, states)
            fresh.advance()
            assert fresh.states() == whole.states()
        states = whole.states()


def test_motors_that_can_t_be() -> None:
    motor = JointMotor(joint="turn", kind="velocity", topic="t")
    with pytest.raises(ConfigurationError, match="has none that moves"):
        hinged(replace(motor, joint="none"))
    with pytest.raises(ConfigurationError, match="two speeds"):
        hinged(motor, motor)
    with pytest.raises(ConfigurationError, match="no motor that hears 'u'"):
        hinged(motor, commands=(MotorCommand(time=0, topic="u", value=1.0),))
    running = group(hinged(motor))
    with pytest.raises(UsageError, match="no motor that hears '/u'"):
        running.command_motors("m", "/u", 1.0)
    for value in (nan, inf, 1e10):
        with pytest.raises(UsageError, match="a motor needs a finite number"):
            running.command_motors("m", "/model/m/t", value)


# --- Before it runs ---


def test_whoever_starts_deep_in_another_is_noted() -> None:
    deep = world(thing("a", CUBE, (0, 0, 0.1)), thing("b", CUBE, (5, 0, 0.199)), thing("c", CUBE, (5, 0.399, 0.2)))
    (note,) = first_notes(open_engine("mujoco", deep))
    assert str(note).startswith("two models start more than 1 cm deep in each other and will be hurled apart: 'a' and")
    assert not note.is_cosmetic
    assert first_notes(open_engine("kinematic", deep)) == []


@pytest.mark.parametrize("file", sorted((EXAMPLES / "world").glob("*.sdf")), ids=lambda file: file.stem)
def test_the_examples_start_apart(file: Path) -> None:
    assert first_notes(open_engine("mujoco", read_world(file))) == []


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
    assert model_poses(running)["pusher"].position == (0.2, 0, 0.2)
    running.advance(200)
    assert model_poses(running)["pusher"] == motion.waypoints[-1].pose
    assert position(running, "box")[0] > 0.75
    assert running.states()["pusher"] == b""


def test_joints_keep_their_limits() -> None:
    running = group(pendulum("p", 0, 0))
    running.advance(400)
    rod, second, weight = link_poses(running)["p"]
    assert rod.quaternion != link_poses(running)["p"][1].quaternion
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
        return model_poses(running)

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
    assert {("box", "vehicle_east"), ("box", "vehicle_west")} <= running.contacts().keys()


def test_a_placed_model_is_there_at_rest() -> None:
    running = group(robot("r", 0, 0, 0, 1.0))
    running.advance(50)
    there = Pose.from_rpy((5, 5, 0.15), 0, 0, 1.0)
    running.place("r", there)
    now = model_poses(running)["r"]
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
