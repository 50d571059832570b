"""Placement: which secondary simulates which group.

Theory of operation
-------------------
A pure function: groups and the affinities so far in, affinities and moves out. A group that has performers is *settled*
if any of them is on a secondary already, and *fresh* otherwise; one without performers is *loose*. A secondary is idle
if it has no performer. Among all ways to give each group one secondary, `place` takes the one with

P1. the fewest idle secondaries; of those, the one with
P2. the fewest moved performers; of those, the one with
P3. the fewest moved performers whose levels haven't changed (so those move that changed something); of those, the one
P4. where the first settled group is on the secondary of the least name that is possible, then the second, and so on.
P5. Fresh groups are dealt, one after the other, to the secondary with the fewest groups, the least name first.
P6. Loose groups follow: each goes where performers are that are in its levels, if there are any; of those secondaries,
    or of all, to the one that has most of its members, then the one with the fewest groups, then the least name.

Secondaries are ordered by name. Groups are ordered by their least level, then those without levels by name. In the
beginning all groups are fresh, and P5 deals out first the levels, then the performers without one, in turn.

No two groups may have performers in one level; `groups` sees to it. So a level is on one secondary if groups are.

How it is found, and why that is right
--------------------------------------
*The idle.* g groups can keep min(g, n) of n secondaries busy, and no more. P5 fills idle secondaries first, as they
have no groups. So f fresh groups on top of settled ones that keep k secondaries busy make it min(k + f, n), and P1 asks
of s settled groups exactly that k ≥ min(s, n - f). Fresh groups cost nothing in P2 to P4. What is left is to assign the
settled groups at the least cost, so that at least that many secondaries are busy.

*The cost.* A performer that moves costs 1 by P2, and 1 by P3 unless its levels changed. With a base larger than the
number of performers, both are digits of one number, which adds up over groups: (P2, P3) is the order of the sums. P4 is
more digits below: with n as base, the group at index i on secondary r adds r × n^(s-1-i). The sums then are ordered as
P2, P3 and P4 ask for, and no two assignments have equal sums: there is one best.

*The search.* If every settled group goes to its own best secondary, the cost is the least there is. If that keeps
enough secondaries busy, it is the answer. That is nearly always so, and takes a time proportional to the performers.

Otherwise one more secondary must be made busy, until it is enough. That is a minimum-cost flow: groups flow to
secondaries, and from each secondary one unit through an edge that counts as busy, the rest through one that doesn't. A
flow of the least cost for k busy secondaries stays one of the least cost for k + 1 if it is augmented along a shortest
path of the residual graph (the theorem of successive shortest paths). Between secondaries, the residual graph has an
arc a → b for every group that could move from a to b, at the difference of its costs, of which only the cheapest
matters. A path starts where at least two groups are, ends at an idle secondary, and along it each arc's group moves
on: everybody between keeps its number. There always is such a path, as long as there are idle secondaries and fewer
busy ones than groups. Costs may be negative but cycles are positive, or the flow hadn't been the one best. So Bellman
and Ford's algorithm finds it, on as many nodes as there are secondaries.

So nothing here is a heuristic, and nothing is hard: every rule is exact for any number of groups. `tests/world`
compares it with all assignments for small worlds.

Of the groups on an arc, the cheapest is found with small numbers: by P2 and P3, then by P4 the last group if it moves
to a greater name, and the first if it moves to a lesser one. Only arcs, not groups, have costs with all digits.

Deliberately not handled: load. A secondary may have one group and another all the rest, if that is how they moved. The
rules rank moves above balance; P5 and P1 alone spread what is new or must move anyway.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.world.groups import Group


class Move(NamedTuple):
    """A performer or entity that changes its secondary, or comes to its first."""

    name: str
    source: str | None
    target: str


class Distribution(NamedTuple):
    """Who is where: the secondary of each group and of each member, by name; and the moves that lead there, sorted."""

    hosts: dict[str, str]
    affinities: dict[str, str]
    moves: tuple[Move, ...]


def place(
    groups: Iterable[Group],
    secondaries: Iterable[str],
    affinities: Mapping[str, str] | None = None,
    changed: Collection[str] = (),
) -> Distribution:
    """Give each group its secondary.

    `affinities` say on which secondary performers and entities are; others are new. `changed` are the performers whose
    levels have changed since.
    """
    ordered = sorted(groups, key=_order)
    names = sorted(set(secondaries))
    before = _ranks(names, affinities or {})
    _check(ordered, names)
    loads = [0] * len(names)  # By rank: how many groups a secondary has.
    hosts: dict[str, int] = {}

    def assign(group: Group, rank: int) -> None:
        hosts[group.name] = rank
        loads[rank] += 1

    performing = [group for group in ordered if group.performers]
    stakes = _stakes(performing, before, frozenset(changed), len(names))
    settled = [group for group in performing if group.name in stakes]
    fresh = [group for group in performing if group.name not in stakes]
    ranks = _settle([stakes[group.name] for group in settled], len(names), len(names) - len(fresh))
    for group, rank in zip(settled, ranks, strict=True):
        assign(group, rank)
    for group in fresh:
        assign(group, min(range(len(names)), key=lambda rank: (loads[rank], rank)))
    homes = {level: hosts[group.name] for group in performing for level in group.levels}
    for group in ordered:
        if not group.performers:
            assign(group, _beside(group, homes, before, loads))
    return _distribution(ordered, names, hosts, affinities or {})


def _order(group: Group) -> tuple[bool, str, str]:
    return (not group.levels, group.levels[0] if group.levels else "", group.name)


def _ranks(names: list[str], affinities: Mapping[str, str]) -> dict[str, int]:
    ranks = {name: rank for rank, name in enumerate(names)}
    try:
        return {member: ranks[secondary] for member, secondary in affinities.items()}
    except KeyError:
        gone, where = min((member, where) for member, where in affinities.items() if where not in ranks)
        raise UsageError(
            f"{shown(gone)} is on {shown(where)}, which isn't among the secondaries",
            advice="they stay the same in a run",
        ) from None


def _check(groups: list[Group], names: list[str]) -> None:
    if not names:
        raise ConfigurationError("there is no secondary", advice="at least one must simulate")
    _check_owners("", ((member, group) for group in groups for member in (group.name, *group.members())))
    _check_owners("level ", ((level, group) for group in groups if group.performers for level in group.levels))


def _check_owners(what: str, owned: Iterable[tuple[str, Group]]) -> None:
    owners: dict[str, Group] = {}
    for name, group in owned:
        if (owner := owners.setdefault(name, group)) is not group:
            raise UsageError(
                f"{what}{shown(name)} belongs to groups {shown(owner.name)} and {shown(group.name)}",
                advice="make them one group",
            )


def _stakes(
    groups: list[Group], before: Mapping[str, int], changed: frozenset[str], count: int
) -> dict[str, list[int]]:
    """Return what settled groups save by being on each secondary: P2 and P3 as one number."""
    base = 1 + sum(len(group.performers) for group in groups)
    stakes: dict[str, list[int]] = {}
    for group in groups:
        for performer in group.performers:
            if (rank := before.get(performer)) is not None:
                if group.name not in stakes:
                    stakes[group.name] = [0] * count
                stakes[group.name][rank] += base + (performer not in changed)
    return stakes


def _settle(stakes: list[list[int]], count: int, busy_wanted: int) -> list[int]:
    """Return the ranks of settled groups' secondaries, of which that many are busy if there are as many groups."""
    ranks = [each.index(max(each)) for each in stakes]
    residents: list[list[int]] = [[] for _ in range(count)]
    for index, rank in enumerate(ranks):
        residents[rank].append(index)
    busy = sum(map(bool, residents))
    for _ in range(min(len(stakes), busy_wanted) - busy):
        for index, target in _cheapest_path(stakes, residents):
            residents[ranks[index]].remove(index)
            residents[target].append(index)
            ranks[index] = target
    return ranks


