"""Whatever a file says and nobody simulates is listed, each kind once, with the line of the first."""

from __future__ import annotations

import pytest

from tests.world.sdf.files import BOX, LINK, Files, model, stage
from tests.world.sdf.test_reader import JOINED, WHEELS
from worldline.world.description import LoadingNote
from worldline.world.report import load_remarks, world_report
from worldline.world.shapes import BoxShape, CapsuleShape, CylinderShape, EllipsoidShape, Shape, SphereShape


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("\n<gui/>", "line 4: <gui> in <world> isn't supported"),
        ("\n<light name='sun' type='point'><pose>junk</pose></light>", "line 4: <light> in <world> isn't supported"),
        (
            "\n<plugin name='gz::sim::systems::Imu'><x/></plugin>",
            "line 4: plugin 'gz::sim::systems::Imu' isn't supported",
        ),
        ("\n<plugin/>", "line 4: plugin '' isn't supported"),
        (model("m", f"{LINK}\nabout words"), "line 3: <model> has text, which isn't supported"),
        (model("m", "<link name='l'>\nwords</link>"), "line 3: <link> has text, which isn't supported"),
        ("<physics>\n<ode/></physics>", "line 4: <ode> in <physics> isn't supported"),
        (model("m", LINK + "\n<allow_auto_disable/>"), "line 4: <allow_auto_disable> in <model> isn't supported"),
        (
            "\n<model name='m' enabled='x'>" + LINK + "</model>",
            "line 4: the attribute enabled of <model>",
        ),
        (model("m", LINK + "\n<plugin name='Mine'/>"), "line 4: plugin 'Mine' isn't supported"),
        (model("m", "\n<pose/><pose/>" + LINK), "line 4: only the first <pose> of a <model> counts"),
        (model("m", "<link name='l'>\n<sensor name='s'/></link>"), "line 4: <sensor> in <link> isn't supported"),
        (
            model("m", f"<link name='l'><collision name='c'>{BOX}<surface>\n<bounce/></surface></collision></link>"),
            "line 4: <bounce> in <surface> isn't supported",
        ),
        (
            model("m", JOINED + "\n<joint name='j' type='screw'><thread_pitch>1</thread_pitch></joint>"),
            "line 4: joint 'j' is of type screw, which isn't supported: it connects nothing",
        ),
        (
            model("m", JOINED + "<joint name='j' type='ball'><parent>a</parent><child>b</child>\n<axis/></joint>"),
            "line 4: <axis> in <joint> isn't supported",
        ),
        (
            model(
                "m",
                WHEELS + "<plugin name='ignition::gazebo::systems::DiffDrive'><left_joint>left_j</left_joint>"
                "<right_joint>right_j</right_joint>\n<topic>cmd</topic></plugin>",
            ),
            "line 4: <topic> in <plugin> isn't supported",
        ),
        (
            model("m", f"{LINK}<model name='n'>{LINK}\n<static>1</static></model>"),
            "line 4: a model nested in one that moves can't be static: it moves along",
        ),
        (
            model("m", f"{LINK}<model name='n'>{LINK}\n<plugin name='gz::sim::systems::DiffDrive'/></model>"),
            "line 4: plugin 'gz::sim::systems::DiffDrive' isn't supported",
        ),
        (
            stage(f"<level name='l'>\n<pose>0 0 0 0 0 1</pose>{BOX}</level>"),
            "line 4: level 'l' is turned; its box lies along the axes all the same",
        ),
        (
            model("r")
            + stage(
                "<performer name='p'><ref>r</ref>\n<geometry><box><size>1 1 1</size></box><buffer>1</buffer>"
                "</geometry></performer>"
            ),
            "line 4: <buffer> in <geometry> isn't supported",
        ),
    ],
)
def test_what_is_not_supported_is_noted(files: Files, body: str, note: str) -> None:
    (found,) = files.notes(body)
    assert found.startswith(note)


@pytest.mark.parametrize("name", ["Physics", "UserCommands", "SceneBroadcaster"])
def test_what_is_done_anyway_is_not(files: Files, name: str) -> None:
    assert files.notes(f"<plugin name='gz::sim::systems::{name}' filename='x'><engine/></plugin>") == []


