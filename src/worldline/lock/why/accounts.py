"""What was noted of a run, in words and as plain values: how long everybody waited, for what, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from worldline.lock.why.advice import Advice
from worldline.lock.why.habits import Habits
from worldline.lock.why.tally import WaitingTally
from worldline.lock.why.words import seconds, way
from worldline.model.text import counted
from worldline.model.time import MS, SECOND

_LINKS_SHOWN = 20


def account_in_words(name: str, tally: WaitingTally, habits: Habits) -> list[str]:
    """Say how long everybody waited in a run, and for what."""
    people, took = len(habits.of), habits.took
    together = f"together they waited {lasting(tally.waited)} for each other"
    share = f"{_share(tally.waited, took * people)} of their time"
    lines = [f"{name}: {counted(people, 'participant')}, {lasting(took)}; {together}, {share}"]
    if tally.held:
        lines.append(f"and {lasting(tally.held)} for an operator or the wall clock")
    links = tally.links()
    if not links:
        return lines
    width = max(len(way((each.hop,))) for each in links[:_LINKS_SHOWN])
    lines += ["", f"{'waited for':<{width}}  {'waited':>10}  {'share':>5}  {'waits':>9}"]
    lines += [
        f"{way((each.hop,)):<{width}}  {lasting(each.waited):>10}  {_share(each.waited, tally.waited):>5}  "
        f"{each.waits:>9,}"
        for each in links[:_LINKS_SHOWN]
    ]
    waited, awaited = _ranked(tally.by_participant), _ranked(tally.by_holder)
    return [*lines, "", f"who waited          {waited}", f"who was waited for  {awaited}"]


def advice_in_words(advice: Sequence[Advice]) -> list[str]:
    """Say what would help, the best first."""
    if not advice:
        return ["nothing that was tried would remove as much as 2 % of the waiting"]
    return [_told(each) for each in advice]


def account_as_plain(name: str, tally: WaitingTally, habits: Habits, advice: Sequence[Advice]) -> dict[str, Any]:
    """Return the same for JSON; times are in nanoseconds, the simulated ones and those of the wall clock."""
    return {
        "name": name,
        "took": habits.took,
        "participants": list(habits.of),
        "waited": tally.waited,
        "waits": tally.waits,
        "held": tally.held,
        "links": [
            {**msgspec.to_builtins(each.hop), "waited": each.waited, "waits": each.waits} for each in tally.links()
        ],
        "by_participant": tally.by_participant,
        "by_holder": tally.by_holder,
        "advice": [
            {
                "text": each.text,
                "share": round(each.share, 4),
                "waited": each.after.waited,
                "instead_of": each.before.waited,
                "changes_results": not each.is_harmless,
            }
            for each in advice
        ],
    }


def _told(advice: Advice) -> str:
    before, after = advice.before, advice.after
    results = "no result of this run changes" if advice.is_harmless else "a different model"
    sooner = f", the run takes {1 - after.took / before.took:.0%} less" if after.took < 0.99 * before.took else ""
    return f"{advice.text} would remove {advice.share:.0%} of the waiting{sooner} ({results})"


def lasting(wall: int) -> str:
    """Write a time of the wall clock that was measured, in nanoseconds."""
    return f"{wall / MS:.0f} ms" if wall < 10 * SECOND else seconds(wall / SECOND)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "0%"


def _ranked(by_name: dict[str, int]) -> str:
    ranked = sorted(by_name.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {lasting(waited)}" for name, waited in ranked[:8] if waited)
