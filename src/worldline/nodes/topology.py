"""The topology: who has a link to whom, and under which local number each knows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from worldline.model.errors import ConfigurationError, shown

Edge = tuple[int, int]
NODES_MAX = 10_000_000
EDGES_MAX = 50_000_000


class Topology:
    """Nodes 0 to n - 1 and the links between them.

    `neighbors[a]` are the nodes that a has links to, in the order of its local link ids. Weights are whole numbers, of
    edges (a, b) with a < b. `positions` are where nodes stand in a picture, if the shape says so.
    """

    def __init__(
        self,
        neighbors: Sequence[Sequence[int]],
        *,
        weights: Mapping[Edge, int] | None = None,
        positions: Sequence[tuple[float, float]] | None = None,
        name: str = "",
    ) -> None:
        self.neighbors = tuple(tuple(row) for row in neighbors)
        self.name = name
        self.positions = None if positions is None else tuple(positions)
        self._check()
        self.weights = dict.fromkeys(self.edges, 1)
        for (a, b), weight in (weights or {}).items():
            self._set_weight(a, b, weight)

    def _repr_svg_(self) -> str:
        """Return what a notebook shows. It's drawn by a room above this one, which is found when it is asked for."""
        return str(import_module("worldline.pictures.nodes").topology_svg(self))

    @classmethod
    def of_edges(
        cls,
        num_nodes: int,
        edges: Iterable[Sequence[int]],
        *,
        weights: Mapping[Edge, int] | None = None,
        positions: Sequence[tuple[float, float]] | None = None,
        name: str = "",
    ) -> Topology:
        """Make one from pairs; a node's links are numbered in the order in which the pairs come.

        A third number of a pair is its weight.
        """
        _check_number_of_nodes(num_nodes)
        neighbors: list[list[int]] = [[] for _ in range(num_nodes)]
        given = dict(weights or {})
        seen: dict[Edge, None] = {}
        for edge in edges:
            a, b = _ends(edge, num_nodes)
            if (min(a, b), max(a, b)) in seen:
                raise ConfigurationError(
                    f"there are two edges between {a} and {b}", advice="every edge is listed once, and goes both ways"
                )
            seen[min(a, b), max(a, b)] = None
            neighbors[a].append(b)
            neighbors[b].append(a)
            if len(edge) == 3:
                given[a, b] = edge[2]
        return cls(neighbors, weights=given, positions=positions, name=name)

    @property
    def num_nodes(self) -> int:
        return len(self.neighbors)

    @property
    def edges(self) -> list[Edge]:
        """The pairs (a, b) with a < b, sorted."""
        return sorted((a, b) for a, row in enumerate(self.neighbors) for b in row if a < b)

    def weight(self, a: int, b: int) -> int:
        return self.weights[min(a, b), max(a, b)]

    def components(self) -> list[list[int]]:
        """Return the groups of nodes that can reach each other, each sorted, in the order of their first."""
        found: list[list[int]] = []
        seen = [False] * self.num_nodes
        for first in range(self.num_nodes):
            if seen[first]:
                continue
            seen[first] = True
            group = [first]
            for node in group:  # Grows while it is walked.
                for neighbor in self.neighbors[node]:
                    if not seen[neighbor]:
                        seen[neighbor] = True
                        group.append(neighbor)
            found.append(sorted(group))
        return found

    @cached_property
    def _component_of(self) -> dict[int, list[int]]:
        return {node: group for group in self.components() for node in group}

    def component(self, node: int) -> list[int]:
        """Return the nodes that can be reached from one, itself too, sorted."""
        return self._component_of[node]

    def edges_within(self, component: Sequence[int]) -> int:
        """Count the edges of a component."""
        return sum(len(self.neighbors[node]) for node in component) // 2

    @property
    def is_connected(self) -> bool:
        return len(self.components()) <= 1

    def text(self) -> str:
        """Write for each node its local links and where they lead: ``0 -> 0-1, 1-2``."""
        lines = ["Topology:"]
        for node, row in enumerate(self.neighbors):
            links = ", ".join(f"{link}-{neighbor}" for link, neighbor in enumerate(row))
            lines.append(f"{node} -> {links}" if links else f"{node} ->")
        return "\n".join((*lines, "---"))

    def __repr__(self) -> str:
        return f"<Topology {self.name or 'of'} {self.num_nodes} nodes, {len(self.weights)} edges>"

    def _check(self) -> None:
        _check_number_of_nodes(self.num_nodes)
        for node, row in enumerate(self.neighbors):
            for neighbor in row:
                _ends((node, neighbor), self.num_nodes)
        rows = [frozenset(row) for row in self.neighbors]
        for node, row in enumerate(self.neighbors):
            for neighbor in row:
                if node not in rows[neighbor]:
                    raise ConfigurationError(
                        f"{node} has a link to {neighbor}, which has none to {node}", advice="links go both ways"
                    )
            if len(rows[node]) < len(row):
                twice = next(each for place, each in enumerate(row) if each in row[:place])
                raise ConfigurationError(f"{node} has two links to {twice}", advice="list each neighbor once")
        if self.positions is not None and len(self.positions) != self.num_nodes:
            raise ConfigurationError(f"there are {len(self.positions)} positions for {self.num_nodes} nodes")

    def _set_weight(self, a: int, b: int, weight: object) -> None:
        edge = (min(a, b), max(a, b))
        if edge not in self.weights:
            raise ConfigurationError(f"{a}-{b} has a weight, and there is no such edge")
        if type(weight) is not int or weight < 0:
            raise ConfigurationError(
                f"{a}-{b}: {shown(weight)} isn't a weight", advice="weights are whole numbers, at least 0"
            )
        self.weights[edge] = weight


