"""Plots: how long it takes to read a signal of a million values out of a recording, and to draw it.

Compared, in turns, in processor time: the values read as `worldline plot` reads them; the same by a loop over all
arrivals that decodes each payload, as anyone would write it; the picture as SVG, PNG and HTML; and the same line drawn
by matplotlib as it is, with all its points. The aim: a million points are drawn in less than two seconds.
"""

from __future__ import annotations

import argparse
import io
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from worldline.model import plan
from worldline.model.payload import from_json
from worldline.pictures.plot import Plot, plot
from worldline.recording import Recorder, Recording

STEP = 1_000_000


def record(path: Path, count: int) -> None:
    recorder = Recorder(path, plan(["ann", "bob"]), federation="bench")
    for name in ("ann", "bob"):
        recorder.began(name, 0)
    for number in range(count):
        at = number * STEP
        text = f'{{"x":{math.sin(number / 3e4) + (number * 7919 % 101 - 50) / 2500:.6f},"n":{number}}}'
        recorder.sent("ann", number, "state", at, text.encode(), at + 1000)
        recorder.arrives("ann", number, "bob", at + 1000, 0, None)
        if number % 10_000 == 0:
            recorder.passed(at)
    for name in ("ann", "bob"):
        recorder.ended(name, count * STEP + STEP, b"")
    recorder.close()


def by_arrivals(path: Path) -> None:
    for arrival in Recording(path).arrivals(topics=["state"]):
        from_json(arrival.payload)["x"]


def by_matplotlib(picture: Plot) -> None:
    """Draw all points, as matplotlib does if nothing is thinned."""
    (line,) = picture.chart.panels[0].content  # type: ignore[misc]
    figure = Figure(figsize=(9.6, 4.4))
    figure.subplots().plot(line.x, line.y)  # type: ignore[union-attr]
    FigureCanvasSVG(figure).print_svg(io.BytesIO())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.mcap"
        record(path, options.points)
        picture = plot(path, topics="state.x")
        picture.svg()  # What is loaded and kept, is once.
        work: dict[str, Callable[[], object]] = {
            "read the signal": lambda: Recording(path).signals("state.x"),
            "read it by a loop over arrivals": lambda: by_arrivals(path),
            "draw it as SVG": picture.svg,
            "draw it as PNG": picture.png,
            "make a page of it": picture.html,
            "matplotlib alone, as SVG": lambda: by_matplotlib(picture),
        }
        found: dict[str, list[float]] = {name: [] for name in work}
        for _ in range(options.repeats):
            for name, each in work.items():
                began = time.process_time()
                each()
                found[name].append(time.process_time() - began)
    table = Table(title=f"{options.points:,} points, medians of {options.repeats}")
    table.add_column("")
    table.add_column("processor seconds", justify="right")
    for name, times in found.items():
        table.add_row(name, f"{statistics.median(times):.2f}")
    console = Console()
    console.print(table)
    read, loop = (statistics.median(found[name]) for name in ("read the signal", "read it by a loop over arrivals"))
    drawn, alone = (statistics.median(found[name]) for name in ("draw it as SVG", "matplotlib alone, as SVG"))
    console.print(f"reading takes {read / loop:.2f} of the loop, drawing {drawn / alone:.2f} of matplotlib alone")


if __name__ == "__main__":
    main()
