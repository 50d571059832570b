"""Looks at one moment of a run that was noted: the first at which it had come to a simulated time, or the last."""

from __future__ import annotations

from collections.abc import Iterable

from worldline.lock.events import Grant, StartRun
from worldline.lock.situation import Activity, Situation, situation_of
from worldline.lock.states import ASKING, Phase, State
from worldline.model.errors import UsageError
from worldline.model.plan import Plan
from worldline.model.time import format_time
from worldline.waiting.heard import Heard
from worldline.waiting.hearing import HearingAgain


def situation_at(plan: Plan, name: str, noted: Iterable[Heard], at: int | None = None) -> Situation:
    """Return how a run stood: where nothing before `at` could happen any more, or at the end of what was noted."""
    again = HearingAgain(plan)
    since: dict[str, int] = {}  # By participant, since when it has been in its state, by the wall clock.
    wall = 0
    for heard, actions in again.hear(noted):
        wall = heard.wall
        since[heard.who] = wall
        for action in actions:
            if isinstance(action, Grant | StartRun):
                since[action.to] = wall
        if at is not None and again.arbiter.phase is not Phase.GATHERING and again.arbiter.floor() >= at:
            break
    arbiter = again.arbiter
    if at is not None and (came := arbiter.status().time) < at:
        raise UsageError(f"it never came to {format_time(at)}", advice=f"it ended at {format_time(came)}: --at end")
    activities = {
        each: Activity(seconds=(wall - since[each]) / 1e9)
        for each, member in arbiter.members.items()
        if each in since and (member.state in ASKING or member.state is State.COMPUTING)
    }
    status = arbiter.status()
    return situation_of(arbiter, name, activities, events=status.events, time=status.time, with_links=True)
