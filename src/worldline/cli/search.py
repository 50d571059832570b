"""`worldline search` and `worldline check`: try a federation on many seeds, or under many schedules."""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import typer
from rich.console import Console

from worldline.cli.console import PlainConsole, bar, check_notes, own_lines
from worldline.cli.options import OF_FEDERATION, PageOptions, takes
from worldline.cli.runner import interruptible
from worldline.cli.search_story import OF_SEEDS, Searched, SeedsOptions, run_search, show_failure
from worldline.federation.inprocess.checker import SCHEDULES_MAX, Divergence, compare, parse_schedule
from worldline.federation.inprocess.checker import check as check_schedules
from worldline.federation.inprocess.trial import FederationTrial, shrink_federation
from worldline.files.saving import destination
from worldline.model.errors import UsageError, shortened
from worldline.model.text import counted
from worldline.search.searching import SECONDS_MAX
from worldline.search.shrinking import Shrunk, WrittenDraws
from worldline.targets import RunOptions
from worldline.targets.finding import found_federation
from worldline.targets.trials import TrialRequest, command_of_saved, load_trial_request, made_trial, save_trial

_SEEDS = 100
_SAVED = ".json"


class SearchOptions(SeedsOptions, frozen=True, kw_only=True):
    """How much is tried, and where the one that fails is saved."""

    seeds: int = _SEEDS
    save_to: Path | None = None
    force: bool = False
    seconds_max: float = SECONDS_MAX


@interruptible()
@takes(
    """
    target: FILE.toml|FILE.py[:NAME]|FILE.json  A federation's file, a Python file that defines one as `model` or NAME,
        or a failure that was saved.
    --property
    --seed N  The first seed (default: the target's own).
    --until TIME  End of the run, such as 20s (default: the target's own).
    --set
    --draws
    --fault
    --faults
    save_to: --save FILE.json  Save the shrunk failure, to be run again.
    --force  Let --save replace a file that is there already.
    --seconds-max at least 0.001  Consider a run endless after this many seconds of real time.
    --day
    --schedules random|pct:DEPTH|delays:NUMBER  Let event loops of programs choose between tasks that are ready: at
        random, by PCT, or in all ways with so many delays.
    code: --target FILE.toml|FILE.py[:NAME]  With a saved failure: what to run. A saved failure is data, and chooses no
        code.
    """,
    OF_SEEDS,
    """
    The page:
    --watch  Show the failure on a page, as a story to step through.
    --port
    --host
    --no-browser
    """,
)
def search(
    target: str,
    *,
    options: RunOptions,
    wanted: SearchOptions,
    day: str | None = None,
    schedules: str | None = None,
    code: str | None = None,
    paging: PageOptions,
) -> None:
    """Try a federation on many seeds until a property fails or a program raises; shrink what fails."""
    save_to = wanted.save_to
    if save_to is not None:
        _check_place(save_to, wanted.force)
    console = PlainConsole()
    if target.endswith(_SAVED):
        named = RunOptions(settings=options.settings, draws=options.draws, properties=options.properties)
        says_more = options != named or day or schedules or wanted.seeds != _SEEDS or wanted.keep_going or save_to
        _repeat(
            console, Path(target), TrialRequest(target=code or "", options=named), paging, says_more=bool(says_more)
        )
        return
    if code is not None:
        raise UsageError(f"--target is for a saved failure, and {target} is a target itself", advice="leave it out")
    request = TrialRequest(target=target, options=options, day=day, schedules=schedules)
    name = Path(target.partition(":")[0]).stem
    trial = made_trial(request)
    if trial.schedules is not None and trial.schedules.way == "pct":
        console.print(trial.schedules.words() or "PCT: no program has two tasks ready at once")
    for remark in trial.undrawn():
        console.print(f"seed {trial.seed}: {remark}")
    besides = "" if options.draws is None else f"besides what {options.draws} says, "
    searched = Searched(
        trial=trial,
        seconds_max=wanted.seconds_max,
        save_to=save_to,
        unjudged="no property was checked, only whether a participant fails (--property MODULE:FUNCTION)",
        recipe=lambda: partial(made_trial, request),
        command=lambda failing: command_of(request, failing.seed, wanted.seconds_max),
        command_of_saved=lambda path: command_of_saved(path, request),
        save=lambda found, path: save_trial(request, found, path),
        shrink=lambda failing, progress: shrink_federation(failing, seconds_max=wanted.seconds_max, progress=progress),
        describe=lambda shrunk: _describe(console, shrunk, besides),
        tell=lambda shrunk: show_failure(console, shrunk.records, shrunk.trial.written, shrunk.failure),
        show=(lambda failing: _show(name, failing, paging)) if paging.watch else None,
    )
    run_search(console, searched, wanted)


def _check_place(path: Path, force: bool) -> None:
    """Refuse a place for what will be saved before anything has happened."""
    found = destination(path)
    if not found.is_stream and path.suffix != _SAVED:
        raise UsageError(f"--save {path}: it would not be known as a failure", advice=f"name it {path.name}{_SAVED}")
    if not (found.is_new or found.is_stream or force):
        raise UsageError(
            f"--save {path}: it is there already, and may be another failure",
            advice="choose another name, or replace it with --force",
        )


