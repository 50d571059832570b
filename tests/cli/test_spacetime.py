"""`worldline spacetime`: what is printed, drawn, recorded and checked, and plain words for mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from shutil import which
from xml.etree import ElementTree

import pytest
from typer.main import get_command

from tests.cli.conftest import Command, command_of
from tests.watch.test_tape import packed_in, told
from worldline.cli import main
from worldline.cli.commands import app
from worldline.recording import Condition, Recording
from worldline.spacetime.examples import NAMES
from worldline.spacetime.outcome import AgentRecord

PROBE = Path(__file__).parent.parent.parent / "examples" / "spacetime" / "probe.py"

MINE = """
'''Mine, all mine.'''
from worldline.spacetime import Agent, Channel, ForwardSimulation, Minkowski

class Clock(Agent):
    def tick(self):
        self.log("tick")
        self.after(1.0, Clock.tick)

def model(*, seed, clocks: int = 1, is_loud: bool = True):
    simulation = ForwardSimulation(Minkowski(1), seed=seed)
    with simulation:
        for _ in range(clocks):
            Clock().after(1.0, Clock.tick)
    return simulation
"""
ENDS = "UNTIL = 3.5\n"
FAILS = ENDS + MINE.replace('self.log("tick")', "1 / 0")
LATE = """
UNTIL = 9.0
from worldline.spacetime import Agent, ForwardSimulation, Minkowski

class Clock(Agent):
    shown_as = "fine"

    def tick(self):
        self.log("tick")
        if self.name == "Clock-3":
            self.shown_as = "broken"
            1 / 0
        self.after(1.0, Clock.tick)

def model(*, seed):
    simulation = ForwardSimulation(Minkowski(2), seed=seed)
    with simulation:
        for number in (1, 2, 3, 4):
            clock = Clock()
            clock.jump_to((0, number))
            clock.after(1 + number / 10, Clock.tick)
    return simulation
"""

BUILT = get_command(app)  # To build it takes longer than most runs do.


@pytest.fixture
def worldline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run `worldline` in an empty folder and return its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("worldline.cli.commands.app", BUILT)
    monkeypatch.setattr(sys, "path", [*sys.path])  # A file's folder is added to it.

    command = command_of(monkeypatch, capsys)
    return lambda *words: command(*(words if words[:1] in (("info",), ("digest",)) else ("spacetime", *words)))


def write(text: str, name: str = "mine.py") -> str:
    """Write a user's file; each test has its own folder, and so its own module."""
    Path(name).write_text(text)
    return name


# --- One run ---


def test_ping_is_as_in_the_seed(worldline: Command) -> None:
    code, out, err = worldline("ping", "--until", "3")
    assert (code, err) == (0, "")
    assert out.splitlines()[:-1] == [
        "    0.000000  Alice: ping from (0, 0, 0, 0)",
        "    1.000000  Bob: ping from (1, 0, 0, 1)",
        "    2.000000  Alice: ping from (2, 0, 0, 0)",
        "2 ways of 1 each",
    ]
    assert out.splitlines()[-1].startswith("2 events, digest ")


@pytest.mark.parametrize("executor", [" shuffled( -3 ) ", "processes(2)"])
def test_the_output_is_the_same_on_every_executor(worldline: Command, executor: str) -> None:
    assert worldline("introduction", "--check", "--executor", executor) == worldline("introduction", "--check")


@pytest.mark.long
@pytest.mark.skipif(not which("mpiexec", path=str(Path(sys.executable).parent)), reason="there is no mpiexec here")
def test_one_rank_tells(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "worldline", "spacetime", "ping"]
    launcher = [str(Path(sys.executable).parent / "mpiexec"), "-n", "2"]

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)

    told = run(*launcher, *command, "--check", "--executor", "mpi")
    assert told.stdout == run(*command, "--check").stdout
    refused = run(*launcher, *command, "--executor", "mpi", "--set", "c=-1")
    assert refused.returncode == 2
    assert refused.stderr.count("worldline: c is -1.0") == 1


