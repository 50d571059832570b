"""Who is at the root of a wait: the one that somebody waits for, who may wait for another, and so on to the last.

Why a chain ends: whoever waits could act at the earliest at the time that its holder's next send allows, and every
latency is positive, so next sends fall strictly from each holder to its own holder (A3 of the arbiter).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from worldline.lock.states import Phase, State
from worldline.lock.why.reasons import Cause, Why
from worldline.lock.why.situation import Situation


class HoldingChain(Struct, frozen=True):
    """Why somebody waits, all the way: its own reason, then its holder's, and so on.

    The last one's holder doesn't wait itself; or there is none, and the last one's cause says what everybody waits for.
    """

    whys: tuple[Why, ...]

    @property
    def who(self) -> str:
        return self.whys[0].participant

    @property
    def root(self) -> str | None:
        return self.whys[-1].holder

    @property
    def cause(self) -> Cause:
        return self.whys[-1].cause


class Hold(Struct, frozen=True):
    """Who or what keeps participants waiting, and whom: `root` is a participant that doesn't wait itself, if it is one.

    `names` are those who aren't there, if it is for them.
    """

    root: str | None
    cause: Cause
    names: tuple[str, ...]
    held: tuple[str, ...]


def chains(whys: Iterable[Why]) -> tuple[HoldingChain, ...]:
    """Follow everybody's reason to the root, in the order of their names."""
    reasons = {why.participant: why for why in whys}
    return tuple(HoldingChain(_followed(why, reasons)) for why in reasons.values())


def _followed(why: Why, reasons: dict[str, Why]) -> tuple[Why, ...]:
    found = {why.participant: why}
    while why.holder in reasons and why.holder not in found:
        why = reasons[why.holder]
        found[why.participant] = why
    return tuple(found.values())


def holds(situation: Situation) -> tuple[Hold, ...]:
    """Say who or what keeps whom waiting: the one first for which somebody has waited longest, or most of them wait.

    After these come those who could go on and don't, and for whom nobody waits: the run doesn't end without them. If
    nobody waits at all, those are all who could go on.
    """
    found: dict[tuple[str | None, Cause, tuple[str, ...]], list[str]] = {}
    for chain in chains(situation.whys):
        last = chain.whys[-1]
        found.setdefault((chain.root, chain.cause, last.missing), []).append(chain.who)
    if not found and situation.phase is Phase.GATHERING and situation.missing:
        return (Hold(None, Cause.ROSTER, situation.missing, ()),)
    if not found and situation.phase is Phase.RUNNING:
        return tuple(
            Hold(each.name, Cause.SENDER, (), ())
            for each in situation.standings
            if each.state is State.COMPUTING or (each.done and each.state is not State.LEFT)
        )
    waited = {each.name: each.activity.seconds or 0.0 for each in situation.standings}
    ordered = sorted(
        found.items(),
        key=lambda item: (-max(waited.get(name, 0.0) for name in item[1]), -len(item[1]), item[0][0] or ""),
    )
    roots = {root for root, _, _ in found}
    return (
        *(Hold(root, cause, names, tuple(held)) for (root, cause, names), held in ordered),
        *(
            Hold(each.name, Cause.SENDER, (), ())
            for each in situation.standings
            if each.state is State.COMPUTING and each.stands_still and each.name not in roots
        ),
    )
