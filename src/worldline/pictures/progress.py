"""How far a run or a sweep is, in a notebook."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

from worldline.history.markup import escaped
from worldline.history.outcome import Status
from worldline.model.time import FOREVER, format_time

_EVERY_S = 0.2


class Progress:
    """Shows in a notebook how far something is: give it as the `watch` of a run, or as the `progress` of a sweep.

    Elsewhere it shows nothing. What it shows stays when the run is over.
    """

    def __init__(self, title: str = "") -> None:
        self.title = title
        self.html = ""
        self._handle: Any = None
        self._begun = time.monotonic()
        self._shown = -_EVERY_S

    def __call__(self, done: Status | int, total: int = 0) -> None:
        """Be told the status of a run, or how many runs of a sweep are done, of how many."""
        now = time.monotonic()
        is_last = isinstance(done, int) and done >= total
        if now - self._shown < _EVERY_S and not is_last:
            return
        self._shown = now
        self.html = self._told(done, total, now - self._begun)
        self._show()

    def _told(self, done: Status | int, total: int, seconds: float) -> str:
        if isinstance(done, Status):
            share = None if done.end >= FOREVER or not done.end else min(1.0, done.time / done.end)
            text = f"{format_time(done.time)}, {done.events:,} events"
        else:
            share = done / total if total else None
            text = f"{done:,} of {total:,} runs"
        left = f", {seconds / share - seconds:.0f} s left" if share and share < 1 and seconds > 1 else ""
        bar = "" if share is None else f'<progress value="{share:.4f}" max="1" style="width:16em"></progress> '
        return f"{escaped(self.title)} {bar}{escaped(text + left)}".strip()

    def _show(self) -> None:
        display = _notebook()
        if display is None:
            return
        shown = display.HTML(self.html)
        if self._handle is None:
            self._handle = display.display(shown, display_id=True)
        else:
            self._handle.update(shown)


def _notebook() -> Any:
    """Return IPython's way to show things, if this is a notebook; nothing is imported otherwise."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return import_module("IPython.display")
