"""`worldline run` and `worldline simpy`: run whatever the target is, to its end."""

from __future__ import annotations

import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec import Struct, json
from msgspec.structs import replace as replace_fields

from worldline.cli.console import PlainConsole, output_free_for, own_lines, progress, remark
from worldline.cli.options import PAGE, PageOptions, RecordingOptions, takes, token_in
from worldline.cli.runner import conclusion, page_of_ready, recording_of, run_to_end, timing_noted
from worldline.history.outcome import Outcome, Status, Watch
from worldline.model import ModelError, UsageError, WorldlineError
from worldline.model.blame import own_line_in, trace_of
from worldline.model.text import printable_json
from worldline.targets import Ready, RunOptions, prepare
from worldline.targets.federation import ReadyFederation
from worldline.targets.ready import PYTHON

if TYPE_CHECKING:
    from worldline.recording import Shelf
    from worldline.watch.live import LiveRun


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


def run_model(
    ready: Ready, shelf: Shelf | None, *, quiet: bool, as_json: bool = False, page: LiveRun | None = None
) -> Outcome:
    """Run what runs in this program and its workers: a kernel simulation, an algorithm, agents, a world.

    Say what has come of it. A failure is left to be raised.
    """
    began = time.monotonic()
    recording = recording_of(
        ready.recorder, shelf if ready.is_main else None, None if quiet or as_json else PlainConsole().print
    )
    outcome = run_to_end(
        ready.run,
        recording,
        showing=lambda: _watch(ready, quiet=quiet),
        interrupt=ready.interrupt,
        hurry=ready.hurry,
        page=page,
    )
    if not ready.is_main or outcome.failure is not None:
        return outcome
    try:
        remarks = ready.verify(outcome)
    except ModelError as error:  # What may not come of it is the outcome's failure.
        outcome, remarks = replace(outcome, failure=error), []
    for line in (*(() if quiet else remarks), *conclusion(ready, outcome, time.monotonic() - began)):
        PlainConsole().print(line)
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


# What `worldline run --json` prints of a run.


def report(
    target: str,
    ready: Ready,
    outcome: Outcome | None,
    failure: WorldlineError | None,
    shelf: Shelf | None,
) -> str:
    """Return a run as one line of JSON; what isn't known because it failed is null."""
    if outcome is not None and not outcome.digest:  # Nothing is known of it but its failure.
        outcome = None
    found = {
        "target": target,
        "kind": ready.kind,
        "name": ready.name,
        "seed": ready.seed,
        "executor": ready.executor,
        "digest": None if outcome is None else outcome.digest.hex(),
        "time": failure.at if outcome is None and failure is not None else outcome and outcome.now,
        "events": None if outcome is None else outcome.events,
        "members": None if outcome is None else len(outcome.names),
        "dropped": None if outcome is None else sum(outcome.dropped.values()),
        "remarks": [] if outcome is None else outcome.remarks(),
        "failure": None if failure is None else _failure(failure),
        "recording": None if shelf is None or shelf.kept is None else str(shelf.kept),
    }
    return printable_json(json.encode(found).decode())


def _failure(error: WorldlineError) -> dict[str, object]:
    return {"text": str(error), "participant": error.participant, "at": error.at}


class ReportOptions(Struct, frozen=True, kw_only=True):
    """How `worldline run` says what has come of it."""

    as_json: bool = False
    quiet: bool = False
    traceback: bool = False


def completed(arguments: list[str]) -> list[str]:
    """Lead those who look for many runs to where they are."""
    if any(each.partition("=")[0] == "--seeds" for each in arguments):
        raise UsageError("a run has one seed, --seed", advice="`worldline sweep TARGET --seeds 10` has many runs")
    return arguments


@takes(
    """
    TARGET  FILE.toml, a federation; FILE.py[:NAME], which defines `model` or NAME, or is a SimPy script; FILE.sdf, a
        world; or the name of a built-in algorithm or example: raft, relay.
    --seed
    --until
    --executor EXECUTOR  inline, processes(4), mpi or shuffled(7); for federations: in-process, tcp, unix or
        processes(2). All give the same result.
    --set
    --fault
    --faults
    --record FILE.mcap  Where to record (default: NAME.mcap for federations, nowhere for others).
    --no-record
    --force
    as_json: --json  Print one JSON object at the end, everything else to standard error.
    --quiet
    --traceback  Print the full traceback if the model fails.
    --timing
    --patience
    --lcm
    --lcm-serve
    """,
    PAGE,
    """
    Federations only:
    --property
    --draws
    --realtime
    --shake NUMBER at least 0  Seed for a random start order and frame delays, or in-process for a random schedule. The
        digest stays the same.
    --listen ADDRESS  Where participants connect: tcp://127.0.0.1:PORT or unix:///PATH.
    --without NAME  Don't start this participant; wait until it is started with `worldline join`. Can be repeated.
    --debug NAME  Give this participant the terminal, so that breakpoint() and pdb work in it.
    --twin NAME  Run a second copy of this participant under another hash seed, and compare what both say. Can be
        repeated.
    --journal FILE  Write what is needed to go on if this command is killed; the same command again does.
    --token-file FILE  File with the token that participants named by --without must present (or set WORLDLINE_TOKEN).
    """,
    completed=completed,
)
def run(
    target: str,
    options: RunOptions,
    recording: RecordingOptions,
    shown: ReportOptions,
    paging: PageOptions,
    token_file: Path | None = None,
) -> None:
    """Run a federation, a kernel simulation, a SimPy model, a distributed algorithm, agents in spacetime or a world.

    Target, settings and seed determine the run; the executor doesn't affect it.
    """
    if options.federation.without:
        federation = replace_fields(options.federation, token=token_in(token_file))
        options = replace_fields(options, federation=federation)
    elif token_file is not None:
        raise UsageError("--token-file is for participants that others start", advice="name them with --without")
    _carry_out(target, lambda: prepare(target, options), recording, shown, paging)


