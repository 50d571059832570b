"""Models in which much happens at the same time."""

from __future__ import annotations

from tests.kernel.models.collection import Diarist, Waiting, model
from worldline.kernel import Simulation
from worldline.model import US, Network, link


class Crier(Diarist):
    """Calls out to everybody once it has heard everybody."""

    def __init__(self, crowd: list[str], rounds: int) -> None:
        super().__init__()
        self.crowd = crowd
        self.rounds = rounds
        self.heard = 0

    def start(self) -> None:
        self.cry()

    def cry(self) -> None:
        for other in self.crowd:
            if other != self.name:
                self.send(other, "cry", (self.rounds, self.random.randrange(100)))
        self.rounds -= 1

    def on_cry(self, said: tuple[int, int]) -> None:
        self.write(said)
        self.heard += 1
        if self.heard % (len(self.crowd) - 1) == 0 and self.rounds:
            self.cry()


@model()
def ties() -> Simulation:
    """Everything that happens at all happens at the same few moments. Names aren't added in their order."""
    simulation = Simulation(network=Network(default=link("1us")), seed=5)
    crowd = [f"n{(7 * number) % 10}" for number in range(10)]
    for name in crowd:
        simulation.add(name, Crier(crowd, 5))
    return simulation


class Burster(Diarist):
    """Does much without any time passing, then stirs up its neighbors, a nanosecond away."""

    def __init__(self, neighbors: list[str]) -> None:
        super().__init__()
        self.neighbors = neighbors

    def start(self) -> None:
        self.schedule("burst", (6, 4), delay=0)

    def on_burst(self, left: tuple[int, int]) -> None:
        self.write(left)
        steps, rounds = left
        if steps:
            self.schedule("burst", (steps - 1, rounds), delay=0)
            if steps == 3:
                self.process(self.blink(rounds))
        elif rounds:
            for neighbor in self.neighbors:
                self.send(neighbor, "stir", rounds - 1, delay=1)

    def on_stir(self, rounds: int) -> None:
        self.write(rounds)
        self.schedule("burst", (self.random.randrange(4), rounds if self.random.random() < 0.5 else 0), delay=0)

    def blink(self, rounds: int) -> Waiting:
        for number in range(rounds):
            yield 0
            self.write(("blink", number))


@model()
def bursts() -> Simulation:
    """Events without a delay, in chains and in processes, at the same moments on all workers."""
    simulation = Simulation(seed=2)
    for number in range(9):
        simulation.add(f"b{number}", Burster([f"b{(number + step) % 9}" for step in (1, 3)]))
    return simulation


class Sink(Diarist):
    """Gets everything, and answers."""

    def on_drop(self, what: int) -> None:
        self.write(what)
        self.record("level", len(self.diary))
        self.send(self.sender, "ack", len(self.diary), delay=US * (1 + what % 2))


class Source(Diarist):
    """Sends to one place at the same times as everybody else."""

    def start(self) -> None:
        for turn in range(3):
            self.schedule("turn", turn, delay=turn * US)

    def on_turn(self, turn: int) -> None:
        self.send("sink", "drop", turn, delay=(4 - turn) * US)  # All three rounds arrive at one moment.

    def on_ack(self, number: int) -> None:
        self.write(number)


@model()
def fan_in() -> Simulation:
    """Fifty talk to one, and all that they say arrives at the same moment."""
    simulation = Simulation(network=Network(default=link("1us")))
    for number in range(50):
        simulation.add(f"source {number:02}", Source())
    simulation.add("sink", Sink())
    return simulation
