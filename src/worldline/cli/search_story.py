"""A failure's story on the screen: what happened last, what matters of what was before, and what came of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.console import Console

from worldline.cli.console import bar
from worldline.model.blame import trace_of
from worldline.model.draws.distributions import DrawnValue
from worldline.model.draws.words import MessageFate, fate_of
from worldline.model.errors import Interrupted, WorldlineError, shortened
from worldline.model.lifecycle import ESTOP_LOG
from worldline.model.time import format_time
from worldline.search.day import USUAL_DAY, Day
from worldline.search.searching import Report
from worldline.search.story import Happening

# Many seeds on the screen: how far a search is, and who interrupts it is told that.


def watched(search: Callable[[Callable[[int], None]], Report], seeds: int) -> Report:
    """Run a search of so many seeds; it is given what to tell how many it has tried."""
    done = 0
    with bar("seeds", seeds) as show:

        def count(tried: int) -> None:
            nonlocal done
            done = tried
            if show is not None:
                show(tried)

        try:
            return search(count)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted after {done:,} of {seeds:,} seeds") from None


def processors() -> int:
    """Return how many processors there are for us."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def show_day(console: Console, day: Day | None, felt: Day | None) -> None:
    """Say what of the kind of day made a difference, if anything did; if that isn't known, say what day it was."""
    words = (felt or day or USUAL_DAY).words()
    if words:
        console.print(f"  on this day: {words}  (--day {day})")


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
