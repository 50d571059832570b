"""When whoever looks on is told what is settled: after the answers, and sooner if much was sent."""

from __future__ import annotations

import pytest

from worldline.history.observer import Observer
from worldline.lock import Advance, Grant, Join, Publish
from worldline.lock.arbiter import Arbiter
from worldline.model import Plan


class Told(Observer):
    def __init__(self) -> None:
        self.times: list[int] = []

    def passed(self, time: int) -> None:
        self.times.append(time)


@pytest.mark.parametrize(("size", "is_due"), [(10, False), (200_000, True)])
def test_what_is_settled_is_told_after_the_answer_if_much_was_sent(size: int, is_due: bool) -> None:
    told = Told()
    arbiter = Arbiter(Plan(roster=("ann",)), told)
    arbiter.handle("ann", Join(publishes=("pose",)))
    answers = arbiter.handle("ann", Publish("pose", bytes(size), 0), Advance(1))
    assert any(isinstance(answer, Grant) for answer in answers)
    assert told.times == []
    arbiter.tell_if_due()
    assert bool(told.times) is is_due
    arbiter.handle("ann", Publish("pose", b"", 1), Advance(2))
    arbiter.tell_if_due()
    assert len(told.times) == is_due
