"""Asking before sleeping: only while answers come soon, not for long, and not where others need the processor."""

from __future__ import annotations

import pytest

from worldline.federation.eagerness import Eagerness


class Ticks:
    """A clock that passes so much with each look at it."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def brisk(step: float) -> tuple[Eagerness, Ticks]:
    clock = Ticks(step)
    eagerness = Eagerness(clock)
    eagerness.came(0.0, 0.0001)
    return eagerness, clock


def test_it_asks_only_if_the_last_answer_came_soon() -> None:
    eagerness = Eagerness(Ticks(0.0))
    assert not eagerness.asks(0.0)
    eagerness.came(0.0, 0.0001)
    assert eagerness.asks(0.0)
    eagerness.came(0.0, 0.01)
    assert not eagerness.asks(0.0)


def test_it_doesnt_ask_for_long() -> None:
    eagerness, _ = brisk(0.00001)
    asked = 0
    while eagerness.asks_again(0.0):
        asked += 1
    assert asked == 9
    assert eagerness.asks(0.0002)  # The next time it does.


@pytest.mark.parametrize("step", [0.0001, 0.003])
def test_where_others_need_the_processor_it_sleeps_for_some_time(step: float) -> None:
    eagerness, clock = brisk(step)
    assert not eagerness.asks_again(0.0)
    assert not eagerness.asks(clock.now)
    assert not eagerness.asks(clock.now + 0.09)
    assert eagerness.asks(clock.now + 0.11)
