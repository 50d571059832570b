"""How fast and how small the kernel is, beside SimPy: both builds of ours and SimPy in turn, in the same run.

Speed: events per second of processor time, the median of several runs, each in a fresh process on the same single
core, after a warm-up. Everybody does the same work (the number of events is compared), in the form that is natural and
fastest there; `peers/simpy_peer.py` says what was tried. Digests of the two builds must be equal.

Memory: what a process grows by, divided by how many were made. An entity is an object with one attribute and one
pending event that it will handle: with SimPy a timeout with the object's method as its callback, with ours an entity
with a scheduled event. Ours has a name besides, by which others reach it, and a history of its own; SimPy's is kept in
a list. An addressee waits for messages, and has nothing else to do: with SimPy it is a process with a `Store`, with
ours any entity. A process is a generator that waits for a fixed time: with SimPy `env.process`, with ours one of many
processes of an entity; an entity that is a process has a name and a history besides.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from importlib.metadata import version
from pathlib import Path

import parallel
import transports
from contest import Contest, Found, judged, median, race, ratio, ratio_range, shown
from peers.apart import Facts, last_core, measure
from rich.console import Console
from rich.table import Table

PEERS = Path(__file__).resolve().parent / "peers"
CALLBACKS, PROCESSES, SIMPY = "SimPy callbacks", "SimPy processes", "SimPy"
COMPILED, UNCOMPILED = "Worldline", "uncompiled"

PLACES, JOBS = 1024, 16
TICKERS = 1_000
WIDTH, MESSAGES = 32, 4
MS = 1_000_000

MEMORY_GOAL = 0.5


def ours(*arguments: object, core: int | None) -> Contest:
    def run(*, uncompiled: bool) -> Facts:
        return measure(PEERS / "kernel_peer.py", *arguments, uncompiled=uncompiled, core=core)

    return {COMPILED: lambda: run(uncompiled=False), UNCOMPILED: lambda: run(uncompiled=True)}


def theirs(name: str, *arguments: object, core: int | None) -> Contest:
    return {name: lambda: measure(PEERS / "simpy_peer.py", *arguments, core=core)}


def speed_contests(scale: float, core: int) -> dict[str, tuple[Contest, str, float | None]]:
    """Return the contests by title, each with the contestant to compare with and the goal of the compiled build."""
    phold = (PLACES, JOBS, 2, 2 + max(2, round(16 * scale)))
    ticks = (TICKERS, 20 * MS, 20 * MS + round(300 * scale) * MS)
    torus = (WIDTH, MESSAGES, MS, MS, 2 * MS, 2 * MS + round(60 * scale) * MS)
    in_step = (WIDTH, MESSAGES, MS, 0, 2 * MS, 2 * MS + round(60 * scale) * MS)
    jobs_of_simpy = theirs(CALLBACKS, "phold_callbacks", *phold, core=core) | theirs(
        PROCESSES, "phold_processes", *phold, core=core
    )
    return {
        "PHOLD, own random.Random": (jobs_of_simpy | ours("phold_own_random", *phold, core=core), CALLBACKS, 3.5),
        "PHOLD, the kernel's draws": (jobs_of_simpy | ours("phold_kernel_draws", *phold, core=core), CALLBACKS, 7.0),
        "1,000 generator tickers": (
            theirs(PROCESSES, "tickers", *ticks, core=core) | ours("tickers", *ticks, core=core),
            PROCESSES,
            15.0,
        ),
        "torus of messages": (
            theirs(CALLBACKS, "torus", *torus, core=core) | ours("torus", *torus, core=core),
            CALLBACKS,
            5.0,
        ),
        "torus, all at the same moments": (
            theirs(CALLBACKS, "torus", *in_step, core=core) | ours("torus", *in_step, core=core),
            CALLBACKS,
            None,
        ),
    }


def speed(console: Console, runs: int, scale: float, only: str, core: int) -> None:
    table = Table(title=f"Events/s of one core's time, medians of {runs}")
    for column in ("", CALLBACKS, PROCESSES, COMPILED, UNCOMPILED, "× SimPy", "single runs", "uncompiled × SimPy"):
        table.add_column(column, justify="right" if column else "left")
    for title, (contest, opponent, goal) in speed_contests(scale, core).items():
        if only not in title:
            continue
        found = race(console, title, contest, runs)
        gain, span = ratio(found, COMPILED, opponent), ratio_range(found, COMPILED, opponent)
        table.add_row(
            title,
            *(shown(median(found, name)) for name in (CALLBACKS, PROCESSES, COMPILED, UNCOMPILED)),
            judged(gain, goal) if goal else shown(gain),
            f"{span[0]:.2f} to {span[1]:.2f}" if span else "",
            judged(ratio(found, UNCOMPILED, opponent), 1.0),
        )
    show(console, table)


# Of each, SimPy's and our word for the unit that is timed, and how many times as fast ours should be.
PROCESSES_GOALS: dict[str, tuple[str, float]] = {
    "mm1": ("M/M/1 with a Resource, own random.Random", 6.0),
    "mm1_draws": ("M/M/1 with a Resource, the kernel's draws", 7.5),
    "mm1_store": ("M/M/1 with a Store", 5.0),
    "bank": ("M/M/1, customers lose patience", 6.1),
    "rally": ("signals back and forth", 6.0),
    "crowd": ("100 processes compete for 5", 7.3),
    "any_of": ("a Store's get, or a time", 7.4),
    "children": ("start a process, await its end", 8.0),
    "preemption": ("a preemptive resource", 3.0),
}


def waiting(console: Console, runs: int, scale: float, only: str, core: int) -> None:
    """Compare what processes wait for; runs take turns, and what counts is the processor's time."""
    units = max(2_000, round(100_000 * scale))
    table = Table(title=f"Processes: µs for each of {units:,}, medians of {runs}")
    for column in ("", SIMPY, COMPILED, UNCOMPILED, "× SimPy", "single runs", "uncompiled × SimPy"):
        table.add_column(column, justify="right" if column else "left")
    for scenario, (title, goal) in PROCESSES_GOALS.items():
        if only not in f"processes: {title}":
            continue
        found = race(console, title, theirs(SIMPY, scenario, units, core=core) | ours(scenario, units, core=core), runs)
        span = ratio_range(found, COMPILED, SIMPY)
        rates = (median(found, name) for name in (SIMPY, COMPILED, UNCOMPILED))
        table.add_row(
            title,
            *(f"{1e6 / rate:.2f}" if rate else "" for rate in rates),
            judged(ratio(found, COMPILED, SIMPY), goal),
            f"{span[0]:.2f} to {span[1]:.2f}" if span else "",
            shown(ratio(found, UNCOMPILED, SIMPY)),
        )
    show(console, table)


