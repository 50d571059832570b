"""Agents in spacetime that leak."""

from __future__ import annotations

from typing import Any

from leaking import call, leaked  # type: ignore[import-not-found]  # It lies beside this file.

from worldline.spacetime import Agent, Channel, ForwardSimulation, Minkowski

UNTIL = 30.0


class Teller(Agent):
    """Tells the ledger three times that it is there, and between two of them what it has got, if it has."""

    to_ledger: Channel
    to_alice: Channel | None = None
    leak: str | None = None

    def tell(self, number: int) -> None:
        call()
        self.to_ledger.send(Ledger.tick, number)
        if number == 1 and self.leak is not None:
            self.to_ledger.send(Ledger.hear, leaked(self.leak))
        if number < 2:
            self.after(1.0, Teller.tell, number + 1)

    def news(self, what: Any) -> None:
        if self.to_alice is not None:
            self.to_alice.send(Teller.news, what)


class Ledger(Agent):
    """Counts, and tells carol what bob has told."""

    to_carol: Channel
    ticks = 0

    def tick(self, number: int) -> None:
        self.ticks += number

    def hear(self, what: Any) -> None:
        self.to_carol.send(Teller.news, what)


def model(*, executor: Any = "inline", seed: int = 0, trace: bool = False, leak: str = "none") -> ForwardSimulation:
    simulation = ForwardSimulation(Minkowski(2), executor=executor, seed=seed, trace=trace)
    with simulation:
        ledger = Ledger()
        ledger.name = "ledger"
        tellers = {}
        for place, name in enumerate(("alice", "bob", "carol")):
            tellers[name] = teller = Teller()
            teller.name = name
            teller.jump_to((0.0, 1.0 + place))
            teller.to_ledger = Channel(teller, ledger)
            teller.after(1.0, Teller.tell, 0)
        tellers["bob"].leak = leak
        tellers["carol"].to_alice = Channel(tellers["carol"], tellers["alice"])
        ledger.to_carol = Channel(ledger, tellers["carol"])
    return simulation
