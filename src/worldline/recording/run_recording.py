"""The recording of one run, from before it begins until its file has its name: the same whichever command runs it.

R1. The place was judged, and the file is open, before anything happens.
R2. Whatever ends the run, what is certain by then is in the file, and the file is whole.
R3. The file gets its name when the run has ended, and the one before it another. A run that never began leaves nothing
    behind and replaces nothing.
R4. What ended the run stays the error, though the recording can't be finished either.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

from worldline.history.outcome import Outcome
from worldline.model.errors import LossError, WorldlineError
from worldline.recording.output import Output, RecordingTarget
from worldline.recording.shelf import Shelf
from worldline.recording.writer import Recorder


class RunRecording:
    """Records a run on its shelf. `observer` is what the run has to tell, once the recording is entered.

    `opened` makes the recorder. `say` is told where the recording is and what became of the one before it, `warn`
    what is wrong with it.
    """

    observer: Recorder

    def __init__(
        self,
        shelf: Shelf,
        opened: Callable[[RecordingTarget], Recorder],
        *,
        say: Callable[[str], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._shelf = shelf
        self._opened = opened
        self._say = say
        self._warn = warn

    def __enter__(self) -> Self:
        if self._shelf.waits:
            self._say(f"waiting for somebody to read {self._shelf.target}")
        output = Output(self._shelf.target, overwrite=True, name=self._shelf.path)
        try:
            self.observer = self._opened(output)
        except BaseException:
            output.close()
            self._shelf.clear()
            raise
        return self

    def conclude(self, outcome: Outcome) -> None:
        """Finish it with what has come of the run, which may be a failure."""
        if outcome.failure is None:
            self.observer.close(dropped=outcome.dropped)
        else:
            self.break_off(outcome.failure, end=outcome.now + (not outcome.is_cut))  # Until then all is certain.

    def break_off(self, failure: BaseException, *, end: int | None = None) -> None:
        """Finish it with why the run has ended before its time. With an `end`, all that was told is certain."""
        who, at = (failure.participant, failure.at) if isinstance(failure, WorldlineError) else (None, None)
        abandon = partial(self.observer.abandon, _cause(failure), participant=who, at=at)
        try:
            abandon(end=end)
        except WorldlineError as error:  # It can't hold the rest, or the disk is full (R4).
            self._warn(f"the recording isn't complete: {error}")
            with suppress(LossError):
                abandon()  # Up to there.

    def give_up(self) -> None:
        """Wait no more for whoever reads the recording. May be called from a signal's handler."""
        self.observer.give_up()

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.break_off(error)
        if not self.observer.begun:
            self._shelf.clear()
            return
        kept = self._shelf.put()
        if kept.note:
            (self._say if kept.path == self._shelf.path else self._warn)(kept.note)
        self._say(f"recorded in {kept.path}")


def _cause(error: BaseException) -> str:
    if isinstance(error, WorldlineError):
        return error.problem
    return str(error) or "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
