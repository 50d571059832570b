"""A checkout whose waiting times have a closed form, so that what sweeps say of it can be checked.

Customers come at random, and are served in a minute in the mean, at one of some desks. With one desk that is busy for
a share r of the time, they wait r / (1 - r) minutes in the mean (M/M/1); `expected` has it for any number of desks.

    worldline sweep examples/checkout/checkout.py --set load=0.5,0.6 --seeds 20 --warm-up 1h --measure wait.mean
"""

from __future__ import annotations

from collections.abc import Generator
from math import factorial
from typing import Any

from worldline.kernel import Entity, KernelOutcome, Resource, Simulation
from worldline.model import MINUTE

UNTIL = "20h"


class Checkout(Entity):
    """Some desks and one queue. Arrivals and services have streams of their own, so that variants can share both."""

    def __init__(self, load: float, desks: int) -> None:
        self.pause = MINUTE / (load * desks)
        self.desks = Resource(desks)

    def start(self) -> Generator[Any, Any, None]:
        arrivals = self.stream("arrivals")
        while True:
            yield arrivals.exponential(self.pause)
            self.process(self.serve(self.stream("services").exponential(MINUTE)))

    def serve(self, takes: int) -> Generator[Any, Any, None]:
        came = self.now
        with self.desks.acquire() as turn:
            yield turn
            self.measure("wait", (self.now - came) / MINUTE)
            yield takes


def model(*, load: float = 0.5, desks: int = 1, seed: int = 0) -> Simulation:
    """Set it up, with desks that are busy for a share `load` of the time."""
    simulation = Simulation(seed=seed)
    simulation.add("checkout", Checkout(load, desks))
    return simulation


def outcome(_: Simulation, result: KernelOutcome) -> str:
    waits = result.monitors["checkout", "wait"].values
    return f"{len(waits)} customers, of which {sum(wait > 0 for wait in waits)} had to wait"


def expected(load: float, desks: int) -> float:
    """Return the mean wait in minutes, by Erlang's formula."""
    offered = load * desks
    busy = offered**desks / factorial(desks) / (1 - load)
    return busy / (sum(offered**n / factorial(n) for n in range(desks)) + busy) / (desks * (1 - load))
