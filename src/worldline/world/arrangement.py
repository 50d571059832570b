"""The arrangement of a world: who simulates what, from one look to the next, and what secondaries are told of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from msgspec import structs

from worldline.model.time import SECOND
from worldline.world.groups import Group, Mover, settle_groups
from worldline.world.orders import GroupOrder, StepOrder
from worldline.world.placement import place
from worldline.world.surroundings import MARGIN, Region, Surroundings, joined

NO_NEWS = StepOrder(0, 0, 0, 0, 0)


class HostedGroup(NamedTuple):
    """A group, where it is simulated, what none of its movers is faster than, and the static models in its region."""

    group: Group
    host: str
    speed: float
    statics: tuple[str, ...]
    region: Region

    def is_same_model(self, other: HostedGroup) -> bool:
        return self.group.members() == other.group.members() and self.statics == other.statics


class Arrangement:
    """Groups by name, and the secondary of each mover. By secondary, in the order of its acks: who is there (`movers`),
    those of them who perform, with their numbers (`performing`), and the speeds of its groups (`speeds`).
    """

    def __init__(
        self,
        groups: Mapping[str, HostedGroup],
        affinities: Mapping[str, str],
        secondaries: Iterable[str],
        surroundings: Surroundings,
    ) -> None:
        self.groups = groups
        self.surroundings = surroundings
        self.affinities = dict(affinities)
        self.movers: dict[str, list[str]] = {}
        self.performing: dict[str, list[tuple[int, str]]] = {}
        self.speeds: dict[str, dict[str, float]] = {}
        for secondary in secondaries:
            here = sorted(each for each in groups.values() if each.host == secondary)
            performers = {name for each in here for name in each.group.performers}
            movers = [name for each in here for name in sorted(each.group.members())]
            self.movers[secondary] = movers
            self.performing[secondary] = [(number, name) for number, name in enumerate(movers) if name in performers]
            self.speeds[secondary] = {each.group.name: each.speed for each in here}

    def at(self, secondary: str) -> dict[str, HostedGroup]:
        return {name: each for name, each in self.groups.items() if each.host == secondary}


def arrange(
    movers: Iterable[Mover],
    span_ns: int,
    secondaries: Collection[str],
    surroundings: Surroundings,
    before: Arrangement,
    changed: Collection[str],
) -> Arrangement:
    """Work out groups that hold for a while, where they are simulated, and the static models around each.

    `changed` are the performers whose levels aren't what they were before. A group that stays in its region keeps its
    static models, as long as the surroundings are the same.
    """
    known = {mover.name: mover for mover in movers}
    groups, speeds = settle_groups(known.values(), span_ns)
    distribution = place(groups, secondaries, before.affinities, changed)
    hosted = {}
    for group in groups:
        speed, host = speeds[group.name], distribution.hosts[group.name]
        needed = joined(_region(known[name]) for name in group.members()).grown(speed * span_ns / SECOND)
        last = before.groups.get(group.name)
        if (
            last is not None
            and last.group.members() == group.members()
            and last.region.holds(needed)
            and before.surroundings is surroundings
        ):
            region, statics = last.region, last.statics
        else:
            region = needed.grown(MARGIN)
            statics = surroundings.near(region)
        hosted[group.name] = HostedGroup(group, host, speed, statics, region)
    return Arrangement(hosted, distribution.affinities, secondaries, surroundings)


def news(
    secondary: str, before: Arrangement, after: Arrangement, states: Mapping[str, bytes], forgotten: Collection[str]
) -> StepOrder | None:
    """Return what a secondary has to load and unload, and who comes and goes; None if it has nothing, and had nothing.

    `states` are those of all movers. A secondary takes them from the groups that it had, unless they are `forgotten`.
    """
    had, has = before.at(secondary), after.at(secondary)
    same = [
        name
        for name, each in has.items()
        if name in had and each.is_same_model(had[name]) and not any(map(forgotten.__contains__, each.group.members()))
    ]
    unload = [name for name in had if name not in same]
    there = {mover for name in unload for mover in had[name].group.members()}.difference(forgotten)
    if not (has or unload):
        return None
    return structs.replace(
        NO_NEWS,
        affinities=[
            (name, host)
            for name, host in after.affinities.items()
            if host != before.affinities.get(name) and secondary in (host, before.affinities.get(name))
        ],
        unload=unload,
        load=[
            GroupOrder(
                name,
                sorted(each.group.members()),
                list(each.statics),
                {mover: states[mover] for mover in each.group.members() if mover not in there},
            )
            for name, each in has.items()
            if name not in same
        ],
    )


def _region(mover: Mover) -> Region:
    (x, y, z), (a, b, c) = mover.center, mover.half
    return Region((x - a, y - b, z - c), (x + a, y + b, z + c))
