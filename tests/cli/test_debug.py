"""`worldline run --debug`: one participant has the terminal, and nobody else says a word meanwhile."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal_session import CTRL_C, CTRL_Z, terminal_session
from tests.federation.transports import PATIENCE_S, eventually
from tests.liveness import is_running
from worldline.launch.file.setup import read_setup
from worldline.launch.launcher import SpecialRoles

CAST = """
import os

def talker(self):
    for number in range(5):
        print("news", number)
        self.publish("news", b"%d" % number)
        self.advance(by="1ms")

def thinker(self):
    print("pid", os.getpid())
    for message in self.messages():
        if self.now == 3_000_000:
            thought = 6 * 7
            breakpoint()
        self.publish("thoughts", message.payload)
    print("thinker is done")

def dreamer(self):
    print("pid", os.getpid())
    while True:
        self.advance(by="1us")

def failing(self):
    for message in self.messages():
        if message.payload == b"fail":
            raise ZeroDivisionError("by nought")
"""

FILE = """
name = "thought"
until = "20ms"
[[participants]]
name = "talker"
entry = "cast:talker"
publishes = ["news"]
[[participants]]
name = "thinker"
entry = "cast:thinker"
subscribes = ["news"]
publishes = ["thoughts"]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "cast.py").write_text(CAST)
    (tmp_path / "thought.toml").write_text(FILE)
    return str(tmp_path / "thought.toml")


