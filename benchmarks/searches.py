"""How many runs a search tries per second: federations, and node algorithms beside them.

Both are searched by the same machinery, with properties that are checked after everything that happens. The federation
is `examples/commit`, four participants for two simulated seconds; beside it are four nodes with Raft, which do about as
much in that time. An event is a message that is sent or received, or a line that is written; for nodes, whatever the
kernel handles.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from worldline.model import SECOND
from worldline.nodes import search
from worldline.nodes.algorithms import find
from worldline.nodes.trial import Trial
from worldline.search.searching import Report, search_seeds
from worldline.targets import RunOptions
from worldline.targets.trials import TrialRequest, made_trial

FILE = Path(__file__).resolve().parent.parent / "examples" / "commit" / "commit.toml"
FEDERATION, FAULTY, NODES = "a federation of 4", "the same, with a drawn crash", "4 nodes with Raft"


def federations(seeds: int, workers: int, kinds: str | None = None) -> Report:
    request = TrialRequest(target=str(FILE), options=RunOptions(properties=("commit:agreement",), drawn_faults=kinds))
    return search_seeds(made_trial(request), range(seeds), workers=workers, recipe=lambda: partial(made_trial, request))


def nodes(seeds: int, workers: int) -> Report:
    return search(Trial(algorithm=find("raft"), topology="clique:4", until=2 * SECOND), range(seeds), workers=workers)


def searches(console: Console, repeats: int, seeds: int) -> None:
    """Compare searches of federations with those of nodes, on one process and on two."""
    ways: dict[str, Callable[[int], Report]] = {
        FEDERATION: lambda workers: federations(seeds, workers),
        FAULTY: lambda workers: federations(seeds, workers, "crash=1"),
        NODES: lambda workers: nodes(seeds, workers),
    }
    found: dict[tuple[str, int], list[float]] = {}
    events: dict[str, int] = {}
    for _ in range(repeats):
        for name, way in ways.items():
            for workers in (1, 2):
                began = time.perf_counter()
                report = way(workers)
                found.setdefault((name, workers), []).append(seeds / (time.perf_counter() - began))
                if report.failure is not None:
                    raise SystemExit(f"{name}, seed {report.failure.seed}: {report.failure.failure}")
                events[name] = report.events
    table = Table(title=f"a search of {seeds:,} seeds, by the wall clock, medians of {repeats}")
    for heading in ("", "events of a run", "runs/s", "events/s", "runs/s on 2 processes"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name in ways:
        rate, of_two = (statistics.median(found[name, workers]) for workers in (1, 2))
        each = events[name] / seeds
        table.add_row(name, f"{each:,.0f}", f"{rate:,.0f}", f"{rate * each:,.0f}", f"{of_two:,.0f}")
    console.print(table)
