from __future__ import annotations

from itertools import permutations

import pytest

from tests.nodes.chatter import ran
from tests.nodes.trying import noticed, tried
from worldline.nodes.algorithms.chang_roberts import Candidate, ChangRoberts, Elected, model
from worldline.nodes.node import Event
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.topology import Topology
from worldline.search.properties import Violation


def ring_in_order(order: tuple[int, ...], against: tuple[int, ...] = ()) -> Topology:
    """Make a ring of nodes in this order; those that are `against` it have their links the other way round."""
    rows: list[list[int]] = [[] for _ in order]
    for place, node in enumerate(order):
        row = [order[place - 1], order[(place + 1) % len(order)]]
        rows[node] = row[::-1] if node in against else row
    return Topology(rows)


def elected_on(topology: Topology, seed: int = 0) -> Scheduler:
    return ran(topology, ChangRoberts, seed=seed, properties=model.properties)


@pytest.mark.parametrize("topology", [None, "ring:3,shuffled", "ring:13,shuffled"])
def test_the_highest_is_elected_and_everybody_knows(topology: str | None) -> None:
    for seed in range(15):
        run = tried(model, seed, topology)
        assert {node.leader for node in run.nodes} == {run.num_nodes - 1}


def test_every_order_of_five_takes_exactly_the_messages_that_it_should() -> None:
    for rest in permutations(range(4)):
        order = (4, *rest)
        ways = []
        for place, node in enumerate(order):
            following = order[place + 1 :] + order[: place + 1]
            ways.append(next(steps for steps, other in enumerate(following, 1) if other >= node))
        assert elected_on(ring_in_order(order)).events_of_nodes == sum(ways) + 5


def test_the_bounds_are_reached() -> None:
    ascending = tuple(range(9))
    assert elected_on(ring_in_order(ascending)).events_of_nodes == 3 * 9 - 1
    assert elected_on(ring_in_order(ascending[::-1])).events_of_nodes == 9 * (9 + 3) // 2


def test_rings_neednt_be_oriented() -> None:
    for seed in range(16):
        against = tuple(node for node in range(6) if seed * 37 >> node & 1)
        run = elected_on(ring_in_order((3, 0, 5, 1, 4, 2), against), seed)
        assert {node.leader for node in run.nodes} == {5}


def test_each_of_two_rings_has_its_leader() -> None:
    run = elected_on(Topology([[4, 2], [5, 3], [0, 4], [1, 5], [2, 0], [3, 1]]))
    assert [node.leader for node in run.nodes] == [4, 5, 4, 5, 4, 5]


# -- Every property can fail


class StopsNobody(ChangRoberts):
    def _judge(self, candidate: int, onward: int) -> None:
        if candidate < self.id:
            self.send(Candidate(candidate), onward)
        else:
            super()._judge(candidate, onward)


class PrefersTheLowest(ChangRoberts):
    def _judge(self, candidate: int, onward: int) -> None:
        if candidate < self.id:
            self.send(Candidate(candidate), onward)
        elif candidate == self.id:
            super()._judge(candidate, onward)


class KeepsItToItself(ChangRoberts):
    def _learn(self, leader: int, onward: int) -> None:
        self.leader = leader


class KnowsBeforehand(ChangRoberts):
    def execute(self, event: Event) -> None:
        self.leader = self.num_nodes - 1


class AnnouncesTwice(ChangRoberts):
    def _judge(self, candidate: int, onward: int) -> None:
        super()._judge(candidate, onward)
        if candidate == self.id:
            self.send(Elected(self.id), onward)


@pytest.mark.parametrize(
    ("mutant", "text", "complaint"),
    [
        (StopsNobody, "never two leaders", "and . are leaders"),
        (PrefersTheLowest, "only the highest", "takes 0 for the leader, not 7"),
        (KeepsItToItself, "all nodes know", "knows no leader"),
        (KnowsBeforehand, "messages", "it took 0 messages, and should take 23 to 44"),
    ],
)
def test_properties_catch_what_is_wrong(mutant: type[ChangRoberts], text: str, complaint: str) -> None:
    noticed(model, mutant, text, complaint, [1])


def test_the_upper_bound_catches_one_announcement_too_many() -> None:
    run = Scheduler.over(ring_in_order((3, 2, 1, 0)), AnnouncesTwice, properties=model.properties)
    run.start_all_nodes()
    with pytest.raises(Violation, match="it took 18 messages, and should take 11 to 14"):
        run.run()
