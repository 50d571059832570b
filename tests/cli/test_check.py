"""The `worldline` command: its words, and its exit codes, which tell who has to act."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.federation.transports import PATIENCE_S
from worldline.cli import console as bar
from worldline.federation.inprocess import run as inprocess
from worldline.model import InternalError, LossError, ModelError, PeerError, Stuck, UsageError, WorldlineError

CLEAN = """
from worldline import Federation, Program
model = Federation({"a": Program(run=lambda self: print("hello"))})
def made():
    return model
"""
TWO = """
from worldline import Federation, Program
def step(self):
    for _ in range(3):
        self.publish("t", b"")
        self.advance(by="1ms")
model = Federation({name: Program(run=step, subscribes=["t"]) for name in "abc"})
"""
INVITES = """
from worldline import Federation, Program
def host(self):
    self.invite("nobody", at="1s")
    self.advance(to="2s")
model = Federation({"host": Program(run=host, controls=True)})
"""
NEVER_WAITS = """
from worldline import Federation, Program
def bad(me):
    me.advance(by="10ms")
    while True:
        pass
model = Federation({"bad": Program(bad), "good": Program(lambda me: me.advance("20ms"))})
"""
RAISES = """
from worldline import Federation, Program
model = Federation({"a": Program(run=lambda self: 1 / 0)})
"""


def test_a_clean_federation_is_one_history(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text(CLEAN)
    for target in ("clean.py", "clean.py:model", "clean.py:made"):
        code, out, err = worldline("check", target)
        assert (code, err) == (0, "")
        assert out.startswith("1 schedule, every one there is: one history, digest ")
        assert "hello" not in out


LEAKY = """
from worldline import Federation, Program
def model(*, seed=0, steps=1, leaks=0):
    told = []
    def step(self):
        for _ in range(steps):
            told.append(self.name)
            self.publish("t", ("".join(told) if leaks else "x").encode())
            self.advance(by="1ms")
    return Federation({name: Program(run=step) for name in "ab"}, seed=seed)
