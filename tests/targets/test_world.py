"""Worlds as targets: SDF files are run, recorded, verified and compared like anything else."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.leaks.running import EXAMPLES, command_of, verified
from worldline.history.observer import Observer
from worldline.history.outcome import Status
from worldline.model.errors import ModelError, UsageError
from worldline.recording import Condition, Recording
from worldline.recording.comparing import compare_recordings
from worldline.targets import RunOptions, prepare
from worldline.targets.world import ReadyWorld
from worldline.world.description import WorldDescription
from worldline.world.distributed import LocalSecondaries
from worldline.world.foxglove import WorldTeller
from worldline.world.run import World
from worldline.world.sdf import read_world

_BOX = "<geometry><box><size>0.4 0.4 0.4</size></box></geometry>"


def _runner(name: str, y: int, speed: float) -> str:
    return f"""<model name="{name}"><pose>0 {y} 0 0 0 0</pose>
    <link name="body"><collision name="c">{_BOX}</collision></link>
    <plugin filename="gz-sim-velocity-control-system" name="gz::sim::systems::VelocityControl">
    <initial_linear>{speed} 0 0</initial_linear></plugin></model>"""


YARD = f"""<sdf version="1.11"><world name="yard">
<physics name="steps" type="any"><max_step_size>0.01</max_step_size></physics>
{_runner("slow", 0, 1.0)}{_runner("fast", 5, 2.0)}
<model name="thing"><pose>3 9 0 0 0 0</pose><link name="body"><collision name="c">{_BOX}</collision></link></model>
<plugin name="gz::sim" filename="dummy">
<performer name="one"><ref>slow</ref>{_BOX}</performer>
<performer name="two"><ref>fast</ref>{_BOX}</performer>
<level name="far"><pose>1.5 5 0 0 0 0</pose><geometry><box><size>1 9 9</size></box></geometry>
<buffer>0.1</buffer><ref>thing</ref></level>
</plugin></world></sdf>"""

DOOMED = """<sdf version="1.11"><world name="doomed"><gravity>0 0 -9e9</gravity>
<physics name="steps" type="any"><max_step_size>0.1</max_step_size></physics>
<model name="stone"><link name="body"/></model></world></sdf>"""

KINEMATIC = ("--set", "engine=kinematic")
SECOND = ("--until", "1s", *KINEMATIC)

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def worldline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "yard.sdf").write_text(YARD)
    (tmp_path / "doomed.sdf").write_text(DOOMED)
    return command_of(monkeypatch, capsys)


def ready(file: Path, *settings: str, until: str | None = "1s", **options: Any) -> ReadyWorld:
    found = prepare(str(file), RunOptions(until=until, settings=("engine=kinematic", *settings), **options))
    assert isinstance(found, ReadyWorld)
    return found


@pytest.mark.parametrize("name", ["yard.sdf", "yard.world"])
def test_a_world_is_run_and_told_of_like_anything_else(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(YARD)
    found = ready(file)
    seen: list[Status] = []
    outcome = found.run(watch=seen.append)
    assert (found.kind, found.name, found.seed, found.executor) == ("world", "yard", 0, "inline")
    assert (outcome.now, outcome.events) == (10**9, 100)
    assert seen
    assert {status.end for status in seen} == {10**9}
    assert seen[0].events == seen[0].time // 10**7 > 0
    assert found.taking_part(outcome) == "2 performers"
    assert found.plan() == ready(file, "run-ahead=10", executor="processes(3)").plan()
    assert ready(file, until="500ms").run().digest != outcome.digest


def test_what_came_of_it_is_said_in_steps(worldline: Command) -> None:
    code, out, err = worldline("run", "yard.sdf", *SECOND)
    assert (code, err) == (0, "")
    said, digest = out.splitlines()
    assert said.startswith("2 performers, 1s simulated in ")
    assert said.endswith(" s, 100 steps")
    assert digest.startswith("digest ")


def test_what_is_not_supported_is_not_left_unsaid(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "yard.sdf").write_text(YARD.replace("<physics", "<wind/><physics"))
    code, out, _ = worldline("run", "yard.sdf", *SECOND)
    said = "1 note of yard.sdf: `worldline world yard.sdf --check` lists what isn't supported"
    assert (code, out.splitlines()[0]) == (0, said)


def test_an_observer_that_fails_is_not_taken_for_the_model(tmp_path: Path) -> None:
    class Picky(Observer):
        def sent(self, who: str, number: int, topic: str, *_: Any) -> None:
            raise ModelError(f"{topic} isn't for me")

    (tmp_path / "yard.sdf").write_text(YARD)
    with pytest.raises(ModelError, match="worldline/interactions isn't for me") as caught:
        ready(tmp_path / "yard.sdf").run(Picky())
    assert caught.value.of_observer


def test_the_bytes_of_a_recording_are_the_same_in_every_way(worldline: Command, tmp_path: Path) -> None:
    ways = {
        "inline": (),
        "ahead": ("--set", "run-ahead=10"),
        "far": ("--set", "run-ahead=64"),
        "two": ("--executor", "processes(2)"),
        "three": ("--executor", "processes(3)", "--set", "run-ahead=7"),
    }
    for name, options in ways.items():
        code, _, err = worldline("run", "yard.sdf", *SECOND, *options, "--record", f"{name}.mcap")
        assert (code, err) == (0, "")
    first, *others = ((tmp_path / f"{name}.mcap").read_bytes() for name in ways)
    assert all(other == first for other in others)
    recording = Recording(tmp_path / "inline.mcap")
    assert recording.verify().condition is Condition.INTACT
    assert recording.header.federation == "yard"
    code, out, _ = worldline("digest", "inline.mcap")
    assert (code, out.strip()) == (0, ready(tmp_path / "yard.sdf").run().digest.hex())


@pytest.mark.parametrize("ahead", [1, 7])
def test_what_the_model_cannot_compute_ends_it_and_is_recorded(worldline: Command, tmp_path: Path, ahead: int) -> None:
    arguments = ("run", "doomed.sdf", "--until", "10s", "--set", f"run-ahead={ahead}", "--record", "run.mcap")
    code, out, err = worldline(*arguments, "--json")
    assert (code, "model 'stone' got a velocity that isn't finite, in step 13" in err) == (1, True)
    found = json.loads(out)
    assert (found["events"], found["members"], found["failure"]["at"]) == (12, 1, 1_300_000_000)
    verdict = Recording(tmp_path / "run.mcap").verify()
    assert verdict.condition is Condition.BROKEN_OFF
    assert "everything sent before 1.200000001s is there" in str(verdict)


def at_step(monkeypatch: pytest.MonkeyPatch, step: int, act: Callable[[], object]) -> None:
    """Have something happen when a world that plays has come so far."""
    play = World.play

    def interfered(world: World, until: Any = None, *, between: Any = None, **others: Any) -> None:
        acted = False

        def also() -> None:
            nonlocal acted
            between()
            if world.iteration >= step and not acted:
                acted = True
                act()

        play(world, until, between=also, **others)

    monkeypatch.setattr(World, "play", interfered)


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_it_can_be_interrupted(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: str
) -> None:
    at_step(monkeypatch, 20, lambda: os.kill(os.getpid(), signal.SIGINT))
    arguments = ("run", "yard.sdf", "--until", "1h", *KINEMATIC, "--executor", executor, "--record", "run.mcap")
    code, _, err = worldline(*arguments)
    assert (code, err) == (130, "worldline: interrupted by SIGINT\n")
    verdict = Recording(tmp_path / "run.mcap").verify()
    assert (verdict.condition, "interrupted by SIGINT" in str(verdict)) == (Condition.BROKEN_OFF, True)


def test_a_secondary_that_is_killed_ends_it(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[LocalSecondaries] = []
    start = LocalSecondaries.start

    def remembered(self: LocalSecondaries, *arguments: Any) -> None:
        started.append(self)
        start(self, *arguments)

    monkeypatch.setattr(LocalSecondaries, "start", remembered)
    at_step(monkeypatch, 20, lambda: started[0]._processes[1][1].kill())
    arguments = ("run", "yard.sdf", "--until", "1h", *KINEMATIC, "--executor", "processes(2)", "--record", "run.mcap")
    code, _, err = worldline(*arguments)
    assert (code, "local-2" in err) == (3, True)
    assert Recording(tmp_path / "run.mcap").verify().condition is Condition.BROKEN_OFF


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("yard.sdf", {"until": None}, "yard.sdf: a world doesn't say when it ends (use --until 10s)"),
        ("yard.sdf", {"until": "0s"}, "a run can't end at 0"),
        ("yard.sdf", {"seed": 3}, "yard.sdf: a world draws nothing, so it has no seed (leave --seed out)"),
        ("yard.sdf", {"executor": "mpi"}, '\'mpi\' can\'t be used here (use "inline" or "processes(4)")'),
        ("yard.sdf", {"settings": ("engine=ode",)}, "no physics engine 'ode' (use one of: mujoco, kinematic)"),
        ("yard.sdf", {"settings": ("run-ahead=0",)}, "it can't run ahead by 0 steps"),
        ("yard.sdf", {"settings": ("speed=0",)}, "no parameter 'speed' (parameters: engine=mujoco, run-ahead=1)"),
        ("yard.sdf:slow", {}, "yard.sdf is a world as a whole (write yard.sdf, without :slow)"),
        ("missing.sdf", {}, "missing.sdf: there is no such file"),
        ("broken.sdf", {}, "broken.sdf: line 2: the XML is broken: mismatched tag"),
        ("folder.sdf", {}, "folder.sdf: it is a directory"),
    ],
)
def test_what_cannot_be_run_is_refused_before_it_begins(
    target: str, options: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "yard.sdf").write_text(YARD)
    (tmp_path / "broken.sdf").write_text('<sdf version="1.11">\n<world name="a"></sdf>')
    (tmp_path / "folder.sdf").mkdir()
    with pytest.raises(UsageError) as caught:
        prepare(target, RunOptions(**{"until": "1s", **options}))
    assert words in str(caught.value)


@pytest.mark.long
def test_it_gives_one_digest_in_several_ways(worldline: Command) -> None:
    code, found = verified(worldline, "yard.sdf", *SECOND, "--only", "hash-seed-1,processes(2),run-ahead")
    assert (code, found["kind"], found["difference"]) == (0, "world", None)
    endings = [(each["name"], each["ending"]) for each in found["variants"]]
    assert endings[1:] == [(name, "same") for name in ("hash-seed-1", "processes(2)", "run-ahead-10")]


def recorded(file: Path, target: Path, act: Callable[[World], object]) -> Path:
    """Record a run of a second in which somebody interferes halfway; as if all were of the same file."""
    recorder = ready(file).recorder(target)
    described = read_world(file)
    with World(described, engine="kinematic", spectators=[WorldTeller(recorder)]) as world:
        world.run_to("500ms")
        act(world)
        world.run_to("1s")
    recorder.close()
    return target


def test_a_diff_says_which_link_differs_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorldDescription, "content_hash", lambda _: "as if all were one world")
    file = tmp_path / "yard.sdf"
    file.write_text(YARD)
    a = recorded(file, tmp_path / "a.mcap", lambda world: world.command("fast", (2.0, 0.0, 0.0)))
    b = recorded(file, tmp_path / "b.mcap", lambda world: world.command("fast", (2.0, 0.5, 0.0)))
    lines = "\n".join(compare_recordings(a, b).lines())
    assert "500ms  world  sends worldline/interactions  interaction.linear[1]: 0.0 → 0.5" in lines
    file.write_text(YARD.replace("3 9 0 0 0 0", "3 8 0 0 0 0"))
    c = recorded(file, tmp_path / "c.mcap", lambda world: world.command("fast", (2.0, 0.0, 0.0)))
    lines = "\n".join(compare_recordings(a, c).lines())
    assert "world  sends /tf  transforms[thing/body].translation.y: 9.0 → 8.0" in lines


def test_examples_are_targets() -> None:
    for file in sorted((EXAMPLES / "world").glob("*.sdf")):
        assert prepare(str(file), RunOptions(until="1s")).kind == "world"
