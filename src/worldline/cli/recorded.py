"""Records what a command runs, and says so in the same words whichever command it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from worldline.cli.console import remark
from worldline.history.observer import DEAD, UNDER_WAY
from worldline.history.outcome import Outcome
from worldline.lock.arbiter import DROPPED_BY_BUFFER, NEVER_TAKEN
from worldline.model.text import counted
from worldline.targets import Ready
from worldline.targets.federation import ReadyFederation

if TYPE_CHECKING:
    from worldline.recording import RunRecording, Shelf
    from worldline.recording.timing import TimingWriter


# Notes the timing of a run beside its recording, if somebody wants to know later who waited for whom.


class RunTiming:
    """What is noted of a run, if anything is."""

    def __init__(self, writer: TimingWriter | None = None) -> None:
        self.writer = writer
        self._digest: bytes | None = None

    def conclude(self, outcome: Outcome) -> None:
        self._digest = outcome.digest

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close(self._digest)


def timing_place(ready: ReadyFederation, shelf: Shelf | None, *, wanted: bool) -> Path | None:
    """Return where a timing is noted: beside the recording, or where that would be."""
    if not wanted:
        return None
    from worldline.recording.timing_file import TIMING_SUFFIX

    if shelf is None or shelf.is_stream:
        return Path(ready.recording).with_suffix(TIMING_SUFFIX)
    shelf.is_timed = True
    return shelf.path.with_suffix(TIMING_SUFFIX)


@contextmanager
def timing_of(ready: ReadyFederation, place: Path | None, *, force: bool) -> Iterator[RunTiming]:
    """Note a run's timing until the end of the block."""
    if place is None:
        yield RunTiming()
        return
    from worldline.recording.timing import TimingWriter

    timing = RunTiming(TimingWriter(place, ready.name, ready.plan(), force=force, warn=remark))
    try:
        yield timing
    finally:
        timing.close()


# How many messages were lost, in the same words for a run and for its recording.

_APART = {
    DROPPED_BY_BUFFER: "not kept by buffers",
    NEVER_TAKEN: "never taken",
    UNDER_WAY: UNDER_WAY,
    DEAD: "sent to the dead",
}
"""What nothing has lost: it reached its receiver, or that wasn't there, or the run was over first."""


def losses_in_words(counts: Mapping[tuple[str, str, str], int], *always: str) -> str:
    """Say how many of the messages, counted by (receiver, topic, reason), were lost, and what else became of others.

    A reason that isn't a loss is named if there are such messages, or `always`.
    """
    apart = dict.fromkeys(_APART, 0)
    lost = 0
    for (_, _, reason), count in counts.items():
        if reason in apart:
            apart[reason] += count
        else:
            lost += count
    said = [f"{apart[reason]:,} {words}" for reason, words in _APART.items() if apart[reason] or reason in always]
    return ", ".join([f"{counted(lost, 'message')} lost", *said])


class NotRecorded:
    """Stands for the recording of a run that isn't recorded."""

    observer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def conclude(self, outcome: Outcome) -> None: ...

    def break_off(self, failure: BaseException, *, end: int | None = None) -> None: ...

    def give_up(self) -> None: ...


def recording_of(ready: Ready, shelf: Shelf | None, say: Callable[[str], None] | None) -> RunRecording | NotRecorded:
    """Return the recording of a run; of several processes that run it, one records. Nobody may want to know where."""
    if shelf is None or not ready.is_main:
        return NotRecorded()
    from worldline.recording import RunRecording  # Here, since many runs aren't recorded.

    return RunRecording(shelf, ready.recorder, say=say or (lambda _: None), warn=remark)
