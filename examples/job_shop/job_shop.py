"""A job shop: orders travel from station to station, machines break down, and there are never enough repairers.

The office releases orders, each with its own way through the stations and its own time at each. A station has a few
machines, and works on an order as soon as one is free. Every order at a station is a process, which waits for a
machine, works and sends the order on. Now and then a machine breaks down: its work is interrupted, the workshop is
told, and when a repairer has come and gone the rest of the work is done. All stations share the repairers, so the
workshop is an entity of its own: what belongs to nobody in particular must be somebody, who is asked by messages.

    worldline run examples/job_shop/job_shop.py --until 240h --set repairers=2 --executor "processes(2)"
"""

from __future__ import annotations

import argparse
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from worldline.kernel import Entity, Interrupt, KernelOutcome, Process, Resource, Signal, Simulation, as_executor
from worldline.model import HOUR, MINUTE, Network, link

STATIONS = {"saw": 2, "lathe": 2, "mill": 2, "drill": 2, "paint": 1}  # With so many machines.
LIFE = 6 * HOUR  # How long a station goes without a breakdown, in the mean.
REPAIR = 50 * MINUTE
UNTIL = "240h"

Steps = Generator[Any, Any, None]


@dataclass
class Order:
    """What travels: the stations that it still has to go to, and how long it takes at each."""

    number: int
    released: int
    way: list[tuple[str, int]]


class Office(Entity):
    """Releases orders, and gets them back when they are done."""

    def __init__(self, pause: int) -> None:
        self.pause = pause
        self.released = 0
        self.done: list[int] = []  # How long each order has taken.

    def start(self) -> Steps:
        while True:
            yield self.random.exponential(self.pause)
            self.released += 1
            stations = self.random.sample(list(STATIONS), k=self.random.randint(2, 4))
            way = [(station, self.random.randint(10, 50) * MINUTE) for station in stations]
            self.send(way[0][0], "order", Order(self.released, self.now, way))
            self.record("under way", self.released - len(self.done))

    def on_order(self, order: Order) -> None:
        self.done.append(self.now - order.released)
        self.measure("hours", (self.now - order.released) / HOUR)
        self.record("under way", self.released - len(self.done))


class Station(Entity):
    """Some machines of one kind, and the orders that wait for them."""

    def __init__(self, machines: int) -> None:
        self.machines = Resource(machines)
        self.orders: dict[int, Process] = {}  # By number, like what follows.
        self.working: list[int] = []
        self.repaired: dict[int, Signal] = {}
        self.breakdowns = 0

    def start(self) -> Steps:
        while True:
            yield self.random.exponential(LIFE)
            if self.working:  # What stands still doesn't break.
                self.orders[self.random.choice(self.working)].interrupt()

    def on_order(self, order: Order) -> None:
        self.orders[order.number] = self.process(self.make(order))

    def on_repaired(self, number: int) -> None:
        self.repaired.pop(number).fire()

    def make(self, order: Order) -> Steps:
        (_, left), *order.way = order.way
        with self.machines.acquire() as turn:
            self.record("queue", self.machines.waiting)
            yield turn
            self.record("queue", self.machines.waiting)
            while left:
                begun = self.now
                self.working.append(order.number)
                try:
                    yield left
                    left = 0
                except Interrupt:
                    left -= self.now - begun
                self.working.remove(order.number)
                if left:
                    self.breakdowns += 1
                    yield from self.repair(order.number)
        del self.orders[order.number]
        self.send(order.way[0][0] if order.way else "office", "order", order)

    def repair(self, number: int) -> Steps:
        """Wait for a repairer. Others may wait too, so everybody has a signal of its own."""
        repaired = self.repaired[number] = Signal()
        self.send("workshop", "broken", number)
        yield repaired


class Workshop(Entity):
    """Sends repairers to whoever needs one: first come, first served."""

    def __init__(self, repairers: int) -> None:
        self.repairers = Resource(repairers)

    def on_broken(self, number: int) -> Steps:
        station = self.sender  # Now, since this handler waits: later, something else will have been sent last.
        with self.repairers.acquire() as turn:
            self.record("waiting", self.repairers.waiting)
            yield turn
            self.record("waiting", self.repairers.waiting)
            yield self.random.exponential(REPAIR)
        self.send(station, "repaired", number)


def model(*, minutes: int = 24, repairers: int = 1, seed: int = 0) -> Simulation:
    """Set it up; `minutes` are between two orders, in the mean."""
    simulation = Simulation(network=Network(default=link("uniform(2min, 6min)")), seed=seed)
    simulation.add("office", Office(minutes * MINUTE))
    simulation.add("workshop", Workshop(repairers))
    for name, machines in STATIONS.items():
        simulation.add(name, Station(machines))
    return simulation


def outcome(simulation: Simulation, result: KernelOutcome) -> str:
    office = simulation["office"]
    hours = [took / HOUR for took in sorted(office.done)]
    under_way = result.monitors["office", "under way"]
    lines = [
        f"{len(hours)} of {office.released} orders done; {under_way.mean():.1f} under way in the mean",
        f"half of them took up to {hours[len(hours) // 2]:.1f} h, the longest {hours[-1]:.1f} h",
    ]
    for name in STATIONS:
        queue = result.monitors[name, "queue"]
        length = f"a queue of {queue.mean():.2f} in the mean, at most {max(queue.values)}"
        lines.append(f"  {name:<6} {simulation[name].breakdowns:3} breakdowns, {length}")
    waiting = result.monitors["workshop", "waiting"].mean()
    return "\n".join([*lines, f"{waiting:.2f} machines wait for a repairer in the mean"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", type=as_executor, default="inline", help="inline, processes(2) or mpi")
    parser.add_argument("--until", default=UNTIL, help="simulated time")
    parser.add_argument("--minutes", type=int, default=24, help="between two orders, in the mean")
    parser.add_argument("--repairers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    simulation = model(minutes=options.minutes, repairers=options.repairers, seed=options.seed)
    result = simulation.run(options.until, executor=options.executor)
    if options.executor.is_main:
        print(outcome(simulation, result))
        print("digest", result.digest.hex())


if __name__ == "__main__":
    main()
