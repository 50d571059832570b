"""`worldline diff`: recordings and targets, what it prints, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.descendants import family_of
from tests.leaks.running import command_of
from tests.test_docs import ROOT
from worldline.cli.diff import diff as diff_command
from worldline.model import UsageError, plan
from worldline.recording import Recorder
from worldline.targets import RunOptions

KERNEL = """
from worldline.kernel import Entity, Simulation

class Counter(Entity):
    def __init__(self, step):
        self.step = step

    def start(self):
        for number in range(5):
            yield "1ms"
            self.send("ledger", "count", number * (self.step if number > 2 else 1), delay="1ms")

class Ledger(Entity):
    def on_count(self, number):
        if number > 3:
            self.send("archive", "large", number, delay="2ms")

class Archive(Entity):
    def on_large(self, number):
        pass

def model(*, step: int = 1, fails: bool = False, seed: int = 0):
    simulation = Simulation(seed=seed)
    simulation.add("counter", Counter("x" if fails else step))
    simulation.add("ledger", Ledger())
    simulation.add("archive", Archive())
    return simulation
"""


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def diff(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Done]:
    """The command, in this process; what it compares has processes of its own."""
    monkeypatch.chdir(tmp_path)
    worldline = command_of(monkeypatch, capsys)
    return lambda *arguments: Done(*worldline("diff", *arguments))


def record(path: Path, payload: bytes = b"1") -> Path:
    recorder = Recorder(path, plan(["ann"]))
    recorder.began("ann", 0)
    recorder.noted("ann", "note", 5, payload)
    recorder.ended("ann", 10, b"")
    recorder.close()
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "counting.py"
    path.write_text(KERNEL)
    return path


def test_a_recording_against_itself(diff: Callable[..., Done], tmp_path: Path) -> None:
    path = record(tmp_path / "a.mcap")
    done = diff("a.mcap", "a.mcap")
    assert (done.returncode, done.stdout, done.stderr) == (0, "A  a.mcap\nB  a.mcap\nno difference\n", "")
    assert json.loads(diff(path, path, "--json").stdout)["same"] is True


def test_names_in_a_recording_cant_pass_for_lines_of_ours(diff: Callable[..., Done], tmp_path: Path) -> None:
    a, b = record(tmp_path / "a.mcap", b'"\x1b[2J\x85"'), record(tmp_path / "b.mcap", b'"x\xe2\x80\xa8no difference"')
    done = diff(a, b)
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert "\u2028" not in done.stdout + diff(a, b, "--json").stdout


def test_two_runs_of_a_kernel_model_with_other_parameters(
    diff: Callable[..., Done], model: Path, tmp_path: Path
) -> None:
    done = diff("counting.py", "--set-b", "step=4", "--to", "archive")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[2:8] == [
        "the headers differ:",
        '  settings.step: its default → "4"',
        "first differences, of 3 members:",
        "  4ms  counter  sends count                  payload: 3 → 12",
        "  5ms  ledger   receives count from counter  payload: 3 → 12",
        "  7ms  archive  receives large from ledger   at 8ms in A, at 7ms in B: payload: 4 → 12",
    ]
    assert [line.split()[:2] for line in done.stdout.partition("from there to archive:\n")[2].splitlines()] == [
        ["4ms", "counter"],
        ["5ms", "ledger"],
        ["5ms", "ledger"],
        ["7ms", "archive"],
    ]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".mcap"] == []  # Nothing is left.


def test_a_target_against_a_recording(diff: Callable[..., Done], model: Path, tmp_path: Path) -> None:
    ran = [sys.executable, "-m", "worldline", "run", str(model), "--record", "run.mcap"]
    subprocess.run(ran, cwd=tmp_path, check=True, capture_output=True)
    assert diff("run.mcap", "counting.py", "--executor-b", "processes(2)").returncode == 0
    assert diff("run.mcap", "counting.py", "--set-b", "step=2").returncode == 1


def test_a_run_that_fails_is_compared_as_far_as_it_came(diff: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "cell.py").write_text(
        "def talk(self):\n"
        "    while not self.ended:\n"
        "        if self.now > 5_000_000:\n"
        "            raise ValueError('enough')\n"
        "        self.publish('x', b'1')\n"
        "        self.advance(by='1ms')\n"
    )
    for name, end in (("short", "4ms"), ("long", "9ms")):
        (tmp_path / f"{name}.toml").write_text(
            f'name = "cell"\nuntil = "{end}"\n[link]\nlatency = "1ms"\n'
            '[[participants]]\nname = "ann"\nentry = "cell:talk"\npublishes = ["x"]\n'
        )
    done = diff("short.toml", "long.toml", "--executor", "in-process")
    assert done.returncode == 1
    assert "B is broken off: ann at 6ms: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"a": "a.mcap"}, "a recording is compared with another"),
        ({"a": "counting.py"}, "nothing says how the two runs are to differ"),
        (
            {"a": "a.mcap", "b": "counting.py", "of_a": RunOptions(seed=1)},
            "A is a recording, and can't be run with --seed 1",
        ),
        (
            {"a": "a.mcap", "b": "a.mcap", "both": RunOptions(until="1s")},
            "both are recordings, and can't be run with --until 1s",
        ),
        ({"a": "a.mcap", "b": "nothing.mcap"}, r"there is no file nothing\.mcap"),
    ],
)
def test_what_cant_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "a.mcap")
    with pytest.raises(UsageError, match=words):
        diff_command(**{**dict.fromkeys(("both", "of_a", "of_b"), RunOptions()), **arguments})


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_name_that_isnt_there_is_no_matter_where_nothing_differs(
    diff: Callable[..., Done], tmp_path: Path, form: tuple[str, ...]
) -> None:
    same, other = record(tmp_path / "a.mcap"), record(tmp_path / "b.mcap", b"2")
    assert diff(same, same, "--to", "nobody", *form).returncode == 0
    done = diff(same, other, "--to", "nobody", *form)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'nobody' doesn't differ" in done.stderr


@pytest.mark.long
def test_runs_and_their_recordings_end_with_the_command(tmp_path: Path) -> None:
    fifo, file, folder = tmp_path / "fifo", tmp_path / "hangs.py", tmp_path / "temporary"
    os.mkfifo(fifo)
    folder.mkdir()
    file.write_text(
        "import signal\n"
        "def model(*, fifo=''):\n"
        "    with open(fifo, 'w') as told:\n"
        "        print('here', file=told, flush=True)\n"
        "        signal.pause()\n"
    )
    command = ("env", f"TMPDIR={folder}", sys.executable, "-m", "worldline", "diff", str(file), str(file))
    with family_of(*command, "--set", f"fifo={fifo}") as everybody, fifo.open() as told:
        assert told.readline() == "here\n"
        assert any(path.name.startswith("worldline-diff-") for path in folder.iterdir())
        everybody.program.send_signal(signal.SIGTERM)
        assert told.read() in ("", "here\n")  # Whoever could write is gone; perhaps the other was there already.
        assert everybody.stderr() == "worldline: interrupted by SIGTERM\n"
        assert everybody.program.returncode == 130
    assert list(folder.iterdir()) == []


def test_a_target_that_cant_be_run_ends_as_run_does(diff: Callable[..., Done], model: Path, tmp_path: Path) -> None:
    record(tmp_path / "a.mcap")
    done = diff("a.mcap", "counting.py:other")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("worldline: ")
    assert "other" in done.stderr


def test_the_belt_of_the_robot_cell_goes_faster(diff: Callable[..., Done], tmp_path: Path) -> None:
    """The cause is the camera's first picture that shows it, not what the arm makes of it much later."""
    for name in ("before", "after"):
        shutil.copytree(ROOT / "examples" / "robot_cell", tmp_path / name)
    program = tmp_path / "after" / "robot_cell.py"
    slow = "return parts + 1, BELT_MM_PER_S * since / SECOND"
    fast = "return parts + 1, (BELT_MM_PER_S if time < 400 * MS else 260.0) * since / SECOND"
    assert slow in program.read_text()
    program.write_text(program.read_text().replace(slow, fast))
    targets = "before/robot_cell.toml", "after/robot_cell.toml"
    done = diff(*targets, "--executor", "in-process", "--to", "arm")
    assert (done.returncode, done.stderr) == (1, "")
    assert "\nfirst cause: camera at 420ms, sends image\n" in done.stdout
    assert [line.split()[1] for line in done.stdout.partition("from there to arm:\n")[2].splitlines()] == [
        *("camera", "planner", "planner", "arm")
    ]
    assert done.stdout in (ROOT / "docs" / "diff.md").read_text()


