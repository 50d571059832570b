"""What SDF says becomes a description: defaults as SDF has them, frames resolved, levels and drives read."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isclose, pi

import pytest

from tests.world.sdf.files import BOX, LINK, Files, model, wrapped
from worldline.model.time import SECOND
from worldline.world.description import (
    DiffDrive,
    DriveCommand,
    Friction,
    Joint,
    JointMotor,
    MotorCommand,
    PidGains,
    RigidLink,
    ScriptedMotion,
    SpeedLimits,
    VelocityDrive,
    Waypoint,
    WorldModel,
)
from worldline.world.pose import ORIGIN, Pose, Vector
from worldline.world.sdf import WorldFileError, read_world
from worldline.world.shapes import (
    UNIT_INERTIA,
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    Inertia,
    PlaneShape,
    Shape,
    SphereShape,
    cone_inertia,
)


def near(vector: Vector) -> object:
    return pytest.approx(vector, abs=1e-12)


def read(files: Files, body: str) -> WorldModel:
    """Return a model that has this inside, in a file that says nothing else."""
    world = files.world(model("m", body))
    assert world.notes == ()
    return world.models["m"]


def test_an_almost_empty_world(files: Files) -> None:
    world = files.world("")
    assert (world.name, world.step, world.real_time_factor, world.gravity) == ("w", 1_000_000, 1.0, (0, 0, -9.8))
    assert (dict(world.models), world.levels, world.performers, world.default_entities) == ({}, (), (), ())


def test_physics_and_gravity(files: Files) -> None:
    physics = '<physics name="p" type="ode"><max_step_size>{}</max_step_size><real_time_factor>0</real_time_factor>'
    world = files.world("<gravity>0 0 -1.62</gravity>" + physics.format("0.0035") + "</physics>")
    assert (world.step, world.real_time_factor, world.gravity) == (3_500_000, 0, (0, 0, -1.62))
    assert files.world(physics.format("1e-3") + "</physics>").step == 1_000_000


def test_a_step_between_nanoseconds_is_rounded_and_noted(files: Files) -> None:
    step = "<physics>\n<max_step_size>0.01666666666667</max_step_size></physics>"
    assert files.world(step).step == 16_666_667
    assert files.notes(step) == ["line 4: a step of '0.01666666666667' s is rounded to 16.666667ms"]


def test_of_several_physics_the_default_one_counts(files: Files) -> None:
    physics = "<physics default='{}'><max_step_size>{}</max_step_size></physics>\n"
    body = physics.format("0", "0.5") + physics.format("1", "0.25")
    assert files.world(body).step == 250_000_000
    assert files.notes(body) == ["line 3: this <physics> isn't the one that is used"]


SHAPES: list[tuple[str, Shape]] = [
    ("<box><size>1 2 3</size></box>", BoxShape((1, 2, 3))),
    ("<sphere><radius>0.5</radius></sphere>", SphereShape(0.5)),
    ("<cylinder><radius>.5</radius><length>2.</length></cylinder>", CylinderShape(0.5, 2)),
    ("<capsule><radius>0.5</radius><length>2e0</length></capsule>", CapsuleShape(0.5, 2)),
    ("<ellipsoid><radii>+1 2 3</radii></ellipsoid>", EllipsoidShape((1, 2, 3))),
    ("<plane><normal>0 0 2</normal><size>10 20</size></plane>", PlaneShape((0, 0, 1), (10, 20))),
    ("<plane/>", PlaneShape()),
]


@pytest.mark.parametrize(("xml", "shape"), SHAPES)
def test_shapes(files: Files, xml: str, shape: Shape) -> None:
    geometry = f"<geometry>{xml}</geometry>"
    solid = f'<collision name="c"><pose>1 2 3 0 0 0</pose>{geometry}</collision>'
    found = read(files, f'<static>true</static><link name="l">{solid}<visual name="v">{geometry}</visual></link>')
    assert found.static
    assert found.links[0].collisions[0].shape == shape
    assert found.links[0].collisions[0].pose == Pose((1, 2, 3))
    assert found.links[0].visuals[0].shape == shape


@pytest.mark.parametrize(
    ("material", "color"),
    [
        ("<diffuse>1 0.5 0</diffuse>", (1, 0.5, 0, 1)),
        ("<diffuse>1 0.5 0 0.2</diffuse>", (1, 0.5, 0, 0.2)),
        ("<diffuse>255 -1 0 1</diffuse>", (1, 0, 0, 1)),
        ("", (0.7, 0.7, 0.7, 1)),
    ],
)
def test_colors(files: Files, material: str, color: object) -> None:
    visual = f'<visual name="v">{BOX}<material>{material}</material></visual>'
    assert read(files, f'<link name="l">{visual}</link>').links[0].visuals[0].color == color


@pytest.mark.parametrize(
    ("xml", "friction"),
    [
        ("", Friction(1, 1, 0)),
        ("<ode><mu>0.5</mu></ode>", Friction(0.5, 1, 0)),
        ("<ode><mu>0.5</mu><mu2>0.4</mu2></ode>", Friction(0.5, 0.4, 0)),
        ("<bullet><friction>0.3</friction><friction2>0.2</friction2></bullet>", Friction(0.3, 0.2, 0)),
        ("<bullet><friction>0.3</friction></bullet><ode><mu>0.5</mu></ode>", Friction(0.5, 1, 0)),
        ("<torsional><coefficient>0.1</coefficient></torsional>", Friction(1, 1, 0.1)),
    ],
)
def test_friction(files: Files, xml: str, friction: Friction) -> None:
    surface = f"<surface><friction>{xml}</friction></surface>"
    found = read(files, f'<link name="l"><collision name="c">{BOX}{surface}</collision></link>')
    assert found.links[0].collisions[0].friction == friction


def inertia(files: Files, inertial: str, solids: str = f'<collision name="c">{BOX}</collision>') -> Inertia:
    return read(files, f'<link name="l">{inertial}{solids}</link>').links[0].inertia


def test_an_inertia_that_is_given(files: Files) -> None:
    moments = "<ixx>2</ixx><iyy>3</iyy><izz>4</izz><ixy>.1</ixy><ixz>.2</ixz><iyz>.3</iyz>"
    pose = "<pose degrees='true'>1 0 0 0 0 90</pose>"
    found = inertia(files, f"<inertial>{pose}<mass>7</mass><inertia>{moments}</inertia></inertial>")
    assert (found.mass, found.moments) == (7, (2, 3, 4, 0.1, 0.2, 0.3))
    assert found.pose == Pose.from_rpy((1, 0, 0), 0, 0, pi / 2)


def test_without_one_it_is_what_sdf_says(files: Files) -> None:
    assert inertia(files, "") == UNIT_INERTIA
    assert inertia(files, "<inertial><mass>3</mass></inertial>") == Inertia(3, ORIGIN, UNIT_INERTIA.moments)


def test_an_automatic_inertia_follows_from_shapes_and_densities(files: Files) -> None:
    auto = '<inertial auto="true"/>'
    assert inertia(files, auto).mass == 1000
    assert inertia(files, '<inertial auto="true"><density>50</density></inertial>').mass == 50
    own = f'<collision name="c"><density>6</density>{BOX}</collision>'
    assert inertia(files, '<inertial auto="1"><density>50</density></inertial>', own).moments[:3] == (1, 1, 1)
    assert inertia(files, '<inertial auto="true"><mass>6</mass></inertial>').moments[:3] == pytest.approx((1, 1, 1))


def test_what_is_static_needs_no_inertia(files: Files) -> None:
    ground = "<collision name='c'><geometry><plane/></geometry></collision>"
    found = read(files, f"<static>1</static><link name='l'><inertial auto='true'/>{ground}</link><link name='k'/>")
    assert found.links[1].inertia == UNIT_INERTIA


def test_two_shapes_have_their_center_of_mass_between_them(files: Files) -> None:
    two = "".join(
        f'<collision name="{name}"><pose>{x} 0 0 0 0 0</pose><density>{density}</density>{BOX}</collision>'
        for name, x, density in (("a", 0, 1), ("b", 4, 3))
    )
    found = inertia(files, '<inertial auto="true"/>', two)
    assert (found.mass, found.pose.position) == (4, (3, 0, 0))


@pytest.mark.parametrize(
    ("xml", "pose"),
    [
        ("<pose>1 2 3 0 0 0</pose>", Pose((1, 2, 3))),
        ("<pose>\n1 2 3\n0.1 0.2 0.3 </pose>", Pose.from_rpy((1, 2, 3), 0.1, 0.2, 0.3)),
        ("<pose degrees='true'>0 0 0 180 0 0</pose>", Pose.from_rpy((0, 0, 0), pi, 0, 0)),
        ("<pose rotation_format='quat_xyzw'>1 2 3  0 0 2 0</pose>", Pose((1, 2, 3), (0, 0, 0, 1))),
        ("<pose/>", ORIGIN),
        ("", ORIGIN),
    ],
)
def test_poses(files: Files, xml: str, pose: Pose) -> None:
    assert read(files, xml + LINK).pose == pose


def test_poses_relative_to_others_in_any_order(files: Files) -> None:
    found = read(
        files,
        """<link name="hand"><pose relative_to="elbow">1 0 0 0 0 0</pose></link>
        <link name="arm"><pose degrees="true">0 5 0 0 0 90</pose></link>
        <frame name="elbow" attached_to="arm"><pose>2 0 0 0 0 0</pose></frame>
        <link name="here"><pose relative_to="__model__">7 0 0 0 0 0</pose></link>
        <link name="there"><collision name="c"><pose relative_to="here">0 0 1 0 0 0</pose>"""
        f"{BOX}</collision></link>",
    )
    poses = {link.name: link.pose.position for link in found.links}
    assert poses["hand"] == near((0, 8, 0))
    assert poses["here"] == (7, 0, 0)
    assert found.links[-1].collisions[0].pose.position == near((7, 0, 1))
    assert found.canonical_link == "hand"


def test_models_relative_to_others(files: Files) -> None:
    world = files.world(
        model("b", f'<pose relative_to="mark">1 0 0 0 0 0</pose>{LINK}')
        + '<frame name="mark" attached_to="a"><pose>0 0 3 0 0 0</pose></frame>'
        + model("a", f'<pose degrees="true">10 0 0 0 0 90</pose>{LINK}')
        + model("c", f'<pose relative_to="a::body">0 0 1 0 0 0</pose>{LINK}')
    )
    assert world.models["b"].pose.position == near((10, 1, 3))
    assert world.models["c"].pose.position == near((10, 0, 1))
    assert world.notes == ()


JOINED = "<link name='a'/><link name='b'><pose>1 0 0 1.5707963267948966 0 0</pose></link>"


def joint(files: Files, kind: str, inside: str = "", links: str = JOINED) -> Joint:
    joint = f'<joint name="j" type="{kind}"><parent>a</parent><child>b</child>{inside}</joint>'
    (found,) = read(files, links + joint).joints
    return found


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "fixed", "ball"])
def test_kinds_of_joints(files: Files, kind: str) -> None:
    assert joint(files, kind) == Joint(name="j", kind=kind, child="b", parent="a")  # type: ignore[arg-type]


def test_limits_and_dynamics(files: Files) -> None:
    limit = "<limit><lower>-1</lower><upper>1e16</upper><effort>-1</effort><velocity>5</velocity></limit>"
    axis = f"<axis>{limit}<dynamics><damping>0.1</damping><friction>0.2</friction></dynamics></axis>"
    servo = "<plugin name='gz::sim::systems::JointController'><joint_name>j</joint_name></plugin>"
    found = joint(files, "revolute", axis, JOINED + servo)
    assert (found.lower, found.upper, found.effort, found.velocity) == (-1, inf, inf, 5)
    assert (found.damping, found.friction) == (0.1, 0.2)


@pytest.mark.parametrize(("lower", "upper"), [("-1.79769e+308", "1.79769e+308"), ("-inf", "inf"), ("-1e16", "1e16")])
def test_limits_that_are_none(files: Files, lower: str, upper: str) -> None:
    found = joint(files, "prismatic", f"<axis><limit><lower>{lower}</lower><upper>{upper}</upper></limit></axis>")
    assert (found.lower, found.upper) == (-inf, inf)


def test_a_continuous_joint_is_a_revolute_one_without_limits(files: Files) -> None:
    assert joint(files, "continuous", "<axis><xyz>0 3 0</xyz></axis>").axis == (0, 1, 0)
    assert joint(files, "continuous").kind == "revolute"


@pytest.mark.parametrize(
    ("inside", "axis"),
    [
        ("<axis><xyz>0 0 1</xyz></axis>", (0, 0, 1)),
        ("<axis><xyz expressed_in='b'>0 0 1</xyz></axis>", (0, 0, 1)),
        ("<axis><xyz expressed_in='a'>0 0 1</xyz></axis>", (0, 1, 0)),
        ("<axis><xyz expressed_in='__model__'>0 0 1</xyz></axis>", (0, 1, 0)),
        ("<axis><xyz>0 0 1</xyz><use_parent_model_frame>1</use_parent_model_frame></axis>", (0, 1, 0)),
        ("<pose>0 0 0 0 1.5707963267948966 0</pose><axis><xyz>0 0 1</xyz></axis>", (1, 0, 0)),
    ],
)
def test_axes_are_seen_from_the_child(files: Files, inside: str, axis: Vector) -> None:
    assert joint(files, "revolute", inside).axis == near(axis)


@pytest.mark.parametrize(
    ("inside", "anchor"),
    [
        ("", (0, 0, 0)),
        ("<pose>0 0 2 0 0 0</pose>", (0, 0, 2)),
        ("<pose relative_to='a'>0 0 2 0 0 0</pose>", (-1, 2, 0)),
    ],
)
def test_anchors_are_seen_from_the_child(files: Files, inside: str, anchor: Vector) -> None:
    assert joint(files, "ball", inside).anchor == near(anchor)


def test_joints_to_the_world_and_to_frames(files: Files) -> None:
    mark = "<frame name='mark' attached_to='b'><pose>0 0 3 0 0 0</pose></frame>"
    found = read(
        files,
        JOINED + mark + '<joint name="j" type="fixed"><parent>world</parent><child>a</child></joint>'
        '<joint name="k" type="ball"><parent>a</parent><child>mark</child></joint>',
    )
    assert [(each.child, each.parent) for each in found.joints] == [("a", None), ("b", "a")]
    assert found.joints[1].anchor == near((0, 0, 3))


def test_a_joint_may_be_called_like_a_link(files: Files) -> None:
    joint = '<joint name="b" type="ball"><parent>a</parent><child>b</child></joint>'
    assert read(files, JOINED + joint).joints[0].child == "b"


def test_nested_models_become_part_of_the_outer_one(files: Files) -> None:
    inner = '<pose degrees="true">5 0 0 0 0 90</pose><link name="tool"><pose>1 0 0 0 0 0</pose></link>'
    deeper = '<model name="deep"><pose>0 0 1 0 0 0</pose><link name="tip"/></model>'
    grip = '<joint name="grip" type="fixed"><parent>tool</parent><child>deep::tip</child></joint>'
    wrist = '<joint name="wrist" type="ball"><parent>body</parent><child>inner::tool</child></joint>'
    found = read(files, f'{LINK}<model name="inner">{inner}{deeper}{grip}</model>{wrist}')
    assert {link.name: link.pose.position for link in found.links} == {
        "body": (0, 0, 0),
        "inner::deep::tip": near((5, 0, 1)),
        "inner::tool": near((5, 1, 0)),
    }
    assert [(each.name, each.parent, each.child) for each in found.joints] == [
        ("inner::grip", "inner::tool", "inner::deep::tip"),
        ("wrist", "body", "inner::tool"),
    ]
    assert found.canonical_link == "body"


def test_a_model_of_nested_models_goes_by_the_first(files: Files) -> None:
    found = read(files, f'<model name="z">{LINK}</model><model name="y">{LINK}</model>')
    assert found.canonical_link == "z::body"
    named = files.world(f'<model name="m" canonical_link="y::body"><model name="y">{LINK}</model></model>')
    assert named.models["m"].canonical_link == "y::body"


WHEELS = "<link name='c'/>" + "".join(
    f"<link name='{side}'/><joint name='{side}_j' type='revolute'><parent>c</parent><child>{side}</child></joint>"
    for side in ("left", "right")
)


@pytest.mark.parametrize("space", ["gz::sim", "ignition::gazebo"])
def test_differential_drives(files: Files, space: str) -> None:
    inside = (
        "<left_joint>left_j</left_joint><right_joint>right_j</right_joint><wheel_radius>0.3</wheel_radius>"
        "<max_velocity>2</max_velocity><max_angular_velocity>1</max_angular_velocity>"
        "<min_linear_acceleration>-4</min_linear_acceleration>"
    )
    found = read(files, f"{WHEELS}<plugin filename='f' name='{space}::systems::DiffDrive'>{inside}</plugin>")
    assert found.drive == DiffDrive(
        left_joints=("left_j",),
        right_joints=("right_j",),
        wheel_separation=1.0,
        wheel_radius=0.3,
        linear=SpeedLimits(speed_max=2, acceleration_min=-4),
        angular=SpeedLimits(speed_max=1),
    )


MOTOR = "<plugin filename='{}' name='{}'><joint_name>j</joint_name>{}</plugin>"
HINGED = f"{JOINED}<joint name='j' type='revolute'><parent>a</parent><child>b</child></joint>"


@pytest.mark.parametrize(
    ("system", "inside", "motor"),
    [
        ("apply-joint-force", "", JointMotor(joint="j", kind="force", topic="joint/j/cmd_force")),
        (
            "joint-controller",
            "<initial_velocity>5</initial_velocity>",
            JointMotor(joint="j", kind="velocity", topic="joint/j/cmd_vel", initial=5.0),
        ),
        (
            "joint-controller",
            "<use_force_commands>true</use_force_commands><p_gain>0.2</p_gain><i_gain>0.01</i_gain><topic>go</topic>",
            JointMotor(joint="j", kind="velocity", topic="/go", gains=PidGains(p=0.2, i=0.01)),
        ),
        (
            "joint-position-controller",
            """<initial_position>0.5</initial_position><i_max>2</i_max><i_min>-3</i_min><cmd_max>4</cmd_max>
            <cmd_min>-5</cmd_min><cmd_offset>6</cmd_offset><joint_index>0</joint_index><d_gain>0</d_gain>""",
            JointMotor(
                joint="j",
                kind="position",
                topic="joint/j/0/cmd_pos",
                initial=0.5,
                gains=PidGains(
                    p=1.0, i=0.1, d=0.0, i_max=2.0, i_min=-3.0, output_max=4.0, output_min=-5.0, output_offset=6.0
                ),
            ),
        ),
        (
            "joint-position-controller",
            "<use_velocity_commands>1</use_velocity_commands><cmd_max>2</cmd_max><topic>/model/m/up and down</topic>",
            JointMotor(joint="j", kind="position", topic="up_and_down", speed_max=2.0),
        ),
        (
            "joint-position-controller",
            "<use_velocity_commands>1</use_velocity_commands><sub_topic>up</sub_topic>",
            JointMotor(joint="j", kind="position", topic="up"),
        ),
    ],
)
def test_motors_of_joints(files: Files, system: str, inside: str, motor: JointMotor) -> None:
    name = "".join(word.capitalize() for word in system.split("-"))
    for file, called in (
        (f"gz-sim-{system}-system", f"gz::sim::systems::{name}"),
        (f"ignition-gazebo-{system}-system", f"ignition::gazebo::systems::{name}"),
        (f"libignition-gazebo6-{system}-system.so", f"gz::sim::systems::{name}"),
        (f"gz-sim-{system}-system", ""),
    ):
        assert read(files, HINGED + MOTOR.format(file, called, inside)).motors == (motor,)


def test_motors_have_one_topic_for_several_joints_and_each_copy_its_own(files: Files) -> None:
    links = "<link name='c'/><joint name='k' type='revolute'><parent>a</parent><child>c</child></joint>"
    several = MOTOR.format("", "gz::sim::systems::JointController", "<joint_name>k</joint_name>")
    script = (
        "<plugin name='worldline::ScriptedCommands'><command><time>1</time><topic>/model/m/joint/j/cmd_vel</topic>"
        "<value>2</value></command></plugin>"
    )
    found = read(files, HINGED + links + several + script)
    assert [(each.joint, each.topic) for each in found.motors] == [("j", "joint/j/cmd_vel"), ("k", "joint/j/cmd_vel")]
    assert found.motor_commands == (MotorCommand(time=SECOND, topic="joint/j/cmd_vel", value=2.0),)
    assert replace(found, name="copy").motors[0].hears("/model/copy/joint/j/cmd_vel", "copy")


@pytest.mark.parametrize("shape", ["<cone><radius>0.3</radius><length>0.8</length></cone>", "<cone/>"])
def test_a_cone_has_an_inertia_though_nothing_collides_with_it(files: Files, shape: str) -> None:
    inertial = "<inertial auto='true'><density>50</density></inertial>"
    collision = f"<collision name='c'><geometry>{shape}</geometry></collision>"
    world = files.world(model("m", f"<link name='l'>{inertial}{collision}</link>"))
    (link,) = world.models["m"].links
    radius, height = (0.3, 0.8) if "radius" in shape else (0.5, 1.0)
    assert link.inertia == cone_inertia(radius, height, 50.0)
    assert isclose(link.inertia.mass, 50.0 * pi * radius**2 * height / 3)
    assert link.inertia.pose.position == (0, 0, -height / 4)
    assert [str(note) for note in world.notes] == ["line 3: <cone> in <geometry> isn't supported"]
    mesh = collision.replace(shape, "<mesh/>")
    text = "line 3: an inertia is worked out without the shapes that aren't supported"
    assert text in files.notes(model("m", f"<link name='l'>{inertial}{mesh}</link>"))


def test_velocity_drives_and_commands(files: Files) -> None:
    drive = "<plugin name='gz::sim::systems::VelocityControl'><initial_linear>1 0 0</initial_linear></plugin>"
    commands = (
        "<command><time>0.25</time><linear>0.5</linear></command>"
        "<command><time>1.000000001</time><linear>1 2 3</linear><angular>-0.5</angular></command>"
    )
    found = read(files, f"{LINK}{drive}<plugin name='worldline::ScriptedCommands'>{commands}</plugin>")
    assert found.drive == VelocityDrive(linear=(1, 0, 0))
    assert found.commands == (
        DriveCommand(time=250_000_000, linear=(0.5, 0, 0)),
        DriveCommand(time=1_000_000_001, linear=(1, 2, 3), angular=(0, 0, -0.5)),
    )


def test_scripted_motion(files: Files) -> None:
    points = "".join(f"<waypoint><time>{t}</time><pose>{t} 0 0 0 0 0</pose></waypoint>" for t in (0, 2))
    plugin = f"<plugin filename='worldline' name='worldline::ScriptedMotion'><loop>true</loop>{points}</plugin>"
    assert read(files, LINK + plugin).motion == ScriptedMotion(
        waypoints=(Waypoint(time=0, pose=ORIGIN), Waypoint(time=2_000_000_000, pose=Pose((2, 0, 0)))), loop=True
    )


@pytest.mark.parametrize("space", ["gz::sim", "ignition::gazebo"])
def test_levels_and_performers(files: Files, space: str) -> None:
    performer = f"<performer name='p'><ref>robot</ref>{BOX}</performer>"
    level = f"<level name='l'><pose>1 2 3 0 0 0</pose>{BOX}<buffer>0.5</buffer><ref>tile</ref><ref>wall</ref></level>"
    plain = f"<level name='k'>{BOX}</level>"
    body = f"<plugin name='{space}' filename='dummy'>{performer}{level}{plain}</plugin>"
    world = files.world("".join(model(name) for name in ("wall", "tile", "robot", "ground")) + body)
    assert [(each.name, each.model, each.size) for each in world.performers] == [("p", "robot", (1, 1, 1))]
    k, found = world.levels
    assert (found.center, found.size, found.buffer, found.entities) == ((1, 2, 3), (1, 1, 1), 0.5, ("tile", "wall"))
    assert (k.center, k.buffer, k.entities) == ((0, 0, 0), 0, ())
    assert world.default_entities == ("ground", "robot")
    assert world.notes == ()


def included(files: Files, name: str = "robot.sdf", body: str = LINK) -> None:
    files.write(f'<?xml version="1.0"?>\n<sdf version="1.6">\n{model("inner", body)}</sdf>', name)


def test_included_models_get_the_name_and_pose_they_have_here(files: Files) -> None:
    included(files, body=f"<pose>9 9 9 0 0 0</pose>{LINK}")
    drive = "<plugin name='gz::sim::systems::VelocityControl'/>"
    body = "<include><uri>robot.sdf</uri><name>{}</name><pose>{} 0 0 0 0 0</pose><static>0</static>{}</include>"
    world = files.world(
        body.format("a", 1, drive) + body.format("b", 2, "") + "<include><uri>robot.sdf</uri></include>"
    )
    assert {name: each.pose.position[0] for name, each in world.models.items()} == {"a": 1, "b": 2, "inner": 9}
    assert world.models["a"].drive == VelocityDrive()
    assert world.models["b"].drive is None
    assert world.notes == ()


@pytest.mark.parametrize("uri", ["robot", "model://robot", "robot/model.sdf", "file://robot"])
def test_models_may_have_folders(files: Files, uri: str) -> None:
    included(files, "robot/model.sdf", f"{LINK}<include><uri>tool.sdf</uri></include>")
    included(files, "robot/tool.sdf")
    world = files.world(f"<include><uri>{uri}</uri></include>")
    assert [link.name for link in world.models["inner"].links] == ["body", "inner::body"]


@pytest.mark.parametrize("variable", ["GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "SDF_PATH"])
@pytest.mark.parametrize("uri", ["robot", "model://robot", "package://robot/model.sdf"])
def test_models_are_found_by_resource_paths(
    files: Files, uri: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    included(files, "models/robot/model.sdf", f"{LINK}<include><uri>model://tool</uri></include>")
    included(files, "more/tool/model.sdf")
    folders = [files.folder / name for name in ("none", "models", "more")]
    monkeypatch.setenv(variable, ":".join(map(str, folders)) + ":")
    there = files.write(wrapped(f"<include><uri>{uri}</uri></include>"), "worlds/world.sdf")
    assert [link.name for link in read_world(there).models["inner"].links] == ["body", "inner::body"]
    monkeypatch.delenv(variable)
    with pytest.raises(WorldFileError, match=r"there is no file .* \(GZ_SIM_RESOURCE_PATH may name folders of models"):
        read_world(there)


@pytest.mark.parametrize(
    ("config", "file"),
    [
        ("<sdf version='1.4'>old.sdf</sdf>", "old.sdf"),
        ("<sdf version='1.9'>old.sdf</sdf><sdf version='1.10'>new.sdf</sdf><sdf version='1.4'>x.sdf</sdf>", "new.sdf"),
        ("<sdf>x.sdf</sdf><sdf version='1.0'> sub/new.sdf </sdf><sdf version='newest'>x.sdf</sdf>", "sub/new.sdf"),
        ("<sdf>old.sdf</sdf>", "old.sdf"),
        ("<name>Robot</name>", "model.sdf"),
    ],
)
def test_a_models_folder_may_say_which_file_it_is(
    files: Files, config: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write(f"<?xml version='1.0'?><model>{config}</model>", "models/robot/model.config")
    for name in {"model.sdf", file}:
        body = LINK if name == file else f"{LINK}<link name='other'/>"
        included(files, f"models/robot/{name}", body)
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(files.folder / "models"))
    there = files.write(wrapped("<include><uri>model://robot</uri></include>"), "worlds/world.sdf")
    world = read_world(there)
    assert [link.name for link in world.models["inner"].links] == ["body"]
    assert world.notes == ()


ARM = f"""<link name="base"><pose>0 0 0.5 0 0 0</pose></link>
<link name="fore"><pose relative_to="elbow"/><visual name="v"><pose relative_to="__model__"/>{BOX}</visual></link>
<joint name="elbow" type="revolute"><pose relative_to="base">0 0 0.5 0 0 0</pose><parent>base</parent>
<child>fore</child><axis><xyz expressed_in="__model__">0 1 0</xyz></axis></joint>
<frame name="tip" attached_to="fore"><pose>0.5 0 0 0 0 0</pose></frame><frame name="foot"/>
<model name="lamp"><pose>0 0 2 0 0 0</pose><link name="bulb"/></model>
<joint name="socket" type="fixed"><parent>__model__</parent><child>lamp::bulb</child></joint>"""


def links_of(model: WorldModel) -> dict[str, RigidLink]:
    return {each.name: each for each in model.links}


def test_a_model_stands_where_its_placement_frame_does(files: Files) -> None:
    included(files, body=ARM)
    place = "<include><uri>robot.sdf</uri><name>{}</name><placement_frame>{}</placement_frame><pose>0 0 3 0 0 0</pose>"
    world = files.world(
        place.format("a", "tip") + "</include>" + model("b", LINK + place.format("inner", "lamp::bulb") + "</include>")
    )
    assert world.notes == ()
    assert world.models["a"].pose.position == (-0.5, 0.0, 2.0)
    assert links_of(world.models["b"])["inner::lamp::bulb"].pose.position == (0.0, 0.0, 3.0)


def test_a_merged_model_is_as_if_it_were_written_there(files: Files) -> None:
    included(files, "arm.sdf", ARM.replace("\n", ""))
    included(files, "robot.sdf", "<include merge='1'><uri>arm.sdf</uri><pose>0 1 0 0 0 0</pose></include>")
    turned = "<pose>1 0 0 0 0 1.5</pose>"
    body = "<link name='torso'/>{}<joint name='neck' type='fixed'><parent>tip</parent><child>torso</child></joint>"
    merged = files.world(model("m", body.format(f"<include merge='true'><uri>robot.sdf</uri>{turned}</include>")))
    assert merged.notes == ()
    nested = files.world(model("m", body.replace("tip<", "arm::arm::tip<").format(model("arm", turned + _IN_ARM))))
    found, wanted = merged.models["m"], links_of(nested.models["m"])
    assert sorted(links_of(found)) == ["base", "fore", "lamp::bulb", "torso"]
    for each in found.links:
        other = wanted[each.name if each.name == "torso" else f"arm::arm::{each.name}"]
        assert each.pose.position == pytest.approx(other.pose.position)
        assert each.pose.quaternion == pytest.approx(other.pose.quaternion)
        assert [visual.pose.position for visual in each.visuals] == [
            pytest.approx(visual.pose.position) for visual in other.visuals
        ]
    joints = {each.name.rpartition("::")[2]: each for each in nested.models["m"].joints}
    for joint in found.joints:
        assert joint.axis == pytest.approx(joints[joint.name].axis)
        assert joint.anchor == pytest.approx(joints[joint.name].anchor)
        assert joint.child == joints[joint.name].child.replace("arm::arm::", "")


_IN_ARM = "<include><uri>arm.sdf</uri><name>arm</name><pose>0 1 0 0 0 0</pose></include>"


def test_a_file_that_merges_itself_is_refused(files: Files) -> None:
    included(files, body=f"{LINK}<include merge='true'><uri>robot.sdf</uri></include>")
    with pytest.raises(WorldFileError, match=r"robot\.sdf: line 3: models are merged more than 20 deep"):
        files.world("<include><uri>robot.sdf</uri></include>")


def test_what_an_included_file_says_in_vain_is_noted_with_its_name(files: Files) -> None:
    included(files, body=f"{LINK}\n<sensor/>")
    (note,) = files.world("<include><uri>robot.sdf</uri></include>").notes
    assert str(note) == f"{files.folder / 'robot.sdf'}: line 4: <sensor> in <model> isn't supported"


def test_the_hash_is_that_of_what_the_files_say(files: Files) -> None:
    body = "<include><uri>robot.sdf</uri></include>"
    included(files)
    first = files.world(body).content_hash()
    assert files.world(body + " ").content_hash() == first
    included(files, body=LINK.replace("<link", "<static>1</static><link", 1))
    assert files.world(body).content_hash() != first
    there = files.write(wrapped(model("m")), "else/where.sdf")
    assert read_world(str(there)).content_hash() == files.world(model("m")).content_hash()
