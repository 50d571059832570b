"""Checks the records of a run against the laws of spacetime, without knowing how the run was executed.

========  ===========================================================================================
law       what it says
========  ===========================================================================================
story     an agent's records are numbered without a gap
life      an agent is born first, where its maker is, and nothing happens to it after its end
order     each record of an agent is in the closed future of the one before
clock     local time never falls
sending   what is absorbed was sent, once, from that point, to that agent
channel   a channel's lambdas are absorbed in the order in which they were sent, none left out
future    a lambda is absorbed in the closed future of its emission
field     a lambda is absorbed where its field is; if that is before its birth or was jumped over, where it has landed
========  ===========================================================================================

Signs of intervals are exact. But the points themselves are rounded: a point on a trajectory lacks up to a few units in
the last place of its coordinates and of those of the trajectory's start. So a law counts as kept if it is kept at a
lab time that differs by that much (`slack`), and no more.

Before the run the initializing agent acts, in whose future everything is: there agents jump anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from worldline.model.text import counted
from worldline.spacetime.geometry import LambdaField
from worldline.spacetime.outcome import AgentRecord, Coordinates
from worldline.spacetime.space import Minkowski

_LAST_PLACES = 8 * 2.0**-53
_UNITS = 2**1074
_EVENTS = ("absorbed", "timer", "crossed")
_ENDS = ("died", "ended")


class CausalityViolation(NamedTuple):
    """A law that a record breaks, and how."""

    law: str
    record: AgentRecord
    problem: str

    def __str__(self) -> str:
        return f"{self.law}: {self.record.agent}, record {self.record.number} at {self.record.at}: {self.problem}"


@dataclass(frozen=True)
class CausalityReport:
    """What a check has found, and how much it has looked at."""

    absorbed: int
    channels: int
    agents: int
    violations: list[CausalityViolation] = field(repr=False)

    @property
    def is_clean(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        found = "\n".join(map(str, self.violations)) or "no violation"
        channels, agents = counted(self.channels, "channel"), counted(self.agents, "agent")
        return f"{counted(self.absorbed, 'lambda')} on {channels} of {agents}: {found}"


def check(records: Iterable[AgentRecord], space: Minkowski, field: LambdaField) -> CausalityReport:
    """Check all records of a run, in any order."""
    stories: dict[str, list[AgentRecord]] = {}
    for record in records:
        if record.kind != "measured":
            stories.setdefault(record.agent, []).append(record)
    for story in stories.values():
        story.sort(key=lambda record: record.number)
    absorbed = [record for story in stories.values() for record in story if record.kind == "absorbed"]
    found = [violation for story in stories.values() for violation in _check_agent(story, space, field)]
    found += _check_births(stories)
    found += _check_sending(stories, absorbed)
    found += _check_channels(absorbed)
    return CausalityReport(len(absorbed), len({record.channel for record in absorbed}), len(stories), found)


def slack(*points: Coordinates) -> float:
    """Return by how much lab time may be wrong because points are rounded."""
    return _LAST_PLACES * sum(abs(each) for point in points for each in point)


# -- One agent


def _check_agent(story: list[AgentRecord], space: Minkowski, field: LambdaField) -> Iterator[CausalityViolation]:
    first, start, landing, is_over = story[0], story[0].at, story[0].at, False
    is_set_up = first.kind == "born" and not first.peer
    if first.kind != "born":
        yield CausalityViolation("life", first, f"it begins with {first.kind}")
    for place, record in enumerate(story):
        before = story[place - 1] if place else record
        is_set_up = is_set_up and record.kind not in _EVENTS
        if record.number != place:
            yield CausalityViolation("story", record, f"its number isn't {place}")
        if is_over or (place and record.kind == "born"):
            yield CausalityViolation("life", record, f"it has {record.kind} after {before.kind}")
        if record.local_time < before.local_time:
            yield CausalityViolation(
                "clock", record, f"local time falls from {before.local_time} to {record.local_time}"
            )
        if not is_set_up and not _is_in_future(record.at, before.at, slack(record.at, before.at, start), space):
            yield CausalityViolation("order", record, f"it isn't in the future of {before.at}")
        if record.kind == "absorbed":
            yield from _check_absorption(record, start, landing, space, field)
        if record.kind == "jumped":
            landing = record.at
        if record.kind in ("jumped", "turned"):
            start = record.at
        is_over = is_over or record.kind in _ENDS


def _check_absorption(
    record: AgentRecord, start: Coordinates, landing: Coordinates, space: Minkowski, field: LambdaField
) -> Iterator[CausalityViolation]:
    if record.emitted is None:
        yield CausalityViolation("sending", record, "it doesn't say where it was emitted")
        return
    rounding = slack(record.at, start)
    if not _is_in_future(record.at, record.emitted, rounding, space):
        yield CausalityViolation("future", record, f"it isn't in the future of its emission at {record.emitted}")
    if _depth(record.at, rounding, record.emitted, field) < 0:
        yield CausalityViolation("field", record, f"what was emitted at {record.emitted} isn't there yet")
    if _depth(record.at, -rounding, record.emitted, field) > 0 and record.at != landing:
        yield CausalityViolation("field", record, f"what was emitted at {record.emitted} was there before")


def _is_in_future(later: Coordinates, earlier: Coordinates, rounding: float, space: Minkowski) -> bool:
    if later == earlier:
        return True
    return space.can_reach(later, earlier) or space.can_reach((later[0] + rounding, *later[1:]), earlier)


def _depth(point: Coordinates, shift: float, emitted: Coordinates, field: LambdaField) -> int:
    """Return how far a lambda has got past a point: (X − R)·(X − R) − c exactly; negative if it isn't there yet."""
    reach: Any = (0.0,) * len(point) if field.R is None else field.R
    time, *across = (_whole(x) - _whole(a) - _whole(r) for x, a, r in zip(point, emitted, reach, strict=True))
    time += _whole(shift)
    if time < 0:
        return -1
    return time * time - sum(each * each for each in across) - _whole(field.c) * _UNITS