def test_records_are_json_and_nothing_else(worldline: Command) -> None:
    code, out, err = worldline("introduction", "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert {"born", "sent", "absorbed", "timer", "attached", "log", "ended"} <= {record["kind"] for record in records}
    assert all(set(record) <= set(AgentRecord.__struct_fields__) for record in records)
    places = [(record["at"][0], record["agent"], record["number"]) for record in records]
    assert places == sorted(places)
    assert "digest " in err


# --- Pictures ---


def test_pictures_are_drawn(worldline: Command) -> None:
    options = ("flock", "-q", "--until", "5", "--seed", "4", "--set", "birds=5")
    code, _, err = worldline(*options, "--diagram", "run.svg", "--animation", "run.html")
    assert (code, err) == (0, "")
    root = ElementTree.fromstring(Path("run.svg").read_text(encoding="utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "flock, seed 4" in "".join(root.itertext())
    page = Path("run.html").read_text(encoding="utf-8")
    assert "flock, seed 4" in page
    head, rows = told(b64decode(packed_in(page)["news"]))
    assert "bird-04" in head["members"]
    assert len(rows) > 0


def test_what_was_recorded_looks_the_same(worldline: Command) -> None:
    worldline("epidemic", "-q", "--until", "5", "--diagram", "a.svg", "--animation", "a.html", "--record", "run.mcap")
    assert worldline("run.mcap", "-q", "--diagram", "b.svg", "--animation", "b.html")[0] == 0
    assert Path("a.svg").read_text(encoding="utf-8") == Path("b.svg").read_text(encoding="utf-8")
    assert Path("a.html").read_text(encoding="utf-8") == Path("b.html").read_text(encoding="utf-8")


# --- Recordings ---


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_has_the_digest_and_all_records(worldline: Command, name: str) -> None:
    short = ("--until", "12") if name in ("flock", "epidemic") else ()
    _, out, _ = worldline(name, *short, "--json", "--record", "run.mcap")
    code, digest, _ = worldline("digest", "run.mcap")
    assert code == 0
    again, retold, summary = worldline("run.mcap", "--json", "--check")
    assert again == 0
    assert retold == out
    assert "no violation" in summary
    assert summary.endswith(f" records, digest {digest}")
    assert worldline(name, "-q", *short)[1].endswith(f"digest {digest}")


def test_a_recording_reads_as_others_do(worldline: Command) -> None:
    worldline("ping", "-q", "--seed", "5", "--record", "run.mcap")
    recording = Recording("run.mcap")
    assert recording.verify().condition is Condition.INTACT
    assert (recording.header.federation, recording.header.seed) == ("ping", 5)
    assert recording.counts()["Ping.ping"].published == 10
    arrivals = list(recording.arrivals(topics=["Ping.ping"]))
    assert [(arrival.at, arrival.sent) for arrival in arrivals] == [
        (number * 10**9, (number - 1) * 10**9) for number in range(1, 10)
    ]
    (lost,) = recording.losses()
    assert (lost.receiver, lost.reason) == ("Alice", "still under way at the end")
    assert "intact" in worldline("info", "run.mcap")[1]


def test_a_recording_is_the_same_on_every_executor(worldline: Command) -> None:
    worldline("introduction", "-q", "--record", "a.mcap")
    worldline("introduction", "-q", "--record", "b.mcap", "--executor", "processes(2)")
    assert Path("a.mcap").read_bytes() == Path("b.mcap").read_bytes()


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_what_is_measured_is_told_and_counts_for_nothing(worldline: Command, executor: str) -> None:
    told = []
    for name, measures in (("plain.py", ""), ("measuring.py", '        self.measure("load", 1)\n')):
        ticks = f'{measures}        self.log("tick")\n{measures}'
        Path(name).write_text(MINE.replace('        self.log("tick")', ticks))
        run = ("--file", name, "--until", "3.5", "--executor", executor, "--record", "run.mcap", "--force")
        _, fresh, _ = worldline(*run, "--json")
        code, out, err = worldline("run.mcap", "--json", "--check")
        assert (code, out, "no violation" in err) == (0, fresh, True)
        told.append([line for line in out.splitlines() if '"kind":"measured"' not in line])
    assert told[0] == told[1] != []
    assert out.count('"kind":"measured"') == 6


def test_what_was_sent_to_the_dead_got_lost(worldline: Command) -> None:
    worldline("--file", str(PROBE), "-q", "--record", "run.mcap")
    reasons = [loss.reason for loss in Recording("run.mcap").losses() if loss.receiver == "probe/lander"]
    assert reasons == ["its target was dead"] * 3


def test_an_altered_recording_is_refused(worldline: Command) -> None:
    worldline("ping", "-q", "--record", "run.mcap")
    whole = Path("run.mcap").read_bytes()
    Path("run.mcap").write_bytes(whole[: len(whole) // 2])
    code, out, err = worldline("run.mcap", "--check")
    assert (code, out) == (3, "")
    assert "cut off" in err


def test_a_recording_of_something_else_is_refused(worldline: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["worldline", "nodes", "flooding", "-q", "--record", "nodes.mcap"])
    with pytest.raises(SystemExit):
        main()
    code, _, err = worldline("nodes.mcap")
    assert code == 2
    assert "nodes.mcap: it isn't a recording of agents in spacetime" in err


def test_a_recording_that_fails_says_so_itself(worldline: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.recording.writer.CHANNELS_MAX", 2)
    code, out, err = worldline("ping", "--record", "run.mcap", "--diagram", "run.svg")
    assert (code, out) == (2, "recorded in run.mcap\n")
    assert "use fewer topics" in err
    assert [path.name for path in Path().iterdir()] == ["run.mcap"]
    assert "more topics than an MCAP file can hold" in Recording("run.mcap").verify().text


# --- Users' files ---


def test_a_file_is_run(worldline: Command) -> None:
    code, out, err = worldline("--file", write(MINE), "--until", "2.5", "--set", "clocks=2", "--set", "is_loud=no")
    assert (code, err) == (0, "")
    assert out.splitlines()[:-1] == [f"    {at}.000000  Clock-{number}: tick" for at in (1, 2) for number in (1, 2)]
    assert worldline("--file", write(ENDS + MINE, "ends.py"), "-q")[1].startswith("3 events")


def test_a_file_may_have_a_seed_of_its_own(worldline: Command) -> None:
    drawn = MINE.replace('self.log("tick")', "self.log(self.random.random())").replace("seed,", "seed=7,")
    options = ("--file", write(ENDS + drawn, "seeded.py"))
    assert worldline(*options) == worldline(*options, "--seed", "7") != worldline(*options, "--seed", "0")
    worldline(*options, "-q", "--record", "run.mcap")
    assert Recording("run.mcap").header.seed == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "defines no model (write def model(*, seed)"),
        ("build = 4", "defines build, but no model (call it model)"),
        ("model = 4", "its model is 4"),
        ("def model(seed, size): pass", "the parameter size of its model has no default"),
        ("UNTIL = 'soon'\ndef model(seed): pass", "its UNTIL is 'soon'"),
        ("def model(seed): pass", "doesn't say when it ends"),
        ("UNTIL = 1\ndef model(seed): pass", "what its model returns is None"),
        (
            "UNTIL = 1\ndef model(seed): 1 / 0",
            "its model can't be set up: ZeroDivisionError: division by zero, in mine.py, line 2",
        ),
        (ENDS + MINE.replace(", seed=seed", ""), "its model doesn't pass on its seed"),
        ("1 / 0", "can't be loaded: ZeroDivisionError: division by zero, in mine.py, line 1"),
    ],
)
def test_a_file_that_isnt_right_is_refused(worldline: Command, text: str, words: str) -> None:
    options = ("--seed", "3", "--executor", "shuffled(1)", "--record", "run.mcap")
    code, out, err = worldline("--file", write(text), *options)
    assert (code, out) == (2, "")
    assert words in err
    assert not Path("run.mcap").exists()


def test_an_agent_that_fails_is_named(worldline: Command) -> None:
    code, out, err = worldline("--file", write(FAILS, "fails.py"))
    assert (code, out) == (1, "")
    assert "Clock-1 at 1s: ZeroDivisionError: division by zero, in Clock.tick at (1,)" in err


def test_agents_that_cant_go_on_are_named(worldline: Command) -> None:
    code, _, err = worldline("ping", "--set", "distance=0")
    assert code == 4
    assert "Alice waits for Bob, and Bob waits for Alice" in err


def test_a_run_that_fails_is_drawn_and_recorded_up_to_there(worldline: Command) -> None:
    options = ("--file", write(LATE, "late.py"), "--executor", "processes(2)")
    printed = worldline(*options)
    code, out, err = worldline(*options, "--diagram", "a.svg", "--animation", "a.html", "--record", "run.mcap")
    assert (code, out, err) == (1, f"{printed[1]}recorded in run.mcap\n", printed[2])
    assert printed[1].splitlines() == [f"    1.{number}00000  Clock-{number}: tick" for number in (1, 2, 3)]
    failed = "Failed: Clock-3: ZeroDivisionError: division by zero"
    assert failed in Path("a.svg").read_text(encoding="utf-8")
    head, _ = told(b64decode(packed_in(Path("a.html").read_text(encoding="utf-8"))["news"]))
    assert failed in head["status"]["failure"]
    verdict = Recording("run.mcap").verify()
    assert verdict.condition is Condition.BROKEN_OFF
    assert "Clock-3 at 1.3s: ZeroDivisionError" in verdict.text
    again = worldline("run.mcap", "--check", "--diagram", "b.svg", "--animation", "b.html")
    assert again[0] == 0
    assert again[1].startswith(printed[1])
    assert "no violation\n" in again[1]
    assert "records, broken off: Clock-3 at 1.3s" in again[1]
    assert Path("a.svg").read_bytes() == Path("b.svg").read_bytes()
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()
    worldline("--file", "late.py", "--record", "inline.mcap")
    assert Path("inline.mcap").read_bytes() == Path("run.mcap").read_bytes()


def test_a_run_that_stands_still_is_drawn_and_recorded(worldline: Command) -> None:
    code, _, _ = worldline("ping", "-q", "--set", "distance=0", "--diagram", "run.svg", "--record", "run.mcap")
    assert code == 4
    assert "Failed: Alice: waits for Bob, at (0, 0, 0, 0)" in Path("run.svg").read_text(encoding="utf-8")
    assert "broken off: the run at 0s: no agent can go on" in worldline("run.mcap", "--check")[1]


def test_what_cant_be_recorded_doesnt_hide_the_failure(worldline: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.recording.writer.CHANNELS_MAX", 2)
    options = ("--file", write(LATE, "unrecorded.py"), "--diagram", "run.svg", "--record", "run.mcap")
    code, _, err = worldline(*options)
    assert code == 1
    assert "use fewer topics" in err.splitlines()[0]
    assert "ZeroDivisionError" in err.splitlines()[1]
    assert "Failed: Clock-3" in Path("run.svg").read_text(encoding="utf-8")
    assert "ZeroDivisionError" in Recording("run.mcap").verify().text


# --- Mistakes ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which example?"),
        (["pingg"], "did you mean ping?"),
        (["xyzzy"], "`worldline spacetime list`"),
        (["mine.py"], "write --file mine.py"),
        (["ping", "--file", "mine.py"], "use one of them"),
        (["--file", "nobody.py"], "there is no file nobody.py"),
        (["nobody.mcap"], "there is no file nobody.mcap"),
        (["ping", "--executor", "fast"], 'use "inline", "processes(4)", "mpi" or "shuffled(7)"'),
        (["ping", "--executor", "processes(0)"], "use 1 to 64"),
        (["ping", "--set", "distance"], "write --set NAME=VALUE"),
        (["ping", "--set", "size=3"], "parameters: distance=1.0, c=0.0"),
        (["ping", "--set", "distance=far"], "a value like 1.0"),
        (["ping", "--set", "c=-1"], "c is -1.0"),
        (["pipeline", "--set", "placed=perhaps"], "a value like True"),
        (["epidemic", "--set", "speed=2"], "faster than light"),
        (["ping", "--until", "nan"], "a run can't end at nan"),
        (["ping", "--until", "inf"], "a run can't end at inf"),
        (["ping", "--until", "1e12", "--record", "run.mcap"], "recordings end at 1.153e+09"),
        (["ping", "--seed", str(2**63)], "at most 64 bits"),
        (["ping", "--record", "nowhere/run.mcap"], "there is no folder nowhere"),
        (["ping", "--record", "run.txt"], "doesn't end in .mcap"),
        (["ping", "--diagram", "run.png"], "doesn't end in .svg"),
        (["ping", "--animation", "run.gif"], "doesn't end in .html"),
        (["run.mcap", "--seed", "1"], "--seed can't be used with a recording"),
        (["run.mcap", "--set", "c=1"], "--set can't be used with a recording"),
        (["ping", "--until", "1e300"], "1e+300"),
    ],
)
def test_a_mistake_is_told_in_plain_words(worldline: Command, arguments: list[str], words: str) -> None:
    code, out, err = worldline(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.startswith("worldline: ")
    assert list(Path().iterdir()) == []


def test_a_mistake_that_shows_only_during_the_run_is_the_models(worldline: Command) -> None:
    code, _, err = worldline("relay", "-q", "--set", "fastest=1")
    assert code == 1
    assert "as fast as light" in err
    assert "(relay.py, line " in err


JUDGED = """
from worldline.spacetime import Agent, ForwardSimulation, Minkowski
UNTIL = 1.0
def model():
    return ForwardSimulation(Minkowski(2))
def outcome(simulation, result):
    assert False, "never"
"""


def test_an_outcome_that_may_not_be_doesnt_hide_what_happened(worldline: Command) -> None:
    Path("mine.py").write_text(JUDGED)
    code, out, err = worldline("--file", "mine.py")
    assert code == 1
    assert "never" in err
    assert out.startswith("0 events, digest ")


def test_a_recording_is_not_overwritten(worldline: Command) -> None:
    Path("run.mcap").write_text("precious")
    code, out, err = worldline("ping", "--record", "run.mcap")
    assert (code, out) == (2, "")
    assert "run.mcap isn't a recording and would be replaced (use --force, or another name)" in err
    assert Path("run.mcap").read_text() == "precious"


def test_lab_times_before_zero_are_recorded_too(worldline: Command) -> None:
    later = "clock = Clock()\n            clock.jump_to((-2.5,))\n            clock.after(1.0, Clock.tick)"
    early = ENDS + MINE.replace("Clock().after(1.0, Clock.tick)", later)
    _, out, _ = worldline("--file", write(early, "early.py"), "--record", "run.mcap")
    assert out.splitlines()[:2] == ["   -1.500000  Clock-1: tick", "   -0.500000  Clock-1: tick"]
    *told, recorded, _ = out.splitlines()
    assert recorded == "recorded in run.mcap"
    assert worldline("run.mcap", "--check")[1].splitlines()[: len(told)] == told
    assert Recording("run.mcap").span() == (0, 3_500_000_000)


def test_who_stops_reading_doesnt_make_it_fail(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "worldline", "spacetime", "flock", "--json", "--record", "run.mcap"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().startswith("{")
        running.stdout.close()
        told = running.stderr.read()
        assert running.wait(100) == 0
    assert "digest " in told
    assert "Error" not in told
    assert Recording(tmp_path / "run.mcap").verify().condition is Condition.INTACT
