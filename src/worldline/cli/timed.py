"""Notes the timing of a run beside its recording, if somebody wants to know later who waited for whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from worldline.cli.console import remark
from worldline.history.outcome import Outcome
from worldline.targets.federation import ReadyFederation

if TYPE_CHECKING:
    from worldline.recording import Shelf
    from worldline.recording.timing import TimingWriter


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
