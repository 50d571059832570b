"""Kernel simulations that are small, and together use every word of the kernel."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from worldline.kernel import Entity, Interrupt, Resource, Signal, Simulation, receive
from worldline.model import MS, Network, link

UNTIL = "2min"
LEAST = 20 * MS
NEAR = Network(default=link("1ms"))

Steps = Generator[Any, Any, None]


class Customers(Entity):
    """Arrive at random, wait for a clerk, and are served."""

    def __init__(self, clerks: int) -> None:
        self.clerks = Resource(clerks)

    def start(self) -> Steps:
        while True:
            yield self.random.exponential("2s")
            self.process(self.served())

    def served(self) -> Steps:
        arrived = self.now
        with self.clerks.acquire() as turn:
            yield turn
            self.record("waited", self.now - arrived)
            yield self.random.exponential("3s")


class Ball(Entity):
    """Sends on what it gets, to one of many, after an exponential time: the benchmark PHOLD."""

    def __init__(self, others: int) -> None:
        self.others = others

    def on_ball(self, hops: int) -> None:
        delay = LEAST + self.random.exponential("1s")
        self.send(f"ball{self.random.randrange(self.others)}", "ball", hops + 1, delay=delay)


class Rumor(Entity):
    """Tells three others what it hears for the first time; the network decides when they hear it."""

    def __init__(self, others: int) -> None:
        self.others = others
        self.heard = False

    def on_ball(self, hops: int) -> None:
        if not self.heard:
            self.heard = True
            for _ in range(3):
                self.send(f"ball{self.random.randrange(self.others)}", "ball", hops + 1)


class Player(Entity):
    """Waits for a message in a process, and answers."""

    def __init__(self, other: str) -> None:
        self.other = other

    def start(self) -> Steps:
        if self.name == "ann":
            self.send(self.other, "ball", 0, delay="100ms")
        while True:
            ball = yield receive("ball")
            self.send(self.other, "ball", ball.payload + 1, delay="1s")


class Machine(Entity):
    """Works, is interrupted now and then, and fires a signal when it is mended."""

    def start(self) -> Steps:
        self.is_working = True
        work = self.process(self.work())
        while True:
            yield self.random.exponential("7s")
            if self.is_working:
                work.interrupt()

    def work(self) -> Steps:
        while True:
            begun = self.now
            try:
                yield "5s"
                self.record("done", 1)
            except Interrupt:
                self.is_working = False
                mended = Signal()
                self.process(self.mend(mended))
                yield mended
                self.is_working = True
                self.record("lost", self.now - begun)

    def mend(self, mended: Signal) -> Steps:
        yield self.random.exponential("1s")
        mended.fire()


class Parent(Entity):
    """Makes children, which end by themselves."""

    def start(self) -> Steps:
        for _ in range(20):
            yield self.random.exponential("4s")
            self.create(Child())


class Child(Entity):
    def start(self) -> Steps:
        yield self.random.exponential("5s")
        self.log(f"was here until {self.now}")
        self.end()


class Dice(Entity):
    """Draws from every distribution."""

    def start(self) -> Steps:
        stream = self.stream("dice")
        while True:
            yield "1s"
            self.record("uniform", stream.uniform(-1, 1))
            self.record("normal", stream.gauss(0, 1))
            self.record("exponential", stream.expovariate(2.0))
            self.record("choice", stream.choice("abcdef"))
            self.record("sample", stream.sample(range(100), 3))
            self.record("bits", stream.getrandbits(70))
            self.record("shuffled", stream.randint(1, 6))


def queue(seed: int = 1) -> Simulation:
    return _with(seed, {"shop": Customers(1)})


def two_clerks(seed: int = 1) -> Simulation:
    return _with(seed, {"shop": Customers(2), "branch": Customers(2)})


def hold(seed: int = 1) -> Simulation:
    simulation = _with(seed, {f"ball{number}": Ball(16) for number in range(16)}, network=Network(default=link(LEAST)))
    for number in range(16):
        simulation.send(f"ball{number}", "ball", 0)
    return simulation


def rumor(seed: int = 1) -> Simulation:
    network = Network(default=link("uniform(10ms, 80ms)", loss=0.1))
    simulation = _with(seed, {f"ball{number}": Rumor(100) for number in range(100)}, network=network)
    simulation.send("ball0", "ball", 0)
    return simulation


def players(seed: int = 1) -> Simulation:
    return _with(seed, {"ann": Player("bob"), "bob": Player("ann")}, network=Network(default=link("5ms")))


def machines(seed: int = 1) -> Simulation:
    return _with(seed, {f"machine{number}": Machine() for number in range(4)})


def children(seed: int = 1) -> Simulation:
    return _with(seed, {"parent": Parent()})


def dice(seed: int = 1) -> Simulation:
    return _with(seed, {"ann": Dice(), "bob": Dice()})


def _with(seed: int, entities: dict[str, Entity], network: Network = NEAR) -> Simulation:
    simulation = Simulation(seed=seed, network=network)
    for name, entity in entities.items():
        simulation.add(name, entity)
    return simulation
