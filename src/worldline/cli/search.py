"""`worldline search`: try a federation on many seeds, and shrink the first failure to what it takes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from msgspec import Struct
from msgspec.structs import replace as replace_fields
from rich.console import Console

from worldline.cli.console import PlainConsole, bar, processors, show_day, watched
from worldline.cli.options import OF_FEDERATIONS, KindOfDay
from worldline.cli.runner import interruptible
from worldline.federation.inprocess.shrinking import ShrunkFederation, shrink_federation
from worldline.federation.inprocess.trial import FederationTrial
from worldline.files.saving import destination
from worldline.model.blame import trace_of
from worldline.model.draws.distributions import DrawnValue
from worldline.model.draws.words import MessageFate, draw_in_words, drawn_text, fate_of
from worldline.model.errors import Stuck, UsageError, WorldlineError, shortened
from worldline.model.lifecycle import ESTOP_LOG
from worldline.model.text import counted
from worldline.model.time import format_time
from worldline.search.searching import SECONDS_MAX, Recipe, Report, search_seeds
from worldline.search.shrinking import RUNS_MAX, WrittenDraws
from worldline.search.story import Happening
from worldline.search.trial import remarks_on
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
        request = TrialRequest(target=code or "", options=named, properties=tuple(properties or ()))
        _repeat(console, Path(target), request, says_more=bool(says_more))
        return
    if code is not None:
        raise UsageError(f"--target is for a saved failure, and {target} is a target itself", advice="leave it out")
    request = TrialRequest(target=target, options=options, properties=tuple(properties or ()), day=day)
    trial = made_trial(request)
    for remark in trial.undrawn():
        console.print(f"seed {trial.seed}: {remark}")
    report = _searched(request, trial, wanted)
    _report(console, trial, report, keeps_going=wanted.keep_going)
    failure = None if report.failure is None else report.failure.failure
    if report.failure is None or failure is None:
        if save_to is not None:
            console.print(f"nothing failed, so {save_to} wasn't written")
        return
    failing = trial.with_seed(report.failure.seed)
    show_day(console, failing.day, report.failure.day)
    console.print("to repeat it:")
    request = replace(request, options=replace_fields(options, seed=failing.seed))
    console.print(f"  {command_of(request, wanted.seconds_max)}")
    failed = replace(request, day=str(failing.day))
    if save_to is not None:  # Before it is shrunk, too: that takes a while, and a user may have seen enough.
        save_trial(failed, save_to)
    if not wanted.no_shrink and not isinstance(failure, Stuck):  # What has no end has no short form either.
        with bar("runs", RUNS_MAX) as progress:
            short = shrink_federation(failing, seconds_max=wanted.seconds_max, progress=progress)
        if save_to is not None:
            save_trial(_shortened(failed, short), save_to)
        besides = "" if options.draws is None else f"besides what {options.draws} says, "
        again = None if save_to is None else command_of_saved(save_to, request)
        _show_shrunk(console, short, again, besides=besides)
    elif save_to is not None:
        console.print(f"  {command_of_saved(save_to, request)}")
    raise typer.Exit(failure.exit_code)


def _searched(request: TrialRequest, trial: FederationTrial, wanted: SearchOptions) -> Report:
    return watched(
        lambda count: search_seeds(
            trial,
            range(trial.seed, trial.seed + wanted.seeds),
            workers=min(wanted.seeds, wanted.workers or processors()),
            recipe=lambda: Recipe(made_trial, (request,)),
            seconds_max=wanted.seconds_max,
            keeps_going=wanted.keep_going,
            progress=count,
        ),
        wanted.seeds,
    )


def _shortened(failed: TrialRequest, short: ShrunkFederation) -> TrialRequest:
    """Return what it takes to fail, and nothing else."""
    left = tuple(map(str, short.faults))
    return replace(
        failed,
        options=replace_fields(failed.options, faults=(), drawn_faults=None, only_faults=left),
        draws=short.draws,
        day=None if short.draws is not None else failed.day,
    )


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


def _report(console: Console, trial: FederationTrial, report: Report, *, keeps_going: bool) -> None:
    tried = f"{counted(report.tried, 'seed')}, {counted(report.events, 'event')}"
    if report.faults:
        tried += f", {counted(report.faults, 'fault')}"
    if report.failure is not None:
        number = f"{report.failed:,} fail{'s' if report.failed == 1 else ''}"
        fails = f"{number}, the first is {report.failure.seed}" if keeps_going else f"seed {report.failure.seed} fails"
        console.print(f"{tried}: {fails}")
        console.print(f"  {report.failure.failure}", style="red")
        return
    for each in trial.properties:
        console.print(f"holds {each}")
    if not trial.properties:
        console.print("no property was checked, only whether anybody fails (--property MODULE:FUNCTION)")
    console.print(f"{tried}, digest {report.digest}")
    for remark in remarks_on(report.faults, report.faults_in_vain):
        console.print(remark)


def _show_shrunk(console: Console, shrunk: ShrunkFederation, saved: str | None, *, besides: str) -> None:
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
    if saved is None:
        console.print("(--save FILE.json keeps it, to be run again)")
    else:
        console.print("to repeat it:")
        console.print(f"  {saved}")
    show_failure(console, shrunk.happenings, draws, shrunk.failure)


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
    words += replace_fields(request.options, seed=None).words()
    words += ["--day", request.day] if request.day is not None else []
    words += ["--seconds-max", f"{seconds_max:g}"] if seconds_max != SECONDS_MAX else []
    return shlex.join([*words, "--seed", str(request.options.seed), "--seeds", "1"])


# A failure's story on the screen: what happened last, what matters of what was before, and what came of it.

_LINES_MAX = 40
_EARLIER_MAX = 10
_TRACE_LINES_MAX = 12


def show_failure(
    console: Console,
    happenings: Iterable[Happening],
    draws: Mapping[str, DrawnValue] | None,
    failure: WorldlineError,
) -> None:
    """Show what happened last, and what came of it. `draws` are those that the failure takes."""
    console.print("---")
    _show_story(console, list(_lines_of(happenings, _fates(draws))))
    if failure.__cause__ is not None:
        for line in trace_of(failure).splitlines()[-_TRACE_LINES_MAX:]:
            console.print(line)
    console.print(str(failure), style="red")


class _StoryLine(NamedTuple):
    """A line of a story; `matters` if it may all have begun there: a fault, or a message that the failure takes."""

    text: str
    matters: bool


def _show_story(console: Console, lines: Sequence[_StoryLine]) -> None:
    """Show what happened last, and of what was before that, what matters."""
    before = lines[:-_LINES_MAX]
    earlier = [line for line in before if line.matters][-_EARLIER_MAX:]
    if before:
        console.print(f"... {len(before):,} before that" + (", among them" if earlier else ""))
    for line in earlier:
        console.print(line.text)
    if earlier:
        console.print("...")
    for line in lines[-_LINES_MAX:]:
        console.print(line.text)


def _lines_of(happenings: Iterable[Happening], fates: Sequence[MessageFate]) -> Iterator[_StoryLine]:
    sent: dict[tuple[str, str], int] = {}
    for each in happenings:
        of = each.who, each.topic
        what, becomes = _told(each), list[str]()
        if each.kind == "sent":
            number = sent[of] = sent.get(of, -1) + 1
            becomes = [fate.text for fate in fates if (fate.sender, fate.topic, fate.number) == (*of, number)]
            what += f"  ({', '.join(becomes)})" if becomes else ""
        text = f"{format_time(each.at):>12}  {each.who}  {what}"
        yield _StoryLine(text, each.kind == "befell" or bool(becomes))


def _told(each: Happening) -> str:
    """Say what happened as logs do."""
    if each.kind == "befell":
        return each.text if each.text.startswith(ESTOP_LOG) else f"fault: {each.text}"
    if each.kind == "noted":
        return f"noted  {each.text}"
    of = "" if each.sender == each.who else f" from {each.sender}"
    return f"{each.kind}  {each.topic}{of}: {shortened(each.text)}"


def _fates(draws: Mapping[str, DrawnValue] | None) -> list[MessageFate]:
    fates = (fate_of(name, value) for name, value in (draws or {}).items())
    return [fate for fate in fates if fate is not None]
