"""`worldline run --twin`: a second copy that says the same, or shows where a program isn't deterministic."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.test_run import Command, digest_in, worldline

__all__ = ["worldline"]

CAST = """
import json, os, random, sys, time

def source(self):
    number = 0
    while not self.ended:
        self.publish("news", json.dumps({"number": number, "of": bytes(300).hex()}).encode())
        number += 1
        self.advance(by="1ms")

def heavy_source(self):
    for number in range(3):
        self.publish("news", json.dumps({"number": number, "of": bytes(40_000).hex()}).encode())
        self.advance(by="1ms")

def reader(leak):
    def read(self):
        print("I read")
        for message in self.messages():
            said = {"seen": json.loads(message.payload)["number"], "by": {"name": self.name, "odd": None}}
            if self.now >= 5_000_000:
                said["by"]["odd"] = leak(self)
            self.publish("echo", json.dumps(said).encode())
    return read

honest = reader(lambda self: [self.random.random(), sorted({"a", "b", "c"})])
set_order = reader(lambda self: "".join({*"abcdefghijklmnop"}))
clock = reader(lambda self: time.time_ns())

def is_twin():
    return "WORLDLINE_TWIN" in os.environ

def impatient(self):
    self.advance(by="2ms" if is_twin() else "3ms")

def leaving(self):
    self.advance(by="2ms")
    if not is_twin():
        self.advance(by="2ms")

def staying(self):
    self.advance(by="2ms")
    if is_twin():
        self.publish("echo", b"more")

def raising(self):
    self.advance(by="4ms")
    if is_twin():
        raise ZeroDivisionError("by nought")
    self.advance(by="4ms")

def catching(self):
    for number in range(5):
        try:
            self.publish("echo", b"%d" % hash("x"))
            self.advance(by="1ms")
        except Exception:
            print("caught")

def dying(self):
    self.advance(by="4ms")
    if is_twin():
        print("good bye")
        os._exit(9)

def failing(self):
    self.advance(by="4ms")
    raise ZeroDivisionError("by nought")

def littering(self):
    self.advance(by="4ms")
    name = os.path.join(os.environ["WORLDLINE_OUTPUT"], "litter")
    assert not os.path.exists(name)
    open(name, "w").close()
"""

FILE = """
name = "echo"
until = "20ms"
[limits]
payload = "1MB"
[[participants]]
name = "source"
entry = "cast:source"
publishes = ["news"]
[[participants]]
name = "reader"
entry = "cast:ENTRY"
subscribes = ["news"]
"""


@pytest.fixture
def run(worldline: Command, tmp_path: Path) -> Command:
    def command(entry: str, *options: str) -> tuple[int, str, str]:
        (tmp_path / "cast.py").write_text(CAST)
        (tmp_path / "echo.toml").write_text(FILE.replace("ENTRY", entry))
        return worldline("run", str(tmp_path / "echo.toml"), "--no-record", *options)

    return command


def test_an_honest_program_says_the_same_twice(run: Command) -> None:
    code, out, err = run("honest", "--twin", "reader", "--twin", "source", "--executor", "workers(2)")
    assert (code, err) == (0, "")
    assert out.count("I read") == 1
    _, alone, _ = run("honest", "--executor", "in-process")
    assert digest_in(out) == digest_in(alone)


def test_payloads_that_the_journal_holds_once_are_given_to_a_twin_too(run: Command) -> None:
    code, _, err = run("honest", "--twin", "reader", "--set", "participants.source.entry=cast:heavy_source")
    assert (code, err) == (0, "")


@pytest.mark.parametrize("leak", ["set_order", "clock"])
def test_a_leak_is_found_with_participant_time_message_and_field(run: Command, leak: str) -> None:
    code, out, err = run(leak, "--twin", "reader")
    assert code == 1
    assert digest_in(out)  # The run itself isn't disturbed.
    found = r"its twin says something else: message 4 on echo: by\.odd: \S+ → \S+"
    assert re.search(rf"^           5ms  reader  worldline: {found}$", out, re.MULTILINE)
    assert re.search(rf"^worldline: reader at 5ms: {found} \(something besides its messages decides", err)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("impatient", "reader at 0s: its twin says something else: advances: to: 3ms → 2ms"),
        ("leaving", "reader at 2ms: its twin says something else: "),
        ("staying", "reader at 2ms: its twin says something else: it leaves "),
        ("raising", "reader at 4ms: in its twin, its program raised ZeroDivisionError: by nought, in cast.py, line "),
        ("catching", "reader at 0s: its twin says something else: message 0 on echo: "),
    ],
)
def test_any_difference_is_found(run: Command, entry: str, words: str) -> None:
    code, out, err = run(entry, "--twin", "reader")
    assert code == 1, err
    assert err.startswith(f"worldline: {words}")
    assert digest_in(out)


def test_a_twin_that_dies_is_a_loss_and_its_last_words_are_told(run: Command) -> None:
    code, out, err = run("dying", "--twin", "reader")
    assert code == 3
    assert err == "worldline: reader: its twin ended with exit code 9 (its last line was: good bye)\n"
    assert digest_in(out)


def test_a_program_that_fails_fails_as_it_does_alone(run: Command) -> None:
    code, out, err = run("failing", "--twin", "reader")
    assert code == 1
    assert re.fullmatch(r"worldline: reader at 4ms: its program raised ZeroDivisionError: by nought, in .*\n", err)
    assert "twin" not in out


def test_what_a_twin_leaves_isnt_mixed_up_with_what_the_first_leaves(run: Command, tmp_path: Path) -> None:
    code, _, err = run("littering", "--twin", "reader")
    assert (code, err) == (0, "")
    assert [file.name for file in (tmp_path / "here").iterdir()] == ["litter"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--twin", "readr"], 'there is no participant "readr" in '),
        (["--twin", "reader", "--twin", "reader"], "--twin names reader twice"),
        (["--twin", "reader", "--executor", "in-process"], "--twin needs processes"),
        (["--twin", "reader", "--debug", "reader"], "--twin and --debug both name reader"),
        (["--twin", "reader", "--without", "reader"], "--twin and --without both name reader"),
        (
            ["--twin", "source", "--set", "participants.source={name='source', command='cat', publishes=['news']}"],
            "source can't have a twin: it isn't a Python entry",
        ),
    ],
)
def test_who_cant_have_a_twin_is_said(run: Command, options: list[str], words: str) -> None:
    code, out, err = run("honest", *options)
    assert (code, out) == (2, "")
    assert words in err
