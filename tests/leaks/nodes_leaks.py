"""A distributed algorithm that leaks: node 0 is alice, 1 bob, 2 carol, and 3 the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leaking import call, leaked  # type: ignore[import-not-found]  # It lies beside this file.

from worldline.nodes import Algorithm, Event, Node, Protocol, Start, Timer

ALICE, BOB, CAROL, LEDGER = range(4)


@dataclass(frozen=True)
class Tick:
    number: int


@dataclass(frozen=True)
class Leak:
    what: Any


@dataclass(frozen=True)
class News:
    what: Any


class Leaky(Node):
    """Tells the ledger three times that it is there, and between two of them what it has got, if it is bob."""

    def __init__(self, *given, leak: str = "none") -> None:  # type: ignore[no-untyped-def]
        super().__init__(*given)
        self.leak = leak
        self.ticks = 0

    def execute(self, event: Event) -> None:
        if isinstance(event, Start) and self.id != LEDGER:
            self.set_timer("1ms")
        elif isinstance(event, Timer):
            self.tell()
        elif isinstance(event, Protocol) and isinstance(event.message, Leak):
            self.send(News(event.message.what), self.link_to(CAROL))
        elif isinstance(event, Protocol) and isinstance(event.message, News) and self.id == CAROL:
            self.send(event.message, self.link_to(ALICE))

    def tell(self) -> None:
        call()
        self.send(Tick(self.ticks), self.link_to(LEDGER))
        if self.ticks == 1 and self.id == BOB:
            self.send(Leak(leaked(self.leak)), self.link_to(LEDGER))
        self.ticks += 1
        if self.ticks < 3:
            self.set_timer("1ms")

    def link_to(self, other: int) -> int:
        """Return the link to another node of the clique, where links are in the order of ids."""
        return other if other < self.id else other - 1


model = Algorithm(name="leaky", node=Leaky, topology="clique:4", latency="1ms")
