"""Records what a command runs, and says so in the same words whichever command it is."""

from __future__ import annotations

from collections.abc import Callable

from worldline.cli.console import remark
from worldline.recording import RunRecording, Shelf
from worldline.targets import Ready


def recording_of(ready: Ready, shelf: Shelf | None, say: Callable[[str], None] | None) -> RunRecording:
    """Return the recording of a run; of several processes that run it, one records. Nobody may want to know where."""
    place = shelf if ready.is_main else None
    return RunRecording(place, ready.recorder, say=say or (lambda _: None), warn=remark)
