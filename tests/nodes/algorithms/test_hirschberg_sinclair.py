from __future__ import annotations

from math import ceil, log2

import pytest

from tests.nodes.chatter import ran
from tests.nodes.trying import noticed, tried
from worldline.nodes.algorithms.hirschberg_sinclair import HirschbergSinclair, messages_most, model
from worldline.nodes.topology import Topology


def messages_expected(topology: Topology) -> int:
    """Compute from the order on the ring how many messages there are: that doesn't depend on latencies."""
    order = [0]
    while len(order) < topology.num_nodes:
        order.append(topology.neighbors[order[-1]][1])
    total = len(order)
    for place, node in enumerate(order):
        following = order[place + 1 :] + order[: place + 1]
        before = [*following[-2::-1], node]
        ways = [next(steps for steps, other in enumerate(way, 1) if other >= node) for way in (following, before)]
        reach = 1
        while min(ways) > reach:  # Neither probe is stopped, nor comes home: there are two replies.
            total += 4 * reach
            reach *= 2
        total += sum(min(way, reach) + (reach if way > reach else 0) for way in ways)
    return total


@pytest.mark.parametrize("topology", [None, "ring:3,shuffled", "ring:16,shuffled", "ring:17,shuffled"])
def test_the_highest_is_elected_and_everybody_knows(topology: str | None) -> None:
    for seed in range(10):
        run = tried(model, seed, topology)
        assert {node.leader for node in run.nodes} == {run.num_nodes - 1}
        assert run.events_of_nodes == messages_expected(run.topology)


def test_the_order_in_which_messages_arrive_doesnt_matter() -> None:
    counts = {tried(model, seed, "ring:12", fifo=fifo).events_of_nodes for seed in range(6) for fifo in (False, True)}
    assert len(counts) == 1


def test_the_bound_is_within_the_one_that_is_taught() -> None:
    for n in range(3, 200):
        assert messages_most(n) <= 8 * n * (1 + ceil(log2(n))) + n


def test_rings_neednt_be_oriented() -> None:
    run = ran([[1, 2], [0, 3], [0, 4], [4, 1], [3, 2]], HirschbergSinclair, properties=model.properties)
    assert [node.leader for node in run.nodes] == [4] * 5


def test_a_candidate_gets_into_the_phase_that_its_surroundings_allow() -> None:
    run = tried(model, 0, "ring:16")
    # 0 and 15 are neighbors, as are all that follow each other: only the highest gets anywhere.
    assert [node.phase for node in run.nodes] == [0] * 15 + [4]


# -- Every property can fail


class HasEnoughOfOnePhase(HirschbergSinclair):
    def _take_reply(self, candidate: int, link: int) -> None:
        super()._take_reply(candidate, link)
        if self.phase == 1:
            self._win()


class KeepsItToItself(HirschbergSinclair):
    def _win(self) -> None:
        self.leader = self.id


class StepByStep(HirschbergSinclair):
    """Asks one node further in every phase: right, and slow."""

    def reach(self) -> int:
        return self.phase + 1


@pytest.mark.parametrize(
    ("mutant", "topology", "text", "complaint"),
    [
        (HasEnoughOfOnePhase, "ring:9,shuffled", "never two leaders", "are leaders"),
        (HasEnoughOfOnePhase, "ring:9,shuffled", "only the highest", "takes . for the leader, not 8"),
        (KeepsItToItself, "ring:8,shuffled", "all nodes know", "knows no leader"),
        (StepByStep, "ring:70", "messages", "it took .* messages, and should take at most"),
    ],
)
def test_properties_catch_what_is_wrong(
    mutant: type[HirschbergSinclair], topology: str, text: str, complaint: str
) -> None:
    noticed(model, mutant, text, complaint, [1], topology=topology)
