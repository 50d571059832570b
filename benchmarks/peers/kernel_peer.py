"""Our kernel in the scenarios of its benchmark; the environment decides which build of it."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Generator
from contextlib import suppress
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


# -- Processes of one entity, and what they wait for, in the same form as in the SimPy version.


def timed_run(start: Callable[[Entity], Any], units: int) -> Facts:
    """Run an entity that starts like this."""
    simulation = filled({"a": type("Stage", (Entity,), {"start": start})()})
    seconds = apart.timed(simulation.run)
    return {"seconds": seconds, "rate": units / seconds, "digest": simulation.result().digest.hex()}


def mm1(units: int, *, patience: bool = False) -> Facts:
    """M/M/1: customers come, wait for the one clerk, and are served; with patience, they leave if it takes long."""
    draw = random.Random(SEED).expovariate
    clerk = Resource(1)
    arriving, serving, leaving = 0.9 / MS, 1.0 / MS, 0.5 / MS

    def arrivals(me: Entity) -> Steps:
        for _ in range(units):
            yield int(draw(arriving))
            me.process(visit())

    def customer() -> Steps:
        with clerk.acquire() as turn:
            yield turn
            yield int(draw(serving))

    def impatient() -> Steps:
        with clerk.acquire() as turn:
            if turn in (yield turn | int(draw(leaving))):
                yield int(draw(serving))

    visit = impatient if patience else customer
    return timed_run(arrivals, units)


def mm1_draws(units: int) -> Facts:
    """The same with the draws that every entity has."""
    clerk = Resource(1)
    pause = MS / 0.9

    def arrivals(me: Entity) -> Steps:
        draw = me.random.exponential
        for _ in range(units):
            yield draw(pause)
            me.process(customer(draw))

    def customer(draw: Callable[[int], int]) -> Steps:
        with clerk.acquire() as turn:
            yield turn
            yield draw(MS)

    return timed_run(arrivals, units)


def mm1_store(units: int) -> Facts:
    """M/M/1 as a store of customers, and a clerk that takes one after the other."""
    draw = random.Random(SEED).expovariate
    line = Store()
    arriving, serving = 0.9 / MS, 1.0 / MS

    def arrivals(me: Entity) -> Steps:
        me.process(serve())
        for number in range(units):
            yield int(draw(arriving))
            line.put(number)

    def serve() -> Steps:
        while True:
            yield line.get()
            yield int(draw(serving))

    return timed_run(arrivals, units)


def rally(units: int) -> Facts:
    """Two processes that fire signals for each other."""
    ping, pong = Signal(), Signal()

    def start(me: Entity) -> None:
        me.process(first())
        me.process(second())

    def first() -> Steps:
        nonlocal pong
        for _ in range(units // 2):
            ping.fire()
            yield pong
            pong = Signal()

    def second() -> Steps:
        nonlocal ping
        for _ in range(units // 2):
            yield ping
            ping = Signal()
            pong.fire()

    return timed_run(start, units)


def crowd(units: int) -> Facts:
    """A hundred processes that compete for five of something."""
    seats = Resource(5)

    def start(me: Entity) -> None:
        for _ in range(100):
            me.process(compete())

    def compete() -> Steps:
        for _ in range(units // 100):
            with seats.acquire() as turn:
                yield turn
                yield MS

    return timed_run(start, units)


def any_of(units: int) -> Facts:
    """A process that waits for a thing or a time, whichever comes first; mostly it is the thing."""
    things = Store()

    def start(me: Entity) -> None:
        me.process(fill())
        me.process(drain())

    def fill() -> Steps:
        for number in range(units):
            yield MS
            things.put(number)

    def drain() -> Steps:
        for _ in range(units):
            yield things.get() | 3 * MS

    return timed_run(start, units)


def children(units: int) -> Facts:
    """A process that starts one after the other, and waits for its end."""

    def parent(me: Entity) -> Steps:
        for _ in range(units):
            yield me.process(child())

    def child() -> Steps:
        yield MS

    return timed_run(parent, units)


def preemption(units: int) -> Facts:
    """A machine that urgent jobs take from the one that runs."""
    machine = Resource(1)

    def start(me: Entity) -> None:
        me.process(work())
        me.process(disturb())

    def work() -> Steps:
        for _ in range(units):
            with machine.acquire(priority=2) as turn:
                yield turn
                with suppress(Interrupt):
                    yield 3 * MS

    def disturb() -> Steps:
        for _ in range(units):
            yield MS
            with machine.acquire(priority=1, preempt=True) as turn:
                yield turn
                yield MS

    return timed_run(start, units)


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
    "mm1": mm1,
    "mm1_draws": mm1_draws,
    "mm1_store": mm1_store,
    "bank": lambda units: mm1(units, patience=True),
    "rally": rally,
    "crowd": crowd,
    "any_of": any_of,
    "children": children,
    "preemption": preemption,
    "memory_signals": memory_signals,
    "memory_entities": memory_entities,
    "memory_addressees": memory_addressees,
    "memory_processes": memory_processes,
    "memory_inner_processes": memory_inner_processes,
    "many": many,
}


if __name__ == "__main__":
    apart.answer(SCENARIOS, __doc__, {"build": build})
