"""A small project of a user's, with types: it is checked as strictly as our own code is, and it runs."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from datetime import timedelta
from pathlib import Path

from worldline import (
    Federation,
    Message,
    Network,
    Participant,
    Program,
    Rule,
    RunEnded,
    Server,
    WorldlineError,
    check,
    connect,
    format_time,
    link,
    plan,
    run,
    uniform,
)
from worldline.history import Journal, Observer, Outcome, Status
from worldline.kernel import Entity, EntityMessage, Process, Resource, ScheduledEvent, Signal, Simulation, receive, wait
from worldline.nodes import Algorithm, Event, Node, Protocol, Scheduler, Start, Timer, Trial, always, at_end, search
from worldline.recording import Recorder, Recording
from worldline.spacetime import Agent, Channel, ForwardSimulation, Minkowski, RemoteReference, Vector


class Tally(Observer):
    """Counts what is sent, in whichever room."""

    def __init__(self) -> None:
        self.sent_count = 0

    def sent(self, *_: object, **__: object) -> None:
        self.sent_count += 1


# -- A federation


def sensor(me: Participant) -> None:
    noise = me.stream("noise")
    while not me.ended:
        me.publish("reading", f"{noise.gauss(20.0, 1.0):.1f}".encode())
        me.advance(by=timedelta(milliseconds=100))


def logger(me: Participant) -> None:
    last: Message | None = None
    for message in me.messages(until="1s"):
        last = message
    me.publish("summary", last.payload if last else b"none")


FEDERATION = Federation(
    {
        "sensor": Program(sensor, publishes=["reading"]),
        "logger": Program(logger, subscribes=["reading"]),
    },
    network=Network(default=link(uniform("1ms", "5ms")), rules=(Rule(link=link("2ms"), topic="summary"),)),
    seed=3,
    until="2s",
)


def federated(file: Path) -> tuple[str, bool]:
    recorder = Recorder(file, FEDERATION.plan())
    seen: list[Status] = []
    outcome: Outcome = run(FEDERATION, until="1500ms", observer=recorder, watch=seen.append)
    recorder.close(dropped=outcome.dropped)
    topics = {arrival.topic for arrival in Recording(file).arrivals()}
    is_the_same = check(FEDERATION, schedules=5).digest == run(FEDERATION).digest
    return outcome.digest.hex(), is_the_same and topics == {"reading"}


def over_sockets() -> str | None:
    with Server(plan(["alone"])) as server:
        try:
            with connect(server, "alone") as me:
                me.advance(to=5)
        except (RunEnded, WorldlineError) as error:
            return str(error)
        return server.wait(10.0).digest.hex()


# -- The kernel


class Customer(Entity):
    def __init__(self, till: str) -> None:
        self.till = till

    def start(self) -> Iterator[object]:
        yield self.random.exponential("5min")
        self.send(self.till, "pay", 3, delay="1s")


class Till(Entity):
    paid = 0

    def __init__(self) -> None:
        self.clerk = Resource(1)
        self.closed = Signal()
        self.closing: ScheduledEvent | None = None

    def start(self) -> None:
        self.closing = self.schedule("close", delay="2h")

    def on_pay(self, amount: int) -> Iterator[object]:
        with self.clerk.acquire() as turn:
            yield turn
            yield "1min"
        self.paid += amount
        self.record("paid", self.paid)

    def on_close(self, _: object) -> None:
        self.closed.fire()


class Guard(Entity):
    seen: EntityMessage | None = None

    def start(self) -> Iterator[object]:
        watching: Process = self.process(self.watch())
        yield wait(watching, limit="3h")

    def watch(self) -> Generator[object, EntityMessage | None, None]:
        self.seen = yield receive("alarm", limit="1h")


def shop(customers: int = 3) -> str:
    simulation = Simulation(seed=1)
    till = simulation.add("till", Till())
    simulation.add("guard", Guard())
    for number in range(customers):
        simulation.add(f"customer {number}", Customer(till))
    tally = Tally()
    outcome = simulation.run("3h", executor="inline", observer=tally)
    paid = outcome.monitors["till", "paid"].values
    return f"{format_time(outcome.now)}, {tally.sent_count} sent, {paid}"


# -- Nodes


class Greeter(Node):
    heard = 0

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                self.broadcast("hello")
                self.set_timer(timedelta(seconds=2), "late")
            case Protocol(message, link_number):
                self.heard += len(message) > 0 and link_number in self.links
            case Timer(name):
                self.log(name)


@at_end("everybody has heard everybody")
def all_heard(scheduler: Scheduler) -> bool:
    return all(isinstance(node, Greeter) and node.heard == node.num_neighbors for node in scheduler.nodes)


@always("nobody hears too much")
def not_too_much(scheduler: Scheduler) -> bool:
    return all(isinstance(node, Greeter) and node.heard <= node.num_neighbors for node in scheduler.nodes)


GREETINGS = Algorithm(name="greetings", node=Greeter, topology="ring:4", properties=(all_heard, not_too_much))


def greeted() -> int:
    return search(Trial(algorithm=GREETINGS), range(5), seconds_max=30.0).tried


# -- Spacetime


class Probe(Agent):
    base: Channel
    friends: tuple[RemoteReference, ...] = ()

    def fly(self) -> None:
        self.velocity = self.space.velocity(0.5)
        self.base.send(Base.hear, self.position)
        self.after(1.0 + self.random.random(), Probe.fly)


class Base(Agent):
    last: Vector | None = None

    def hear(self, where: Vector) -> None:
        self.last = where
        self.log(f"the probe was at {where}")


def flown() -> str:
    with ForwardSimulation(Minkowski(2), seed=2) as simulation:
        probe, base = Probe(), Base()
        base.jump_to((0.0, 3.0))
        probe.base = Channel(probe, base)
        probe.after(1.0, Probe.fly)
    return simulation.run(until=5.0, executor="inline").digest.hex()


def journal_of(outcome: Outcome) -> Journal | None:
    return None if outcome.failure else Journal()
