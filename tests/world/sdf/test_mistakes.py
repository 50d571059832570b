"""Every mistake is reported with the file and the line that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.world.sdf.files import BOX, LINK, Files, model, stage, wrapped
from tests.world.sdf.test_reader import JOINED, WHEELS
from worldline.world.sdf import WorldFileError, read_world
from worldline.world.sdf import reader as xml_document

ROBOT = model("robot")
PERFORMER = f"<performer name='p'><ref>robot</ref>{BOX}</performer>"
DRIVE = "<plugin name='gz::sim::systems::DiffDrive'>{}</plugin>"


@pytest.mark.parametrize(
    ("body", "line", "text"),
    [
        (ROBOT + stage("\n<level name='l'>\n</level>"), 4, "level 'l' needs a <geometry>"),
        (ROBOT + stage("<level name='l'>\n<geometry/></level>"), 4, "level 'l' needs a <box>"),
        (ROBOT + stage("<level name='l'>\n<geometry><sphere/></geometry></level>"), 4, "level 'l' needs a <box>"),
        (stage("<level name='l'><geometry>\n<box>\n<size>1 2</size></box></geometry></level>"), 5, "needs 3 numbers"),
        (stage("<level name='l'><geometry>\n<box><size>1 2 -3</size></box></geometry></level>"), 4, "above 0"),
        (stage(f"\n<level name='l'><buffer>-1</buffer>{BOX}</level>"), 4, "buffer must be"),
        (stage(f"\n<level name='l'>{BOX}<ref>\n</ref></level>"), 4, "<ref> is empty"),
        (stage(f"\n<level name='l'>{BOX}<ref>x</ref></level>"), 4, "level 'l' names model 'x'"),
        (stage(f"\n<level>{BOX}</level>"), 4, "needs a name"),
        (stage(f"<level name='l'>{BOX}</level>\n<level name='l'>{BOX}</level>"), 4, "two levels 'l'"),
        (ROBOT + stage(f"{PERFORMER}\n<level name='l'>{BOX}<ref>robot</ref></level>"), 4, "is a performer"),
        (stage("\n" + PERFORMER), 4, "performer 'p' names model 'robot'"),
        (model("robots") + stage("\n" + PERFORMER), 4, "did you mean 'robots'"),
        (ROBOT + stage(PERFORMER + "\n" + PERFORMER.replace("'p'", "'q'")), 4, "'p' and 'q' are one model"),
        (ROBOT + model("r2") + stage(f"{PERFORMER}\n{PERFORMER.replace('>robot<', '>r2<')}"), 4, "two performers 'p'"),
        (ROBOT + stage("\n<performer name='p'><ref>robot</ref></performer>"), 4, "performer 'p' needs a <geometry>"),
        (ROBOT + stage(f"\n<performer name='p'>{BOX}</performer>"), 4, "performer 'p' needs a <ref>"),
        (ROBOT + "\n" + ROBOT, 4, "two <model> 'robot'"),
        ("\n<model/>", 4, "needs a name"),
        ("\n<model name='m'/>", 4, "no link"),
        (model("m", "\n<link/>"), 4, "<link> needs a name"),
        (model("m", LINK + "\n" + LINK), 4, "two <link> 'body'"),
        (model("m", "\n<link name='world'/>"), 4, "reserves"),
        (model("m", "\n<link name='a::b'/>"), 4, "reserves"),
        (model("m", "<link name='l'>\n<collision name='c'/></link>"), 4, "needs a <geometry>"),
        (model("m", f"<link name='l'>\n<collision>{BOX}</collision></link>"), 4, "<collision> needs a name"),
        (model("m", "<link name='l'><collision name='c'>\n<geometry/></collision></link>"), 4, "needs a shape"),
        (
            model("m", f"<link name='l'><visual name='v'>{BOX}</visual>\n<visual name='v'>{BOX}</visual></link>"),
            4,
            "two",
        ),
        (model("m", LINK + "\n<static>maybe</static>"), 4, "<static> is true or false, not 'maybe'"),
        (model("m", f"<pose>\n</pose>{LINK}").replace("\n", "1 2"), 3, "<pose> needs 6 numbers"),
        (model("m", f"\n<pose rotation_format='axis'>0 0 0 0 0 0</pose>{LINK}"), 4, "rotation_format"),
        (model("m", f"\n<pose rotation_format='quat_xyzw'>0 0 0 0 0 0 0</pose>{LINK}"), 4, "quaternion"),
        (model("m", f"\n<pose relative_to='x'>0 0 0 0 0 0</pose>{LINK}"), 4, "nothing called 'x'"),
        (model("m", f"\n<pose relative_to='m'>0 0 0 0 0 0</pose>{LINK}"), 3, "relative to itself"),
        (model("m", f"{LINK}\n<frame name='f' attached_to='f'/>"), 4, "relative to itself"),
        (
            model(
                "m",
                JOINED + "<joint name='j' type='ball'><parent>a</parent>\n<child>f</child></joint>"
                "<frame name='f' attached_to='f'><pose relative_to='a'>0 0 0 0 0 0</pose></frame>",
            ),
            4,
            "attached to itself",
        ),
        (model("m", "<link name='l'>\n<inertial><mass>0</mass></inertial></link>"), 4, "mass must be above 0"),
        (model("m", "<link name='l'>\n<inertial><inertia><ixx>9</ixx></inertia></inertial></link>"), 4, "no body has"),
        (model("m", "<link name='l'>\n<inertial auto='true'/></link>"), 4, "no shape to work out"),
        (
            model(
                "m",
                f"<link name='l'>\n<inertial auto='true'><mass>-1</mass></inertial><collision name='c'>{BOX}"
                "</collision></link>",
            ),
            4,
            "mass must be",
        ),
        (
            model("m", JOINED + "\n<joint name='j' type='bal'><parent>a</parent><child>b</child></joint>"),
            4,
            "did you mean",
        ),
        (model("m", JOINED + "\n<joint name='j'><parent>a</parent><child>b</child></joint>"), 4, "no type of joint"),
        (model("m", JOINED + "\n<joint name='j' type='ball'><parent>a</parent></joint>"), 4, "needs a <child>"),
        (model("m", JOINED + "\n<joint name='j' type='ball'><child>a</child></joint>"), 4, "needs a <parent>"),
        (
            model("m", JOINED + "<joint name='j' type='ball'>\n<parent>x</parent><child>a</child></joint>"),
            4,
            "called 'x'",
        ),
        (model("m", JOINED + "\n<joint name='j' type='ball'><parent>a</parent><child>a</child></joint>"), 4, "circle"),
        (
            model(
                "m",
                JOINED + "<joint name='j' type='revolute'><parent>a</parent><child>b</child><axis>\n<xyz>0 0 0</xyz>"
                "</axis></joint>",
            ),
            4,
            "axis needs some length",
        ),
        (
            model(
                "m",
                JOINED + "<joint name='j' type='revolute'><parent>a</parent><child>b</child>\n<axis><limit>"
                "<lower>2</lower><upper>1</upper></limit></axis></joint>",
            ),
            4,
            "between 2.0 and 1.0",
        ),
        (model("m", WHEELS + "\n" + DRIVE.format("<left_joint>left_j</left_joint>")), 4, "either side"),
        (model("m", WHEELS + DRIVE.format("<left_joint>left_j</left_joint>\n<right_joint>x</right_joint>")), 4, "'x'"),
        (model("m", f"{LINK}<plugin name='gz::sim::systems::VelocityControl'/>\n" + DRIVE), 4, "has a drive already"),
        (model("m", f"\n{LINK}<plugin name='worldline::ScriptedMotion'/>"), 4, "at least one waypoint"),
        (
            model("m", f"{LINK}<plugin name='worldline::ScriptedMotion'>\n<waypoint><pose/></waypoint></plugin>"),
            4,
            "<time>",
        ),
        (
            model(
                "m",
                f"{LINK}<plugin name='worldline::ScriptedMotion'><waypoint><time>2</time><pose/></waypoint>\n"
                "<waypoint><time>1</time><pose/></waypoint></plugin>",
            ),
            4,
            "comes after",
        ),
        (
            model(
                "m",
                f"{LINK}<plugin name='worldline::ScriptedMotion'><waypoint>\n<time>-2</time><pose/></waypoint>"
                "</plugin>",
            ),
            4,
            "seconds from 0",
        ),
        (
            model("m", f"{LINK}<plugin name='worldline::ScriptedCommands'><command><time>0</time></command></plugin>"),
            3,
            "no drive",
        ),
        ("<physics>\n<max_step_size>0</max_step_size></physics>", 4, "too small"),
        ("<physics>\n<max_step_size>-0.1</max_step_size></physics>", 4, "seconds from 0"),
        ("<physics>\n<real_time_factor>-1</real_time_factor></physics>", 4, "real-time factor"),
        ("\n<gravity>0 0</gravity>", 4, "needs 3 numbers"),
        ("\n<include/>", 4, "<include> needs a <uri>"),
        ("<include>\n<uri>https://fuel.gazebosim.org/1.0/models/Sun</uri></include>", 4, "address on the web"),
        ("<include>\n<uri>model://sun</uri></include>", 4, "there is no file"),
        ("<include>\n<uri>/dev/zero</uri></include>", 4, "outside of the world's folder"),
        (f"<include>\n<uri>{'x' * 5000}</uri></include>", 4, "there is no file"),
        ("<include>\n<uri>world.sdf</uri></include>", 4, "has 0 models"),
    ],
)
def test_mistakes(files: Files, body: str, line: int, text: str) -> None:
    files.refused(wrapped(body), line, text)


@pytest.mark.parametrize(
    "word", ["1,5", "nan", "inf", "1e999", "0x10", "1_000", "١", "1e", "", "--1", "1" * 101, "1;2"]
)
def test_bad_numbers(files: Files, word: str) -> None:
    body = f"<physics>\n<real_time_factor>{word}</real_time_factor></physics>"
    files.refused(wrapped(body), 4, "<real_time_factor> needs a")


def outside(files: Files) -> str:
    """Have a model outside of the world's folder, and return its path."""
    there = files.folder / "there" / "model.sdf"
    files.write(f'<sdf version="1.6">{model("secret")}</sdf>', "there/model.sdf")
    files.folder, files.path = files.folder / "here", files.folder / "here" / "world.sdf"
    (files.folder / "x").mkdir(parents=True)
    return str(there)


