"""Asking before sleeping: only while answers come soon, not for long, and not where others need the processor."""

from __future__ import annotations

from worldline.federation.participant.connection import Eagerness, MonotonicClock


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
    eagerness = Eagerness(MonotonicClock(clock))
    eagerness.came(0.0, 0.0001)
    return eagerness, clock


def test_it_asks_only_if_the_last_answer_came_soon() -> None:
    eagerness = Eagerness(MonotonicClock(Ticks(0.0)))
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


def test_who_asked_in_vain_sleeps_the_next_time() -> None:
    eagerness = Eagerness(MonotonicClock(Ticks(0.0)))
    for _ in range(3):  # As in a ring, where the others take longer than it asks.
        eagerness.came(0.0, 0.0003)
        assert eagerness.asks(0.0)
        eagerness.came(0.0, 0.0003)
        assert not eagerness.asks(0.0)


def pause_after(eagerness: Eagerness, now: float) -> int:
    """Return for how many milliseconds it doesn't ask."""
    return next(pause for pause in range(1000) if eagerness.asks(now + pause / 1000 + 1e-6))


def test_where_strangers_need_the_processor_it_doesnt_ask_for_long() -> None:
    eagerness, clock = brisk(0.0001)
    assert eagerness.asks_again(0.0)  # Whoever had it may have sent something;
    assert not eagerness.asks_again(0.0)  # that wasn't so.
    assert pause_after(eagerness, clock.now) == 7
    eagerness.came(0.0, 0.0001)
    assert eagerness.asks_again(0.0)


def test_what_took_very_long_wasnt_the_sender_whatever_came() -> None:
    eagerness, clock = brisk(0.003)
    assert not eagerness.asks_again(0.0)
    eagerness.came(clock.now - 0.0001, clock.now)
    assert pause_after(eagerness, clock.now) == 192


def test_who_gave_the_processor_to_the_sender_asks_on() -> None:
    eagerness, clock = brisk(0.0001)
    for _ in range(10):
        assert eagerness.asks_again(clock.now)  # It took long,
        eagerness.came(clock.now, clock.now + 0.0001)  # but that is why something came.
        assert eagerness.asks(clock.now)
