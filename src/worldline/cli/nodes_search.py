"""Tries a distributed algorithm on many seeds, shrinks what fails, and says how to repeat it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Console

from worldline.cli.bar import bar
from worldline.cli.console import own_lines
from worldline.cli.nodes_run import NO_PROPERTIES
from worldline.cli.search_story import processors, show_day, watched
from worldline.model import format_time
from worldline.model.errors import Stuck
from worldline.model.text import counted
from worldline.nodes.faults import SHARES
from worldline.nodes.schedule import save
from worldline.nodes.scheduler import EVENTS_MAX
from worldline.nodes.shrinking import Shrunk, shrink
from worldline.nodes.trace import text_of
from worldline.nodes.trial import Trial, search
from worldline.search.day import USUAL_DAY
from worldline.search.searching import SECONDS_MAX, Report, remarks_on
from worldline.search.shrinking import RUNS_MAX


class Search(NamedTuple):
    """What is to be tried, and how. `source` is the file that the algorithm was loaded from."""

    trial: Trial
    source: Path | None
    seeds: int
    workers: int | None
    seconds_max: float
    keeps_going: bool
    shrinks: bool
    kept: frozenset[str]
    save_to: Path | None


def run_many(asked: Search, console: Console, *, trace: str) -> None:
    """Try seeds. `trace` says how that of the shrunk failure is shown: plain, with times, or not at all."""
    report = _searched(asked)
    _report(console, asked, report)
    if report.failure is None or report.failure.failure is None:
        if asked.save_to is not None:
            console.print(f"nothing failed, so {asked.save_to} wasn't written")
        return
    failed = asked.trial.with_seed(report.failure.seed)
    show_day(console, failed.day, report.failure.day)
    console.print("to repeat it:")
    console.print(f"  {command_of(failed, asked.source, asked.seconds_max)}")
    if asked.save_to is not None:  # Before it is shrunk, too: that takes a while, and somebody may have seen enough.
        save(failed, asked.save_to, file=asked.source)
    failure = report.failure.failure
    if asked.shrinks and not isinstance(failure, Stuck):  # What has no end has no short form either.
        with bar("runs", RUNS_MAX) as progress:
            short = shrink(failed, keep=asked.kept, seconds_max=asked.seconds_max, progress=progress)
        if asked.save_to is not None:
            save(short.trial, asked.save_to, file=asked.source)
        _show_shrunk(console, short, asked, trace)
    elif asked.save_to is not None:
        console.print(f"  {_command_of_saved(asked.save_to, asked.source)}")
    raise typer.Exit(failure.exit_code)


def _searched(asked: Search) -> Report:
    return watched(
        lambda count: search(
            asked.trial,
            range(asked.trial.seed, asked.trial.seed + asked.seeds),
            workers=asked.workers or processors(),
            file=asked.source,
            seconds_max=asked.seconds_max,
            keeps_going=asked.keeps_going,
            progress=count,
        ),
        asked.seeds,
    )


def _report(console: Console, asked: Search, report: Report) -> None:
    trial = asked.trial
    tried = f"{counted(report.tried, 'seed')}, {counted(report.events, 'event')}"
    if trial.faults or any(kind not in SHARES for kind in trial.kinds):
        tried += f", {counted(report.faults, 'fault')}"
    if report.failure is not None:
        number = f"{report.failed:,} fail{'s' if report.failed == 1 else ''}"
        fails = f"{number}, the first is {report.failure.seed}" if asked.keeps_going else ""
        console.print(f"{tried}: {fails or f'seed {report.failure.seed} fails'}")
        console.print(f"  {report.failure.failure}", style="red")
        return
    for each in trial.algorithm.properties:
        console.print(f"holds {each}")
    if not trial.algorithm.properties:
        console.print(NO_PROPERTIES)
    console.print(f"{tried}, digest {report.digest}")
    for remark in remarks_on(report.faults, report.faults_in_vain):
        console.print(remark)


def _show_shrunk(console: Console, shrunk: Shrunk, asked: Search, trace: str) -> None:
    lines = len(shrunk.records)
    fewer = f", and from {shrunk.records_before:,} to {lines:,} lines of trace" if lines < shrunk.records_before else ""
    runs, draws = counted(shrunk.runs, "run"), counted(shrunk.drawn, "draw")
    console.print(f"shrunk in {runs}, from {draws} to {shrunk.left}{fewer}:")
    console.print(own_lines(shrunk.text()))
    if shrunk.unsure:
        least = ", ".join(f'"{name}": ...' for name in shrunk.unsure)
        stay = "stays" if len(shrunk.unsure) == 1 else "stay"
        console.print(
            f"(how small it may be isn't known, so {' and '.join(shrunk.unsure)} {stay}: set the minimum in its model:"
            f" least={{{least}}})"
        )
    if asked.save_to is None:
        console.print("(--save FILE.json keeps it, to be run again)")
    else:
        console.print("to repeat it:")
        console.print(f"  {_command_of_saved(asked.save_to, asked.source)}")
    if trace:
        console.print("---")
        console.print(own_lines(text_of(shrunk.records, times=trace == "times")))
    console.print(str(shrunk.failure), style="red")


def _exact(number: float) -> str:
    """Write a number as somebody would: 2, not 2.0."""
    return str(int(number)) if number == int(number) else repr(number)


def _command_of_saved(path: Path, source: Path | None) -> str:
    return shlex.join(
        ["worldline", "nodes", *([] if source is None else ["--file", str(source)]), "--schedule", str(path)]
    )


def command_of(trial: Trial, source: Path | None, seconds_max: float = SECONDS_MAX) -> str:
    """Return the command that runs a trial again."""
    words = ["worldline", "nodes", *(["--file", str(source)] if source is not None else [trial.algorithm.name])]
    if isinstance(trial.topology, str):  # A file has others in itself.
        words += ["--edges" if trial.topology[:1].isdecimal() else "--topology", trial.topology]
    words += [word for name, value in trial.parameters.items() for word in ("--set", f"{name}={value}")]
    words += ["--latency", trial.latency] if trial.latency else []
    words += [] if trial.fifo is None else ["--fifo"] if trial.fifo else ["--no-fifo"]
    words += [word for fault in trial.faults for word in ("--fault", str(fault))]
    words += (
        ["--faults", ",".join(f"{kind}={_exact(number)}" for kind, number in trial.kinds.items())]
        if trial.kinds
        else []
    )
    words += ["--until", format_time(trial.until)] if trial.until is not None else []
    words += ["--events-max", str(trial.events_max)] if trial.events_max != EVENTS_MAX else []
    words += ["--day", str(trial.day)] if trial.day is not None and trial.day != USUAL_DAY else []
    words += ["--no-properties"] if not trial.algorithm.properties else []
    words += ["--seconds-max", f"{seconds_max:g}"] if seconds_max != SECONDS_MAX else []
    return shlex.join([*words, "--seed", str(trial.seed)])
