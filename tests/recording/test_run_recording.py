"""The recording of one run: whatever ends it, the file is whole, and nothing is left of what never began."""

from __future__ import annotations

from pathlib import Path

import pytest

from worldline.history.outcome import Outcome
from worldline.model import Interrupted, LossError, ModelError, Plan, UsageError
from worldline.recording import Recorder, Recording, RunRecording, Shelf
from worldline.recording.output import Output, RecordingTarget

PLAN = Plan(roster=("ann",), end=10)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def said() -> list[str]:
    return []


def recording(said: list[str]) -> RunRecording:
    def opened(target: RecordingTarget) -> Recorder:
        return Recorder(target, PLAN, federation="it", overwrite=True)

    return RunRecording(Shelf("run.mcap"), opened, say=said.append, warn=lambda text: said.append(f"warning: {text}"))


def tell(observer: Recorder) -> None:
    observer.began("ann", 0)
    observer.noted("ann", "diary", 1, b"1")
    observer.passed(2)
    observer.noted("ann", "diary", 5, b"5")


def fail(observer: Recorder, error: BaseException) -> None:
    tell(observer)
    raise error


def verdict() -> str:
    return Recording("run.mcap").verify().text


def outcome(failure: ModelError | None = None, *, now: int = 10, is_cut: bool = False) -> Outcome:
    return Outcome(digest=b"", now=now, events=2, failure=failure, is_cut=is_cut)


def test_what_has_come_of_it_ends_it(said: list[str]) -> None:
    with recording(said) as run:
        tell(run.observer)
        run.conclude(outcome())
        assert not Path("run.mcap").exists()
    assert Recording("run.mcap").counts()["diary"].published == 2
    assert said == ["recorded in run.mcap"]


def test_an_outcome_that_is_a_failure_says_until_when_all_is_certain(said: list[str]) -> None:
    with recording(said) as run:
        tell(run.observer)
        run.conclude(outcome(ModelError("it broke", participant="ann", at=5), now=5))
    assert "ann at 5ns: it broke" in verdict()
    assert Recording("run.mcap").counts()["diary"].published == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Interrupted("enough", at=3), "at 3ns: enough"),
        (KeyboardInterrupt(), "interrupted"),
        (KeyboardInterrupt("interrupted by SIGTERM"), "interrupted by SIGTERM"),
        (ZeroDivisionError("oh"), "ZeroDivisionError: oh"),
    ],
)
def test_what_is_raised_ends_it_with_what_is_final(said: list[str], error: BaseException, words: str) -> None:
    with pytest.raises(type(error)), recording(said) as run:
        fail(run.observer, error)
    assert words in verdict()
    assert Recording("run.mcap").counts()["diary"].published == 1
    assert said == ["recorded in run.mcap"]


def test_a_run_that_never_began_changes_nothing(said: list[str]) -> None:
    Path("run.mcap").write_bytes(b"")
    with pytest.raises(ModelError), recording(said):
        raise ModelError("not today")
    assert [(path.name, path.read_bytes()) for path in Path().iterdir()] == [("run.mcap", b"")]
    assert said == []


def test_a_recorder_that_cant_be_opened_leaves_nothing() -> None:
    def opened(target: RecordingTarget) -> Recorder:
        assert isinstance(target, Output)
        target.put(b"half a header")
        raise LossError("the disk is full")

    with pytest.raises(LossError), RunRecording(Shelf("run.mcap"), opened):
        pass
    assert list(Path().iterdir()) == []


def test_one_that_cant_be_written_is_named_as_its_user_has_named_it() -> None:
    name = f"{'x' * 245}.mcap"  # The one under which it is written is too long.
    with pytest.raises(UsageError, match=f"^{name} can't be written: File name too long"):
        RunRecording(Shelf(name), lambda _: pytest.fail("it was opened")).__enter__()


def test_what_it_cant_hold_is_said_and_hides_nothing(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worldline.recording.writer.CHANNELS_MAX", 0)
    with pytest.raises(ModelError, match="it broke"), recording(said) as run:
        fail(run.observer, ModelError("it broke"))
    assert "it broke" in verdict()
    warning, recorded = said
    assert warning.startswith("warning: the recording isn't complete: the run has more topics than")
    assert recorded == "recorded in run.mcap"


def test_the_one_before_it_is_spoken_of(said: list[str]) -> None:
    for _ in range(2):
        with recording(said) as run:
            tell(run.observer)
            run.conclude(outcome())
    assert said[1:] == ["run.mcap was a recording of it; it is now run.previous.mcap", "recorded in run.mcap"]


def test_one_that_cant_have_its_name_is_warned_of(said: list[str]) -> None:
    with recording(said) as run:
        tell(run.observer)
        run.conclude(outcome())
        Path("run.mcap").write_text("precious")
    warning, recorded = said
    assert warning.startswith("warning: run.mcap isn't a recording and would be replaced")
    assert recorded.startswith("recorded in run.unfinished-")
