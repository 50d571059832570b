"""Ricart and Agrawala's mutual exclusion: a reply is a permission, and the node that is first keeps it back.

A node that wants to be inside asks all others, with a number that is larger than all it has heard of; this number and
its own id, which decides between equal numbers, are its request. A node that is asked replies at once, unless it has a
smaller request of its own, or is inside: then it replies when it has left. With all replies, a node goes inside.

Two nodes can't be inside at the same time: each would have the other's reply. The one with the larger request got that
reply either while the other had a request too, which was smaller and so would have kept it back, or before the other
asked; but then the other had heard of the larger request, and made its own larger still. For the same reason requests
are granted in their order. No node waits for ever: the smallest request is kept back at most by the node that is
inside, which leaves.

Nothing is said here about the order in which messages arrive: they may overtake each other. They must not get lost,
nodes must stay up, and there are links between all of them. Each entry takes 2 (n - 1) messages: a request and a reply
for each of the others. There are no releases; the replies that were kept back are.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.lamport_mutex import (
    Contender,
    Request,
    all_served,
    each_entry_takes,
    granted_in_order,
    one_inside,
)
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import at_end


class Reply(Struct, frozen=True):
    """The sender has nothing against the request that it was asked with."""


class RicartAgrawala(Contender):
    """Mutual exclusion: all nodes are asked, and reply late if their own request is the older one."""

    def set_up(self) -> None:
        self.missing = 0  # Replies.
        self.deferred: list[int] = []  # The links by which to reply on leaving.

    def ask(self) -> None:
        self.missing = self.num_neighbors
        self.broadcast(Request(self.clock, self.id))
        self._enter_if_granted()

    def release(self) -> None:
        links, self.deferred = self.deferred, []
        for link in links:
            self.reply(link)

    def hear(self, message: Any, link: int) -> None:
        match message:
            case Request():
                self.judge(message, link)
            case Reply():
                self.missing -= 1
                self._enter_if_granted()

    def judge(self, request: Request, link: int) -> None:
        """Reply to a request now or later."""
        self.clock = max(self.clock, request.timestamp)
        if self.comes_first(request):
            self.deferred.append(link)
        else:
            self.reply(link)

    def comes_first(self, request: Request) -> bool:
        """Whether the node itself is inside, or to be let in before another request."""
        return self.request is not None and (self.inside or self.request < (request.timestamp, request.sender))

    def reply(self, link: int) -> None:
        self.send(Reply(), link)

    def _enter_if_granted(self) -> None:
        if not self.missing:
            self.enter()


@at_end("each entry takes 2 (n - 1) messages")
def two_messages_for_each(run: Scheduler) -> bool:
    return each_entry_takes(2 * (run.num_nodes - 1), run)


model = Algorithm(
    name="ricart-agrawala",
    node=RicartAgrawala,
    topology="clique:4",
    properties=(one_inside, granted_in_order, all_served, two_messages_for_each),
    least={"nodes": 1, "rounds": 1},
)
