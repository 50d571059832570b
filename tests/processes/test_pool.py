"""Workers whose work isn't the kernel's: what they report comes back, and what goes wrong is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.processes.jobs import MORE_THAN_A_SOCKET_HOLDS, Job, NeverEqual, work
from tests.soaking import later
from worldline.model import ConfigurationError, LossError, ModelError, WorldlineError
from worldline.model.errors import InternalError, Stuck
from worldline.processes.failures import Failure, first_error
from worldline.processes.pool import WorkerPool, some_of


def done(*what: str, reached: Callable[[int, int], None] = lambda _now, _events: None) -> list[Any]:
    """Let each of some workers do something; return their reports."""
    jobs: list[Job] = [
        (each, [other for other in range(len(what)) if other != number]) for number, each in enumerate(what)
    ]
    with WorkerPool(work, jobs, lambda number: f"the job {what[number]}") as pool:
        return pool.watch(reached)


def error_of(*what: str, **options: Any) -> WorldlineError:
    """Return why a run has failed: its error, or that of the first failure that was reported."""
    try:
        error = first_error(done(*what, **options))
    except WorldlineError as raised:
        return raised
    assert error is not None
    return error


def test_reports_come_by_number_whatever_they_are() -> None:
    nothing, odd, again = done("nothing", "odd", "nothing")
    assert (nothing, again) == (None, None)
    assert isinstance(odd, NeverEqual)


def test_everybody_can_talk_to_everybody() -> None:
    assert done("greet", "greet", "greet") == [
        [(other, b"from %d" % other) for other in range(3) if other != number] for number in range(3)
    ]


def test_what_was_sent_arrives_after_its_sender_is_done() -> None:
    assert done("shout", "listen") == ["said", MORE_THAN_A_SOCKET_HOLDS]


# -- What goes wrong


@pytest.mark.long
@pytest.mark.parametrize("attempt", [0, *later(range(1, 10))])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_error_of_one_worker_is_the_runs(place: int, attempt: int) -> None:
    """Whether the parent hears first of it, or of those who miss that worker."""
    jobs = ["wait"] * 3
    jobs[place] = "refuse"
    error = error_of(*jobs)
    assert isinstance(error, ConfigurationError)
    assert str(error) == f"worker {place} can't do that (do something else)"


def test_an_error_goes_before_failures() -> None:
    assert str(error_of("fail", "refuse")) == "worker 1 can't do that (do something else)"


def test_an_error_that_cannot_leave_its_process_is_told() -> None:
    error = error_of("refuse_oddly", "wait")
    assert isinstance(error, ModelError)
    assert str(error) == "worker 0 holds a lock"


def test_of_failures_that_with_the_least_key_is_the_first() -> None:
    reports = done("fail", "nothing", "fail")
    assert [isinstance(report, Failure) for report in reports] == [True, False, True]
    error = first_error(reports)
    assert isinstance(error, ModelError)
    assert str(error) == "worker 2 failed"
    assert error.__notes__ == ["ZeroDivisionError: division by zero"]
    assert first_error([None, 1]) is None


def test_a_bug_is_a_breakdown_with_its_trace() -> None:
    error = error_of("wait", "break")
    assert isinstance(error, InternalError)
    assert str(error).startswith("worker 1 broke down: Traceback (most recent call last):")
    assert "KeyError: 'a bug'" in str(error)


def test_a_worker_that_is_lost_is_described() -> None:
    error = error_of("die", "wait", "wait")
    assert isinstance(error, LossError)
    assert str(error) == "worker 0, with the job die, was killed by SIGKILL (the run is broken off)"
    assert error.facts == {"worker": 0, "exit_code": -9}


def test_how_far_a_lost_worker_was_others_may_know() -> None:
    error = error_of("wait_knowing", "hang_up")
    assert str(error) == "at 7ms: worker 1, with the job hang_up, was killed by SIGKILL (the run is broken off)"


def test_whoever_watches_can_end_a_run() -> None:
    def check(_now: int, events: int) -> None:
        if events > 10_000:
            raise Stuck("enough")

    assert isinstance(error_of("spin", "wait", reached=check), Stuck)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("", "nobody here"),
        ("a", "a"),
        ("abc", "a, b, c"),
        ("abcd", "a, b, c and 1 more"),
        ("abcdefgh", "a, b, c and 5 more"),
    ],
)
def test_names_are_listed_up_to_three(names: str, text: str) -> None:
    assert some_of(list(names), "nobody here") == text