def of_adjacency(adjacency: Mapping[int, Iterable[int]] | Sequence[Sequence[int]]) -> Topology:
    """Make a topology from the neighbors of each node, whose order is that of the local links."""
    rows: Any = adjacency
    if isinstance(adjacency, Mapping):
        if any(node not in adjacency for node in range(len(adjacency))):
            raise ConfigurationError(
                "the adjacency list doesn't name the nodes 0 to n - 1", advice="number them from 0, without gaps"
            )
        rows = [adjacency[node] for node in range(len(adjacency))]
    if isinstance(rows, str | bytes) or not all(_is_row(row) for row in rows):
        raise ConfigurationError(
            f"{shown(adjacency)} isn't an adjacency list",
            advice="write for each node its neighbors: [[1, 2], [0], [0]]",
        )
    return Topology([list(row) for row in rows])


def _is_row(row: object) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, str | bytes | Mapping)


def of_graph(graph: Any) -> Topology:
    """Make a topology from a networkx graph: its nodes in their order become 0 to n - 1."""
    if graph.is_directed() or graph.is_multigraph():
        raise ConfigurationError(
            "the graph is directed or has parallel edges", advice="links go both ways: use networkx.Graph(graph)"
        )
    numbers = {node: number for number, node in enumerate(graph.nodes)}
    edges = [(numbers[a], numbers[b]) for a, b in graph.edges]
    weights = {
        (numbers[a], numbers[b]): _whole(facts["weight"]) for a, b, facts in graph.edges(data=True) if "weight" in facts
    }
    places = [_place(facts.get("pos")) for _, facts in graph.nodes(data=True)]
    positions = [place for place in places if place is not None]
    return Topology.of_edges(
        len(numbers),
        edges,
        weights=weights,
        positions=positions if len(positions) == len(places) else None,
        name=graph.name or "",
    )


def _place(given: Any) -> tuple[float, float] | None:
    """Return where a node stands, if that is what was given: two finite numbers, in whatever holds them."""
    try:
        x, y = (float(number) for number in given)
    except (TypeError, ValueError):
        return None
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None


def _whole(weight: Any) -> Any:
    """Return a weight that a file gives as 3.0 as the whole number that it is; anything else is refused later."""
    return int(weight) if isinstance(weight, float) and weight.is_integer() else weight


def _check_number_of_nodes(number: object) -> None:
    if type(number) is not int or not 1 <= number <= NODES_MAX:
        raise ConfigurationError(f"{shown(number)} isn't a number of nodes", advice=f"use 1 to {NODES_MAX:,}")


def _ends(edge: Sequence[int], num_nodes: int) -> Edge:
    if not isinstance(edge, tuple | list) or len(edge) not in (2, 3):
        raise ConfigurationError(f"{shown(edge)} isn't an edge", advice="write (a, b), or (a, b, weight)")
    a, b = edge[0], edge[1]
    for end in (a, b):
        if type(end) is not int or not 0 <= end < num_nodes:
            raise ConfigurationError(
                f"the edge {shown(a)}-{shown(b)} names {shown(end)}",
                advice=f"the nodes are 0 to {num_nodes - 1}" if num_nodes > 1 else "there is only the node 0",
            )
    if a == b:
        raise ConfigurationError(f"the edge {a}-{a} leads from a node to itself", advice="a node needs no such link")
    return a, b
