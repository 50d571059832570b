"""`worldline join` and `worldline run --without`: who is started elsewhere, and what is compared before that."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.federation.transports import PATIENCE_S
from worldline import Server, connect
from worldline.federation.environment import ADDRESS, FEDERATION, NAME, TOKEN
from worldline.launch.file.setup import read_setup
from worldline.launch.launcher import SpecialRoles
from worldline.model import ConfigurationError, Interrupted

CAST = """
import os, sys

def talker(self):
    while not self.ended:
        self.publish("news", self.random.randbytes(3))
        self.advance(by="1ms")

def reader(self):
    for message in self.messages():
        self.publish("echo", message.payload)
    print("read to the end in", os.path.basename(os.getcwd()), os.environ.get("COLOR"), sys.argv[1])
"""

FILE = """
name = "club"
until = "20ms"
[[participants]]
name = "talker"
entry = "cast:talker"
publishes = ["news"]
period = "1ms"
[[participants]]
name = "reader"
entry = "cast:reader"
subscribes = { news = "newest(3)" }
publishes = ["echo"]
environment = { COLOR = "blue" }
[[participants]]
name = "logger"
command = ["python", "-c", "import worldline\\nwith worldline.connect() as me: list(me.messages())"]
subscribes = ["echo"]
publishes = []
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "cast.py").write_text(CAST)
    (folder / "club.toml").write_text(FILE)
    return str(folder / "club.toml")


# --- A whole run ---


