"""PHOLD, the classic load for parallel event simulation: a fixed number of balls, thrown around at random for ever.

Every thrower starts with so many balls. Whoever catches one throws it on at once, to somebody drawn at random, and the
ball flies for the lookahead plus an exponentially distributed time. That is all, so what is measured is the kernel: its
queue, its draws, and on several workers what it costs to keep them together. Most balls go to another worker and
catching one is no work, so here several workers are slower than one. With real work in `on_ball` they are faster.

    python examples/phold/phold.py --until 100s --throwers 1024 --executor "processes(2)"
"""

from __future__ import annotations

import argparse
import sys
import time

from worldline.kernel import Entity, Simulation, as_executor
from worldline.model import SECOND, Network, as_time, link


class Thrower(Entity):
    """Catches balls and throws them on."""

    def __init__(self, names: list[str], balls: int, lookahead: int) -> None:
        self.names = names
        self.balls = balls
        self.lookahead = lookahead
        self.caught = 0

    def start(self) -> None:
        for _ in range(self.balls):
            self.throw()

    def on_ball(self, _: None) -> None:
        self.caught += 1
        self.throw()

    def throw(self) -> None:
        self.send(self.random.choice(self.names), "ball", delay=self.lookahead + self.random.exponential(SECOND))


def build(throwers: int, balls: int, lookahead: int, seed: int) -> Simulation:
    simulation = Simulation(network=Network(default=link(lookahead)), seed=seed)
    names = [f"thrower {number:05}" for number in range(throwers)]
    for name in names:
        simulation.add(name, Thrower(names, balls, lookahead))
    return simulation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", type=as_executor, default="inline", help="inline, processes(2) or mpi")
    parser.add_argument("--until", default="20s", help="simulated time")
    parser.add_argument("--throwers", type=int, default=64)
    parser.add_argument("--balls", type=int, default=16, help="of each thrower, at the start")
    parser.add_argument("--lookahead", type=as_time, default="100ms", help="the least flight of a ball")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    simulation = build(options.throwers, options.balls, options.lookahead, options.seed)
    begun = time.perf_counter()
    result = simulation.run(options.until, executor=options.executor)
    took = time.perf_counter() - begun
    if options.executor.is_main:
        caught = [simulation[f"thrower {number:05}"].caught for number in range(options.throwers)]
        print(f"{options.throwers} throwers, {options.throwers * options.balls} balls, {sum(caught):,} times caught")
        print(f"the luckiest caught {max(caught)}, the unluckiest {min(caught)}")
        print(f"{options.executor}: {result.events / took:,.0f} events/s", file=sys.stderr)
        print("digest", result.digest.hex())


if __name__ == "__main__":
    main()
