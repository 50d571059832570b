"""Shapes: networkx's own generators are the oracle where there is one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.errors import ConfigurationError
from worldline.nodes import shapes
from worldline.nodes.shapes import parse
from worldline.nodes.topology import Topology


def graph_of(topology: Topology) -> Any:
    graph = nx.Graph(topology.edges)
    graph.add_nodes_from(range(topology.num_nodes))
    return graph


def same_shape(topology: Topology, other: Any) -> bool:
    return bool(nx.is_isomorphic(graph_of(topology), other))


# -- Regular ones

ORACLES: list[tuple[str, Any]] = [
    ("clique:1", nx.complete_graph(1)),
    ("clique:6", nx.complete_graph(6)),
    ("ring:3", nx.cycle_graph(3)),
    ("ring:9", nx.cycle_graph(9)),
    ("line:1", nx.path_graph(1)),
    ("line:7", nx.path_graph(7)),
    ("star:1", nx.star_graph(0)),
    ("star:8", nx.star_graph(7)),
    ("tree:15", nx.balanced_tree(2, 3)),
    ("tree:13,arity=3", nx.balanced_tree(3, 2)),
    ("tree:12,arity=4", nx.full_rary_tree(4, 12)),
    ("tree:5,arity=1", nx.path_graph(5)),
    ("tree:5,arity=100", nx.star_graph(4)),
    ("grid:4x5", nx.grid_2d_graph(4, 5)),
    ("grid:1x6", nx.path_graph(6)),
    ("grid:6x1", nx.path_graph(6)),
    ("torus:3x3", nx.grid_2d_graph(3, 3, periodic=True)),
    ("torus:4x5", nx.grid_2d_graph(4, 5, periodic=True)),
    ("hypercube:0", nx.empty_graph(1)),
    ("hypercube:1", nx.path_graph(2)),
    ("hypercube:4", nx.hypercube_graph(4)),
    ("small-world:12,k=4,p=0", nx.watts_strogatz_graph(12, 4, 0)),
    ("random:6,p=1", nx.complete_graph(6)),
    ("random:6,p=0", nx.empty_graph(6)),
    ("random:1,p=0.5", nx.empty_graph(1)),
    ("geometric:6,radius=1.5", nx.complete_graph(6)),
    ("geometric:6,radius=0", nx.empty_graph(6)),
]


@pytest.mark.parametrize(("text", "oracle"), ORACLES, ids=[text for text, _ in ORACLES])
def test_it_has_the_shape_that_networkx_gives_it(text: str, oracle: Any) -> None:
    topology = parse(text)
    assert same_shape(topology, oracle)
    assert topology.positions is None or len(topology.positions) == topology.num_nodes


def test_a_ring_has_its_links_in_a_sense_of_direction() -> None:
    for node, (before, after) in enumerate(parse("ring:5").neighbors):
        assert (before, after) == ((node - 1) % 5, (node + 1) % 5)


def test_a_hypercubes_links_are_its_digits() -> None:
    for node, row in enumerate(parse("hypercube:5").neighbors):
        assert [node ^ neighbor for neighbor in row] == [1, 2, 4, 8, 16]


@pytest.mark.parametrize(
    "text", ["tree:40,arity=3", "grid:3x3", "torus:3x4", "hypercube:4", "star:9", "clique:7", "ring:8", "line:9"]
)
def test_no_two_nodes_stand_in_the_same_place(text: str) -> None:
    positions = parse(text).positions
    assert positions is not None
    assert len({(round(x, 9), round(y, 9)) for x, y in positions}) == len(positions)


# -- Random ones

DRAWN = (
    "random:30,p=0.2",
    "random:30,degree=4",
    "scale-free:30,m=3",
    "small-world:30,k=4,p=0.3",
    "geometric:30,radius=0.3",
    "random:30,p=0.05,connected",
    "ring:30,shuffled",
    "ring:30,weights=1-100",
    "line:30,weights=1-29,distinct",
)


def facts(topology: Topology) -> Any:
    return topology.neighbors, topology.weights, topology.positions


@pytest.mark.parametrize("text", DRAWN)
def test_a_seed_always_draws_the_same_and_another_one_something_else(text: str) -> None:
    assert facts(parse(text, seed=4)) == facts(parse(text, seed=4))
    assert facts(parse(text, seed=4)) != facts(parse(text, seed=5))


def test_drawn_topologies_stay_what_they_are() -> None:
    """What a seed draws is part of every history: a change here changes all that was ever reported."""
    assert parse("random:6,p=0.5", seed=1).edges == RANDOM_OF_SEED_1
    assert parse("ring:6,shuffled", seed=1).neighbors[0] == SHUFFLED_OF_SEED_1


RANDOM_OF_SEED_1 = [(0, 2), (0, 5), (1, 2), (1, 5), (2, 3), (2, 5), (3, 4), (3, 5)]
SHUFFLED_OF_SEED_1 = (5, 2)


def test_erdos_renyi_has_as_many_edges_as_it_should() -> None:
    edges = [len(parse("random:40,p=0.3", seed=seed).edges) for seed in range(15)]
    assert abs(sum(edges) / 15 - 0.3 * 780) < 10
    degrees = [2 * len(parse("random:200,degree=6", seed=seed).edges) / 200 for seed in range(5)]
    assert abs(sum(degrees) / 5 - 6) < 0.3


def test_barabasi_albert_has_m_edges_for_each_newcomer_and_a_few_large_ones() -> None:
    topology = parse("scale-free:200,m=2")
    assert len(topology.edges) == (200 - 2) * 2
    assert topology.is_connected
    degrees = Counter(len(row) for row in topology.neighbors)
    assert max(degrees) > 15
    assert min(degrees) >= 1


def test_watts_strogatz_keeps_the_number_of_edges() -> None:
    topology = parse("small-world:50,k=4,p=0.5")
    assert len(topology.edges) == 100
    assert not same_shape(topology, nx.watts_strogatz_graph(50, 4, 0))


@given(st.integers(0, 2**32), st.floats(0, 1.4))
def test_geometric_links_are_those_within_the_radius(seed: int, radius: float) -> None:
    topology = shapes.geometric(12, radius=radius, seed=seed)
    assert topology.positions is not None
    for a, (ax, ay) in enumerate(topology.positions):
        for b, (bx, by) in enumerate(topology.positions[:a]):
            distance = ((ax - bx) ** 2 + (ay - by) ** 2) ** 0.5
            if abs(distance - radius) > 1e-12:
                assert ((b, a) in topology.weights) == (distance < radius)


def test_a_probability_may_be_tiny() -> None:
    assert parse("random:5,p=1e-20").edges == []


# -- Names


@pytest.mark.parametrize(
    "text",
    [
        *("clique:4", "ring:5", "line:3", "star:4", "tree:7,arity=3", "grid:2x3", "torus:3x4", "hypercube:3"),
        *("scale-free:20,m=2", "small-world:20,k=4,p=0.1", "geometric:20,radius=0.25", "random:20,p=0.2"),
        *("random:20,p=0.05,connected", "ring:5,shuffled", "ring:5,weights=1-9", "ring:5,weights=1-9,distinct"),
        "random:20,p=0.05,connected,shuffled,weights=1-9",
    ],
)
def test_a_name_makes_the_same_topology_again(text: str) -> None:
    topology = parse(text, seed=7)
    assert topology.name == text
    assert facts(parse(topology.name, seed=7)) == facts(topology)


def test_the_order_of_the_words_does_not_matter() -> None:
    one = parse("random:20,p=0.05,connected,shuffled,weights=1-9", seed=2)
    other = parse("random:20,weights=1-9,shuffled,connected,p=0.05", seed=2)
    assert facts(one) == facts(other)


def test_a_name_has_all_digits() -> None:
    topology = shapes.random(300, p=0.0123456789, seed=14)
    assert parse(topology.name, seed=14).edges == topology.edges


def test_what_has_no_name_does_not_get_half_of_one() -> None:
    assert not shapes.connected(Topology.of_edges(2, [])).name.startswith(",")


# -- What can be done to any of them


@given(st.integers(1, 12), st.sampled_from((0.0, 0.05, 0.1, 0.2, 0.4)), st.integers(0, 2**32))
def test_connected_adds_as_few_edges_as_possible(nodes: int, chance: float, seed: int) -> None:
    before = shapes.random(nodes, p=chance, seed=seed)
    after = shapes.connected(before, seed=seed)
    assert after.is_connected
    assert set(before.edges) <= set(after.edges)
    assert len(after.edges) == len(before.edges) + len(before.components()) - 1
    for row, longer in zip(before.neighbors, after.neighbors, strict=True):
        assert longer[: len(row)] == row  # Old links keep their numbers.


@given(st.integers(0, 2**32))
def test_shuffled_renames_the_nodes_and_nothing_else(seed: int) -> None:
    before = parse("tree:10,arity=3,weights=1-99", seed=1)
    after = shapes.shuffled(before, seed=seed)
    assert before.positions is not None
    assert after.positions is not None
    numbers = [after.positions.index(place) for place in before.positions]
    assert sorted(numbers) == list(range(10))
    for node, row in enumerate(before.neighbors):
        assert after.neighbors[numbers[node]] == tuple(numbers[neighbor] for neighbor in row)
        for neighbor in row:
            assert after.weight(numbers[node], numbers[neighbor]) == before.weight(node, neighbor)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 2**32))
def test_weights_are_drawn_within_their_range(least: int, more: int, seed: int) -> None:
    topology = shapes.weighted(shapes.clique(6), least, least + more, seed=seed)
    assert all(least <= weight <= least + more for weight in topology.weights.values())
    if more >= 14:
        distinct = shapes.weighted(shapes.clique(6), least, least + more, distinct=True, seed=seed)
        assert len(set(distinct.weights.values())) == 15
        assert all(least <= weight <= least + more for weight in distinct.weights.values())
    else:
        with pytest.raises(ConfigurationError, match="15 edges can't have different weights"):
            shapes.weighted(shapes.clique(6), least, least + more, distinct=True, seed=seed)


def test_weights_below_zero_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="0 ≤ least ≤ most"):
        shapes.weighted(shapes.ring(3), -1, 3)


# -- Too small, too large

TOO_SMALL = (
    *("clique:0", "ring:2", "line:0", "star:0", "tree:0", "tree:5,arity=0", "grid:0x3", "grid:3x0", "torus:2x3"),
    *("torus:3x2", "random:0,p=0.5", "scale-free:2", "scale-free:5,m=0", "small-world:3,k=4", "geometric:0,radius=1"),
)


@pytest.mark.parametrize("text", TOO_SMALL)
def test_too_small_ones_are_refused_with_the_least_size(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"at least|use"):
        parse(text)


def test_a_hypercube_has_a_largest_dimension() -> None:
    with pytest.raises(ConfigurationError, match="use 0 to 20"):
        parse("hypercube:21")


@pytest.mark.parametrize(
    "text", ["grid:99999999x99999999", "ring:99999999", "line:10000001", "clique:1000000", "star:99999999"]
)
def test_too_large_ones_are_refused_before_they_are_built(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"are too many .*use at most"):
        parse(text)
