"""Flooding.

One node, the initiator, has news, and sends it to all of its neighbours. Who gets it for the first time takes it, and
sends it to all neighbours but the one it came from. Who gets it again does nothing.

So it crosses every link, and reaches whoever can be reached. Each node sends once over each of its links, but for the
one by which it got the news; only the initiator has no such link. In a component of n nodes and m links these are
2m - (n - 1) messages, whatever the order in which they arrive. None may get lost: where there is only one way to a
node, nobody would try again.
"""

from __future__ import annotations

from msgspec import Struct

from worldline.model.errors import ConfigurationError, shown
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.events import Event, Protocol, Start
from worldline.nodes.node import Node, Send
from worldline.nodes.properties import always, at_end
from worldline.nodes.scheduler import Scheduler


class News(Struct, frozen=True):
    """What everybody shall know."""

    text: str

    def __str__(self) -> str:
        return f"[news = {self.text}]"


class Flooding(Node):
    """Broadcast: who hears news for the first time passes it on to everybody else it knows."""

    def __init__(
        self,
        num_nodes: int,
        id: int,  # noqa: A002
        num_neighbors: int,
        send: Send,
        *,
        initiator: int = 0,
        text: str = "hello",
    ) -> None:
        super().__init__(num_nodes, id, num_neighbors, send)
        check_initiator(initiator, num_nodes)
        self.initiator = initiator
        self.text = text
        self.taken: list[str] = []
        self.sent = 0

    def execute(self, event: Event) -> None:
        match event:
            case Start() if self.id == self.initiator:
                self._take(self.text)
            case Protocol(News(text), link) if not self.taken:
                self._take(text, link)

    def _take(self, text: str, source: int | None = None) -> None:
        self.taken.append(text)
        self.log(f"takes {text}")
        for link in self.links:
            if link != source:
                self.sent += 1
                self.send(News(text), link)


def check_initiator(initiator: int, num_nodes: int) -> None:
    """Refuse an initiator that doesn't exist: nothing would happen at all."""
    if not 0 <= initiator < num_nodes:
        raise ConfigurationError(
            f"there is no node {shown(initiator)} to begin", advice=f"the nodes are 0 to {num_nodes - 1}"
        )


def component_of(run: Scheduler, node: int) -> list[int]:
    """Return who can be reached from a node, itself too."""
    return next(group for group in run.topology.components() if node in group)


def links_within(run: Scheduler, group: list[int]) -> int:
    """Count the links of a component."""
    return sum(len(run.topology.neighbours[node]) for node in group) // 2


@always("nobody takes news twice, nor other news than the initiator's")
def at_most_once(run: Scheduler) -> bool:
    for node in run.nodes if run.last is None else (run.node(run.last),):
        told = run.node(node.initiator).text
        assert node.taken in ([], [told]), f"{node.id} has taken {node.taken}"
    return True


@at_end("whoever can be reached has taken the news, and nobody else")
def everybody(run: Scheduler) -> bool:
    reachable = component_of(run, run.node(0).initiator)
    for node in run.nodes:
        assert bool(node.taken) == (node.id in reachable), f"{node.id} has taken {node.taken}"
    return True


@at_end("there are 2m - (n - 1) messages")
def messages(run: Scheduler) -> bool:
    reachable = component_of(run, run.node(0).initiator)
    expected = 2 * links_within(run, reachable) - (len(reachable) - 1)
    sent = sum(node.sent for node in run.nodes)
    assert sent == expected, f"it took {sent} messages instead of {expected}"
    return True


ALGORITHM = Algorithm(
    name="flooding",
    node=Flooding,
    topology="random:12,degree=3",
    properties=(at_most_once, everybody, messages),
)
