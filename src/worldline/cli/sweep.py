"""`worldline sweep` and `worldline plot`: many runs into one table, and charts of tables and recordings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path

import typer
from msgspec import Struct
from msgspec.structs import replace

from worldline.cli.console import PlainConsole, bar, output_free_for, print_json, remark, warn
from worldline.cli.options import takes
from worldline.cli.runner import interruptible
from worldline.experiments.measures import OF_EVERY_RUN
from worldline.experiments.report import are_all_alike, estimates, has_intervals, imprecise, lines, shown_measures
from worldline.experiments.sweeping import Progress, Sweep, as_sweep_executor, prepared_sweep
from worldline.experiments.table import SUFFIX, SweepTable, read_sweep
from worldline.extras import installing
from worldline.files.saving import destination
from worldline.model.errors import Interrupted, UsageError
from worldline.model.text import counted
from worldline.pictures.plot.chart import PlotOptions
from worldline.pictures.plot.plotting import checked_ending, plotted
from worldline.recording.reader import Recording, shortcoming
from worldline.search.searching import SECONDS_MAX
from worldline.targets import RunOptions

_FAILURES_SHOWN = 5
_TOLD_EVERY_S = 10.0


class SweepOptions(Struct, frozen=True, kw_only=True):
    """How many runs there are, what is kept of them, and where."""

    seeds: int | None = None
    until_precise: str | None = None
    design: str = "grid"
    measures: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    warm_up: str = "0s"
    common: bool = False
    antithetic: bool = False
    seconds_max: float = SECONDS_MAX
    save: Path | None = None
    force: bool = False
    retry: bool = False
    as_json: bool = False
    quiet: bool = False


@takes(
    """
    TARGET  What is run, as `worldline run` takes it: FILE.py, FILE.toml, FILE.sdf, raft; or FILE.sweep, a sweep's file,
        to show what it says.
    settings: --set NAME=A,B,C  Levels of a parameter, or with --design a range: NAME=LOW..HIGH. Can be repeated.
    --seeds N at least 1  Runs at each combination (default: 10); with --until-precise, at most (default: 1,000).
    --design DESIGN  Which combinations: latin:40 or random:40 draws 40, FILE.csv has one in each line; grid has all.
    measures: --measure NAME.STATISTIC  A column: wait.mean, queue.time_mean, wait.p95, count, min, max, first, last,
        histogram (default: those of all that is measured). Can be repeated.
    fields: --field TOPIC.FIELD  Measure a field of a topic's messages: pose.x, scan.ranges[0]. Can be repeated.
    --warm-up TIME  Leave out what is measured before that time, or with mser5 before one that is found in each run.
    --until-precise SHARE  Add runs until the interval of each --measure is within this share of its mean: 2%.
    --common  Give all combinations the same draws, by their names, and compare runs in pairs.
    --antithetic  Run pairs of which the second has the mirrored draws of the first.
    --seed N  The first seed (default: the target's own).
    --until
    --executor EXECUTOR  On what runs are spread: processes(4), inline or mpi (default: all cores). The table stays the
        same.
    --seconds-max SECONDS at least 0.001  Consider a run endless after this many seconds of real time.
    --save FILE.sweep  Where the table is (default: NAME.sweep in this folder). Runs that are in it aren't run again.
    --force  Begin anew, though there is a sweep's file.
    --retry  Run again those that have failed.
    as_json: --json  Print one JSON object at the end.
    --quiet, -q  Print only how many runs there are, and where.

    Federations only:
    --draws
    --fault
    --faults
    """
)
@interruptible()
def sweep(target: str, options: RunOptions, wanted: SweepOptions) -> None:
    """Run a target with many parameters and seeds on all cores, into one table with confidence intervals.

    A sweep that was stopped goes on where it was when the same command is given again.
    """
    if target.endswith(SUFFIX):
        if options != RunOptions():
            raise UsageError(f"{target} has runs already", advice="name what is to be run, and --save the file")
        _show(read_sweep(target), wanted)
        return
    executor = as_sweep_executor(options.executor)
    precise = None if wanted.until_precise is None else _share(wanted.until_precise)
    with output_free_for(None, wanted=wanted.as_json):
        made = prepared_sweep(
            target,
            options.settings,
            options=replace(options, executor=None, settings=()),
            design=wanted.design,
            seeds=wanted.seeds,
            precise=precise,
            path=wanted.save,
            measures=wanted.measures,
            fields=wanted.fields,
            warm_up=wanted.warm_up,
            common=wanted.common,
            antithetic=wanted.antithetic,
            seconds_max=wanted.seconds_max,
        )
        with _told(made, precise is None) as progress:
            table = made.run(executor, replaces=wanted.force, retries=wanted.retry, progress=progress)
    if table is not None:
        _show(table, wanted)


def _share(text: str) -> float:
    """Read 2%, or 0.02."""
    number, percent, rest = text.strip().partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = 0.0
    if rest or not isfinite(share) or not 0 < share < 1:
        raise UsageError(f"--until-precise {text} isn't a share", advice="write 2%, or 0.02")
    return share


@contextmanager
def _told(sweep: Sweep, is_fixed: bool) -> Iterator[Progress]:
    """Show how many runs are there and how long it takes; if it is interrupted, say how to go on."""
    total = sweep.seeds * len(sweep.request.design.points)
    began, last, first = time.monotonic(), time.monotonic(), -1
    with bar("runs" if is_fixed else "runs at the most", total) as show:

        def tell(done: int, of: int) -> None:
            nonlocal last, first
            first = done if first < 0 else first
            if show is not None:
                show(done)
            elif time.monotonic() - last >= _TOLD_EVERY_S:
                last = time.monotonic()
                left_s = (last - began) / max(1, done - first) * (of - done)
                remark(f"still sweeping: {done:,} of {of:,} runs, about {left_s:,.0f} s left")

        try:
            yield tell
        except KeyboardInterrupt:
            kept = f"{counted(sweep.done, 'run')} in {sweep.path}"
            raise Interrupted(f"interrupted: {kept}, and the same command goes on") from None


def _show(table: SweepTable, wanted: SweepOptions) -> None:
    failures = table.failures()
    if wanted.as_json:
        print_json(_facts(table, wanted, len(failures)))
    else:
        console = PlainConsole()
        if not wanted.quiet:
            for line in lines(table, wanted.measures):
                console.print(line)
            if {*table.measures} == {*OF_EVERY_RUN}:
                console.print("(nothing is measured: call measure(NAME, VALUE) in the model, or name a --field)")
            if len(failures) < len(table):
                for name in shown_measures(table, wanted.measures):
                    if not any(table.samples(name).values()):
                        console.print(f"(no run has a number for {name})")
            if are_all_alike(table):
                console.print("(all runs are the same, whatever their seed: does the model seed its draws itself?)")
            precise = wanted.until_precise
            if precise is not None and (missed := imprecise(table, wanted.measures, _share(precise))):
                where = f"{missed:,} of {counted(len(table.points()), 'combination')}"
                console.print(f"(not within {precise} at {where}: allow more runs, with --seeds)")
            if not has_intervals():
                console.print(f"(without intervals: those need scipy, {installing('experiments')})")
            for row in failures[:_FAILURES_SHOWN]:
                console.print(f"failed: {row['error']}", style="red")
                console.print(f"  {row['command']}")
            if len(failures) > _FAILURES_SHOWN:
                console.print(f"... and {len(failures) - _FAILURES_SHOWN:,} more")
        failed = f", {len(failures):,} failed" if failures else ""
        going = "" if table.is_finished else ", not finished"
        console.print(f"{counted(len(table), 'run')}{failed}{going}: {table.path}")
    if failures:
        raise typer.Exit(1)


def _facts(table: SweepTable, wanted: SweepOptions, failed: int) -> dict[str, object]:
    """Return what programs want to know of a sweep."""
    measures = shown_measures(table, wanted.measures)
    numbers = {each: estimates(table, each) for each in measures if any(table.samples(each).values())}
    return {
        "file": str(table.path),
        "target": table.facts["target"],
        "runs": len(table),
        "failed": failed,
        "finished": table.is_finished,
        "points": [
            {
                "parameters": dict(zip(table.parameters, parameters, strict=True)),
                "measures": {
                    name: {
                        "mean": found[point].mean,
                        "half_width": found[point].half_width,
                        "count": found[point].number,
                    }
                    for name, found in numbers.items()
                    if point in found
                },
            }
            for point, parameters in table.points().items()
        ],
    }


# `worldline plot`: signals of recordings over time, histograms of them, and the tables of sweeps.


@takes(
    """
    FILE  Recordings, which are drawn over each other; or a sweep's file.
    topics: --topic NAME  A field to plot: pose.x, joints[2], arm/pose.x of one member, tf.*.z; or a sweep's measure.
        Can be repeated: each has a panel.
    senders: --from MEMBER  Only what this member tells. Can be repeated.
    --start TIME  Plot from here on.
    --until TIME  Plot up to here.
    --kind  How to draw it (default: lines, and steps where values are whole numbers or texts).
    --bins N at least 1  How many bars a histogram has (default: by the values).
    --log  Which axes are logarithmic: numbers up to 0 aren't shown there.
    --title TEXT  What stands above it.
    --output, -o FILE  Where to write it: .svg, .png or .html (default: next to the first FILE, as .svg).

    Of a sweep:
    --x PARAMETER  The parameter across (default: the first that varies).
    --by PARAMETER  The parameter that lines are for, or rows of a heat map (default: the second that varies).
    """
)
def plot(file: list[Path], *, options: PlotOptions, output: Path | None = None) -> None:
    """Plot signals of recordings over simulated time, histograms of them, or measures of a sweep.

    Without --topic, the error says which names there are.
    """
    path = file[0].with_suffix(".svg") if output is None else output
    checked_ending(path)
    to = destination(path)
    if not to.is_new and not to.is_stream and any(each.exists() and to.file.samefile(each) for each in file):
        raise UsageError(f"{path} is what is to be plotted", advice="choose another --output")
    with interruptible():
        plotted(file, options).save(path)
    for each in file:
        if each.suffix == ".mcap" and (missing := shortcoming(Recording(each))):
            warn(missing)
    remark(f"written to {path}")
