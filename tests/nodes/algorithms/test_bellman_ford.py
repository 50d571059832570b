"""Bellman–Ford with routing tables: against networkx, and the clique of three with its trace."""

from __future__ import annotations

import re

import networkx as nx
import pytest

from tests.nodes.trying import tried, violated
from worldline.nodes import Scheduler, Topology
from worldline.nodes.algorithms.bellman_ford import BellmanFord, Table, distances, model

NEVER_TOO_SHORT, SHORTEST, NEARER = model.properties


def graph_of(run: Scheduler) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(run.num_nodes))
    graph.add_weighted_edges_from((a, b, weight) for (a, b), weight in run.topology.weights.items())
    return graph


# -- What it computes


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "topology", ["random:12,degree=4,connected,weights=1-9", "random:12,p=0.12,weights=0-5", "grid:3x4"]
)
def test_all_distances_are_those_of_networkx(topology: str, seed: int) -> None:
    run = tried(model, seed, topology)
    expected = dict(nx.all_pairs_dijkstra_path_length(graph_of(run)))
    for node in run.nodes:
        assert {goal: each for goal, (each, _) in enumerate(node.routing) if each is not None} == expected[node.id]


def test_its_oracle_agrees_with_networkx() -> None:
    run = tried(model, 5, "random:25,p=0.07,weights=0-9")
    expected = dict(nx.all_pairs_dijkstra_path_length(graph_of(run)))
    assert not run.topology.is_connected
    for source in range(25):
        assert distances(run, source) == [expected[source].get(goal) for goal in range(25)]


def test_what_can_not_be_reached_stays_out_of_reach() -> None:
    run = tried(model, 0, Topology.of_edges(5, [(0, 1), (2, 3)]))
    assert not run.schedule()
    assert run.node(0).routing == [(0, None), (1, 0), (None, None), (None, None), (None, None)]
    assert run.node(4).routing == [(None, None)] * 4 + [(0, None)]


def test_a_long_way_is_given_up_for_a_short_one_that_is_slower() -> None:
    run = Scheduler(
        3,
        [(0, 1), (0, 2), (1, 2)],
        BellmanFord,
        link="1ms",
        links={(0, 1): "500ms"},
        properties=(NEVER_TOO_SHORT,),
    )
    run.start_all_nodes()
    run.run("100ms")
    assert run.node(1).routing[0] == (2, 1)
    run.run()
    assert run.node(1).routing[0] == (1, 0)


# -- The clique of three


TABLE = r"\[(\d: dist (\d|inf), route (\d|\*)(; )?){3}\]"
SHAPES = [
    r"\d <- \*: Start",
    rf"\d -> \d: \[routing = {TABLE}\]",
    rf"\d <- \d: \[routing = {TABLE}\]",
    rf"\d: routing table updated -> {TABLE}",
]


def test_the_trace_has_the_topology_first_and_then_lines_of_four_shapes() -> None:
    run = Scheduler(3, [(0, 1), (0, 2), (1, 2)], BellmanFord, trace=True)
    run.start_all_nodes()
    while run.schedule():
        pass
    lines = run.text().splitlines()
    assert lines[:5] == ["Topology:", "0 -> 0-1, 1-2", "1 -> 0-0, 1-2", "2 -> 0-0, 1-1", "---"]
    start = lines.index("2 <- *: Start")
    assert lines[start + 1 : start + 3] == [
        "2 -> 0: [routing = [0: dist inf, route *; 1: dist inf, route *; 2: dist 0, route *]]",
        "2 -> 1: [routing = [0: dist inf, route *; 1: dist inf, route *; 2: dist 0, route *]]",
    ]
    for shape in SHAPES:
        assert any(re.fullmatch(shape, line) for line in lines[5:]), shape
    for line in lines[5:]:
        assert any(re.fullmatch(shape, line) for shape in SHAPES), line
    final = [line for line in lines if line.startswith("1: routing table updated -> ")][-1]
    assert final == "1: routing table updated -> [0: dist 1, route 0; 1: dist 0, route *; 2: dist 1, route 1]"


# -- Its properties can fail


class IgnoresWeights(BellmanFord):
    """Takes every link for one of length 1."""

    def weight(self, link: int) -> int:
        return 1


class KeepsItToItself(BellmanFord):
    """Learns, and tells only its very first table."""

    def broadcast(self, message: object, *, but: int | None = None) -> None:
        if message == Table(tuple((0 if each == self.id else None, None) for each in range(self.num_nodes))):
            super().broadcast(message, but=but)


class TakesTheWrongLink(BellmanFord):
    """Knows how far it is, not where."""

    def _learn(self, table: Table, link: int) -> bool:
        learned = super()._learn(table, link)
        self.routing = [(far, None if way is None else 0) for far, way in self.routing]
        return learned


def test_distances_that_are_too_short_are_noticed_at_once() -> None:
    reason = violated(model, IgnoresWeights, NEVER_TOO_SHORT, topology="line:3,weights=4-9")
    assert re.search(r"node \d at .*is \d+ from \d", reason)


def test_distances_that_are_not_the_shortest_are_noticed_at_the_end() -> None:
    assert "the distances from 0 are [0, 1, 2, 3]" in violated(model, KeepsItToItself, SHORTEST, topology="line:4")


def test_routes_that_lead_elsewhere_are_noticed() -> None:
    assert "1 goes to 2 over 0" in violated(model, TakesTheWrongLink, NEARER, topology="line:3")
