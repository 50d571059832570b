"""Lamport's mutual exclusion: one queue of requests, and every node has it.

Every node has a logical clock, a number that grows with everything it does and is never behind a message it has heard
of. A node that wants to be inside tells all others so, with the time of its clock; this time and its own id, which
decides between equal times, are its request. Each puts the request into a queue and replies with a time of its own. A
node that leaves tells all others, and they take its request out of their queues.

A node goes inside when its own request is the smallest in its queue and it has heard something later than that request
from all others. Then no smaller request can be under way: messages must not overtake each other (the links have to be
FIFO), so it would have come before what was heard, and whatever is asked for from now on is later. So two nodes never
take themselves for the first at the same time, and requests are granted in their order, which no node has to decide.
None waits for ever, since there are only finitely many smaller requests.

It needs links between all nodes that lose nothing, and nodes that stay up: one that doesn't reply stops all. Each entry
takes 3 (n - 1) messages: a request, a reply and a release for each of the others.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.model.reading import as_time
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.demands import demand_clique
from worldline.nodes.node import Event, Node, Protocol, Start, Timer
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end

Stamp = tuple[int, int]
"""A request: the logical time at which it was made, and who made it."""


class Request(Struct, frozen=True):
    """A node wants to be inside."""

    timestamp: int
    sender: int


class Reply(Struct, frozen=True):
    """A node has heard of a request."""

    timestamp: int
    sender: int


class Release(Struct, frozen=True):
    """A node isn't inside any more."""

    timestamp: int
    sender: int


class Contender(Node):
    """Wants to be inside several times, and stays there for a while. How it gets in is up to those derived from it.

    They write `ask` and `release`, for the moments when it wants to be inside and when it has left, `hear` for
    messages, and `set_up` for what they have to remember; they call `enter` when it may go inside.
    """

    shows = ("inside", "request", "clock")

    def __init__(self, *given: Any, rounds: int = 3, pause: str = "3s", stay: str = "200ms") -> None:
        super().__init__(*given)
        self.rounds = rounds
        self.pause = as_time(pause, "a pause")
        self.stay = as_time(stay, "a stay")
        self.clock = 0
        self.request: Stamp | None = None
        self.inside = False
        self.entries = 0
        self.set_up()

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                demand_clique(self)
                self._rest()
            case Timer("want"):
                self.clock += 1
                self.request = (self.clock, self.id)
                self.log(f"wants to be inside, at {self.clock}")
                self.ask()
            case Timer("leave"):
                self.inside = False
                self.request = None
                self.log("leaves")
                self.release()
                self._rest()
            case Protocol(message, link):
                self.hear(message, link)

    def enter(self) -> None:
        self.inside = True
        self.entries += 1
        self.log(f"is inside ({self.entries} of {self.rounds})")
        self.set_timer(self.stay, "leave")

    def _rest(self) -> None:
        """Want nothing for a while, of random length, so that nodes ask in ever different orders."""
        if self.entries < self.rounds:
            self.set_timer(1 + self.random.randrange(1 + self.pause), "want")

    def set_up(self) -> None:
        raise NotImplementedError

    def ask(self) -> None:
        raise NotImplementedError

    def release(self) -> None:
        raise NotImplementedError

    def hear(self, message: Any, link: int) -> None:
        raise NotImplementedError


class LamportMutex(Contender):
    """Mutual exclusion: all nodes keep the same queue of requests, ordered by logical clocks."""

    def set_up(self) -> None:
        self.queue: dict[int, int] = {}  # The time of each node's request, if it has one.
        self.heard: dict[int, int] = {}  # The time of each other node's latest message.

    def ask(self) -> None:
        self.queue[self.id] = self.clock
        self.broadcast(Request(self.clock, self.id))
        self._enter_if_first()

    def release(self) -> None:
        del self.queue[self.id]
        self.clock += 1
        self.broadcast(Release(self.clock, self.id))

    def hear(self, message: Any, link: int) -> None:
        self.clock = max(self.clock, message.timestamp) + 1
        self.heard[message.sender] = message.timestamp
        match message:
            case Request(timestamp, sender):
                self.queue[sender] = timestamp
                self.send(Reply(self.clock, self.id), link)
            case Release(_, sender):
                del self.queue[sender]
        self._enter_if_first()

    def _enter_if_first(self) -> None:
        if self.request is None or self.inside:
            return
        if min((timestamp, node) for node, timestamp in self.queue.items()) == self.request and self._heard_from_all():
            self.enter()

    def _heard_from_all(self) -> bool:
        """Whether every other node has sent something that is later than the own request."""
        assert self.request is not None
        later = [node for node, timestamp in self.heard.items() if (timestamp, node) > self.request]
        return len(later) == self.num_nodes - 1


@always("at most one node is inside")
def one_inside(run: Scheduler) -> bool:
    if run.last is not None and run.node(run.last).inside:
        for node in run.nodes:
            assert node.id == run.last or not node.inside, f"{node.id} and {run.last} are inside at the same time"
    return True


@always("requests are granted in their order")
def granted_in_order(run: Scheduler, granted: dict[int, Stamp]) -> bool:
    for node in run.acted:
        if node.inside and granted.get(node.id) != node.request:
            latest = max(granted.values(), default=(0, 0))
            assert node.request > latest, f"{latest} was granted before {node.request}"
            granted[node.id] = node.request
    return True


@at_end("every node was inside as often as it wanted")
def all_served(run: Scheduler) -> bool:
    for node in run.nodes:
        assert node.entries == node.rounds, f"{node.id} was inside {node.entries} times, and wanted to {node.rounds}"
        assert not node.inside, f"{node.id} is inside still"
    return True


def each_entry_takes(messages: int, run: Scheduler) -> bool:
    """Compare the number of messages with the number of entries.

    Messages are counted from outside: of all events, one per node is its start and two per entry are timers.
    """
    entries = sum(node.entries for node in run.nodes)
    sent = run.result().events - run.num_nodes - 2 * entries
    assert sent == messages * entries, f"{entries} entries took {sent} messages"
    return True


@at_end("each entry takes 3 (n - 1) messages")
def three_messages_for_each(run: Scheduler) -> bool:
    return each_entry_takes(3 * (run.num_nodes - 1), run)


model = Algorithm(
    name="lamport-mutex",
    node=LamportMutex,
    topology="clique:4",
    properties=(one_inside, granted_in_order, all_served, three_messages_for_each),
    fifo=True,
    least={"nodes": 1, "rounds": 1},
)
