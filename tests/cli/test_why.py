"""`worldline why`, `pause`, `step`, `resume` and `end`: on a run that goes on, found by its name, and on one noted."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event

import pytest

from tests.cli.conftest import Command
from tests.federation.transports import PATIENCE_S, Strand, brief, eventually, states
from tests.lock.why.casts import CELL, cell
from tests.lock.why.theater import run
from worldline import Network, Server, connect, link
from worldline.cli import why as why_follow
from worldline.cli import why as why_recorded
from worldline.federation.operator import Operator
from worldline.federation.registry import RunEntry, runtime_folder
from worldline.lock import Advance, Join, Subscription
from worldline.lock.why.heard import Heard, HeardSending
from worldline.model import FOREVER, MS, Plan, plan
from worldline.recording import Recorder
from worldline.recording.timing import TimingWriter


@pytest.fixture(autouse=True)
def _own_runs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    brief(monkeypatch)


class HeldRun:
    """A run in which `waits` waits for `slow`, until that is let go."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.go = Event()
        self.strands = [Strand(self.slow), Strand(self.waits)]
        eventually(lambda: states(server) == {"slow": "computing", "waits": "advancing"})

    def slow(self) -> None:
        with connect(self.server, "slow", publishes=["x"], subscribes=["y"]) as me:
            self.go.wait(PATIENCE_S)
            me.advance(to="50ms")
            me.publish("x", b"")
            me.advance(to="100ms")

    def waits(self) -> None:
        with connect(self.server, "waits", publishes=["y"], subscribes=["x"]) as me:
            me.advance(to="20ms")
            me.advance(to="100ms")


@pytest.fixture
def held() -> Iterator[HeldRun]:
    server = Server(plan(["slow", "waits"], network=Network(default=link("5ms"))), federation="cell")
    with server:
        made = HeldRun(server)
        yield made
        made.go.set()
        server.ask(lambda: server.pause_at(FOREVER))
        for strand in made.strands:
            strand.result()


# --- A run that goes on ---


def test_who_waits_for_whom(worldline: Command, held: HeldRun) -> None:
    code, output, _ = worldline("why", "cell")
    assert code == 0
    lines = output.splitlines()
    assert lines[0].startswith("cell: at 0s")
    assert lines[2].startswith("slow holds waits: 1 participant waits for it, the longest for ")
    assert lines[3].startswith("  it is at 0s, and has been computing for ")
    assert any("slow → waits  (x 5ms); slow may send from 0s on" in line for line in lines)
    assert "slow has sent nothing on x so far" in lines[-1]


@pytest.mark.parametrize("how", ["alone", "name", "process", "address"])
def test_a_run_is_found(worldline: Command, held: HeldRun, how: str) -> None:
    named = {"alone": [], "name": ["cell"], "process": [str(os.getpid())], "address": [str(held.server.address)]}[how]
    assert worldline("why", *named)[0] == 0


def test_as_json(worldline: Command, held: HeldRun) -> None:
    code, output, _ = worldline("why", "cell", "--json")
    assert code == 0
    found = json.loads(output)
    assert (found["name"], found["holds"][0]["root"], found["holds"][0]["held"]) == ("cell", "slow", ["waits"])
    assert found["whys"][0]["path"] == [{"sender": "slow", "receiver": "waits", "topic": "x", "latency": 5 * MS}]


def test_as_a_picture(worldline: Command, held: HeldRun) -> None:
    assert worldline("why", "cell", "--svg", "why.svg")[0] == 0
    assert "slow holds waits" in Path("why.svg").read_text()
    code, _, errors = worldline("why", "cell", "--svg", "why.png")
    assert code == 2
    assert "why.png isn't the name of a picture" in errors


