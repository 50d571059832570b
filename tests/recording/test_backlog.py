"""What a recorder has done in another thread: in order, all of it, and told if it fails."""

from __future__ import annotations

import errno
import io
import threading
from pathlib import Path

import pytest

from worldline import plan
from worldline.model import LossError
from worldline.recording import Recorder, Recording, backlog
from worldline.recording.backlog import Backlog

LARGE = 2**20


def test_what_is_small_is_done_at_once() -> None:
    done: list[threading.Thread] = []
    Backlog().add(10, lambda: done.append(threading.current_thread()))
    assert done == [threading.current_thread()]


def test_what_is_large_is_done_elsewhere_and_all_in_order() -> None:
    made, goes_on, done = Backlog(), threading.Event(), list[int]()
    made.add(LARGE, goes_on.wait)
    for number in range(10):
        made.add(LARGE if number % 2 else 1, done.append, number)
    assert done == []
    goes_on.set()
    made.drain()
    assert done == list(range(10))


def test_whoever_adds_too_much_waits_for_it() -> None:
    made, done = Backlog(), list[int]()
    for number in range(100):
        made.add(LARGE, done.append, number)
        assert number - len(done) <= backlog._WEIGHT_MAX // LARGE + 1
    made.drain()
    assert done == list(range(100))


@pytest.mark.parametrize("weight", [1, LARGE])
def test_a_failure_is_told_once_and_nothing_is_done_after_it(weight: int) -> None:
    made, goes_on, done = Backlog(), threading.Event(), list[int]()

    def fail() -> None:
        raise LossError("it is full")

    made.add(LARGE, goes_on.wait)
    made.add(weight, fail)
    made.add(weight, done.append, 1)
    goes_on.set()
    with pytest.raises(LossError, match="it is full"):
        made.drain()
    made.drain()
    assert made.failed
    assert done == []


# --- In a recorder ---


def record(target: io.BytesIO | Path, count: int = 20) -> Recorder:
    recorder = Recorder(target, plan(["ann", "bob"]))
    recorder.began("ann", 0)
    for number in range(count):
        payload = bytes([number]) * (LARGE if number % 3 else 10)
        recorder.sent("ann", number, "pose", number, payload, number + 1)
        recorder.arrives("ann", number, "bob", number + 1, 0, None)
        recorder.passed(number)
    return recorder


def test_a_file_is_the_same_whoever_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    files = []
    for worth_a_thread in (backlog._WORTH_A_THREAD, 10**9, 0):
        monkeypatch.setattr(backlog, "_WORTH_A_THREAD", worth_a_thread)
        target = io.BytesIO()
        record(target).close()
        files.append(target.getvalue())
    assert files[0] == files[1] == files[2]


class FullDisk(io.BytesIO):
    """Takes only what is written at once."""

    def write(self, data: object) -> int:  # type: ignore[override]
        if threading.current_thread().name == "worldline recorder":
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)  # type: ignore[arg-type]


def test_a_full_disk_is_told() -> None:
    target = FullDisk()
    with pytest.raises(LossError, match="can't be written: No space left on device") as caught:
        record(target, 100).close()
    assert caught.value.advice == "what was written before stays readable"


def test_who_abandons_a_recording_waits_for_it(tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    record(path).abandon("somebody was lost")
    outcome = Recording(path).outcome
    assert outcome is not None
    assert outcome.status == "broken off"
    assert outcome.topics["pose"].published == 18  # The last two may still change.
