"""The echo algorithm: its tree, its count, and when it decides."""

from __future__ import annotations

import pytest

from tests.nodes.chatter import ran
from tests.nodes.trying import tried, violated
from worldline.nodes import Event, Node, Property, Protocol, Topology
from worldline.nodes.algorithms.echo import Echo, EchoNode, Wave, model

LAST, COUNT, TREE, MESSAGES = model.properties
TWO_PARTS = Topology.of_edges(7, [(0, 1), (1, 2), (0, 2), (2, 3), (4, 5)])


# -- What it does


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("topology", [None, "clique:6", "tree:10", "random:15,p=0.12"])
def test_it_holds_on_many_shapes(topology: str | None, seed: int) -> None:
    run = tried(model, seed, topology)
    # Every node was started, and all other events are messages.
    assert run.result().events - run.num_nodes == 2 * run.topology.edges_within(run.topology.component(0))


def test_the_initiator_counts_those_whom_it_can_reach() -> None:
    sizes = []
    for initiator in range(7):
        run = tried(model, 3, TWO_PARTS, parameters={"initiator": initiator})
        assert [node.id for node in run.nodes if node.decisions] == [initiator]
        sizes += run.node(initiator).decisions
    assert sizes == [4, 4, 4, 4, 2, 2, 1]


def test_the_trace_of_the_smallest_wave() -> None:
    run = ran("line:2", EchoNode, trace=True)
    assert run.text().splitlines()[4:] == [
        "0 <- *: Start",
        "0 -> 1: [wave]",
        "1 <- *: Start",
        "1 <- 0: [wave]",
        "1: has its parent at link 0",
        "1 -> 0: [echo = 1]",
        "0 <- 1: [echo = 1]",
        "0: decides: there are 2 nodes",
    ]


# -- Its properties can fail


class Impatient(EchoNode):
    """Doesn't wait for all answers, as the initiator: any will do."""

    def execute(self, event: Event) -> None:
        if isinstance(event, Protocol) and self.id == self.initiator:
            self.answers_missing = 1
        super().execute(event)


class Presumptuous(EchoNode):
    """Decides also where it should only echo."""

    def _finish_if_all_have_answered(self) -> None:
        super()._finish_if_all_have_answered()
        if not self.answers_missing and self.parent is not None:
            self.decisions.append(self.size)


class Talkative(EchoNode):
    """The initiator sends another wave when it has decided."""

    def _finish_if_all_have_answered(self) -> None:
        super()._finish_if_all_have_answered()
        if len(self.decisions) == 1:
            self.answers_missing = self.num_neighbors
            self._send_wave()


class Twice(EchoNode):
    """Decides, and decides again."""

    def _finish_if_all_have_answered(self) -> None:
        super()._finish_if_all_have_answered()
        self.decisions *= 2


class CountsWaves(EchoNode):
    """Takes a wave that comes from the side for an echo."""

    def _count_answer(self, message: Wave | Echo) -> None:
        super()._count_answer(message)
        self.size += isinstance(message, Wave)


class GoesRound(EchoNode):
    """In the ring, node 1 and node 2 take each other for their parents."""

    def execute(self, event: Event) -> None:
        super().execute(event)
        if self.id in (1, 2) and not self.answers_missing:
            self.parent = 2 - self.id


class Orphan(EchoNode):
    """Forgets where it has it from."""

    def execute(self, event: Event) -> None:
        super().execute(event)
        if not self.answers_missing:
            self.parent = None


class ThanksItsParent(EchoNode):
    """Sends the wave back to where it came from, too; nobody minds."""

    def _send_wave(self) -> None:
        super()._send_wave()
        if self.parent is not None:
            self.send(Wave(), self.parent)

    def execute(self, event: Event) -> None:
        if not isinstance(event, Protocol) or self.answers_missing:
            super().execute(event)


@pytest.mark.parametrize(
    ("node", "only", "topology", "reason"),
    [
        (Impatient, LAST, "star:5", "wasn't reached before the decision"),
        (Presumptuous, LAST, "line:3", "2 has decided"),
        (Talkative, LAST, "line:3", "goes on after the decision"),
        (Twice, COUNT, "line:3", "there are 3, and it decides [3, 3]"),
        (CountsWaves, COUNT, "ring:5", "there are 5, and it decides"),
        (GoesRound, TREE, "ring:5", "the parents of 1 don't lead to 0"),
        (Orphan, TREE, "ring:5", "these have parents: []"),
        (ThanksItsParent, MESSAGES, "line:3", "instead of 4"),
    ],
)
def test_what_is_wrong_is_noticed(node: type[Node], only: Property, topology: str, reason: str) -> None:
    assert reason in violated(model, node, only, topology=topology)
