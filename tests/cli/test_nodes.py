"""`worldline nodes`: what is printed and drawn, what is found and can be repeated, and plain words for mistakes."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.main import get_command

from tests.federation.transports import eventually
from worldline.cli import main
from worldline.cli.commands import app
from worldline.cli.nodes import command_of
from worldline.nodes.algorithms import NAMES, find
from worldline.nodes.trace import NodeRecord
from worldline.nodes.trial import Trial
from worldline.recording import Condition, Recording
from worldline.search.searching import Report

TRIANGLE = ("bellman-ford", "--edges", "0-1,0-2,1-2", "--seed", "1")

HASTY = """
from worldline.nodes import Node, Protocol, Start, always
from worldline.nodes.algorithm import Algorithm

class Hasty(Node):
    '''Counts aloud, and believes that what is said first is heard first.'''

    def __init__(self, num_nodes, id, num_neighbors, send, *, count: int = 2, share: float = 1.0, word: str = "",
                 is_loud: bool = True):
        super().__init__(num_nodes, id, num_neighbors, send)
        self.count = count
        self.heard = []

    def execute(self, event):
        match event:
            case Start() if self.id == 0:
                for number in range(self.count):
                    self.send(number, 0)
            case Protocol(number, _):
                self.heard.append(number)

@always("numbers come in order")
def in_order(run):
    return all(node.heard == sorted(node.heard) for node in run.nodes)

model = Algorithm(name="hasty", node=Hasty, topology="clique:3", properties=(in_order,), least={"count": 1})
"""
RAISES = """
from worldline.nodes import Node, Protocol, Start

class Raises(Node):
    '''Divides by what it hears.'''

    def execute(self, event):
        match event:
            case Start() if self.id == 0:
                self.broadcast(0)
            case Protocol(number, _):
                return 1 / number
"""
ENDLESS = """
from worldline.nodes import Node

class Endless(Node):
    '''Has always something to say.'''

    def execute(self, event):
        self.broadcast("and")
"""
SLOW = """
import os, time
from worldline.nodes import Node

class Slow(Node):
    '''Takes its time.'''

    def execute(self, event):
        os.write(1, b"busy\\n")
        time.sleep(1000)
