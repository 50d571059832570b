"""How fast the laboratory of distributed algorithms is, beside the bare kernel and SimPy, and how many seeds it tries.

Id propagation: Bellman–Ford in its asynchronous form on a random graph of average degree 4. Messages delivered per
second of processor time, each contestant in a fresh process on the same core. The bare kernel does the same work in
handlers of its entities; SimPy has a process with a `Store` for each node. All know the same number of distances in the
end. How many messages that takes depends on the latencies that were drawn, so rates are compared and not times.

Seeds: a Raft cluster of 20 nodes, three simulated seconds, with all of its properties, by the wall clock.
"""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import version
from pathlib import Path

from contest import Found, judged, median, race, ratio, shown
from peers.apart import Facts, last_core, measure, settled
from rich.console import Console
from rich.table import Table

PEERS = Path(__file__).resolve().parent / "peers"
NODES, BARE, SIMPY, UNCOMPILED = "nodes", "bare kernel", "SimPy Stores", "nodes, uncompiled"
DEGREE = 4
RAFT_SIZE = 20

OF_BARE, OF_SIMPY, OF_TWO = 0.6, 8.0, 1.7


def propagation(console: Console, runs: int, scale: float) -> None:
    size, sources, core = 1_000, round(100 * scale), last_core()
    numbers = (size, DEGREE, sources)
    contest = {
        NODES: lambda: measure(PEERS / "nodes_peer.py", "nodes", *numbers, core=core),
        BARE: lambda: measure(PEERS / "nodes_peer.py", "bare", *numbers, core=core),
        SIMPY: lambda: measure(PEERS / "simpy_peer.py", "bellman_ford", *numbers, core=core),
        UNCOMPILED: lambda: measure(PEERS / "nodes_peer.py", "nodes", *numbers, core=core, uncompiled=True),
    }
    title = f"id propagation, {size:,} nodes, {sources} sources"
    found = race(console, title, contest, runs)
    known = {fact["known"] for facts in found.values() for fact in facts}
    if len(known) > 1:
        raise SystemExit(f"{title}: not the same distances are known: {known}")
    table = Table(title=f"Messages delivered per second of one core's time, medians of {runs}")
    for column in (*contest, "/ bare", "× SimPy", "uncompiled × SimPy"):
        table.add_column(column, justify="right")
    table.add_row(
        *(shown(median(found, name)) for name in contest),
        judged(ratio(found, NODES, BARE), OF_BARE),
        judged(ratio(found, NODES, SIMPY), OF_SIMPY),
        shown(ratio(found, UNCOMPILED, SIMPY)),
    )
    console.print(table)


def large(console: Console, scale: float) -> None:
    size, sources = round(10_000 * scale), 20
    found: Found = race(
        console,
        f"{size:,} nodes, {sources} sources",
        {NODES: lambda: measure(PEERS / "nodes_peer.py", "nodes", size, DEGREE, sources, core=last_core())},
        1,
    )
    (facts,) = found[NODES]
    console.print(f"{size:,} nodes: {facts['deliveries']:,} messages, at most {facts['memory'] / 1e6:,.0f} MB")


def seeds(console: Console, runs: int, scale: float) -> None:
    count = round(1_000 * scale)

    def on(workers: int) -> Facts:
        settled()
        return measure(PEERS / "nodes_peer.py", "raft", RAFT_SIZE, count, workers)

    one, two = "1 process", "2 processes"
    found = race(console, f"{count:,} seeds of Raft", {one: lambda: on(1), two: lambda: on(2)}, runs)
    table = Table(title=f"Seeds per second of a Raft cluster of {RAFT_SIZE}, medians of {runs}")
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
    propagation(console, given.runs, scale)
    large(console, scale)
    seeds(console, given.runs, scale)


if __name__ == "__main__":
    main()
