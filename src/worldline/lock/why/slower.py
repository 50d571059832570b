"""What got slower between two runs that were noted: who computes longer, and what is waited for longer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from worldline.lock.why.advice import lasting, per_step
from worldline.lock.why.heard import ComputingTally, Habits, Heard, WaitingTally, waits_in
from worldline.lock.why.words import way
from worldline.model.plan import Plan

_LEAST = 0.02  # Of the longer run: less is luck.
_SHOWN_MAX = 12


class RunAccount(NamedTuple):
    """Where the time of a run went."""

    habits: Habits
    waiting: WaitingTally
    computing: ComputingTally

    @property
    def took(self) -> int:
        return self.habits.took


def account_of(plan: Plan, noted: list[Heard]) -> RunAccount:
    """Add up what was noted of a run."""
    habits, computing = Habits(), ComputingTally()
    return RunAccount(habits, WaitingTally(waits_in(plan, habits.listening(noted), computing)), computing)


class Change(NamedTuple):
    """How long one thing takes in the first run and in the second, in nanoseconds of the wall clock."""

    what: str
    before: int
    after: int

    @property
    def more(self) -> int:
        return self.after - self.before


def changes(first: RunAccount, second: RunAccount) -> list[Change]:
    """Return what takes longer or less long, most first: what is computed, and then what is waited for on each link.

    What is computed comes first, because waiting follows from it.
    """
    least = _LEAST * max(first.took, second.took)
    computed = first.computing.computed, second.computing.computed
    before, after = ({way((each.hop,)): each.waited for each in run.waiting.links()} for run in (first, second))
    return [*_changed("{} computes", *computed, least), *_changed("waiting for {}", before, after, least)]


def _changed(what: str, first: Mapping[str, int], second: Mapping[str, int], least: float) -> list[Change]:
    names = sorted({*first, *second})
    found = [Change(what.format(name), first.get(name, 0), second.get(name, 0)) for name in names]
    return sorted((each for each in found if abs(each.more) >= least), key=lambda each: -abs(each.more))


def slower_in_words(names: tuple[str, str], first: RunAccount, second: RunAccount) -> list[str]:
    """Say what got slower, and by how much."""
    more = second.took - first.took
    than = f"{lasting(abs(more))} {'more' if more >= 0 else 'less'} than the {lasting(first.took)} of {names[0]}"
    lines = [f"{names[1]} took {lasting(second.took)}, {than}"]
    found = changes(first, second)
    if not found:
        return [*lines, "nothing that a participant computes or waits for differs by as much as 2 % of that"]
    for each in found[:_SHOWN_MAX]:
        longer = "longer" if each.more > 0 else "less"
        lines.append(
            f"{each.what}  {lasting(abs(each.more))} {longer}: {lasting(each.after)} instead of {lasting(each.before)}"
            f"{_steps(each, first, second)}"
        )
    return lines


def _steps(change: Change, first: RunAccount, second: RunAccount) -> str:
    name = change.what.removesuffix(" computes")
    tallies = first.computing, second.computing
    if name == change.what or not all(name in each.computed for each in tallies):
        return ""
    before, after = (each.per_step(name) for each in tallies)
    return f", {per_step(after)} instead of {per_step(before)}"
