"""Tries a distributed algorithm on many seeds, shrinks what fails, and says how to repeat it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from msgspec import structs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from worldline.cli.nodes_run import NO_PROPERTIES
from worldline.model import format_time
from worldline.model.errors import Stuck
from worldline.nodes.schedule import save
from worldline.nodes.scheduler import EVENTS_MAX
from worldline.nodes.searching import Report, search
from worldline.nodes.shrinking import RUNS_MAX, Shrunk, shrink
from worldline.nodes.trace import text_of
from worldline.nodes.trial import Trial


def run_many(
    trial: Trial,
    source: Path | None,
    console: Console,
    seeds: int,
    workers: int | None,
    patience_s: float,
    save_to: Path | None,
    *,
    shrunk: str,
) -> None:
    """Try seeds, until one fails. `shrunk` says how the shrunk failure is shown: plain, with times, or not at all."""
    with _bar("seeds", seeds) as progress:
        report = search(
            trial,
            range(trial.seed, trial.seed + seeds),
            workers=workers or _processors(),
            file=source,
            patience_s=patience_s,
            progress=progress,
        )
    _report(console, trial, report)
    if report.failure is None or report.failure.failure is None:
        if save_to is not None:
            console.print(f"nothing failed, so {save_to} wasn't written")
        return
    failed = structs.replace(trial, seed=report.failure.seed)
    console.print("to repeat it:")
    console.print(f"  {command_of(failed, source)}")
    failure = report.failure.failure
    if shrunk and not isinstance(failure, Stuck):  # What has no end has no short form either.
        with _bar("runs", RUNS_MAX) as progress:
            short = shrink(failed, patience_s=patience_s, progress=progress)
        _show_shrunk(console, short, times=shrunk == "times")
        failed = short.trial
    if save_to is not None:
        save(failed, save_to, file=source)
        console.print("to repeat it:")
        console.print(f"  worldline nodes --schedule {shlex.quote(str(save_to))}")
    raise typer.Exit(failure.exit_code)


def _processors() -> int:
    """Return how many processors there are for us."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _report(console: Console, trial: Trial, report: Report) -> None:
    tried = f"{report.tried:,} seed{'' if report.tried == 1 else 's'}, {report.events:,} events"
    if trial.kinds or trial.faults:
        tried += f", {report.faults:,} faults"
    if report.failure is not None:
        console.print(f"{tried}: seed {report.failure.seed} fails")
        console.print(f"  {report.failure.failure}", style="red")
        return
    for each in trial.algorithm.properties:
        console.print(f"holds {each}")
    if not trial.algorithm.properties:
        console.print(NO_PROPERTIES)
    console.print(f"{tried}, digest {report.digest}")


def _show_shrunk(console: Console, shrunk: Shrunk, *, times: bool) -> None:
    console.print(
        f"shrunk in {shrunk.runs:,} runs, from {shrunk.drawn:,} draws to {shrunk.left}, "
        f"and from {shrunk.records_before:,} to {len(shrunk.records):,} lines of trace:"
    )
    console.print(shrunk.text())
    console.print("---")
    console.print(text_of(shrunk.records, times=times))
    console.print(str(shrunk.failure), style="red")


def command_of(trial: Trial, source: Path | None) -> str:
    """Return the command that runs a trial again."""
    words = ["worldline", "nodes", *(["--file", str(source)] if source is not None else [trial.algorithm.name])]
    if trial.topology is not None:
        text = str(trial.topology)
        words += ["--edges" if text[:1].isdecimal() else "--topology", text]
    words += [word for name, value in trial.parameters.items() for word in ("--set", f"{name}={value}")]
    words += ["--latency", trial.latency] if trial.latency else []
    words += [] if trial.fifo is None else ["--fifo"] if trial.fifo else ["--no-fifo"]
    words += [word for fault in trial.faults for word in ("--fault", str(fault))]
    words += ["--faults", ",".join(f"{kind}={number!r}" for kind, number in trial.kinds.items())] if trial.kinds else []
    words += ["--until", format_time(trial.until)] if trial.until is not None else []
    words += ["--events-max", str(trial.events_max)] if trial.events_max != EVENTS_MAX else []
    return shlex.join([*words, "--seed", str(trial.seed)])


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar, if somebody looks at a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(what), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.update(task, completed=done)
