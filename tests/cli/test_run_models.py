"""`worldline run` for every kind of target: one set of options, one object of JSON, one set of exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.federation.transports import PATIENCE_S
from tests.files.files import nothing_stays  # noqa: F401 - A fixture.
from tests.soaking import later
from tests.targets.files import FEDERATION, KERNEL, MODELS, NODES, SPACETIME, write
from worldline.history.observer import UNDER_WAY
from worldline.model import LossError
from worldline.recording import Condition, Recorder, Recording

KEYS = ["target", "kind", "name", "seed", "executor", "digest", "time", "events", "members", "dropped", "remarks"]


def reported(worldline: Command, *arguments: str) -> dict[str, Any]:
    _, out, _ = worldline("run", *arguments, "--json")
    (line,) = out.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("federation", ("2 participants, 1s simulated in ",)),
        ("kernel", ("seen ", "3 entities, 10s simulated in ")),
        ("nodes", ("holds at the end: everybody has heard everybody", "4 nodes, ")),
        ("spacetime", ("1 clocks", "1 agent, 4.5 of lab time simulated in ")),
    ],
)
def test_it_is_run_and_its_outcome_is_told(
    worldline: Command, tmp_path: Path, kind: str, says: tuple[str, ...]
) -> None:
    code, out, err = worldline("run", write(tmp_path, MODELS[kind]))
    assert (code, err) == (0, "")
    assert all(words in out for words in says)
    *_, last = out.splitlines()
    assert last.startswith("digest ")
    quiet = worldline("run", write(tmp_path, MODELS[kind]), "--quiet", "--no-record")[1].splitlines()
    assert quiet[-1] == last
    assert 2 <= len(quiet) <= 3


@pytest.mark.parametrize("kind", MODELS)
def test_json_is_one_object_whatever_it_is(worldline: Command, tmp_path: Path, kind: str) -> None:
    file = write(tmp_path, MODELS[kind])
    found = reported(worldline, file, "--no-record")
    assert list(found) == [*KEYS, "failure", "recording"]
    assert (found["target"], found["kind"]) == (file, kind)
    assert found["name"] == ("greetings" if kind == "nodes" else "mine")
    assert found["seed"] == {"federation": 1, "kernel": 3}.get(kind, 0)
    assert found["executor"] == ("in-process" if kind == "federation" else "inline")
    assert f"digest {found['digest']}" in worldline("run", file, "--no-record")[1]
    assert found["members"] == {"federation": 2, "kernel": 3, "nodes": 4, "spacetime": 1}[kind]
    assert found["events"] > 0
    assert (found["dropped"], found["failure"], found["recording"]) == (0, None, None)
    if kind in ("kernel", "spacetime"):
        assert found["time"] == {"kernel": 10_000_000_000, "spacetime": 4_500_000_000}[kind]


@pytest.mark.parametrize("kind", MODELS)
def test_a_recording_has_the_digest_of_the_run(worldline: Command, tmp_path: Path, kind: str) -> None:
    found = reported(worldline, write(tmp_path, MODELS[kind]), "--record", "run.mcap")
    assert found["recording"] == "run.mcap"
    recording = Recording(Path("run.mcap"))
    assert recording.verify().condition is Condition.INTACT
    assert recording.outcome is not None
    assert recording.outcome.digest == found["digest"]
    assert len(recording.header.roster) == found["members"]
    assert (recording.header.federation, recording.header.seed) == (found["name"], found["seed"])


SMALL = """
from worldline.kernel import Entity, Simulation
def model():
    simulation = Simulation()
    simulation.add("a", type("Still", (Entity,), {"on_x": lambda self, payload: None})())
    simulation.send("a", "x")
    return simulation
