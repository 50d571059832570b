"""Says who waits for whom when nobody can go on any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import dist, sqrt
from typing import NamedTuple

from worldline.model.errors import Stuck
from worldline.spacetime.core import Core
from worldline.spacetime.nanoseconds import time_of_failure
from worldline.spacetime.outcome import SpacetimeOutcome, broken_off
from worldline.spacetime.story import AgentRecord, Coordinates


class HeldBack(NamedTuple):
    """For whom an agent waits, and where it stands."""

    waits_for: str
    at: tuple[float, ...]


def waits_of(core: Core) -> dict[str, HeldBack]:
    """Return for whom everybody here waits."""
    return {
        body.name: HeldBack(body.blocked_by.source.name, body.position(core.n))
        for body in core.bodies.values()
        if not body.done and body.blocked_by is not None
    }


def living(core: Core) -> list[str]:
    """Return who hasn't ended."""
    return [body.name for body in core.bodies.values() if not body.done]


def stood_still(outcome: SpacetimeOutcome, waits: Mapping[str, HeldBack], alive: Sequence[str]) -> SpacetimeOutcome:
    """Return that a run can't go on, with where everybody waits, and who is the cause of it."""
    error = stuck(waits, alive)
    lasts: dict[str, AgentRecord] = {}
    for record in outcome.kept or ():
        if record.agent not in lasts or record.number > lasts[record.agent].number:
            lasts[record.agent] = record
    found = [
        AgentRecord(
            name,
            lasts[name].number + 1,
            "failed" if name in error.facts["agents"] else "waits",
            wait.at,
            lasts[name].local_time + _passed(lasts[name].at, wait.at),
            what=f"waits for {wait.waits_for}, at {_point(wait.at)}" if name in error.facts["agents"] else "",
            peer=wait.waits_for,
        )
        for name, wait in waits.items()
        if name in lasts
    ]
    return broken_off(outcome, error, [*(outcome.kept or ()), *found])


def _passed(start: Coordinates, end: Coordinates) -> float:
    """Return how much local time passes on a straight way."""
    across = dist(start[1:], end[1:])
    return sqrt(max(0.0, (end[0] - start[0] - across) * (end[0] - start[0] + across)))


def stuck(waits: Mapping[str, HeldBack], alive: Sequence[str]) -> Stuck:
    """Return the error that says why some are still alive when nothing can happen any more.

    If they wait, there is a circle of those who wait for each other.
    """
    if not waits:
        return Stuck(
            f"{min(alive)} never ends: nothing will happen to it, and no boundary takes it out",
            advice="say until when it runs: run(until=100)",
            agents=tuple(sorted(alive)),
        )
    seen: list[str] = []
    name = min(waits)
    while name in waits and name not in seen:
        seen.append(name)
        name = waits[name].waits_for
    circle = seen[seen.index(name) :] if name in seen else seen
    first = circle.index(min(circle))
    circle = circle[first:] + circle[:first]
    told = ", and ".join(f"{each} waits for {waits[each].waits_for}" for each in circle)
    where = waits[circle[0]].at
    return Stuck(
        f"nobody can go on: {told}, at {_point(where)}; there lambdas between them take less time than floats can tell",
        advice="give the lambda field an R or a c, of at least 1e-14 of the coordinates, or keep the agents apart",
        at=time_of_failure(where[0]),
        agents=tuple(circle),
    )


def _point(at: Coordinates) -> str:
    return f"({', '.join(f'{each:.6g}' for each in at)})"
