"""A million entities: a rumour in a big town.

A person who hears the rumour thinks about it for an exponentially distributed time, and then tells two
people drawn at random from the whole town. More and more of those know it already, so the rumour dies out before
all have heard it. The share z that hears it solves z = 1 - exp(-2 z): 79.68 %, a number to check the kernel by.

The point is the size: what a million entities take to build, how many events per second there are, and how much memory
they need. Those figures depend on the machine and go to the standard error; what happens in the town doesn't.

    worldline run examples/million/million.py
    python examples/million/million.py
    python examples/million/million.py --entities 100000 --executor "processes(2)"
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

from worldline.kernel import Entity, KernelOutcome, Simulation, as_executor
from worldline.model import HOUR, Network, link

TELLS = 2


def name_of(number: int) -> str:
    return f"{number:07}"


class Person(Entity):
    """Passes on what it hears, once."""

    def __init__(self, town: int) -> None:
        self.town = town
        self.heard = 0

    def on_rumour(self, _: None) -> None:
        if not self.heard:
            self.heard = self.now
            self.schedule("talk", delay=self.random.exponential(HOUR))

    def on_talk(self, _: None) -> None:
        for _ in range(TELLS):
            self.send(name_of(self.random.randrange(self.town)), "rumour")


def model(*, entities: int = 1_000_000, seed: int = 0) -> Simulation:
    simulation = Simulation(network=Network(default=link("10min")), seed=seed)
    for number in range(entities):
        simulation.add(name_of(number), Person(entities))
    simulation.send(name_of(0), "rumour", at="1min")
    return simulation


def outcome(simulation: Simulation, _: KernelOutcome) -> str:
    town = simulation[name_of(0)].town
    heard = sorted(at for number in range(town) if (at := simulation[name_of(number)].heard))
    return (
        f"{len(heard):,} of {town:,} have heard it, {len(heard) / town:.2%}\n"
        f"half of them after {heard[len(heard) // 2] / HOUR:.1f} h, the last after {heard[-1] / HOUR:.1f} h"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", type=as_executor, default="inline", help="inline, processes(2) or mpi")
    parser.add_argument("--until", help="simulated time; by itself, until it isn't told any more")
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    begun = time.perf_counter()
    simulation = model(entities=options.entities, seed=options.seed)
    built = time.perf_counter()
    result = simulation.run(options.until, executor=options.executor)
    done = time.perf_counter()
    if options.executor.is_main:
        print(outcome(simulation, result))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(f"built in {built - begun:.1f} s", file=sys.stderr)
        print(f"{result.events:,} events, {result.events / (done - built):,.0f} per second", file=sys.stderr)
        print(f"{memory / 1e6:,.0f} MB, {memory / options.entities:,.0f} bytes per entity", file=sys.stderr)
        print("digest", result.digest.hex())


if __name__ == "__main__":
    main()
