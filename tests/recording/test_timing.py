"""Timings: what was heard and when, in a file that can be read while it is written, and when its writer was killed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.lock.why.casts import CELL, cell
from tests.lock.why.theater import run
from worldline.lock import Advance, Join, Publish
from worldline.lock.why.heard import Heard, HeardSending
from worldline.model import UsageError
from worldline.recording.output import is_timing
from worldline.recording.timing import Timing, TimingWriter

PLAN = cell()


def ticks() -> int:
    ticks.now += 100  # type: ignore[attr-defined]
    return int(ticks.now)  # type: ignore[attr-defined]


ticks.now = 0  # type: ignore[attr-defined]


def noted(path: Path, count: int = 3) -> TimingWriter:
    writer = TimingWriter(path, "cell", PLAN, clock=ticks)
    writer.hears("a", [Join()])
    for number in range(count - 1):
        writer.hears("a", [Publish("t", b"four", number), Advance(number)])
    return writer


def test_what_was_noted_is_read_without_payloads(tmp_path: Path) -> None:
    noted(tmp_path / "run.timing").close(b"\x01\x02")
    timing = Timing(tmp_path / "run.timing")
    assert (timing.header.name, timing.header.plan) == ("cell", PLAN)
    first, second, _ = timing.heard()
    assert first == Heard(100, "a", (Join(),))
    assert second == Heard(200, "a", (HeardSending("t", 4, 0), Advance(0)))

    assert timing.end == "0102"


def test_a_list_that_changes_afterwards_is_noted_as_it_was(tmp_path: Path) -> None:
    writer = TimingWriter(tmp_path / "run.timing", "cell", PLAN)
    said: list[object] = [Advance(5)]
    writer.hears("a", said)
    said.clear()
    writer.close()
    assert [heard.events for heard in Timing(writer.path).heard()] == [(Advance(5),)]


def test_it_can_be_read_before_it_is_finished_and_when_it_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "run.timing"
    writer = noted(path, 5000)
    timing = Timing(path)
    assert len(list(timing.heard())) == 4096
    assert timing.end is None
    writer.close()
    whole = path.read_bytes()
    assert len(list(Timing(path).heard())) == 5000
    for size in (len(whole) - 1, len(whole) - 40, len(whole) // 2):
        path.write_bytes(whole[:size])
        cut = list(Timing(path).heard())
        assert len(cut) in (0, 4096, 5000)


def test_a_long_run_is_written_once_a_second_at_least(tmp_path: Path) -> None:
    path = tmp_path / "run.timing"
    writer = noted(path)
    ticks.now += 2_000_000_000  # type: ignore[attr-defined]
    writer.hears("a", [Advance(7)])
    assert len(list(Timing(path).heard())) == 4
    writer.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b"worldline timing 1\nH\0\0\0\2{}",
        b"worldline timing 2\n",
        b"worldline timing 2\nH\0\0\0\2{}",
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.timing"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"isn't a timing|can't be read"):
        Timing(path)


def test_what_was_altered_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.timing"
    noted(path).close()
    whole = bytearray(path.read_bytes())
    place = whole.rindex(b"P\0\0")
    whole[place + 12] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(UsageError, match="can't be read"):
        list(Timing(path).heard())


def test_every_bit_counts(tmp_path: Path) -> None:
    """Whatever was altered is refused, or taken for the place where the file was cut off."""
    path = tmp_path / "run.timing"
    noted(path, 50).close(b"\x01")
    whole = path.read_bytes()
    for bit in Random(1).sample(range(8 * len(whole)), 200):
        altered = bytearray(whole)
        altered[bit // 8] ^= 1 << bit % 8
        path.write_bytes(altered)
        try:
            timing = Timing(path)
            list(timing.heard())
        except UsageError:
            continue
        assert timing.is_cut_off
        assert timing.end is None


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.timing can't be read: No such file"):
        Timing(tmp_path / "nothing.timing")


def test_only_timings_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run.timing"
    path.write_text("my notes")
    with pytest.raises(UsageError, match="isn't a timing and would be replaced"):
        TimingWriter(path, "cell", PLAN)
    assert path.read_text() == "my notes"
    TimingWriter(path, "cell", PLAN, force=True).close()
    assert is_timing(path)
    noted(path).close()
    assert len(list(Timing(path).heard())) == 3


def test_a_pipe_cant_be_read_again(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="isn't a file"):
        TimingWriter(Path("/dev/null"), "cell", PLAN)


def test_a_full_disk_ends_the_timing_and_nothing_else(tmp_path: Path) -> None:
    warnings: list[str] = []
    writer = TimingWriter(tmp_path / "run.timing", "cell", PLAN, warn=warnings.append)

    class Full:
        def write(self, _: bytes) -> int:
            raise OSError(28, "No space left on device")

        def close(self) -> None: ...

    assert writer._file is not None
    writer._file.close()
    writer._file = Full()  # type: ignore[assignment]
    for _ in range(5000):
        writer.hears("a", [Advance(5)])
    writer.close()
    (warning,) = warnings
    assert warning.endswith("can't be written any more: No space left on device")


def test_a_run_can_be_read_back_as_it_was(tmp_path: Path) -> None:
    heard = run(PLAN, CELL).heard
    walls = iter([0, *(each.wall for each in heard)])
    writer = TimingWriter(tmp_path / "run.timing", "cell", PLAN, clock=lambda: next(walls))
    for each in heard:
        writer.hears(each.who, list(each.events))
    writer.close()
    assert list(Timing(writer.path).heard()) == heard
