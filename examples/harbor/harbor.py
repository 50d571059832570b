"""A harbor: ships wait for a berth, a crane and fuel, and a ferry has the right of way.

Everything happens inside of one entity, whose processes compete for what there is:

- berths are a `Resource`. The ferry takes the berth of a freighter, if all are taken: that one is interrupted, has to
  cast off, and waits for another berth to unload the rest;
- fuel is an amount, in a `Container`, which a tanker fills up now and then;
- cranes are things with names in a `Store`: a heavy ship waits for the heavy one;
- a captain that waits too long for a berth sails on (``turn | "6h"``), and a ship departs when it is both unloaded and
  bunkered (``unloaded & bunkered``);
- a crane may break down, which fails the process that unloads: the ship catches that, and waits for another crane.

Two harbors are two entities. Ships that sail on go to the other one, as messages.

    worldline run examples/harbor/harbor.py --executor "processes(2)"
"""

from __future__ import annotations

import argparse
from collections.abc import Generator
from typing import Any

from worldline.kernel import Container, Entity, Interrupt, KernelOutcome, Resource, Simulation, Store, as_executor, wait
from worldline.model import HOUR, MINUTE, Network, link

UNTIL = "240h"

Steps = Generator[Any, Any, Any]


class CraneError(Exception):
    """What a ship has to live with."""


class Harbor(Entity):
    """Berths, cranes and fuel, and the ships that are there."""

    def __init__(self, other: str, berths: int) -> None:
        self.other = other
        self.berths = Resource(berths)
        self.fuel = Container(500, level=300)
        self.cranes = Store()
        self.departed = self.sailed_on = self.cast_off = self.breakdowns = 0

    def start(self) -> Steps:
        for crane in (("light", 10), ("light", 10), ("heavy", 40)):
            self.cranes.put(crane)
        self.process(self.tanker())
        self.process(self.ferry())
        while True:
            yield self.random.exponential("5h")
            self.process(self.ship(self.random.choice((5, 8, 30))))

    def on_ship(self, weight: int) -> Steps:
        yield from self.ship(weight)

    def ship(self, weight: int) -> Steps:
        arrived, left = self.now, self.random.exponential("6h")
        while left:
            with self.berths.acquire(priority=1) as turn:
                if turn not in (yield turn | "6h"):
                    self.sailed_on += 1
                    self.send(self.other, "ship", weight)
                    return
                begun = self.now
                unloaded = self.process(self.unload(weight, left))
                bunkered = self.process(self.bunker(weight))
                try:
                    yield unloaded & bunkered
                    left = 0
                except CraneError:
                    self.breakdowns += 1
                    left = max(MINUTE, left - (self.now - begun))
                except Interrupt:  # The ferry has the berth now.
                    self.cast_off += 1
                    left = max(MINUTE, left - (self.now - begun))
                    for work in (unloaded, bunkered):
                        if not work.has_ended:
                            work.interrupt()
        self.departed += 1
        self.record("hours in the harbor", (self.now - arrived) / HOUR)

    def unload(self, weight: int, duration: int) -> Steps:
        crane = None
        try:
            crane = yield self.cranes.get(lambda crane: crane[1] >= weight)
            breakdown = self.random.exponential("60h")
            yield min(duration, breakdown)
            if breakdown < duration:
                raise CraneError(crane[0])
        except Interrupt:
            return
        finally:
            if crane is not None:
                self.cranes.put(crane)

    def bunker(self, weight: int) -> Steps:
        try:
            yield wait(self.fuel.get(weight), limit="12h")  # If there is none, it sails with what it has.
        except Interrupt:
            return

    def tanker(self) -> Steps:
        while True:
            yield "24h"
            yield self.fuel.put(120) | "2h"
            self.record("fuel", self.fuel.level)

    def ferry(self) -> Steps:
        while True:
            yield "8h"
            with self.berths.acquire(priority=0, preempt=True) as turn:
                yield turn
                yield "30min"


def model(*, berths: int = 3, seed: int = 0) -> Simulation:
    simulation = Simulation(network=Network(default=link("5h")), seed=seed)
    simulation.add("east", Harbor("west", berths))
    simulation.add("west", Harbor("east", berths))
    return simulation


def outcome(simulation: Simulation, result: KernelOutcome) -> str:
    lines = []
    for name in ("east", "west"):
        harbor = simulation[name]
        hours = result.monitors[name, "hours in the harbor"].values
        lines.append(
            f"{name}: {harbor.departed} ships departed, after {sum(hours) / len(hours):.1f} h in the mean; "
            f"{harbor.sailed_on} sailed on, {harbor.cast_off} made way for the ferry, {harbor.breakdowns} breakdowns"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", type=as_executor, default="inline", help="inline, processes(2) or mpi")
    parser.add_argument("--until", default=UNTIL, help="simulated time")
    parser.add_argument("--berths", type=int, default=3, help="in each harbor")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    simulation = model(berths=options.berths, seed=options.seed)
    result = simulation.run(options.until, executor=options.executor)
    if options.executor.is_main:
        print(outcome(simulation, result))
        print("digest", result.digest.hex())


if __name__ == "__main__":
    main()
