"""`worldline run`: start a federation from its file, and see it through to its end."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from worldline.cli.console import warn
from worldline.cli.interruption import Interruption
from worldline.cli.screen import Screen
from worldline.cli.voices import Voices
from worldline.federation.address import parse_address
from worldline.federation.inprocess import run as run_in_process
from worldline.federation.outcome import FederationOutcome
from worldline.federation.program import Federation
from worldline.launch.launcher import Launch, check_startable, federation_of
from worldline.launch.setup import Setup, read_setup
from worldline.lock import Arbiter
from worldline.lock.arbiter import DROPPED_BY_BUFFER
from worldline.model import Interrupted, LossError, ModelError, Plan, UsageError, WorldlineError, format_time
from worldline.model.blame import trace_of
from worldline.recording import Recorder, Schema, Shelf


class Executor(StrEnum):
    """Where participants run."""

    PROCESSES = "processes"
    IN_PROCESS = "in-process"


FederationFile = Annotated[Path, typer.Argument(metavar="FILE.toml", help="The file that describes the federation.")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the file, such as link.latency=5ms or limits.silence=60s."
    ),
]
Seed = Annotated[int | None, typer.Option(help="Another seed than the file's.")]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Another end than the file's.")]
Realtime = Annotated[
    float | None, typer.Option(metavar="RATE", help="Go no faster than this many simulated seconds per second.")
]
Record = Annotated[Path | None, typer.Option(metavar="FILE.mcap", help="Where to record (default: NAME.mcap here).")]
Force = Annotated[
    bool, typer.Option("--force", help="Replace what is where the recording goes, even if it isn't a recording.")
]
NoRecord = Annotated[bool, typer.Option("--no-record", help="Record nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only the outcome.")]


def run(
    file: FederationFile,
    executor: Annotated[
        Executor, typer.Option(help="A process for each participant, or all in this one.")
    ] = Executor.PROCESSES,
    seed: Seed = None,
    until: Until = None,
    changes: Changes = None,
    realtime: Realtime = None,
    record: Record = None,
    no_record: NoRecord = False,
    force: Force = False,
    shake: Annotated[
        int | None,
        typer.Option(min=0, metavar="NUMBER", help="Start in a random order, and delay frames at random: same digest."),
    ] = None,
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where participants connect: tcp://127.0.0.1:PORT or unix:///PATH.")
    ] = "tcp://127.0.0.1:0",
    quiet: Quiet = False,
) -> None:
    """Run a federation: its server and every participant, with a recording, to its end."""
    setup = prepare(file, seed, until, changes)
    # Whatever can be refused is refused before anything is touched, the recording of the run before this one above all.
    federation, launch = None, None
    if executor is Executor.IN_PROCESS:
        if realtime is not None or shake is not None:
            raise UsageError("--realtime and --shake need processes")
        federation = federation_of(setup)
    else:
        check_startable(setup)
        if parse_address(listen).kind == "tls":
            raise UsageError("the participants of `worldline run` are on this machine and need no TLS")
    shelf = shelf_for(setup, record, no_record=no_record, force=force)
    began = time.monotonic()
    with screen_for(setup, shelf, quiet=quiet) as screen, Interruption() as interruption:
        with recording(setup, screen, shelf) as recorder:
            if federation is not None:
                outcome = _in_one_process(federation, screen, recorder, interruption)
            else:
                launch = Launch(setup, address=listen, observer=recorder, pace=realtime, shake=shake, hear=screen.say)
                screen.arbiter, screen.remarks = launch.server.host.arbiter, launch.server.host.remarks
                interruption.first = launch.server.end
                interruption.again = lambda: hurry(screen, recorder, launch)
                outcome = launch.run(lambda: watch(screen, recorder))
            if recorder is not None:
                recorder.close(dropped=outcome.dropped)
        conclude(screen, outcome, time.monotonic() - began)
        if launch is not None:
            launch.check_ends(outcome)


def hurry(screen: Screen, recorder: Recorder | None, launch: Launch | None = None) -> None:
    """Wait for nobody any more: not for processes, nor for whoever reads what is shown or recorded."""
    if launch is not None:
        launch.hurry()
    screen.output.give_up()
    if recorder is not None:
        recorder.give_up()


def prepare(
    file: Path, seed: int | None, until: str | None, changes: list[str] | None, *, startable: bool = True
) -> Setup:
    """Read the federation's file, with what the command line changes."""
    words = list(changes or ())
    if seed is not None:
        words.append(f"seed={seed}")
    if until is not None:
        words.append(f"end={until}")
    setup = read_setup(file, changes=words, startable=startable)
    for warning in setup.warnings:
        warn(warning)
    return setup