def test_each_kind_is_listed_once(files: Files) -> None:
    material = "<material><diffuse>1 1 1</diffuse>\n<specular>1 1 1 1</specular></material>"
    visuals = "".join(f"<visual name='{each}'>{BOX}{material}</visual>" for each in "abc")
    assert files.notes(model("m", f"<link name='l'>{visuals}</link>")) == [
        "line 4: <specular> in <material> isn't supported, here and in 2 more places"
    ]


@pytest.mark.parametrize("shape", ["<mesh><uri>x.dae</uri></mesh>", "<cone/>", "<empty/>", "<heightmap/>"])
def test_shapes_that_are_not_supported_are_left_out(files: Files, shape: str) -> None:
    geometry = f"<geometry>{shape}</geometry>"
    parts = f"<collision name='c'>{geometry}<surface/></collision><visual name='v'>{geometry}<material/></visual>"
    world = files.world(model("m", f"<link name='l'>{parts}</link>"))
    assert world.models["m"].links[0].collisions == ()
    assert world.models["m"].links[0].visuals == ()
    assert [note.is_cosmetic for note in world.notes] == [False, True]  # A collision's and a visual's.
    assert all(str(note).endswith("in <geometry> isn't supported") for note in world.notes)


def test_what_changes_motion_is_noted_first(files: Files) -> None:
    contact = "<surface><friction><ode><fdir1>1 0 0</fdir1><slip1>1</slip1></ode></friction></surface>"
    world = files.world(
        "<gui/>\n<light name='sun'/>\n<plugin name='gz::sim::systems::Imu'/>"
        "\n<plugin filename='gz-sim-buoyancy-system' name='gz::sim::systems::Buoyancy'/>\n"
        + model("m", f"<link name='l'><sensor name='s'/><collision name='c'>{BOX}{contact}</collision></link>")
    )
    assert [str(note) for note in world.notes] == [
        "line 6: plugin 'gz::sim::systems::Buoyancy' isn't supported",
        "line 7: <fdir1> in <ode> isn't supported",
        "line 7: <slip1> in <ode> isn't supported",
        "line 3: <gui> in <world> isn't supported",
        "line 4: <light> in <world> isn't supported",
        "line 5: plugin 'gz::sim::systems::Imu' isn't supported",
        "line 7: <sensor> in <link> isn't supported",
    ]
    assert load_remarks(world) == [
        *map(str, world.notes[:3]),
        "4 things aren't supported, but change no motion: --check lists them",
    ]
    report = world_report(world)
    assert report.index("not supported, but nothing moves in another way because of it:") == len(report) - 5


@pytest.mark.parametrize(
    ("shape", "read", "note"),
    [
        ("<box/>", BoxShape((1, 1, 1)), "a <box> without <size> has 1 1 1, as in Gazebo"),
        ("<sphere>1</sphere>", SphereShape(1), "a <sphere> without <radius> has 1, as in Gazebo"),
        ("<cylinder><length>3</length></cylinder>", CylinderShape(1, 3), "a <cylinder> without <radius> has 1"),
        ("<cylinder><radius>3</radius></cylinder>", CylinderShape(3, 1), "a <cylinder> without <length> has 1"),
        ("<capsule><length>3</length></capsule>", CapsuleShape(0.5, 3), "a <capsule> without <radius> has 0.5"),
        ("<ellipsoid/>", EllipsoidShape((1, 1, 1)), "a <ellipsoid> without <radii> has 1 1 1"),
    ],
)
def test_sizes_that_are_missing_are_those_of_gazebo(files: Files, shape: str, read: Shape, note: str) -> None:
    world = files.world(
        model("m", f"<link name='l'><collision name='c'><geometry>{shape}</geometry></collision></link>")
    )
    assert world.models["m"].links[0].collisions[0].shape == read
    assert any(note in str(each) for each in world.notes)
    files.world(model("robot") + stage("<level name='l'><geometry><box/></geometry></level>"))


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "continuous"])
def test_a_limit_of_speed_is_noted_if_nothing_moves_the_joint_at_a_speed(files: Files, kind: str) -> None:
    joint = f"<joint name='j' type='{kind}'><parent>a</parent><child>b</child>"
    limited = f"{JOINED}{joint}<axis><limit><effort>7</effort>\n<velocity>2</velocity></limit></axis></joint>"
    (note,) = files.notes(model("m", limited))
    assert note == "line 4: <velocity> in <limit> isn't simulated for joints that nothing moves at a speed"
    force = "<plugin name='gz::sim::systems::ApplyJointForce'><joint_name>j</joint_name></plugin>"
    assert files.notes(model("m", limited + force)) == [note]
    assert files.notes(model("m", limited + force.replace("ApplyJointForce", "JointController"))) == []
    assert files.notes(model("m", limited + "<static>1</static>")) == []


