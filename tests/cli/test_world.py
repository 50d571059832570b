"""`worldline world`: alone, with secondaries, by a script, and again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Command
from tests.world.meeting import free_place

if TYPE_CHECKING:
    from worldline.world.engines.mujoco import MujocoGroup

WORLDS = Path(__file__).parents[2] / "examples" / "world"
LEVELS = str(WORLDS / "levels.sdf")
KINEMATIC = ("--engine", "kinematic")
PATIENCE_S = 60.0
pytestmark = pytest.mark.timeout(120)

SCRIPT = """
step 5
run to 20ms
command vehicle_red 1 0 0  0 0 0.5   # It turns.
insert extra like vehicle_blue at 3 3 0.3
step 30
pose extra 4 4 0.3
step 7
remove extra
step 10
quit
"""


def outcome_in(text: str) -> tuple[str, str]:
    found = re.search(r"state hash ([0-9a-f]{32}) at step \d+\ndigest ([0-9a-f]{32})\n$", text)
    assert found is not None, text
    return found[1], found[2]


def test_alone_and_with_secondaries_it_is_one_history(worldline: Command) -> None:
    code, alone, errors = worldline("world", LEVELS, "--until", "100ms", *KINEMATIC, "--hashes", "alone.txt")
    assert (code, errors) == (0, "")
    assert alone.startswith("written to alone.txt\nlevels: 100 steps, 100ms simulated in ")
    options = ("--local-secondaries", "2", "--run-ahead", "4", "--hashes", "two.txt", "--quiet")
    code, two, errors = worldline("world", LEVELS, "--until", "100ms", *KINEMATIC, *options)
    assert (code, errors) == (0, "")
    assert outcome_in(two) == outcome_in(alone)
    lines = Path("alone.txt").read_text().splitlines()
    assert Path("two.txt").read_text().splitlines() == lines
    assert len(lines) == 100
    assert lines[-1] == f"100 100 {outcome_in(alone)[0]}"


def test_a_script_is_repeated_from_its_recording_and_from_its_log(worldline: Command) -> None:
    Path("script.txt").write_text(SCRIPT)
    options = ("--record", "run.mcap", "--interactions", "log.jsonl")
    code, original, errors = worldline("world", LEVELS, *KINEMATIC, "--console", "script.txt", *options)
    assert (code, errors) == (0, "")
    assert "step 20 (20ms): command vehicle_red 1 0 0 0 0 0.5\n" in original
    for source in ("run.mcap", "log.jsonl"):
        code, again, errors = worldline("world", LEVELS, *KINEMATIC, "--replay-interactions", source)
        assert (code, errors) == (0, "")
        assert outcome_in(again) == outcome_in(original)
    code, digest, _ = worldline("digest", "run.mcap")
    assert digest.strip() == outcome_in(original)[1]


def test_pictures_and_animations_are_written(worldline: Command) -> None:
    code, said, _ = worldline(
        "world", LEVELS, "--until", "50ms", *KINEMATIC, "--paths", "paths.svg", "--animation", "run.html"
    )
    assert code == 0
    assert "written to paths.svg\nwritten to run.html\n" in said
    assert Path("paths.svg").read_text().startswith("<svg")
    assert Path("run.html").read_text().lower().startswith("<!doctype html>")


def test_a_world_is_checked_without_running(worldline: Command) -> None:
    code, said, errors = worldline("world", "--check", LEVELS)
    assert (code, errors) == (0, "")
    assert said.startswith("world levels: steps of 1ms")


CUBE = (
    '<model name="{0}"><pose>{1} 0 5 0 0 0</pose><link name="l"><collision name="c"><geometry><box><size>1 1 1</size>'
    "</box></geometry></collision></link></model>"
)
LEVEL = """
<plugin name="gz::sim">
  <performer name="p"><ref>here</ref><geometry><box><size>1 1 1</size></box></geometry></performer>
  <level name="far"><pose>50 0 5 0 0 0</pose><geometry><box><size>9 9 9</size></box></geometry><ref>b</ref></level>
</plugin>
"""


def test_a_start_looks_only_at_what_is_loaded_and_at_each_once(
    worldline: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check looks at all of it."""
    mujoco_engine = pytest.importorskip("worldline.world.engines.mujoco")
    alone = mujoco_engine.MujocoGroup.alone
    built: list[str] = []

    def counted(group: MujocoGroup) -> object:
        built.extend(group.movers)
        return alone(group)

    monkeypatch.setattr(mujoco_engine.MujocoGroup, "alone", counted)
    cubes = "".join(CUBE.format(*each) for each in (("here", 0), ("a", 49.5), ("b", 50)))
    Path("far.sdf").write_text(f'<sdf version="1.11"><world name="w">{cubes}{LEVEL}</world></sdf>')
    code, _, errors = worldline("world", "far.sdf", "--until", "2ms")
    assert (code, errors) == (0, "")
    assert sorted(name for name in built if name in ("a", "b", "here")) == ["a", "here"]
    code, said, _ = worldline("world", "far.sdf", "--check")
    assert code == 0
    assert "two models start more than 1 cm deep in each other and will be hurled apart: 'a' and 'b'" in said


