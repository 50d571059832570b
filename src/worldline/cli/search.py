"""`worldline search`: try a federation on many seeds, and shrink the first failure to what it takes."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer
from rich.console import Console

from worldline.cli.console import PlainConsole
from worldline.cli.interruption import interruptible
from worldline.cli.options import EndTime, Settings
from worldline.cli.seeds import processors, watched
from worldline.model.counting import counted
from worldline.model.errors import UsageError
from worldline.search.deadline import SECONDS_MAX
from worldline.search.searching import Recipe, Report, search_seeds
from worldline.targets.federation_trial import TrialRequest, made_trial, quietly

_SEEDS = 100


@interruptible()
def search(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE.toml|FILE.py[:NAME]",
            help="A federation's file, or a Python file that defines one as `model` or NAME.",
        ),
    ],
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="MODULE:FUNCTION",
            help="What must hold, found as from the target's folder; repeat it for several.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Try this many seeds, until one fails.")] = _SEEDS,
    seed: Annotated[int | None, typer.Option(help="The first seed (default: the target's own).")] = None,
    until: EndTime = None,
    settings: Settings = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of worker processes (default: one per processor).")
    ] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Try all seeds and count failures.")] = False,
    no_shrink: Annotated[bool, typer.Option("--no-shrink", help="Don't shrink the failure.")] = False,
    seconds_max: Annotated[
        float, typer.Option(min=0.001, help="Consider a run endless after this many seconds of real time.")
    ] = SECONDS_MAX,
) -> None:
    """Try a federation on many seeds until a property fails or a program raises; shrink that to what it takes."""
    request = TrialRequest(
        target=target, seed=seed, until=until, settings=tuple(settings or ()), properties=tuple(properties or ())
    )
    trial = made_trial(request)
    console = PlainConsole()
    with quietly():
        report = watched(
            lambda count: search_seeds(
                trial,
                range(trial.seed, trial.seed + seeds),
                workers=min(seeds, workers or processors()),
                recipe=lambda: Recipe(made_trial, (request,)),
                seconds_max=seconds_max,
                keeps_going=keep_going,
                progress=count,
            ),
            seeds,
        )
    _report(console, request, report, keep_going=keep_going)