def shelf_for(setup: Setup, record: Path | None, *, no_record: bool, force: bool) -> Shelf | None:
    """Return where the run is to be recorded, if it is, or refuse that place before anything has happened."""
    if no_record:
        if record is not None:
            raise UsageError("--record and --no-record contradict each other")
        return None
    return Shelf(record if record is not None else f"{setup.name.replace('/', '-')}.mcap", force=force)


def screen_for(setup: Setup, shelf: Shelf | None, *, quiet: bool) -> Screen:
    """Return where the run is shown: not where it is recorded."""
    file = sys.stderr if shelf is not None and shelf.is_standard_output else sys.stdout
    return Screen(setup.name, list(setup.parts), quiet=quiet, file=file)


@contextlib.contextmanager
def recording(setup: Setup, screen: Screen, shelf: Shelf | None) -> Iterator[Recorder | None]:
    """Record the run; whatever ends it, what is certain by then is in the file, and the file is whole.

    The file gets its name when the run has ended, and the one before it another: a run that never began changes
    nothing.
    """
    if shelf is None:
        yield None
        return
    if shelf.waits:
        screen.note(f"waiting for somebody to read {shelf.target}")
    topics = {name: topic.loaded() for name, topic in setup.topics.items()}
    recorder = Recorder(
        shelf.target,
        setup.plan,
        federation=setup.name,
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
            if screen.arbiter is not None:
                recorder.passed(screen.arbiter.floor())  # All that is certain, up to the last moment.
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


def watch(screen: Screen, recorder: Recorder | None) -> None:
    """Now and then: write what has become certain, and show how it goes."""
    assert screen.arbiter is not None
    if recorder is not None:
        recorder.passed(screen.arbiter.floor())
    screen.refresh()


def _in_one_process(
    federation: Federation, screen: Screen, recorder: Recorder | None, interruption: Interruption
) -> FederationOutcome:
    def arbiter(plan: Plan) -> Arbiter:
        screen.arbiter = Arbiter(plan, recorder)
        return screen.arbiter

    def interrupt(error: Interrupted) -> None:
        raise KeyboardInterrupt(error.problem)

    interruption.first = interrupt
    voices = Voices(screen.say, screen.output)
    with voices, debugging(screen):
        try:
            return run_in_process(voices.of(federation), arbiter=arbiter, watch=lambda: watch(screen, recorder))
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


def conclude(screen: Screen, outcome: FederationOutcome, elapsed_s: float) -> None:
    """Say what came of it."""
    unkept = sum(count for (_, _, reason), count in outcome.dropped.items() if reason == DROPPED_BY_BUFFER)
    lost = sum(outcome.dropped.values()) - unkept
    latest = max(outcome.times.values(), default=0)
    screen.conclude(
        f"{len(outcome.times)} participants, {format_time(latest)} simulated in {elapsed_s:.2f} s, "
        f"{lost:,} messages lost, {unkept:,} not kept by buffers"
    )
    for remark in outcome.remarks():
        screen.conclude(remark)
    screen.conclude(f"digest {outcome.digest.hex()}")