BROKEN = '<sdf version="1.6"><world name="w"><model name="m"><link name="l"/></model>'


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["missing.sdf"], "missing.sdf"),
        (["broken.sdf"], "broken.sdf"),
        ([LEVELS, "--network-role", "boss"], "there is no network role 'boss'"),
        ([LEVELS, "--network-role", "primary", "--network-secondaries", "0"], "can't do with 0 secondaries"),
        ([LEVELS, "--network-role", "secondary", "--network-secondaries", "1"], "a secondary doesn't decide"),
        ([LEVELS, "--network-role", "secondary", "--until", "1s"], "--until is for the primary"),
        ([LEVELS, "--network-role", "secondary", "--no-discovery"], "has to know where its primary is"),
        ([LEVELS, "--network-primary", "tcp://127.0.0.1:1"], "are for secondaries"),
        ([LEVELS, "--network-role=primary", "--network-secondaries=1", "--local-secondaries=1"], "starts all there is"),
        ([LEVELS, "--engine", "ode"], "there is no physics engine 'ode'"),
        ([LEVELS, "--until", "soon"], "soon"),
        ([LEVELS, "--console", "nothing.txt"], "nothing.txt can't be read"),
        ([LEVELS, "--console", "play.txt"], "line 2: nothing would ever stop `play`"),
        ([LEVELS, "--replay-interactions", "play.txt"], "play.txt"),
        ([LEVELS, "--console", "play.txt", "--replay-interactions", "x"], "both say what happens"),
    ],
)
def test_what_cant_be_is_refused_before_anything_starts(worldline: Command, arguments: list[str], problem: str) -> None:
    Path("broken.sdf").write_text(BROKEN)
    Path("play.txt").write_text("step 1\nplay\n")
    code, said, errors = worldline("world", *arguments)
    assert (code, said) == (2, "")
    assert problem in errors
    assert "Traceback" not in errors
    assert len(errors.splitlines()) == 1


def test_a_mistake_in_a_script_ends_the_run_with_its_line(worldline: Command) -> None:
    Path("script.txt").write_text("step 3\ncommand nobody 1 0 0\n")
    code, _, errors = worldline("world", LEVELS, *KINEMATIC, "--console", "script.txt")
    assert code == 2
    assert errors == (
        "worldline: script.txt: line 2: there is no model 'nobody' (use the name of a model in the world's file)\n"
    )


@pytest.fixture
def meeting_point() -> str:
    return free_place()


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "worldline", "world", LEVELS, *KINEMATIC, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})


def test_a_primary_and_secondaries_find_each_other(worldline: Command, meeting_point: str) -> None:
    """In any order; the first secondary is there before its primary."""
    network = ("--federation", "t", "--meet", meeting_point, "--patience", "60")
    secondaries = [start("--network-role", "Secondary", "--name", name, *network) for name in ("b", "a")]
    options = ("--network-role=PRIMARY", "--network-secondaries=2", "--until", "50ms")
    code, said, errors = worldline("world", LEVELS, *KINEMATIC, *options, *network)
    assert (code, errors) == (0, "")
    assert "all are there: a, b\n" in said
    for process in secondaries:
        out, complaints = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, complaints) == (0, "")
        assert out.endswith("the run is over, after step 50\n")
    _, alone, _ = worldline("world", LEVELS, *KINEMATIC, "--until", "50ms")
    assert outcome_in(said) == outcome_in(alone)


def test_who_finds_nobody_says_whom_it_has_seen(worldline: Command, meeting_point: str) -> None:
    network = ("--federation", "t", "--meet", meeting_point, "--patience", "0.3")
    code, _, errors = worldline("world", LEVELS, *KINEMATIC, "--network-role=secondary", *network)
    assert code == 3
    assert "no primary of federation 't' after 0.3 seconds; seen: none" in errors
    options = ("--network-role=primary", "--network-secondaries=2")
    code, _, errors = worldline("world", LEVELS, *KINEMATIC, *options, *network)
    assert code == 3
    assert "0 of 2 secondaries came within 0.3 s; seen: none" in errors
