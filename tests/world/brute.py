"""Placement by other means: by trying everything, one rule after the other, and by somebody else's flow solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import product
from typing import Any

import networkx as nx

from worldline.world.groups import Group

Assignment = tuple[str, ...]
"""The secondary of each group, in the order of the groups."""


def in_order(groups: Collection[Group]) -> list[Group]:
    """Those with levels by their least level, then the others by name."""
    return sorted((group for group in groups if group.levels), key=lambda group: group.levels[0]) + sorted(
        (group for group in groups if not group.levels), key=lambda group: group.name
    )


def moved(groups: list[Group], assignment: Assignment, affinities: Mapping[str, str]) -> Iterator[str]:
    for group, secondary in zip(groups, assignment, strict=True):
        yield from (name for name in group.performers if affinities.get(name, secondary) != secondary)


def least(assignments: list[Assignment], key: Callable[[Assignment], Any]) -> list[Assignment]:
    keys = [key(assignment) for assignment in assignments]
    return [assignment for assignment, each in zip(assignments, keys, strict=True) if each == min(keys)]


def try_all(
    groups: Collection[Group], secondaries: list[str], affinities: Mapping[str, str], changed: Collection[str]
) -> dict[str, str]:
    """Return the secondary of each group; all groups have performers."""
    ordered = in_order(groups)
    left = [tuple(each) for each in product(sorted(secondaries), repeat=len(ordered))]
    left = least(left, lambda each: -len(set(each)))
    left = least(left, lambda each: len(list(moved(ordered, each, affinities))))
    left = least(left, lambda each: sum(name not in changed for name in moved(ordered, each, affinities)))
    settled = [index for index, group in enumerate(ordered) if any(name in affinities for name in group.performers)]
    for index in settled:
        left = least(left, lambda each, index=index: each[index])
    loads = Counter(left[0][index] for index in settled)
    for index in range(len(ordered)):
        if index not in settled:
            left = least(left, lambda each, index=index: (loads[each[index]], each[index]))
            loads[left[0][index]] += 1
    assert len(left) == 1
    return {group.name: secondary for group, secondary in zip(ordered, left[0], strict=True)}


def fewest_moves(groups: Collection[Group], secondaries: list[str], affinities: Mapping[str, str]) -> int:
    """Return how many performers have to move if as few secondaries as possible are idle."""
    busy = min(len(groups), len(secondaries))
    graph = nx.DiGraph()
    graph.add_node("busy", demand=busy)
    graph.add_node("rest", demand=len(groups) - busy)
    for group in groups:
        graph.add_node(group.name, demand=-1)
        for secondary in secondaries:
            cost = sum(affinities.get(name, secondary) != secondary for name in group.performers)
            graph.add_edge(group.name, secondary, capacity=1, weight=cost)
    for secondary in secondaries:
        graph.add_edge(secondary, "busy", capacity=1)
        graph.add_edge(secondary, "rest")
    return int(nx.min_cost_flow_cost(graph))
