"""Tries a distributed algorithm on many seeds, shrinks what fails, and says how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from worldline.cli.console import own_lines
from worldline.cli.nodes_run import NO_PROPERTIES
from worldline.cli.search_story import show_how_to_repeat
from worldline.model import format_time
from worldline.model.text import counted
from worldline.nodes.faults import SHARES
from worldline.nodes.schedule import save
from worldline.nodes.scheduler import EVENTS_MAX
from worldline.nodes.shrinking import Shrunk, shrink
from worldline.nodes.trace import text_of
from worldline.nodes.trial import Trial, recipe_of
from worldline.search.day import USUAL_DAY
from worldline.search.searching import SECONDS_MAX, Recipe, Report


class Algorithms:
    """What a search knows of distributed algorithms.

    `source` is the file that the algorithm was loaded from, `kept` is what shrinking leaves as it is, and `trace` says
    how that of the shrunk failure is shown: plain, with times, or not at all.
    """

    def __init__(
        self, trial: Trial, source: Path | None, *, seconds_max: float, kept: frozenset[str], trace: str
    ) -> None:
        self.trial = trial
        self.properties = trial.algorithm.properties
        self.unjudged = NO_PROPERTIES
        self._source = source
        self._seconds_max = seconds_max
        self._kept = kept
        self._trace = trace

    def recipe(self) -> Recipe:
        return recipe_of(self.trial, self._source)

    def tells_faults(self, _: Report) -> bool:
        return bool(self.trial.faults) or any(kind not in SHARES for kind in self.trial.kinds)

    def command(self, failing: Trial) -> str:
        return command_of(failing, self._source, self._seconds_max)

    def command_of_saved(self, path: Path) -> str:
        file = [] if self._source is None else ["--file", str(self._source)]
        return shlex.join(["worldline", "nodes", *file, "--schedule", str(path)])

    def save(self, trial: Trial, path: Path) -> None:
        save(trial, path, file=self._source)

    def shrink(self, failing: Trial, progress: Callable[[int], None] | None) -> Shrunk:
        return shrink(failing, keep=self._kept, seconds_max=self._seconds_max, progress=progress)

    def show_shrunk(self, console: Console, shrunk: Shrunk, save_to: Path | None) -> None:
        if save_to is not None:
            self.save(shrunk.trial, save_to)
        _show_shrunk(console, shrunk)
        show_how_to_repeat(console, None if save_to is None else self.command_of_saved(save_to))
        if self._trace:
            console.print("---")
            console.print(own_lines(text_of(shrunk.records, times=self._trace == "times")))
        console.print(str(shrunk.failure), style="red")


def _show_shrunk(console: Console, shrunk: Shrunk) -> None:
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


def _exact(number: float) -> str:
    """Write a number as somebody would: 2, not 2.0."""
    return str(int(number)) if number == int(number) else repr(number)


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
