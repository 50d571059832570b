"""A bank with one counter whose customers lose patience: a SimPy script, of which nothing but the import is ours."""

import random

import worldline.simpy as simpy

CUSTOMERS = 6


def customer(env, name, counter):
    arrived = env.now
    with counter.request() as request:
        found = yield request | env.timeout(random.uniform(1, 3))
        if request not in found:
            print(f"{env.now:6.2f} {name} leaves after {env.now - arrived:.2f}")
            return
        yield env.timeout(random.expovariate(1 / 4))
        print(f"{env.now:6.2f} {name} is done")


def arrivals(env, counter):
    for number in range(CUSTOMERS):
        env.process(customer(env, f"customer {number}", counter))
        yield env.timeout(random.expovariate(1 / 2))


env = simpy.Environment()
env.process(arrivals(env, simpy.Resource(env, capacity=1)))
env.run()
