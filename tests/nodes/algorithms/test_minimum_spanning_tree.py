from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from msgspec.structs import replace

from tests.nodes.trying import noticed, tried, tried_all
from worldline.model.errors import ModelError
from worldline.nodes.algorithms.minimum_spanning_tree import (
    NO_LINK,
    Accept,
    Hello,
    Initiate,
    MinimumSpanningTree,
    branches,
    kruskal,
    model,
)
from worldline.nodes.node import Event, Protocol
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.shapes import parse_edges
from worldline.nodes.topology import Topology
from worldline.nodes.trial import Trial

SHAPES = [
    "random:12,p=0.35,connected,weights=1-1000,distinct",
    "random:14,p=0.12,weights=1-1000,distinct",  # Several components.
    "grid:3x4,weights=1-4,shuffled",  # Ties.
    "clique:7",  # Nothing but ties.
    "ring:9,weights=1-50",
]


def found(run: Scheduler) -> list[tuple[int, int]]:
    return sorted({edge for node in range(run.num_nodes) for edge in branches(run, node)})


def by_networkx(topology: Topology) -> Any:
    graph = nx.Graph()
    graph.add_nodes_from(range(topology.num_nodes))
    graph.add_weighted_edges_from((a, b, topology.weight(a, b)) for a, b in topology.edges)
    return nx.minimum_spanning_tree(graph, algorithm="prim")


@pytest.mark.parametrize("topology", SHAPES)
def test_it_finds_what_networkx_finds(topology: str) -> None:
    for seed in range(8):
        run = tried(model, seed, topology)
        tree = by_networkx(run.topology)
        weight = sum(run.topology.weight(*edge) for edge in found(run))
        assert weight == tree.size(weight="weight")
        assert len(found(run)) == tree.number_of_edges()
        if "distinct" in topology:
            assert found(run) == sorted((min(edge), max(edge)) for edge in tree.edges)


@pytest.mark.parametrize("topology", SHAPES)
def test_the_oracle_is_right(topology: str) -> None:
    for seed in range(8):
        graph = Trial(algorithm=model, topology=topology, seed=seed).graph()
        tree = nx.Graph(kruskal(graph))
        assert nx.is_forest(tree)
        assert sum(graph.weight(*edge) for edge in tree.edges) == by_networkx(graph).size(weight="weight")


def test_ties_are_broken_by_ids() -> None:
    run = tried(model, 0, "clique:5")
    assert found(run) == [(0, 1), (0, 2), (0, 3), (0, 4)]


@pytest.mark.parametrize(("topology", "complete"), [("line:1", [0]), ("line:2", [0, 1])])
def test_the_smallest_networks(topology: str, complete: list[int]) -> None:
    run = tried(model, 0, topology)
    assert [node.id for node in run.nodes if node.is_complete] == complete


def test_every_component_gets_its_tree() -> None:
    topology = Topology.of_edges(6, [(0, 1, 5), (1, 2, 3), (0, 2, 4), (3, 4, 9)])
    run = Trial(algorithm=model, topology=topology).scheduler()
    run.run()
    assert found(run) == [(0, 2), (1, 2), (3, 4)]
    assert [node.id for node in run.nodes if node.is_complete][-3:] == [3, 4, 5]


def test_a_link_that_nobody_needs_is_rejected_at_both_ends() -> None:
    topology = parse_edges("0-1=1,1-2=2,0-2=3")
    run = Trial(algorithm=model, topology=topology).scheduler()
    run.run()
    assert [node.roles for node in run.nodes] == [["branch", "rejected"], ["branch", "branch"], ["branch", "rejected"]]


def test_levels_stay_below_the_logarithm() -> None:
    for seed in range(5):
        run = tried(model, seed, "random:32,p=0.15,connected,weights=1-10000,distinct")
        assert 1 <= max(node.level for node in run.nodes) <= 5


def test_it_needs_links_in_order() -> None:
    with pytest.raises(ModelError):
        tried_all(replace(model, fifo=False), range(10))


# -- Every property can fail


class TakesAnyLink(MinimumSpanningTree):
    """Begins with its first link, whatever that weighs."""

    def _meet(self, neighbor: int, link: int) -> None:
        super()._meet(neighbor, link)
        self.weights[link] = (link, *self.weights[link][1:])


class AnswersTooEarly(MinimumSpanningTree):
    """Doesn't wait until its level is as high as that of the one who asks."""

    def _can_act_on(self, message: Any, link: int) -> bool:
        return super()._can_act_on(message, link) or (type(message).__name__ == "Test" and self.is_awake)


class AbsorbsInSecret(MinimumSpanningTree):
    """Doesn't note over which link it has absorbed a fragment."""

    def _connect(self, level: int, link: int) -> None:
        super()._connect(level, link)
        if level < self.level:
            self.roles[link] = "rejected"


class NeverKnowsWhenToStop(MinimumSpanningTree):
    def _take_report(self, best: Any, link: int) -> None:
        if (best, self.best) != (NO_LINK, NO_LINK) or link != self.toward_core:
            super()._take_report(best, link)


class ThinksItIsAlone(MinimumSpanningTree):
    """Takes every search that finds nothing on its own side for the end."""

    def _report_if_known(self) -> None:
        super()._report_if_known()
        self.is_complete = self.is_complete or (not self.is_searching and self.best == NO_LINK)


class Chatty(MinimumSpanningTree):
    """Says hello to everybody whenever it learns of a fragment."""

    def execute(self, event: Event) -> None:
        match event:
            case Protocol(Hello()) if self.is_awake:
                return
            case Protocol(Initiate() | Accept()):
                for _ in range(9):
                    self.broadcast(Hello(self.id))
        super().execute(event)


@pytest.mark.parametrize(
    ("mutant", "text", "complaint"),
    [
        (TakesAnyLink, "every branch is", "for a part of the tree"),
        (AnswersTooEarly, "every branch is", "for a part of the tree"),
        (AbsorbsInSecret, "the branches are", "both ends should know"),
        (NeverKnowsWhenToStop, "complete", r": \[\] know"),
        (ThinksItIsAlone, "complete", "know that their tree is complete"),
        (Chatty, "messages", "should take at most"),
    ],
)
def test_properties_catch_what_is_wrong(mutant: type[MinimumSpanningTree], text: str, complaint: str) -> None:
    noticed(model, mutant, text, complaint, range(10))