"""


def test_a_check_takes_the_options_of_a_run_and_repeats_them(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "leaky.py").write_text(LEAKY)

    def digest(*options: str) -> str:
        code, out, err = worldline("check", "leaky.py", "--schedules", "3", *options)
        assert code == 0, err
        return out.rpartition(" ")[2]

    assert len({digest(), digest("--set", "steps=3"), digest("--set", "steps=3", "--until", "1ms")}) == 3
    code, out, _ = worldline("check", "leaky.py", "--set", "leaks=1", "--seed", "3", "--until", "1s")
    assert code == 1
    assert "  worldline check leaky.py --seed 3 --until 1s --set leaks=1 --schedule " in out
    (tmp_path / "table.json").write_text("{}")
    _, out, _ = worldline("check", "leaky.py", "--set", "leaks=1", "--draws", "table.json")
    assert "  worldline check leaky.py --set leaks=1 --draws table.json --schedule " in out
    file = '[[participants]]\nname = "a"\nentry = "program:run"\n'
    (tmp_path / "cell.toml").write_text(file)
    (tmp_path / "program.py").write_text("def run(me):\n    me.advance('1s')\n")
    digests = {
        worldline("check", "cell.toml", *options)[1] for options in ((), ("--until", "1ms"), ("--set", "until=2ms"))
    }
    assert len(digests) == 3


@pytest.mark.parametrize("schedule", [(), ("--schedule", "sample:1")])
@pytest.mark.parametrize("target", ["two.py", "two.py:made"])
def test_a_check_replaces_draws_as_a_run_does(
    worldline: Command, tmp_path: Path, schedule: tuple[str, ...], target: str
) -> None:
    linked = TWO.replace("Federation, Program", "Federation, Network, Program, link").replace(
        '"abc"})', '"abc"}, Network(default=link("uniform(1ms, 9ms)")))\nmade = lambda: model'
    )
    (tmp_path / "two.py").write_text(linked)
    (tmp_path / "table.json").write_text('{"latency": "9ms"}')
    digests = []
    for options in ((), ("--draws", "table.json")):
        _, checked, _ = worldline("check", target, "--schedules", "3", *schedule, *options)
        _, ran, _ = worldline("run", target, "--no-record", "--quiet", *options)
        digests.append(checked.split()[-1])
        assert digests[-1] in ran
    assert digests[0] != digests[1]


def test_what_isnt_a_federation_is_for_verify(worldline: Command, tmp_path: Path) -> None:
    advice = "is of the kind nodes (`worldline verify raft` runs it in many ways)"
    assert worldline("check", "raft") == (
        2,
        "",
        f"worldline: only federations have schedules to check, and raft {advice}\n",
    )


def test_a_check_ends_in_time_and_says_so(worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inprocess, "_WATCH_EVERY_S", PATIENCE_S)  # However slow the machine, no run takes long.
    (tmp_path / "two.py").write_text(TWO)
    code, out, _ = worldline("check", "two.py", "--seconds-max", "0.001")
    assert code == 0
    assert out.startswith("2 schedules, as many as there was time for: one history, digest ")
    assert "time" not in worldline("check", "two.py", "--schedules", "4", "--seconds-max", "1000")[1]


def test_where_nobody_looks_a_check_says_who_never_waits_and_ends_in_time(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("_WATCH_EVERY_S", 0.001), ("_BUSY_S", 0.0), ("_PATIENCE_S", 0.05)):
        monkeypatch.setattr(inprocess, name, seconds)
    monkeypatch.setattr(bar, "_TOLD_EVERY_S", 0.0)
    (tmp_path / "bad.py").write_text(NEVER_WAITS)
    code, out, err = worldline("check", "bad.py", "--seconds-max", "0.5")
    assert (code, out) == (4, "")
    busy = r"bad has been running for \d s without waiting, at 10ms, and keeps all others waiting"
    assert re.search(rf"^still checking: 0 schedules tried, a run is at \w+: {busy}$", err, re.MULTILINE)
    end = r"^worldline: 0\.5 seconds are over, and nothing has been compared: the run in order is at \w+: "
    assert re.search(end + busy, err, re.MULTILINE)


@pytest.mark.parametrize(
    ("source", "arguments", "code", "words"),
    [
        (CLEAN, ["missing.py"], 2, "there is no file missing.py"),
        (CLEAN, ["it.py:other"], 2, "it.py has no 'other' (it has model: write it.py:model)"),
        ("1 +", ["it.py"], 2, "it.py can't be loaded: SyntaxError: invalid syntax, in it.py, line 1"),
        (
            "x = 1",
            ["it.py"],
            2,
            "it.py defines no model (a model is a Federation, a kernel Simulation",
        ),
        (CLEAN, ["it.py", "--schedule", "dice:3"], 2, "'dice:3' isn't a schedule"),
        (CLEAN, ["it.py", "--schedule", "choices:9"], 2, "was it made for this federation?"),
        (CLEAN, ["it.py", "--schedules", "0"], 2, "--schedules"),
        (RAISES, ["it.py"], 1, "a at 0s: its program raised ZeroDivisionError"),
        (INVITES, ["it.py"], 2, "host at 0s: it invites 'nobody', and there is no program of that name"),
    ],
)
def test_mistakes_end_in_a_line_and_a_code(worldline, tmp_path, source, arguments, code, words) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "it.py").write_text(source)
    found, _, err = worldline("check", *arguments)
    assert found == code
    assert words in " ".join(err.split())
    assert "Traceback" not in err


def test_a_file_may_import_what_lies_beside_it_and_be_called_anything(worldline: Command, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "beside.py").write_text(CLEAN)
    (tmp_path / "sub" / "random.py").write_text("from beside import model")
    code, out, _ = worldline("check", "sub/random.py")
    assert code == 0
    assert "one history" in out


def test_every_error_has_an_exit_code() -> None:
    def kinds(kind: type[WorldlineError]) -> list[type[WorldlineError]]:
        return [kind, *(deeper for child in kind.__subclasses__() for deeper in kinds(child))]

    codes = {kind: kind.exit_code for kind in kinds(WorldlineError)}
    assert 0 not in codes.values()
    assert codes[UsageError] == codes[PeerError] == 2
    assert (codes[ModelError], codes[LossError], codes[Stuck], codes[InternalError]) == (1, 3, 4, 70)


def test_a_terminal_shows_how_far_the_check_is(tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text(TWO)
    keeper, terminal = pty.openpty()
    command = [sys.executable, "-m", "worldline", "check", "clean.py", "--schedules", "40"]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "TERM": "xterm"}, stdout=subprocess.PIPE, stderr=terminal, text=True
    ) as checking:
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError), open(keeper, "rb", buffering=0, closefd=True) as screen:  # noqa: PTH123
            while data := screen.read(4096):
                shown += data
        out, _ = checking.communicate(timeout=PATIENCE_S)
    assert b"/40" in shown
    assert b"schedules" in shown
    assert "one history" in out


def test_a_shell_can_complete_the_command() -> None:
    def asked(instruction: str, **more: str) -> str:
        code = "import sys; sys.argv = ['worldline']; from worldline.cli import main; main()"
        environment = {**os.environ, "_WORLDLINE_COMPLETE": instruction, **more}
        return subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        ).stdout

    assert "_WORLDLINE_COMPLETE=complete_bash" in asked("source_bash")
    assert asked("complete_bash", COMP_WORDS="worldline sp", COMP_CWORD="1").split() == ["spacetime"]