@pytest.mark.parametrize(
    "uri", ["../there/model.sdf", "../there", "model://../there", "file://../there", "{}", "file://{}", "x/../../there"]
)
def test_what_is_outside_of_the_worlds_folder_is_not_included(
    files: Files, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = outside(files)
    content = wrapped(f"<include><uri>{uri.format(there)}</uri></include>")
    error = files.refused(content, 3, "is outside of the world's folder and of the resource paths")
    assert error.advice == f"to allow its folder, add it to GZ_SIM_RESOURCE_PATH: '{Path(there).parent}'"
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(Path(there).parent))
    assert list(files.read(content).models) == ["secret"]


@pytest.mark.parametrize(
    ("link", "target"), [("robot.sdf", "model.sdf"), ("robot", "."), ("robot/model.sdf", "model.sdf")]
)
def test_links_that_lead_out_of_it_are_not_followed(files: Files, link: str, target: str) -> None:
    there = Path(outside(files)).parent
    path = files.folder / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(there / target)
    files.refused(wrapped(f"<include><uri>{link}</uri></include>"), 3, "is outside of the world's folder")
    path.unlink()
    path.symlink_to(files.folder)
    files.refused(wrapped(f"<include><uri>{link}/nothing</uri></include>"), 3, "there is no file")


def test_whether_there_is_a_file_outside_is_not_told(files: Files) -> None:
    outside(files)
    text = "is outside of the world's folder"
    for uri in ("../there/model.sdf", "../there/nothing.sdf", "/etc/passwd", "/etc/nothing"):
        files.refused(wrapped(f"<include><uri>{uri}</uri></include>"), 3, text)


