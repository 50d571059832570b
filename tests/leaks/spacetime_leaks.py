"""Agents in spacetime that leak."""

from __future__ import annotations

from typing import Any

from leaking import call, leaked  # type: ignore[import-not-found]  # It lies beside this file.

from worldline.spacetime import Agent, Channel, ForwardSimulation, Minkowski

UNTIL = 30.0


class Teller(Agent):
    """Tells the ledger three times that it is there; and what it has got, if it has, when it is asked."""

    to_ledger: Channel
    to_alice: Channel | None = None
    leak = "none"

    def tell(self, number: int) -> None:
        call()
        self.to_ledger.send(Ledger.tick)
        if number < 3:
            self.after(1.0, Teller.tell, number + 1)

    def answer(self) -> None:
        self.to_ledger.send(Ledger.hear, leaked(self.leak))

    def news(self, what: Any) -> None:
        if self.to_alice is not None:
            self.to_alice.send(Teller.news, what)


class Ledger(Agent):
    """Asks bob when it has heard all, so that whoever shares a process with him has been there; tells carol then."""

    to_bob: Channel
    to_carol: Channel
    ticks = 0

    def tick(self) -> None:
        self.ticks += 1
        if self.ticks == 9:
            self.to_bob.send(Teller.answer)

    def hear(self, what: Any) -> None:
        self.to_carol.send(Teller.news, what)


def model(*, seed: int = 0, leak: str = "none") -> ForwardSimulation:
    simulation = ForwardSimulation(Minkowski(2), seed=seed)
    with simulation:
        ledger = Ledger()
        ledger.name = "ledger"
        tellers = {}
        for place, name in enumerate(("alice", "bob", "carol")):
            tellers[name] = teller = Teller()
            teller.name = name
            teller.jump_to((0.0, 1.0 + place))
            teller.to_ledger = Channel(teller, ledger)
            teller.after(1.0, Teller.tell, 1)
        tellers["bob"].leak = leak
        tellers["carol"].to_alice = Channel(tellers["carol"], tellers["alice"])
        ledger.to_bob = Channel(ledger, tellers["bob"])
        ledger.to_carol = Channel(ledger, tellers["carol"])
    return simulation
