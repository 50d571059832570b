"""Vector clocks, and Lamport's scalar ones.

Every node counts its own events: what it does by itself, what it sends, what it receives. Its clock is a vector that
says of each node how many of that node's events it knows of, directly or by hearsay. Every message carries the clock of
its sender. A node that receives it takes the larger of both numbers for each node, and then counts the receipt as an
event of its own. The clock after an event is the event's stamp.

So the stamp of an event has for each node the number of those of its events that happened before, or are the event
itself. One event happened before another exactly if its stamp is nowhere larger than the other's, and differs from it;
if that is true of neither, they are concurrent. Lamport's clock is a single number, one more than that of all that is
known: it grows from what happened before to what happened after, but says nothing the other way round.

What nodes do here is nothing but an occasion: in every round each does something by itself, or sends a message to a
random neighbor. Clocks need nothing of the links: what is lost or late only makes fewer events known. Through a crash a
node has to keep its clock, or it would count the same numbers twice.

Messages also carry which event sent them, as a node and the place in its history. No clock is computed from that: it is
for oracles that want to know what really happened before what.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from worldline.model.time import SECOND
from worldline.nodes.algorithm import Algorithm
from worldline.nodes.node import Event, Node, Protocol, Recover, Start, Timer
from worldline.nodes.scheduler import Scheduler
from worldline.search.properties import at_end

Clock = tuple[int, ...]
Place = tuple[int, int]
"""Which event: a node, and how many it had before."""


class Stamped(Struct, frozen=True):
    """A message with the clocks of its sender, or an event with its own; `source` is the event that sent it."""

    clock: Clock
    lamport: int
    source: Place | None = None

    def __str__(self) -> str:
        return f"[clock = {text_of(self.clock)}, lamport = {self.lamport}]"


class VectorClocks(Node):
    """Causality: stamps of events say which happened before which, and which are concurrent."""

    stable = ("clock", "lamport", "history", "rounds_left")
    shows = ("clock", "lamport")

    def __init__(self, *given: Any, rounds: int = 6) -> None:
        super().__init__(*given)
        self.clock = [0] * self.num_nodes
        self.lamport = 0
        self.history: list[Stamped] = []
        self.rounds_left = rounds

    def execute(self, event: Event) -> None:
        match event:
            case Start() | Recover():
                self._wait_for_next_round()
            case Timer():
                self.rounds_left -= 1
                self._do_something()
                self._wait_for_next_round()
            case Protocol(message, _):
                self._receive(message)

    def _wait_for_next_round(self) -> None:
        if self.rounds_left > 0:
            self.set_timer(1 + self.random.randrange(SECOND), "round")

    def _do_something(self) -> None:
        links = self.links
        if not links or self.random.random() < 0.25:
            self._stamp("does something")
        else:
            link = links[self.random.randrange(len(links))]
            source = (self.id, len(self.history))
            self._stamp(f"sends over {link}")
            self.send(Stamped(tuple(self.clock), self.lamport, source), link)

    def _receive(self, message: Stamped) -> None:
        self.clock = [max(own, other) for own, other in zip(self.clock, message.clock, strict=True)]
        self.lamport = max(self.lamport, message.lamport)
        self._stamp("receives", message.source)

    def _stamp(self, what: str, source: Place | None = None) -> None:
        """Count an event, and write it down with what the clocks say after it."""
        self.clock[self.id] += 1
        self.lamport += 1
        self.history.append(Stamped(tuple(self.clock), self.lamport, source))
        self.log(f"{what} at {text_of(self.clock)}, lamport {self.lamport}")


def text_of(clock: list[int] | Clock) -> str:
    """Write a vector clock: ``<2 0 1>``."""
    return f"<{' '.join(map(str, clock))}>"


def is_before(one: Clock, other: Clock) -> bool:
    """Tell from stamps whether one event happened before another."""
    return one != other and all(mine <= yours for mine, yours in zip(one, other, strict=True))


def pasts(run: Scheduler) -> dict[Place, set[Place]]:
    """Find for every event all that happened before it, from the order at each node and from messages, not from clocks.

    Goes round and places those events whose causes have been placed, until there are none left.
    """
    found: dict[Place, set[Place]] = {}
    waiting = [(node.id, number) for node in run.nodes for number in range(len(node.history))]
    while waiting:
        rest = []
        for place in waiting:
            causes = _causes(run, place)
            if all(cause in found for cause in causes):
                found[place] = set(causes).union(*(found[cause] for cause in causes))
            else:
                rest.append(place)
        assert len(rest) < len(waiting), f"{rest[0]} has a cause that hadn't happened"
        waiting = rest
    return found


def _causes(run: Scheduler, place: Place) -> list[Place]:
    """Return the event before at the same node, and the one that sent what was received, where there are such."""
    node, number = place
    source = run.node(node).history[number].source
    return [*([(node, number - 1)] if number else []), *([source] if source else [])]


@at_end("stamps say exactly what happened before what")
def exact(run: Scheduler) -> bool:
    past = pasts(run)
    stamps = {(node, number): run.node(node).history[number].clock for node, number in past}
    for one, first in stamps.items():
        for other, second in stamps.items():
            happened_before = one in past[other]
            assert is_before(first, second) == happened_before, (
                f"{one} {'happened' if happened_before else 'did not happen'} before {other}, "
                f"and they are stamped {text_of(first)} and {text_of(second)}"
            )
    return True


@at_end("Lamport's clock grows from what happened before to what happened after")
def grows(run: Scheduler) -> bool:
    for (node, number), before in pasts(run).items():
        own = run.node(node).history[number].lamport
        for other, place in sorted(before):
            theirs = run.node(other).history[place].lamport
            assert theirs < own, f"{(other, place)} is at {theirs}, and {(node, number)} after it at {own}"
    return True


model = Algorithm(
    name="vector-clocks",
    node=VectorClocks,
    topology="random:6,degree=3",
    properties=(exact, grows),
    faults="crash,partition,link,loss,duplication",
    least={"nodes": 1, "rounds": 1},
)
