"""The bar of a run: shown on a terminal, once the run has taken a while, and gone at its end."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from worldline.cli import console as module
from worldline.cli.console import progress
from worldline.history.outcome import Status
from worldline.model import FOREVER, MS, SECOND


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    terminal = io.StringIO()
    monkeypatch.setattr(module, "Console", lambda **_: Console(file=terminal, force_terminal=True))
    return terminal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("end", [SECOND, FOREVER])
def test_a_long_run_is_shown(terminal: io.StringIO, clock: list[float], end: int) -> None:
    with progress() as watch:
        watch(Status(MS, end, 10))
        clock[0] = 2.0
        watch(Status(5 * MS + 1, end, 1_000))
    assert "5ms  500 events/s" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")  # Nothing of it stays.


def test_a_short_run_is_not(terminal: io.StringIO, clock: list[float]) -> None:
    with progress() as watch:
        clock[0] = 0.9
        watch(Status(MS, SECOND, 1_000))
    assert terminal.getvalue() == ""


def test_a_bar_is_closed_when_a_run_fails(terminal: io.StringIO, clock: list[float]) -> None:
    def fail() -> None:
        with progress() as watch:
            clock[0] += 2.0
            watch(Status(MS, SECOND, 1_000))
            raise ValueError("oops")

    for _ in range(2):  # Another one can be opened: the last one was closed.
        with pytest.raises(ValueError, match="oops"):
            fail()
    assert terminal.getvalue().count("events/s") >= 2


def test_what_is_printed_goes_where_it_is_piped_to(
    terminal: io.StringIO, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    with progress() as watch:
        clock[0] = 2.0
        watch(Status(MS, SECOND, 1_000))
        print("said")
    assert pipe.getvalue() == "said\n"
    assert "said" not in terminal.getvalue()


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (6 * SECOND, "still running: 5s of 6s simulated, 2,000 events\n"),
        (FOREVER, "still running: 5s simulated, 2,000 events, and no end is set (--until TIME ends it)\n"),
    ],
)
def test_where_nobody_looks_a_long_run_says_now_and_then_how_far_it_is(
    capsys: pytest.CaptureFixture[str], clock: list[float], end: int, words: str
) -> None:
    with progress() as watch:
        watch(Status(MS, end, 1_000))
        assert capsys.readouterr() == ("", "")
        for clock[0] in (11.0, 12.0, 22.0):
            watch(Status(5 * SECOND, end, 2_000))
    assert capsys.readouterr() == ("", 2 * words)
