"""Topologies: what can be one, under which numbers neighbors know each other, and what is refused."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worldline.model.errors import ConfigurationError
from worldline.nodes.shapes import as_topology
from worldline.nodes.topology import NODES_MAX, Topology, of_adjacency, of_graph

# -- Local links


def test_links_are_numbered_in_the_order_of_the_edges() -> None:
    topology = Topology.of_edges(4, [(2, 0), (0, 1), (3, 0), (1, 3)])
    assert topology.neighbors == ((2, 1, 3), (0, 3), (0,), (0, 1))
    assert topology.edges == [(0, 1), (0, 2), (0, 3), (1, 3)]
    assert topology.num_nodes == 4


def test_the_printout_is_that_of_the_clique_of_three() -> None:
    lines = Topology.of_edges(3, [(0, 1), (0, 2), (1, 2)]).text().splitlines()
    assert lines == ["Topology:", "0 -> 0-1, 1-2", "1 -> 0-0, 1-2", "2 -> 0-0, 1-1", "---"]


def test_a_node_without_links_has_a_line_too() -> None:
    assert Topology.of_edges(2, []).text().splitlines()[1:3] == ["0 ->", "1 ->"]


@settings(max_examples=25)
@given(st.integers(1, 8), st.data())
def test_local_links_lead_there_and_back(nodes: int, data: st.DataObject) -> None:
    pairs = [(a, b) for a in range(nodes) for b in range(a)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    topology = Topology.of_edges(nodes, edges)
    assert topology.edges == sorted((b, a) for a, b in edges)
    for node, row in enumerate(topology.neighbors):
        assert list(row) == [a + b - node for a, b in edges if node in (a, b)]
    graph = nx.empty_graph(nodes)
    graph.add_edges_from(edges)
    assert sorted(map(sorted, nx.connected_components(graph))) == sorted(topology.components())
    assert topology.is_connected == nx.is_connected(graph)
    assert as_topology(graph).edges == topology.edges


def test_components_come_in_the_order_of_their_first() -> None:
    assert Topology.of_edges(6, [(5, 0), (3, 1)]).components() == [[0, 5], [1, 3], [2], [4]]


# -- What isn't a topology

BAD_EDGES: list[tuple[Any, Any, str]] = [
    (3, [(0, 0)], "itself"),
    (3, [(0, 1), (0, 1)], "two edges between 0 and 1"),
    (3, [(0, 1), (1, 0)], "two edges between 1 and 0"),
    (3, [(0, 3)], "the nodes are 0 to 2"),
    (3, [(-1, 0)], "names -1"),
    (1, [(0, 1)], "only the node 0"),
    (3, [(0, 1.0)], r"names 1\.0"),
    (3, [(0, True)], "names True"),
    (3, [(0, "1")], "names '1'"),
    (3, [(0, 10**5000)], "a number of"),
    (3, [(0,)], "isn't an edge"),
    (3, [(0, 1, 2, 3)], "isn't an edge"),
    (3, ["01"], "isn't an edge"),
    (3, [5], "isn't an edge"),
    (3, [(0, 1, -1)], "isn't a weight"),
    (3, [(0, 1, 0.5)], "isn't a weight"),
    (3, [(0, 1, True)], "isn't a weight"),
    (0, [], "isn't a number of nodes"),
    (-1, [], "isn't a number of nodes"),
    (True, [], "isn't a number of nodes"),
    (2.0, [], "isn't a number of nodes"),
    ("3", [], "isn't a number of nodes"),
    (NODES_MAX + 1, [], "use 1 to 10,000,000"),
]


@pytest.mark.parametrize(("nodes", "edges", "says"), BAD_EDGES)
def test_bad_edges_are_refused(nodes: Any, edges: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        Topology.of_edges(nodes, edges)


BAD_ADJACENCY: list[tuple[Any, str]] = [
    ([[1], []], "0 has a link to 1, which has none to 0"),
    ([[1, 1], [0]], "0 has two links to 1"),
    ([[0]], "itself"),
    (nx.Graph(), "number of nodes"),
    (nx.Graph([("x", "x")]), "itself"),
    ([[5]], "only the node 0"),
    ([["a"]], "names 'a'"),
    ([[True], [0]], "names True"),
    ([], "0 isn't a number of nodes"),
    ({}, "0 isn't a number of nodes"),
    ({1: [2], 2: [1]}, "number them from 0"),
]


@pytest.mark.parametrize(("adjacency", "says"), BAD_ADJACENCY)
def test_bad_adjacency_is_refused(adjacency: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        as_topology(adjacency)


@pytest.mark.parametrize("adjacency", [[1, 2], [[[0]]], {0: [], "a": []}, b"ab", [None]])
def test_what_is_no_adjacency_at_all_is_refused(adjacency: Any) -> None:
    with pytest.raises(ConfigurationError):
        as_topology(adjacency)


def test_an_adjacency_keeps_the_order_of_its_rows() -> None:
    assert of_adjacency({0: [2, 1], 2: [0], 1: [0]}).neighbors == ((2, 1), (0,), (0,))
    assert as_topology([(1,), (0,)]).neighbors == ((1,), (0,))


def test_there_must_be_a_position_for_each_node() -> None:
    with pytest.raises(ConfigurationError, match="1 positions for 2 nodes"):
        Topology([[1], [0]], positions=[(0, 0)])


# -- Weights


def test_weights_are_one_unless_given() -> None:
    topology = Topology.of_edges(3, [(0, 1, 7), (2, 1)])
    assert topology.weights == {(0, 1): 7, (1, 2): 1}
    assert topology.weight(1, 0) == topology.weight(0, 1) == 7


def test_weights_are_given_in_either_direction() -> None:
    assert Topology.of_edges(3, [(0, 1), (1, 2)], weights={(2, 1): 4}).weight(1, 2) == 4


def test_a_weight_of_no_edge_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="0-2 has a weight, and there is no such edge"):
        Topology.of_edges(3, [(0, 1), (1, 2)], weights={(0, 2): 4})


# -- networkx


def test_names_become_numbers_in_their_order() -> None:
    graph = nx.Graph(name="net")
    graph.add_nodes_from(["c", "a", "b"])
    graph.add_edge("a", "b", weight=3.0)
    graph.add_edge("c", "a", weight=2)
    topology = of_graph(graph)
    assert topology.neighbors == ((1,), (0, 2), (1,))
    assert topology.weights == {(0, 1): 2, (1, 2): 3}
    assert topology.name == "net"
    assert topology.positions is None


def test_positions_of_a_graph_are_kept() -> None:
    """Also arrays, which can't be compared with a tuple: networkx's layouts are made of them."""
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: (0, 1), 1: [2, 3], 2: numpy.array([4, 5])}, "pos")
    assert of_graph(graph).positions == ((0.0, 1.0), (2.0, 3.0), (4.0, 5.0))


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_directed_and_parallel_edges_are_refused(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"networkx\.Graph\(graph\)"):
        as_topology(nx.path_graph(3, create_using=kind))


@pytest.mark.parametrize("weight", [2.5, -1, None, "3", float("nan"), float("inf")])
def test_weights_of_a_graph_are_whole(weight: Any) -> None:
    graph = nx.path_graph(2)
    nx.set_edge_attributes(graph, weight, "weight")
    with pytest.raises(ConfigurationError, match="isn't a weight"):
        of_graph(graph)


@pytest.mark.parametrize("pos", ["1,2", (1, 2, 3), 5, ("x", "y"), ()])
def test_positions_that_are_none_of_ours_do_no_harm(pos: Any) -> None:
    graph = nx.path_graph(2)
    nx.set_node_attributes(graph, pos, "pos")
    assert of_graph(graph).positions is None
