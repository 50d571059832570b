"""Says where a run is that hasn't told its status for a while: perhaps one step of its model never ends."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from worldline.cli.console import remark
from worldline.history.status import Status, Watch
from worldline.model.blame import own_line_in

SILENT_S = 10.0


@contextmanager
def breaking_silence(watch: Watch) -> Iterator[Watch]:
    """Return what passes every status on, and looks at what this thread does when none has come for a while.

    That takes a thread of its own, since this one is in the model's code then.
    """
    heard, over = [time.monotonic()], threading.Event()

    def hear(status: Status) -> None:
        heard[0] = time.monotonic()
        watch(status)

    thread = threading.Thread(target=_look, args=(threading.get_ident(), heard, over), daemon=True)
    thread.start()
    try:
        yield hear
    finally:
        over.set()
        thread.join()


def _look(runner: int, heard: list[float], over: threading.Event) -> None:
    told = None
    while not over.wait(SILENT_S / 10):
        since = heard[0]
        silent_s = time.monotonic() - since
        is_due = silent_s >= SILENT_S and since != told
        line = own_line_in(sys._current_frames().get(runner)) if is_due else None
        if line is not None:  # Otherwise it isn't the model's code that takes so long.
            told = since
            remark(f"still running: one step has taken {silent_s:.0f} seconds so far, in {line}")
