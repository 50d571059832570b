"""Runs a federation, in processes or in this one: its participants are heard, it is shown, and it is recorded."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from worldline.cli.console import warn
from worldline.cli.holder_notice import PATIENCE_S, HolderNotice
from worldline.cli.interruption import Interruption, interrupted_by
from worldline.cli.losses import losses_in_words
from worldline.cli.participant_output import ParticipantOutput
from worldline.cli.public_lcm import shown_on_lcm
from worldline.cli.recorded import NotRecorded, recording_of
from worldline.cli.screen import Screen
from worldline.cli.unusual_runs import unusually_run
from worldline.federation.outcome import FederationOutcome
from worldline.federation.program import Federation
from worldline.history.observer import Observer
from worldline.history.status import THE_RUN, Status, Watch
from worldline.lock.arbiter import DROPPED_BY_BUFFER
from worldline.model import Interrupted, ModelError, WorldlineError
from worldline.model.blame import trace_of
from worldline.model.counting import counted
from worldline.targets.federation import ReadyFederation

if TYPE_CHECKING:
    from worldline.recording import RunRecording, Shelf


def run_federation(
    ready: ReadyFederation,
    shelf: Shelf | None,
    screen: Screen,
    *,
    as_json: bool = False,
    patience_s: float = PATIENCE_S,
) -> FederationOutcome:
    """Run a federation to its end, with a recording."""
    is_debugged = ready.unusual is not None and ready.unusual.debugged is not None  # That may take long.
    watch = watch_on(screen, inf if is_debugged else patience_s)
    began = time.monotonic()
    ready = replace(ready, hear=screen.say, say=screen.note)
    say = None if as_json else screen.note

    def look(status: Status) -> None:
        nonlocal began
        if ready.waits_for_people:
            if any(wait.who == THE_RUN for wait in status.waits):
                began = time.monotonic()  # Waiting for people is no part of the run.
            say_notices()
        watch(status)

    def say_notices() -> None:
        for notice in ready.notices():
            screen.tell(notice)

    with screen, Interruption() as interruption, unusually_run(ready, screen) as ready:
        screen.time_of, screen.remarks = ready.time_of, ready.remarks
        say_drawn(ready, screen)
        with (
            recording_of(ready, shelf, say) as recording,
            shown_on_lcm(ready, recording.observer, ready.lcm, ready.lcm_serve, screen.note) as observer,
        ):
            interruption.again = partial(hurry, screen, recording, ready)
            with interrupted_by(interruption, ready.interrupt):
                if ready.federation is not None:
                    outcome = _in_one_process(ready, ready.federation, screen, observer, watch)
                else:
                    outcome = ready.run(observer, look)
                    if ready.waits_for_people:
                        say_notices()
            recording.conclude(outcome)
        conclude(ready, screen, outcome, time.monotonic() - began)
        ready.told(outcome)
    return outcome


def watch_on(screen: Screen, patience_s: float) -> Watch:
    """Return what shows the status of a run, and names whoever holds it for long."""
    notice = HolderNotice(screen.tell, patience_s)

    def watch(status: Status) -> None:
        notice(status)
        screen.refresh(status)

    return watch


def warn_of(ready: ReadyFederation) -> None:
    """Tell of what can be run as its file has it, and was hardly meant so."""
    for warning in () if ready.setup is None else ready.setup.warnings:
        warn(warning)


def say_drawn(ready: ReadyFederation, screen: Screen) -> None:
    """Say which faults the seed has drawn: before the run, since they may be why it fails."""
    for remark in ready.fault_remarks:
        screen.conclude(remark)


def hurry(screen: Screen, recording: RunRecording | NotRecorded, ready: ReadyFederation) -> None:
    """Wait for nobody any more: not for processes, nor for whoever reads what is shown or recorded."""
    ready.hurry()
    screen.give_up()
    recording.give_up()


def screen_for(ready: ReadyFederation, shelf: Shelf | None, *, quiet: bool) -> Screen:
    """Return where the run is shown: not where it is recorded."""
    file = sys.stderr if shelf is not None and shelf.is_standard_output else sys.stdout
    return Screen(ready.name, list(ready.names), quiet=quiet, file=file)


def _in_one_process(
    ready: ReadyFederation, federation: Federation, screen: Screen, observer: Observer | None, watch: Watch
) -> FederationOutcome:
    output = ParticipantOutput(screen.say, screen.output)
    with output, debugging(screen):
        try:
            return replace(ready, federation=output.of(federation)).run(observer, watch)
        except ModelError as error:
            cause = error.__cause__
            if type(cause).__name__ == "BdbQuit":
                raise Interrupted("the debugger was quit", participant=error.participant, at=error.at) from None
            if cause is not None and not isinstance(cause, WorldlineError):
                # Its author sees all of it, as if it had a process of its own.
                for line in trace_of(cause).split("\n"):
                    screen.say(error.participant or "", error.at, line)
            raise


@contextlib.contextmanager
def debugging(screen: Screen) -> Iterator[None]:
    """Let `breakpoint()` in a participant's program have the terminal."""
    usual, output = sys.breakpointhook, sys.__stdout__

    def stop(*arguments: object, **keywords: object) -> object:
        if os.environ.get("PYTHONBREAKPOINT") not in (None, "", "pdb.set_trace"):
            screen.make_way()
            return usual(*arguments, **keywords)
        from worldline.cli.debugger import Debugger  # Here, since it takes long to load.

        Debugger(screen.make_way, output).set_trace(sys._getframe(1))
        return None

    sys.breakpointhook = stop
    try:
        yield
    finally:
        sys.breakpointhook = usual


def conclude(ready: ReadyFederation, screen: Screen, outcome: FederationOutcome, elapsed_s: float) -> None:
    """Say what came of it."""
    screen.conclude(
        f"{counted(len(outcome.times), 'participant')}, {ready.extent(outcome)} simulated in {elapsed_s:.2f} s, "
        f"{losses_in_words(outcome.dropped, DROPPED_BY_BUFFER)}"
    )
    for remark in outcome.remarks():
        screen.conclude(remark)
    screen.conclude(f"digest {outcome.digest.hex()}")