def _whole(number: float) -> int:
    """Return a float in units of the smallest one there is: a whole number, with which nothing is rounded."""
    above, below = float(number).as_integer_ratio()
    return above * (_UNITS // below)


# -- Between agents


def _check_births(stories: dict[str, list[AgentRecord]]) -> Iterator[CausalityViolation]:
    made = [story[0] for story in stories.values() if story[0].kind == "born" and story[0].peer]
    makers = {record.peer for record in made}
    points = {name: {record.at for record in story} for name, story in stories.items() if name in makers}
    for record in made:
        if record.at not in points.get(record.peer, ()):
            yield CausalityViolation("life", record, f"it is born where {record.peer} isn't")


def _check_sending(stories: dict[str, list[AgentRecord]], absorbed: list[AgentRecord]) -> Iterator[CausalityViolation]:
    sent: dict[tuple[str, int], AgentRecord] = {}
    for story in stories.values():
        for record in story:
            if record.kind == "sent" and sent.setdefault((record.channel, record.order), record) is not record:
                yield CausalityViolation(
                    "sending", record, f"number {record.order} on {record.channel} was sent before"
                )
    for record in absorbed:
        source = sent.get((record.channel, record.order))
        if source is None:
            yield CausalityViolation("sending", record, f"no agent sent number {record.order} on {record.channel}")
        elif (source.agent, source.peer, source.what) != (record.peer, record.agent, record.what):
            yield CausalityViolation(
                "sending",
                record,
                f"{source.agent} sent {source.what} to {source.peer}, not {record.peer} {record.what}",
            )
        elif source.at != record.emitted:
            yield CausalityViolation("sending", record, f"it was sent from {source.at}, not {record.emitted}")


def _check_channels(absorbed: list[AgentRecord]) -> Iterator[CausalityViolation]:
    expected: dict[str, int] = {}
    for record in absorbed:
        order = expected.get(record.channel, 0)
        if record.order != order:
            yield CausalityViolation(
                "channel", record, f"number {record.order} on {record.channel} comes instead of {order}"
            )
        expected[record.channel] = max(order, record.order) + 1