"""


Command = Callable[..., tuple[int, str, str]]
BUILT = get_command(app)  # To build it takes longer than most runs do.


@pytest.fixture
def worldline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run `worldline nodes` in an empty folder and return its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("worldline.cli.commands.app", BUILT)
    monkeypatch.setattr(sys, "path", [*sys.path])  # A file's folder is added to it.

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["worldline", "nodes", *arguments])
        with pytest.raises(SystemExit) as exit_:
            main()
        output = capsys.readouterr()
        return int(exit_.value.code or 0), output.out, output.err

    return run


@pytest.fixture
def hasty(tmp_path: Path) -> str:
    (tmp_path / "hasty.py").write_text(HASTY)
    return "hasty.py"


# --- One run ---


def test_the_list_names_all_of_them(worldline: Command) -> None:
    code, out, err = worldline("list")
    assert (code, err) == (0, "")
    heads = [line for line in out.splitlines() if not line.startswith(" ")]
    assert [line.split()[0] for line in heads] == list(NAMES)
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    for name, line, does in zip(NAMES, heads, lines[1::2], strict=True):
        assert line.split()[1].rstrip(";") == find(name).topology
        assert ("; tolerates " in line) is bool(find(name).faults)
        assert find(name).summary.lower().endswith(does.strip().lower())


def test_a_run_is_printed(worldline: Command) -> None:
    code, out, err = worldline(*TRIANGLE)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:6] == ["Topology:", "0 -> 0-1, 1-2", "1 -> 0-0, 1-2", "2 -> 0-0, 1-1", "---", "0 <- *: Start"]
    assert "0 -> 1: [routing = [0: dist 0, route *; 1: dist inf, route *; 2: dist inf, route *]]" in lines
    assert any(line.startswith("2 -> 0: [routing = [") for line in lines)
    assert any(line.startswith("0: routing table updated -> [0: dist 0, route *; ") for line in lines)
    assert lines[-5] == "---"
    assert lines[-4:-1] == [f"holds {each}" for each in find("bellman-ford").properties]
    assert " simulated, 2" in lines[-1]
    assert len(lines[-1].rpartition("digest ")[2]) == 32
    assert worldline(*TRIANGLE) == (code, out, err)


def test_the_trace_is_json_and_nothing_else(worldline: Command) -> None:
    code, out, err = worldline(*TRIANGLE, "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert {record["kind"] for record in records} == {"received", "sent", "logged"}
    assert all(set(record) <= set(NodeRecord.__struct_fields__) for record in records)
    assert sum(record["kind"] == "sent" for record in records) == sum(
        "routing" in line for line in out.splitlines() if '"received"' in line
    )
    assert "digest " in err
    assert worldline(*TRIANGLE)[1].splitlines()[-1] == err.splitlines()[-1]


def test_quiet_is_the_outcome_alone(worldline: Command) -> None:
    _, out, _ = worldline(*TRIANGLE)
    code, quiet, err = worldline(*TRIANGLE, "--quiet")
    assert (code, err) == (0, "")
    assert quiet.splitlines() == out.splitlines()[-4:]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--latency", "5ms"], "15ms simulated"),
        (["--latency", "5ms", "--until", "6ms"], "property failed: every table has the shortest distances"),
        (["--fault", "0s crash 0", "--fault", "1s recover 0"], "every table has the shortest distances"),
        (["--loss", "1"], "property failed: every table has the shortest distances: the distances from 0 are"),
        (["--faults", "loss=1"], "property failed: every table has the shortest distances: the distances"),
        (["--faults", "partition=3,crash=3,link=3", "--seed", "4"], "every table has the shortest distances"),
    ],
)
def test_options_change_the_run(worldline: Command, options: list[str], words: str) -> None:
    _, out, err = worldline("bellman-ford", "-q", "--topology", "line:3", *options)
    assert words in out + err


def test_in_order_is_in_order(worldline: Command, hasty: str) -> None:
    many = ["--file", hasty, "--set", "count=30", "-q"]
    assert worldline(*many)[0] == 1
    assert worldline(*many, "--fifo")[0] == 0


def test_a_trial_in_a_file_is_run_as_it_says(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "trial.py").write_text(
        "from worldline.nodes import Trial\n"
        "from worldline.nodes.algorithms import find\n"
        "model = Trial(algorithm=find('echo'), seed=4, topology='ring:5')\n"
    )
    said = worldline("echo", "--seed", "4", "--topology", "ring:5")
    assert worldline("--file", "trial.py") == said
    assert worldline("--file", "trial.py", "--seed", "5", "--topology", "line:3") == worldline(
        "echo", "--seed", "5", "--topology", "line:3"
    )
    _, out, _ = worldline("--file", "trial.py", "--seeds", "2")
    assert out == worldline("echo", "--topology", "ring:5", "--seed", "4", "--seeds", "2")[1]


# --- Files ---


def test_pictures_are_drawn(worldline: Command) -> None:
    code, _, err = worldline(*TRIANGLE, "-q", "--diagram", "run.svg", "--topology-plot", "net.svg", "--routes-to", "2")
    assert (code, err) == (0, "")
    for name in ("run.svg", "net.svg"):
        root = ElementTree.fromstring(Path(name).read_text())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "bellman-ford" in "".join(root.itertext())
        assert "seed 1" in "".join(root.itertext())
    first = Path("net.svg").read_text()
    worldline(*TRIANGLE, "-q", "--topology-plot", "net.svg", "--routes-to", "0")
    assert Path("net.svg").read_text() != first


def test_a_run_is_recorded(worldline: Command) -> None:
    _, out, _ = worldline(*TRIANGLE)
    told = out.replace("---\nholds", "---\nrecorded in run.mcap\nholds")
    assert worldline(*TRIANGLE, "--record", "run.mcap")[:2] == (0, told)
    recording = Recording("run.mcap")
    assert recording.verify().condition is Condition.INTACT
    assert recording.outcome is not None
    assert out.splitlines()[-1].endswith(f"digest {recording.outcome.digest}")
    assert (recording.header.federation, recording.header.seed) == ("bellman-ford", 1)
    sent = sum(" -> " in line and ": [routing" in line and "updated" not in line for line in out.splitlines()[5:])
    assert recording.counts()["Table"].published == recording.counts()["Table"].arrivals == sent


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_run_records_the_same(
    worldline: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], executor: str
) -> None:
    """Both commands, on any executor: the same file."""
    worldline("raft", "--seed", "3", "--until", "2s", "-q", "--record", "a.mcap")
    options = f"--seed 3 --until 2s --executor {executor} --record b.mcap"
    monkeypatch.setattr("sys.argv", ["worldline", "run", "raft", *options.split()])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 0, capsys.readouterr().err
    assert Path("a.mcap").read_bytes() == Path("b.mcap").read_bytes()


def test_a_run_that_fails_is_recorded_as_broken_off(worldline: Command, hasty: str) -> None:
    assert worldline("--file", hasty, "-q", "--set", "count=30", "--record", "run.mcap")[0] == 1
    verdict = Recording("run.mcap").verify()
    assert verdict.condition is Condition.BROKEN_OFF
    assert "property failed: numbers come in order" in str(verdict)
    assert str(verdict).count("node 1 at ") == 1
    assert Recording("run.mcap").counts()["int"].published == 30


def test_a_schedule_is_the_same_run(worldline: Command) -> None:
    options = ["raft", "--seed", "3", "--faults", "crash=2,partition,loss=0.05", "--until", "2s", "--fifo"]
    code, out, _ = worldline(*options, "--save", "it.json")
    assert worldline("--schedule", "it.json") == (code, out, "")
    Path("elsewhere").mkdir()
    assert worldline("--schedule", "it.json", "--times", "--diagram", "elsewhere/run.svg")[0] == 0
    assert Path("elsewhere/run.svg").is_file()


# --- Many runs ---


def test_seeds_that_pass(worldline: Command) -> None:
    code, out, err = worldline("bellman-ford", "--seeds", "20", "--workers", "1")
    assert (code, err) == (0, "")
    assert out.splitlines()[:-1] == [f"holds {each}" for each in find("bellman-ford").properties]
    assert out.splitlines()[-1].startswith("20 seeds, ")
    assert worldline("bellman-ford", "--seeds", "1", "--workers", "1")[1].splitlines()[-1].startswith("1 seed, ")


def test_any_number_of_workers_says_the_same(worldline: Command, hasty: str) -> None:
    found = [
        worldline("--file", hasty, "--seed", "3", "--seeds", "40", "--workers", workers, "--save", "it.json")
        for workers in ("1", "2")
    ]
    assert found[0] == found[1]
    code, out, err = found[0]
    assert (code, err) == (1, "")
    lines = out.splitlines()
    seed = int(lines[0].rpartition("seed ")[2].split()[0])
    assert lines[0].startswith(f"{seed - 2} seeds, " if seed > 3 else "1 seed, ")
    assert lines[0].endswith(f": seed {seed} fails")
    assert lines[1].endswith(": property failed: numbers come in order")
    day = re.fullmatch(r"  on this day: .*  \(--day (.*)\)", lines[2])
    told = 3 if day is None else 4
    words = "" if day is None else f"--day {day[1]} "
    assert lines[told - 1 : told + 1] == ["to repeat it:", f"  worldline nodes --file hasty.py {words}--seed {seed}"]
    assert lines[told + 1].startswith("shrunk in ")
    assert "  message 2 from 0 to 1 takes " in out
    cut = lines.index("---")
    assert lines[cut - 2 : cut] == ["to repeat it:", "  worldline nodes --file hasty.py --schedule it.json"]
    code, again, err = worldline(*shlex.split(lines[cut - 1])[2:])
    assert code == 1
    assert err == f"worldline: {lines[-1]}\n"
    trace = lines[cut + 1 : -1]
    assert again.splitlines()[-1 - len(trace) : -1] == trace


def repeated(worldline: Command, *options: str) -> None:
    """Search, and run the command that is printed: it must fail just so."""
    code, out, _ = worldline(*options, "--seeds", "30", "--workers", "1", "--no-shrink")
    assert code == 1
    assert "shrunk" not in out
    lines = out.splitlines()
    assert lines[-2] == "to repeat it:"
    assert lines[-1].startswith("  worldline nodes ")
    code, _, err = worldline(*shlex.split(lines[-1])[2:])
    assert code == 1
    assert err == f"worldline: {lines[1].strip()}\n"


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--topology", "random:6,p=0.5,connected,shuffled"],
        ["--edges", "0-1,1-2=7"],
        ["--set", "count=5", "--set", "word=two words", "--set", "share=1e-30", "--set", "is_loud=0"],
        ["--latency", "uniform(1ms, 3ms)"],
        ["--until", "1234567891ns"],
        ["--fault", "10s crash 1", "--fault", "20s recover 1"],
        ["--faults", "crash=2,partition=1,link=1,loss=0.05"],
        ["--loss", "0.1"],
        ["--seed", "-7"],
    ],
)
def test_what_is_printed_repeats_the_failure(worldline: Command, hasty: str, options: list[str]) -> None:
    repeated(worldline, "--file", hasty, *options)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--fifo", "--edges", "1-2,0-2,0-1", "--set", "count=9", "--loss", "0.5"], id="order of links"),
        pytest.param(["--fifo", "--loss", "0.12345678901"], id="exact loss"),
    ],
)
def test_what_is_printed_repeats_the_run_exactly(worldline: Command, options: list[str], tmp_path: Path) -> None:
    lossy = HASTY.replace("node.heard == sorted(node.heard)", "len(node.heard) in (0, node.count)")
    (tmp_path / "lossy.py").write_text(lossy.replace("always", "at_end"))
    code, out, _ = worldline(
        "--file", "lossy.py", *options, "--seeds", "60", "--workers", "1", "--no-shrink", "-q", "--day", "usual"
    )
    assert code == 1
    before = json_of(worldline, "--file", "lossy.py", *options, "--seed", out.split()[-1])
    after = json_of(worldline, *shlex.split(out.splitlines()[-1])[2:])
    assert after == before
    if "--loss" in options:  # A small change of the share need not show in this run, but may in another.
        assert options[-1] in out or "--edges" in options


def json_of(worldline: Command, *options: str) -> list[Any]:
    return [json.loads(line) for line in worldline(*options, "--json")[1].splitlines()]


def test_what_has_no_end_is_repeated_without_end(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    code, out, _ = worldline("--file", "endless.py", "--events-max", "50", "--seeds", "3", "--workers", "1")
    assert code in (1, 4)
    assert "--events-max 50" in out.splitlines()[-1]


def test_what_fails_is_saved_even_if_it_is_not_shrunk(worldline: Command, hasty: str) -> None:
    worldline("--file", hasty, "--seeds", "40", "--workers", "1", "--no-shrink", "--save", "it.json")
    assert worldline("--file", hasty, "--schedule", "it.json", "-q")[0] == 1


def workers_asked_for(worldline: Command, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    asked: list[int] = []

    def search(*_: Any, workers: int, **__: Any) -> Report:
        asked.append(workers)
        return Report(tried=999, events=0, faults=0, faults_in_vain=0, failed=0, failure=None, digest="")

    monkeypatch.setattr(importlib.import_module("worldline.cli.search_story"), "search_seeds", search)
    assert worldline("bellman-ford", "--seeds", "999", *options)[0] == 0
    return asked[0]


def test_there_are_as_many_workers_as_processors(worldline: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert workers_asked_for(worldline, monkeypatch) == len(os.sched_getaffinity(0))
    assert workers_asked_for(worldline, monkeypatch, "--workers", "7") == 7
    monkeypatch.delattr(os, "sched_getaffinity")
    assert workers_asked_for(worldline, monkeypatch) == os.cpu_count()


# --- Mistakes ---


def refused(worldline: Command, *arguments: str) -> str:
    """Return the words for a mistake: nothing has run, and there is no traceback."""
    code, out, err = worldline(*arguments)
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
    return " ".join(err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which algorithm? (name one, see `worldline nodes list`"),
        (["belman-ford"], "there is no algorithm 'belman-ford' (did you mean bellman-ford?)"),
        (["bellman-ford", "--edges", "0-0"], "the edge 0-0 leads from a node to itself"),
        (["bellman-ford", "--edges", "0-1,1-0"], "there are two edges between 1 and 0"),
        (["bellman-ford", "--edges", "0-1,x"], "'x' isn't an edge"),
        (["bellman-ford", "--topology", "blob:3"], "'blob:3' isn't a topology"),
        (["bellman-ford", "--topology", "ring"], "'ring' doesn't say its size"),
        (["bellman-ford", "--topology", "ring:2"], "are too few"),
        (["bellman-ford", "--topology", "ring:0"], "too few"),
        (["bellman-ford", "--topology", "none.edges"], "none.edges"),
        (["bellman-ford", "--edges", "0-1", "--topology", "ring:3"], "--edges and --topology both say"),
        (["bellman-ford", "--fault", "1s explode 1"], "'1s explode 1' isn't a fault"),
        (["bellman-ford", "--fault", "1s crash 3"], "there is no node 3"),
        (["bellman-ford", "--fault", "1s down 0 3"], "there is no node 3"),
        (["bellman-ford", "--fault", "1s crash"], "isn't the number of nodes it takes"),
        (["bellman-ford", "--faults", "meteor"], "'meteor' can't be drawn"),
        (["bellman-ford", "--faults", "crash=-1"], "can't be drawn"),
        (["bellman-ford", "--faults", "crash=inf"], "can't be drawn"),
        (["bellman-ford", "--faults", "crash=nan"], "can't be drawn"),
        (["bellman-ford", "--latency", "0s"], "isn't a latency"),
        (["bellman-ford", "--latency", "uniform(2s, 1s)"], "is empty"),
        (["bellman-ford", "--loss", "1.1"], "--loss"),
        (["bellman-ford", "--loss", "-0.1"], "--loss"),
        (["bellman-ford", "--until", "soon"], "'soon' isn't a time"),
        (["bellman-ford", "--until", "-1s"], "'-1s' isn't a time"),
        (["bellman-ford", "--seeds", "0"], "--seeds"),
        (["bellman-ford", "--seeds", "-3"], "--seeds"),
        (["bellman-ford", "--seeds", "3", "--workers", "0"], "--workers"),
        (["bellman-ford", "--seed", "x"], "--seed"),
        (["bellman-ford", "--seed", str(2**70)], "64 bits"),
        (["bellman-ford", "--events-max", "0"], "--events-max"),
        (["bellman-ford", "--seconds-max", "0"], "--seconds-max"),
        (["bellman-ford", "--seconds-max", "nan"], "--seconds-max"),
        (["bellman-ford", "--routes-to", "3"], "no route leads to 3: there is no such node"),
        (["bellman-ford", "--routes-to", "-1"], "no route leads to -1: there is no such node"),
        (["bellman-ford", "--set", "speed=3"], "bellman-ford has no parameter 'speed' (parameters: it has none)"),
        (["bellman-ford", "--set", "speed"], "--set speed sets nothing"),
        (["bellman-ford", "--set", "=3"], "--set =3 sets nothing"),
        (["bellman-ford", "--seeds", "3", "--record", "x.mcap"], "show one run"),
        (["bellman-ford", "--seeds", "3", "--diagram", "x.svg"], "show one run"),
        (["bellman-ford", "--record", "no/x.mcap"], "there is no folder no"),
        (["--file", "hasty.py", "bellman-ford"], "--file says which algorithm it is, and so does bellman-ford"),
        (["--file", "hasty.py", "list"], "--file says which algorithm it is"),
        (["--file", "hasty.py", "--set", "count=many"], "hasty: count can't be 'many' (write a value like 2)"),
        (["--file", "hasty.py", "--set", "is_loud=perhaps"], "is_loud can't be 'perhaps'"),
        (["--file", "hasty.py", "--set", "speed=3"], "(parameters: count=2, share=1.0, word=, is_loud=True)"),
        (["--file", "none.py"], "there is no file none.py"),
        (["--file", "."], ". is a directory"),
        (["--schedule", "none.json"], "none.json can't be read: No such file"),
        (["--schedule", "hasty.py"], "hasty.py isn't a schedule"),
        (["--schedule", "it.json", "bellman-ford"], "a schedule says all of that itself"),
        (["--schedule", "it.json", "--topology", "ring:3"], "a schedule says all of that itself"),
        (["--schedule", "it.json", "--edges", "0-1"], "a schedule says all of that itself"),
        (["--schedule", "it.json", "--seeds", "3"], "--seeds can't be used with --schedule: a schedule says all of"),
        (["--schedule", "it.json", "--set", "count=3"], "--set can't be used with --schedule: a schedule says all of"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(
    worldline: Command, hasty: str, arguments: list[str], words: str
) -> None:
    assert words in refused(worldline, *arguments)
    assert sorted(path.name for path in Path().iterdir() if path.suffix) == [hasty]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *(
            pytest.param(["--schedule", "it.json", *more], "a schedule says", id=more[0])
            for more in (
                ["--seed", "3"],
                ["--set", "count=3"],
                ["--latency", "5ms"],
                ["--fifo"],
                ["--loss", "0.5"],
                ["--fault", "1s crash 0"],
                ["--faults", "crash"],
                ["--until", "1s"],
            )
        ),
        *(
            pytest.param(["bellman-ford", option, path], f"{path} can't be")
            for option in ("--diagram", "--topology-plot", "--save")
            for path in ("no/x.svg", ".")
        ),
        pytest.param(
            ["bellman-ford", "--seeds", "3", "--workers", "1", "--save", "no/x.json"],
            "no/x.json can't be",
        ),
        pytest.param(["bellman-ford", "--topology", ""], "isn't a topology"),
        pytest.param(["bellman-ford", "--edges", ""], "there are no edges"),
    ],
)
def test_mistakes_that_should_be_refused(worldline: Command, arguments: list[str], words: str) -> None:
    if "--schedule" in arguments:
        assert worldline("bellman-ford", "-q", "--save", "it.json")[0] == 0
    assert words in refused(worldline, *arguments)


# --- What goes wrong with users' nodes ---


def test_a_node_that_raises_is_named_with_its_place(worldline: Command, tmp_path: Path) -> None:
    file = tmp_path / "raises.py"
    file.write_text(RAISES)
    line = RAISES[: RAISES.index("return 1 / number")].count("\n") + 1
    code, out, err = worldline("--file", "raises.py", "--latency", "5ms")
    assert code == 1
    assert err == (
        "worldline: node 1 at 5ms: on the message 0 it raised ZeroDivisionError: division by zero,"
        f" in raises.py, line {line}\n"
    )
    assert out.splitlines()[-2:] == ["1 <- 0: 0", "---"]


def test_a_file_that_cannot_be_loaded_is_named_with_its_line(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("x = 1\nclass\n")
    code, out, err = worldline("--file", "own.py")
    assert (code, out) == (2, "")
    assert err == "worldline: own.py can't be loaded: SyntaxError: invalid syntax, in own.py, line 2\n"
    assert len(err.splitlines()) == 1


def test_what_never_ends_is_ended(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    code, _, err = worldline("--file", "endless.py", "-q", "--events-max", "100")
    assert code == 4
    assert re.match(r"worldline: at \S+: it hasn't ended after 100 events .*--events-max", err)
    assert worldline("--file", "endless.py", "-q", "--until", "100ms")[0] == 0


def test_a_loop_without_an_end_is_ended(worldline: Command, tmp_path: Path) -> None:
    loop = RAISES.replace("return 1 / number", "\n                while True: pass")
    (tmp_path / "loops.py").write_text(loop)
    code, _, err = worldline("--file", "loops.py", "-q", "--latency", "5ms", "--seconds-max", "0.05")
    assert code == 4
    assert err.startswith("worldline: node 1 at 5ms: it has taken more than 0.05 seconds of real time")


def test_a_failure_comes_before_what_cannot_be_drawn(worldline: Command, hasty: str) -> None:
    code, _, err = worldline("--file", hasty, "-q", "--set", "count=30", "--diagram", "run.svg", "--save", "it.json")
    assert code == 1
    assert "numbers come in order" in err
    assert ElementTree.fromstring(Path("run.svg").read_text()).tag.endswith("svg")
    assert worldline("--file", hasty, "--schedule", "it.json", "-q") == (1, "", err)


# --- As a process ---


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command as users do, in a session of its own; nothing of it is left afterwards."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "worldline", "nodes", *arguments]
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, start_new_session=True)
        )
        return started[-1]

    yield start
    for each in started:
        for number in in_session(each.pid):
            os.kill(number, signal.SIGKILL)
        each.communicate()


def in_session(session: int) -> list[int]:
    """Return the processes of a session that still do something."""
    found = []
    for entry in (each for each in Path("/proc").iterdir() if each.name.isdecimal()):
        try:
            state, _, _, own = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(own) == session and state != "Z":
            found.append(int(entry.name))
    return found


def test_ctrl_c_ends_a_run(process: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    started = process("--file", "slow.py", "--record", "run.mcap")
    assert started.stdout is not None
    while "busy" not in started.stdout.readline():
        pass
    os.killpg(started.pid, signal.SIGINT)
    _, err = started.communicate(timeout=100)
    assert started.returncode == 130
    assert "Traceback" not in err
    assert Recording(tmp_path / "run.mcap").verify().condition is Condition.BROKEN_OFF


def test_ctrl_c_ends_a_search(process: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    started = process("--file", "slow.py", "--seeds", "20", "--workers", "2")
    assert started.stdout is not None
    for _ in range(2):  # Both of them are at it.
        assert started.stdout.readline() == "busy\n"
    os.killpg(started.pid, signal.SIGINT)
    _, err = started.communicate(timeout=100)
    assert started.returncode == 130
    assert "after 0 of 20 seeds" in err
    assert "Traceback" not in err
    eventually(lambda: not in_session(started.pid))


def test_a_reader_that_has_enough_is_no_mistake(process: Callable[..., subprocess.Popen[str]], hasty: str) -> None:
    started = process("--file", hasty, "--fifo", "--set", "count=9000")
    assert started.stdout is not None
    assert started.stdout.readline() == "Topology:\n"
    started.stdout.close()
    assert started.stderr is not None
    assert started.stderr.read() == ""
    assert started.wait(timeout=100) != 70


def test_names_of_python_s_own_modules_in_the_folder_do_no_harm(tmp_path: Path) -> None:
    for name in ("random", "queue", "signal"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not the one that was wanted')")
    command = Path(sys.executable).with_name("worldline")  # Not `python -m`, which looks into the folder first itself.
    words = [str(command), "nodes", "flooding", "--seeds", "4", "--workers", "2"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 seeds, " in done.stdout


def test_all_failures_are_counted_if_that_is_asked_for(worldline: Command, hasty: str) -> None:
    code, out, _ = worldline("--file", hasty, "--seeds", "20", "--workers", "1", "--keep-going", "--no-shrink")
    assert code == 1
    assert re.match(r"20 seeds, \d+ events: \d+ fail, the first is \d+\n", out)


def test_nothing_is_judged_without_properties(worldline: Command, hasty: str) -> None:
    for workers in ("1", "2"):
        code, out, _ = worldline("--file", hasty, "--seeds", "20", "--workers", workers, "--no-properties")
        assert code == 0
        assert out.startswith("no properties: only errors would have been noticed\n")


def test_quiet_searches_print_no_trace(worldline: Command, hasty: str) -> None:
    code, out, _ = worldline("--file", hasty, "--seeds", "40", "--workers", "1", "-q")
    assert code == 1
    assert "---" not in out
    assert "--save FILE.json keeps it" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("flooding", "--seeds", "3", "--json"), "show one run"),
        (("flooding", "--diagram", "x.png"), "isn't the name of a picture"),
        (("flooding", "--faults", "claimed"), "doesn't claim to tolerate any faults"),
    ],
)
def test_what_makes_no_sense_is_refused(worldline: Command, arguments: tuple[str, ...], says: str) -> None:
    code, _, err = worldline(*arguments)
    assert (code, says in err) == (2, True)


def test_a_recording_is_whole_though_nobody_reads_the_trace(
    process: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    started = process("gossip", "--until", "20s", "--record", "run.mcap")
    assert started.stdout is not None
    started.stdout.readline()
    started.stdout.close()
    assert started.wait(timeout=100) == 0
    assert Recording(tmp_path / "run.mcap").outcome.status == "complete"  # type: ignore[union-attr]


# --- What is kept while a failure is shrunk ---


@pytest.mark.parametrize(("keep", "left"), [("nodes", "3 nodes (clique:3)"), ("count,seed", "2 nodes (clique:2)")])
def test_what_is_kept_is_kept(worldline: Command, hasty: str, keep: str, left: str) -> None:
    code, out, _ = worldline("--file", hasty, "--set", "count=3", "--seeds", "50", "--keep", keep)
    assert code == 1
    assert left in out
    assert ("count = 3;" in out) is ("count" in keep)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("--seeds", "5", "--keep", "nodes,color"),
            "'color' can't be kept (there are nodes, topology, parameters, faults, messages, seed; and of hasty: ",
        ),
        (("--keep", "nodes"), "--keep is about shrinking, and nothing is shrunk"),
        (("--seeds", "5", "--no-shrink", "--keep", "nodes"), "--keep is about shrinking, and nothing is shrunk"),
    ],
)
def test_what_cannot_be_kept_is_refused(worldline: Command, hasty: str, words: tuple[str, ...], problem: str) -> None:
    code, out, err = worldline("--file", hasty, *words)
    assert (code, out) == (2, "")
    assert problem in err


def test_a_failure_is_drawn(worldline: Command, hasty: str, tmp_path: Path) -> None:
    code, _, err = worldline("--file", hasty, "--seed", "1", "--diagram", "bad.svg", "-q")
    assert code == 1
    text = (tmp_path / "bad.svg").read_text()
    assert 'class="failure"' in text
    assert err.removeprefix("worldline: ").strip() in text


def test_the_command_that_repeats_a_failure_has_the_numbers_that_were_given() -> None:
    trial = Trial(algorithm=find("raft"), kinds={"crash": 1.0, "loss": 0.25})
    assert command_of(trial, None) == "worldline nodes raft --faults crash=1,loss=0.25 --seed 0"
