"""What two workers bring: a ring of stations with 50 µs of work per event, and PHOLD with none, on every executor.

PHOLD's jobs take a second on average; a percentage of them goes on at a place of the other worker, the rest at its own.

The figures are in real time, from the start of the run to its result, and nothing is pinned: workers need a core each,
so whatever else runs on a machine with two of them is seen here. That's why each measurement waits a while for the
machine to be idle, and the share of it that others still use is shown. A busy loop stands for the work, with the same
number of iterations everywhere, found once.

Where others use the machine after all, the last column but one is the one to look at: the processor time of the slower
worker and of the program together, which is what the run takes if no process ever waits for a processor.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from contest import Contest, Found, judged, median, race, ratio, ratio_range, shown
from peers.apart import Facts, measure, settled
from rich.console import Console
from rich.table import Table

PEER = Path(__file__).resolve().parent / "peers" / "parallel_peer.py"
INLINE, PROCESSES, MPI = "inline", "processes(2)", "mpi"
WORK_US = 50
EVENTS = 30_000
PHOLD_S = 30

PROCESSES_GOAL = 1.7
PHOLD_GOAL = 1.3
MPI_GOAL = 0.8


def mpiexec() -> str | None:
    """Return the launcher of the MPI that this Python uses: the one beside it, or on PATH."""
    return shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")


def has_mpi() -> bool:
    try:
        import mpi4py  # noqa: F401
    except ImportError:
        return False
    return mpiexec() is not None


def contest(model: str, *numbers: int) -> Contest:
    def run(executor: str) -> Facts:
        launcher = [str(mpiexec()), "-n", "2"] if executor == MPI else []
        others = settled()
        return measure(PEER, model, *numbers, "--executor", executor, launcher=launcher) | {"others": others}

    there = (INLINE, PROCESSES, MPI) if has_mpi() else (INLINE, PROCESSES)
    return {executor: lambda executor=executor: run(executor) for executor in there}  # type: ignore[misc]


def contests(scale: float) -> dict[str, Contest]:
    settled()
    iterations = measure(PEER, "calibrated", WORK_US)["iterations"]
    events = int(EVENTS * scale)
    found = {
        f"parallel ring, {times}, lookahead {lookahead}": contest(
            "ring", lookahead, int(times == "random"), iterations, events
        )
        for times in ("regular", "random")
        for lookahead in (5, 10, 20)
    }
    until = max(3, int(PHOLD_S * scale))
    return found | {
        f"parallel PHOLD, {remote}% remote, lookahead {ms / 1000:g} delays": contest(
            "phold", 1024, 16, until, remote, ms
        )
        for remote, ms in ((10, 10_000), (10, 1_000), (10, 100), (100, 100))
    }


def compare(console: Console, runs: int, scale: float, only: str) -> None:
    table = Table(
        title=f"Two workers, events/s, medians of {runs}; ring: {WORK_US} µs of work per event, lookahead in events"
    )
    columns = (
        "",
        INLINE,
        PROCESSES,
        "mpi, 2 ranks",
        "processes / inline",
        "single runs",
        "mpi / processes",
        "by processor",
        "others use",
    )
    for column in columns:
        table.add_column(column, justify="right" if column else "left")
    for title, entered in contests(scale).items():
        if only in title:
            table.add_row(*row(title, race(console, title, entered, runs)))
    if table.row_count:
        console.print(table)


def row(title: str, found: Found) -> list[str]:
    gain, other = ratio(found, PROCESSES, INLINE), ratio(found, MPI, PROCESSES)
    span = ratio_range(found, PROCESSES, INLINE)
    has_goal = title.endswith((" 10", " 10 delays"))
    goal = PHOLD_GOAL if "PHOLD" in title else PROCESSES_GOAL
    return [
        title.removeprefix("parallel "),
        *(shown(median(found, executor)) for executor in (INLINE, PROCESSES, MPI)),
        judged(gain, goal) if has_goal else shown(gain),
        f"{span[0]:.2f} to {span[1]:.2f}" if span else "",
        judged(other, MPI_GOAL) if has_goal else shown(other),
        shown(ratio(found, INLINE, PROCESSES, "path_s")),
        f"{max(fact['others'] for facts in found.values() for fact in facts):.0%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="how long each measurement is")
    parser.add_argument("--only", default="", help="only contests whose name has this in it")
    given = parser.parse_args()
    compare(Console(highlight=False, width=150), given.runs, given.scale, given.only)


if __name__ == "__main__":
    main()
