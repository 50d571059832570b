"""A shop with one clerk: how long do customers wait? Try: worldline run kernel.py --set clerks=2"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from worldline.kernel import Entity, Resource, Simulation
from worldline.model import MINUTE

UNTIL = "8h"


class Shop(Entity):
    """Customers come every five minutes, and are served in four, in the mean."""

    def __init__(self, clerks: int) -> None:
        self.clerks = Resource(clerks)

    def start(self) -> Generator[Any, Any, None]:
        while True:
            yield self.random.exponential("5min")
            self.process(self.serve())

    def serve(self) -> Generator[Any, Any, None]:
        came = self.now
        with self.clerks.acquire() as turn:
            yield turn
            self.measure("minutes", (self.now - came) / MINUTE)
            yield self.random.exponential("4min")


def model(seed: int = 1, clerks: int = 1) -> Simulation:
    simulation = Simulation(seed=seed)
    simulation.add("shop", Shop(clerks))
    return simulation


def outcome(_: Simulation, result: Any) -> str:
    minutes = result.monitors["shop", "minutes"].values
    return f"{len(minutes)} customers waited {sum(minutes) / len(minutes):.1f} minutes on average"
