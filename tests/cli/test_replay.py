"""`worldline replay`: recordings played, and members run again, on their own or with the whole model."""

from __future__ import annotations

import io
import json
import shlex
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.cli.conftest import Command
from worldline.cli import replay as replay_show
from worldline.model.errors import UsageError
from worldline.recording import Recording
from worldline.targets.recorded import ready_as_recorded, target_of

TOML = """
name = "belt"
seed = 4
until = "50ms"

[link]
latency = "uniform(1ms, 2ms)"

[[participants]]
name = "camera"
entry = "belt:camera"
publishes = ["image"]
subscribes = ["ack"]

[[participants]]
name = "planner"
entry = "belt:planner"
publishes = ["ack"]
subscribes = ["image"]
"""

PYTHON = """
from worldline import payload

def camera(me):
    while True:
        me.advance(by="10ms")
        mm = me.random.randrange(100)
        me.log(f"sees {mm}")
        me.publish("image", payload.to_json({"mm": mm, "part": {"number": me.now // 10_000_000}}))

def planner(me):
    seen = 0
    for message in me.messages():
        seen += 1
        print("image", seen)
        speed = 250
        me.publish("ack", payload.to_json({"seen": seen, "speed": speed}))
"""

KERNEL = """
from worldline.kernel import Entity, Simulation
from worldline.model import Network, link

class Counter(Entity):
    def start(self):
        for number in range(5):
            yield "2ms"
            doubled = number * 2
            self.send("ledger", "count", doubled)

class Ledger(Entity):
    def on_count(self, number):
        self.log(f"has {number}")
        if number > 3:
            self.send("archive", "large", number)

class Archive(Entity):
    def on_large(self, number):
        pass

def model(*, seed=0, limit=0):
    simulation = Simulation(seed=seed, network=Network(default=link("1ms")))
    for name, kind in (("counter", Counter), ("ledger", Ledger), ("archive", Archive)):
        simulation.add(name, kind())
    return simulation
"""


@pytest.fixture
def belt(worldline: Command, tmp_path: Path) -> Command:
    """Record a federation; what it is made of is in the folder `then`."""
    (tmp_path / "then").mkdir()
    (tmp_path / "then" / "belt.toml").write_text(TOML)
    (tmp_path / "then" / "belt.py").write_text(PYTHON)
    code, _, errors = worldline("run", "then/belt.toml", "--executor", "in-process", "--record", "then/run.mcap", "-q")
    assert (code, errors) == (0, "")
    return worldline