@pytest.mark.parametrize("uri", ["robot", "model://robot"])
def test_a_models_folder_without_its_file(files: Files, uri: str) -> None:
    content = wrapped(f"<include><uri>{uri}</uri></include>")
    folder = files.folder / "robot"
    folder.mkdir()
    lacking = "has neither a model.sdf nor a model.config that names a file"
    files.refused(content, 3, f"the folder '{folder}' {lacking}")
    config = files.write("<model><name>Robot</name></model>", "robot/model.config")
    files.refused(content, 3, lacking)
    files.write("<model><sdf version='1.4'>old.sdf</sdf></model>", "robot/model.config")
    files.refused(content, 3, f"has a model.config that names '{folder / 'old.sdf'}', where no file is")
    for broken, problem in (("<model>\n<sdf>", "the XML is broken"), ("<model>\n<sdf/></model>", "<sdf> is empty")):
        files.write(broken, "robot/model.config")
        with pytest.raises(WorldFileError, match=f"^{config}: line 2: {problem}"):
            files.read(content)


def test_a_models_folder_cant_lead_out_of_the_worlds(files: Files) -> None:
    there = Path(outside(files))
    content = wrapped("<include><uri>robot</uri></include>")
    for file in (str(there), "../../there/model.sdf", "../../there/nothing.sdf"):
        files.write(f"<model><sdf version='1.4'>{file}</sdf></model>", "robot/model.config")
        files.refused(content, 3, "is outside of the world's folder")
    config = files.folder / "robot" / "model.config"
    config.replace(there.parent / "model.config")
    config.symlink_to(there.parent / "model.config")
    files.refused(content, 3, "is outside of the world's folder")


