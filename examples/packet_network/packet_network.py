"""A packet network on a torus: routers, links of limited bandwidth that lose packets, and what that does to delays.

Every router sends packets to others drawn at random, and passes on what isn't for itself: first along its row, then
along its column, the shorter way round. A link takes 2 ms, and sends only so many bytes per second; what comes while it
is busy waits for its turn. That wait is all there is to see here: with twice the traffic, packets take much longer.

Only neighbors are linked, and the links are declared. So the kernel knows which routers are close, gives each worker a
patch of the torus, and a worker waits for those next to it only.

    worldline run examples/packet_network/packet_network.py --set rate=400 --executor "processes(2)"
"""

from __future__ import annotations

import argparse
from collections.abc import Generator
from typing import Any

from worldline.kernel import Entity, KernelOutcome, Simulation, as_executor
from worldline.model import MS, SECOND, link

# What travels: the row and column of its goal, when it was sent, and a load, whose size is what a link takes time for.
# A plain tuple of plain values can't change, so it needn't be copied at every hop.
Packet = tuple[int, int, int, bytes]

UNTIL = "500ms"


def name_of(row: int, column: int) -> str:
    return f"router {row:03}-{column:03}"


def step(here: int, there: int, size: int) -> int:
    """Return the next place on a ring, the shorter way."""
    ahead = (there - here) % size
    if ahead == 0:
        return here
    return (here + (1 if 2 * ahead <= size else -1)) % size


class Router(Entity):
    """Sends packets of its own, and passes on those of others."""

    def __init__(self, row: int, column: int, size: int, rate: int) -> None:
        self.row = row
        self.column = column
        self.size = size
        self.pause = SECOND // rate
        self.own = 0
        self.delays: list[int] = []
        self.passed_on = 0

    def start(self) -> Generator[Any, Any, None]:
        while True:
            yield self.random.exponential(self.pause)
            row, column = self.random.randrange(self.size), self.random.randrange(self.size)
            self.own += 1
            self.forward((row, column, self.now, bytes(self.random.choice((50, 500, 1500)))))

    def on_packet(self, packet: Packet) -> None:
        self.passed_on += 1
        self.forward(packet)

    def forward(self, packet: Packet) -> None:
        row, column, born, _ = packet
        if column != self.column:
            self.send(name_of(self.row, step(self.column, column, self.size)), "packet", packet)
        elif row != self.row:
            self.send(name_of(step(self.row, row, self.size), self.column), "packet", packet)
        else:
            self.delays.append(self.now - born)


def model(
    *, size: int = 8, rate: int = 200, bandwidth: int = 250_000, loss: float = 0.005, seed: int = 0
) -> Simulation:
    """Set it up: a torus of so many routers in both directions, packets and bytes per second, and losses on links."""
    simulation = Simulation(declared_only=True, seed=seed)
    for row in range(size):
        for column in range(size):
            simulation.add(name_of(row, column), Router(row, column, size, rate))
    cable = link("2ms", bandwidth=bandwidth, loss=loss)
    for row in range(size):
        for column in range(size):
            simulation.connect(name_of(row, column), name_of(row, (column + 1) % size), cable)
            simulation.connect(name_of(row, column), name_of((row + 1) % size, column), cable)
    return simulation


def outcome(simulation: Simulation, result: KernelOutcome) -> str:
    size = simulation[name_of(0, 0)].size
    routers = [simulation[name_of(row, column)] for row in range(size) for column in range(size)]
    delays = sorted(delay for router in routers for delay in router.delays)
    sent, lost = sum(router.own for router in routers), sum(result.dropped.values())
    busiest = max(routers, key=lambda router: router.passed_on)
    marks = ", ".join(f"{share} % within {delays[len(delays) * share // 100] / MS:.1f} ms" for share in (50, 90, 99))
    return (
        f"{sent:,} packets, {len(delays):,} arrived, {lost} lost, the others under way\n"
        f"of those that arrived, {marks}\n"
        f"the busiest was the one at {busiest.row}, {busiest.column}, with {busiest.passed_on} packets"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", type=as_executor, default="inline", help="inline, processes(2) or mpi")
    parser.add_argument("--until", default=UNTIL, help="simulated time")
    parser.add_argument("--size", type=int, default=8, help="of the torus in both directions, at least 3")
    parser.add_argument("--rate", type=int, default=200, help="packets per second of each router")
    parser.add_argument("--bandwidth", type=int, default=250_000, help="of each link, in bytes per second")
    parser.add_argument("--loss", type=float, default=0.005, help="on each link")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    simulation = model(
        size=options.size, rate=options.rate, bandwidth=options.bandwidth, loss=options.loss, seed=options.seed
    )
    result = simulation.run(options.until, executor=options.executor)
    if options.executor.is_main:
        print(outcome(simulation, result))
        print("digest", result.digest.hex())


if __name__ == "__main__":
    main()
