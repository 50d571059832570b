"""Flooding: who gets the news, how often, and how many messages that takes."""

from __future__ import annotations

import pytest

from tests.nodes.trying import tried, violated
from worldline.nodes import Event, Node, Property, Protocol, Start, Topology
from worldline.nodes.algorithms.flooding import Flooding, model

AT_MOST_ONCE, EVERYBODY, MESSAGES = model.properties
TWO_PARTS = Topology.of_edges(7, [(0, 1), (1, 2), (0, 2), (2, 3), (4, 5)])


# -- What it does


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("topology", [None, "clique:6", "tree:10", "random:15,p=0.12"])
def test_it_holds_on_many_shapes(topology: str | None, seed: int) -> None:
    run = tried(model, seed, topology)
    assert any(node.taken for node in run.nodes)


def test_the_initiator_s_part_gets_it_once_and_nobody_else() -> None:
    run = tried(model, 3, TWO_PARTS)
    assert [node.taken for node in run.nodes] == [["hello"]] * 4 + [[]] * 3
    assert run.result().events == 7 + 2 * 4 - 3


def test_who_begins_and_with_what_can_be_chosen() -> None:
    given = model.parsed({"initiator": "5", "text": "rain"})
    run = tried(model, 3, TWO_PARTS, parameters=given)
    assert [node.id for node in run.nodes if node.taken == ["rain"]] == [4, 5]
    assert run.result().events == 7 + 1


def test_what_its_oracles_know_of_a_component() -> None:
    run = tried(model, 0, TWO_PARTS)
    assert [run.topology.component(node) for node in (3, 5, 6)] == [[0, 1, 2, 3], [4, 5], [6]]
    assert [run.topology.edges_within(group) for group in ([0, 1, 2, 3], [4, 5], [6])] == [4, 1, 0]


# -- Its properties can fail


class TakesItAgain(Flooding):
    """Passes it on once, and takes it as often as it comes."""

    def execute(self, event: Event) -> None:
        if isinstance(event, Protocol) and self.taken:
            self.taken.append(event.message.text)
        super().execute(event)


class Distorts(Flooding):
    """Understands something else."""

    def _take(self, text: str, source: int | None = None) -> None:
        super()._take(text if source is None else text.upper(), source)


class KeepsItToItself(Flooding):
    """Passes nothing on, but for the initiator."""

    def _take(self, text: str, source: int | None = None) -> None:
        if source is None:
            super()._take(text)
        else:
            self.taken.append(text)


class KnowsAnyway(Flooding):
    """Needn't be told."""

    def execute(self, event: Event) -> None:
        if isinstance(event, Start):
            self.taken.append(self.text)
        super().execute(event)


class TellsItBack(Flooding):
    """Sends it also to the one it has it from."""

    def _take(self, text: str, source: int | None = None) -> None:
        super()._take(text)


@pytest.mark.parametrize(
    ("node", "only", "reason"),
    [
        (TakesItAgain, AT_MOST_ONCE, "['hello', 'hello']"),
        (Distorts, AT_MOST_ONCE, "['HELLO']"),
        (KeepsItToItself, EVERYBODY, "3 has taken []"),
        (KnowsAnyway, EVERYBODY, "4 has taken ['hello']"),
        (TellsItBack, MESSAGES, "it took 8 messages instead of 5"),
    ],
)
def test_what_is_wrong_is_noticed(node: type[Node], only: Property, reason: str) -> None:
    assert reason in violated(model, node, only, topology=TWO_PARTS)
