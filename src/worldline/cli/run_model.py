"""Runs whatever runs in this program and its workers: a kernel simulation, a distributed algorithm, agents."""

from __future__ import annotations

import time
from contextlib import nullcontext

from worldline.cli.bar import progress
from worldline.cli.console import PlainConsole, say_replaced, words_aside
from worldline.history.outcome import Outcome
from worldline.history.status import Watch
from worldline.model import FOREVER, Interrupted, WorldlineError
from worldline.recording import Recorder, Shelf
from worldline.targets import Ready


def run_model(ready: Ready, shelf: Shelf | None, *, quiet: bool) -> Outcome:
    """Run it, with a recording if there is to be one, and say what has come of it. A failure is left to be raised."""
    with words_aside(shelf):
        began = time.monotonic()
        with progress() if ready.is_main and not quiet else nullcontext() as watch:
            outcome = ready.run(watch=watch) if shelf is None or not ready.is_main else _recorded(ready, shelf, watch)
        if ready.is_main and outcome.failure is None:
            _conclude(ready, outcome, time.monotonic() - began, quiet=quiet)
        return outcome


def _recorded(ready: Ready, shelf: Shelf, watch: Watch | None) -> Outcome:
    """Run it and record it; whatever ends it, what is certain by then is in the file, and the file is whole."""
    plan = ready.plan()
    recorder = Recorder(shelf.target, plan, federation=ready.name, encoding="json", overwrite=True)
    try:
        outcome = ready.run(recorder, watch)
        if outcome.failure is None:
            recorder.close(dropped=outcome.dropped, end=FOREVER if plan.end is None else plan.end)
        else:
            _abandon(recorder, outcome.failure, end=outcome.now + (not outcome.is_cut))  # Until then all is certain.
    except WorldlineError as error:
        _abandon(recorder, error)
        raise
    except BaseException:
        _abandon(recorder, Interrupted("interrupted"))
        raise
    finally:
        if recorder.begun:
            say_replaced(shelf.put())
        else:
            shelf.clear()
    return outcome


def _abandon(recorder: Recorder, error: WorldlineError, end: int | None = None) -> None:
    recorder.abandon(error.problem, participant=error.participant, at=error.at, end=end)


def _conclude(ready: Ready, outcome: Outcome, elapsed_s: float, *, quiet: bool) -> None:
    console = PlainConsole()
    if not quiet:
        for line in ready.told(outcome):
            console.print(line)
    lost, count = sum(outcome.dropped.values()), len(outcome.names)
    console.print(
        f"{count:,} {ready.members[count != 1]}, {ready.extent(outcome)} simulated in {elapsed_s:.2f} s,"
        f" {outcome.events:,} events, {lost:,} messages lost"
    )
    for remark in outcome.remarks():
        console.print(remark)
    console.print(f"digest {outcome.digest.hex()}")
