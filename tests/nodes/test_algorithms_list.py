"""The algorithms that come with the laboratory: each can be found, described, set, sent, and stands what it claims."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from msgspec import structs

from tests.nodes.trying import tried
from worldline.model.errors import ConfigurationError
from worldline.model.reading import as_time
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms import NAMES, find
from worldline.nodes.faults import KINDS, parse_kinds
from worldline.nodes.node import Node
from worldline.nodes.shapes import parse
from worldline.nodes.trial import Trial
from worldline.search.properties import Violation

SEEDS = range(1_000, 1_005)  # Others than those that the algorithms' own tests try.
SLOW = ("gossip",)  # Two hundred rounds take their time.


def seeds_for(algorithm: Algorithm) -> range:
    return SEEDS[:1] if algorithm.name in SLOW else SEEDS


@pytest.fixture(params=NAMES)
def algorithm(request: pytest.FixtureRequest) -> Algorithm:
    return find(request.param)


def test_it_describes_itself(algorithm: Algorithm) -> None:
    assert algorithm.name in NAMES
    assert 20 < len(algorithm.summary) <= 110
    assert algorithm.summary[0].isupper()
    assert algorithm.summary.endswith(".")
    assert algorithm.node.__doc__ != Node.__doc__  # What it says isn't merely inherited.
    assert algorithm.properties
    texts = [each.text for each in algorithm.properties]
    assert len(set(texts)) == len(texts)  # Shrinking tells them apart by their texts.


def test_its_defaults_can_be_read(algorithm: Algorithm) -> None:
    assert parse(algorithm.topology).num_nodes > 1
    assert algorithm.until is None or as_time(algorithm.until) > 0
    assert set(parse_kinds(algorithm.faults)) <= set(KINDS)
    assert Trial(algorithm=algorithm).link().fifo == algorithm.fifo


def test_its_parameters_can_be_set_by_texts(algorithm: Algorithm) -> None:
    defaults = algorithm.parameters()
    texts = {name: str(value) for name, value in defaults.items()}
    assert algorithm.parsed(texts) == defaults
    assert [type(value) for value in algorithm.parsed(texts).values()] == [type(value) for value in defaults.values()]
    node = algorithm.node(3, 0, 2, lambda _message, _link: None, **defaults)
    assert isinstance(node, Node)


def test_it_can_be_sent_to_other_processes(algorithm: Algorithm) -> None:
    assert pickle.loads(pickle.dumps(algorithm)) == algorithm


def test_it_does_what_it_should(algorithm: Algorithm) -> None:
    for seed in seeds_for(algorithm):
        tried(algorithm, seed)


def test_it_stands_the_faults_that_it_claims(algorithm: Algorithm) -> None:
    kinds = parse_kinds(algorithm.faults)
    for seed in seeds_for(algorithm) if kinds else ():
        tried(algorithm, seed, kinds=kinds)


@pytest.mark.parametrize(("name", "topology"), [("bellman-ford", "ring:6"), ("lamport-mutex", "clique:4")])
def test_processes_find_the_same(name: str, topology: str) -> None:
    """Checks look at all nodes at once, so they are left out."""
    trial = Trial(algorithm=structs.replace(find(name), properties=()), topology=topology, latency="uniform(50ms, 1s)")
    inline, processes = (trial.scheduler().run(executor=executor) for executor in ("inline", "processes(2)"))
    assert inline.digest == processes.digest
    assert inline.events == processes.events > 20


def test_names_are_sorted_out(algorithm: Algorithm) -> None:
    assert find(algorithm.name) is algorithm
    with pytest.raises(ConfigurationError, match=f"did you mean {algorithm.name}?"):
        find(f"{algorithm.name}s")


@pytest.mark.parametrize("name", ["", "quantum", "__init__", "raft.model", "../raft", "bellman_ford", "list"])
def test_what_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"there is no algorithm '{name}' \\("):
        find(name)


def test_every_name_is_there_once() -> None:
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize(
    ("name", "topology", "parameters", "says"),
    [
        ("chang-roberts", "line:4", {}, r"node 0 at 0s: it has 1 neighbors.*rings"),
        ("hirschberg-sinclair", "clique:4", {}, "node 0 at 0s: it has 3 neighbors"),
        ("bully", "ring:4", {}, "every node needs a link to every other"),
        ("lamport-mutex", "ring:4", {}, "every node needs a link to every other"),
        ("ricart-agrawala", "line:3", {}, "every node needs a link to every other"),
        ("two-phase-commit", "line:3", {}, "the coordinator needs a link to every node"),
        ("echo", "line:7", {"initiator": 7}, "no node 7 to begin"),
        ("flooding", "line:7", {"initiator": -1}, r"no node -1 to begin.*nodes are 0 to 6"),
        ("gossip", None, {"initiator": 16}, "no node 16 to begin"),
        ("chandy-lamport", None, {"initiator": 6}, "there is no node 6 to begin"),
        ("paxos", None, {"proposers": 0}, "at least 1 proposer"),
        ("raft", None, {"timeout": "0s"}, "at least 1ns"),
    ],
)
def test_what_it_cannot_do_without_is_demanded(
    name: str, topology: str | None, parameters: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigurationError, match=says):
        tried(find(name), 0, topology, parameters=parameters)


@pytest.mark.parametrize(
    ("name", "seed", "topology", "options", "says"),
    [
        ("bellman-ford", 0, "line:4", {"kinds": {"loss": 0.5}}, "shortest distances"),
        ("bellman-ford-ids", 0, "line:4", {"kinds": {"loss": 0.5}}, "shortest distances"),
        ("flooding", 0, "line:6", {"kinds": {"loss": 0.5}}, "can be reached"),
        ("echo", 0, "line:6", {"kinds": {"loss": 0.5}}, r"there are 6, and it decides \[\]"),
        ("chandy-lamport", 0, None, {"fifo": False}, "what is recorded for a link is what crosses the cut on it"),
        ("lamport-mutex", 8, None, {"fifo": False}, "at most one node is inside"),
    ],
)
def test_it_needs_what_it_says_of_its_links(
    name: str, seed: int, topology: str | None, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(Violation, match=says):
        tried(find(name), seed, topology, **options)
