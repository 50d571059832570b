"""Which worker gets which entity. Where entities are changes how fast a run is, never what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from worldline.kernel.topology import KernelNetwork
from worldline.model.errors import ConfigurationError, shown

Placement = Any
"""A name, or a dict of names to workers; other rooms have placements of their own."""

ROUND_ROBIN = "round robin"
BY_LINKS = "links"


def place(placement: Placement | None, names: Sequence[str], topology: KernelNetwork, count: int) -> list[int]:
    """Return for each name the number of its worker. By itself, declared links decide if there are any."""
    if placement is None:
        placement = BY_LINKS if topology.declared() else ROUND_ROBIN
    if isinstance(placement, Mapping):
        return _given(placement, names, count)
    if placement == ROUND_ROBIN:
        return [number % count for number in range(len(names))]
    if placement == BY_LINKS:
        return _by_links(names, topology, count)
    raise ConfigurationError(
        f"{shown(placement)} isn't a placement",
        advice=f"use {ROUND_ROBIN!r}, {BY_LINKS!r} or a dict of names to workers",
    )


def _given(placement: Mapping[str, int], names: Sequence[str], count: int) -> list[int]:
    for name, worker in placement.items():
        if type(worker) is not int or not 0 <= worker < count:
            raise ConfigurationError(
                f"{name} is placed on worker {shown(worker)}", advice=f"there are {count}, from 0 to {count - 1}"
            )
    missing = [name for name in names if name not in placement]
    if missing:
        raise ConfigurationError(f"the placement doesn't say where {missing[0]} is", advice="name every entity")
    known = frozenset(names)
    unknown = [name for name in placement if name not in known]
    if unknown:
        raise ConfigurationError(f"the placement names {shown(unknown[0])}, and there is no such entity")
    return [placement[name] for name in names]


def _by_links(names: Sequence[str], topology: KernelNetwork, count: int) -> list[int]:
    return grouped(names, [(topology.least_between(*pair) or 0, *pair) for pair in topology.declared()], count)


def grouped(names: Sequence[str], links: Iterable[tuple[float, str, str]], count: int) -> list[int]:
    """Keep together what is close: the lengths of the links between workers are what lets them go ahead.

    The shortest links are joined first (as in Kruskal's algorithm), as long as no group grows beyond a worker's share;
    the groups are then dealt out, the largest first, each to the worker that has least. So the links that are cut tend
    to be the longest.
    """
    share = -(-len(names) // count)
    place_of = {name: number for number, name in enumerate(names)}
    group = list(range(len(names)))
    size = [1] * len(names)

    def leader(member: int) -> int:
        while group[member] != member:
            group[member] = group[group[member]]
            member = group[member]
        return member

    for _, source, goal in sorted(links):
        first, second = leader(place_of[source]), leader(place_of[goal])
        if first != second and size[first] + size[second] <= share:
            group[max(first, second)] = min(first, second)
            size[min(first, second)] += size[max(first, second)]
    load = [0] * count
    worker_of: dict[int, int] = {}
    leaders = [member for member in range(len(names)) if leader(member) == member]
    for head in sorted(leaders, key=lambda head: (-size[head], head)):
        worker = load.index(min(load))
        worker_of[head] = worker
        load[worker] += size[head]
    return [worker_of[leader(member)] for member in range(len(names))]
