"""PHOLD, the classic load for parallel event simulation: a fixed number of balls, thrown around at random for ever.

Every thrower starts with so many balls. A thrower who catches one throws it on at once, to another drawn at random, and
the ball flies for the lookahead plus an exponentially distributed time. That is all, so what is measured is the kernel:
its queue, its draws, and on several workers what it costs to keep them together. Most balls go to another worker and
catching one is no work, so here several workers are slower than one. With real work in `on_ball` they are faster.

    worldline run examples/phold/phold.py --until 100s --set throwers=1024 --executor "processes(2)"
    python examples/phold/phold.py --until 100s --throwers 1024 --executor "processes(2)"     # says how fast it is, too
"""

from __future__ import annotations

import argparse
import sys
import time

from worldline.kernel import Entity, KernelOutcome, Simulation, as_executor
from worldline.model import SECOND, Network, as_time, link

UNTIL = "20s"


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


def model(*, throwers: int = 64, balls: int = 16, lookahead: str = "100ms", seed: int = 0) -> Simulation:
    simulation = Simulation(network=Network(default=link(lookahead)), seed=seed)
    names = [f"thrower {number:05}" for number in range(throwers)]
    for name in names:
        simulation.add(name, Thrower(names, balls, as_time(lookahead)))
    return simulation


def outcome(simulation: Simulation, _: KernelOutcome) -> str:
    first = simulation["thrower 00000"]
    throwers = [simulation[name] for name in first.names]
    caught = [thrower.caught for thrower in throwers]
    count = len(throwers)
    return (
        f"{count} throwers, {count * first.balls} balls, {sum(caught):,} times caught\n"
        f"the luckiest caught {max(caught)}, the unluckiest {min(caught)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", type=as_executor, default="inline", help="inline, processes(2) or mpi")
    parser.add_argument("--until", default=UNTIL, help="simulated time")
    parser.add_argument("--throwers", type=int, default=64)
    parser.add_argument("--balls", type=int, default=16, help="of each thrower, at the start")
    parser.add_argument("--lookahead", default="100ms", help="the least flight of a ball")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    simulation = model(throwers=options.throwers, balls=options.balls, lookahead=options.lookahead, seed=options.seed)
    begun = time.perf_counter()
    result = simulation.run(options.until, executor=options.executor)
    took = time.perf_counter() - begun
    if options.executor.is_main:
        print(outcome(simulation, result))
        print(f"{options.executor}: {result.events / took:,.0f} events/s", file=sys.stderr)
        print("digest", result.digest.hex())


if __name__ == "__main__":
    main()
