"""Models for our kernel's executors, run by one of them: a ring of stations that work, and PHOLD, that does nothing.

Under `mpiexec` every rank runs this script; only the first prints.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from worldline.kernel import Entity, Simulation, as_executor, build
from worldline.model import MS, SECOND, US, Network, link

SEED = 1
STATIONS = 8
WORKERS = 2
GAP = 10 * US  # Between two events of a worker, on average.
PERIOD = GAP * STATIONS
CALIBRATIONS = 200

Facts = dict[str, Any]


def work(iterations: int) -> int:
    """Be busy with whole numbers, in registers and the first cache only."""
    number = 1
    for _ in range(iterations):
        number = (number * 69_069 + 1) & 0xFFFFFFFF
    return number


def calibrated(microseconds: int) -> Facts:
    """Return how many iterations take so long, when nothing disturbs."""
    iterations = 1_000
    best = min(_seconds(work, iterations) for _ in range(CALIBRATIONS))
    return {"iterations": round(iterations * microseconds * 1e-6 / best)}


def _seconds(function: Callable[[int], object], argument: int) -> float:
    start = time.perf_counter()
    function(argument)
    return time.perf_counter() - start


class Station(Entity):
    """Works at its own times, and tells the next one, which works on that too: every event costs the same."""

    def __init__(self, number: int, following: str, iterations: int, *, is_random: bool) -> None:
        self.number = number
        self.following = following
        self.iterations = iterations
        self.is_random = is_random
        self.turns = 0
        self.stopwatch = Stopwatch()

    def start(self) -> None:
        self.schedule("turn", delay=self.number * PERIOD // STATIONS)

    def on_turn(self, _: object) -> None:
        work(self.iterations)
        self.turns += 1
        self.send(self.following, "news", self.turns)
        self.schedule("turn", delay=self.random.exponential(PERIOD) if self.is_random else PERIOD)

    def on_news(self, _: int) -> None:
        work(self.iterations)


def ring(lookahead: int, is_random: int, iterations: int, events: int) -> tuple[Simulation, int]:
    """Half of the stations are on each of two workers; a link takes as long as so many events of one worker are apart.

    A station has two events in each period, one of its own and one from the station before it. Half of the stations
    share a worker, so its events are a period / number of stations apart.
    """
    simulation = Simulation(seed=SEED, declared_only=True)
    names = [f"station{number}" for number in range(STATIONS)]
    for number, name in enumerate(names):
        following = names[(number + 1) % STATIONS]
        simulation.add(name, Station(number, following, iterations, is_random=bool(is_random)))
        simulation.connect(name, following, lookahead * GAP, both=False)
    return simulation, events * GAP // WORKERS


class Stopwatch:
    """An attribute that is the processor time of its process when it leaves that: so a worker's comes to light."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def __reduce__(self) -> tuple[Any, ...]:
        return Stopwatch, (time.process_time(),)


def stopwatches(simulation: Simulation, name: str) -> list[Stopwatch]:
    return [each for each in vars(simulation[name]).values() if isinstance(each, Stopwatch)] if name else []


class Place(Entity):
    """Has jobs: most of them it does again itself, after a while; the others go to a place of the other worker."""

    def __init__(self, number: int, places: int, jobs: int, remote: float, lookahead: int) -> None:
        self.number = number
        self.places = places
        self.jobs = jobs
        self.remote = remote
        self.lookahead = lookahead
        self.stopwatch = Stopwatch() if number < WORKERS else None

    def start(self) -> None:
        for _ in range(self.jobs):
            self.schedule("job", delay=self.random.exponential(SECOND))

    def on_job(self, _: object) -> None:
        draws = self.random
        delay = draws.exponential(SECOND)
        if draws.random() < self.remote:
            to = (self.number + 1 + WORKERS * draws.randrange(self.places // WORKERS)) % self.places
            self.send(f"place{to:06}", "job", delay=self.lookahead + delay)
        else:
            self.schedule("job", delay=delay)


def phold(places: int, jobs: int, until_s: int, remote_percent: int, lookahead_ms: int) -> tuple[Simulation, int]:
    """Handlers that do nothing but send, after a second on average: the worst case of several workers.

    Entities are dealt out by their names, so the places with odd numbers are on the other worker.
    """
    simulation = Simulation(seed=SEED, network=Network(default=link(lookahead_ms * MS)))
    for number in range(places):
        place = Place(number, places, jobs, remote_percent / 100, lookahead_ms * MS)
        simulation.add(f"place{number:06}", place)
    return simulation, until_s * SECOND


MODELS: dict[str, Callable[..., tuple[Simulation, int]]] = {"ring": ring, "phold": phold}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=[*MODELS, "calibrated"])
    parser.add_argument("numbers", type=int, nargs="+", help="the model's arguments, in their order")
    parser.add_argument("--executor", default="inline")
    given = parser.parse_args()
    if given.model == "calibrated":
        print(json.dumps(calibrated(*given.numbers)))
        return
    executor = as_executor(given.executor)
    # A small run first: it loads what the executor needs, and starts the process that workers come from.
    warm_up, end = ring(10, 0, 1, 100)
    warm_up.run(until=end, executor=executor)
    simulation, end = MODELS[given.model](*given.numbers)
    start, processor = time.perf_counter(), time.process_time()
    result = simulation.run(until=end, executor=executor)
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    if executor.kind == "processes":  # The others wait for the slower of the workers, and the program for both.
        processor += max(clock.seconds for name in result.members for clock in stopwatches(simulation, name))
    if executor.is_main:
        digest = result.digest.hex()
        print(
            json.dumps(
                {
                    "build": build,
                    "events": result.events,
                    "seconds": seconds,
                    "rate": result.events / seconds,
                    "path_s": processor,
                    "digest": digest,
                }
            )
        )


if __name__ == "__main__":
    main()
