"""Sweeps: what they cost above the runs themselves, what a second core brings, and how fast tables are.

The runs are of a queue in the kernel, ten milliseconds each. Compared, in turns, are a loop that only makes and runs
the model and takes the mean of what it measures; the same runs as a sweep in one process; and as a sweep on two. What a
sweep adds to a run is about 0.4 ms, whatever the run, so its share depends on how long they are: with `--until 9h`,
which is two milliseconds, it is 20 %. The aims: at most 10 % above the loop; 1.8 times as fast on two cores that are
free; a run of nothing takes less than 2 ms; a table of 100,000 rows is read in less than a second.

Processor time, which is what a shared machine lets one compare, is that of the program alone, without its workers:
what is left of it on two processes is what the table takes. Speedups are by the wall clock, and mean something only
where two cores are free.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from worldline.experiments import read_sweep, sweep
from worldline.experiments.table import Row, SweepFile
from worldline.files.loading import load_module
from worldline.targets import RunOptions, prepare

CHECKOUT = Path(__file__).resolve().parent.parent / "examples" / "checkout" / "checkout.py"
ROWS = 100_000


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that something takes, by the wall clock and of this process's processor."""
    began, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - used


def loop(runs: int, until: str) -> None:
    """Make and run the model, as anyone would without a sweep."""
    model = load_module(CHECKOUT).model
    for seed in range(runs):
        outcome = model(seed=seed).run(until)
        statistics.fmean(outcome.monitors["checkout", "wait"].values)


def swept(folder: Path, runs: int, until: str, executor: str) -> None:
    path = folder / "bench.sweep"
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    sweep(CHECKOUT, seeds=runs, until=until, executor=executor, path=path, measures=["wait.mean"])


def start_s(number: int) -> float:
    """Return how much of a processor it takes to have a run ready and over in which nothing happens."""
    began = time.process_time()
    for seed in range(number):
        prepare(str(CHECKOUT), RunOptions(seed=seed, until="1ns", settings=("load=0.5",))).run()
    return (time.process_time() - began) / number


def write_rows(path: Path) -> None:
    with SweepFile(path, {"target": "shop.py"}, ["doctors", "arrival"]) as file:
        for number in range(ROWS):
            point, replicate = divmod(number, 100)
            measures = {f"m{each}.mean": number / (each + 3) for each in range(4)}
            file.add(Row(point, replicate, number, (point % 7, f"{point // 7}min"), measures, f"{number:032x}"))
        file.finish()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--until", default="60h", help="simulated time of each run")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    console = Console()
    found: dict[str, list[tuple[float, float]]] = {"a loop": [], "inline": [], "processes(2)": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(options.repeats):
            found["a loop"].append(measured(lambda: loop(options.runs, options.until)))
            for executor in ("inline", "processes(2)"):
                taken = measured(lambda executor=executor: swept(folder, options.runs, options.until, executor))
                found[executor].append(taken)
        starts = [start_s(200) for _ in range(options.repeats)]
        path = folder / "rows.sweep"
        write_rows(path)
        opened = [measured(lambda: read_sweep(path)) for _ in range(options.repeats)]
    table = Table(title=f"a sweep of {options.runs:,} runs, medians of {options.repeats}")
    for heading in ("", "seconds", "processor seconds", "above the loop"):
        table.add_column(heading, justify="right" if heading else "left")
    base = statistics.median(used for _, used in found["a loop"])
    for how, times in found.items():
        wall, used = (statistics.median(each) for each in zip(*times, strict=True))
        above = f"{(used / base - 1) * 100:+.0f} %" if how == "inline" else ""
        table.add_row(how, f"{wall:.2f}", f"{used:.2f}", above)
    console.print(table)
    one, two = (statistics.median(wall for wall, _ in found[how]) for how in ("inline", "processes(2)"))
    inline = statistics.median(used for _, used in found["inline"])
    each, added = base / options.runs * 1000, (inline - base) / options.runs * 1000
    console.print(f"a run takes {each:.2f} ms, and the sweep adds {added:.2f} ms to it")
    console.print(f"two processes are {one / two:.2f} times as fast as one")
    console.print(f"a run in which nothing happens takes {statistics.median(starts) * 1000:.2f} ms")
    wall, used = (statistics.median(each) for each in zip(*opened, strict=True))
    console.print(f"a table of {ROWS:,} rows is read in {wall:.2f} s ({used:.2f} s of a processor)")


if __name__ == "__main__":  # Workers load this file, too.
    main()
