"""Asking before sleeping: only while answers come soon, not for long, and not where others need the processor."""

from __future__ import annotations

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


def crowded(eagerness: Eagerness, clock: Ticks) -> float:
    """Give the processor away for long, in vain; return when."""
    clock.step = 0.001
    assert eagerness.asks_again(clock.now)  # Whoever had it may have sent something.
    assert not eagerness.asks_again(clock.now)
    clock.step = 0.00001
    return clock.now


def pause_after(eagerness: Eagerness, now: float) -> float:
    """Return for how long it doesn't ask, to the millisecond."""
    return next(pause for pause in range(1000) if eagerness.asks(now + pause / 1000 + 1e-6)) / 1000


def test_where_strangers_need_the_processor_it_sleeps_for_some_time_and_for_longer_each_time() -> None:
    eagerness, clock = brisk(0.00001)
    pauses = []
    for _ in range(10):
        now = crowded(eagerness, clock)
        pauses.append(pause_after(eagerness, now))
        clock.now = now + pauses[-1]
    assert pauses == [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.256]
    clock.now += 0.01  # It could ask again for a while.
    assert pause_after(eagerness, crowded(eagerness, clock)) == 0.001


def test_who_gave_the_processor_to_the_sender_asks_on() -> None:
    eagerness, clock = brisk(0.001)
    for _ in range(10):
        assert eagerness.asks_again(clock.now)  # It took long,
        eagerness.came(clock.now, clock.now + 0.0001)  # but that is why something came.
        assert eagerness.asks(clock.now)
