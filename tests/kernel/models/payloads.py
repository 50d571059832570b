"""Models whose messages carry what can be changed, shared and large."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from tests.kernel.models.collection import Diarist, Waiting, model
from worldline.kernel import Entity, EntityMessage, Simulation, process, receive
from worldline.model import MS, SECOND, TIME_MAX, US, Network, link


@dataclass
class Basket:
    """Something that can change, inside and out."""

    owner: str
    apples: list[int] = field(default_factory=list)
    labels: dict[str, list[int]] = field(default_factory=dict)


class Crate(Struct):
    """Something else that can."""

    baskets: list[int]
    weight: float = 0.5


class Trader(Diarist):
    """Goes on to change what it has sent, and what it was given."""

    def __init__(self, others: list[str]) -> None:
        super().__init__()
        self.others = others
        self.basket = Basket("nobody")
        self.seen: list[Any] = []

    def start(self) -> None:
        self.basket.owner = self.name
        for turn in range(3):
            self.schedule("trade", [turn, {"left": 3}], delay=turn * US)

    def on_trade(self, state: list[Any]) -> None:
        turn, options = state
        crate, numbers, tags = Crate([turn]), [turn], {"x", f"turn {turn}", "y"}
        for other in self.others:
            self.basket.apples.append(turn)
            self.basket.labels.setdefault(other, []).append(len(self.basket.apples))
            self.send(other, "basket", self.basket)
            self.send(other, "crate", crate)
            self.send(other, "things", (numbers, {"tags": tags, self.name: numbers}, bytearray(b"ab"), -0.0))
            self.send(other, "number", 2**80 + turn)
            crate.baskets.append(len(other))
            crate.weight *= 1.1
            numbers.append(turn)
            tags.discard("x")
        options["left"] -= 1
        if options["left"]:
            self.schedule("trade", state, delay=5 * US)  # An entity's own timer carries the object itself.

    def on_basket(self, basket: Basket) -> None:
        self.write((basket.owner, tuple(basket.apples), repr(basket.labels)))
        basket.apples.clear()

    def on_crate(self, crate: Crate) -> None:
        self.write((tuple(crate.baskets), crate.weight))
        crate.baskets.append(99)
        self.seen.append(crate)

    def on_things(self, things: tuple[Any, ...]) -> None:
        numbers, more, text, zero = things
        self.write((tuple(numbers), sorted(more["tags"]), bytes(text), repr(zero)))
        numbers.append(-1)
        assert numbers is more[self.sender]  # One object that was sent once is one object again.
        text += b"c"

    def on_number(self, number: int) -> None:
        self.write(number)


@model()
def trades() -> Simulation:
    """Payloads that their senders and receivers change afterwards: nobody sees what another does."""
    simulation = Simulation(network=Network(default=link("2us")))
    names = ["ada", "ben", "cy", "di"]
    for name in names:
        simulation.add(name, Trader([other for other in names if other != name]))
    return simulation


class Haulier(Diarist):
    """Sends what no socket holds at once, while others do so too."""

    def __init__(self, others: list[str]) -> None:
        super().__init__()
        self.others = others

    def start(self) -> None:
        for turn in range(2):
            self.schedule("load", turn, delay=turn * US)

    def on_load(self, turn: int) -> None:
        for number, other in enumerate(self.others):
            self.send(other, "container", self.random.randbytes(8) * 50_000 * (number + turn))

    def on_container(self, load: bytes) -> None:
        self.write((len(load), load[:8], load[-8:]))


@model()
def freight() -> Simulation:
    """Messages of up to a megabyte, in all directions at the same time."""
    simulation = Simulation(network=Network(default=link("1us")))
    names = ["north", "east", "south"]
    for name in names:
        simulation.add(name, Haulier([other for other in names if other != name]))
    return simulation


class Gauge(Diarist):
    """Records values of all kinds, several at one moment too."""

    def __init__(self, gauges: list[str]) -> None:
        super().__init__()
        self.gauges = gauges

    def start(self) -> Waiting:
        wind = self.stream("wind")
        for step in range(8):
            self.record("steps", step)
            self.record("wind", wind.gauss(0.0, 1.0))
            self.record("wind", wind.random())
            self.send(self.random.choice(self.gauges), "wind", wind.uniform(1.0, 2.0))
            yield self.random.exponential(3 * US)
        self.create(process(sample, self.gauges), "sampler")

    def on_wind(self, strength: float) -> None:
        self.write(strength)
        self.record("heard", (self.sender, strength))


def sample(sampler: Entity, gauges: list[str]) -> Waiting:
    """Draw in every way there is."""
    draws = sampler.random
    for turn in range(5):
        shuffled = list(gauges)
        draws.shuffle(shuffled)
        drawn = [
            *(draws.random(), draws.randint(1, 6), draws.getrandbits(100), draws.gauss(0, 1), draws.choice(gauges)),
            *(draws.expovariate(2.0), draws.uniform(-1, 1), draws.betavariate(2, 3), draws.randbytes(3)),
            *(draws.sample(gauges, 2), draws.choices(gauges, k=2), draws.normalvariate(), draws.triangular()),
            *(draws.randrange(5, 50, 5), draws.exponential(SECOND), sampler.stream("own").random(), shuffled),
        ]
        sampler.record(f"draws {turn}", repr(drawn))
        yield draws.randrange(3) * US
    sampler.record("end", sampler.now)
    yield receive("never")  # Those who live to the end keep their records.


@model()
def gauges() -> Simulation:
    """Monitors and draws everywhere."""
    simulation = Simulation(network=Network(default=link("uniform(1us, 5us)")), seed=-(2**63))
    names = [f"g{number}" for number in range(5)]
    for name in names:
        simulation.add(name, Gauge(names))
    return simulation


PAYLOADS: tuple[Any, ...] = (
    *(None, True, 0, -1, -2, 2**59 - 1, 2**59, -(2**59), 2**61 - 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**80),
    *(0.0, -0.0, 1e300, float("inf"), float("nan"), "", "ünï", b"\0\xff", (), (1, (2, "x")), [1], {"b": 1, "a": [2]}),
    *({1, 2, 3}, {"x", "y"}, frozenset("abc")),
)


class Extremist(Entity):
    """Sends whatever a message can carry, with times and topics from one end to the other."""

    def start(self) -> None:
        for number, payload in enumerate(PAYLOADS):
            self.send("b" if self.name == "a" else "a", f"topic {number}", payload)
            self.send("b" if self.name == "a" else "a", "same", payload, delay=TIME_MAX - number)
            self.schedule("own", payload, at=TIME_MAX)

    def handle(self, message: EntityMessage) -> None:
        self.record(message.topic, repr(message.payload) if not isinstance(message.payload, set | frozenset) else "set")


@model()
def extremes() -> Simulation:
    """Numbers, texts and times at the ends of what the compiled build holds in C."""
    simulation = Simulation(seed=-(2**63))
    simulation.add("a", Extremist())
    simulation.add("b", Extremist())
    return simulation


class Canceler(Entity):
    """Cancels so many timers that the queue has to be cleared while it runs."""

    def start(self) -> Waiting:
        for number in range(600):
            timers = [self.schedule("ring", number, delay=self.random.randrange(1, 2 * MS)) for _ in range(10)]
            for timer in timers[1:]:
                self.cancel(timer)
            yield self.random.randrange(5)

    def on_ring(self, number: int) -> None:
        self.record("rung", number)


@model()
def cancelers() -> Simulation:
    """Most of what is in the queue is dead."""
    simulation = Simulation(seed=6)
    simulation.add("a", Canceler())
    simulation.add("b", Canceler())
    return simulation
