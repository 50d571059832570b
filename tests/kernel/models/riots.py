"""Models in which anything happens at any time."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.kernel.models.collection import Diarist, Waiting, model
from worldline.kernel import Interrupt, Resource, Signal, Simulation, receive, wait
from worldline.model import US, Network, link


class Rioter(Diarist):
    """Does whatever its draws say, on every occasion: all that an entity can do, in every mixture."""

    def __init__(self, peers: list[str], energy: int, clumsiness: float, depth: int = 1) -> None:
        super().__init__()
        self.peers = peers
        self.energy = energy
        self.clumsiness = clumsiness
        self.depth = depth
        self._timers: list[Any] = []
        self._signal = Signal()
        self._room = Resource(1)
        self._wanderers: dict[int, Any] = {}
        self._begun: list[int] = []  # Those of them that can be interrupted: one that hasn't begun can't catch it.

    def start(self) -> Waiting:
        if self.depth:
            for _ in range(2):  # Everybody knows that these exist, or have existed.
                self.create(Rioter(self.peers, self.energy // 2, self.clumsiness, self.depth - 1))
        while not self.has_ended:
            try:
                limit = self.random.randrange(4) * US if self.energy > 0 else None
                message = yield receive(limit=limit)
                self.write(message)
                self.riot()
                if self.has_ended:
                    return
                yield self.random.randrange(3) * US
            except Interrupt as interrupt:
                self.write(interrupt.cause)
                self.riot()

    def on_stone(self, stone: Any) -> None:
        self.write(repr(stone))
        if isinstance(stone, list):
            stone.append("caught")
        self.riot()

    def on_clock(self, number: int) -> None:
        self.write(number)
        self.riot()

    def riot(self, deeds: int = 1) -> None:
        if self.random.random() < self.clumsiness:
            raise ValueError(f"fell down with energy {self.energy}")
        self.energy -= 1
        for _ in range(deeds if self.energy > 0 else 0):
            if not self.has_ended:
                getattr(self, self.random.choice(_DEEDS))()

    def throw(self) -> None:
        stone = self.random.choice([None, self.energy, -self.energy, "pebble", 0.1 * self.energy, [self.energy]])
        delay = self.random.choice([None, None, 20 * US, "25us"])
        self.send(self.someone(), self.random.choice(["stone", "stone", "note"]), stone, delay=delay)
        if isinstance(stone, list):
            stone.clear()

    def someone(self) -> str:
        return self.random.choice(self.peers) + self.random.choice(["", "", "", "/1", "/2"])

    def wind_up(self) -> None:
        self._timers.append(self.schedule("clock", self.energy, delay=self.random.choice((0, 0, 1, US, 3 * US))))

    def stop_clock(self) -> None:
        if self._timers:
            self.write(self.cancel(self._timers.pop(self.random.randrange(len(self._timers)))))

    def poke(self) -> None:
        self.interrupt(self.someone(), self.energy)

    def call(self) -> None:
        number = len(self._wanderers)
        self._wanderers[number] = self.process(self.wander(number))

    def wander(self, number: int) -> Waiting:
        self._begun.append(number)
        try:
            with self._room.acquire() as turn:
                self.write((number, (yield wait(turn, limit=2 * US)) is not None))
                yield self.random.randrange(3) * US
                self.write((number, (yield wait(self._signal, limit=US))))
                note = yield receive("note", limit=self.random.randrange(3) * US)
            self.write((number, note))
        except Interrupt as interrupt:
            self.write((number, interrupt.cause))
        self._begun.remove(number)
        self.riot(2)
        return number

    def ring(self) -> None:
        self._signal.fire(self.energy)
        self._signal = Signal()

    def disturb(self) -> None:
        for number in list(self._begun):
            if self.random.random() < 0.5:
                self._wanderers[number].interrupt(self.energy)

    def breed(self) -> None:
        if self.energy > 6:
            self.create(Rioter(self.peers, self.energy // 3, self.clumsiness, 0))

    def leave(self) -> None:
        if self.random.random() < 0.2:
            self.end()

    def count(self) -> None:
        self.record("energy", self.energy)


_DEEDS = ("throw",) * 5 + ("wind_up", "wind_up", "stop_clock", "poke", "call", "call", "ring", "disturb", "breed")
_DEEDS += ("leave", "count")


def riot(seed: int, clumsiness: float = 0.0) -> Simulation:
    """Build a mixture of everything; links and energies are drawn too. Clumsy ones fail, and with them the run."""
    random = Random(seed)
    peers = [f"r{number}" for number in range(random.randint(2, 6))]
    latency = random.choice(["1us", "uniform(1us, 4us)", "exponential(10ns, 1us)", "2ns"])
    weather = random.choice([{}, {}, {"fifo": True}, {"loss": 0.1, "duplication": 0.3}, {"bandwidth": 10**7}])
    simulation = Simulation(
        network=Network(default=link(latency, **weather)), seed=seed, declared_only=random.random() < 0.3
    )
    for number, name in enumerate(peers):
        simulation.add(name, Rioter(peers, random.choice((5, 20, 40)), clumsiness))
        for other in peers[:number]:
            if simulation._declared_only or random.random() < 0.2:
                simulation.connect(name, other, link(random.choice([latency, "1us", "5us", "uniform(3ns, 9us)"])))
    for at in random.choices(range(20), k=3):
        simulation.send(random.choice(peers), "stone", at, at=at * US)
    return simulation


@model()
def riots() -> Simulation:
    """One such mixture; others are drawn where there is time for it."""
    return riot(1)