def memory(console: Console, runs: int, scale: float, only: str) -> None:
    count = max(20_000, round(100_000 * scale))
    table = Table(title=f"Bytes each, {count:,} of them, medians of {runs}")
    for column in ("", SIMPY, COMPILED, UNCOMPILED, "/ SimPy", "uncompiled / SimPy"):
        table.add_column(column, justify="right" if column else "left")
    contests = {
        "memory of an entity": ("memory_entities", "memory_entities"),
        "memory of an addressee": ("memory_addressees", "memory_addressees"),
        "memory of a process": ("memory_processes", "memory_inner_processes"),
        "memory of a process with a name": ("memory_processes", "memory_processes"),
        "memory of a signal with a process": ("memory_signals", "memory_signals"),
    }
    for title, (their, our) in contests.items():
        if only not in title:
            continue
        found = race(
            console, title, theirs(SIMPY, their, count, core=None) | ours(our, count, core=None), runs, "bytes"
        )
        table.add_row(
            title.removeprefix("memory of "),
            *(shown(median(found, name, "bytes")) for name in (SIMPY, COMPILED, UNCOMPILED)),
            judged(ratio(found, COMPILED, SIMPY, "bytes"), MEMORY_GOAL, at_most=True),
            shown(ratio(found, UNCOMPILED, SIMPY, "bytes")),
        )
    show(console, table)


def many(console: Console, runs: int, scale: float, only: str, core: int) -> None:
    count = round(1_000_000 * scale)
    title = f"{count:,} entities"
    if only not in title:
        return
    contest = {COMPILED: lambda: measure(PEERS / "kernel_peer.py", "many", count, count, core=core)}
    found: Found = race(console, title, contest, runs)
    table = Table(title=f"{title}, PHOLD with one job each, compiled, medians of {runs}")
    for column in ("built in", "a million events take", "a result takes", "bytes each", "memory at most"):
        table.add_column(column, justify="right")
    built, million, result, each, peak = (
        statistics.median(fact[figure] for fact in found[COMPILED])
        for figure in ("built_s", "million_events_s", "result_s", "bytes", "peak")
    )
    table.add_row(f"{built:.2f} s", f"{million:.2f} s", f"{result:.2f} s", shown(each), f"{peak / 1e6:,.0f} MB")
    console.print(table)


def show(console: Console, table: Table) -> None:
    if table.row_count:
        console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each contestant")
    parser.add_argument("--only", default="", help="only contests whose name has this in it")
    parser.add_argument("--quick", action="store_true", help="a fifth of the events: to see that all of it works")
    given = parser.parse_args()
    console = Console(highlight=False, width=130)
    scale, core = (0.2 if given.quick else 1.0), last_core()
    builds = [facts() for facts in ours("tickers", 1, 1, 2, core=None).values()]
    console.print(f"Python {platform.python_version()} on {platform.machine()}, {os.cpu_count()} cores")
    console.print(f"Worldline {version('worldline')}, {builds[0]['build']}; SimPy {version('simpy')}; core {core}")
    if builds[0]["build"] != "compiled":
        console.print("[red]the kernel isn't compiled here: both columns of ours show the plain build[/]")
    speed(console, given.runs, scale, given.only, core)
    waiting(console, given.runs, scale, given.only, core)
    memory(console, min(given.runs, 3), scale, given.only)
    many(console, min(given.runs, 3), scale, given.only, core)
    parallel.compare(console, given.runs, scale, given.only)
    if given.only in "transport":
        transports.compare(console, given.runs, scale)


if __name__ == "__main__":
    main()
