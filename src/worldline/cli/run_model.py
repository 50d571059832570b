"""Runs whatever runs in this program and its workers: a kernel simulation, a distributed algorithm, agents."""

from __future__ import annotations

import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from worldline.cli.bar import progress
from worldline.cli.console import PlainConsole, say_replaced
from worldline.cli.interruption import Interruption
from worldline.history.outcome import Outcome
from worldline.history.status import Watch
from worldline.model import FOREVER, InternalError, Interrupted, LossError, WorldlineError
from worldline.targets import Ready

if TYPE_CHECKING:
    from worldline.recording import Recorder, Shelf


def run_model(ready: Ready, shelf: Shelf | None, *, quiet: bool) -> Outcome:
    """Run it, with a recording if there is to be one, and say what has come of it. A failure is left to be raised."""
    began = time.monotonic()
    with Interruption() as interruption, progress() if ready.is_main and not quiet else nullcontext() as watch:
        if shelf is None or not ready.is_main:
            outcome = _run(ready, None, watch, interruption)
        else:
            outcome = _recorded(ready, shelf, watch, interruption)
    if ready.is_main and outcome.failure is None:
        _conclude(ready, outcome, time.monotonic() - began, quiet=quiet)
    return outcome


def _run(ready: Ready, recorder: Recorder | None, watch: Watch | None, interruption: Interruption) -> Outcome:
    def interrupt(error: Interrupted) -> None:
        raise KeyboardInterrupt(error.problem)  # Nobody takes that for a failure of the model.

    interruption.first = interrupt
    try:
        return ready.run(recorder, watch)
    except KeyboardInterrupt as interrupted:
        raise Interrupted(str(interrupted) or "interrupted") from None
    finally:
        interruption.first = lambda _: None  # It is over by itself.


def _recorded(ready: Ready, shelf: Shelf, watch: Watch | None, interruption: Interruption) -> Outcome:
    """Run it and record it; whatever ends it, what is certain by then is in the file, and the file is whole."""
    from worldline.recording import Recorder  # Here, since many runs aren't recorded.

    plan = ready.plan()
    recorder = Recorder(shelf.target, plan, federation=ready.name, encoding="json", overwrite=True)
    interruption.again = recorder.give_up
    try:
        outcome = _run(ready, recorder, watch, interruption)
        if outcome.failure is None:
            recorder.close(dropped=outcome.dropped, end=FOREVER if plan.end is None else plan.end)
        else:
            _abandon(recorder, outcome.failure, end=outcome.now + (not outcome.is_cut))  # Until then all is certain.
    except WorldlineError as error:
        _abandon(recorder, error)
        raise
    except BaseException as error:
        _abandon(recorder, InternalError(f"{type(error).__name__}: {error}"))
        raise
    finally:
        if recorder.begun:
            say_replaced(shelf.put())
        else:
            shelf.clear()
    return outcome


def _abandon(recorder: Recorder, error: WorldlineError, end: int | None = None) -> None:
    with suppress(LossError):  # If the disk is full, nothing more can be written; what ended the run stays the error.
        recorder.abandon(error.problem, participant=error.participant, at=error.at, end=end)


def _conclude(ready: Ready, outcome: Outcome, elapsed_s: float, *, quiet: bool) -> None:
    console = PlainConsole()
    told = ready.told(outcome)  # Whether it is shown or not: it refuses what may not come of the run.
    for line in () if quiet else told:
        console.print(line)
    lost, count = sum(outcome.dropped.values()), len(outcome.names)
    console.print(
        f"{count:,} {ready.members[count != 1]}, {ready.extent(outcome)} simulated in {elapsed_s:.2f} s,"
        f" {outcome.events:,} events, {lost:,} messages lost"
    )
    for remark in outcome.remarks():
        console.print(remark)
    console.print(f"digest {outcome.digest.hex()}")
