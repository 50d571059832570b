"""Small but nasty models: whatever executes one of them must give the same history.

Each is a function that builds a fresh simulation; `observe` runs one and returns all that can be compared. Entities
keep a diary of all that reaches them, so that a difference shows in their final states as well, with the place at which
it begins. What an entity keeps under a name that begins with an underscore can't leave a worker, and isn't compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from msgspec import Struct

from worldline.kernel import Entity, EntityMessage, Interrupt, Resource, Signal, Simulation, process, receive, wait
from worldline.kernel.model import state_of
from worldline.model import HOUR, MS, SECOND, US, Network, Rule, hold, link, partition

Waiting = Iterator[Any]


class Case(NamedTuple):
    """A model, and how long to run it; None: as long as something happens."""

    build: Callable[[], Simulation]
    until: str | None


MODELS: dict[str, Case] = {}


def model(until: str | None = None) -> Callable[[Callable[[], Simulation]], Callable[[], Simulation]]:
    """Add a function that builds a simulation to the collection, under its name."""

    def add(build: Callable[[], Simulation]) -> Callable[[], Simulation]:
        MODELS[build.__name__] = Case(build, until)
        return build

    return add


class Observation(NamedTuple):
    """All that can be seen of a run afterwards."""

    digest: str
    now: int
    events: int
    dropped: dict[tuple[str, str, str], int]
    monitors: dict[tuple[str, str], tuple[int | None, list[tuple[int, Any]]]]  # The end, and what was recorded.
    states: dict[str, dict[str, Any]]
    created: dict[str, dict[str, Any]]  # Those that the run has created, and that live.


def observe(simulation: Simulation, until: str | None = None, executor: Any = "inline") -> Observation:
    """Run a simulation and look at what has come of it."""
    added = list(simulation._entities)
    result = simulation.run(until, executor=executor)
    found = states(simulation)
    return Observation(
        digest=result.digest.hex(),
        now=result.now,
        events=result.events,
        dropped=result.dropped,
        monitors={key: (monitor.end, list(monitor)) for key, monitor in result.monitors.items()},
        states={name: state for name, state in found.items() if name in added},
        created={name: state for name, state in found.items() if name not in added},
    )


def states(simulation: Simulation) -> dict[str, dict[str, Any]]:
    """Return the attributes of all entities after a run, also of those that were created by it and live."""
    entities = dict(simulation._entities)
    if simulation._worker is not None:
        entities.update((entity.name, entity) for entity in simulation._worker.present())
    return {name: _shown_state(entity) for name, entity in sorted(entities.items())}


def _shown_state(entity: Entity) -> dict[str, Any]:
    """Return an entity's attributes, functions by their names: they look different in every process."""
    state = {key: value for key, value in sorted(state_of(entity).items()) if not key.startswith("_")}
    return {key: getattr(value, "__qualname__", value) for key, value in state.items()}


def difference(expected: Any, found: Any, where: str = "") -> str:
    """Say where two observations begin to differ; nothing if they don't. Whole ones are too large to be read."""
    if expected == found:
        return ""
    if isinstance(expected, Observation):
        expected, found = expected._asdict(), found._asdict()
    if isinstance(expected, dict) and isinstance(found, dict):
        if expected.keys() != found.keys():
            return f"{where}: {sorted(expected.keys() ^ found.keys())} are on one side only"
        parts = [difference(expected[key], found[key], f"{where}[{key}]" if where else str(key)) for key in expected]
        return "\n".join(part for part in parts if part)
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        place = next(place for place, pair in enumerate(zip(expected, found, strict=True)) if pair[0] != pair[1])
        return difference(expected[place], found[place], f"{where}[{place}]")
    return f"{where}: expected {expected!r:.300}, found {found!r:.300}"


class Diarist(Entity):
    """Writes down what it is given, by whom and when."""

    def __init__(self) -> None:
        self.diary: list[tuple[int, str, int, Any]] = []

    def write(self, what: Any) -> None:
        self.diary.append((self.now, self.sender, self.sent_at, what))


# -- Equal times


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


# -- Coming and going


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


# -- Processes