"""


def test_only_federations_are_recorded_unasked(worldline: Command, tmp_path: Path) -> None:
    for kind, text in MODELS.items():
        assert worldline("run", write(tmp_path, text, f"{kind}.py"))[0] == 0
    assert [path.name for path in tmp_path.glob("*.mcap")] == ["federation.mcap"]


@pytest.mark.parametrize(
    ("name", "file"),
    [(".", "unnamed"), ("../../x", "x"), ("..", "unnamed"), ("a.b", "a.b"), ("lab/cell", "lab-cell"), ("--x", "x")],
)
def test_a_recording_is_not_hidden_whatever_its_federation_is_called(
    worldline: Command, tmp_path: Path, name: str, file: str
) -> None:
    (tmp_path / "go.py").write_text('def go(me): me.advance(by="1ms")\n')
    write(tmp_path, f'name = "{name}"\nuntil = "1s"\n[[participants]]\nname = "a"\nentry = "go:go"\n', "go.toml")
    assert worldline("run", "go.toml", "--executor", "in-process")[0] == 0
    assert [path.name for path in tmp_path.glob("*.mcap")] == [f"{file}.mcap"]


@pytest.mark.parametrize(("kind", "executor"), [("kernel", "processes(2)"), ("spacetime", "processes(2)")])
def test_workers_load_the_users_file_and_give_the_same(
    worldline: Command, tmp_path: Path, kind: str, executor: str
) -> None:
    file = write(tmp_path, MODELS[kind])
    inline, spread = reported(worldline, file), reported(worldline, file, "--executor", executor)
    assert spread == {**inline, "executor": executor}


FAILING = {
    "federation": FEDERATION.replace('print("bob hits", ball.payload.decode())', "1 / 0"),
    "kernel": KERNEL.replace("self.seen += 1", "1 / 0"),
    "nodes": NODES.replace("self.heard += 1", "1 / 0"),
    "spacetime": SPACETIME.replace('self.log("tick")', "1 / 0"),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_that_fails_is_told_in_a_line_with_its_own(worldline: Command, tmp_path: Path, kind: str) -> None:
    file = write(tmp_path, FAILING[kind])
    line = FAILING[kind][: FAILING[kind].index("1 / 0")].count("\n") + 1
    code, out, err = worldline("run", file, "--no-record", "-q")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "ZeroDivisionError: division by zero" in err
    assert f"mine.py, line {line}" in err
    found = reported(worldline, file, "--no-record")
    assert found["failure"]["text"] == err.removeprefix("worldline: ").rstrip("\n")
    assert found["failure"]["participant"]
    code, _, err = worldline("run", file, "--no-record", "-q", "--traceback")
    assert code == 1
    assert f'mine.py", line {line}' in err
    assert "Traceback (most recent call last):" in err


def test_the_traceback_comes_from_a_worker_too(worldline: Command, tmp_path: Path) -> None:
    file = write(tmp_path, FAILING["kernel"])
    _, _, err = worldline("run", file, "--traceback", "--executor", "processes(2)")
    assert "    1 / 0\n" in err


@pytest.mark.parametrize("kind", ["kernel", "nodes", "spacetime"])
def test_what_came_before_a_failure_is_recorded(worldline: Command, tmp_path: Path, kind: str) -> None:
    code, _, _ = worldline("run", write(tmp_path, FAILING[kind]), "--record", "run.mcap")
    assert code == 1
    recording = Recording(Path("run.mcap"))
    assert recording.outcome is not None
    assert recording.outcome.status == "broken off"
    assert "ZeroDivisionError" in recording.outcome.cause


TIED = """
from worldline.nodes import Algorithm, Node, Start, at_end

class Hopper(Node):
    def execute(self, event):
        if isinstance(event, Start):
            if self.id == 0:
                self.broadcast("hop")
        elif self.id == 1:
            raise RuntimeError("no")

