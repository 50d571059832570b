"""Our kernel in the scenarios of its benchmark; the environment decides which build of it."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Generator
from typing import Any

from worldline.kernel import Entity, Interrupt, Resource, Signal, Simulation, Store, build, process
from worldline.model import MS, SECOND, Network, link

if __package__:
    from . import apart
else:
    import apart

SEED = 1

Facts = dict[str, Any]
Steps = Generator[Any, Any, None]


def race(simulation: Simulation, warm_up: int, until: int) -> Facts:
    before = simulation.run(until=warm_up).events
    seconds = apart.timed(lambda: simulation.run(until=until))
    result = simulation.result()
    events = result.events - before
    return {"events": events, "seconds": seconds, "rate": events / seconds, "digest": result.digest.hex()}


def names(count: int, kind: str) -> list[str]:
    return [f"{kind}{number:04}" for number in range(count)]


def phold_own_random(places: int, jobs: int, warm_up_s: int, until_s: int) -> Facts:
    """PHOLD with the user's own generator of random numbers, shared by all as in the SimPy version."""
    draws = random.Random(SEED)
    uniform, expovariate = draws.random, draws.expovariate
    everybody = names(places, "place")
    least, per_ns = 100 * MS, 1 / SECOND

    class Place(Entity):
        __slots__ = ()

        def start(self) -> None:
            for _ in range(jobs):
                self.schedule("job", delay=int(expovariate(per_ns)))

        def on_job(self, _: object) -> None:
            self.send(everybody[int(uniform() * places)], "job", delay=least + int(expovariate(per_ns)))

    return race(filled({name: Place() for name in everybody}), warm_up_s * SECOND, until_s * SECOND)


def phold_kernel_draws(places: int, jobs: int, warm_up_s: int, until_s: int) -> Facts:
    """PHOLD with the draws that every entity has."""
    everybody = names(places, "place")
    least = 100 * MS

    class Place(Entity):
        __slots__ = ()

        def start(self) -> None:
            for _ in range(jobs):
                self.schedule("job", delay=self.random.exponential(SECOND))

        def on_job(self, _: object) -> None:
            draws = self.random
            self.send(everybody[draws.randrange(places)], "job", delay=least + draws.exponential(SECOND))

    return race(filled({name: Place() for name in everybody}), warm_up_s * SECOND, until_s * SECOND)


def tickers(count: int, warm_up: int, until: int) -> Facts:
    def ticker(_: Entity, period: int) -> Generator[int, Any, None]:
        while True:
            yield period

    everybody = {name: process(ticker, 1_000_000 + number) for number, name in enumerate(names(count, "ticker"))}
    return race(filled(everybody), warm_up, until)


