"""Bellman–Ford with routing tables.

Every node keeps a routing table: for each node of the network the shortest distance that it knows of, and the local
link by which messages go there. In the beginning it knows the way to itself only. It tells its table to all of its
neighbors. A node that gets a neighbor's table looks whether any way over that neighbor is shorter than the one it
knows; if one is, it changes its table and tells it to all of its neighbors.

Distances only ever shrink, and none is shorter than the true one, so it comes to an end. Then no neighbor knows a
shorter way, and that's what shortest paths are. Messages may overtake each other: an old table only offers ways that
exist but are long. What must not happen is that one gets lost, or that a link vanishes: then tables are wrong for ever.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from msgspec import Struct

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.node import Event, Node, Protocol, Start
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end

Route = tuple[int | None, int | None]
"""Distance and local link; no distance: no way is known; no link: it is the node itself."""


class Table(Struct, frozen=True):
    """A node's routing table, by global id."""

    routing: tuple[Route, ...]

    def __str__(self) -> str:
        return f"[routing = {text_of(self.routing)}]"


class BellmanFord(Node):
    """Shortest paths: neighbors tell each other their routing tables until nothing gets better."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.routing: list[Route] = [(None, None)] * self.num_nodes
        self.routing[self.id] = (0, None)

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                self.broadcast(Table(tuple(self.routing)))
            case Protocol(message, link):
                if self._learn(message, link):
                    self.log(f"routing table updated -> {text_of(self.routing)}")
                    self.broadcast(Table(tuple(self.routing)))

    def route(self, root: int) -> tuple[int | None, int | None]:
        distance, link = self.routing[root]
        return link, distance

    def _learn(self, table: Table, link: int) -> bool:
        """Take over what is shorter over this neighbor; return whether anything is."""
        weight = self.weight(link)
        learned = False
        for goal, (distance, _) in enumerate(table.routing):
            known = self.routing[goal][0]
            if distance is not None and (known is None or distance + weight < known):
                self.routing[goal] = (distance + weight, link)
                learned = True
        return learned


def text_of(routing: list[Route] | tuple[Route, ...]) -> str:
    """Write a routing table; ``inf`` is a distance that isn't known, ``*`` no link."""
    routes = (
        f"{goal}: dist {'inf' if distance is None else distance}, route {'*' if link is None else link}"
        for goal, (distance, link) in enumerate(routing)
    )
    return f"[{'; '.join(routes)}]"


def distances(run: Scheduler, source: int) -> list[int | None]:
    """Compute all distances from one node, from the topology alone, by Dijkstra's algorithm."""
    found: list[int | None] = [None] * run.num_nodes
    reached = [(0, source)]
    while reached:
        distance, node = heappop(reached)
        if found[node] is None:
            found[node] = distance
            for neighbor in run.topology.neighbors[node]:
                if found[neighbor] is None:
                    heappush(reached, (distance + run.topology.weight(node, neighbor), neighbor))
    return found


@always("no distance is shorter than the true one")
def never_too_short(run: Scheduler, known: dict[int, list[int | None]]) -> bool:
    for node in run.acted:
        if node.id not in known:
            known[node.id] = distances(run, node.id)
        for goal, (distance, _) in enumerate(node.routing):
            true = known[node.id][goal]
            assert distance is None or (true is not None and distance >= true), f"{node.id} is {true} from {goal}"
    return True


@at_end("every table has the shortest distances")
def shortest(run: Scheduler) -> bool:
    for node in run.nodes:
        true = distances(run, node.id)
        assert [distance for distance, _ in node.routing] == true, f"the distances from {node.id} are {true}"
    return True


@at_end("every route leads one step nearer")
def nearer(run: Scheduler) -> bool:
    for node in run.nodes:
        for goal, (distance, link) in enumerate(node.routing):
            if link is not None:
                neighbor = run.topology.neighbors[node.id][link]
                rest = run.node(neighbor).routing[goal][0]
                assert rest + run.topology.weight(node.id, neighbor) == distance, (
                    f"{node.id} goes to {goal} over {link}"
                )
    return True


model = Algorithm(
    name="bellman-ford",
    node=BellmanFord,
    topology="clique:3",
    properties=(never_too_short, shortest, nearer),
    least={"nodes": 1},
)
