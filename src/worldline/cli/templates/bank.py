"""A bank with one counter, whose customers lose patience: a SimPy model."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import worldline.simpy as simpy

CUSTOMERS = 20


def customer(env: simpy.Environment, name: str, counter: simpy.Resource) -> Generator[Any, Any, None]:
    arrived = env.now
    with counter.request() as request:
        found = yield request | env.timeout(env.rng.uniform(1, 3))
        if request not in found:
            print(f"{env.now:7.2f} {name} leaves after {env.now - arrived:.2f}")
            return
        yield env.timeout(env.rng.expovariate(1 / 4))
        print(f"{env.now:7.2f} {name} is done")


def arrivals(env: simpy.Environment, counter: simpy.Resource) -> Generator[Any, Any, None]:
    for number in range(CUSTOMERS):
        env.process(customer(env, f"customer {number}", counter))
        yield env.timeout(env.rng.expovariate(1 / 3))


def model(seed: int = 0) -> simpy.Environment:
    env = simpy.Environment(seed=seed)
    env.process(arrivals(env, simpy.Resource(env, capacity=1)))
    return env
