"""How fast and how small Worldline's SimPy is, beside SimPy: the same models, both in turn, in the same run.

Speed: processor time per unit of work (a customer, a job, a message back and forth), the median of several runs, each
in a fresh process on the same single core, after a warm-up. Both must come to the same time after the same number of
events. Memory: what a process grows by, per object. `peers/simpy_models.py` has the models.

Worldline always keeps a digest: its figures include that.
"""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import version
from pathlib import Path

from contest import Contest, judged, median, race, ratio, ratio_range, shown
from peers.apart import Facts, last_core, measure
from rich.console import Console
from rich.table import Table

MODELS = Path(__file__).resolve().parent / "peers" / "simpy_models.py"
SIMPY, COMPILED, UNCOMPILED = "SimPy", "Worldline", "uncompiled"

SPEED = {  # By title: the workload, how much of it, and how many times as fast as SimPy it should be.
    "M/M/1 with a Resource, the model's own random": ("mm1_random", 30_000, 6.0),
    "the same with keyed draws": ("mm1_draws", 30_000, 7.5),
    "M/M/1 with a Store": ("mm1_store", 30_000, 5.0),
    "bank renege": ("renege", 15_000, 6.1),
    "machine shop, preemptive": ("machine_shop", 40_000, 3.0),
    "timeouts, 100 processes": ("timeouts", 200_000, 8.0),
    "events back and forth": ("ping_pong", 200_000, 6.0),
    "contention of 100 processes": ("contention", 40_000, 7.3),
    "AnyOf(get, timeout)": ("any_of", 20_000, 7.4),
    "start a process and await its end": ("start_and_await", 60_000, 8.0),
}
MEMORY = {
    "a process that waits": "memory_processes",
    "an event": "memory_events",
    "a pending timeout": "memory_timeouts",
}
MEMORY_GOAL = 0.6


def contest_of(workload: str, count: int, core: int | None) -> Contest:
    def run(package: str, *, uncompiled: bool = False) -> Facts:
        return measure(MODELS, package, workload, count, uncompiled=uncompiled, core=core)

    return {
        SIMPY: lambda: run("simpy"),
        COMPILED: lambda: run("worldline.simpy"),
        UNCOMPILED: lambda: run("worldline.simpy", uncompiled=True),
    }


def speed(console: Console, runs: int, scale: float, only: str, core: int) -> None:
    table = Table(title=f"Microseconds of processor time per unit of work, medians of {runs}")
    for column in ("", SIMPY, COMPILED, UNCOMPILED, "× SimPy", "single runs", "uncompiled × SimPy"):
        table.add_column(column, justify="right" if column else "left")
    for title, (workload, count, goal) in SPEED.items():
        if only not in title:
            continue
        found = race(console, title, contest_of(workload, round(scale * count), core), runs, "us")
        ends = {(fact["now"], fact["events"]) for facts in found.values() for fact in facts}
        if len(ends) > 1:
            raise SystemExit(f"{title}: not the same run: {ends}")
        span = ratio_range(found, SIMPY, COMPILED, "us")
        table.add_row(
            title,
            *(shown(median(found, name, "us")) for name in (SIMPY, COMPILED, UNCOMPILED)),
            judged(ratio(found, SIMPY, COMPILED, "us"), goal),
            f"{span[0]:.2f} to {span[1]:.2f}" if span else "",
            shown(ratio(found, SIMPY, UNCOMPILED, "us")),
        )
    if table.row_count:
        console.print(table)


def memory(console: Console, runs: int, scale: float, only: str) -> None:
    count = max(20_000, round(100_000 * scale))
    table = Table(title=f"Bytes each, {count:,} of them, medians of {runs}")
    for column in ("", SIMPY, COMPILED, UNCOMPILED, "/ SimPy"):
        table.add_column(column, justify="right" if column else "left")
    for title, workload in MEMORY.items():
        if only not in title:
            continue
        found = race(console, title, contest_of(workload, count, None), runs, "bytes")
        table.add_row(
            title,
            *(shown(median(found, name, "bytes")) for name in (SIMPY, COMPILED, UNCOMPILED)),
            judged(ratio(found, COMPILED, SIMPY, "bytes"), MEMORY_GOAL, at_most=True),
        )
    if table.row_count:
        console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="runs of each contestant")
    parser.add_argument("--only", default="", help="only contests whose name has this in it")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work: to see that all of it works")
    given = parser.parse_args()
    console = Console(highlight=False, width=130)
    scale = 0.2 if given.quick else 1.0
    console.print(f"Python {platform.python_version()} on {platform.machine()}, {os.cpu_count()} cores")
    console.print(f"Worldline {version('worldline')}; SimPy {version('simpy')}")
    speed(console, given.runs, scale, given.only, last_core())
    memory(console, min(given.runs, 3), scale, given.only)


if __name__ == "__main__":
    main()
