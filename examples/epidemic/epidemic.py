"""An epidemic in a chain of islands, and a quarantine that comes too late or just in time.

Every island is an entity that knows how many of its people were never ill. A person who falls ill becomes an entity of
its own, created by the island: it meets people for some days, each of whom may catch it, then is well, and ends. Most
that it meets live on the same island; some live on the next one, and a ferry goes there, which takes half a day to two
days, and doesn't run in bad weather: a link with a latency and losses. Islands are linked to their neighbors and to no
others, and an ill person uses the links of its island.

From `--quarantine` on, no ferry leaves or reaches the island in the middle: a partition, scheduled in simulated time.

    python examples/epidemic/epidemic.py --quarantine 60d --executor "processes(2)"
"""

from __future__ import annotations

import argparse
from collections.abc import Generator, Sequence
from itertools import count, pairwise, takewhile
from typing import Any

from worldline.kernel import Entity, KernelOutcome, Simulation, as_executor, process
from worldline.model import HOUR, Network, link, partition

DAY = 24 * HOUR
FERRY = link("uniform(12h, 48h)", loss=0.3)
CONTAGION = 0.25  # The chance to catch it from a meeting, if one can.


class Island(Entity):
    """Counts its people, and decides which meetings have consequences."""

    def __init__(self, people: int, neighbors: Sequence[str]) -> None:
        self.people = people
        self.neighbors = neighbors
        self.untouched = people
        self.ill = 0

    def on_meeting(self, _: None) -> None:
        chance = CONTAGION * self.untouched / self.people  # Most of those that one meets may have had it.
        if self.random.random() < chance:
            self.untouched -= 1
            self.ill += 1
            self.record("ill", self.ill)
            self.create(process(patient, self.name, self.neighbors))

    def on_well(self, _: None) -> None:
        self.ill -= 1
        self.record("ill", self.ill)


def patient(me: Entity, island: str, neighbors: Sequence[str]) -> Generator[Any, Any, None]:
    """A person who is ill: meets people for a week or so. The entity ends when this function does."""
    well = me.now + me.random.randint(4, 10) * DAY
    while (pause := me.random.exponential(15 * HOUR)) < well - me.now:
        yield pause
        travels = me.random.random() < 0.05
        me.send(me.random.choice(neighbors) if travels else island, "meeting")
    yield well - me.now
    me.send(island, "well")


def model(*, islands: int = 7, people: int = 300, quarantine: str = "40d", seed: int = 2) -> Simulation:
    """Set it up, with so many people on each island; from the quarantine on, the one in the middle is cut off."""
    names = [f"island {number:02}" for number in range(islands)]
    middle = names[islands // 2]
    outages = partition([middle], [name for name in names if name != middle], quarantine)
    simulation = Simulation(network=Network(outages=outages), declared_only=True, seed=seed)
    for number, name in enumerate(names):
        neighbors = [names[other] for other in (number - 1, number + 1) if 0 <= other < islands]
        simulation.add(name, Island(people, neighbors))
    for here, there in pairwise(names):
        simulation.connect(here, there, FERRY)
    for _ in range(10):
        simulation.send(names[0], "meeting")  # A visitor has brought it.
    return simulation


def outcome(simulation: Simulation, result: KernelOutcome) -> str:
    lines = []
    for name in takewhile(simulation.__contains__, map("island {:02}".format, count())):
        island, ill = simulation[name], result.monitors.get((name, "ill"))
        spared = f"{island.untouched:4} of {island.people} never had it"
        if ill is None:
            lines.append(f"{name}: {spared}")
            continue
        peak = max(ill.values)
        first, worst = ill.times[0] // DAY, ill.times[ill.values.index(peak)] // DAY
        lines.append(f"{name}: {spared}; first case on day {first}, {peak} ill on day {worst}")
    canceled = sum(result.dropped.values())
    return "\n".join(
        [*lines, f"{result.events:,} events in {result.now // DAY} days; {canceled} journeys didn't take place"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", type=as_executor, default="inline", help="inline, processes(2) or mpi")
    parser.add_argument("--until", help="simulated time; by itself, until no person is ill any more")
    parser.add_argument("--islands", type=int, default=7)
    parser.add_argument("--people", type=int, default=300, help="on each island")
    parser.add_argument("--quarantine", default="40d", help="when the island in the middle is cut off")
    parser.add_argument("--seed", type=int, default=2)
    options = parser.parse_args()

    simulation = model(islands=options.islands, people=options.people, quarantine=options.quarantine, seed=options.seed)
    result = simulation.run(options.until, executor=options.executor)
    if options.executor.is_main:
        print(outcome(simulation, result))
        print("digest", result.digest.hex())


if __name__ == "__main__":
    main()
