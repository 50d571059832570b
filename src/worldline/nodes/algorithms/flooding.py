"""Flooding.

One node, the initiator, has news, and sends it to all of its neighbors. A node that gets it for the first time takes
it, and sends it to all neighbors but the one it came from. One that gets it again does nothing.

So it crosses every link, and reaches all nodes that can be reached. Each node sends once over each of its links, but
for the one by which it got the news; only the initiator has no such link. In a component of n nodes and m links these
are 2m - (n - 1) messages, whatever the order in which they arrive. None may get lost: where there is only one way to a
node, no node would try again.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.demands import demand_messages, demand_node
from worldline.nodes.node import Event, Node, Protocol, Start
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end


class News(Struct, frozen=True):
    """What all nodes shall know."""

    text: str

    def __str__(self) -> str:
        return f"[news = {self.text}]"


class Flooding(Node):
    """Broadcast: who hears news for the first time passes it on to all others it knows."""

    shows = ("taken",)

    def __init__(self, *given: Any, initiator: int = 0, text: str = "hello") -> None:
        super().__init__(*given)
        self.initiator = demand_node(self, initiator, "begin")
        self.text = text
        self.taken: list[str] = []

    def execute(self, event: Event) -> None:
        match event:
            case Start() if self.id == self.initiator:
                self._take(self.text)
            case Protocol(News(text), link) if not self.taken:
                self._take(text, link)

    def _take(self, text: str, source: int | None = None) -> None:
        self.taken.append(text)
        self.log(f"takes {text}")
        self.broadcast(News(text), but=source)


@always("no node takes news twice, nor other news than the initiator's")
def at_most_once(run: Scheduler) -> bool:
    for node in run.acted:
        told = run.node(node.initiator).text
        assert node.taken in ([], [told]), f"{node.id} has taken {node.taken}"
    return True


@at_end("exactly the nodes that can be reached have taken the news")
def reached(run: Scheduler) -> bool:
    reachable = run.topology.component(run.node(0).initiator)
    for node in run.nodes:
        assert bool(node.taken) == (node.id in reachable), f"{node.id} has taken {node.taken}"
    return True


@at_end("there are 2m - (n - 1) messages")
def messages(run: Scheduler) -> bool:
    reachable = run.topology.component(run.node(0).initiator)
    expected = 2 * run.topology.edges_within(reachable) - (len(reachable) - 1)
    return demand_messages(run, expected, expected)


model = Algorithm(
    name="flooding",
    node=Flooding,
    topology="random:12,degree=3",
    properties=(at_most_once, reached, messages),
    least={"nodes": 1, "initiator": 0},
)
