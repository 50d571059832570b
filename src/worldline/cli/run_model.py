"""Runs whatever runs in this program and its workers: a kernel simulation, a distributed algorithm, agents, a
world."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from worldline.cli.bar import progress
from worldline.cli.console import PlainConsole, remark
from worldline.cli.interruption import Interruption, interrupted_by
from worldline.cli.recorded import losses_in_words, recording_of
from worldline.history.outcome import Outcome, Status, Watch
from worldline.model import ModelError
from worldline.model.blame import own_line_in
from worldline.model.text import counted
from worldline.targets import Ready

if TYPE_CHECKING:
    from worldline.recording import Shelf


# Says where a run is that hasn't told its status for a while: perhaps one step of its model never ends.

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


def run_model(ready: Ready, shelf: Shelf | None, *, quiet: bool, as_json: bool = False) -> Outcome:
    """Run it, with a recording if there is to be one, and say what has come of it. A failure is left to be raised."""
    began = time.monotonic()
    say = None if quiet or as_json else PlainConsole().print
    with Interruption() as interruption, recording_of(ready, shelf, say) as recording:
        interruption.again = recording.give_up
        with (
            _watch(ready, quiet=quiet) as watch,
            interrupted_by(interruption, ready.interrupt),
        ):
            outcome = ready.run(recording.observer, watch)
        recording.conclude(outcome)
    if ready.is_main and outcome.failure is None:
        outcome, told = _judged(ready, outcome)
        _conclude(ready, outcome, () if quiet else told, time.monotonic() - began)
    return outcome


@contextmanager
def _watch(ready: Ready, *, quiet: bool) -> Iterator[Watch | None]:
    """Return what shows the status of a run; where it runs in this thread, also one that tells none for long."""
    if quiet or not ready.is_main:
        yield None
        return
    with progress() as shown:
        if ready.executor != "inline":  # It starts processes, which is no good beside a thread.
            yield shown
            return
        with breaking_silence(shown) as watch:
            yield watch


def _judged(ready: Ready, outcome: Outcome) -> tuple[Outcome, list[str]]:
    """Return what has come of a run, in words too; what may not come of it is the outcome's failure."""
    try:
        return outcome, ready.told(outcome)
    except ModelError as error:
        return replace(outcome, failure=error), []


def _conclude(ready: Ready, outcome: Outcome, told: Iterable[str], elapsed_s: float) -> None:
    console = PlainConsole()
    for line in told:
        console.print(line)
    lost = [losses_in_words(outcome.dropped)] if ready.has_messages else []
    simulated = f"{ready.extent(outcome)} simulated in {elapsed_s:.2f} s"
    console.print(", ".join([ready.taking_part(outcome), simulated, counted(outcome.events, ready.event), *lost]))
    for line in outcome.remarks():
        console.print(line)
    console.print(f"digest {outcome.digest.hex()}")
