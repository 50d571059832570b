"""The same SimPy models on SimPy itself and on Worldline's: which of the two is the first argument.

A unit of work is what a user would count: a customer, a job, a message back and forth. Speed is processor time per
unit, after a warm-up with a tenth of the work. Memory is what a process grows by, per object.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

simpy: Any = None


def mm1(count: int, draw: Any) -> Any:
    """Customers that queue for one server."""
    env = simpy.Environment()
    server = simpy.Resource(env, capacity=1)
    exponential = draw.expovariate

    def customer() -> Any:
        with server.request() as request:
            yield request
            yield env.timeout(exponential(1.0))

    def arrivals() -> Any:
        for _ in range(count):
            yield env.timeout(exponential(0.9))
            env.process(customer())

    env.process(arrivals())
    env.run()
    return env


def mm1_random(count: int) -> Any:
    return mm1(count, random.Random(7))


def mm1_draws(count: int) -> Any:
    from worldline.kernel.draws import Draws

    return mm1(count, Draws(7, "mm1"))


def mm1_store(count: int) -> Any:
    """Jobs that pass through a store."""
    env = simpy.Environment()
    store = simpy.Store(env)
    exponential = random.Random(7).expovariate

    def producer() -> Any:
        for number in range(count):
            yield env.timeout(exponential(0.9))
            yield store.put(number)

    def consumer() -> Any:
        for _ in range(count):
            yield store.get()
            yield env.timeout(exponential(1.0))

    env.process(producer())
    env.process(consumer())
    env.run()
    return env


def renege(count: int) -> Any:
    """Customers that wait for a counter, but not for long."""
    env = simpy.Environment()
    counter = simpy.Resource(env, capacity=1)
    draw = random.Random(7)

    def customer() -> Any:
        with counter.request() as request:
            found = yield request | env.timeout(draw.uniform(1, 3))
            if request in found:
                yield env.timeout(draw.expovariate(1 / 12))

    def arrivals() -> Any:
        for _ in range(count):
            env.process(customer())
            yield env.timeout(draw.expovariate(1 / 10))

    env.process(arrivals())
    env.run()
    return env


def machine_shop(count: int) -> Any:
    """Machines that break, and a repairer that is taken away from other work."""
    env = simpy.Environment()
    repairer = simpy.PreemptiveResource(env, capacity=1)
    draw = random.Random(7)
    made = [0]

    def machine() -> Any:
        working = env.process(parts())
        env.process(breaks(working))
        yield working

    def parts() -> Any:
        while made[0] < count:
            left = abs(draw.gauss(10, 2))
            while left:
                start = env.now
                try:
                    yield env.timeout(left)
                    left = 0
                except simpy.Interrupt:
                    left -= env.now - start
                    with repairer.request(priority=1) as request:
                        yield request
                        yield env.timeout(30)
            made[0] += 1

    def breaks(working: Any) -> Any:
        while working.is_alive:
            yield env.timeout(draw.expovariate(1 / 300))
            is_at_work = working.is_alive and type(working.target).__name__ == "Timeout"
            if is_at_work and repairer.count == 0:
                working.interrupt()

    def other_jobs() -> Any:
        while made[0] < count:
            left = 30.0
            while left:
                with repairer.request(priority=2) as request:
                    yield request
                    start = env.now
                    try:
                        yield env.timeout(left)
                        left = 0
                    except simpy.Interrupt:
                        left -= env.now - start

    for _ in range(10):
        env.process(machine())
    env.process(other_jobs())
    env.run()
    return env


def timeouts(count: int) -> Any:
    """A hundred processes that do nothing but wait."""
    env = simpy.Environment()

    def clock(period: float) -> Any:
        while True:
            yield env.timeout(period)

    for number in range(100):
        env.process(clock(1 + number / 100))
    env.run(until=count / 68)
    return env


def ping_pong(count: int) -> Any:
    """Two processes that wake each other by events."""
    env = simpy.Environment()
    events = [env.event(), env.event()]

    def player(own: int) -> Any:
        for _ in range(count // 2):
            yield events[own]
            events[own] = env.event()
            events[1 - own].succeed()

    env.process(player(0))
    env.process(player(1))
    events[0].succeed()
    env.run()
    return env


def contention(count: int) -> Any:
    """A hundred processes that fight for a few places."""
    env = simpy.Environment()
    places = simpy.Resource(env, capacity=5)

    def user() -> Any:
        for _ in range(count // 100):
            with places.request() as request:
                yield request
                yield env.timeout(1)

    for _ in range(100):
        env.process(user())
    env.run()
    return env


def any_of(count: int) -> Any:
    """A get that has a time limit."""
    env = simpy.Environment()
    store = simpy.Store(env)

    def producer() -> Any:
        for number in range(count):
            yield env.timeout(1)
            yield store.put(number)

    def consumer() -> Any:
        for number in range(count):
            get = store.get()
            found = yield env.any_of([get, env.timeout(3 if number % 3 else 0.5)])
            if get not in found:
                yield get

    env.process(producer())
    env.process(consumer())
    env.run()
    return env


def start_and_await(count: int) -> Any:
    """A process that starts others, and waits for each."""
    env = simpy.Environment()

    def child() -> Any:
        yield env.timeout(1)
        return 1

    def parent() -> Any:
        for _ in range(count):
            yield env.process(child())

    env.process(parent())
    env.run()
    return env


WORKLOADS: dict[str, Callable[[int], Any]] = {
    each.__name__: each
    for each in (
        mm1_random,
        mm1_draws,
        mm1_store,
        renege,
        machine_shop,
        timeouts,
        ping_pong,
        contention,
        any_of,
        start_and_await,
    )
}


# -- Memory


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def memory_processes(count: int) -> list[Any]:
    env = simpy.Environment()

    def waiting() -> Any:
        yield env.timeout(5.5)

    made = [env.process(waiting()) for _ in range(count)]
    env.run(until=1)
    return [env, made]


def memory_events(count: int) -> list[Any]:
    env = simpy.Environment()
    return [env.event() for _ in range(count)]


def memory_timeouts(count: int) -> list[Any]:
    env = simpy.Environment()
    return [env, [env.timeout(number + 0.5) for number in range(count)]]


MEMORY = {each.__name__: each for each in (memory_processes, memory_events, memory_timeouts)}


def main() -> None:
    global simpy
    package, what, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    simpy = import_module(package)
    if what in MEMORY:
        gc.disable()
        before = _resident()
        kept = MEMORY[what](count)
        print(json.dumps({"bytes": (_resident() - before) / count, "kept": len(kept)}))
        return
    WORKLOADS[what](count // 10)
    gc.collect()
    began = time.process_time()
    env = WORKLOADS[what](count)
    took = time.process_time() - began
    facts = {"us": 1e6 * took / count, "now": repr(env.now), "events": next(env._eid)}
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
