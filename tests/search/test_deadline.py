"""The deadline: what takes too long is stopped, and nothing of it stays behind."""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType

import pytest

from worldline.model.errors import Stuck
from worldline.search.searching import deadline


def spin(seconds: float) -> bool:
    """Do nothing, busily."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return True


def test_a_loop_without_an_end_is_stopped() -> None:
    begin = time.monotonic()
    with (
        pytest.raises(Stuck, match=r"more than 0.02 seconds of real time \(is there an endless loop\?"),
        deadline(0.02),
    ):
        spin(30)
    assert time.monotonic() - begin < 10


def test_sleeping_counts() -> None:
    with pytest.raises(Stuck), deadline(0.01):
        time.sleep(30)


def test_what_ends_in_time_isnt_touched_later() -> None:
    with deadline(0.5):
        pass
    assert spin(0.6)


def test_the_handler_of_others_is_put_back() -> None:
    def theirs(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGALRM, theirs)
    try:
        with deadline(10):
            assert signal.getsignal(signal.SIGALRM) is not theirs
        assert signal.getsignal(signal.SIGALRM) is theirs
        with pytest.raises(ZeroDivisionError), deadline(10):
            raise ZeroDivisionError
        assert signal.getsignal(signal.SIGALRM) is theirs
    finally:
        signal.signal(signal.SIGALRM, before)


def test_code_that_catches_everything_is_stopped_too() -> None:
    def stubborn() -> int:
        caught = 0
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            try:
                spin(0.5)
            except Exception:
                caught += 1
                if caught == 3:
                    raise
        return caught

    with pytest.raises(Stuck), deadline(0.02):
        stubborn()


def test_no_limit_is_no_limit() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with deadline(None):
        assert signal.getsignal(signal.SIGALRM) is before


def test_in_other_threads_there_is_none() -> None:
    done: list[bool] = []

    def work() -> None:
        with deadline(0.001):
            done.append(spin(0.01))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_where_the_system_has_no_timers_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "setitimer")
    with deadline(0.001):
        assert spin(0.01)


def test_one_within_another_leaves_the_outer_one_alone() -> None:
    def work() -> bool:
        with deadline(10):
            pass
        return spin(0.3)

    with pytest.raises(Stuck, match=r"more than 0\.05 seconds"), deadline(0.05):
        work()


def test_the_timer_of_others_goes_on() -> None:
    rung: list[int] = []
    handler = signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    others = signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with deadline(10):
            pass
        spin(0.1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, *others)
        signal.signal(signal.SIGALRM, handler)
    assert rung == [signal.SIGALRM]


def test_one_second_is_one_second() -> None:
    with pytest.raises(Stuck, match="more than 1 second of real time"), deadline(1):
        signal.raise_signal(signal.SIGALRM)