def _carry_out(
    target: str,
    make: Callable[[], Ready],
    recording: RecordingOptions,
    shown: ReportOptions,
    paging: PageOptions,
) -> None:
    """Make a target ready, run it to its end, and say what has come of it."""
    shelf = recording.shelf()
    if shown.as_json and shelf is not None and shelf.is_standard_output:
        raise UsageError("--json and the recording both go to standard output", advice="record in a file")
    outcome: Outcome | None = None
    failure: WorldlineError | None = None
    with output_free_for(shelf, wanted=shown.as_json):
        try:
            ready = make()
        except WorldlineError as error:
            if shown.traceback:
                _show_trace(error)
            raise
        try:
            with page_of_ready(ready, paging) as page:
                if isinstance(ready, ReadyFederation):
                    shelf = shelf or recording.shelf(ready.recording)
                    outcome = _run_federation(ready, shelf, shown, force=recording.force, page=page)
                else:
                    outcome = run_model(ready, shelf, quiet=shown.quiet, as_json=shown.as_json, page=page)
                failure = outcome.failure
        except WorldlineError as error:
            if isinstance(error, UsageError) and error.at is None:  # It was refused, and hasn't begun.
                raise
            failure = error
    if not ready.is_main:
        raise typer.Exit(0 if failure is None else failure.exit_code)  # One rank says it.
    if shown.as_json:
        print(report(target, ready, outcome, failure, shelf))
    if failure is not None:
        if shown.traceback and not _is_shown(ready, failure, quiet=shown.quiet):
            _show_trace(failure)
        raise failure


def _run_federation(
    ready: ReadyFederation, shelf: Shelf | None, shown: ReportOptions, *, force: bool, page: LiveRun | None
) -> Outcome:
    ready.warm_up()  # Before the rest is loaded, of which other runs have no use.
    from worldline.cli.run_federation import run_federation

    with timing_noted(ready, shelf, force=force) as conclude:
        outcome = run_federation(ready, shelf, quiet=shown.quiet, as_json=shown.as_json, page=page)
        conclude(outcome)
    return outcome


def _is_shown(ready: Ready, failure: WorldlineError, *, quiet: bool) -> bool:
    """Whether the traceback of a failure has been shown as its participant's own words."""
    is_here = isinstance(ready, ReadyFederation) and ready.federation is not None
    return is_here and not quiet and not isinstance(failure.__cause__, WorldlineError)


def _show_trace(failure: WorldlineError) -> None:
    """Print what the model's author needs to see of a failure, wherever it happened."""
    console = PlainConsole(sys.stderr)
    if failure.__cause__ is not None:
        console.print(own_lines(trace_of(failure.__cause__)))
    for note in getattr(failure, "__notes__", ()):  # From another process, its trace has come as a note.
        console.print(own_lines(note))


# `worldline simpy`: run a SimPy script as it is, on Worldline's SimPy.


@takes(
    """
    script: SCRIPT  A Python file that imports simpy.
    arguments: ARGUMENTS  The script's own arguments, after --.
    --seed
    --until TIME  End of each run: a number in the script's own units, or a time such as 20s.
    settings: --set NAME=VALUE  unit=1ms says how long a unit of the script's time is (default: 1s).
    --record FILE.mcap  Where to record (default: nowhere).
    --no-record
    --force
    as_json: --json  Print one JSON object at the end, everything else to standard error.
    --quiet
    --traceback  Print the full traceback if the script fails.
    """
)
def simpy(
    script: Path,
    options: RunOptions,
    recording: RecordingOptions,
    shown: ReportOptions,
    arguments: tuple[str, ...] = (),
) -> None:
    """Run a SimPy script unchanged: `import simpy` means Worldline's, which is several times as fast.

    `worldline run`, `verify` and `diff` take such scripts as well; there, --set args="..." is its command line.
    """
    from worldline.targets.simpy import from_script, is_script

    if script.suffix != PYTHON:
        raise UsageError(f"{script} isn't a Python script", advice="its name ends in .py")
    if script.is_file() and not is_script(script):
        raise UsageError(f"{script} defines a model, and isn't a script", advice=f"worldline run {script}")
    if arguments:
        options = replace_fields(options, settings=(*options.settings, f"args={shlex.join(arguments)}"))

    def make() -> Ready:
        ready = from_script(script, options)
        ready.target, ready.options = str(script), options
        return ready

    _carry_out(str(script), make, recording, shown, PageOptions())
