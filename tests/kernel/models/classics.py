"""Models that everybody measures with."""

from __future__ import annotations

from tests.kernel.models.collection import Diarist, model
from tests.kernel.models.links import Chatter
from worldline.kernel import Entity, Simulation
from worldline.model import MS, US, Network, link


class Phold(Entity):
    """One of PHOLD's logical processes: every event causes one other, anywhere."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.total = 0.0

    def start(self) -> None:
        for _ in range(4):
            self.on_event(None)

    def on_event(self, _: None) -> None:
        self.total += self.random.random()
        delay = 100 * US + self.random.exponential(MS)
        self.send(f"lp{self.random.randrange(self.count):02}", "event", delay=delay)


@model(until="8ms")
def phold() -> Simulation:
    """PHOLD, in small."""
    simulation = Simulation(network=Network(default=link("100us")))
    for number in range(24):
        simulation.add(f"lp{number:02}", Phold(24))
    return simulation


class Cell(Diarist):
    """A cell of a torus: tells its neighbors its value in every round, and adds up theirs."""

    def __init__(self, neighbors: list[str], value: int) -> None:
        super().__init__()
        self.neighbors = neighbors
        self.value = value

    def start(self) -> None:
        self.schedule("round", 0, delay=0)

    def on_round(self, number: int) -> None:
        for neighbor in self.neighbors:
            self.send(neighbor, "value", self.value)
        if number < 8:
            self.schedule("round", number + 1, delay="1us")

    def on_value(self, value: int) -> None:
        self.value = (31 * self.value + value) % 1009  # The order matters.
        self.diary.append((self.now, self.sender, self.sent_at, value))


@model()
def torus() -> Simulation:
    """A torus of fixed latencies, in rounds."""
    simulation = Simulation(declared_only=True)
    size = 5
    for row in range(size):
        for column in range(size):
            here = f"c{row}{column}"
            right, below = f"c{row}{(column + 1) % size}", f"c{(row + 1) % size}{column}"
            left, above = f"c{row}{(column - 1) % size}", f"c{(row - 1) % size}{column}"
            simulation.add(here, Cell([right, below, left, above], row * size + column))
            simulation.connect(here, right, "1us")
            simulation.connect(here, below, "1us")
    return simulation


@model()
def errand() -> Simulation:
    """Hardly anybody: fewer entities than workers, and only one that has something to do."""
    simulation = Simulation(network=Network(default=link("5ms")))
    simulation.add("porter", Chatter(["porter's friend"], 1, 20))
    simulation.add("porter's friend", Chatter(["porter"], 0, 0))
    return simulation