def undisturbed(file: str) -> str:
    """Return the digest of the run in which nobody stops to think."""
    environment = {**os.environ, "PYTHONBREAKPOINT": "0"}
    command = [sys.executable, "-m", "worldline", "run", file, "--no-record", "--executor", "in-process", "--quiet"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return said.splitlines()[-1]


def test_a_debugger_has_the_terminal_and_the_others_wait_to_be_shown(file: str, tmp_path: Path) -> None:
    with terminal_session(tmp_path, "run", file, "--debug", "thinker", "--no-record") as session:
        before = session.wait_for("(Pdb) ")
        assert "thinker()" in before
        session.type("p thought * 1001\n")
        assert "42042" in session.wait_for("(Pdb) ")
        assert "news" not in session.shown
        session.type("c\n")
        assert session.finish() == 0
        _, _, after = session.shown.partition("thinker is done\r\n")
    lines = [line for line in after.splitlines() if "talker" in line]
    assert lines == [f"{f'{number}ms' if number else '0s':>14}  talker   news {number}" for number in range(5)]
    assert f"{undisturbed(file)}\r\n" in after


@pytest.mark.long
def test_typed_signals_are_the_participants(file: str, tmp_path: Path) -> None:
    with terminal_session(tmp_path, "run", file, "--debug", "thinker", "--no-record") as session:
        session.wait_for("(Pdb) ")
        session.insist(CTRL_C, "--KeyboardInterrupt--")
        session.wait_for("(Pdb) ")
        thinker = int(re.findall(r"pid (\d+)", session.shown)[0])
        session.type(CTRL_Z)
        session.wait_stopped()
        eventually(lambda: Path(f"/proc/{thinker}/stat").read_text().rpartition(")")[2].split()[0] in "Tt")
        session.child.send_signal(signal.SIGCONT)
        eventually(lambda: Path(f"/proc/{thinker}/stat").read_text().rpartition(")")[2].split()[0] not in "Tt")
        session.type("p thought + 1\n")
        assert "43" in session.wait_for("(Pdb) ")
        session.type("c\n")
        assert session.finish() == 0
    assert undisturbed(file) in session.shown


@pytest.mark.parametrize(("entry", "typed"), [("thinker", "q\n"), ("dreamer", CTRL_C)])
def test_a_person_ends_the_run_by_ending_the_participant(file: str, tmp_path: Path, entry: str, typed: str) -> None:
    change = f"participants.thinker.entry=cast:{entry}"
    with terminal_session(tmp_path, "run", file, "--debug", "thinker", "--no-record", "--set", change) as session:
        session.wait_for("(Pdb) " if entry == "thinker" else "pid ")
        session.type(typed)
        assert session.finish() == 130
    assert re.search(r"worldline: thinker at [\d.]+[mu]?s: it was ended at its terminal\r\n", session.shown)
    assert "Traceback" not in session.shown


def test_the_terminal_is_left_as_it_was_found(file: str, tmp_path: Path) -> None:
    with terminal_session(tmp_path, "run", file, "--debug", "thinker", "--no-record") as session:
        session.wait_for("(Pdb) ")
        os.kill(int(re.findall(r"pid (\d+)", session.shown)[0]), signal.SIGKILL)  # At its prompt.
        session.wait_for("was killed by SIGKILL")
        assert session.has_echo()
        assert session.finish() == 3


def test_a_run_that_others_end_waits_for_the_person(file: str, tmp_path: Path) -> None:
    other = '[[participants]]\nname = "failing"\nentry = "cast:failing"\nsubscribes = ["thoughts"]\n'
    Path(file).write_text(FILE + other)
    with terminal_session(tmp_path, "run", file, "--debug", "thinker", "--no-record") as session:
        session.wait_for("(Pdb) ")
        session.type("self.publish('thoughts', b'fail'); self.advance(to='15ms')\n")
        session.wait_for("by nought")  # What the participant is told when it wants to go on: the run is over.
        session.type("p 6 * 9\n")
        session.wait_for("54")
        session.type("c\n")
        assert session.finish() == 1
    assert "worldline: failing at 4ms: its program raised ZeroDivisionError: by nought" in session.shown


def test_what_is_recorded_or_redirected_isnt_the_debuggers(file: str, tmp_path: Path) -> None:
    with (
        (tmp_path / "out").open("w") as out,
        terminal_session(tmp_path, "run", file, "--debug", "thinker", "--json", stdout=out) as session,
    ):
        session.wait_for("(Pdb) ")
        session.type("c\n")
        assert session.finish() == 0
    assert "(Pdb)" not in (tmp_path / "out").read_text()
    assert f'"digest":"{undisturbed(file).removeprefix("digest ")}"' in (tmp_path / "out").read_text()


def test_without_a_terminal_a_debugger_reads_standard_input(file: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "worldline", "run", file, "--debug", "thinker", "--executor", "workers(1)"]
    ran = subprocess.run(
        command, cwd=tmp_path, input="p thought * 1001\nc\n", capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert ran.returncode == 0, ran.stderr
    assert "(Pdb) 42042" in ran.stdout
    assert undisturbed(file) in ran.stdout
    pids = re.findall(r"^pid (\d+)", ran.stdout, re.MULTILINE)
    assert pids
    assert not any(is_running(int(pid)) for pid in pids)


def test_nothing_by_the_wall_clock_ends_a_run_that_is_debugged(file: str) -> None:
    setup = read_setup(Path(file), changes=["limits.silence=1s", "limits.join=1s", "limits.handshake=1s"])
    limits = SpecialRoles(debugged="thinker").limits(setup)
    assert (limits.silence_s, limits.join_s, limits.handshake_s) == (None, None, float("inf"))
    assert SpecialRoles().limits(setup) == setup.limits


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--debug", "thinkr"], 'there is no participant "thinkr" in {file} (did you mean "thinker"?)'),
        (["--debug", "thinker", "--debug", "talker"], "--debug is given twice (one participant at a time"),
        (["--debug", "thinker", "--executor", "in-process"], "--debug needs processes (in one process, breakpoint()"),
        (["--without", "thinker", "--executor", "in-process"], "--without needs processes"),
        (["--debug", "thinker", "--without", "thinker"], "--debug and --without both name thinker"),
    ],
)
def test_who_cant_be_debugged_is_said(worldline: Command, file: str, options: list[str], words: str) -> None:
    code, out, err = worldline("run", file, "--no-record", *options)
    assert (code, out) == (2, "")
    assert words.format(file=file) in err


def test_only_federations_have_somebody_to_debug(worldline: Command) -> None:
    code, _, err = worldline("run", "raft", "--debug", "thinker")
    assert code == 2
    assert "--debug is for federations, and raft is of the kind nodes" in err
