"""Bellman–Ford with ids: against networkx and its sister, how many messages it takes, and nodes that start late."""

from __future__ import annotations

import re

import networkx as nx
import pytest

from tests.nodes.chatter import ran
from tests.nodes.trying import tried, violated
from worldline.nodes import Event, Protocol, Scheduler, Topology
from worldline.nodes.algorithms.bellman_ford import never_too_short
from worldline.nodes.algorithms.bellman_ford_ids import BellmanFordIds, model

SHORTEST, NEARER = model.properties


def expected_of(topology: Topology) -> list[list[int | None]]:
    graph = nx.Graph()
    graph.add_nodes_from(range(topology.num_nodes))
    graph.add_weighted_edges_from((a, b, weight) for (a, b), weight in topology.weights.items())
    found = dict(nx.all_pairs_dijkstra_path_length(graph))
    return [[found[a].get(b) for b in range(topology.num_nodes)] for a in range(topology.num_nodes)]


# -- What it computes


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("topology", [None, "random:14,p=0.1,weights=0-5", "scale-free:15,m=2,weights=1-4"])
def test_all_distances_are_those_of_networkx(topology: str | None, seed: int) -> None:
    run = tried(model, seed, topology)
    assert not run.schedule()
    assert [[far for far, _ in node.routing] for node in run.nodes] == expected_of(run.topology)


@pytest.mark.parametrize("topology", ["clique:6", "grid:4x4", "tree:11", "hypercube:4"])
def test_if_every_link_is_as_fast_each_id_takes_as_many_messages_as_flooding(topology: str) -> None:
    run = Scheduler.over(topology, BellmanFordIds, link="1ms")
    run.start_all_nodes()
    n, m = run.num_nodes, len(run.topology.edges)
    assert run.run().events == n + n * (2 * m - (n - 1))


def test_nobody_sends_an_id_back_to_where_it_came_from() -> None:
    run = ran("line:2", BellmanFordIds, trace=True)
    assert [str(each) for each in run.records if each.kind == "sent"] == ["0 -> 1: (0, 0)", "1 -> 0: (1, 0)"]


def test_nodes_that_start_late_pass_on_what_they_hear_before() -> None:
    run = Scheduler.over("line:5,weights=1-9", BellmanFordIds, seed=1, properties=model.properties)
    for node in (0, 4):
        run.start(node)
    for node in (1, 2, 3):
        run.start(node, at="30s")
    run.run()
    assert [[far for far, _ in node.routing] for node in run.nodes] == expected_of(run.topology)


def test_a_link_that_is_removed_is_not_used_any_more() -> None:
    run = ran("ring:5", BellmanFordIds, link="1s", faults=["1500ms remove 0 1"])
    assert run.node(0).distances[1] == 1
    assert run.node(0).links == [0]


# -- Its properties can fail


class IgnoresWeights(BellmanFordIds):
    """Takes every link for one of length 1."""

    def weight(self, link: int) -> int:
        return 1


class BelievesTheFirst(BellmanFordIds):
    """Takes the first distance that it hears of an id for the shortest one."""

    def execute(self, event: Event) -> None:
        if not isinstance(event, Protocol) or event.message[0] not in self.distances:
            super().execute(event)


class TakesTheWrongLink(BellmanFordIds):
    """Knows how far it is, not where."""

    def execute(self, event: Event) -> None:
        super().execute(event)
        self.links_to = dict.fromkeys(self.links_to, 0)


def test_distances_that_are_too_short_are_noticed_at_once() -> None:
    assert re.search(
        r"node \d at .*is \d+ from \d", violated(model, IgnoresWeights, never_too_short, topology="line:3,weights=4-9")
    )


def test_distances_that_are_not_the_shortest_are_noticed_at_the_end() -> None:
    assert "the distances from" in violated(model, BelievesTheFirst, SHORTEST, topology="clique:6")


def test_routes_that_lead_elsewhere_are_noticed() -> None:
    assert "1 goes to 2 over 0" in violated(model, TakesTheWrongLink, NEARER, topology="line:3")