class Station(Diarist):
    """Two plugs for many cars: some give up waiting, and now and then everybody is thrown out."""

    def start(self) -> None:
        self._plugs = Resource(2)
        self._closing = Signal()
        self._charging: list[Any] = []
        self.process(self.close_at_night())

    def on_arrive(self, minutes: int) -> None:
        charging = self.process(self.charge(self.sender, minutes))
        self._charging.append(charging)

    def on_alarm(self, _: None) -> None:
        self.write("alarm")
        for charging in self._charging:
            if not charging.has_ended:
                charging.interrupt("alarm")

    def charge(self, car: str, minutes: int) -> Waiting:
        with self._plugs.acquire() as turn:
            try:
                granted = yield wait(turn, limit=30 * US)
                if granted is None:
                    self.send(car, "sorry", self._plugs.waiting)
                    return "gave up"
                self.record("held", self._plugs.held)
                yield minutes * US
            except Interrupt as interrupt:
                self.write((car, interrupt.cause))
                self.send(car, "sorry", -1)
                return "thrown out"
        self.send(car, "charged", minutes)
        return "charged"

    def close_at_night(self) -> Waiting:
        yield 150 * US
        self._closing.fire("night")
        outcomes = []
        for charging in self._charging:
            outcome = yield charging
            outcomes.append(outcome)
        closing = yield self._closing
        self.write((closing, tuple(outcomes)))


def drive(car: Entity, station: str, friend: str, diary: list[Any]) -> Waiting:
    """Be a car: drive, charge, wake a friend, be woken."""
    for trip in range(4):
        try:
            yield car.random.randrange(5, 25) * US
            car.send(station, "arrive", car.random.randrange(5, 40))
            answer: EntityMessage | None = yield receive(limit=100 * US)
            diary.append((car.now, answer))
            if answer is not None and answer.topic == "sorry":
                car.interrupt(friend, (car.name, trip))
            yield "3us"
            note = yield receive("note", limit=0)
            diary.append((car.now, note))
            car.send(friend, "note", trip)
        except Interrupt as interrupt:
            diary.append((car.now, interrupt.cause))
    return None


def watch(guard: Entity, stations: list[str]) -> Waiting:
    for _ in range(3):
        yield 45 * US
        for station in stations:
            guard.send(station, "alarm")


@model()
def stations() -> Simulation:
    """Processes with receive, limits, interrupts, signals and resources."""
    simulation = Simulation(network=Network(default=link("uniform(1us, 2us)")), seed=3)
    cars = [f"car {number}" for number in range(8)]
    for number, car in enumerate(cars):
        simulation.add(car, process(drive, f"station {number % 2}", cars[(number + 3) % 8], diary=[]))
    for station in ("station 0", "station 1"):
        simulation.add(station, Station())
    simulation.add("guard", process(watch, ["station 0", "station 1"]))
    return simulation


def shout(me: Entity, others: list[str], rounds: int, diary: list[Any]) -> Waiting:
    """Say something to everybody every microsecond, and take what has come so far."""
    for number in range(rounds):
        for other in others:
            if other != me.name:
                me.send(other, "shout", number, delay="2us")
        yield "1us"
        while (message := (yield receive(limit=0))) is not None:
            diary.append(message)


@model()
def shouts() -> Simulation:
    """Generator processes that all act at the same moments, and look into their inboxes just then."""
    simulation = Simulation()
    names = [f"p{number}" for number in range(7)]
    for name in names:
        simulation.add(name, process(shout, names, 6, diary=[]))
    return simulation


class Clerk(Diarist):
    """Handlers that are generators, a handler for the rest, attributes in slots, timers that are canceled."""

    __slots__ = ("_alarm", "open_files", "unset")

    def __init__(self, clerks: list[str]) -> None:
        super().__init__()
        self.clerks = clerks
        self.open_files = 0
        self._alarm: Any = None

    def start(self) -> Waiting:
        self._alarm = self.schedule("alarm", delay=20 * US)
        for _ in range(5):
            yield self.random.randrange(1, 4) * US
            self.send(self.random.choice(self.clerks), "file", [self.now])
        self.cancel(self._alarm)
        self._alarm = self.schedule("alarm", "again", at=self.now + 4 * US)

    def on_file(self, pages: list[int]) -> Waiting:
        self.open_files += 1
        yield 2 * US
        pages.append(self.now)
        self.open_files -= 1
        self.write(tuple(pages))
        self.send(self.random.choice(self.clerks), "copy of the file", pages)

    def handle(self, message: EntityMessage) -> None:
        self.write(message)
        if self._alarm is not None and self.cancel(self._alarm):
            self._alarm = self.schedule("alarm", message.sequence, delay=5 * US)

    def on_alarm(self, why: Any) -> None:
        self.write(("alarm", why, self.open_files))


@model()
def clerks() -> Simulation:
    """Several processes of one entity at a time, and timers that are moved again and again."""
    simulation = Simulation(network=Network(default=link("exponential(1us, 2us)")), seed=8)
    names = [f"clerk {number}" for number in range(6)]
    for name in names:
        simulation.add(name, Clerk(names))
    return simulation


# -- Links


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


# -- What messages carry


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


# -- What everybody measures with


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


# -- Anything at any time


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