class _Arc(NamedTuple):
    source: int
    target: int
    group: int  # The index of the one that moves.
    cost: int


def _arcs(stakes: list[list[int]], residents: list[list[int]]) -> list[_Arc]:
    """Return the cheapest way to move one group, from each busy secondary to each other one."""
    count = len(residents)
    unit = count ** len(stakes)  # Of P2 and P3, above the digits of P4.
    arcs = []
    for source, inhabitants in enumerate(residents):
        for target in range(count):
            if inhabitants and target != source:
                later = -1 if target > source else 1
                loss, _, group = min(
                    (stakes[index][source] - stakes[index][target], later * index, index) for index in inhabitants
                )
                cost = loss * unit + (target - source) * count ** (len(stakes) - 1 - group)
                arcs.append(_Arc(source, target, group, cost))
    return arcs


def _cheapest_path(stakes: list[list[int]], residents: list[list[int]]) -> list[tuple[int, int]]:
    """Return the groups that have to move, and where to, to make one more secondary busy."""
    arcs = _arcs(stakes, residents)
    costs: dict[int, int] = {rank: 0 for rank, inhabitants in enumerate(residents) if len(inhabitants) > 1}
    last: dict[int, _Arc] = {}
    shorter = True
    while shorter:
        shorter = False
        for arc in arcs:
            if arc.source in costs:
                cost = costs[arc.source] + arc.cost
                if arc.target not in costs or cost < costs[arc.target]:
                    costs[arc.target], last[arc.target] = cost, arc
                    shorter = True
    rank = min((rank for rank, inhabitants in enumerate(residents) if not inhabitants), key=costs.__getitem__)
    path = []
    while rank in last:
        path.append((last[rank].group, rank))
        rank = last[rank].source
    return path


def _beside(group: Group, homes: Mapping[str, int], before: Mapping[str, int], loads: list[int]) -> int:
    """Return where a loose group goes (P6)."""
    votes = [0] * len(loads)
    for entity in group.entities:
        if (rank := before.get(entity)) is not None:
            votes[rank] += 1
    near = [homes[level] for level in group.levels if level in homes] or range(len(loads))
    return min(near, key=lambda rank: (-votes[rank], loads[rank], rank))


def _distribution(
    groups: list[Group], names: list[str], hosts: Mapping[str, int], before: Mapping[str, str]
) -> Distribution:
    affinities = {member: names[hosts[group.name]] for group in groups for member in group.members()}
    return Distribution(
        {group: names[hosts[group]] for group in sorted(hosts)},
        {member: affinities[member] for member in sorted(affinities)},
        tuple(
            Move(member, before.get(member), target)
            for member, target in sorted(affinities.items())
            if before.get(member) != target
        ),
    )
