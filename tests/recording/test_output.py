"""What a recorder leaves when it is killed: all that was final a moment ago, at whatever instant that is."""

from __future__ import annotations

import io
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
from mcap.exceptions import McapError
from mcap.records import Message
from mcap.stream_reader import StreamReader

from tests.recording.stage import Performance, perform, recorded, truth, write_script
from worldline.model import LossError, UsageError, plan
from worldline.recording import Condition, Recorder, Recording, writer
from worldline.recording.output import Output
from worldline.recording.writer import SHOW_EVERY_S

PLAN = plan(["a", "b"])
PATIENCE_S = 60.0


class Clock:
    """Goes on when it is told to."""

    now = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock by which recorders show what isn't a whole chunk yet."""
    clock = Clock()
    monkeypatch.setattr(writer, "monotonic", lambda: clock.now)
    return clock


def entries(path: Path) -> list[Any]:
    recording = Recording(path)
    assert recording.verify().condition is Condition.CUT_OFF, recording.verify()
    return sorted(
        [*recording.arrivals(), *recording.unheard(), *recording.losses()], key=lambda entry: (entry.sent, repr(entry))
    )


def test_what_is_final_is_in_the_file_within_a_second_however_little_it_is(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "run.mcap"
    recorder = Recorder(path, PLAN)
    for sequence in range(3):
        recorder.sent("a", sequence, "x", 10 * sequence, b"one", 10 * sequence + 5)
        recorder.arrives("a", sequence, "b", 10 * sequence + 5, 0, None)
        recorder.passed(10 * sequence)
    assert entries(path) == []
    clock.now += SHOW_EVERY_S
    recorder.passed(20)
    assert [each.sent for each in entries(path)] == [0, 10]  # The third may still change.
    recorder.passed(26)
    assert len(entries(path)) == 2
    clock.now += SHOW_EVERY_S
    recorder.passed(26)
    assert len(entries(path)) == 3
    assert Recording(path).verify().until == 20
    records = []
    with pytest.raises(McapError):  # noqa: PT012 - it raises where the file ends.
        for record in StreamReader(io.BytesIO(path.read_bytes())).records:
            records.append(record)  # noqa: PERF402
    assert sum(isinstance(record, Message) for record in records) == 3  # Other tools read them too.
    recorder.close()
    assert SHOW_EVERY_S < 1


class Watched(Output):
    """Lets somebody look at the file after everything that is done to it, and in the middle of large writes."""

    looks: ClassVar[list[Any]] = []

    def _write_at(self, offset: int, data: bytes) -> None:
        assert self._descriptor is not None
        step = 9 if len(data) <= 9 else max(9, len(data) // 7)
        for place in range(0, len(data), step):
            super()._write_at(offset + place, data[place : place + step])
            self._look()

    def _cut(self, size: int) -> None:
        super()._cut(size)
        self._look()

    def _look(self) -> None:
        for look in self.looks:
            look()


@pytest.mark.parametrize("number", range(1, 4))
def test_at_every_instant_the_file_holds_what_it_held_before_and_nothing_twice(
    number: int, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worldline.recording.writer.Output", Watched)
    script = write_script(Random(number), participants=4, acts=25)
    everything = sorted([entry for kind in truth(script) for entry in kind], key=repr)
    path = tmp_path / "run.mcap"
    recorder = Recorder(path, script.plan(), federation="stage", chunk_size=500)
    seen: list[Any] = []
    looks = 0

    def look() -> None:
        nonlocal seen, looks
        looks += 1
        found = entries(path)
        assert len(set(found)) == len(found)
        assert all(entry in everything for entry in found)
        assert all(entry in found for entry in seen)
        seen = found

    monkeypatch.setattr(Watched, "looks", [look])
    random = Random(number)
    performance = Performance(script, recorder, random)
    while performance.step():
        floor = performance.floor()
        clock.now += random.choice((0, SHOW_EVERY_S / 2, SHOW_EVERY_S))
        if floor is not None:
            recorder.passed(floor)
    assert looks > 50
    assert len(seen) > 10
    monkeypatch.setattr(Watched, "looks", [])
    recorder.close(dropped={("ann", "x", "dropped by its buffer"): 2})
    assert path.read_bytes() == recorded(script, 99)  # And at the end nobody can tell.


def test_a_tail_that_is_shorter_or_longer_than_its_chunk_leaves_nothing_behind(tmp_path: Path, clock: Clock) -> None:
    for number, payload in enumerate((bytes(3_000), Random(1).randbytes(3_000))):
        files = []
        for shows in (False, True):
            path = tmp_path / f"{number}{shows}.mcap"
            recorder = Recorder(path, PLAN, chunk_size=10_000)
            for sequence in range(20):
                recorder.sent("a", sequence, "x", 10 * sequence, payload, 10 * sequence + 5)
                clock.now += SHOW_EVERY_S * shows
                recorder.passed(10 * sequence)
            recorder.close()
            files.append(path.read_bytes())
        assert files[0] == files[1]


# --- What can only be streamed to ---


def streamed(path: Path) -> bytes:
    script = write_script(Random(3), participants=4)
    recorder = Recorder(path, script.plan(), federation="stage", chunk_size=500)
    perform(script, recorder, 1)
    recorder.close(dropped={("ann", "x", "dropped by its buffer"): 2})
    return recorded(script, 2)


def test_a_pipe_gets_the_same_bytes_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    expected = streamed(path)
    reader.join(30)
    assert got == [expected]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_device_stays_what_it_is_however_often_it_is_overwritten() -> None:
    before = Path("/dev/null").stat()
    for overwrite in (False, True):
        Recorder("/dev/null", PLAN, overwrite=overwrite).close()
    after = Path("/dev/null").stat()
    assert (before.st_ino, before.st_rdev) == (after.st_ino, after.st_rdev)
    with pytest.raises(LossError, match="the recording /dev/full can't be written: No space left"):
        Recorder("/dev/full", PLAN)


@pytest.fixture
def terminal() -> Iterator[str]:
    ours, theirs = os.openpty()
    yield os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


def test_a_terminal_is_no_place_for_a_recording(terminal: str) -> None:
    with pytest.raises(UsageError, match="is a terminal, and a recording isn't text"):
        Recorder(terminal, PLAN)


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    link, target = tmp_path / "link.mcap", tmp_path / "target.mcap"
    link.symlink_to(target)
    Recorder(link, PLAN).close()
    with pytest.raises(UsageError, match="already exists"):
        Recorder(link, PLAN)
    Recorder(link, PLAN, overwrite=True).close()
    assert link.is_symlink()
    assert Recording(target).verify().condition is Condition.INTACT


def test_nothing_follows_what_couldnt_be_written(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.mcap"
    recorder = Recorder(path, PLAN)
    recorder.sent("a", 0, "x", 0, b"one", 5)
    clock.now += SHOW_EVERY_S
    recorder.passed(10)

    def full(descriptor: int, data: bytes, offset: int) -> int:
        raise OSError(28, "No space left on device")

    recorder.sent("a", 1, "x", 10, b"two", 15)
    clock.now += SHOW_EVERY_S
    with monkeypatch.context() as context:
        context.setattr(os, "pwrite", full)
        with pytest.raises(LossError, match="No space left on device"):
            recorder.passed(20)
    recorder.passed(30)
    recorder.abandon("the disk is full")
    assert [each.payload for each in entries(path)] == [b"one"]


def test_what_is_too_large_to_be_read_again_isnt_written() -> None:
    recorder = Recorder(io.BytesIO(), PLAN)
    recorder.sent("a", 0, "x", 0, bytes(2**30 + 1), 5)
    with pytest.raises(UsageError, match="a at 0s: its message 0 on x has 1,073,741,825 bytes"):
        recorder.close()
    with pytest.raises(UsageError, match="a chunk can't have"):
        Recorder(io.BytesIO(), PLAN, chunk_size=2**25)


def test_a_pipe_that_nobody_reads_is_waited_for_until_that_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        output = Output(path, overwrite=False)

        def write() -> None:
            with pytest.raises(LossError, match="the reader closed it"):
                output.put(bytes(2**20))

        writing = threading.Thread(target=write)
        writing.start()
        writing.join(0.01)
        assert writing.is_alive()
        output.give_up()
        writing.join(PATIENCE_S)
        assert not writing.is_alive()
        assert output.broken
        output.close()
    finally:
        os.close(reader)