@pytest.mark.long
def test_those_who_are_started_elsewhere_give_the_same_run(file: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("our secret\n")
    command = [sys.executable, "-m", "worldline"]
    run = [
        *command,
        "run",
        file,
        "--without",
        "reader",
        "--without",
        "logger",
        "--set",
        "participants.logger.period=1us",
    ]
    started = subprocess.Popen(
        [*run, "--executor", "tcp", "--token-file", "secret", "--no-record"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stderr is not None
    with started.stdout, started.stderr, started:
        try:
            hints = [started.stdout.readline() for _ in range(2)]
            joins = [shlex.split(hint.partition("start it with: worldline ")[2]) for hint in hints]
            assert [words[:3] for words in joins] == [["join", file, "reader"], ["join", file, "logger"]]
            environment = {**os.environ, TOKEN: "our secret"}
            others = [
                subprocess.Popen([*command, *words], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
                for words in joins
            ]
            said = [other.communicate(timeout=PATIENCE_S)[0] for other in others]
            assert [other.returncode for other in others] == [0, 0]
            shown, status = started.stdout.read(), started.stderr.read()
            assert started.wait(PATIENCE_S) == 0
        finally:
            started.kill()
    assert said == ["read to the end in home blue cast:reader\n", ""]
    assert "reader has joined" in status
    assert "has joined" not in shown
    whole = subprocess.run(
        [*command, "run", file, "--quiet", "--no-record"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert shown.splitlines()[-1] == whole.stdout.splitlines()[-1]


@pytest.mark.long
def test_who_was_lost_comes_back_by_the_same_command(file: str, tmp_path: Path) -> None:
    home = Path(file).parent
    dying = "        if self.now > 9_000_000 and not os.path.exists('died'):\n            die()\n"
    die = "def die():\n    open('died', 'w').close()\n    os.kill(os.getpid(), 9)\n"
    text = CAST.replace('payload)\n    print("read', f'payload)\n{dying}    print("read')
    (home / "cast.py").write_text(text + die)
    Path(file).write_text('on_loss = "rejoin"\n' + FILE)
    command = [sys.executable, "-m", "worldline"]
    started = subprocess.Popen(
        [*command, "run", file, "--without", "reader", "--no-record"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    with started.stdout, started:
        try:
            words = shlex.split(started.stdout.readline().partition("start it with: worldline ")[2])
            codes = [subprocess.run([*command, *words], cwd=tmp_path, check=False).returncode for _ in range(2)]
            assert codes == [-9, 0]
            digest = started.stdout.read().splitlines()[-1]
            assert started.wait(PATIENCE_S) == 0
        finally:
            started.kill()
    whole = subprocess.run(
        [*command, "run", file, "--quiet", "--no-record"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert digest == whole.stdout.splitlines()[-1]


# --- Knocking ---


@pytest.fixture
def club(file: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server for the file, of a run that lacks everybody."""
    monkeypatch.delenv(TOKEN, raising=False)
    setup = read_setup(Path(file))
    parts = SpecialRoles(awaited=tuple(setup.parts), token="our secret")
    with Server(setup.plan, federation="club", token=parts.tokens(setup), declared=parts.declared(setup)) as server:
        yield server
        server.end(Interrupted("the test is over"))


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What this process would have become: command, directory and environment."""
    seen: list[Any] = []

    def become(_: str, command: list[str], environment: dict[str, str]) -> None:
        seen.extend((list(command), Path.cwd(), environment))
        raise SystemExit(0)

    monkeypatch.setattr("os.execvpe", become)
    return seen


@pytest.mark.parametrize("name", ["reader", "logger"])
def test_this_process_becomes_the_participants(
    worldline: Command, club: Server, file: str, became: list[Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(TOKEN, "our secret")
    assert worldline("join", file, name, "--address", str(club.address)) == (0, "", "")
    command, directory, environment = became
    part = read_setup(Path(file)).parts[name]
    assert command == list(part.command or (sys.executable, "-m", "worldline.launch.worker", "cast:reader"))
    assert directory == Path(file).parent
    assert environment[ADDRESS] == str(club.address)
    assert (environment[NAME], environment[FEDERATION], environment[TOKEN]) == (name, "club", "our secret")
    assert environment.get("COLOR") == part.environment.get("COLOR")


def test_who_has_knocked_is_expected_as_before(
    worldline: Command, club: Server, file: str, became: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, "our secret")
    for _ in range(2):
        assert worldline("join", file, "reader", "--address", str(club.address))[0] == 0
    assert club.ask(club.host.missing) == ["logger", "reader", "talker"]
    assert not club.ask(lambda: list(club.host.owner.notices))
    assert became


def test_what_the_files_at_both_ends_declare_is_compared(
    worldline: Command, club: Server, file: str, became: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, "our secret")
    address = ("--address", str(club.address))
    for name, change, words in (
        ("talker", "period=2ms", 'declares period = "2ms", and the server\'s file "1ms"'),
        ("reader", 'subscribes=["news"]', "declares subscribes = [news], and the server's file {news = newest(3)}"),
        ("reader", "latency_least=1ms", 'declares latency_least = "1ms", and the server\'s file "0s"'),
        (
            "reader",
            'clock={ drift = "40ppm", jumps = [{ at = "1s", by = "-2ms" }] }',
            'declares clock = { drift = "40ppm", jumps = [{ at = "1s", by = "-2ms" }] }, and the server\'s file none',
        ),
        ("talker", 'clock.drift="41ppm"', 'declares clock = { drift = "41ppm" }, and the server\'s file none'),
        ("reader", "controls=true", "declares controls = true, and the server's file false"),
        ("talker", 'publishes=["news", "more"]', "declares publishes = [news, more], and the server's file [news]"),
    ):
        code, _, err = worldline("join", file, name, *address, "--set", f"participants.{name}.{change}")
        assert code == 2
        assert f"{name}: {file} {words}" in err
    here = Path(file)
    here.write_text(here.read_text().replace('publishes = ["news"]\n', ""))
    code, _, err = worldline("join", file, "talker", *address)
    assert code == 2
    assert "declares publishes = any topic, and the server's file [news]" in err
    assert not became


def test_who_wouldnt_be_admitted_isnt_started(
    worldline: Command, club: Server, file: str, became: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = ("--address", str(club.address))
    (tmp_path / "other.toml").write_text(FILE.replace('"club"', '"another club"').replace("cast:", "home.cast:"))
    (tmp_path / "wrong").write_text("not our secret")
    there = connect(club.address, "logger", token="our secret")
    monkeypatch.setenv(TOKEN, "our secret")
    for words, arguments in (
        ("or the run starts it itself: --without reader", [file, "reader", "--token-file", str(tmp_path / "wrong")]),
        ("this is federation 'club', not 'another club'", [str(tmp_path / "other.toml"), "reader"]),
        ("participant 'logger' is already connected", [file, "logger"]),
        ('there is no participant "readr" in', [file, "readr"]),
        ("there is no such file", [str(tmp_path / "missing.toml"), "reader"]),
        ("isn't an address", [file, "reader", "--address", "nowhere"]),
    ):
        code, _, err = worldline("join", arguments[0], arguments[1], *address, *arguments[2:])
        assert code == 2
        assert words in err
    there.close()
    assert not became


def test_a_participant_that_the_file_doesnt_start_isnt_joined(worldline: Command, file: str, tmp_path: Path) -> None:
    (tmp_path / "bare.toml").write_text('[[participants]]\nnames = ["ann", "bob"]\n')
    code, _, err = worldline("join", str(tmp_path / "bare.toml"), "ann")
    assert code == 2
    assert "doesn't say how to start ann" in err
    # Whose programs aren't here doesn't matter, as long as its own is.
    text = Path(file).read_text().replace("cast:talker", "elsewhere:talker")
    Path(file).write_text(text)
    assert read_setup(Path(file), starts=lambda name: name == "reader").parts["talker"].entry == "elsewhere:talker"
    code, _, err = worldline("join", file, "talker")
    assert code == 2
    assert 'there is no module "elsewhere"' in err


# --- Waiting ---


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--without", "readr"], 'there is no participant "readr" in {file} (did you mean "reader"?)'),
        (["--without", "reader", "--without", "reader"], "--without names reader twice"),
        (["--token-file", "secret"], "--token-file is for participants that others start (name them with --without)"),
        (["--without", "reader", "--listen", "tcp://0.0.0.0:0"], "can be reached from other machines, and there is no"),
    ],
)
def test_whom_a_run_cant_wait_for_is_said(
    worldline: Command, file: str, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    code, out, err = worldline("run", file, "--no-record", *options)
    assert (code, out) == (2, "")
    assert words.format(file=file) in err


def test_people_are_waited_for_and_their_programs_neednt_be_here(file: str) -> None:
    text = Path(file).read_text().replace("cast:reader", "elsewhere:reader")
    Path(file).write_text(text)
    with pytest.raises(ConfigurationError, match="there is no module"):
        read_setup(Path(file))
    parts = SpecialRoles(awaited=("reader",))
    setup = read_setup(Path(file), starts=parts.starts)
    assert setup.limits.join_s is None
    assert parts.tokens(setup)["reader"] is None
    assert len({parts.tokens(setup)[name] for name in ("talker", "logger")}) == 2
    # Others start it, so the file has the last word on whether it may control the run.
    assert parts.declared(setup)["reader"]["controls"] is False
    assert "controls" not in parts.declared(setup)["talker"]


def test_who_connects_by_itself_is_told_where(worldline: Command, file: str, tmp_path: Path) -> None:
    bare = Path(file).read_text() + '[[participants]]\nname = "watch"\n'
    Path(file).write_text(bare)
    code, _, err = worldline("run", file, "--no-record")
    assert code == 2
    assert "doesn't say how to start watch (give it an entry or a command, or use --without watch or" in err
    code, out, err = worldline("run", file, "--no-record", "--without", "watch", "--set", "limits.join=10ms")
    assert code == 3
    assert re.search(r"^waiting for watch, which connects to unix://\S+/run$", out, re.MULTILINE)
    assert "watch didn't join within 0.01 seconds" in err
