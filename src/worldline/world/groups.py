"""Groups: who has to be simulated together.

Theory of operation
-------------------
A *mover* is whatever can change its place: a performer, or an entity that isn't static. A group is the unit of
placement and of physics: one model, on one secondary. Two movers are in one group if a chain of these connects them:

G1. Performers that are in one level.
G2. Movers that could touch before the groups are looked at again. Each is in a box around its center now, and grown by
    speed × time on every side, the box holds it until then. Movers whose grown boxes touch could meet.

So a performer's group also has the entities that it could push, and those that they could push in turn. Levels connect
performers alone: a level may name a thousand boxes that no performer comes near, and they need not be in one model.

Why it is safe: a mover stays in its grown box until the groups are looked at again, and the grown boxes of two groups
don't touch, so neither do their movers. A contact that isn't in one model would be missed: they would pass through each
other. So rounding must not separate boxes that touch. After each operation, half sizes go up to the next double, which
is more than the operation can have been off. Adding them to a center then needs no such care: rounding keeps the order
of numbers, so bounds that are exactly equal, or overlap, still do when both are rounded.

That holds if the caller's figures do. `half` must hold the mover in every orientation that it may have until then, and
`speed` is what no point of it will exceed, whatever pushes it. Where that depends on the group, a fast one
that joins makes all the others faster, and these may reach more in turn: `settle_groups` goes on until none does.

Groups without a performer (*loose* ones) are groups too: what falls has to fall somewhere.

The groups are the connected parts of a graph, so neither the order of the input nor that of the search shows. A group
has the name of its least member, performer or entity; all names of a world differ, and so do those of its groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from heapq import nsmallest
from itertools import accumulate
from math import inf, isfinite, nextafter
from operator import mul
from typing import NamedTuple

from worldline.model.errors import ModelError, shown
from worldline.model.time import SECOND
from worldline.world.pose import Vector


class Mover(NamedTuple):
    """Whatever can change its place, as far as it matters here; meters and meters per second.

    `levels` are those that a performer is in, and of those that name an entity, the active ones.
    """

    name: str
    center: Vector
    half: Vector
    speed: float
    levels: tuple[str, ...] = ()
    performs: bool = False


class Group(NamedTuple):
    """Movers that are simulated together; all names are sorted. Without performers, it is loose."""

    name: str
    performers: tuple[str, ...]
    entities: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()

    def members(self) -> tuple[str, ...]:
        return (*self.performers, *self.entities)


def find_groups(movers: Iterable[Mover], span_ns: int) -> tuple[Group, ...]:
    """Return the groups, by name. `span_ns` is the time until they are looked at again."""
    ordered = sorted(movers, key=lambda mover: mover.name)
    parents = list(range(len(ordered)))  # Disjoint parts, which are trees; the root of each is its least number.
    _join_by_levels(ordered, parents)
    _join_by_boxes([_grown(mover, span_ns) for mover in ordered], parents)
    parts: dict[int, list[Mover]] = {}
    for number, mover in enumerate(ordered):
        parts.setdefault(_root(parents, number), []).append(mover)
    return tuple(_group(part) for part in parts.values())


def settle_groups(movers: Iterable[Mover], span_ns: int) -> tuple[tuple[Group, ...], dict[str, float]]:
    """Return groups in which each may get as fast as the fastest could by itself, and that speed of each."""
    known = {mover.name: mover for mover in movers}
    while True:
        groups = find_groups(known.values(), span_ns)
        speeds = {group.name: max(known[name].speed for name in group.members()) for group in groups}
        slower = [
            (name, speeds[group.name])
            for group in groups
            for name in group.members()
            if known[name].speed < speeds[group.name]
        ]
        if not slower:
            return groups, speeds
        for name, speed in slower:
            known[name] = known[name]._replace(speed=speed)


def _group(part: list[Mover]) -> Group:
    performers = [mover for mover in part if mover.performs]
    return Group(
        part[0].name,
        tuple(mover.name for mover in performers),
        tuple(mover.name for mover in part if not mover.performs),
        # What performers push doesn't bring its own levels along: a level is where its performers are.
        tuple(sorted({level for mover in performers or part for level in mover.levels})),
    )


def _root(parents: list[int], number: int) -> int:
    """Return the least number of the part that a number is in, and make the way there shorter."""
    while (parent := parents[number]) != number:
        parents[number] = number = parents[parent]
    return number


def _join(parents: list[int], one: int, other: int) -> None:
    one, other = _root(parents, one), _root(parents, other)
    parents[max(one, other)] = min(one, other)


def _join_by_levels(movers: list[Mover], parents: list[int]) -> None:
    first: dict[str, int] = {}
    for number, mover in enumerate(movers):
        if mover.performs:
            for level in mover.levels:
                _join(parents, first.setdefault(level, number), number)


_GrownBox = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]


def _grown(mover: Mover, span_ns: int) -> _GrownBox:
    """Return the box that holds a mover for a while: the least and the greatest coordinate by axis."""
    (x, y, z), (x_half, y_half, z_half), speed = mover.center, mover.half, mover.speed
    if not isfinite(x + y + z + x_half + y_half + z_half + speed) or min(x_half, y_half, z_half, speed) < 0:
        _check(mover)  # Only now: it takes longer than all the rest.
    way = nextafter(nextafter(speed * span_ns, inf) / SECOND, inf)
    x_half, y_half, z_half = nextafter(x_half + way, inf), nextafter(y_half + way, inf), nextafter(z_half + way, inf)
    return (x - x_half, x + x_half), (y - y_half, y + y_half), (z - z_half, z + z_half)


def _check(mover: Mover) -> None:
    for what, figures, least in (
        ("center", mover.center, -inf),
        ("half", mover.half, 0.0),
        ("speed", (mover.speed,), 0.0),
    ):
        if not all(isfinite(figure) and figure >= least for figure in figures):
            raise ModelError(
                f"the {what} of {shown(mover.name)} is {shown(getattr(mover, what))}",
                advice="all figures must be finite, and sizes and speeds at least 0",
            )


def _join_by_boxes(boxes: list[_GrownBox], parents: list[int]) -> None:
    """Join all whose boxes touch, by a sweep along the axis on which they are spread most."""
    if not boxes:
        return
    spreads = [max(box[axis][0] for box in boxes) - min(box[axis][0] for box in boxes) for axis in range(3)]
    first = spreads.index(max(spreads))
    second, third = (axis for axis in range(3) if axis != first)
    swept: list[tuple[float, float, float, float, float, int]] = []  # Those that the sweep hasn't left behind.
    for start, number in sorted((box[first][0], number) for number, box in enumerate(boxes)):
        box = boxes[number]
        (_, stop), (low, high), (bottom, top) = box[first], box[second], box[third]
        swept = [other for other in swept if other[0] >= start]
        for _, other_low, other_high, other_bottom, other_top, other_number in swept:
            if other_low <= high and low <= other_high and other_bottom <= top and bottom <= other_top:
                _join(parents, other_number, number)
        swept.append((stop, low, high, bottom, top, number))


# Placement: which secondary simulates which group.
#
# Theory of operation
# -------------------
# A pure function: groups and the affinities so far in, affinities out. A group that has performers is
# *settled* if any of them is on a secondary already, and *fresh* otherwise; one without performers is *loose*. A
# secondary is idle if it has no performer. Among all ways to give each group one secondary, `place` takes the one with
#
# P1. the fewest idle secondaries; of those, the one with
# P2. the fewest moved performers; of those, the one with
# P3. the fewest moved performers whose levels haven't changed (so those move that changed something); of those, the one
# P4. where the first settled group is on the secondary of the least name that is possible, then the second, and so on.
# P5. Fresh groups are dealt, one after the other, to the secondary with the fewest groups, the least name first.
# P6. Loose groups follow: each goes where performers are that are in its levels, if there are any; of those
#     secondaries, or of all, to the one that has most of its members, then the one with the fewest groups, then the
#     least name.
#
# Secondaries are ordered by name. Groups are ordered by their least level, then those without levels by name. In the
# beginning all groups are fresh, and P5 deals out first the levels, then the performers without one, in turn.
#
# No two groups have performers in one level (G1). So a level is on one secondary if groups are.
#
# How it is found, and why that is right
# --------------------------------------
# *The idle.* g groups can keep min(g, n) of n secondaries busy, and no more. P5 fills idle secondaries first, as they
# have no groups. So f fresh groups on top of settled ones that keep k secondaries busy make it min(k + f, n), and P1
# asks of s settled groups exactly that k ≥ min(s, n - f). Fresh groups cost nothing in P2 to P4. What is left is to
# assign the settled groups at the least cost, so that at least that many secondaries are busy.
#
# *The cost.* A performer that moves costs 1 by P2, and 1 by P3 unless its levels changed. With a base larger than the
# number of performers, both are digits of one number, which adds up over groups: (P2, P3) is the order of the sums. P4
# is more digits below: with n as base, the group at index i on secondary r adds r × n^(s-1-i). The sums then are
# ordered as P2, P3 and P4 ask for, and no two assignments have equal sums: there is one best.
#
# *The search.* If every settled group goes to its own best secondary, the cost is the least there is. If that keeps
# enough secondaries busy, it is the answer. That is nearly always so, and takes a time proportional to the performers.
#
# Otherwise as many secondaries as must be busy each get a group of their own, and the others stay at their best: a
# cheapest matching, where a pair costs what the group loses by it. If n secondaries are matched, each with one of the n
# groups that lose least by it, no other group can be better: one of those n is free. So only these pairs are looked at.
# NetworkX finds the cheapest flow through them. Costs are whole numbers, so it is exact; and since there is one best
# assignment, it doesn't matter how it is found.
#
# So nothing here is a heuristic: every rule is exact for any number of groups. `tests/world` compares it with all
# assignments for small worlds.
#
# Deliberately not handled: load. A secondary may have one group and another all the rest, if that is how they moved.
# The rules rank moves above balance; P5 and P1 alone spread what is new or must move anyway.


def place(
    groups: Iterable[Group],
    secondaries: Iterable[str],
    affinities: Mapping[str, str] | None = None,
    changed: Collection[str] = (),
) -> dict[str, str]:
    """Give each group a secondary, and return that of each member, by name.

    `affinities` say on which secondary performers and entities are; others are new. `changed` are the performers whose
    levels have changed since.
    """
    ordered = sorted(groups, key=_order)
    names = sorted(set(secondaries))
    ranks_of = {name: rank for rank, name in enumerate(names)}
    before = {member: ranks_of[secondary] for member, secondary in (affinities or {}).items()}
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
    return dict(sorted((member, names[hosts[group.name]]) for group in ordered for member in group.members()))


def _order(group: Group) -> tuple[bool, str, str]:
    return (not group.levels, group.levels[0] if group.levels else "", group.name)


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
    busy = min(len(stakes), busy_wanted)
    return ranks if len(set(ranks)) >= busy else _cheapest(stakes, count, busy)


def _cheapest(stakes: list[list[int]], count: int, busy: int) -> list[int]:
    """Return the ranks that cost least, of those that keep so many secondaries busy."""
    from networkx import DiGraph, min_cost_flow  # Hardly ever needed, and slow to load.

    *digits, unit = accumulate([1] + [count] * len(stakes), mul)  # Those of P4, and above them, P2 and P3.
    ranks = [each.index(max(each)) for each in stakes]
    graph = DiGraph()
    graph.add_node("start", demand=-busy)
    graph.add_node("end", demand=busy)
    for rank in range(count):
        lost = [
            ((saved[best] - saved[rank]) * unit + (rank - best) * digit, index)
            for index, (saved, best, digit) in enumerate(zip(stakes, ranks, reversed(digits), strict=True))
        ]
        graph.add_edge("start", ("secondary", rank), capacity=1)
        for cost, index in nsmallest(count, lost):
            graph.add_edge(("secondary", rank), ("group", index), capacity=1, weight=cost)
            graph.add_edge(("group", index), "end", capacity=1)
    flow = min_cost_flow(graph)
    for rank in range(count):
        for (_, index), used in flow["secondary", rank].items():
            if used:
                ranks[index] = rank
    return ranks


def _beside(group: Group, homes: Mapping[str, int], before: Mapping[str, int], loads: list[int]) -> int:
    """Return where a loose group goes (P6)."""
    votes = [0] * len(loads)
    for entity in group.entities:
        if (rank := before.get(entity)) is not None:
            votes[rank] += 1
    near = [homes[level] for level in group.levels if level in homes] or range(len(loads))
    return min(near, key=lambda rank: (-votes[rank], loads[rank], rank))