def torus(width: int, messages: int, latency: int, spread: int, warm_up: int, until: int) -> Facts:
    everybody = names(width * width, "node")

    class Node(Entity):
        __slots__ = ("neighbors", "number", "turn")

        def __init__(self, number: int) -> None:
            row, column = divmod(number, width)
            self.number = number
            self.turn = 0
            self.neighbors = [
                everybody[(row + down) % width * width + (column + right) % width]
                for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0))
            ]

        def start(self) -> None:
            for message in range(messages):
                self.schedule("hop", 0, delay=(self.number * messages + message) * spread // (width**2 * messages))

        def on_hop(self, hops: int) -> None:
            self.turn = turn = (self.turn + 1) & 3
            self.send(self.neighbors[turn], "hop", hops + 1)

    simulation = Simulation(seed=SEED, network=Network(default=link(latency)))
    for number, name in enumerate(everybody):
        simulation.add(name, Node(number))
    return race(simulation, warm_up, until)


# -- Processes of one entity, and what they wait for. Times are the same as in the SimPy version, in milliseconds.


def timed_run(entity: Entity, units: int) -> Facts:
    simulation = filled({"a": entity})
    seconds = apart.timed(simulation.run)
    return {"seconds": seconds, "rate": units / seconds, "digest": simulation.result().digest.hex()}


class Shop(Entity):
    """M/M/1: customers come, wait for the one clerk, and are served."""

    def __init__(self, customers: int) -> None:
        self.customers = customers
        self.clerk = Resource(1)
        self.draw = random.Random(SEED).expovariate

    def start(self) -> Steps:
        for _ in range(self.customers):
            yield int(self.draw(0.9) * MS)
            self.process(self.customer())

    def customer(self) -> Steps:
        with self.clerk.acquire() as turn:
            yield turn
            yield int(self.draw(1.0) * MS)


class ShopWithDraws(Shop):
    """The same with the draws that every entity has."""

    def start(self) -> Steps:
        pause = MS / 0.9
        for _ in range(self.customers):
            yield self.random.exponential(pause)
            self.process(self.customer())

    def customer(self) -> Steps:
        with self.clerk.acquire() as turn:
            yield turn
            yield self.random.exponential(MS)


class Bank(Shop):
    """The same with customers that leave if they aren't served in time."""

    def customer(self) -> Steps:
        with self.clerk.acquire() as turn:
            if turn in (yield turn | int(self.draw(0.5) * MS)):
                yield int(self.draw(1.0) * MS)


class ShopWithStore(Shop):
    """M/M/1 as a store of customers, and a clerk that takes one after the other."""

    def start(self) -> Steps:
        self.line = Store()
        self.process(self.serve())
        for number in range(self.customers):
            yield int(self.draw(0.9) * MS)
            self.line.put(number)

    def serve(self) -> Steps:
        while True:
            yield self.line.get()
            yield int(self.draw(1.0) * MS)


class Rally(Entity):
    """Two processes that fire signals for each other."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def start(self) -> None:
        self.ping, self.pong = Signal(), Signal()
        self.process(self.first())
        self.process(self.second())

    def first(self) -> Steps:
        for _ in range(self.rounds):
            self.ping.fire()
            yield self.pong
            self.pong = Signal()

    def second(self) -> Steps:
        for _ in range(self.rounds):
            yield self.ping
            self.ping = Signal()
            self.pong.fire()


class Crowd(Entity):
    """A hundred processes that compete for five of something."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def start(self) -> None:
        self.seats = Resource(5)
        for _ in range(100):
            self.process(self.compete())

    def compete(self) -> Steps:
        for _ in range(self.rounds):
            with self.seats.acquire() as turn:
                yield turn
                yield MS


class Patient(Entity):
    """Waits for a thing or a time, whichever comes first; mostly it is the thing."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def start(self) -> None:
        self.things = Store()
        self.process(self.fill())
        self.process(self.drain())

    def fill(self) -> Steps:
        for number in range(self.rounds):
            yield MS
            self.things.put(number)

    def drain(self) -> Steps:
        for _ in range(self.rounds):
            yield self.things.get() | 3 * MS


class Parent(Entity):
    """Starts one process after the other, and waits for its end."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def start(self) -> Steps:
        for _ in range(self.rounds):
            yield self.process(self.child())

    def child(self) -> Steps:
        yield MS


class Workshop(Entity):
    """A machine that urgent jobs take from the ones that run."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def start(self) -> None:
        self.machine = Resource(1)
        self.process(self.work())
        self.process(self.disturb())

    def work(self) -> Steps:
        for _ in range(self.rounds):
            with self.machine.acquire(priority=2) as turn:
                yield turn
                try:
                    yield 3 * MS
                except Interrupt:
                    pass

    def disturb(self) -> Steps:
        for _ in range(self.rounds):
            yield MS
            with self.machine.acquire(priority=1, preempt=True) as turn:
                yield turn
                yield MS


def memory_signals(count: int) -> Facts:
    """Signals, each with a process that waits for it."""

    class Hall(Entity):
        def start(self) -> None:
            self.signals = [Signal() for _ in range(count)]
            for number in range(count):
                self.process(self.wait(number))

        def wait(self, number: int) -> Steps:
            yield self.signals[number]

    gc.collect()
    before = apart.resident()
    simulation = filled({"hall": Hall()})
    simulation.run(until=1)
    return grown(before, count)


def memory_entities(count: int) -> Facts:
    """Entities with one attribute, each with a pending event of its own."""

    class Lamp(Entity):
        __slots__ = ("number",)

        def __init__(self, number: int) -> None:
            self.number = number

        def start(self) -> None:
            self.schedule("switch", delay=1_000 + self.number)

        def on_switch(self, _: object) -> None:
            pass

    gc.collect()
    before = apart.resident()
    simulation = Simulation(seed=SEED)
    for number in range(count):
        simulation.add(f"lamp{number}", Lamp(number))
    simulation.run(until=1)
    return grown(before, count)


def memory_addressees(count: int) -> Facts:
    """Entities that wait for messages."""

    class Server(Entity):
        __slots__ = ()

        def on_job(self, _: object) -> None:
            pass

    gc.collect()
    before = apart.resident()
    simulation = Simulation(seed=SEED)
    for number in range(count):
        simulation.add(f"server{number}", Server())
    simulation.run(until=1)
    return grown(before, count)


def memory_processes(count: int) -> Facts:
    """Entities that are processes, each of which waits."""

    def wait(_: Entity, number: int) -> Generator[int, Any, None]:
        while True:
            yield 1_000 + number

    gc.collect()
    before = apart.resident()
    simulation = Simulation(seed=SEED)
    for number in range(count):
        simulation.add(f"process{number}", process(wait, number))
    simulation.run(until=1)
    return grown(before, count)


def memory_inner_processes(count: int) -> Facts:
    """Processes of one entity, each of which waits."""

    def wait(number: int) -> Generator[int, Any, None]:
        while True:
            yield 1_000 + number

    class Hall(Entity):
        def start(self) -> None:
            for number in range(count):
                self.process(wait(number))

    gc.collect()
    before = apart.resident()
    simulation = filled({"hall": Hall()})
    simulation.run(until=1)
    return grown(before, count)


def many(count: int, events: int) -> Facts:
    """So many entities that each send on one message: what it takes to make them, and to run them."""

    class Place(Entity):
        __slots__ = ("number",)

        def __init__(self, number: int) -> None:
            self.number = number

        def start(self) -> None:
            self.schedule("job", delay=self.random.exponential(SECOND))

        def on_job(self, _: object) -> None:
            draws = self.random
            self.send(f"place{draws.randrange(count)}", "job", delay=100 * MS + draws.exponential(SECOND))

    def made() -> Simulation:
        simulation = Simulation(seed=SEED)
        for number in range(count):
            simulation.add(f"place{number}", Place(number))
        simulation.run(until=1)
        return simulation

    before = apart.resident()
    start = time.process_time()
    simulation = made()
    built = time.process_time() - start
    bytes_each = (apart.resident() - before) / count
    # A job waits 1.1 s on average.
    facts = race(simulation, SECOND // 10, SECOND // 10 + events * 11 * SECOND // (10 * count))
    result = apart.timed(simulation.result)  # Every run ends with one, and it has to look at everybody.
    return {
        "built_s": built,
        "bytes": bytes_each,
        "result_s": result,
        "million_events_s": (facts["seconds"] - result) / facts["events"] * 1e6,
        "peak": apart.resident_max(),
        **facts,
    }


def filled(entities: dict[str, Entity]) -> Simulation:
    simulation = Simulation(seed=SEED)
    for name, entity in entities.items():
        simulation.add(name, entity)
    return simulation


def grown(before: int, count: int) -> Facts:
    gc.collect()
    return {"bytes": (apart.resident() - before) / count, "count": count}


SCENARIOS: dict[str, Callable[..., Facts]] = {
    "phold_own_random": phold_own_random,
    "phold_kernel_draws": phold_kernel_draws,
    "tickers": tickers,
    "torus": torus,
    "mm1": lambda units: timed_run(Shop(units), units),
    "mm1_draws": lambda units: timed_run(ShopWithDraws(units), units),
    "mm1_store": lambda units: timed_run(ShopWithStore(units), units),
    "bank": lambda units: timed_run(Bank(units), units),
    "rally": lambda units: timed_run(Rally(units // 2), units),
    "crowd": lambda units: timed_run(Crowd(units // 100), units),
    "any_of": lambda units: timed_run(Patient(units), units),
    "children": lambda units: timed_run(Parent(units), units),
    "preemption": lambda units: timed_run(Workshop(units), units),
    "memory_signals": memory_signals,
    "memory_entities": memory_entities,
    "memory_addressees": memory_addressees,
    "memory_processes": memory_processes,
    "memory_inner_processes": memory_inner_processes,
    "many": many,
}


if __name__ == "__main__":
    apart.answer(SCENARIOS, __doc__, {"build": build})
