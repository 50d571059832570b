"""How far a run is: what an arbiter says to whoever shows it, and to whoever looks on."""

from __future__ import annotations

import pytest

from tests.lock.table import Table
from worldline.history import Observer, Status, WaitReason
from worldline.history.outcome import ALL_OTHERS, THE_RUN
from worldline.lock import Advance, Arbiter, Join, Leave, Publish, tuning
from worldline.lock.why.reasons import waits_of_processes
from worldline.model import FOREVER, MS, plan


def test_before_it_begins_the_run_waits_for_those_who_arent_there() -> None:
    arbiter = Arbiter(plan(["a", "b", "c"], until="1s"))
    arbiter.handle("b", Join())
    status = arbiter.status()
    assert (status.time, status.end, status.events) == (0, 1000 * MS, 1)
    assert status.waits == (
        WaitReason(THE_RUN, "a", "it begins when a has joined"),
        WaitReason(THE_RUN, "c", "it begins when c has joined"),
    )


def test_its_time_is_the_floor_and_its_waits_say_who_holds_whom_the_worst_first() -> None:
    made = Table("a", "b", "c", subscribes=("news",))
    made.say("a", Advance(50 * MS))
    made.say("b", Publish("news", b"", 0))
    made.say("b", Advance(MS // 2))
    made.say("b", Advance(90 * MS))
    status = made.arbiter.status()
    assert (status.time, status.end, status.events) == (made.arbiter.floor(), FOREVER, made.arbiter.events)
    assert [(wait.who, wait.holder) for wait in status.waits] == [("a", "c"), ("b", "c")]
    assert [wait.why for wait in status.waits] == [str(why) for why in made.arbiter.why()]


def test_where_processes_dont_wait_for_another_the_one_that_computes_furthest_behind_is_named() -> None:
    made = Table("a", "b")
    made.say("a", Advance(7))
    assert waits_of_processes(made.arbiter) == (WaitReason(ALL_OTHERS, "b", "b is computing at 0s"),)
    made.say("b", Advance(9))
    assert waits_of_processes(made.arbiter) == (WaitReason(ALL_OTHERS, "a", "a is computing at 7ns"),)
    assert made.arbiter.status().waits == ()


def test_when_all_have_left_its_time_is_the_latest() -> None:
    made = Table("a", "b")
    made.say("a", Advance(7))
    made.leave("a")
    made.say("b", Leave(0))
    assert made.arbiter.floor() == FOREVER
    assert made.arbiter.status().time == 7
    assert made.arbiter.status().waits == ()


def test_who_waits_is_only_found_out_if_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Table("a", "b", subscribes=("news",))
    asked: list[object] = []
    monkeypatch.setattr("worldline.lock.arbiter.waits_of", lambda arbiter: asked.append(arbiter) or ())
    status = made.arbiter.status()
    assert isinstance(status, Status)
    assert asked == []
    assert status.waits == ()
    assert asked == [made.arbiter]


def test_how_far_one_has_come_is_known_by_its_name() -> None:
    made = Table("a", "b")
    made.say("a", Advance(7))
    assert made.arbiter.time_of("a") == 7
    assert made.arbiter.time_of("b") == made.arbiter.time_of("nobody") == 0


class Passing(Observer):
    def __init__(self) -> None:
        self.times: list[int] = []

    def passed(self, time: int) -> None:
        self.times.append(time)


@pytest.mark.parametrize("asks", [True, False])
def test_where_much_happens_whoever_looks_on_is_told_after_the_answers(asks: bool) -> None:
    looks_on = Passing()
    arbiter = Arbiter(plan(["a"]), looks_on)
    arbiter.handle("a", Join())
    for step in range(1, tuning.TELL_EVERY):
        arbiter.tell_if_due()
        arbiter.handle("a", Advance(step))
    assert looks_on.times == []
    if asks:
        arbiter.tell_if_due()
        assert looks_on.times == [tuning.TELL_EVERY - 1]
    arbiter.handle("a", Advance(tuning.TELL_EVERY))  # It is told before more is heard in any case.
    assert looks_on.times == [tuning.TELL_EVERY - 1]
    arbiter.tell_if_due()
    assert len(looks_on.times) == 1


@pytest.mark.parametrize(("size", "is_due"), [(10, False), (200_000, True)])
def test_large_payloads_are_much(size: int, is_due: bool) -> None:
    looks_on = Passing()
    arbiter = Arbiter(plan(["a"]), looks_on)
    arbiter.handle("a", Join(publishes=("pose",)))
    arbiter.handle("a", Publish("pose", bytes(size), 0), Advance(1))
    assert looks_on.times == []
    arbiter.tell_if_due()
    assert bool(looks_on.times) is is_due


def test_whoever_looks_on_is_told_what_is_settled() -> None:
    looks_on = Passing()
    arbiter = Arbiter(plan(["a"]), looks_on)
    arbiter.tell_passed()
    arbiter.handle("a", Join())
    arbiter.handle("a", Advance(5))
    arbiter.tell_passed()
    arbiter.handle("a", Leave(5))
    arbiter.tell_passed()
    assert looks_on.times == [0, 5, FOREVER]
    Arbiter(plan(["a"])).tell_passed()
