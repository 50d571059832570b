"""Models whose entities come and go."""

from __future__ import annotations

from typing import Any

from tests.kernel.models.collection import Diarist, model
from worldline.kernel import Simulation
from worldline.model import US, Network, link


class Ancestor(Diarist):
    """Creates children, who create children; talks to anybody's, and leaves when its draws say so."""

    def __init__(self, roots: list[str], depth: int) -> None:
        super().__init__()
        self.roots = roots
        self.depth = depth

    def start(self) -> None:
        if self.depth:
            for _ in range(11 if self.depth == 2 else 2):  # More than nine, as n/10 comes before n/9.
                self.create(Ancestor(self.roots, self.depth - 1))
            self.create(Ancestor(self.roots, 0), "heir")
        self.schedule("talk", 3, delay=US)
        self.schedule("leave", delay=2 * US + self.random.randrange(6) * US)

    def on_talk(self, left: int) -> None:
        root = self.random.choice(self.roots)
        child = self.random.choice(["", "/1", "/9", "/10", "/11", "/heir", "/2/1", "/10/heir"])
        for word in (left, -left):  # At once, from one sender: the second must not overtake the first.
            self.send(root + child, "word", word)
        if left:
            self.schedule("talk", left - 1, delay=US)

    def on_word(self, left: int) -> None:
        self.write(left)

    def on_leave(self, _: None) -> None:
        self.record("words", len(self.diary))
        if self.random.random() < 0.6:
            self.end()
        elif self.depth:
            self.create(Ancestor(self.roots, 0), "late")


@model()
def lineage() -> Simulation:
    """Entities come and go, creators before those whom they created; all names sort into each other's midst."""
    roots = ["b", "b!", "b-1", "b.", "b0", "a", "c"]  # A slash sorts between some of these.
    simulation = Simulation(network=Network(default=link("1us")), seed=11)
    for name in roots:
        simulation.add(name, Ancestor(roots, 2))
    return simulation


class Monarch(Diarist):
    """Tells all founders its name, has an heir, and leaves: some before the answer is there."""

    def __init__(self, founders: list[str], left: int) -> None:
        super().__init__()
        self.founders = founders
        self.left = left

    def start(self) -> None:
        self.schedule("reign", delay=US)

    def on_reign(self, _: None) -> None:
        for name in self.founders:
            self.send(name, "crown", self.name)
        self.record("left", self.left)
        if self.left:
            self.create(Monarch(self.founders, self.left - 1), "heir" if self.left % 3 else None)
        if self.name not in self.founders:
            self.schedule("leave", delay=(1 + self.left % 3) * US)

    def on_crown(self, name: str) -> None:
        self.write(name)
        self.send(name, "hail", self.name)

    def on_hail(self, founder: str) -> None:
        self.write(founder)

    def on_leave(self, _: None) -> None:
        self.end()


@model()
def dynasties() -> Simulation:
    """Generations follow each other until there are hashes in their names, at equal times, so that names decide."""
    founders = ["a", "b", "b/1", "~"]
    simulation = Simulation(network=Network(default=link("1us")), seed=5)
    for name in founders:
        simulation.add(name, Monarch(founders, 90 if name != "b" else 0))
    return simulation


class Nursery(Diarist):
    """Creates a child at 10us, which creates one in turn; both leave before the nursery does."""

    def start(self) -> None:
        self.schedule("birth", delay=10 * US)
        self.schedule("close", delay=60 * US)

    def on_birth(self, _: None) -> None:
        self.create(Child(2), "kid")

    def on_word(self, said: Any) -> None:
        self.write(said)

    def on_close(self, _: None) -> None:
        self.end()


class Child(Nursery):
    """Lives for 20us. Its last word is under way when it is gone."""

    def __init__(self, generations: int) -> None:
        super().__init__()
        self.generations = generations

    def start(self) -> None:
        self.schedule("close", delay=20 * US)
        if self.generations:
            self.schedule("birth", delay=5 * US)

    def on_birth(self, _: None) -> None:
        self.create(Child(self.generations - 1), "kid")

    def on_close(self, _: None) -> None:
        self.record("said", len(self.diary))
        self.send("stranger", "word", self.diary[-3:], delay=15 * US)
        self.end()


class Stranger(Diarist):
    """Writes to children elsewhere: before they are there, at the very moment, while they live, and too late."""

    def __init__(self, nurseries: list[str]) -> None:
        super().__init__()
        self.nurseries = nurseries

    def start(self) -> None:
        for sent in (0, 5, 9, 15, 20, 29, 30, 31, 59, 70):
            self.schedule("write", sent, delay=sent * US)

    def on_write(self, sent: int) -> None:
        for nursery in self.nurseries:
            for delay in (1, 5, 10, 15, 20, 30):
                arrival = sent + delay
                if (arrival, sent) > (10, 0):  # At one moment, what was sent first comes first: the birth was.
                    self.send(f"{nursery}/kid", "word", (sent, arrival), delay=delay * US)
                if (arrival, sent) > (15, 10):
                    self.send(f"{nursery}/kid/kid", "word", (sent, arrival), delay=delay * US)
                if arrival >= 50:
                    self.send(nursery, "word", (sent, arrival), delay=delay * US)
                    self.interrupt(f"{nursery}/kid", sent, delay=delay * US)

    def on_word(self, said: Any) -> None:
        self.write(said)


@model()
def strangers() -> Simulation:
    """Messages to entities of other workers that aren't there yet, are there just now, or have ended."""
    simulation = Simulation(network=Network(default=link("1us")))
    nurseries = ["nursery 1", "nursery 2", "zoo"]
    for name in nurseries:
        simulation.add(name, Nursery())
    simulation.add("stranger", Stranger(nurseries))
    simulation.add("stranger 2", Stranger(nurseries))
    for at in (0, 10, 20, 25, 80):
        simulation.send("stranger", "word", f"sent from outside for {at}", at=at * US)
        simulation.send("zoo/kid", "word", "from outside", at=(at + 11) * US)
    return simulation