model = Algorithm(name="tied", node=Hopper, topology="clique:4", latency="1s")
"""
VIOLATED = (
    TIED.replace('raise RuntimeError("no")', "self.log(event)")
    .replace("model =", "@at_end('never')\ndef never(run):\n    return False\n\nmodel =")
    .replace('"1s")', '"1s", properties=(never,))')
)


@pytest.mark.parametrize(
    "command", [("run", "--executor", "inline"), ("run", "--executor", "processes(2)"), ("nodes", "--file")]
)
def test_what_a_failure_forestalls_is_not_recorded(worldline: Command, tmp_path: Path, command: tuple[str]) -> None:
    """Three messages arrive at the moment at which a node fails; two of them are never received."""
    code, _, _ = worldline(*command, write(tmp_path, TIED), "--record", "run.mcap")
    recording = Recording(Path("run.mcap"))
    assert code != 0
    assert recording.outcome is not None
    assert (recording.outcome.at, recording.outcome.until) == (10**9, 10**9)
    assert {each.reason for each in recording.losses()} == {UNDER_WAY}
    assert recording.counts()["str"].arrivals == 0


@pytest.mark.parametrize(("until", "arrivals"), [((), 3), (("--until", "1s"), 0)])
def test_a_run_that_is_judged_at_its_end_is_recorded_as_a_whole(
    worldline: Command, tmp_path: Path, until: tuple[str, ...], arrivals: int
) -> None:
    file = write(tmp_path, VIOLATED)
    found = []
    for executor in ("inline", "processes(2)"):
        told = reported(worldline, file, "--record", "run.mcap", "--executor", executor, *until)
        assert told["failure"]["text"]
        assert Recording(Path("run.mcap")).counts()["str"].arrivals == arrivals
        found.append([told[key] for key in ("digest", "time", "events", "members", "dropped")])
        Path("run.mcap").unlink()
    assert found[0] == found[1]
    assert found[0][0]
    assert found[0][3] == 4


def test_what_is_not_known_of_a_run_that_failed_is_null(worldline: Command, tmp_path: Path) -> None:
    found = reported(worldline, write(tmp_path, TIED), "--executor", "processes(2)")
    assert [found[key] for key in ("digest", "events", "members", "dropped")] == [None] * 4
    assert found["time"] == found["failure"]["at"] == 10**9


def test_an_outcome_that_may_not_be_is_the_models_fault(worldline: Command, tmp_path: Path) -> None:
    file = write(tmp_path, KERNEL.replace('return f"seen', 'assert not result.events\n    return f"seen'))
    code, out, err = worldline("run", file)
    assert code == 1
    assert "mine: its outcome isn't what it should be" in err
    found = reported(worldline, file)
    assert found["failure"]["text"] == err.removeprefix("worldline: ").rstrip("\n")
    assert out.splitlines()[-1] == f"digest {found['digest']}"


def test_a_recording_that_cant_be_finished_doesnt_hide_why_the_model_failed(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OnAFullDisk(Recorder):
        def abandon(self, *_: object, **__: object) -> None:
            raise LossError("the disk is full")

    monkeypatch.setattr("worldline.recording.writer.Recorder", OnAFullDisk)
    code, _, err = worldline("run", write(tmp_path, FAILING["kernel"]), "--record", "run.mcap")
    assert code == 1
    assert "ZeroDivisionError" in err


def test_an_older_recording_isnt_reported_as_that_of_this_run(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, KERNEL)
    assert reported(worldline, file, "--record", "run.mcap")["recording"] == "run.mcap"

    class NeverBegun(Recorder):
        begun = False  # type: ignore[assignment]

    monkeypatch.setattr("worldline.recording.writer.Recorder", NeverBegun)
    assert reported(worldline, file, "--record", "run.mcap")["recording"] is None


@pytest.mark.parametrize(("sign", "executor"), [(signal.SIGINT, "inline"), (signal.SIGTERM, "processes(2)")])
def test_an_interrupted_run_leaves_a_recording_that_says_so(
    tmp_path: Path, sign: signal.Signals, executor: str
) -> None:
    waits = KERNEL.replace("self.seen += 1", "print('here', flush=True); import time; time.sleep(3600)")
    file = write(tmp_path, waits)
    command = (sys.executable, "-m", "worldline", "run", file, "--executor", executor, "--record", "run.mcap")
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "here\n"
        child.send_signal(sign)
        _, err = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, f"worldline: interrupted by {sign.name}" in err) == (130, True)
    verdict = Recording(tmp_path / "run.mcap").verify()
    assert verdict.condition is Condition.BROKEN_OFF
    assert f"interrupted by {sign.name}" in str(verdict)
    assert [path.name for path in tmp_path.glob("*.mcap")] == ["run.mcap"]


def test_standard_output_has_nothing_but_the_object(tmp_path: Path) -> None:
    prints = KERNEL.replace("self.seen += 1", "print('heard'); import os; os.write(1, b'past Python\\n')")
    file = write(tmp_path, f"print('loaded')\n{prints}")
    command = [sys.executable, "-m", "worldline", "run", file, "--json", "--executor", "processes(2)"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert json.loads(ran.stdout)["kind"] == "kernel"
    for words in ("loaded", "heard", "past Python", "digest "):
        assert words in ran.stderr


@pytest.mark.parametrize("kind", ["kernel", "federation"])
def test_nothing_that_is_printed_gets_into_a_recording_on_standard_output(tmp_path: Path, kind: str) -> None:
    said = "print('heard', flush=True); import os; os.write(1, b'past Python\\n')"
    place = {"kernel": "self.seen += 1", "federation": 'print("bob hits", ball.payload.decode())'}[kind]
    file = write(tmp_path, f"print('loaded')\n{MODELS[kind].replace(place, said)}")
    command = [sys.executable, "-m", "worldline", "run", file, "--record", "/dev/stdout"]
    spread = ["--executor", "processes(2)"] if kind == "kernel" else []
    with (tmp_path / "run.mcap").open("wb") as target:
        ran = subprocess.run(
            [*command, *spread], cwd=tmp_path, stdout=target, stderr=subprocess.PIPE, text=True, check=True
        )
    assert Recording(tmp_path / "run.mcap").verify().condition is Condition.INTACT
    for words in ("loaded", "heard", "past Python", "digest "):
        assert words in ran.stderr


def test_what_cant_both_be_on_standard_output_is_refused(worldline: Command, tmp_path: Path) -> None:
    code, out, err = worldline("run", write(tmp_path, KERNEL), "--json", "--record", "/dev/stdout")
    assert (code, out) == (2, "")
    assert "--json and the recording both go to standard output (record in a file)" in err


@pytest.mark.parametrize("command", [("run", "relay"), ("spacetime", "relay"), ("nodes", "raft")])
def test_standard_output_has_a_name(worldline: Command, tmp_path: Path, command: tuple[str, ...]) -> None:
    code, _, err = worldline(*command, "--record", "-")
    assert (code, list(tmp_path.iterdir())) == (2, [])
    assert "a recording can't be named - (standard output is /dev/stdout)" in err


@pytest.mark.parametrize("option", [("--realtime", "1"), ("--shake", "1"), ("--listen", "unix:x")])
def test_what_is_for_federations_is_refused_elsewhere(worldline: Command, option: tuple[str, str]) -> None:
    code, _, err = worldline("run", "relay", *option)
    assert code == 2
    assert f"{option[0]} is for federations, and relay is of the kind spacetime" in err


def test_mistakes_end_in_a_line_and_two(worldline: Command, tmp_path: Path) -> None:
    for arguments in (
        ("rafft",),
        (write(tmp_path, "model = 3"), "--json"),
        ("relay", "--until", "soon"),
        ("raft", "--set", "nonsense"),
        ("relay", "--record", "a.mcap", "--no-record"),
        (write(tmp_path, FEDERATION, "play.py"), "--executor", "tcp"),
    ):
        code, out, err = worldline("run", *arguments)
        assert (code, out) == (2, "")
        assert err.startswith("worldline: ")
        assert "Traceback" not in err


def test_participants_can_meet_on_a_unix_socket(worldline: Command, tmp_path: Path) -> None:
    write(tmp_path, FEDERATION)
    (tmp_path / "play.toml").write_text(
        'seed = 1\nuntil = "1s"\n[link]\nlatency = "90ms"\n'
        + "".join(
            f'[[participants]]\nname = "{name}"\nentry = "mine:{name}"\nsubscribes = ["ball"]\n'
            for name in ("ann", "bob")
        )
    )
    told = {}
    for executor in ("in-process", "unix", "tcp", "workers(2)"):
        told[executor] = reported(worldline, "play.toml", "--executor", executor, "--no-record")
    told["usual"] = reported(worldline, "play.toml", "--no-record")
    told["there"] = reported(worldline, "play.toml", "--executor", "processes", "--listen", "tcp://:0", "--no-record")
    assert {each["digest"] for each in told.values()} == {reported(worldline, "mine.py", "--no-record")["digest"]}
    assert [each["executor"] for each in told.values()] == [
        *("in-process", "unix", "tcp", "processes(2)", "unix", "tcp")
    ]
    code, _, err = worldline("run", "play.toml", "--executor", "tcp", "--listen", "unix:here")
    assert code == 2
    assert "--listen unix:here isn't for tcp (use --executor unix)" in err


def mpiexec() -> str | None:
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else None


@pytest.mark.long
@pytest.mark.skipif(mpiexec() is None, reason="there is no MPI here")
@pytest.mark.parametrize("kind", ["kernel", *later(["nodes", "spacetime"])])
def test_one_rank_speaks(tmp_path: Path, kind: str) -> None:
    def ran(text: str, name: str) -> subprocess.CompletedProcess[str]:
        file = write(tmp_path, text, name)
        command = [str(mpiexec()), "-n", "2", sys.executable, "-m", "worldline", "run", file, "--executor", "mpi"]
        return subprocess.run(
            [*command, "--json", "--record", "run.mcap"],
            cwd=tmp_path,
            env={**os.environ, "HYDRA_LAUNCHER": "fork"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    done = ran(MODELS[kind], "mine.py")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["executor"], found["failure"]) == ("mpi", None)
    recording = Recording(tmp_path / "run.mcap")
    assert recording.outcome is not None
    assert recording.outcome.digest == found["digest"]
    failed = ran(FAILING[kind], "fails.py")
    assert failed.returncode == 1
    assert json.loads(failed.stdout)["failure"]
    assert failed.stderr.count("worldline: ") == 1


@pytest.mark.long
@pytest.mark.skipif(mpiexec() is None, reason="there is no MPI here")
@pytest.mark.parametrize("target", [("epidemic", "--until", "30"), ("raft", "--until", "2s")])
def test_ranks_record_what_is_recorded_inline(worldline: Command, tmp_path: Path, target: tuple[str, ...]) -> None:
    """One rank alone has a recorder, but all look at their agents or nodes, and number what they see alike."""
    command = ["run", *target, "--quiet", "--executor"]
    assert worldline(*command, "inline", "--record", "inline.mcap")[0] == 0
    subprocess.run(
        [str(mpiexec()), "-n", "2", sys.executable, "-m", "worldline", *command, "mpi", "--record", "mpi.mcap"],
        cwd=tmp_path,
        env={**os.environ, "HYDRA_LAUNCHER": "fork"},
        timeout=PATIENCE_S,
        check=True,
    )
    assert (tmp_path / "mpi.mcap").read_bytes() == (tmp_path / "inline.mcap").read_bytes()


STUCK = """
UNTIL = 9.0
from worldline.spacetime import Agent, Channel, ForwardSimulation, Minkowski

def model(*, seed):
    simulation = ForwardSimulation(Minkowski(2), seed=seed)
    with simulation:
        one, other = Agent(), Agent()
        one.keeps, other.keeps = Channel(one, other), Channel(other, one)
    return simulation
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SPACETIME.replace("self.log", "1 / 0 #"), "Clock-1 at 1s: ZeroDivisionError"),
        (STUCK, "the run at 0s: no agent can go on"),
    ],
)
def test_a_failed_run_through_spacetime_is_recorded_alike_by_both_commands(
    worldline: Command, tmp_path: Path, text: str, words: str
) -> None:
    file = write(tmp_path, text)
    found = reported(worldline, file, "--record", "run.mcap")
    worldline("spacetime", "--file", file, "--record", "spacetime.mcap")
    assert words in Recording("run.mcap").verify().text
    assert found["failure"]["at"] == Recording("run.mcap").outcome.at
    assert Path("run.mcap").read_bytes() == Path("spacetime.mcap").read_bytes()
