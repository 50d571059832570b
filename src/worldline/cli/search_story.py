"""A search on the screen: many seeds, the first failure and how to repeat it, and the story of what failed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import typer
from msgspec import Struct
from rich.console import Console

from worldline.cli.console import bar
from worldline.model.blame import trace_of
from worldline.model.draws.distributions import DrawnValue
from worldline.model.draws.names import MessageFate, fate_of
from worldline.model.errors import Interrupted, Stuck, WorldlineError, shortened
from worldline.model.lifecycle import ESTOP_LOG
from worldline.model.segments import read_any
from worldline.model.text import counted, printable
from worldline.model.time import format_time
from worldline.search.day import USUAL_DAY, Day
from worldline.search.properties import Happening
from worldline.search.searching import Recipe, Report, Tried, remarks_on, search_seeds
from worldline.search.shrinking import RUNS_MAX

T = TypeVar("T", bound=Tried)
_SEEDS = "Many seeds"


class SeedsOptions(Struct, frozen=True, kw_only=True):
    """How many seeds are tried, and what is done with the one that fails."""

    seeds: Annotated[
        int | None, typer.Option(rich_help_panel=_SEEDS, min=1, help="Try this many seeds, until one fails.")
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(rich_help_panel=_SEEDS, min=1, help="Number of worker processes (default: one per processor)."),
    ] = None
    keep_going: Annotated[
        bool, typer.Option("--keep-going", rich_help_panel=_SEEDS, help="Try all seeds and count failures.")
    ] = False
    no_shrink: Annotated[
        bool, typer.Option("--no-shrink", rich_help_panel=_SEEDS, help="Don't shrink the failure.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class Searched(Generic[T]):
    """What is searched, and what its room does with a failure: how it is repeated, saved, shrunk and told.

    `describe` says what was left by shrinking, and `tell` what happens then. Without properties, `unjudged` is said.
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
        with bar("runs", RUNS_MAX) as progress:
            shrunk = room.shrink(failing, progress)
        if save_to is not None:
            room.save(shrunk.trial, save_to)
        room.describe(shrunk)
        console.print("(--save FILE.json keeps it, to be run again)" if save_to is None else "to repeat it:")
        if save_to is not None:
            console.print(f"  {room.command_of_saved(save_to)}")
        room.tell(shrunk)
    elif save_to is not None:
        console.print(f"  {room.command_of_saved(save_to)}")
    raise typer.Exit(failure.exit_code)


def _searched(room: Searched[T], options: SeedsOptions) -> Report:
    """Run a search with a bar; if it is interrupted, say how far it was."""
    done, first, number = 0, room.trial.seed, options.seeds or 1
    with bar("seeds", number) as show:

        def count(tried: int) -> None:
            nonlocal done
            done = tried
            if show is not None:
                show(tried)

        try:
            return search_seeds(
                room.trial,
                range(first, first + number),
                workers=min(number, options.workers or processors()),
                recipe=room.recipe,
                seconds_max=room.seconds_max,
                keeps_going=options.keep_going,
                progress=count,
            )
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted after {done:,} of {number:,} seeds") from None


def processors() -> int:
    """Return how many processors there are for us."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _show_report(console: Console, room: Searched[T], report: Report, *, keeps_going: bool) -> None:
    tried = f"{counted(report.tried, 'seed')}, {counted(report.events, 'event')}"
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


def _show_story(console: Console, lines: Sequence[tuple[str, bool]]) -> None:
    """Show what happened last, and of what was before that, what matters."""
    before = lines[:-_LINES_MAX]
    earlier = [text for text, matters in before if matters][-_EARLIER_MAX:]
    if before:
        console.print(f"... {len(before):,} before that" + (", among them" if earlier else ""))
    for text in earlier:
        console.print(text)
    if earlier:
        console.print("...")
    for text, _ in lines[-_LINES_MAX:]:
        console.print(text)


def _lines_of(happenings: Iterable[Happening], fates: Sequence[MessageFate]) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a story, and whether it may all have begun there: a fault, or a message that it takes."""
    sent: dict[tuple[str, str], int] = {}
    for each in happenings:
        of = each.who, each.topic
        what, becomes = _told(each), list[str]()
        if each.kind == "sent":
            number = sent[of] = sent.get(of, -1) + 1
            becomes = [fate.text for fate in fates if (fate.sender, fate.topic, fate.number) == (*of, number)]
            what += f"  ({', '.join(becomes)})" if becomes else ""
        text = f"{format_time(each.at):>12}  {each.who}  {what}"
        yield text, each.kind == "befell" or bool(becomes)


def _told(each: Happening) -> str:
    """Say what happened as logs do."""
    if each.kind == "befell":
        return each.text if each.text.startswith(ESTOP_LOG) else f"fault: {each.text}"
    if each.kind == "noted":
        return f"noted  {each.text}"
    of = "" if each.sender == each.who else f" from {each.sender}"
    segment = read_any(each.payload)
    return f"{each.kind}  {each.topic}{of}: {shortened(each.text if segment is None else printable(str(segment)))}"


def _fates(draws: Mapping[str, DrawnValue] | None) -> list[MessageFate]:
    fates = (fate_of(name, value) for name, value in (draws or {}).items())
    return [fate for fate in fates if fate is not None]
