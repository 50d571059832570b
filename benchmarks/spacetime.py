"""How fast agents are that talk at the speed of light, beside SimPy with fixed latencies, and what two workers gain.

Ring: 1,000 agents at rest, each hands on what it gets; events per second of processor time, each contestant in a fresh
process on the same core. SimPy has a callback for each place and the same latency everywhere; we work out for every
hop where it is absorbed. On channels as they are by default, senders also learn of deaths, which takes waiting for
both neighbors instead of one; on blind channels they don't, as in SimPy.

Flock: agents in three dimensions with channels to their 10 nearest neighbors, each heard by one after the other,
every tenth event a new velocity. By the number of agents, because the cost of an event should depend on an agent's
channels and not on how many others there are; and with 50 µs of work in every event on two workers, by the wall clock.
"""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import version
from pathlib import Path

from contest import judged, median, race, ratio, shown
from peers.apart import Facts, last_core, measure, settled
from rich.console import Console
from rich.table import Table

PEERS = Path(__file__).resolve().parent / "peers"
DEFAULT, BLIND, SIMPY, UNCOMPILED = "channels", "blind channels", "SimPy", "channels, uncompiled"
NEIGHBORS = 10

OF_SIMPY, OF_TWO, MEETING_US = 2.0, 1.6, 0.3


def ours(*arguments: object, uncompiled: bool = False, core: int | None = None) -> Facts:
    return measure(PEERS / "spacetime_peer.py", *arguments, uncompiled=uncompiled, core=core)


def meeting(console: Console, runs: int, scale: float) -> None:
    times = round(1_000_000 * scale)
    found = race(
        console, "intersection", {"µs": lambda: ours("meeting", times, core=last_core())}, runs, figure="microseconds"
    )
    taken = median(found, "µs", "microseconds")
    console.print(f"Where a trajectory meets a field: {judged(taken, MEETING_US, at_most=True)} µs")


def ring(console: Console, runs: int, scale: float) -> None:
    size, hops, core = 1_000, round(500 * scale), last_core()
    contest = {
        DEFAULT: lambda: ours("ring", size, hops, 0, size, core=core),
        BLIND: lambda: ours("ring", size, hops, 1, size, core=core),
        SIMPY: lambda: measure(PEERS / "simpy_peer.py", "ring", size, hops, core=core),
        UNCOMPILED: lambda: ours("ring", size, max(10, hops // 20), 0, size, uncompiled=True, core=core),
    }
    compiled = {name: run for name, run in contest.items() if name != UNCOMPILED}
    found = race(console, f"ring of {size:,}", compiled, runs)
    found |= race(console, f"ring of {size:,}", {UNCOMPILED: contest[UNCOMPILED]}, 1)
    table = Table(title=f"Events per second of one core's time, ring of {size:,}, medians of {runs}")
    for column in (*contest, "× SimPy", "blind × SimPy"):
        table.add_column(column, justify="right")
    table.add_row(
        *(shown(median(found, name)) for name in contest),
        judged(ratio(found, DEFAULT, SIMPY), OF_SIMPY),
        judged(ratio(found, BLIND, SIMPY), OF_SIMPY),
    )
    console.print(table)
    sparse = race(console, "the same with 10 tokens", {DEFAULT: lambda: ours("ring", size, hops, 0, 10, core=core)}, 1)
    console.print(f"With 10 tokens on the ring, so that nearly everybody only waits: {shown(median(sparse, DEFAULT))}")


def flock(console: Console, runs: int, scale: float) -> None:
    core = last_core()
    sizes = [round(size * scale) for size in (100, 1_000, 10_000)]
    contest = {f"{size:,}": lambda size=size: ours("flock", size, NEIGHBORS, 20, 0, 0, core=core) for size in sizes}
    table = Table(title=f"Events per second of one core's time, flocks with {NEIGHBORS} neighbors each, by their size")
    rates = []
    for name, run in contest.items():
        rates.append(shown(median(race(console, f"flock of {name}", {name: run}, runs), name)))
        table.add_column(name, justify="right")
    table.add_row(*rates)
    console.print(table)


def workers(console: Console, runs: int, scale: float) -> None:
    size, until = round(10_000 * scale), 60

    def on(count: int) -> Facts:
        settled()
        return ours("flock", size, NEIGHBORS, until, 1, count)

    one, two = "inline", "processes(2)"
    found = race(console, f"flock of {size:,}, 50 µs an event", {one: lambda: on(0), two: lambda: on(2)}, runs)
    table = Table(title=f"Events per second by the wall clock, flock of {size:,} with 50 µs of work, medians of {runs}")
    for column in (one, two, "gain"):
        table.add_column(column, justify="right")
    table.add_row(shown(median(found, one)), shown(median(found, two)), judged(ratio(found, two, one), OF_TWO))
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each contestant")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work: to see that all of it works")
    given = parser.parse_args()
    console = Console(highlight=False, width=130)
    scale = 0.2 if given.quick else 1.0
    console.print(f"Python {platform.python_version()} on {platform.machine()}, {os.cpu_count()} cores")
    console.print(f"Worldline {version('worldline')}; SimPy {version('simpy')}")
    meeting(console, given.runs, scale)
    ring(console, given.runs, scale)
    flock(console, given.runs, scale)
    workers(console, given.runs, scale)


if __name__ == "__main__":
    main()