def test_a_file_that_includes_itself(files: Files) -> None:
    path = files.write(f"<sdf>\n{model('m', '<include><uri>m.sdf</uri></include>')}</sdf>", "m.sdf")
    body = "<include><uri>m.sdf</uri></include>"
    files.write(wrapped(body))
    with pytest.raises(WorldFileError, match="does a file include itself") as caught:
        read_world(files.path)
    assert caught.value.facts == {"file": str(path), "line": 2}


def test_files_that_include_each_other_many_times(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten files of ten includes each would be ten billion models."""
    monkeypatch.setattr(xml_document, "ELEMENTS_MAX", 5000)
    for number in range(12):
        includes = "".join(f"<include><uri>{number + 1}.sdf</uri><name>n{each}</name></include>" for each in range(10))
        files.write(f"<sdf>{model('m', includes)}</sdf>", f"{number}.sdf")
    files.write(f"<sdf>{model('m')}</sdf>", "12.sdf")
    files.write(wrapped("<include><uri>0.sdf</uri></include>"))
    with pytest.raises(WorldFileError, match="more than 5000 elements"):
        read_world(files.path)


def test_a_long_chain_of_frames(files: Files) -> None:
    chain = "".join(f"<frame name='f{each}' attached_to='f{each + 1}'/>" for each in range(5000))
    body = model(
        "m", f"\n{LINK}{chain}<frame name='f5000'/><link name='l'><pose relative_to='f0'>0 0 0 0 0 0</pose></link>"
    )
    files.refused(wrapped(body), 4, "too many others")


def test_control_characters_in_names_are_shown_harmlessly(files: Files) -> None:
    error = files.refused(wrapped(stage("\n<level name='l\u202e'/>")), 4, "level")
    assert "\u202e" not in str(error)


def test_long_names_are_not_compared(files: Files) -> None:
    """Looking for the nearest of two names of a million characters would take hours."""
    long = "xy" * 500_000
    files.refused(wrapped(model("m", f"<link name='{long}'/>\n<frame name='f' attached_to='{long}x'/>")), 4, "called")
