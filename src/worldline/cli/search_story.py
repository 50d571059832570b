"""A search on the screen: many seeds, the first failure and how to repeat it, and the story of what failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import typer
from msgspec import Struct
from rich.console import Console

from worldline.cli.console import counting
from worldline.model.blame import trace_of
from worldline.model.draws.distributions import DrawnValue
from worldline.model.errors import Interrupted, Stuck, WorldlineError
from worldline.model.text import counted
from worldline.processes.executor import cores
from worldline.search.day import USUAL_DAY, Day
from worldline.search.properties import Happening, story_lines
from worldline.search.searching import Recipe, Report, Tried, remarks_on, search_seeds
from worldline.search.shrinking import RUNS_MAX

T = TypeVar("T", bound=Tried)

OF_SEEDS = """
    Many seeds:
    --seeds at least 1  Try this many seeds, until one fails.
    --workers at least 1  Number of worker processes (default: one per processor).
    --keep-going  Try all seeds and count failures.
    --no-shrink  Don't shrink the failure.
"""
"""The rows of the options of a search."""


class SeedsOptions(Struct, frozen=True, kw_only=True):
    """How many seeds are tried, and what is done with the one that fails; `keep` is what shrinking leaves alone."""

    seeds: int | None = None
    workers: int | None = None
    keep_going: bool = False
    no_shrink: bool = False
    keep: str | None = None


@dataclass(frozen=True, kw_only=True)
class Searched(Generic[T]):
    """What is searched, and what its room does with a failure: how it is repeated, saved, shrunk and told.

    `describe` says what was left by shrinking, and `tell` what happens then; `show` opens a page on it. Without
    properties, `unjudged` is said.
    """

    trial: T
    seconds_max: float
    save_to: Path | None
    unjudged: str
    recipe: Callable[[], Recipe]
    command: Callable[[T], str]
    command_of_saved: Callable[[Path], str]
    save: Callable[[T, Path], None]
    shrink: Callable[[T, Callable[[int], None] | None], Any]
    describe: Callable[[Any], None]
    tell: Callable[[Any], None]
    show: Callable[[T], None] | None = None
    tells_faults: bool = False  # Even if there were none.


def run_search(console: Console, room: Searched[T], options: SeedsOptions) -> None:
    """Try seeds; of the first failure, say how to repeat it, shrink it, and save it if that is wanted."""
    report = _searched(room, options)
    _show_report(console, room, report, keeps_going=options.keep_going)
    save_to = room.save_to
    failure = None if report.failure is None else report.failure.failure
    if report.failure is None or failure is None:
        if save_to is not None:
            console.print(f"nothing failed, so {save_to} wasn't written")
        return
    failing = room.trial.with_seed(report.failure.seed)
    _show_day(console, failing.day, report.failure.day)
    console.print("to repeat it:")
    console.print(f"  {room.command(failing)}")
    if save_to is not None:  # Before it is shrunk, too: that takes a while, and the user may have seen enough.
        room.save(failing, save_to)
    if not options.no_shrink and not isinstance(failure, Stuck):  # What has no end has no short form either.
        with counting("shrinking", "runs", RUNS_MAX) as progress:
            shrunk = room.shrink(failing, progress)
        if save_to is not None:
            room.save(shrunk.trial, save_to)
        room.describe(shrunk)
        console.print("(--save FILE.json keeps it, to be run again)" if save_to is None else "to repeat it:")
        if save_to is not None:
            console.print(f"  {room.command_of_saved(save_to)}")
        room.tell(shrunk)
        failing = shrunk.trial
    elif save_to is not None:
        console.print(f"  {room.command_of_saved(save_to)}")
    if room.show is not None and not isinstance(failure, Stuck):
        room.show(failing)
    raise typer.Exit(failure.exit_code)


def _searched(room: Searched[T], options: SeedsOptions) -> Report:
    """Run a search with a bar; if it is interrupted, say how far it was."""
    done, first, number = 0, room.trial.seed, options.seeds or 1
    with counting("searching", "seeds", number) as show:

        def count(tried: int) -> None:
            nonlocal done
            done = tried
            show(tried)

        try:
            return search_seeds(
                room.trial,
                range(first, first + number),
                workers=min(number, options.workers or cores()),
                recipe=room.recipe,
                seconds_max=room.seconds_max,
                keeps_going=options.keep_going,
                progress=count,
            )
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted after {done:,} of {number:,} seeds") from None


def _show_report(console: Console, room: Searched[T], report: Report, *, keeps_going: bool) -> None:
    tried = counted(report.tried, "seed")
    if report.events or report.failure is None:  # Of a run that fails, they may not be known.
        tried += f", {counted(report.events, 'event')}"
    if report.schedules > report.tried:
        tried += f", {counted(report.schedules, 'schedule')}"
    if room.tells_faults or report.faults:
        tried += f", {counted(report.faults, 'fault')}"
    if report.failure is not None:
        number = f"{report.failed:,} fail{'s' if report.failed == 1 else ''}"
        fails = f"{number}, the first is {report.failure.seed}" if keeps_going else f"seed {report.failure.seed} fails"
        console.print(f"{tried}: {fails}")
        console.print(f"  {report.failure.failure}", style="red")
        return
    for each in room.trial.properties:
        console.print(f"holds {each}")
    if not room.trial.properties:
        console.print(room.unjudged)
    console.print(f"{tried}, digest {report.digest}")
    for remark in remarks_on(report.faults, report.faults_in_vain):
        console.print(remark)


def _show_day(console: Console, day: Day | None, felt: Day | None) -> None:
    """Say what of the kind of day made a difference, if anything did; if that isn't known, say what day it was."""
    words = (felt or day or USUAL_DAY).words()
    if words:
        console.print(f"  on this day: {words}  (--day {day})")


# -- The story of a failure

_TRACE_LINES_MAX = 12


def show_failure(
    console: Console,
    happenings: Iterable[Happening],
    draws: Mapping[str, DrawnValue] | None,
    failure: WorldlineError,
) -> None:
    """Show what happened last, and what came of it. `draws` are those that the failure takes."""
    console.print("---")
    for line in story_lines(happenings, draws):
        console.print(line)
    if failure.__cause__ is not None:
        for line in trace_of(failure).splitlines()[-_TRACE_LINES_MAX:]:
            console.print(line)
    console.print(str(failure), style="red")