def edit(tmp_path: Path, old: str, new: str, *, file: str = "belt.py", folder: str = "now") -> None:
    """Make another folder with the code, changed: modules of the same folder would stay loaded in this process."""
    shutil.copytree(tmp_path / "then", tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / folder / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


# --- Participants alone ---


def test_one_alone_does_what_it_did(belt: Command) -> None:
    code, output, errors = belt("replay", "then/run.mcap", "--only", "planner")
    assert (code, errors) == (0, "")
    assert output.splitlines() == [
        *(f"image {number}" for number in range(1, 5)),
        "planner: the same up to its end at 50ms, 4 messages",
    ]


def test_several_and_all(belt: Command) -> None:
    both = [
        "camera: the same up to its end at 50ms, 5 messages",
        "planner: the same up to its end at 50ms, 4 messages",
    ]
    code, output, _ = belt("replay", "then/run.mcap", "--only", "camera", "--only", "planner", "--quiet")
    assert (code, output.splitlines()) == (0, both)
    code, output, _ = belt("replay", "then/run.mcap", "--until-differs")
    assert (code, output.splitlines()) == (0, both)


def test_an_edit_shows_at_its_first_message_field_by_field(belt: Command, tmp_path: Path) -> None:
    edit(tmp_path, "speed = 250", "speed = 250 if seen < 3 else 260")
    code, output, errors = belt("replay", "then/run.mcap", "--until-differs", "--target", "now/belt.toml")
    assert (code, errors) == (1, "changed since it was recorded: belt.py\n")
    assert output.splitlines()[0] == "first difference:"
    first = output.splitlines()[1].strip()
    assert first.startswith("planner at 31.")
    assert first.endswith(", message 2: sends ack")
    assert [line.strip() for line in output.splitlines()[2:]] == [
        'before: {"seen":3,"speed":250}',
        'now:    {"seen":3,"speed":260}',
        "speed: 250 → 260",
    ]


def test_a_program_is_given_what_was_recorded_though_another_was_edited(belt: Command, tmp_path: Path) -> None:
    edit(tmp_path, '"mm": mm,', '"mm": -1,')
    assert belt("replay", "then/run.mcap", "--only", "planner", "--target", "now/belt.toml", "-q")[0] == 0
    code, output, _ = belt("replay", "then/run.mcap", "--until-differs", "--target", "now/belt.toml")
    assert code == 1
    assert "camera at 10ms, message 0: sends image" in output
    assert "planner" not in output


def test_as_json(belt: Command, tmp_path: Path) -> None:
    edit(tmp_path, "speed = 250", "speed = 251")
    code, output, errors = belt("replay", "then/run.mcap", "--only", "planner", "--target", "now/belt.toml", "--json")
    assert code == 1
    assert "image 1" in errors
    found = json.loads(output)
    assert found["same"] is False
    assert found["members"][0]["name"] == "planner"
    assert found["differences"][0]["message"] == 0
    assert found["differences"][0]["fields"] == [{"path": "speed", "a": 250, "b": 251}]


def test_it_goes_on_if_that_is_wanted(belt: Command, tmp_path: Path) -> None:
    edit(tmp_path, "speed = 250", "speed = 251")
    code, output, _ = belt("replay", "then/run.mcap", "--only", "planner", "--target", "now/belt.toml", "--go-on")
    assert code == 1
    assert "image 4\nplanner: compared up to 50ms, 4 messages, then 5 differences\n" in output


def test_under_pdb_it_stops_at_its_first_line_and_where_it_differs(
    belt: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(tmp_path, "speed = 250", "speed = 250 if seen < 3 else 260")
    monkeypatch.setattr("sys.stdin", io.StringIO("p me.name\ncontinue\np seen, speed\ncontinue\n"))
    code, output, _ = belt("replay", "then/run.mcap", "--only", "planner", "--target", "now/belt.toml", "--pdb")
    assert code == 1
    assert "-> seen = 0\n(Pdb) 'planner'\n(Pdb) image 1\n" in output
    assert "message 2: sends ack" in output
    assert "(Pdb) (3, 260)\n" in output
    assert "image 4" not in output


def test_pdb_can_be_quit_and_shows_where_a_program_fails(
    belt: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    code, _, errors = belt("replay", "then/run.mcap", "--only", "planner", "--pdb")
    assert (code, errors) == (130, "worldline: planner at 0s: the debugger was quit\n")
    edit(tmp_path, "speed = 250", "speed = 250 // (seen != 3)")
    monkeypatch.setattr("sys.stdin", io.StringIO("continue\np seen\ncontinue\n"))
    code, output, _ = belt("replay", "then/run.mcap", "--only", "planner", "--target", "now/belt.toml", "--pdb")
    assert code == 1
    assert "planner fails: ZeroDivisionError: " in output
    assert "(Pdb) 3\n" in output
    assert "  planner at 31." in output
    assert "    now:    raises ZeroDivisionError: " in output


def test_the_speed_of_one_alone(belt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(replay_show.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(replay_show.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    assert belt("replay", "then/run.mcap", "--only", "camera", "--speed", "0.5", "-q")[0] == 0
    assert clock[0] == pytest.approx(0.1)


def test_one_that_fails_differs_and_others_are_run_all_the_same(belt: Command, tmp_path: Path) -> None:
    edit(tmp_path, 'me.log(f"sees {mm}")', 'raise SystemExit("enough")')
    code, output, _ = belt("replay", "then/run.mcap", "--until-differs", "--target", "now/belt.toml", "--json")
    assert code == 1
    found = json.loads(output)
    assert [each["name"] for each in found["members"]] == ["camera", "planner"]
    assert [each["member"] for each in found["differences"]] == ["camera"]
    assert found["differences"][0]["now"]["verb"].startswith("raises SystemExit: enough, in belt.py, line ")


# --- Whole models ---


@pytest.mark.parametrize(
    ("target", "member", "end"),
    [("counting.py", "ledger", "12ms"), ("raft", "2", "10s"), ("spacetime:relay", "runner-1", "100s")],
)
def test_an_entity_a_node_and_an_agent(worldline: Command, tmp_path: Path, target: str, member: str, end: str) -> None:
    if target == "counting.py":
        (tmp_path / target).write_text(KERNEL)
    assert worldline("run", target, "--record", "run.mcap", "-q")[0] == 0
    code, output, errors = worldline("replay", "run.mcap", "--only", member)
    assert (code, errors) == (0, "")
    assert output.splitlines()[-1].startswith(f"{member}: the same up to its end at {end}, ")
    for option in (("--speed", "2"), ("--go-on",)):
        code, _, errors = worldline("replay", "run.mcap", "--only", member, *option)
        assert code == 2
        assert f"{option[0]} is for participants" in errors


def test_a_model_fails_as_it_did(worldline: Command, tmp_path: Path) -> None:
    fails = KERNEL.replace("doubled = number * 2", "doubled = number * 2 if number < 4 else None.real")
    (tmp_path / "counting.py").write_text(fails)
    code, _, failure = worldline("run", "counting.py", "--record", "run.mcap", "-q")
    assert code == 1
    for option in (("--only", "ledger"), ("--until-differs",)):
        code, output, errors = worldline("replay", "run.mcap", *option)
        assert (code, errors) == (0, "")
        *_, ledger, then = output.splitlines()
        assert ledger.startswith("ledger: the same up to where the recording ends at 10ms, ")
        assert then == failure.splitlines()[-1].replace("worldline: ", "then the run fails, as it did: ")


def test_an_edited_entity(worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "then").mkdir()
    (tmp_path / "then" / "counting.py").write_text(KERNEL)
    options = ("--seed", "9", "--until", "9ms", "--set", "limit=3")
    assert worldline("run", "then/counting.py", *options, "--record", "run.mcap", "-q")[0] == 0
    edit(tmp_path, "doubled = number * 2", "doubled = number * 2 + number // 3", file="counting.py")
    command = ("replay", "run.mcap", "--target", "now/counting.py", "--set", "limit=3")
    code, output, _ = worldline(*command, "--until-differs")
    assert code == 1
    assert "counter at 8ms, message 3: sends count\n" in output
    code, output, _ = worldline(*command, "--only", "ledger")
    assert code == 1
    assert output.splitlines()[0] == "ledger: the same until counter differs at 8ms, 1 message"
    assert output.splitlines()[-1].startswith("counter differs first")
    monkeypatch.setattr("sys.stdin", io.StringIO("p number, doubled\nc\n"))
    code, output, _ = worldline(*command, "--only", "counter", "--pdb")
    assert code == 1
    assert "(Pdb) (3, 7)\n" in output


def test_a_recording_of_nodes_names_a_target_if_run_could_say_as_much(worldline: Command) -> None:
    assert worldline("nodes", "raft", "--until", "1s", "-q", "--record", "plain.mcap")[0] == 0
    assert worldline("replay", "plain.mcap", "--only", "2", "-q")[0] == 0
    options = ("--topology", "clique:3", "--until", "1s", "-q", "--record", "other.mcap")
    assert worldline("nodes", "raft", *options)[0] == 0
    code, _, errors = worldline("replay", "other.mcap", "--only", "2")
    assert (code, errors) == (2, "worldline: other.mcap doesn't say what was run (name it: --target FILE)\n")


def test_a_plan_that_isnt_the_recorded_one_is_warned_of(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "then").mkdir()
    (tmp_path / "then" / "counting.py").write_text(KERNEL)
    assert worldline("run", "then/counting.py", "--record", "run.mcap", "-q")[0] == 0
    edit(tmp_path, 'link("1ms")', 'link("2ms")', file="counting.py")
    _, _, errors = worldline("replay", "run.mcap", "--target", "now/counting.py", "--until-differs")
    assert "warning: the plan isn't the recorded one: network.default.latency" in errors


# --- What can't be equal ---


def test_another_machine_and_other_versions_are_warned_of(belt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.targets.recorded.float_fingerprint", lambda: "another")
    monkeypatch.setattr("worldline.targets.recorded.python_name", lambda: "CPython 9.9")
    code, _, errors = belt("replay", "then/run.mcap", "--only", "planner", "-q")
    assert code == 0
    first, second = errors.splitlines()
    assert first.startswith("warning: it was recorded with CPython 3.")
    assert first.endswith("and this is CPython 9.9")
    assert second == "warning: floats are computed differently on this machine, so their last places may differ"


def test_info_shows_which_code_was_run(belt: Command) -> None:
    _, output, _ = belt("info", "then/run.mcap")
    lines = [" ".join(line.split()) for line in output.splitlines()]
    assert "target belt.toml" in lines
    assert f"code belt.py {Recording(Path('then/run.mcap')).header.code['belt.py']}" in lines


# --- Bad input ---


def test_names_that_arent_there(belt: Command, tmp_path: Path) -> None:
    code, _, errors = belt("replay", "then/run.mcap", "--only", "planer")
    assert (code, errors) == (2, "worldline: then/run.mcap: 'planer' isn't in it (did you mean 'planner'?)\n")
    edit(tmp_path, 'name = "planner"', 'name = "thinker"', file="belt.toml")
    code, _, errors = belt("replay", "then/run.mcap", "--only", "planner", "--target", "now/belt.toml")
    assert code == 2
    assert errors.startswith("worldline: now/belt.toml has no participant 'planner' any more (")
    edit(tmp_path, "def planner", "def thinker", folder="later")
    code, _, errors = belt("replay", "then/run.mcap", "--only", "planner", "--target", "later/belt.toml")
    assert code == 2
    assert "later/belt.toml has the participant planner, but belt has no planner" in errors


def test_participants_that_arent_python(belt: Command, tmp_path: Path) -> None:
    edit(tmp_path, 'entry = "belt:planner"', 'command = ["planner"]', file="belt.toml")
    code, _, errors = belt("replay", "then/run.mcap", "--only", "planner", "--target", "now/belt.toml")
    assert code == 2
    assert "planner has no Python entry point in now/belt.toml" in errors
    assert belt("replay", "then/run.mcap", "--only", "camera", "--target", "now/belt.toml", "-q")[0] == 0


def test_targets_are_found_below_also_if_they_were_changed(belt: Command, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "then" / "run.mcap", tmp_path / "alone.mcap")
    assert belt("replay", "alone.mcap", "--only", "planner", "-q")[0] == 0
    edit(tmp_path, "250", "251")
    (tmp_path / "then").rename(tmp_path / ".then")
    code, output, errors = belt("replay", "alone.mcap", "--only", "planner", "-q")
    assert (code, errors) == (1, "changed since it was recorded: belt.py\n")
    assert "speed: 250 → 251" in output


def test_targets_that_are_in_several_places_or_nowhere(belt: Command, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "then" / "run.mcap", tmp_path / "alone.mcap")
    edit(tmp_path, "250", "251")
    assert belt("replay", "alone.mcap", "--only", "planner", "-q")[0] == 0  # One of the two is as it was.
    edit(tmp_path, "250", "252", folder="later")
    (tmp_path / "then").rename(tmp_path / ".then")
    code, _, errors = belt("replay", "alone.mcap", "--only", "planner")
    problem = "alone.mcap is of 'belt.toml', which could be any of later/belt.toml, now/belt.toml"
    assert (code, errors) == (2, f"worldline: {problem} (choose one: --target PATH)\n")
    for folder in ("now", "later"):
        (tmp_path / folder).rename(tmp_path / f".{folder}")
    code, _, errors = belt("replay", "alone.mcap", "--only", "planner")
    problem = "alone.mcap is of 'belt.toml', which is neither here nor next to it"
    assert (code, errors) == (2, f"worldline: {problem} (say where it is: --target PATH)\n")


def test_files_that_were_altered_or_cut_off_or_are_something_else(belt: Command, tmp_path: Path) -> None:
    path = tmp_path / "then" / "run.mcap"
    whole = path.read_bytes()
    chunk = Recording(path).scan.chunks[0]
    place = chunk.offset + chunk.length // 2
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    for options in ((), ("--only", "planner"), ("--until-differs",)):
        code, _, errors = belt("replay", "then/run.mcap", *options)
        assert code == 2
        assert "then/run.mcap was altered: " in errors
        assert f"the chunk at byte {chunk.offset:,} is damaged" in errors
    path.write_bytes(whole[: len(whole) * 2 // 3])
    code, output, errors = belt("replay", "then/run.mcap", "--only", "planner", "-q")
    assert errors.startswith("warning: then/run.mcap is cut off: ")
    assert (code, output.partition(" at ")[0]) == (0, "planner: the same up to where the recording ends")
    path.write_bytes(b"nothing")
    assert belt("replay", "then/run.mcap")[0] == 2
    assert belt("replay", "gone.mcap")[0] == 2


def test_options_that_dont_go_together(belt: Command) -> None:
    for options, problem in (
        (("--pdb",), "--pdb is for running members again"),
        (("--only", "camera", "--topic", "image"), "--topic is for playing a recording"),
        (("--only", "camera", "--start", "1s"), "--start is for playing a recording"),
        (("--until-differs", "--target", "raft"), "raft has none of the members of then/run.mcap"),
        (("--speed", "fast"), "'fast' isn't a speed"),
        (("--topic", "imag"), "has no topic 'imag' (did you mean 'image'?)"),
    ):
        code, _, errors = belt("replay", "then/run.mcap", *options)
        assert code == 2
        assert problem in errors


# --- Playing ---


def test_everything_is_shown_when_it_arrives_at_the_speed_that_is_wanted(
    belt: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, slept = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(replay_show.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(replay_show.time, "sleep", sleep)
    code, output, _ = belt("replay", "then/run.mcap", "--speed", "2", "--topic", "image")
    assert code == 0
    lines = output.splitlines()
    assert len(lines) == 5
    assert "camera → planner  image  " in lines[0]
    assert "camera → planner  still under way at the end: image  " in lines[-1]
    assert clock[0] == pytest.approx(0.025, abs=1e-9)
    times = [float(line.split()[0].removesuffix("ms")) for line in lines]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("at", "subscribes", "line"),
    [
        ("49ms", '"image"', "camera → no participant before the end  image  1"),  # Nothing shows who listened.
        ("49ms", "", "camera → no participant before the end  image  1"),
        ("10ms", "", "camera → no participant  image  1"),
    ],
)
def test_what_reached_none_as_no_other_on_its_topic_did(
    worldline: Command, tmp_path: Path, at: str, subscribes: str, line: str
) -> None:
    (tmp_path / "belt.toml").write_text(TOML.replace('subscribes = ["image"]', f"subscribes = [{subscribes}]"))
    camera = f'def camera(me):\n    me.advance(to="{at}")\n    me.publish("image", b"1")\n'
    (tmp_path / "belt.py").write_text(f"{camera}\ndef planner(me):\n    me.advance(to='50ms')\n")
    assert worldline("run", "belt.toml", "--record", "run.mcap", "--executor", "in-process")[0] == 0
    code, output, _ = worldline("replay", "run.mcap", "--speed", "max")
    assert (code, output.split(maxsplit=1)[1]) == (0, f"{line}\n")


def test_what_arrives_is_shown_before_what_its_receiver_does_then() -> None:
    lines: list[str] = []
    shown = replay_show.MessageLines(lines.append)
    shown.sent("b", 0, "x", 2, b"1", 7)
    shown.arrives("b", 0, "a", 7, 0, None)
    shown.noted("a", "worldline/log", 7, b'{"text":"heard x"}')
    shown.sent("a", 0, "y", 7, b"2", 7)
    shown.noted("a", "worldline/log", 7, b'{"text":"said y"}')
    shown.passed(8)
    what = ["b → a  x  1", 'a logs  {"text":"heard x"}', "a → no participant  y  2", 'a logs  {"text":"said y"}']
    assert [line.split(maxsplit=1)[1] for line in lines] == what


def test_a_part_of_it_as_fast_as_it_can_be_told(belt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_show.time, "sleep", lambda _: pytest.fail("it waits"))
    _, whole, _ = belt("replay", "then/run.mcap", "--speed", "max")
    _, part, _ = belt("replay", "then/run.mcap", "--speed", "max", "--start", "20ms", "--until", "35ms")
    lines = [line for line in whole.splitlines() if 20 <= float(line.split()[0].removesuffix("ms")) < 35]
    assert part.splitlines() == lines
    assert any("camera logs" in line for line in lines)


def test_a_speed_at_which_nothing_ever_comes_is_waited_for_as_long_as_one_can(
    belt: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(replay_show.time, "sleep", slept.append)  # type: ignore[attr-defined]
    assert belt("replay", "then/run.mcap", "--speed", "1e-300", "-q")[0] == 0
    assert max(slept) <= threading.TIMEOUT_MAX


def test_a_recording_chooses_no_folder_and_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is data, and may come from a stranger."""
    evil = tmp_path / "evil"
    evil.mkdir()
    for folder in (tmp_path, evil):
        (folder / "cell.toml").write_text("")
    monkeypatch.chdir(tmp_path)

    def recording(target: str, *settings: str) -> Recording:
        header = SimpleNamespace(target=target, code={}, settings=settings)
        return cast("Recording", SimpleNamespace(path=evil / "it.mcap", header=header))

    for named in (str(evil / "cell.toml"), "evil/cell.toml", "../cell.toml", "cell.toml"):
        assert Path(target_of(recording(named), None)) == Path("cell.toml")
    for setting in (
        "participants.arm.entry=os:abort",
        "participants.arm.directory=evil",
        "participants.arm.command=rm",
        "participants.arm={name='arm', entry='os:abort'}",
        'participants.arm."entry"=os:abort',
        "participants[1].environment.PATH=evil",
        " 'participants'.arm.period=1ms",
        '"participants" = [{name = "arm", entry = "os:abort"}]',
        "topics.t.type=evil:Kind",
        "lcm.public=['udpm://239.0.0.1:1']",
        "nothing that is known=1",
        "no change at all",
    ):
        with pytest.raises(UsageError, match="a recording chooses neither code nor its arguments") as caught:
            ready_as_recorded(recording("cell.toml", "link.loss=0.1", setting), "cell.toml", members=["arm"])
        command = ["worldline", "replay", str(evil / "it.mcap"), "--only", "arm", "--target", "cell.toml"]
        assert caught.value.advice == f"if you trust it: {shlex.join([*command, '--set', setting])}"
        with pytest.raises(UsageError, match=r"wasn't made with --set seed=3"):
            ready_as_recorded(recording("cell.toml", setting), "cell.toml", (setting, "seed=3"))


def test_settings_of_the_run_alone_need_not_be_named(belt: Command, tmp_path: Path) -> None:
    settings = ("--set", "link.loss=0.5", "--set", "'control_latency'=2ms", "--set", "buffers.image=mailbox")
    run = ("run", "then/belt.toml", "--executor", "in-process", "--record", "then/other.mcap", "-q")
    assert belt(*run, *settings)[0] == 0
    assert belt("replay", "then/other.mcap", "--until-differs")[0] == 0
    assert belt(*run, *settings, "--set", "participants.camera.period=10ms")[0] == 0
    code, _, errors = belt("replay", "then/other.mcap", "--until-differs")
    assert code == 2
    command = "worldline replay then/other.mcap --until-differs --set participants.camera.period=10ms"
    assert errors.endswith(f"(if you trust it: {command})\n")
    assert belt(*command.split()[1:])[0] == 0


TOOL = """
from pathlib import Path
from worldline.federation.participant.program import Federation, Program

def wipe(*, where="nothing"):
    Path("wiped").write_text(where)
    return Federation({"a": Program(run=lambda me: me.publish("t", b""))})

def model(*, where="nothing"):
    return wipe(where=where)
"""


@pytest.mark.parametrize(
    ("target", "settings", "named"),
    [
        ("tool.py:wipe", "--set where=/home", "--target tool.py:wipe --set where=/home"),
        ("tool.py:wipe", "", "--target tool.py:wipe"),
        ("tool.py", "--set where=/home", "--set where=/home"),
        ("tool.py:model", "", ""),
        ("tool.py", "", ""),
    ],
)
def test_a_recording_chooses_no_function_and_no_arguments(
    worldline: Command, tmp_path: Path, target: str, settings: str, named: str
) -> None:
    (tmp_path / "tool.py").write_text(TOOL)
    assert worldline("run", target, *settings.split(), "--record", "r.mcap", "-q")[0] == 0
    wiped = tmp_path / "wiped"
    wiped.unlink()
    code, _, errors = worldline("replay", "r.mcap", "--only", "a")
    assert (code, wiped.exists()) == ((2, False) if named else (0, True))
    if named:
        command = f"worldline replay r.mcap --only a {named}"
        assert errors.endswith(f"(if you trust it: {command})\n")
        assert worldline(*command.split()[1:])[0] == 0
        assert wiped.read_text() == ("/home" if settings else "nothing")
