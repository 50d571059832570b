"""`worldline search`: try a federation on many seeds, and shrink the first failure to what it takes."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from worldline.cli.console import PlainConsole
from worldline.cli.options import OF_FEDERATIONS, KindOfDay
from worldline.cli.runner import interruptible
from worldline.cli.search_story import SearchPlan, run_search, show_failure, show_how_to_repeat
from worldline.federation.inprocess.shrinking import ShrunkFederation, shrink_federation
from worldline.federation.inprocess.trial import FederationTrial
from worldline.files.saving import destination
from worldline.model.draws.names import draw_in_words, drawn_text
from worldline.model.errors import UsageError, shortened
from worldline.model.text import counted
from worldline.search.searching import SECONDS_MAX, Recipe, Report
from worldline.search.shrinking import WrittenDraws
from worldline.targets import RunOptions
from worldline.targets.trials import TrialRequest, command_of_saved, load_trial_request, made_trial, save_trial

_SEEDS = 100
_SAVED = ".json"
_CLOCKS_MAX = 5  # Of which is said how they are wrong.


class SearchOptions(Struct, frozen=True, kw_only=True):
    """How many seeds are tried, how, and what is done with the one that fails."""

    seeds: Annotated[int, typer.Option(min=1, help="Try this many seeds, until one fails.")] = _SEEDS
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of worker processes (default: one per processor).")
    ] = None
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Try all seeds and count failures.")] = False
    no_shrink: Annotated[bool, typer.Option("--no-shrink", help="Don't shrink the failure.")] = False
    save_to: Annotated[
        Path | None, typer.Option("--save", metavar="FILE.json", help="Save the shrunk failure, to be run again.")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Let --save replace a file that is there already.")] = False
    seconds_max: Annotated[
        float, typer.Option(min=0.001, help="Consider a run endless after this many seconds of real time.")
    ] = SECONDS_MAX


_TRIED = {**OF_FEDERATIONS, "seed": typer.Option(help="The first seed (default: the target's own).")}


@interruptible()
def search(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE.toml|FILE.py[:NAME]|FILE.json",
            help="A federation's file, a Python file that defines one as `model` or NAME, or a failure that was saved.",
        ),
    ],
    *,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="MODULE:FUNCTION",
            help="What must hold, found as from the target's folder; repeat it for several.",
        ),
    ] = None,
    options: Annotated[RunOptions, _TRIED],
    wanted: SearchOptions,
    day: KindOfDay = None,
    code: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="FILE.toml|FILE.py[:NAME]",
            help="With a saved failure: what to run. A saved failure is data, and chooses no code.",
        ),
    ] = None,
) -> None:
    """Try a federation on many seeds until a property fails or a program raises; shrink what fails."""
    save_to = wanted.save_to
    if save_to is not None:
        _check_place(save_to, wanted.force)
    console = PlainConsole()
    if target.endswith(_SAVED):
        named = RunOptions(settings=options.settings, draws=options.draws)
        says_more = options != named or day or wanted.seeds != _SEEDS or wanted.keep_going or save_to
        _repeat(console, Path(target), _request(code or "", named, properties), says_more=bool(says_more))
        return
    if code is not None:
        raise UsageError(f"--target is for a saved failure, and {target} is a target itself", advice="leave it out")
    request = _request(target, options, properties, day)
    trial = made_trial(request)
    for remark in trial.undrawn():
        console.print(f"seed {trial.seed}: {remark}")
    plan = SearchPlan(
        wanted.seeds, wanted.workers, wanted.seconds_max, wanted.keep_going, not wanted.no_shrink, save_to
    )
    run_search(console, _Federations(trial, request, wanted.seconds_max), plan)


def _request(target: str, options: RunOptions, properties: list[str] | None, day: str | None = None) -> TrialRequest:
    return TrialRequest(
        target=target,
        seed=options.seed,
        until=options.until,
        settings=options.settings,
        properties=tuple(properties or ()),
        faults=options.faults,
        drawn_faults=options.drawn_faults,
        table=options.draws,
        day=day,
    )


class _Federations:
    """What a search knows of federations."""

    def __init__(self, trial: FederationTrial, request: TrialRequest, seconds_max: float) -> None:
        self.trial = trial
        self.properties = trial.properties
        self.unjudged = "no property was checked, only whether anybody fails (--property MODULE:FUNCTION)"
        self._request = request
        self._seconds_max = seconds_max

    def recipe(self) -> Recipe:
        return partial(made_trial, self._request)

    def tells_faults(self, report: Report) -> bool:
        return bool(report.faults)

    def command(self, failing: FederationTrial) -> str:
        return command_of(replace(self._request, seed=failing.seed), self._seconds_max)

    def command_of_saved(self, path: Path) -> str:
        return command_of_saved(path, self._request)

    def save(self, trial: FederationTrial, path: Path) -> None:
        save_trial(self._request, trial, path)

    def shrink(self, failing: FederationTrial, progress: Callable[[int], None] | None) -> ShrunkFederation:
        return shrink_federation(failing, seconds_max=self._seconds_max, progress=progress)

    def show_shrunk(self, console: Console, shrunk: ShrunkFederation, save_to: Path | None) -> None:
        if save_to is not None:
            self.save(shrunk.trial, save_to)
        table = self._request.table
        _show_shrunk(console, shrunk, besides="" if table is None else f"besides what {table} says, ")
        show_how_to_repeat(console, None if save_to is None else self.command_of_saved(save_to))
        show_failure(console, shrunk.happenings, shrunk.draws, shrunk.failure)


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


def _repeat(console: Console, file: Path, named: TrialRequest, *, says_more: bool) -> None:
    if says_more:
        raise UsageError(
            f"{file} says itself which run it is", advice="leave out all but --target, --property, --set and --draws"
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
    raise typer.Exit(outcome.failure.exit_code)


def _show_shrunk(console: Console, shrunk: ShrunkFederation, *, besides: str) -> None:
    runs, draws = counted(shrunk.runs, "run"), shrunk.draws or {}
    if shrunk.draws is None:
        console.print(f"shrunk in {runs}; it takes all that the seed draws for messages and clocks")
    else:
        before, after = counted(shrunk.draws_before, "draw"), str(len(draws))
        if shrunk.faults_before:
            before += f" and {counted(shrunk.faults_before, 'fault')}"
            after = f"{counted(len(draws), 'draw')} and {counted(len(shrunk.faults), 'fault')}"
        console.print(f"shrunk in {runs}, from {before} to {after}:")
        calm = ["every message takes the usual time", "none gets lost", *_clocks_in_words(shrunk)]
        but = ", but" if draws or shrunk.faults else ""
        console.print(f"{besides}{', '.join(calm[:-1])} and {calm[-1]}{but}")
    for name, value in draws.items():
        words = draw_in_words(name, value)
        console.print(f"  {name} = {drawn_text(name, value)}" + (f"  ({words})" if words else ""))
    for each in shrunk.faults:
        console.print(f"  {each}")


def _clocks_in_words(shrunk: ShrunkFederation) -> list[str]:
    wrong = shrunk.wrong_clocks
    if not wrong:
        return ["clocks are right"] if shrunk.has_clocks else []
    more = len(wrong) - _CLOCKS_MAX
    return wrong if more <= 0 else [*wrong[:_CLOCKS_MAX], f"clocks are wrong in {counted(more, 'more way')}"]


def command_of(request: TrialRequest, seconds_max: float = SECONDS_MAX) -> str:
    """Return the command that runs one seed again."""
    words = ["worldline", "search", request.target]
    words += [word for name in request.properties for word in ("--property", name)]
    words += ["--until", request.until] if request.until is not None else []
    words += [word for setting in request.settings for word in ("--set", setting)]
    words += ["--draws", request.table] if request.table is not None else []
    words += [word for fault in request.faults for word in ("--fault", fault)]
    words += ["--faults", request.drawn_faults] if request.drawn_faults is not None else []
    words += ["--day", request.day] if request.day is not None else []
    words += ["--seconds-max", f"{seconds_max:g}"] if seconds_max != SECONDS_MAX else []
    return shlex.join([*words, "--seed", str(request.seed), "--seeds", "1"])
