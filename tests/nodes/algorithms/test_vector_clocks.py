"""Vector clocks: stamps against what really happened before what."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from msgspec import structs

from tests.nodes.chatter import ran
from tests.nodes.trying import tried, violated
from worldline.nodes import Node, Property, fault
from worldline.nodes.algorithms.vector_clocks import (
    Stamped,
    VectorClocks,
    is_before,
    model,
    pasts,
    text_of,
)

EXACT, GROWS = model.properties


# -- Stamps say what happened before what


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("topology", [None, "clique:4", "ring:5", "random:7,p=0.2"])
def test_it_holds_on_many_shapes(topology: str | None, seed: int) -> None:
    tried(model, seed, topology)


def test_there_are_events_of_all_relations() -> None:
    run = tried(model, 1, "clique:4")
    stamps = [happening.clock for node in run.nodes for happening in node.history]
    pairs = [(one, other) for one in stamps for other in stamps if one != other]
    before = sum(is_before(one, other) for one, other in pairs)
    concurrent = sum(not is_before(one, other) and not is_before(other, one) for one, other in pairs)
    assert before > 100
    assert concurrent > 100
    assert len({*stamps}) == len(stamps)


def test_its_oracle_agrees_with_networkx() -> None:
    run = tried(model, 2, "ring:5")
    graph = nx.DiGraph()
    for node in run.nodes:
        for number, happening in enumerate(node.history):
            graph.add_node((node.id, number))
            if number:
                graph.add_edge((node.id, number - 1), (node.id, number))
            if happening.source is not None:
                graph.add_edge(happening.source, (node.id, number))
    assert pasts(run) == {place: nx.ancestors(graph, place) for place in graph}


def test_the_source_of_what_is_received_is_an_event_that_sent_it_to_there() -> None:
    run = ran("clique:3", VectorClocks, seed=5, trace=True)
    sent = [record for record in run.records if record.kind == "sent"]
    received = [happening for node in run.nodes for happening in node.history if happening.source]
    assert len(sent) == len(received) > 5
    for happening in received:
        sender, number = happening.source
        stamp = run.node(sender).history[number]
        assert f"[clock = {text_of(stamp.clock)}, lamport = {stamp.lamport}]" in [
            record.text for record in sent if record.node == sender
        ]


def test_lamport_s_clock_may_order_what_is_concurrent() -> None:
    run = tried(model, 1, "clique:4")
    happenings: list[Stamped] = [happening for node in run.nodes for happening in node.history]
    assert any(
        one.lamport < other.lamport and not is_before(one.clock, other.clock)
        for one in happenings
        for other in happenings
    )


def test_the_own_entry_counts_the_own_events() -> None:
    run = tried(model, 3, "clique:4", parameters={"rounds": 9})
    for node in run.nodes:
        assert [happening.clock[node.id] for happening in node.history] == list(range(1, len(node.history) + 1))
        assert sum(happening.source is None for happening in node.history) == 9


def test_stamps_are_compared_entry_by_entry() -> None:
    assert is_before((1, 0), (1, 1))
    assert not is_before((1, 1), (1, 1))
    assert not is_before((1, 0), (0, 1))
    assert not is_before((0, 1), (1, 0))
    assert str(Stamped((2, 0, 1), 4, (0, 1))) == "[clock = <2 0 1>, lamport = 4]"


def test_a_message_from_nowhere_is_noticed() -> None:
    run = tried(model, 0, "line:2", parameters={"rounds": 0})
    run.node(0).history.append(Stamped((1, 1), 2, (1, 0)))
    with pytest.raises(AssertionError, match=r"\(0, 0\) has a cause that hadn't happened"):
        pasts(run)


# -- Its properties can fail


class LearnsNothing(VectorClocks):
    """Counts what it receives, and doesn't look at its stamp."""

    def _receive(self, message: Stamped) -> None:
        self._stamp("receives", message.source)


class LearnsOnlyOfTheSender(VectorClocks):
    """Takes over the sender's own entry, not its hearsay."""

    def _receive(self, message: Stamped) -> None:
        sender = message.source[0]
        self.clock[sender] = max(self.clock[sender], message.clock[sender])
        self._stamp("receives", message.source)


class KnowsTooMuch(VectorClocks):
    """Takes the sender to have had one event more."""

    def _receive(self, message: Stamped) -> None:
        super()._receive(message)
        self.clock[message.source[0]] += 1


class ForgetsItsClock(VectorClocks):
    """Begins to count anew after a crash."""

    stable = ("lamport", "history", "rounds_left")


class NoLamport(VectorClocks):
    """Lets Lamport's clock count only its own events."""

    def _receive(self, message: Stamped) -> None:
        super()._receive(structs.replace(message, lamport=0))


CRASH = (fault("2s", "crash", 1), fault("2100ms", "recover", 1))


@pytest.mark.parametrize(
    ("node", "only", "faults", "reason"),
    [
        (LearnsNothing, EXACT, (), "happened before"),
        (LearnsOnlyOfTheSender, EXACT, (), "happened before"),
        (KnowsTooMuch, EXACT, (), "did not happen before"),
        (ForgetsItsClock, EXACT, CRASH, "happened before"),
        (NoLamport, GROWS, (), "after it at"),
    ],
)
def test_what_is_wrong_is_noticed(node: type[Node], only: Property, faults: tuple[Any, ...], reason: str) -> None:
    assert reason in violated(model, node, only, topology="line:4", faults=faults)
