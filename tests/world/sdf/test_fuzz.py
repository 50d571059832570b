"""No file makes the reader fail in another way than with an error of ours, on a line of that file."""

from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.world.sdf.files import BOX, Files
from tests.world.sdf.test_reader import JOINED, WHEELS
from worldline.world.report import world_report
from worldline.world.sdf import WorldFileError

many = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])

# A file in which everything occurs that the reader knows.
WHOLE = f"""<sdf version="1.11"><world name="w">
<physics default="1"><max_step_size>0.001</max_step_size><real_time_factor>1</real_time_factor></physics>
<gravity>0 0 -9.8</gravity>
<frame name="f" attached_to="n"><pose relative_to="world">1 2 3 0 0 0</pose></frame>
<model name="m">
  <pose degrees="true" rotation_format="euler_rpy">0 0 1 0 0 90</pose>
  <static>0</static>
  {JOINED}
  <joint name="j" type="revolute">
    <parent>a</parent><child>b</child><pose relative_to="a">0 0 0 1 0 0</pose>
    <axis>
      <xyz expressed_in="a">0 1 0</xyz>
      <limit><lower>-1</lower><upper>1</upper></limit>
      <dynamics><damping>1</damping></dynamics>
    </axis>
  </joint>
  <plugin name="gz::sim::systems::VelocityControl"><initial_linear>1 0 0</initial_linear></plugin>
  <plugin name="worldline::ScriptedCommands"><command><time>1</time><linear>1</linear></command></plugin>
</model>
<model name="n">
  <pose relative_to="m">0 0 0 0 0 0</pose>
  <link name="l">
    <inertial auto="true"><mass>2</mass><density>3</density></inertial>
    <collision name="c">
      <density>5</density>{BOX}
      <surface><friction><ode><mu>1</mu></ode></friction></surface>
    </collision>
    <visual name="v">
      <geometry><capsule><radius>1</radius><length>2</length></capsule></geometry>
      <material><diffuse>1 0 0</diffuse></material>
    </visual>
  </link>
  <plugin name="worldline::ScriptedMotion">
    <loop>1</loop>
    <waypoint><time>0</time><pose/></waypoint><waypoint><time>1</time><pose/></waypoint>
  </plugin>
</model>
<model name="o">
  {WHEELS}
  <plugin name="gz::sim::systems::DiffDrive">
    <left_joint>left_j</left_joint><right_joint>right_j</right_joint><max_velocity>1</max_velocity>
  </plugin>
  <plugin filename="gz-sim-joint-position-controller-system" name="gz::sim::systems::JointPositionController">
    <joint_name>arm_j</joint_name><topic>up</topic><p_gain>2</p_gain><i_max>3</i_max><cmd_max>4</cmd_max>
  </plugin>
  <plugin filename="ignition-gazebo-apply-joint-force-system"><joint_name>arm_j</joint_name></plugin>
  <plugin name="worldline::ScriptedCommands">
    <command><time>1</time><topic>/up</topic><value>1</value></command>
  </plugin>
  <link name="arm"/><joint name="arm_j" type="prismatic"><parent>left</parent><child>arm</child></joint>
  <model name="p">
    <link name="x"><inertial><mass>1</mass><inertia><ixx>1</ixx></inertia></inertial></link>
  </model>
</model>
<plugin name="gz::sim">
  <performer name="p"><ref>m</ref>{BOX}</performer>
  <level name="l"><pose/>{BOX}<ref>n</ref></level>
</plugin>
</world></sdf>
"""
MARKS = """
< > </ /> ' " = & ; <!-- --> <![CDATA[ ]]> <? ?> <!DOCTYPE 1e308 -1 0 nan inf 1e-300 :: __model__ world m n p::x
true model://x <model> </model> <link> </link> <pose> </pose> <geometry> <box> <plane/> relative_to='f' \ufeff \x00
<include><uri>world.sdf</uri></include> é 🤖
"""
TOKENS = st.sampled_from([*MARKS.split(), "\n", " ", "<model name='m'>", "<link name='l'>"])


def survives(files: Files, content: bytes) -> None:
    try:
        world = files.read(content)
    except WorldFileError as error:
        line = error.facts["line"]
        assert line is None or 1 <= line <= content.count(b"\n") + content.count(b"\r") + 1
    else:
        assert world_report(world)


def test_the_whole_file_is_sound(files: Files) -> None:
    assert files.read(WHOLE).notes == ()


@many
@given(st.binary(max_size=200))
@example(b"\xff\xfe<\x00")
@example(b"\xef\xbb\xbf")
def test_any_bytes(files: Files, content: bytes) -> None:
    survives(files, content)


@many
@given(st.integers(0, len(WHOLE)), st.integers(0, 40), st.lists(TOKENS, max_size=3).map("".join))
def test_a_passage_replaced(files: Files, start: int, length: int, inserted: str) -> None:
    survives(files, (WHOLE[:start] + inserted + WHOLE[start + length :]).encode())


WORDS = sorted({word for word in WHOLE.replace(">", "\0").replace("<", "\0").split("\0") if word.strip()})


@many
@given(st.sampled_from(WORDS), st.one_of(TOKENS, st.sampled_from(WORDS), st.floats().map(repr)))
def test_a_word_replaced_everywhere(files: Files, word: str, other: str) -> None:
    """Most of what comes out is still well-formed, so mistakes are found further inside."""
    survives(files, WHOLE.replace(f">{word}<", f">{other}<").replace(f"<{word}>", f"<{other}>").encode())