NUMBERED = """
from worldline import Federation, Network, Program, link


def model(extra: int = 0, tells: bool = False):
    def sender(self):
        for step in range(3):
            if step == 1 and extra:
                self.publish("aside", b"x")
            self.publish("news", b"n")
            self.advance(by="10ms")

    def receiver(self):
        for message in self.messages(until="100ms"):
            self.publish("echo", str(message.sequence).encode() if tells else b"same")

    programs = {"sender": Program(sender), "receiver": Program(receiver, subscribes=["news"])}
    return Federation(programs, network=Network(default=link("5ms")))
"""


@pytest.mark.long
def test_other_numbers_of_what_was_received_are_no_cause_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    worldline = command_of(monkeypatch, capsys)
    Path("numbered.py").write_text(NUMBERED)
    code, shown, _ = worldline("diff", "numbered.py", "--set-b", "extra=1")
    assert code == 1
    assert "\nonly the numbers that senders gave to messages differ: receiver\n" in shown
    assert "isn't recorded" not in shown
    shown = worldline("diff", "numbered.py", "--set", "tells=true", "--set-b", "extra=1")[1]
    assert "\nfirst cause: sender at 10ms, sends aside\n" in shown
    assert shown.endswith("receiver had received messages with other numbers from sender: perhaps that is why\n")
