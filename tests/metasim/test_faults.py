"""Faults of simulators and worlds: what is driven hangs and starts anew like any program; worlds have no faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.federation.transports import run_over_sockets
from tests.leaks.running import EXAMPLES, command_of
from tests.metasim.test_examples import needs_drake
from tests.metasim.test_examples import told as told  # A fixture.
from worldline import Federation, Participant, Program, run
from worldline.federation.inprocess.checker import check
from worldline.launch.file.setup import read_setup
from worldline.launch.launcher import federation_of
from worldline.metasim import Send, drive
from worldline.model import Message, ModelError

FOLDER = EXAMPLES / "metasim"


def example(name: str, until: str, fault: str) -> Federation:
    setup = read_setup(FOLDER / f"{name}.toml", changes=[f"until={until}"])
    return federation_of(setup.with_faults([fault] if fault else []))


@pytest.mark.parametrize(
    "fault",
    [
        "10min hang room 100s",
        "10min crash room 125s",
        "10min slow room 45s 20min",
        "10min hang thermostat 5min",
        "10min crash thermostat 5min",
        "thermostat receives temperature 9: crash thermostat 70s",
    ],
)
def test_simulators_hang_and_start_anew(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    expected = run(example("thermostat", "40min", fault))
    assert expected.digest != run(example("thermostat", "40min", "")).digest
    report = check(example("thermostat", "40min", fault), schedules=4)
    assert (report.digest, report.divergence) == (expected.digest, None)
    assert run_over_sockets(example("thermostat", "40min", fault)).digest == expected.digest


@needs_drake
@pytest.mark.parametrize("who", ["plant", "controller"])
@pytest.mark.parametrize("what", ["crash", "hang"])
def test_diagrams_hang_and_start_anew(told: Callable[..., dict[str, str]], what: str, who: str) -> None:
    options = ["--until", "400ms", "--executor", "in-process"]
    alone = told("pendulum", *options)
    befallen = told("pendulum", *options, "--fault", f"100ms {what} {who} 55ms")
    assert befallen["digest"] != alone["digest"]
    assert told("pendulum", *options, "--shake", "3", "--fault", f"100ms {what} {who} 55ms") == befallen


def test_a_simulator_that_begins_at_0_after_a_crash_is_told() -> None:
    class Forgetful:
        def begin(self, now: int, send: Send) -> None:
            self.now = 0

        def due(self) -> int:
            return self.now + 10

        def advance_to(self, time: int) -> None:
            self.now = time

        def receive(self, messages: list[Message]) -> None: ...

    def program(me: Participant) -> None:
        drive(me, Forgetful())

    with pytest.raises(ModelError, match="it begins at 30ns, as `begin` is told: not at 0"):
        run(Federation({"a": Program(program)}, until=100, faults=("20ns crash a 10ns",)))


@pytest.mark.parametrize("options", [("--fault", "10ms crash box 5ms"), ("--faults", "hang=1")])
@pytest.mark.parametrize("command", ["run", "verify"])
def test_worlds_have_no_faults(
    command: str,
    options: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    until = ("--until", "100ms", *(("--only", "again") if command == "verify" else ()))
    code, _, errors = command_of(monkeypatch, capsys)(command, EXAMPLES / "world" / "push_box.sdf", *until, *options)
    assert code == 2
    assert "is for federations, and push_box is of the kind world" in errors
