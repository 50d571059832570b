"""Models whose links differ."""

from __future__ import annotations

from tests.kernel.models.collection import Diarist, Waiting, model
from tests.kernel.models.equal_times import Burster
from worldline.kernel import EntityMessage, Simulation
from worldline.model import HOUR, SECOND, Network, Rule, hold, link, partition


class Chatter(Diarist):
    """Passes what it gets on to a peer that it draws, a bit larger."""

    def __init__(self, peers: list[str], sparks: int, hops: int) -> None:
        super().__init__()
        self.peers = peers
        self.sparks = sparks
        self.hops = hops

    def start(self) -> None:
        for number in range(self.sparks):
            self.send(self.random.choice(self.peers), "even" if number % 2 else "odd", self.hops)

    def handle(self, message: EntityMessage) -> None:
        self.write(message)
        hops = message.payload if type(message.payload) is int else len(message.payload)
        if hops:
            topic = "even" if hops % 2 else "odd"
            payload = b"\x00" * (hops - 1) if hops % 3 else hops - 1
            self.send(self.random.choice(self.peers), topic, payload)


@model()
def weather() -> Simulation:
    """Links that lose, double, reorder, keep order, queue, are cut and held."""
    names = [f"n{number}" for number in range(8)]
    network = Network(
        default=link("uniform(2us, 9us)", loss=0.05, loss_at_sender=0.02, duplication=0.2),
        rules=(
            Rule(sender="n0", receiver="n1", link=link("normal(5us, 3us, 1us)", fifo=True, duplication=0.3)),
            Rule(sender="n1", link=link("exponential(1us, 4us)", bandwidth=2_000_000)),
            Rule(receiver="n2", topic="odd", link=link("3us", bandwidth=1_000_000, fifo=True, loss=0.1)),
            Rule(topic="even", link=link("4us", duplication=0.5)),
        ),
        outages=(
            *partition(["n3"], ["n4", "n5"], "10us", "40us"),
            *hold(["n6"], ["n0", "n7"], "5us", "60us"),
            *hold(["n6"], ["n7"], "50us", "70us"),
        ),
    )
    simulation = Simulation(network=network, seed=21)
    for name in names:
        simulation.add(name, Chatter([other for other in names if other != name], 4, 10))
    return simulation


@model()
def scales() -> Simulation:
    """Latencies from a nanosecond to a second between neighbors, in one model."""
    latencies = ["1ns", "1us", "1ms", "1s", "7ns", "uniform(1ns, 1s)", "1ns"]
    simulation = Simulation(network=Network(default=link("1h")), seed=4)
    names = [f"n{number}" for number in range(len(latencies))]
    for number, latency in enumerate(latencies):
        around = [names[number - 1], names[(number + 1) % len(names)]]
        simulation.add(names[number], Chatter(around, 3, 25))
        simulation.connect(names[number], names[(number + 1) % len(names)], link(latency))
    return simulation


def _linked(simulation: Simulation, links: list[tuple[str, str, str]], sparks: int, hops: int) -> Simulation:
    """Let chatterers talk along links: each is (one end, other end, latency)."""
    peers: dict[str, list[str]] = {}
    for first, second, latency in links:
        simulation.connect(first, second, link(latency))
        peers.setdefault(first, []).append(second)
        peers.setdefault(second, []).append(first)
    for name, around in peers.items():
        simulation.add(name, Chatter(around, sparks, hops))
    return simulation


@model()
def ring() -> Simulation:
    """One way around, links of different lengths: between workers, the short way back is a long way forth."""
    simulation = Simulation(declared_only=True, seed=1)
    for number in range(12):
        after = f"r{(number + 1) % 12:02}"
        simulation.add(f"r{number:02}", Chatter([after], 1 if number % 5 == 0 else 0, 40))
        simulation.connect(f"r{number:02}", after, f"{1 + number % 3}us", both=False)
    return simulation


@model(until="30us")
def tree() -> Simulation:
    """A binary tree, whose run is cut off at a moment at which much happens."""
    links = [(f"t{(number - 1) // 2}", f"t{number}", "3us") for number in range(1, 15)]
    return _linked(Simulation(declared_only=True, seed=6), links, 2, 40)


@model()
def cliques() -> Simulation:
    """Two groups of close neighbors, a millisecond apart."""
    links = [
        (f"{side}{first}", f"{side}{second}", "uniform(1us, 2us)")
        for side in "lr"
        for first in range(4)
        for second in range(first)
    ]
    return _linked(Simulation(declared_only=True, seed=9), [*links, ("l0", "r0", "1ms")], 2, 30)


@model()
def islands() -> Simulation:
    """Parts that have no link to each other, one of them a single entity: nobody waits for anybody elsewhere."""
    simulation = Simulation(declared_only=True, seed=7)
    links = [("a1", "a2", "1us"), ("a2", "a3", "2us"), ("b1", "b2", "1ns"), ("c1", "c2", "1s")]
    simulation.add("hermit", Burster([]))
    return _linked(simulation, links, 2, 15)


class Watchman(Diarist):
    """Sleeps for hours; when it wakes, the others hear of it within microseconds."""

    def __init__(self, others: list[str], naps: int) -> None:
        super().__init__()
        self.others = others
        self.naps = naps

    def start(self) -> Waiting:
        for nap in range(self.naps):
            yield HOUR + self.random.randrange(3) * SECOND
            self.send(self.random.choice(self.others), "call", nap)

    def on_call(self, nap: int) -> None:
        self.write(nap)
        if len(self.diary) < 40:
            self.send(self.random.choice(self.others), "call", nap)


@model()
def gaps() -> Simulation:
    """Hours without an event, and a lookahead of a microsecond: waiting must not cost an exchange per microsecond."""
    simulation = Simulation(network=Network(default=link("1us")), seed=13)
    names = [f"w{number}" for number in range(5)]
    for number, name in enumerate(names):
        simulation.add(name, Watchman([other for other in names if other != name], 3 * (number % 2)))
    return simulation
