"""`worldline check`: try many schedules of a federation and compare what comes of them."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from worldline.federation.checker import SCHEDULES_MAX, Divergence, compare, parse_schedule
from worldline.federation.checker import check as check_schedules
from worldline.federation.inprocess import run
from worldline.federation.program import Federation
from worldline.model import UsageError


def check(
    target: Annotated[
        str,
        typer.Argument(metavar="FILE[:NAME]", help="A Python file, and the federation in it (default: federation)."),
    ],
    schedules: Annotated[int, typer.Option(min=1, help="How many schedules to try at the most.")] = SCHEDULES_MAX,
    first_sample: Annotated[int, typer.Option(min=0, help="The number of the first sampled schedule.")] = 0,
    schedule: Annotated[str | None, typer.Option(help="Try this one only: sample:17 or choices:0.2.1.")] = None,
) -> None:
    """Run a federation under many schedules and compare every delivery; a difference is non-determinism."""
    console = Console(highlight=False, soft_wrap=True, markup=False, file=sys.stdout)
    with contextlib.redirect_stdout(
        io.StringIO()
    ):  # What the programs print, a thousand times over, is in the way here.
        federation = load(target)
        if schedule is not None:
            divergence = compare(federation, parse_schedule(schedule))
            digest, tried = run(federation).digest, f"schedule {schedule}"
        else:
            verdict = check_schedules(federation, schedules=schedules, first_sample=first_sample)
            divergence, digest = verdict.divergence, verdict.digest
            tried = f"{'all ' if verdict.complete else ''}{verdict.schedules:,} schedules"
    if divergence is None:
        console.print(f"{tried}: one history, digest {digest.hex()}")
        return
    _report(console, target, divergence, tried)
    raise typer.Exit(1)


def _report(console: Console, target: str, divergence: Divergence, tried: str) -> None:
    console.print(f"{tried}: the schedule shows in the history")
    console.print(f"first divergent entry: {divergence}")
    console.print("to repeat it:")
    console.print(f"  worldline check {target} --schedule {divergence.schedule}")


def load(target: str) -> Federation:
    """Load the federation that `FILE.py` or `FILE.py:NAME` names."""
    file, _, name = target.partition(":")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} isn't a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # Programs may be dataclasses or pickle by reference: both look their module up.
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{file} can't be loaded: {type(error).__name__}: {error}") from error
    federation = getattr(module, name or "federation", None)
    if callable(federation) and not isinstance(federation, Federation):
        federation = federation()
    if not isinstance(federation, Federation):
        known = [key for key, value in vars(module).items() if isinstance(value, Federation)]
        raise UsageError(
            f"{file} has no federation {name or 'federation'!r}", advice=f"it has: {', '.join(known) or 'none'}"
        )
    return federation
