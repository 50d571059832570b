"""SimPy in the scenarios of our kernel benchmark, each in the fastest form that is still plain SimPy.

What was tried, and what is used (events per second, differences in brackets):

* Callbacks: `timeout(delay).callbacks.append(method)`, with the environment's `timeout` and the methods of all
  receivers looked up once, before the run (6 % faster than looking them up for every event). Nothing counts events in
  a handler; SimPy numbers what it schedules, so what was handled is that number less what is still waiting.
* A place is drawn by `int(random() * places)`, three times as fast as `randrange`: draws aren't what is compared.
* Delays are in the unit that is fastest: seconds as floats where they are drawn (no rounding), whole numbers where they
  are fixed (5 % faster than floats).
* Classes have `__slots__`, as they have in our version: here that saves memory, and is neither faster nor slower.
* Processes of PHOLD are jobs that wait, go to another place, and wait again. Logical processes that each wait on a
  `Store` reach a quarter of that.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Generator
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import simpy

from worldline.nodes.shapes import random as random_topology

if __package__:
    from . import apart
else:
    import apart

SEED = 1

Facts = dict[str, Any]
Ticks = Generator[simpy.Event, Any, None]


def handled(environment: simpy.Environment) -> int:
    """Return how many events have happened; asking counts as one that was scheduled."""
    return next(environment._eid) - len(environment._queue)


def race(environment: simpy.Environment, warm_up: float, until: float) -> Facts:
    environment.run(until=warm_up)
    before = handled(environment)
    seconds = apart.timed(lambda: environment.run(until=until))
    # Less three that aren't the model's: what stops each of the two runs, and the number that `handled` took.
    events = handled(environment) - before - 3
    return {"events": events, "seconds": seconds, "rate": events / seconds}


def phold_callbacks(places: int, jobs: int, warm_up_s: float, until_s: float) -> Facts:
    """Jobs go from place to place: a job that arrives is sent on to any other, 0.1 s + exp(1 s) later."""
    environment = simpy.Environment()
    draws = random.Random(SEED)
    timeout, uniform, expovariate = environment.timeout, draws.random, draws.expovariate
    arrivals: list[Callable[[simpy.Event], None]] = []

    class Place:
        __slots__ = ()

        def on_job(self, _: simpy.Event) -> None:
            timeout(0.1 + expovariate(1.0)).callbacks.append(arrivals[int(uniform() * places)])

    arrivals += [Place().on_job for _ in range(places)]
    for arrive in arrivals:
        for _ in range(jobs):
            timeout(expovariate(1.0)).callbacks.append(arrive)
    return race(environment, warm_up_s, until_s)


def phold_processes(places: int, jobs: int, warm_up_s: float, until_s: float) -> Facts:
    """The same with a process for each job."""
    environment = simpy.Environment()
    draws = random.Random(SEED)
    timeout, uniform, expovariate = environment.timeout, draws.random, draws.expovariate

    def job() -> Ticks:
        yield timeout(expovariate(1.0))
        while True:
            int(uniform() * places)
            yield timeout(0.1 + expovariate(1.0))

    for _ in range(places * jobs):
        environment.process(job())
    return race(environment, warm_up_s, until_s)


def tickers(count: int, warm_up: int, until: int) -> Facts:
    """Processes that wait for a fixed time again and again, each for another one."""
    environment = simpy.Environment()
    timeout = environment.timeout

    def ticker(period: int) -> Ticks:
        while True:
            yield timeout(period)

    for number in range(count):
        environment.process(ticker(1_000_000 + number))
    return race(environment, warm_up, until)


def torus(width: int, messages: int, latency: int, spread: int, warm_up: int, until: int) -> Facts:
    """Every node sends on what it gets, to its four neighbors in turn, and every hop takes the same time.

    The first messages are spread over so much time; if that is 0, all nodes act at the same moments.
    """
    environment = simpy.Environment()
    timeout = environment.timeout

    class Node:
        __slots__ = ("neighbors", "turn")

        def __init__(self) -> None:
            self.neighbors: list[Callable[[simpy.Event], None]] = []
            self.turn = 0

        def on_hop(self, event: simpy.Event) -> None:
            self.turn = turn = (self.turn + 1) & 3
            timeout(latency, event.value + 1).callbacks.append(self.neighbors[turn])

    nodes = [[Node() for _ in range(width)] for _ in range(width)]
    for row in range(width):
        for column in range(width):
            nodes[row][column].neighbors = [
                nodes[(row + down) % width][(column + right) % width].on_hop
                for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0))
            ]
    for number in range(width * width):
        for message in range(messages):
            start = timeout((number * messages + message) * spread // (width * width * messages), 0)
            start.callbacks.append(nodes[number // width][number % width].on_hop)
    return race(environment, warm_up, until)


# -- Processes and what they wait for, each as SimPy's own documentation writes it; times in milliseconds.


def timed_run(build: Callable[[simpy.Environment], None], units: int) -> Facts:
    environment = simpy.Environment()
    build(environment)
    seconds = apart.timed(environment.run)
    return {"seconds": seconds, "rate": units / seconds}


def mm1(units: int, patience: bool = False) -> Facts:
    """M/M/1: customers come, wait for the one clerk, and are served; with patience, they leave if it takes long."""
    draw = random.Random(SEED).expovariate

    def build(env: simpy.Environment) -> None:
        clerk = simpy.Resource(env, 1)

        def arrivals() -> Ticks:
            for _ in range(units):
                yield env.timeout(draw(0.9))
                env.process(visit())

        def customer() -> Ticks:
            with clerk.request() as request:
                yield request
                yield env.timeout(draw(1.0))

        def impatient() -> Ticks:
            with clerk.request() as request:
                if request in (yield request | env.timeout(draw(0.5))):
                    yield env.timeout(draw(1.0))

        visit = impatient if patience else customer
        env.process(arrivals())

    return timed_run(build, units)


def mm1_store(units: int) -> Facts:
    draw = random.Random(SEED).expovariate

    def build(env: simpy.Environment) -> None:
        line = simpy.Store(env)

        def arrivals() -> Ticks:
            for number in range(units):
                yield env.timeout(draw(0.9))
                line.put(number)

        def serve() -> Ticks:
            while True:
                yield line.get()
                yield env.timeout(draw(1.0))

        env.process(serve())
        env.process(arrivals())

    return timed_run(build, units)


def rally(units: int) -> Facts:
    def build(env: simpy.Environment) -> None:
        ping, pong = env.event(), env.event()

        def first() -> Ticks:
            nonlocal pong
            for _ in range(units // 2):
                ping.succeed()
                yield pong
                pong = env.event()

        def second() -> Ticks:
            nonlocal ping
            for _ in range(units // 2):
                yield ping
                ping = env.event()
                pong.succeed()

        env.process(first())
        env.process(second())

    return timed_run(build, units)


def crowd(units: int) -> Facts:
    def build(env: simpy.Environment) -> None:
        seats = simpy.Resource(env, 5)

        def compete() -> Ticks:
            for _ in range(units // 100):
                with seats.request() as request:
                    yield request
                    yield env.timeout(1)

        for _ in range(100):
            env.process(compete())

    return timed_run(build, units)


def any_of(units: int) -> Facts:
    def build(env: simpy.Environment) -> None:
        things = simpy.Store(env)

        def fill() -> Ticks:
            for number in range(units):
                yield env.timeout(1)
                things.put(number)

        def drain() -> Ticks:
            for _ in range(units):
                yield things.get() | env.timeout(3)

        env.process(fill())
        env.process(drain())

    return timed_run(build, units)


def children(units: int) -> Facts:
    def build(env: simpy.Environment) -> None:
        def child() -> Ticks:
            yield env.timeout(1)

        def parent() -> Ticks:
            for _ in range(units):
                yield env.process(child())

        env.process(parent())

    return timed_run(build, units)


def preemption(units: int) -> Facts:
    def build(env: simpy.Environment) -> None:
        machine = simpy.PreemptiveResource(env, 1)

        def work() -> Ticks:
            for _ in range(units):
                with machine.request(priority=2) as request:
                    yield request
                    with suppress(simpy.Interrupt):
                        yield env.timeout(3)

        def disturb() -> Ticks:
            for _ in range(units):
                yield env.timeout(1)
                with machine.request(priority=1) as request:
                    yield request
                    yield env.timeout(1)

        env.process(work())
        env.process(disturb())

    return timed_run(build, units)


def memory_signals(count: int) -> Facts:
    """Events, each with a process that waits for it."""
    gc.collect()
    before = apart.resident()
    environment = simpy.Environment()
    events = [environment.event() for _ in range(count)]

    def wait(number: int) -> Ticks:
        yield events[number]

    for number in range(count):
        environment.process(wait(number))
    environment.run(until=1)
    return grown(before, count)


def memory_entities(count: int) -> Facts:
    """Objects with one attribute, each with a pending timeout that calls it."""

    class Lamp:
        __slots__ = ("number",)

        def __init__(self, number: int) -> None:
            self.number = number

        def on_switch(self, event: simpy.Event) -> None:
            pass

    gc.collect()
    before = apart.resident()
    environment = simpy.Environment()
    lamps = [Lamp(number) for number in range(count)]
    for lamp in lamps:
        environment.timeout(1_000 + lamp.number).callbacks.append(lamp.on_switch)
    environment.run(until=1)
    return grown(before, count)


def memory_addressees(count: int) -> Facts:
    """Processes that wait for messages, each with a store that anybody can put one into."""

    def serve(store: simpy.Store) -> Ticks:
        while True:
            yield store.get()

    gc.collect()
    before = apart.resident()
    environment = simpy.Environment()
    stores = [simpy.Store(environment) for _ in range(count)]
    serving = [environment.process(serve(store)) for store in stores]
    environment.run(until=1)
    return grown(before, len(serving))


def memory_processes(count: int) -> Facts:
    """Processes that wait for a timeout, and that somebody keeps, so that they can be interrupted or waited for."""

    def wait(environment: simpy.Environment, number: int) -> Ticks:
        while True:
            yield environment.timeout(1_000 + number)

    gc.collect()
    before = apart.resident()
    environment = simpy.Environment()
    waiting = [environment.process(wait(environment, number)) for number in range(count)]
    environment.run(until=1)
    return grown(before, len(waiting))


def grown(before: int, count: int) -> Facts:
    gc.collect()
    return {"bytes": (apart.resident() - before) / count, "count": count}


def bellman_ford(size: int, degree: int, sources: int) -> Facts:
    """Ids go round with their distances, for the benchmark of nodes: a process with a `Store` for each node.

    A message that takes its time is a timeout, and who put it there is told by a callback: a process for every message,
    as SimPy's own example of latencies has it, is a quarter slower.
    """
    topology = random_topology(size, degree=degree, seed=SEED)
    environment = simpy.Environment()
    uniform, timeout = random.Random(SEED).random, environment.timeout
    stores = [simpy.Store(environment) for _ in range(size)]
    distances: list[dict[int, int]] = [{node: 0} for node in range(size)]
    delivered = 0

    def send(message: tuple[int, int], to: int, link: int) -> None:
        put = stores[to].put
        timeout(uniform()).callbacks.append(lambda _: put((*message, link)))

    def node(me: int) -> Ticks:
        nonlocal delivered
        known: dict[int, int] = distances[me]
        routes: dict[int, int] = {}
        get = stores[me].get
        # Where each link leads, and what number it has there.
        ways = [(to, topology.neighbors[to].index(me)) for to in topology.neighbors[me]]
        if me < sources:
            for to, there in ways:
                send((me, 0), to, there)
        while True:
            goal, distance, link = yield get()
            delivered += 1
            distance += 1
            best = known.get(goal)
            if best is None or distance < best:
                known[goal] = distance
                routes[goal] = link
                for each, (to, there) in enumerate(ways):
                    if each != link:
                        send((goal, distance), to, there)

    for each in range(size):
        environment.process(node(each))
    seconds = apart.timed(environment.run)
    found = sum(map(len, distances))
    return {"deliveries": delivered, "rate": delivered / seconds, "known": found, "memory": apart.resident_max()}


def ring(size: int, hops: int) -> Facts:
    """Tokens go round a ring with fixed latencies, one for each place; a token that arrives is sent on."""
    environment = simpy.Environment()
    timeout = environment.timeout

    class Place:
        __slots__ = ("onward", "seen")

        def __init__(self) -> None:
            self.seen = 0

        def hop(self, _: simpy.Event) -> None:
            self.seen += 1
            timeout(1).callbacks.append(self.onward)

    places = [Place() for _ in range(size)]
    for number, place in enumerate(places):
        place.onward = places[(number + 1) % size].hop
    for place in places:
        timeout(1).callbacks.append(place.onward)
    return race(environment, 0.5, hops + 0.5)


SCENARIOS: dict[str, Callable[..., Facts]] = {
    "mm1": mm1,
    "mm1_draws": mm1,
    "mm1_store": mm1_store,
    "bank": lambda units: mm1(units, patience=True),
    "rally": rally,
    "crowd": crowd,
    "any_of": any_of,
    "children": children,
    "preemption": preemption,
    "memory_signals": memory_signals,
    "phold_callbacks": phold_callbacks,
    "phold_processes": phold_processes,
    "tickers": tickers,
    "torus": torus,
    "memory_entities": memory_entities,
    "memory_addressees": memory_addressees,
    "memory_processes": memory_processes,
    "bellman_ford": bellman_ford,
    "ring": ring,
}


if __name__ == "__main__":
    apart.answer(SCENARIOS, __doc__, {"peer": f"SimPy {version('simpy')}"})
