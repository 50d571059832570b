"""A simulation of the kernel that leaks."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from leaking import call, leaked  # type: ignore[import-not-found]  # It lies beside this file.

from worldline.kernel import Entity, Simulation


class Teller(Entity):
    """Tells the ledger three times that it is there, and between two of them what it has got, if it has."""

    def __init__(self, leak: str | None = None) -> None:
        self.leak = leak

    def start(self) -> Generator[Any, Any, None]:
        for number in range(3):
            yield "1ms"
            call()
            self.send("ledger", "tick", number, delay="1ms")
            if number == 1 and self.leak is not None:
                self.send("ledger", "leak", leaked(self.leak), delay="1ms")

    def on_news(self, what: Any) -> None:
        if self.name == "carol":
            self.send("alice", "news", what, delay="1ms")


class Ledger(Entity):
    """Counts, and tells carol what bob has told."""

    def start(self) -> None:
        self.ticks = 0

    def on_tick(self, number: int) -> None:
        self.ticks += number

    def on_leak(self, what: Any) -> None:
        self.send("carol", "news", what, delay="1ms")


def model(*, seed: int = 0, leak: str = "none") -> Simulation:
    simulation = Simulation(seed=seed)
    for name in ("alice", "bob", "carol"):
        simulation.add(name, Teller(leak if name == "bob" else None))
    simulation.add("ledger", Ledger())
    return simulation