@pytest.fixture
def _let_go_once_shown(held: HeldRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the run go on after something was shown of it."""
    monkeypatch.setattr(why_follow.time, "sleep", lambda _: None)  # type: ignore[attr-defined]

    def letting_go(real: Callable[..., None]) -> Callable[..., None]:
        def show(*seen: object) -> None:
            real(*seen)
            held.go.set()

        return show

    for name in ("_print_json", "_print_line"):
        monkeypatch.setattr(why_follow, name, letting_go(getattr(why_follow, name)))


@pytest.mark.usefixtures("_let_go_once_shown")
def test_it_can_be_followed_to_the_end(worldline: Command, held: HeldRun) -> None:
    code, output, _ = worldline("why", "cell", "--follow", "--every", "0.05")
    assert code == 0
    assert output.splitlines()[-1] == f"the run is over, digest {held.server.wait(PATIENCE_S).digest.hex()}"


@pytest.mark.usefixtures("_let_go_once_shown")
def test_followed_as_json_it_adds_up_what_was_waited_for(worldline: Command, held: HeldRun) -> None:
    code, output, _ = worldline("why", "cell", "--follow", "--every", "0.05", "--json")
    assert code == 0
    *_, last, over = (json.loads(line) for line in output.splitlines())
    assert last["waited"][0]["sender"] == "slow"
    assert last["waited"][0]["seconds"] > 0
    assert over == {"phase": "over", "digest": held.server.wait(PATIENCE_S).digest.hex(), "failure": None}


def test_a_page_of_what_is_seen(held: HeldRun) -> None:
    from io import StringIO

    from worldline.cli.console import PlainConsole
    from worldline.lock.why.heard import WaitingTally

    with Operator(held.server.address) as operator:
        situation = operator.situation()
    sample = WaitingTally()
    sample.sample(situation, 2 * 10**9)  # type: ignore[arg-type]
    written = StringIO()
    console = PlainConsole(written)
    console.width = 100
    console.print(why_follow.page(situation, sample))  # type: ignore[arg-type]
    text = written.getvalue()
    assert "slow → waits  (x 5ms)" in text
    assert "100%" in text
    assert "advancing" in text


def test_pausing_stepping_and_going_on(worldline: Command, held: HeldRun) -> None:
    assert worldline("pause", "cell")[:2] == (0, "paused at 0s\n")
    held.go.set()
    assert worldline("step", "cell", "--by", "10ms")[:2] == (0, "at 10ms\n")
    assert "an operator holds all participants at 10ms" in worldline("why", "cell")[1]
    assert worldline("step", "cell")[:2] == (0, "at 20ms\n")
    assert worldline("step", "cell", "--to", "40ms")[:2] == (0, "at 40ms\n")
    code, _, errors = worldline("step", "cell", "--to", "30ms")
    assert (code, errors) == (2, "worldline: it is at 40ms already (time doesn't run backwards)\n")
    assert worldline("resume", "cell")[:2] == (0, "resumed\n")
    held.server.wait(PATIENCE_S)


def test_what_changes_a_run_that_wasnt_named_says_which_it_is(worldline: Command, held: HeldRun) -> None:
    assert worldline("pause") == (0, "paused at 0s\n", f"cell, process {os.getpid()}:\n")
    held.go.set()
    assert worldline("step", "--to", "20ms")[::2] == (0, f"cell, process {os.getpid()}:\n")
    assert worldline("resume") == (0, "resumed\n", f"cell, process {os.getpid()}:\n")
    held.server.wait(PATIENCE_S)


def test_a_step_that_somebody_doesnt_make_says_who(worldline: Command, held: HeldRun) -> None:
    code, output, errors = worldline("step", "cell", "--to", "40ms", "--wait", "0")
    assert code == 3
    assert "slow holds waits" in output
    assert errors == "worldline: not all participants were there within 0 seconds (they are on their way)\n"


def test_ending_in_good_order(worldline: Command, held: HeldRun) -> None:
    worldline("pause", "cell")
    held.go.set()
    assert worldline("step", "cell", "--to", "40ms")[0] == 0
    code, output, _ = worldline("end", "cell", "--at", "60ms")
    assert code == 0
    outcome = held.server.wait(PATIENCE_S)
    assert output == f"it ends at 60ms\nthe run is over, digest {outcome.digest.hex()}\n"
    assert outcome.now == 60 * MS


def test_breaking_off(worldline: Command) -> None:
    with Server(plan(["a"]), federation="lonely"):
        code, output, _ = worldline("end", "--now")
    assert (code, output) == (0, "the run was broken off: an operator ended the run\n")


# --- Mistakes ---


@pytest.mark.parametrize("command", ["why", "pause", "step", "resume", "end"])
def test_nothing_goes_on(worldline: Command, command: str) -> None:
    code, _, errors = worldline(command)
    assert (code, errors) == (
        2,
        "worldline: none of your runs is going on here (name another by its address)\n",
    )


def test_another_name(worldline: Command, held: HeldRun) -> None:
    code, _, errors = worldline("why", "sell")
    assert code == 2
    assert "no run is called 'sell'" in errors
    assert "cell" in errors


def test_two_runs_of_one_name(worldline: Command, held: HeldRun) -> None:
    with Server(plan(["a"]), federation="cell"):
        code, _, errors = worldline("why", "cell")
    assert code == 2
    assert "several runs are called 'cell'" in errors
    assert str(os.getpid()) in errors


def test_an_entry_whose_server_is_gone(worldline: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import msgspec

    from worldline.federation import operator
    from worldline.federation.peer_process import birth_of

    monkeypatch.setattr(operator, "_DIAL_S", 0.1)
    runtime_folder().mkdir(mode=0o700)
    process = os.getpid()
    entry = RunEntry(name="cell", address="unix:///nowhere", token=None, process=process, born=birth_of(process))
    (runtime_folder() / f"{process}-0.run").write_bytes(msgspec.json.encode(entry))
    code, _, errors = worldline("why")
    assert code == 3
    assert errors.startswith(f"worldline: cell (process {process}): nothing listens on unix:///nowhere")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("step", "--by", "1ms", "--to", "2ms"), "--by and --to contradict each other"),
        (("end", "--at", "1ms", "--now"), "--at and --now contradict each other"),
        (("why", "--follow", "--svg", "x.svg"), "--svg and --follow contradict each other"),
        (("why", "--at", "1ms"), "--at and --no-advice are for a run that was noted"),
        (("why", "run.mcap", "--follow"), "--follow is for a run that goes on"),
        (("why", "run.mcap"), "there is no file run.mcap"),
        (("why", "run.timing"), "run.timing can't be read: No such file or directory"),
    ],
)
def test_mistakes(worldline: Command, arguments: tuple[str, ...], said: str) -> None:
    code, _, errors = worldline(*arguments)
    assert code == 2
    assert said in errors


# --- A run that was noted ---


def note(path: Path, *, digest: bytes | None = b"\x01") -> None:
    made = cell()
    write(path, made, run(made, CELL).heard, digest=digest)


def write(path: Path, made: Plan, noted: Sequence[Heard], *, digest: bytes | None = b"\x01") -> None:
    walls = iter([0, *(each.wall for each in noted)])
    writer = TimingWriter(path, "cell", made, clock=lambda: next(walls))
    for each in noted:
        writer.hears(each.who, list(each.events))
    writer.close(digest)


def test_the_account_of_a_run_and_advice(worldline: Command, tmp_path: Path) -> None:
    note(tmp_path / "cell.timing")
    code, output, _ = worldline("why", "cell.timing")
    assert code == 0
    assert "together they waited" in output
    assert "camera → planner (images) 5ms → 25ms would remove 6" in output
    found = json.loads(worldline("why", "cell.timing", "--json")[1])
    assert found["advice"][0]["share"] > 0.6
    assert found["links"][0]["sender"] == "planner"
    assert "would remove" not in worldline("why", "cell.timing", "--no-advice")[1]


def test_what_is_advised_to_declare_holds_for_the_whole_run(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part that is played again doesn't show the alarm, and nobody who never waits."""
    monkeypatch.setattr(why_recorded, "HEARD_MAX", 12)
    made = plan(["a", "b", "idle"], network=Network(default=link("5ms")), until="1s")
    noted = [
        Heard(0, "a", (Join(("y",), (Subscription("alarm"),)),)),
        Heard(0, "b", (Join(("x", "alarm"), (Subscription("y"),)),)),
        Heard(0, "idle", (Join((), ()),)),
    ]
    for step in range(1, 12):
        now = step * 10 * MS
        noted += [
            Heard(step * 10 * MS, "a", (Advance(now),)),
            Heard(step * 10 * MS + MS, "b", (HeardSending("x", 0, now - 10 * MS), Advance(now))),
        ]
    noted += [Heard(200 * MS, "b", (HeardSending("alarm", 0, 110 * MS), Advance(123 * MS)))]
    write(tmp_path / "cell.timing", made, noted)
    found = json.loads(worldline("why", "cell.timing", "--json")[1])
    assert not [each["text"] for each in found["advice"] if not each["changes_results"]]
    assert worldline("why", "cell.timing", "--no-advice")[1].startswith("cell: 3 participants, 200 ms;")


def test_a_moment_of_it(worldline: Command, tmp_path: Path) -> None:
    note(tmp_path / "cell.timing")
    code, output, _ = worldline("why", "cell.timing", "--at", "500ms", "--svg", "then.svg")
    assert code == 0
    assert output.startswith("cell: at 500ms of 1s\n")
    assert "cell: at 500ms of 1s" in (tmp_path / "then.svg").read_text()


def test_moments_at_its_two_ends(worldline: Command, tmp_path: Path) -> None:
    note(tmp_path / "cell.timing")
    assert worldline("why", "cell.timing", "--at", "0s")[1].startswith("cell: at 0s of 1s\n")
    assert worldline("why", "cell.timing", "--at", "1s")[0] == 0
    code, _, errors = worldline("why", "cell.timing", "--at", "2s")
    assert (code, errors) == (2, "worldline: it never came to 2s (it ended at 1s: --at end)\n")


def test_a_timing_of_somebody_who_never_joined(worldline: Command, tmp_path: Path) -> None:
    write(tmp_path / "cell.timing", cell(), [Heard(0, "stranger", (Advance(5),)), Heard(1, "stranger", ())])
    code, _, errors = worldline("why", "cell.timing")
    assert code == 2
    assert "'stranger' says something, and never joined" in errors


def test_the_timing_is_looked_for_beside_the_recording(worldline: Command, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "cell.mcap", cell(), federation="cell")
    for name in CELL:
        recorder.began(name, 0)
        recorder.ended(name, 5, b"")
    recorder.close()
    code, _, errors = worldline("why", "cell.mcap")
    assert code == 2
    assert "run it again with --timing: the result is the same" in errors
    note(tmp_path / "cell.timing")
    code, output, errors = worldline("why", "cell.mcap", "--no-advice")
    assert code == 0
    assert "together they waited" in output
    assert "was noted in another run than cell.mcap: their digests differ" in errors


def test_a_run_that_was_killed_says_how_it_stood(worldline: Command, tmp_path: Path) -> None:
    made = plan(["a", "b"], network=Network(default=link("5ms")))
    noted = [
        Heard(0, "a", (Join((), (Subscription("x"),)),)),
        Heard(0, "b", (Join(("x",), ()),)),
        Heard(MS, "a", (Advance(20 * MS),)),
        Heard(9000 * MS, "b", (Advance(8 * MS),)),
    ]
    walls = iter([0, *(each.wall for each in noted)])
    writer = TimingWriter(tmp_path / "cell.timing", "cell", made, clock=lambda: next(walls))
    for each in noted:
        writer.hears(each.who, list(each.events))
    writer._flush()
    code, output, errors = worldline("why", "cell.timing")
    assert (code, errors) == (0, "")
    assert "the run wasn't over when this was noted; this is how it stood:" in output
    assert "b holds a: 1 participant waits for it, the longest for 9.0 s" in output
    writer.close()
    path = tmp_path / "cell.timing"
    path.write_bytes(path.read_bytes()[:-2])
    assert worldline("why", "cell.timing")[2] == "warning: cell.timing is cut off, or just being written\n"


# --- From the beginning to the advice ---


PROGRAMS = """
def source(self):
    for _ in range(40):
        self.advance(by="1ms")
        if self.now % 10_000_000 == 0:
            self.publish("news", b"")

def reader(self):
    for _ in range(4):
        self.advance(by="10ms")
"""
FILE = """
name = "news"
[link]
latency = "1ms"
[[participants]]
name = "source"
entry = "programs:source"
publishes = ["news"]
[[participants]]
name = "reader"
entry = "programs:reader"
publishes = []
subscribes = ["news"]
"""


def test_a_run_notes_its_timing_and_its_recording_stays_the_same(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "programs.py").write_text(PROGRAMS)
    (tmp_path / "news.toml").write_text(FILE)
    shared = ("--executor", "workers(1)")
    assert worldline("run", "news.toml", "--record", "plain.mcap", *shared)[0] == 0
    assert not (tmp_path / "plain.timing").exists()
    assert worldline("run", "news.toml", "--timing", "--patience", "5", *shared)[0] == 0
    assert (tmp_path / "news.mcap").read_bytes() == (tmp_path / "plain.mcap").read_bytes()
    code, output, errors = worldline("why", "news.mcap")
    assert (code, errors) == (0, "")
    assert "source → reader  (news 1ms)" in output
    assert "was noted in another run" not in errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "news.toml", "--timing", "--executor", "in-process"), "--timing needs processes"),
        (("run", "raft", "--timing"), "--timing is for federations"),
        (("run", "raft", "--patience", "5"), "--patience is for federations"),
    ],
)
def test_a_timing_is_refused_where_nobody_waits(
    worldline: Command, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "programs.py").write_text(PROGRAMS)
    (tmp_path / "news.toml").write_text(FILE)
    code, _, errors = worldline(*arguments)
    assert code == 2
    assert said in errors
