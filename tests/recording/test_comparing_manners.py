"""What a comparison refuses, what it says of runs that failed or have nothing in common, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.recording.test_comparing import record, text
from tests.targets.files import KERNEL
from worldline.cli.diff import diff as diff_command
from worldline.cli.info import info
from worldline.kernel import Entity, Simulation
from worldline.model import FOREVER, ModelError, UsageError, plan
from worldline.recording import Recorder, Recording
from worldline.recording.comparing import compare_recordings
from worldline.recording.scan import sendings
from worldline.targets import RunOptions


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return record(tmp_path / "whole.mcap")


def differ(a: str, b: str) -> None:
    diff_command(a, b, both=RunOptions(), of_a=RunOptions(), of_b=RunOptions())


def altered(path: Path, place: int) -> Path:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    other = path.with_name("altered.mcap")
    other.write_bytes(data)
    return other


PLACES: dict[str, Callable[[Path], int]] = {
    "the times of a chunk": lambda path: Recording(path).scan.chunks[3].offset,
    "the index": lambda path: path.stat().st_size - 200,
    "the header": lambda path: path.read_bytes().index(b"platform") + 12,
    "the digest": lambda path: path.read_bytes().rindex(b"digest") + 12,
}


@pytest.mark.parametrize("where", PLACES)
def test_an_altered_file_is_refused_wherever_that_is(where: str, whole: Path) -> None:
    other = altered(whole, PLACES[where](whole))
    for pair in ((whole, other), (other, whole), (other, other)):
        with pytest.raises(UsageError, match=r"altered\.mcap (was altered|can't be read)"):
            compare_recordings(*pair)


def test_a_file_that_is_cut_off_is_refused_once_what_is_there_is_compared(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(whole.read_bytes()[:-2000])
    with pytest.raises(UsageError, match=r"cut\.mcap is cut off, and nothing can be said of what is missing"):
        differ(str(whole), str(cut))
    assert ", then B ends\n" in capsys.readouterr().out
    with pytest.raises(UsageError, match="is cut off"):
        differ(str(cut), str(cut))
    both = cut.read_bytes()
    cut.write_bytes(both[:1500] + bytes([both[1500] ^ 1]) + both[1501:])
    with pytest.raises(UsageError, match=r"cut\.mcap was altered"):
        compare_recordings(cut, cut)


def broken(path: Path, names: tuple[str, ...] = ("ann",)) -> Path:
    recorder = Recorder(path, plan(names))
    for name in names:
        recorder.began(name, 0)
    recorder.abandon("the arm fell off", participant=names[0], at=0)
    return path


def test_of_nothing_it_isnt_said_that_nothing_differs(tmp_path: Path) -> None:
    a, b = broken(tmp_path / "a.mcap"), broken(tmp_path / "b.mcap")
    assert compare_recordings(a, b).lines()[-1] == "nothing was recorded in either that could be compared"


def test_runs_without_a_common_member_are_strangers(whole: Path, tmp_path: Path) -> None:
    other = broken(tmp_path / "other.mcap", ("zoe", "yan"))
    shown = text(whole, other)
    assert shown.endswith("no member takes part in both runs: they are of different models, or all have other names\n")
    assert "cause" not in shown


@pytest.mark.long
def test_targets_of_different_kinds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(KERNEL)
    with pytest.raises(UsageError, match="A is of the kind kernel, and B of the kind nodes"):
        differ("mine.py", "flooding")


def test_times_in_headers_are_times(tmp_path: Path) -> None:
    paths = []
    for end in (None, 3_000_000_000):
        recorder = Recorder(tmp_path / f"{end}.mcap", plan(["ann"], until=end), federation=f"until {end}")
        recorder.began("ann", 0)
        recorder.ended("ann", 5, b"")
        recorder.close()
        paths.append(tmp_path / f"{end}.mcap")
    assert compare_recordings(*paths).lines()[2:5] == [
        "the headers differ:",
        '  name: "until None" → "until 3000000000"',
        "  end: none → 3s",
    ]


def test_long_values_are_shown_where_they_differ(whole: Path, tmp_path: Path) -> None:
    def long(name: str, last: str) -> Path:
        return record(tmp_path / name, lambda _: b'{"v":"%s%s"}' % (b"x" * 500, last.encode()))

    shown = text(long("a.mcap", "yes"), long("b.mcap", "no"))
    for side, last in (("A", "yes"), ("B", "no")):
        line = next(line for line in shown.splitlines() if line.startswith(f"  {side}: "))
        assert line.startswith(f"  {side}: …xxx")
        assert line.endswith(f'{last}"}}')
        assert len(line) < 70
    assert "  v: …xxx" in shown


class Source(Entity):
    def start(self):  # type: ignore[no-untyped-def]
        for number in range(5):
            yield "1s"
            for name in ("first", "last"):
                self.send(name, "item", number, delay="1s")


class Sink(Entity):
    def __init__(self, fails: bool) -> None:
        self._fails = fails

    def on_item(self, number: int) -> None:
        if self._fails and number == 3:
            raise ValueError("three")


def run_of_items(path: Path, *, fails: bool) -> Path:
    simulation = Simulation()
    simulation.add("source", Source())
    simulation.add("first", Sink(fails))
    simulation.add("last", Sink(fails=False))
    simulation.send("first", "item", -1)
    recorder = Recorder(path, simulation.plan(None), encoding="json")
    try:
        outcome = simulation.run(observer=recorder)
    except ModelError as error:
        recorder.abandon(error.problem, participant=error.participant, at=error.at, end=5_000_000_000)
    else:
        recorder.close(dropped=outcome.dropped, end=FOREVER)
    return path


def test_what_a_failure_has_forestalled_is_no_difference(tmp_path: Path) -> None:
    failed, repaired = run_of_items(tmp_path / "a.mcap", fails=True), run_of_items(tmp_path / "b.mcap", fails=False)
    until = Recording(failed).outcome.until  # type: ignore[union-attr]
    fates = [fate for each in sendings(Recording(failed).scan) for fate in each[4]]
    assert any(fate[0] >= until for fate in fates)  # type: ignore[operator]
    for pair, side in (((failed, repaired), "A"), ((repaired, failed), "B")):
        difference = compare_recordings(*pair)
        assert difference.partings.is_same
        assert difference.lines()[-1].endswith(f", then {side} ends")


def test_what_nobody_in_the_model_does_has_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info(run_of_items(tmp_path / "a.mcap", fails=True))
    shown = capsys.readouterr().out
    assert "(from outside)  0s" in shown
    assert "(guest)" not in shown
