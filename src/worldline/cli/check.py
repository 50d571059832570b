"""`worldline check`: try many schedules of a federation and compare what comes of them."""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Sequence

import typer
from rich.console import Console

from worldline.cli.console import PlainConsole, bar, check_notes
from worldline.cli.options import OF_FEDERATION, takes
from worldline.cli.runner import interruptible
from worldline.federation.inprocess.checker import SCHEDULES_MAX, Divergence, compare, parse_schedule
from worldline.federation.inprocess.checker import check as check_schedules
from worldline.model.text import counted
from worldline.targets import RunOptions
from worldline.targets.finding import found_federation


@takes(
    "target: FILE.toml|FILE.py[:NAME]  A federation's file, or a Python file that defines one as `model` or NAME.",
    OF_FEDERATION,
    """
    --schedules N at least 1  Maximum number of schedules to try.
    --seconds-max NUMBER at least 0.001  Stop after this many seconds, with what was found by then.
    --first-sample N at least 0  Number of the first sampled schedule.
    --schedule TEXT  Try only this schedule: in-order, sample:17, choices:0.2.1 or frames:0.2.1.
    """,
)
@interruptible()
def check(
    target: str,
    options: RunOptions,
    schedules: int = SCHEDULES_MAX,
    seconds_max: float | None = None,
    first_sample: int = 0,
    schedule: str | None = None,
) -> None:
    """Run a federation under many schedules and compare every delivery; any difference is non-determinism."""
    console = PlainConsole()
    unfinished = ""
    with contextlib.redirect_stdout(io.StringIO()):  # What programs print, a thousand times over, is in the way here.
        federation, ready = found_federation(target, options)
        note, watch = check_notes()
        if schedule is not None:
            chosen = parse_schedule(schedule)
            divergence = compare(federation, chosen, seconds_max=seconds_max, watch=watch, draws=ready.draws)
            digest, tried = check_schedules(federation, schedules=1, draws=ready.draws).digest, f"schedule {schedule}"
        else:
            with bar("schedules", schedules) as shown:
                verdict = check_schedules(
                    federation,
                    schedules=schedules,
                    first_sample=first_sample,
                    seconds_max=seconds_max,
                    progress=note if shown is None else shown,
                    watch=watch,
                    draws=ready.draws,
                )
            divergence, digest, unfinished = verdict.divergence, verdict.digest, verdict.unfinished
            tried = counted(verdict.schedules, "schedule")
            if verdict.complete:
                tried += ", every one there is"
            elif divergence is None and verdict.schedules < schedules:
                tried += ", as many as there was time for"
    if divergence is None:
        console.print(f"{tried}: one history, digest {digest.hex()}")
        if unfinished:
            console.print(f"broken off: {unfinished}")
        return
    _report(console, [target, *options.words()], divergence, tried)
    raise typer.Exit(1)


def _report(console: Console, arguments: Sequence[str], divergence: Divergence, tried: str) -> None:
    console.print(f"{tried}: {divergence.reason}")
    for line in divergence.lines():
        console.print(line)
    console.print("to repeat it:")
    console.print(f"  worldline check {shlex.join(arguments)} --schedule {divergence.schedule}")
