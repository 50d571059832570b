"""Gossip: rumours spread by chance.

One node, the initiator, knows a rumour. A node that knows it tells it to one neighbor in every round, drawn at random.
Rounds are timers of each node's own, no node waits for another. That needs nothing of the links: what gets lost, or
meets a neighbor that is down, is made up for by the next rounds. What a node knows it keeps through crashes.

With `pull`, nodes that don't know anything ask a neighbor in every round, which tells the rumour if it knows it. That's
faster in the end, when few are left that haven't heard it: they needn't wait for being found.

With a `patience` of k, a node loses interest when it has told the rumour k times in vain, to a node that answered that
it was no news. Then all comes to an end, at the price that perhaps some never hear of it, unless they ask. With a
patience of 0, no node ever stops, and the run has to be ended.

Certain is: no node knows a rumour that none told, none forgets it, and one that has lost interest has a neighbor that
knows. That all know in the end is only probable. If none loses interest, the chance that one is left out falls by a
constant factor with every round: a node with d neighbors that know, and have d neighbors each, is told by none of them
in r rounds with probability (1 - 1/d)^(d r), below e^-r. That all know is demanded at the end, and there are 200
rounds, 60 of them after all faults. On shapes where some have very many neighbors it takes more of them.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.algorithms.demands import demand_duration, demand_node
from worldline.nodes.node import Event, Node, Protocol, Recover, Start, Timer
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import always, at_end


class Rumour(Struct, frozen=True):
    """What one tells another."""

    text: str

    def __str__(self) -> str:
        return f"[rumour = {self.text}]"


class NoNews(Struct, frozen=True):
    """The answer of one who has known it already."""

    def __str__(self) -> str:
        return "[no news]"


class Ask(Struct, frozen=True):
    """Is there anything new?"""

    def __str__(self) -> str:
        return "[ask]"


class Gossip(Node):
    """Rumours: a node that knows one tells it to a random neighbor from time to time."""

    stable = ("rumour", "in_vain")
    shows = ("rumour",)

    def __init__(
        self,
        *given: Any,
        initiator: int = 0,
        text: str = "hello",
        period: str = "500ms",
        pull: bool = False,
        patience: int = 0,
    ) -> None:
        super().__init__(*given)
        self.initiator = demand_node(self, initiator, "begin")
        self.text = text
        self.period = demand_duration(period, "a period")
        self.pull = pull
        self.patience = patience
        self.rumour: str | None = None
        self.in_vain = 0

    @property
    def has_lost_interest(self) -> bool:
        return 0 < self.patience <= self.in_vain

    def execute(self, event: Event) -> None:
        match event:
            case Start() | Recover():
                if self.id == self.initiator and self.rumour is None:
                    self._learn(self.text)
                self._wait_for_next_round()
            case Timer():
                self._call_neighbor()
                self._wait_for_next_round()
            case Protocol(Rumour(text), link):
                if self.rumour is None:
                    self._learn(text)
                    self._wait_for_next_round()
                else:
                    self.send(NoNews(), link)
            case Protocol(Ask(), link) if self.rumour is not None:
                self.send(Rumour(self.rumour), link)
            case Protocol(NoNews()):
                self._lose_patience()

    def _learn(self, text: str) -> None:
        self.rumour = text
        self.log(f"learns {text}")

    def _call_neighbor(self) -> None:
        message = Ask() if self.rumour is None else Rumour(self.rumour)
        links = self.links
        if links:
            self.send(message, links[self.random.randrange(len(links))])

    def _wait_for_next_round(self) -> None:
        """Tell, or ask, some time later; who learns something in the middle of a round begins a new one."""
        if self.pull if self.rumour is None else not self.has_lost_interest:
            self.set_timer(self.period, "round")

    def _lose_patience(self) -> None:
        self.in_vain += 1
        if self.has_lost_interest and self.cancel_timer("round"):
            self.log(f"loses interest, having told it {self.in_vain} times in vain")


@always("no node knows what none told, and none forgets")
def only_hearsay(run: Scheduler, knowing: dict[int, None]) -> bool:
    for node in run.acted:
        assert node.id not in knowing or node.rumour is not None, f"{node.id} has forgotten it"
        if node.rumour is not None and node.id not in knowing:
            assert node.rumour == run.node(node.initiator).text, f"{node.id} knows {node.rumour!r}, which no node told"
            heard = any(neighbor in knowing for neighbor in run.topology.neighbors[node.id])
            assert node.id == node.initiator or heard, f"{node.id} knows it, and none of its neighbors does"
            knowing[node.id] = None
    return True


@always("who has lost interest has a neighbor who knows")
def in_vain_for_a_reason(run: Scheduler) -> bool:
    for node in run.acted:
        if node.has_lost_interest:
            knowing = [neighbor for neighbor in run.topology.neighbors[node.id] if run.node(neighbor).rumour]
            assert knowing, f"{node.id} has lost interest, and none of its neighbors knows"
    return True


@at_end("all nodes that can be reached know, unless all may lose interest")
def reached(run: Scheduler) -> bool:
    first = run.node(0)
    if first.patience > 0 and not first.pull:
        return True
    for node in run.topology.component(first.initiator):
        assert run.node(node).rumour is not None, f"{node} doesn't know"
    return True


model = Algorithm(
    name="gossip",
    node=Gossip,
    topology="torus:4x4",
    properties=(only_hearsay, in_vain_for_a_reason, reached),
    until="100s",
    faults="crash,partition,link,loss,duplication",
    least={"nodes": 1, "initiator": 0, "patience": 1},
)