def _show(name: str, trial: FederationTrial, paging: PageOptions) -> None:
    from worldline.cli.view import show_federation_trial  # Here, since few searches have a page.

    show_federation_trial(name, trial, paging)


def _repeat(console: Console, file: Path, named: TrialRequest, paging: PageOptions, *, says_more: bool) -> None:
    if says_more:
        raise UsageError(
            f"{file} says itself which run it is",
            advice="leave out all but --target, --property, --set, --draws and --watch",
        )
    request = load_trial_request(file, named)
    trial = made_trial(request)
    outcome, happenings = trial.told()
    if isinstance(trial.draws, WrittenDraws) and trial.draws.unasked:
        console.print(f"{file} has draws that the run didn't make: {shortened(', '.join(trial.draws.unasked))}")
    if outcome.failure is None:
        console.print(f"it doesn't fail any more, digest {outcome.digest.hex()}")
        return
    show_failure(console, happenings, request.draws, outcome.failure)
    if paging.watch:
        _show(file.stem, trial, paging)
    raise typer.Exit(outcome.failure.exit_code)


def _describe(console: Console, shrunk: Shrunk[FederationTrial], besides: str) -> None:
    runs = counted(shrunk.runs, "run")
    if shrunk.trial.written is None:
        console.print(f"shrunk in {runs}; it takes all that the seed draws for messages and clocks")
        besides = ""
    else:
        before, after = counted(shrunk.drawn, "draw"), str(shrunk.left)
        if shrunk.faults_before:
            before += f" and {counted(shrunk.faults_before, 'fault')}"
            after = f"{counted(shrunk.left, 'draw')} and {counted(len(shrunk.trial.faults or ()), 'fault')}"
        console.print(f"shrunk in {runs}, from {before} to {after}:")
    if shrunk.lines:
        console.print(own_lines(f"{besides}{shrunk.text()}"))


def command_of(request: TrialRequest, seed: int, seconds_max: float) -> str:
    """Return the command that runs one seed again."""
    options = request.options
    words = ["worldline", "search", request.target]
    words += [word for name in options.properties for word in ("--property", name)]
    words += ["--until", options.until] if options.until is not None else []
    words += [word for setting in options.settings for word in ("--set", setting)]
    words += ["--draws", options.draws] if options.draws is not None else []
    words += [word for fault in options.faults for word in ("--fault", fault)]
    words += ["--faults", options.drawn_faults] if options.drawn_faults is not None else []
    words += ["--day", request.day] if request.day is not None else []
    words += ["--schedules", request.schedules] if request.schedules is not None else []
    words += ["--seconds-max", f"{seconds_max:g}"] if seconds_max != SECONDS_MAX else []
    return shlex.join([*words, "--seed", str(seed), "--seeds", "1"])


# `worldline check`: try many schedules of a federation and compare what comes of them.


@takes(
    "target: FILE.toml|FILE.py[:NAME]  A federation's file, or a Python file that defines one as `model` or NAME.",
    OF_FEDERATION,
    """
    --schedules N at least 1  Maximum number of schedules to try.
    --seconds-max NUMBER at least 0.001  Stop after this many seconds, with what was found by then.
    --first-sample N at least 0  Number of the first sampled schedule.
    --schedule TEXT  Try only this schedule: in-order, sample:17, choices:0.2.1 or frames:0.2.1.
    """,
)
@interruptible()
def check(
    target: str,
    options: RunOptions,
    schedules: int = SCHEDULES_MAX,
    seconds_max: float | None = None,
    first_sample: int = 0,
    schedule: str | None = None,
) -> None:
    """Run a federation under many schedules and compare every delivery; any difference is non-determinism."""
    console = PlainConsole()
    unfinished = ""
    with contextlib.redirect_stdout(io.StringIO()):
        federation, ready = found_federation(target, options)
    note, watch = check_notes()
    if schedule is not None:
        chosen = parse_schedule(schedule)
        divergence = compare(federation, chosen, seconds_max=seconds_max, watch=watch, draws=ready.draws)
        digest, tried = check_schedules(federation, schedules=1, draws=ready.draws).digest, f"schedule {schedule}"
    else:
        with bar("schedules", schedules) as shown:
            verdict = check_schedules(
                federation,
                schedules=schedules,
                first_sample=first_sample,
                seconds_max=seconds_max,
                progress=note if shown is None else shown,
                watch=watch,
                draws=ready.draws,
            )
        divergence, digest, unfinished = verdict.divergence, verdict.digest, verdict.unfinished
        tried = counted(verdict.schedules, "schedule")
        if verdict.complete:
            tried += ", every one there is"
        elif divergence is None and verdict.schedules < schedules:
            tried += ", as many as there was time for"
    if divergence is None:
        console.print(f"{tried}: one history, digest {digest.hex()}")
        if unfinished:
            console.print(f"broken off: {unfinished}")
        return
    _tell_divergence(console, [target, *options.words()], divergence, tried)
    raise typer.Exit(1)


def _tell_divergence(console: Console, arguments: Sequence[str], divergence: Divergence, tried: str) -> None:
    console.print(f"{tried}: {divergence.reason}")
    for line in divergence.lines():
        console.print(line)
    console.print("to repeat it:")
    console.print(f"  worldline check {shlex.join(arguments)} --schedule {divergence.schedule}")
