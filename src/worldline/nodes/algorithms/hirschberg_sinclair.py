"""Leader election on a ring after Hirschberg and Sinclair, with O(n log n) messages.

Every node knows its own id and its two links, and no more. It asks its surroundings in phases: in phase k it sends
probes with its id both ways, 2^k nodes far. A node with a higher id stops a probe. If none does, the last node that it
gets to sends a reply back, which all nodes pass on. A node that has both replies is the highest of all within 2^k nodes
and goes into the next phase; one that doesn't get both stays where it is, and only passes on. When a probe has gone all
around the ring it comes home: then its node is higher than all others, and it is the leader. It sends round that it is.

A probe is judged by itself, and a node has at most one on each side, since it waits for both replies: so messages may
overtake each other, and replies needn't say which phase they belong to. None may get lost. The ring needn't be
oriented.

Between two nodes that get into phase k + 1 there are at least 2^k others, so they are at most n / (2^k + 1), and each
makes at most 4 · 2^(k + 1) messages there. Every node makes up to 4 in phase 0. The last phase is the first one with
2^k ≥ n. So every phase takes less than 8n messages, and there are 1 + ⌈log₂ n⌉ of them; the announcement takes n more.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.chang_roberts import (
    AHEAD,
    Elected,
    all_know,
    check_on_ring,
    never_two_leaders,
    only_the_highest,
)
from worldline.nodes.algorithms.demands import demand_messages
from worldline.nodes.node import Event, Node, Protocol, Start
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import at_end

BACK = 0


class Probe(Struct, frozen=True):
    """A candidate's id, on its way to so many more nodes."""

    candidate: int
    distance: int

    def __str__(self) -> str:
        return f"Probe {self.candidate}, distance {self.distance}"


class Reply(Struct, frozen=True):
    """A probe has met no higher node; it is on its way to the candidate."""

    candidate: int

    def __str__(self) -> str:
        return f"Reply to {self.candidate}"


class HirschbergSinclair(Node):
    """Leader election on a ring: candidates ask twice as far in every phase, to both sides."""

    shows = ("leader", "phase")

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        check_on_ring(self.num_neighbors)
        self.leader: int | None = None
        self.phase = 0
        self.replies = 0

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                self._ask()
            case Protocol(Probe(candidate, distance), link):
                self._judge(candidate, distance, link)
            case Protocol(Reply(candidate), link):
                self._take_reply(candidate, link)
            case Protocol(Elected(leader), link) if leader != self.id:
                self.leader = leader
                self.send(Elected(leader), 1 - link)

    def reach(self) -> int:
        """How far probes of the present phase go."""
        return 1 << self.phase

    def _ask(self) -> None:
        for link in (BACK, AHEAD):
            self.send(Probe(self.id, self.reach()), link)

    def _judge(self, candidate: int, distance: int, link: int) -> None:
        if candidate == self.id:
            self._win()
        elif candidate < self.id:
            self.log(f"stopped {candidate}")
        elif distance > 1:
            self.send(Probe(candidate, distance - 1), 1 - link)
        else:
            self.send(Reply(candidate), link)

    def _take_reply(self, candidate: int, link: int) -> None:
        if candidate != self.id:
            self.send(Reply(candidate), 1 - link)
            return
        self.replies += 1
        if self.replies == 2:
            self.replies = 0
            self.phase += 1
            self.log(f"phase {self.phase}")
            self._ask()

    def _win(self) -> None:
        if self.leader is None:  # The other probe comes home too, later.
            self.log("my probe has come home: I am the leader")
            self.leader = self.id
            self.send(Elected(self.id), AHEAD)


def messages_most(n: int) -> int:
    """Compute what an election takes at most on a ring of n nodes: the sum over all phases, and the announcement."""
    last = (n - 1).bit_length()
    return 4 * n + sum((4 << phase) * (n // ((1 << phase - 1) + 1)) for phase in range(1, last + 1)) + n


@at_end("there are no more messages than all phases may take together, which is O(n log n)")
def within_bounds(run: Scheduler) -> bool:
    return demand_messages(run, 0, sum(messages_most(len(ring)) for ring in run.topology.components()))


model = Algorithm(
    name="hirschberg-sinclair",
    node=HirschbergSinclair,
    topology="ring:8,shuffled",
    properties=(never_two_leaders, only_the_highest, all_know, within_bounds),
    least={"nodes": 3},
)
