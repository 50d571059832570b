"""What a screen says of a run, from its status alone."""

from __future__ import annotations

import io
import threading

import pytest

from worldline.cli import run_federation as screens
from worldline.cli.run_federation import Screen
from worldline.history import Status, WaitReason
from worldline.history.outcome import ALL_OTHERS, THE_RUN
from worldline.model import MS


class Clock:
    """Stands in for real time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(screens, "time", clock)
    return clock


def shown(clock: Clock, *statuses: Status) -> list[str]:
    """Show a run's status every ten seconds, apart from what comes of the run."""
    file, status_file = io.StringIO(), io.StringIO()
    with Screen("play", ["a", "b"], file=file, status_file=status_file) as screen:
        screen.remarks = lambda: ["b is stopped"]
        for status in statuses:
            clock.now += 10
            screen.refresh(status)
    assert file.getvalue() == ""
    return status_file.getvalue().splitlines()


def test_what_is_said_of_how_it_goes_is_apart_from_what_comes_of_it() -> None:
    file, status_file = io.StringIO(), io.StringIO()
    with Screen("play", ["a"], file=file, status_file=status_file) as screen:
        screen.tell("a holds the run")
        screen.hold()
        screen.tell("a still holds the run")
        screen.say("a", 0, "hello")
        screen.show_held()
        screen.conclude("digest 1234")
    assert status_file.getvalue() == "a holds the run\na still holds the run\n"
    assert file.getvalue() == "            0s  a  hello\ndigest 1234\n"


def test_what_comes_of_a_run_is_said_last_where_both_go_to_one_pipe() -> None:
    written: list[str] = []
    is_concluded = threading.Event()

    class Pipe(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            is_concluded.set()
            return len(text)

    class Slow(Pipe):
        def write(self, text: str) -> int:
            is_concluded.wait(0.2)
            return super().write(text)

    with Screen("play", ["a"], file=Pipe(), status_file=Slow()) as screen:
        screen.tell("a has come back")
        screen.conclude("digest 1234")
    assert written == ["a has come back\n", "digest 1234\n"]


def test_a_run_that_hasnt_begun_says_who_isnt_there(clock: Clock) -> None:
    status = Status(0, ask=lambda: (WaitReason(THE_RUN, "a", "..."), WaitReason(THE_RUN, "b", "...")))
    assert shown(clock, status) == ["... play: waiting for a, b, b is stopped"]


def test_it_says_how_far_it_is_how_fast_and_who_is_in_the_way(clock: Clock) -> None:
    def held() -> tuple[WaitReason, ...]:
        return WaitReason("b", "a", "..."), WaitReason("a", None, "...")

    first, second = Status(5 * MS, 500 * MS, 100, held), Status(10 * MS, 500 * MS, 50_100)
    assert shown(clock, first, second) == [
        "... play: 5ms of 500ms, a holds b, b is stopped",
        "... play: 10ms of 500ms, 0.0005× real time, 5,000 events/s, b is stopped",
    ]


def test_whoever_computes_while_nobody_else_can_is_named_without_a_terminal_too(clock: Clock) -> None:
    status = Status(0, ask=lambda: (WaitReason(ALL_OTHERS, "a", "a has been running for 9 s"),))
    assert shown(clock, status) == ["... play: 0s, a has been running for 9 s, b is stopped"]


def test_who_waits_isnt_asked_for_more_often_than_it_is_shown(clock: Clock) -> None:
    asked: list[int] = []

    def ask() -> tuple[WaitReason, ...]:
        asked.append(1)
        return ()

    with Screen("play", ["a"], file=io.StringIO()) as screen:
        for _ in range(100):
            clock.now += 0.1
            screen.refresh(Status(0, ask=ask))
    assert len(asked) <= 2


def test_a_line_without_a_time_is_shown_with_the_one_that_is_known(clock: Clock) -> None:
    file = io.StringIO()
    with Screen("play", ["a"], file=file) as screen:
        screen.say("a", None, "early")
        screen.time_of = lambda name: {"a": 5 * MS}[name]
        screen.say("a", None, "about")
        screen.say("a", 6 * MS, "exactly")
    assert [line.split() for line in file.getvalue().splitlines()] == [
        ["~0s", "a", "early"],
        ["~5ms", "a", "about"],
        ["6ms", "a", "exactly"],
    ]
