"""Models whose entities are made of processes."""

from __future__ import annotations

from typing import Any

from tests.kernel.models.collection import Diarist, Waiting, model
from worldline.kernel import Entity, EntityMessage, Interrupt, Resource, Signal, Simulation, process, receive, wait
from worldline.model import US, Network, link


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
