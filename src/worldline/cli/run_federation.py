"""Runs a federation, in processes or in this one: its participants are heard, it is shown, and it is recorded."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from tempfile import TemporaryDirectory

from worldline.cli.console import warn
from worldline.cli.interruption import Interruption
from worldline.cli.screen import Screen
from worldline.cli.staging import Staging
from worldline.cli.voices import Voices
from worldline.federation.checker import SampledSchedule
from worldline.federation.inprocess import Schedule
from worldline.federation.inprocess import run as run_in_process
from worldline.federation.outcome import FederationOutcome
from worldline.federation.program import Federation
from worldline.launch.launcher import Launch
from worldline.lock import Arbiter
from worldline.lock.arbiter import DROPPED_BY_BUFFER
from worldline.model import Interrupted, LossError, ModelError, WorldlineError
from worldline.model.blame import trace_of
from worldline.recording import Recorder, Schema, Shelf
from worldline.targets.federation import ReadyFederation
from worldline.workers.executor import Unix


@contextlib.contextmanager
def _address(ready: ReadyFederation, listen: str | None) -> Iterator[str]:
    """Say where participants connect: where somebody wants them to, or where nobody else does."""
    if listen is not None:
        yield listen
    elif isinstance(ready.chosen, Unix):
        with TemporaryDirectory(prefix="worldline-") as folder:
            yield f"unix://{folder}/run.sock"
    else:
        yield "tcp://127.0.0.1:0"


def run_federation(ready: ReadyFederation, staging: Staging, shelf: Shelf | None, screen: Screen) -> FederationOutcome:
    """Run a federation to its end, with a recording."""
    launch = None
    began = time.monotonic()
    with screen, Interruption() as interruption, _address(ready, staging.listen) as address:
        with recording(ready, screen, shelf) as recorder:
            if ready.federation is not None:
                schedule = None if staging.shake is None else SampledSchedule(staging.shake)
                outcome = _in_one_process(ready.federation, schedule, screen, recorder, interruption)
            else:
                assert ready.setup is not None
                launch = Launch(
                    ready.setup,
                    address=address,
                    observer=recorder,
                    pace=staging.realtime,
                    shake=staging.shake,
                    hear=screen.say,
                )
                screen.time_of, screen.remarks = launch.server.host.arbiter.time_of, launch.server.host.remarks
                interruption.first = launch.server.end
                interruption.again = partial(hurry, screen, recorder, launch)
                outcome = launch.run(screen.refresh)
            if recorder is not None:
                recorder.close(dropped=outcome.dropped)
        conclude(ready, screen, outcome, time.monotonic() - began)
        if launch is not None:
            launch.check_ends(outcome)
    return outcome


def warn_of(ready: ReadyFederation) -> None:
    """Tell of what can be run as its file has it, and was hardly meant so."""
    for warning in () if ready.setup is None else ready.setup.warnings:
        warn(warning)


def hurry(screen: Screen, recorder: Recorder | None, launch: Launch | None = None) -> None:
    """Wait for nobody any more: not for processes, nor for whoever reads what is shown or recorded."""
    if launch is not None:
        launch.hurry()
    screen.output.give_up()
    if recorder is not None:
        recorder.give_up()


def screen_for(ready: ReadyFederation, shelf: Shelf | None, *, quiet: bool) -> Screen:
    """Return where the run is shown: not where it is recorded."""
    file = sys.stderr if shelf is not None and shelf.is_standard_output else sys.stdout
    return Screen(ready.name, list(ready.names), quiet=quiet, file=file)


@contextlib.contextmanager
def recording(ready: ReadyFederation, screen: Screen, shelf: Shelf | None) -> Iterator[Recorder | None]:
    """Record the run; whatever ends it, what is certain by then is in the file, and the file is whole.

    The file gets its name when the run has ended, and the one before it another: a run that never began changes
    nothing.
    """
    if shelf is None:
        yield None
        return
    if shelf.waits:
        screen.note(f"waiting for somebody to read {shelf.target}")
    topics = {name: topic.loaded() for name, topic in ready.topics.items()}
    recorder = Recorder(
        shelf.target,
        ready.plan(),
        federation=ready.name,
        encodings={name: topic.encoding for name, topic in topics.items()},
        schemas={
            name: Schema(topic.schema_name, topic.schema_encoding, topic.schema)
            for name, topic in topics.items()
            if topic.schema_encoding
        },
        overwrite=True,
    )
    try:
        yield recorder
    except BaseException as error:
        # If it is the disk that is full, nothing more can be written, and the error says so itself.
        with contextlib.suppress(LossError):
            if isinstance(error, WorldlineError):
                recorder.abandon(error.problem, participant=error.participant, at=error.at)
            else:
                recorder.abandon(f"{type(error).__name__}: {error}")
        raise
    finally:
        if recorder.begun:
            kept = shelf.put()
            if kept.note:
                screen.note(kept.note)
            screen.note(f"recorded in {kept.path}")
        else:
            shelf.clear()


def _in_one_process(
    federation: Federation,
    schedule: Schedule | None,
    screen: Screen,
    recorder: Recorder | None,
    interruption: Interruption,
) -> FederationOutcome:
    def interrupt(error: Interrupted) -> None:
        raise KeyboardInterrupt(error.problem)

    interruption.first = interrupt
    voices = Voices(screen.say, screen.output)
    with voices, debugging(screen):
        try:
            return run_in_process(
                voices.of(federation),
                schedule=schedule,
                arbiter=lambda plan: Arbiter(plan, recorder),
                watch=screen.refresh,
            )
        except KeyboardInterrupt as interrupted:
            raise Interrupted(str(interrupted)) from None
        except ModelError as error:
            cause = error.__cause__
            if type(cause).__name__ == "BdbQuit":
                raise Interrupted("left from the debugger", participant=error.participant, at=error.at) from None
            if cause is not None:  # Its author sees all of it, as if it had a process of its own.
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
    unkept = sum(count for (_, _, reason), count in outcome.dropped.items() if reason == DROPPED_BY_BUFFER)
    lost = sum(outcome.dropped.values()) - unkept
    screen.conclude(
        f"{len(outcome.times)} participants, {ready.extent(outcome)} simulated in {elapsed_s:.2f} s, "
        f"{lost:,} messages lost, {unkept:,} not kept by buffers"
    )
    for remark in outcome.remarks():
        screen.conclude(remark)
    screen.conclude(f"digest {outcome.digest.hex()}")
