"""How often a run looks up: it follows the pace, and whoever watches is told now and then."""

from __future__ import annotations

from itertools import count

import pytest

from worldline.history.outcome import Status
from worldline.model import FOREVER
from worldline.processes import status_timer as module
from worldline.processes.status_timer import LOOK_EVERY_S, StatusTimer, looks


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_the_pause_follows_the_pace(clock: list[float]) -> None:
    timer, events = StatusTimer(lambda _now, _events: None), count(1)

    def look() -> int:
        return timer(5, next(events))

    pauses = []
    for _ in range(12):
        clock[0] += LOOK_EVERY_S / 10
        pauses.append(look())
    assert pauses == [2**power for power in range(1, 13)]
    for _ in range(3):
        clock[0] += 2 * LOOK_EVERY_S
        pauses.append(look())
    assert pauses[-3:] == [2**11, 2**10, 2**9]
    clock[0] += LOOK_EVERY_S / 2
    assert look() == 2**9
    for _ in range(30):
        look()
    assert look() == 1_000_000
    for _ in range(30):
        clock[0] += 2 * LOOK_EVERY_S
        look()
    assert look() == 2  # It was 1, and nothing has passed since.


def test_a_worker_that_waits_learns_nothing_of_the_pace(clock: list[float]) -> None:
    told: list[int] = []
    look = StatusTimer(lambda now, _events: told.append(now))
    pause = look(1, 3)
    for now in range(2, 12):
        clock[0] += 2 * LOOK_EVERY_S
        assert look(now, 3) == pause
    assert told == list(range(1, 12)), "but it says how far it is"


def test_it_is_told_at_once_and_then_now_and_then(clock: list[float]) -> None:
    told: list[Status] = []
    look = looks(told.append, 100)
    look(0, 0)
    assert told == []  # Nothing has happened.
    for step in range(1, 31):
        clock[0] = 0.3 * LOOK_EVERY_S * step
        look(step, 2 * step)
    assert told == [Status(step, 100, 2 * step) for step in (1, 5, 9, 13, 17, 21, 25, 29)]


def test_nobody_needs_no_looks() -> None:
    assert looks(None, 100)(5, 5) == FOREVER
