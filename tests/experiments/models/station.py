"""A queue with closed forms: servers, Poisson arrivals, exponential or fixed service; waits are in mean service times.

It is Lindley's recursion in one handler, so that it is quick enough for thousands of runs.
"""

from __future__ import annotations

import os
import signal
from heapq import heapify, heapreplace
from typing import Any

from worldline.kernel import Entity, Simulation

UNIT = 1_000_000


class Station(Entity):
    def __init__(self, load: float, servers: int, fixed: bool, customers: int, trouble: str) -> None:
        self.pause = UNIT / (load * servers)
        self.free = [0] * servers
        self.fixed = fixed
        self.customers = customers
        self.trouble = trouble
        heapify(self.free)

    def start(self) -> Any:
        arrivals, services = self.stream("arrivals"), self.stream("services")
        for _ in range(self.customers):
            yield arrivals.exponential(self.pause)
            begins = max(self.now, self.free[0])
            heapreplace(self.free, begins + (UNIT if self.fixed else services.exponential(float(UNIT))))
            self.measure("wait", (begins - self.now) / UNIT)
        self.record("left", self.customers)
        self._make_trouble()

    def _make_trouble(self) -> None:
        if self.trouble == "fail":
            raise ValueError("the till is jammed")
        if self.trouble == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        while self.trouble == "hang":
            pass


def model(
    *,
    load: float = 0.5,
    servers: int = 1,
    fixed: bool = False,
    customers: int = 20,
    trouble: str = "",
    seed: int = 0,
) -> Simulation:
    simulation = Simulation(seed=seed)
    simulation.add("station", Station(load, servers, fixed, customers, trouble))
    return simulation


def measures(simulation: Simulation, result: Any) -> dict[str, int]:
    return {"served": len(result.monitors["station", "wait"])}
