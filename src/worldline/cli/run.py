"""`worldline run`: run whatever the target is, to its end."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import json

from worldline.cli.console import words_aside
from worldline.cli.federation_options import FederationOptions
from worldline.cli.holder_notice import PATIENCE_S
from worldline.cli.options import (
    DrawnFaults,
    Faults,
    Force,
    NoRecord,
    Patience,
    Quiet,
    Seed,
    Settings,
    Timing,
    Until,
    shelf_for,
    token_in,
)
from worldline.cli.public_lcm import LcmServe, LcmTargets
from worldline.cli.recorded import timing_of, timing_place
from worldline.history.outcome import Outcome
from worldline.model import UsageError, WorldlineError
from worldline.model.blame import trace_of
from worldline.model.text import printable_json
from worldline.targets import Options, Ready, prepare
from worldline.targets.federation import ReadyFederation

if TYPE_CHECKING:
    from worldline.recording import Shelf


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
        "recording": None if shelf is None or shelf.kept is None else str(shelf.kept.path),
    }
    return printable_json(json.encode(found).decode())


def _failure(error: WorldlineError) -> dict[str, object]:
    return {"text": str(error), "participant": error.participant, "at": error.at}


_FEDERATIONS = "Federations only"


def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="FILE.toml, a federation; FILE.py[:NAME], which defines `model` or NAME; FILE.sdf, a world; or the"
            " name of a built-in algorithm or example: raft, relay.",
        ),
    ],
    seed: Seed = None,
    until: Until = None,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="EXECUTOR",
            help="inline, processes(4), mpi or shuffled(7); for federations: in-process, tcp, unix or workers(2). All"
            " give the same result.",
        ),
    ] = None,
    settings: Settings = None,
    fault: Faults = None,
    faults: DrawnFaults = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.mcap", help="Where to record (default: NAME.mcap for federations, nowhere for others)."
        ),
    ] = None,
    no_record: NoRecord = False,
    force: Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object at the end, everything else to standard error.")
    ] = False,
    quiet: Quiet = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Print the full traceback if the model fails.")
    ] = False,
    realtime: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=_FEDERATIONS,
            metavar="RATE",
            help="Run at most this many simulated seconds per real second.",
        ),
    ] = None,
    shake: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=_FEDERATIONS,
            min=0,
            metavar="NUMBER",
            help="Seed for a random start order and frame delays, or in-process for a random schedule. The digest"
            " stays the same.",
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_FEDERATIONS,
            metavar="ADDRESS",
            help="Where participants connect: tcp://127.0.0.1:PORT or unix:///PATH.",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            rich_help_panel=_FEDERATIONS,
            metavar="NAME",
            help="Don't start this participant; wait until it is started with `worldline join`. Can be repeated.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=_FEDERATIONS,
            help="File with the token that participants named by --without must present (or set WORLDLINE_TOKEN).",
        ),
    ] = None,
    debug: Annotated[
        list[str] | None,
        typer.Option(
            "--debug",
            rich_help_panel=_FEDERATIONS,
            metavar="NAME",
            help="Give this participant the terminal, so that breakpoint() and pdb work in it.",
        ),
    ] = None,
    twin: Annotated[
        list[str] | None,
        typer.Option(
            "--twin",
            rich_help_panel=_FEDERATIONS,
            metavar="NAME",
            help="Run a second copy of this participant under another hash seed, and compare what both say. Can be"
            " repeated.",
        ),
    ] = None,
    timing: Timing = False,
    patience: Patience = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=_FEDERATIONS,
            metavar="FILE",
            help="Write what is needed to go on if this command is killed; the same command again does.",
        ),
    ] = None,
    lcm: LcmTargets = None,
    lcm_serve: LcmServe = None,
    draws: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_FEDERATIONS,
            metavar="TABLE",
            help="Replace random draws, by name: FILE.toml, FILE.json, FILE.csv, or module:function.",
        ),
    ] = None,
) -> None:
    """Run a federation, a kernel simulation, a distributed algorithm, agents in spacetime or a world.

    Target, settings and seed determine the run; the executor doesn't affect it.
    """
    options = Options(
        seed=seed,
        until=until,
        executor=executor,
        settings=tuple(settings or ()),
        without=tuple(without or ()),
        draws=draws,
        faults=tuple(fault or ()),
        drawn_faults=faults,
    )
    if token_file is not None and not without:
        raise UsageError("--token-file is for participants that others start", advice="name them with --without")
    staging = FederationOptions(
        realtime,
        shake,
        listen,
        tuple(lcm or ()),
        lcm_serve,
        journal=journal,
        without=options.without,
        token=token_in(token_file) if without else None,
        debug=tuple(debug or ()),
        twin=tuple(twin or ()),
        draws=draws,
        faults=options.changes_faults,
    )
    shelf = shelf_for(record, None, no_record=no_record, force=force)
    if as_json and shelf is not None and shelf.is_standard_output:
        raise UsageError("--json and the recording both go to standard output", advice="record in a file")
    outcome: Outcome | None = None
    failure: WorldlineError | None = None
    with words_aside(shelf, wanted=as_json):
        try:
            ready = prepare(target, options)
        except WorldlineError as error:
            if traceback:
                _show_trace(error)
            raise
        try:
            if isinstance(ready, ReadyFederation):
                ready = staging.settled(ready, is_chosen=executor not in (None, "processes"))
                ready = ready.warmed_up()  # Before the rest is loaded.
                if shelf is None:
                    shelf = shelf_for(None, ready.recording, no_record=no_record, force=force)
                place = timing_place(ready, shelf, wanted=timing)
                if place is not None and ready.federation is not None:
                    raise UsageError("--timing needs processes", advice="in one process, nobody waits for another")
                with timing_of(ready, place, force=force) as noted:
                    ready = replace(ready, witness=noted.writer)
                    outcome = _run_federation(ready, shelf, patience or PATIENCE_S, quiet=quiet, as_json=as_json)
                    noted.conclude(outcome)
            else:
                staging.refuse(ready)
                for option, is_given in (("--timing", timing), ("--patience", patience is not None)):
                    if is_given:
                        raise UsageError(f"{option} is for federations, and {ready.name} is of the kind {ready.kind}")
                outcome = _run_model(ready, shelf, quiet=quiet, as_json=as_json)
                failure = outcome.failure
        except WorldlineError as error:
            if isinstance(error, UsageError) and error.at is None:  # It was refused, and hasn't begun.
                raise
            failure = error
    if not ready.is_main:
        raise typer.Exit(0 if failure is None else failure.exit_code)  # One rank says it.
    if as_json:
        print(report(target, ready, outcome, failure, shelf))
    if failure is not None:
        if traceback and not _is_shown(ready, failure, quiet=quiet):
            _show_trace(failure)
        raise failure


def _is_shown(ready: Ready, failure: WorldlineError, *, quiet: bool) -> bool:
    """Whether the traceback of a failure has been shown as its participant's own words."""
    is_here = isinstance(ready, ReadyFederation) and ready.federation is not None
    return is_here and not quiet and not isinstance(failure.__cause__, WorldlineError)


# What it takes to run the one is of no use to the other, and takes long to load.


def _run_federation(
    ready: ReadyFederation, shelf: Shelf | None, patience_s: float, *, quiet: bool, as_json: bool
) -> Outcome:
    from worldline.cli.run_federation import run_federation, screen_for, warn_of

    warn_of(ready)
    screen = screen_for(ready, shelf, quiet=quiet)
    return run_federation(ready, shelf, screen, as_json=as_json, patience_s=patience_s)


def _run_model(ready: Ready, shelf: Shelf | None, *, quiet: bool, as_json: bool) -> Outcome:
    from worldline.cli.run_model import run_model

    return run_model(ready, shelf, quiet=quiet, as_json=as_json)


def _show_trace(failure: WorldlineError) -> None:
    """Print what the model's author needs to see of a failure, wherever it happened."""
    from worldline.cli.console import PlainConsole, own_lines

    console = PlainConsole(sys.stderr)
    if failure.__cause__ is not None:
        console.print(own_lines(trace_of(failure.__cause__)))
    for note in getattr(failure, "__notes__", ()):  # From another process, its trace has come as a note.
        console.print(own_lines(note))
