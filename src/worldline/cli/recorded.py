"""Records what a command runs, and says so in the same words whichever command it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from worldline.cli.console import remark
from worldline.history.outcome import Outcome
from worldline.targets import Ready

if TYPE_CHECKING:
    from worldline.recording import RunRecording, Shelf


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