@pytest.mark.parametrize(
    ("motor", "note"),
    [
        ("<joint_name>gone</joint_name>", "nothing is moved by a motor of joint 'gone': there is none that can move"),
        ("<joint_name>f</joint_name>", "nothing is moved by a motor of joint 'f': there is none that can move"),
        ("<joint_name>locked</joint_name>", "nothing is moved by a motor of joint 'locked': there is none"),
        ("<joint_name>j</joint_name><joint_name>j</joint_name>", "joint 'j' moves at a speed already"),
        ("<joint_name>j</joint_name><actuator_number>1</actuator_number>", "<actuator_number> in <plugin> isn't"),
    ],
)
def test_motors_that_move_nothing_are_noted(files: Files, motor: str, note: str) -> None:
    limits = "<axis><limit><lower>1</lower><upper>1</upper></limit></axis>"
    body = "<link name='a'/>" + "".join(
        f"<link name='{name}_link'/><joint name='{name}' type='{kind}'><parent>a</parent><child>{name}_link</child>"
        f"{limits if name == 'locked' else ''}</joint>"
        for name, kind in (("j", "revolute"), ("f", "fixed"), ("locked", "prismatic"))
    )
    (found,) = files.notes(model("m", f"{body}<plugin name='gz::sim::systems::JointController'>{motor}</plugin>"))
    assert note in found
    index = "<plugin name='gz::sim::systems::JointPositionController'><joint_name>j</joint_name>{}</plugin>"
    assert files.world(model("m", body + index.format("<joint_index>0</joint_index>"))).models["m"].motors
    assert not files.world(model("m", body + index.format("<joint_index>1</joint_index>"))).models["m"].motors


@pytest.mark.parametrize("locked", ["l", "r"])
def test_a_drive_of_a_locked_wheel_is_left_out(files: Files, locked: str) -> None:
    limits = "<axis><limit><lower>1</lower><upper>1</upper></limit></axis>"
    wheels = "".join(
        f"<link name='{name}_link'/><joint name='{name}' type='revolute'><parent>a</parent><child>{name}_link</child>"
        f"{limits if name == locked else ''}</joint>"
        for name in ("l", "r")
    )
    drive = (
        "<plugin name='gz::sim::systems::DiffDrive'>\n<left_joint>l</left_joint><right_joint>r</right_joint></plugin>"
        "<plugin name='worldline::ScriptedCommands'><command><time>0</time><linear>1</linear></command></plugin>"
    )
    world = files.world(model("m", f"<link name='a'/>{wheels}{drive}"))
    text = f"line 4: nothing is moved by a drive of joint '{locked}': its limits leave it a single position"
    assert [str(note) for note in world.notes] == [text]
    assert (world.models["m"].drive, world.models["m"].commands) == (None, ())
    assert {joint.name: joint.kind for joint in world.models["m"].joints}[locked] == "fixed"


def test_a_level_may_name_a_light(files: Files) -> None:
    body = "<light name='sun'/>" + stage(f"<level name='l'>{BOX}\n<ref>sun</ref></level>")
    world = files.world(body)
    assert world.levels[0].entities == ()
    assert LoadingNote(4, "level 'l' names 'sun', which isn't simulated") in world.notes


def test_old_files_are_noted(files: Files) -> None:
    (note,) = files.read('<sdf version="1.4"><world name="w"/></sdf>').notes
    assert "SDF 1.4" in note.text


def test_notes_are_harmless_to_print(files: Files) -> None:
    (note,) = files.notes(f"<{'x' * 5000}\u0300/>")
    assert len(note) < 500
