"""Leader election on a ring after LeLann, Chang and Roberts.

Every node knows its own id and its two links, and no more: neither how many nodes there are nor which. It sends its id
ahead, over local link 1. A node that gets an id larger than its own passes it on, over the other of its links; a
smaller one it stops. So of all ids only the highest can get past all nodes: the node whose id comes home is the leader.
It sends round that it is, and when that comes home all nodes know.

An id is judged by itself, whatever came before it, so messages may overtake each other. None may get lost. The ring
needn't even be oriented: an id goes on the way that it began, whether others go against it or not.

The highest id takes n messages; the one that k others exceed at most n - k, then it meets one of those. That makes at
most n(n + 1)/2, and 2n - 1 if every node's next one is higher, but for the highest. The announcement takes n more.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.model.errors import ConfigurationError
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.demands import demand_messages
from worldline.nodes.node import Event, Node, Protocol, Start
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end

AHEAD = 1


class Candidate(Struct, frozen=True):
    """A node's id on its way round the ring."""

    id: int

    def __str__(self) -> str:
        return f"Candidate {self.id}"


class Elected(Struct, frozen=True):
    """All nodes are told which one is the leader."""

    leader: int

    def __str__(self) -> str:
        return f"Elected {self.leader}"


class ChangRoberts(Node):
    """Leader election on a ring: ids go round, and higher ones stop lower ones."""

    shows = ("leader",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        check_on_ring(self.num_neighbors)
        self.leader: int | None = None

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                self.send(Candidate(self.id), AHEAD)
            case Protocol(Candidate(candidate), link):
                self._judge(candidate, 1 - link)
            case Protocol(Elected(leader), link):
                self._learn(leader, 1 - link)

    def _judge(self, candidate: int, onward: int) -> None:
        if candidate > self.id:
            self.send(Candidate(candidate), onward)
        elif candidate == self.id:
            self.log("my id has come home: I am the leader")
            self.leader = self.id
            self.send(Elected(self.id), onward)
        else:
            self.log(f"stopped {candidate}")

    def _learn(self, leader: int, onward: int) -> None:
        if leader != self.id:
            self.leader = leader
            self.send(Elected(leader), onward)


def check_on_ring(num_neighbors: int) -> None:
    """Refuse a node that can't be on a ring."""
    if num_neighbors != 2:
        raise ConfigurationError(
            f"it has {num_neighbors} neighbors", advice="this election is for rings: use ring:8,shuffled"
        )


# -- What must hold of every election on a ring; a topology of several rings gets a leader on each


@always("there are never two leaders")
def never_two_leaders(run: Scheduler, leaders: dict[int, int]) -> bool:
    for node in run.acted:
        if node.leader == node.id:
            first = leaders.setdefault(run.topology.component(node.id)[-1], node.id)
            assert first == node.id, f"{first} and {node.id} are leaders"
    return True


@always("only the highest node is taken for the leader")
def only_the_highest(run: Scheduler) -> bool:
    for node in run.acted:
        highest = run.topology.component(node.id)[-1]
        assert node.leader in (None, highest), f"{node.id} takes {node.leader} for the leader, not {highest}"
    return True


@at_end("all nodes know the leader")
def all_know(run: Scheduler) -> bool:
    for node in run.nodes:
        assert node.leader is not None, f"{node.id} knows no leader"
    return True


@at_end("there are 3n - 1 to n(n + 3)/2 messages")
def within_bounds(run: Scheduler) -> bool:
    sizes = [len(ring) for ring in run.topology.components()]
    least = sum(3 * n - 1 for n in sizes)
    most = sum(n * (n + 3) // 2 for n in sizes)
    return demand_messages(run, least, most)


model = Algorithm(
    name="chang-roberts",
    node=ChangRoberts,
    topology="ring:8,shuffled",
    properties=(never_two_leaders, only_the_highest, all_know, within_bounds),
    least={"nodes": 3},
)
