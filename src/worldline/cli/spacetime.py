"""`worldline spacetime`: run agents through spacetime, or look at such a run that was recorded."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from worldline.cli.console import PlainConsole, words_aside
from worldline.cli.interruption import interruptible
from worldline.cli.options import Force
from worldline.cli.spacetime_show import SpacetimeNarrator, SpacetimeOutputs, retell, run_one
from worldline.files.parameters import pairs
from worldline.model import UsageError, WorldlineError
from worldline.processes.executor import as_executor
from worldline.recording import Shelf
from worldline.spacetime.examples import NAMES, find
from worldline.spacetime.loading import Example, load_file
from worldline.spacetime.simulation import EXECUTORS

LIST = "list"
_RECORDING = ".mcap"


def spacetime(
    context: typer.Context,
    example: Annotated[
        str | None,
        typer.Argument(
            metavar="EXAMPLE|list|RUN.mcap",
            help="Name of an example; `list` lists them. A recording is shown, not run.",
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="Your own model: a file that defines `model`.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all random draws (default: the example's own).")] = None,
    until: Annotated[
        float | None, typer.Option(metavar="TIME", help="End of the run, in lab time (default: the example's own).")
    ] = None,
    executor: Annotated[
        str,
        typer.Option(
            metavar="EXECUTOR",
            help="inline, processes(2), mpi or shuffled(7) (inline, order seeded by 7). All give the same result.",
        ),
    ] = "inline",
    parameters: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set an example parameter.")
    ] = None,
    diagram: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw a Minkowski diagram.")] = None,
    animation: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page that animates the agents.")
    ] = None,
    record: Annotated[Path | None, typer.Option(metavar="FILE.mcap", help="Record the run.")] = None,
    force: Force = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check that nothing was absorbed outside the future of its emission.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all records as JSON, one per line.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show only the outcome.")] = False,
) -> None:
    """Run agents that send each other functions at the speed of light, and print what they log.

    Options and seed determine the run; the executor doesn't affect it.
    """
    if example == LIST and file is None:
        _list(PlainConsole())
        return
    outputs = SpacetimeOutputs(None if record is None else Shelf(record, force=force), diagram, animation, check)
    context.with_resource(words_aside(outputs.record))
    narrator = SpacetimeNarrator(PlainConsole(), as_json=as_json, quiet=quiet)
    if example is not None and example.endswith(_RECORDING) and file is None:
        _check_alone(context)
        outputs.check()
        retell(Path(example), narrator, outputs)
        return
    chosen_executor = as_executor(executor, EXECUTORS)
    try:
        chosen = _example(example, file)
        end = chosen.until if until is None else until
        if end is None:
            raise UsageError(f"{chosen.name} doesn't say when it ends", advice="use --until, or write UNTIL = 100.0")
        if not isfinite(end):
            raise UsageError(f"a run can't end at {end}", advice="give a lab time: --until 100")
        settings = chosen.parsed(pairs(parameters or []))
        outputs.check()
        with interruptible():
            run_one(
                chosen,
                settings,
                seed,
                end,
                chosen_executor,
                narrator,
                outputs,
                target=str(file or example),
                settings=tuple(parameters or ()),
            )
    except WorldlineError as error:
        if chosen_executor.is_main:
            raise
        raise typer.Exit(error.exit_code) from error  # One rank says it.


# What goes with a recording: how it is shown, not what happens.
_BESIDE_A_RECORDING = ("example", "diagram", "animation", "check", "as_json", "quiet")


def _check_alone(context: typer.Context) -> None:
    """Refuse options that a recording would silently ignore."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and name not in _BESIDE_A_RECORDING:
            given = "set" if name == "parameters" else name
            raise UsageError(f"--{given} can't be used with a recording: its run is over")


def _example(name: str | None, file: Path | None) -> Example:
    if file is not None:
        if name is not None:
            raise UsageError(f"--file says what runs, and so does {name}", advice="use one of them")
        return load_file(file)
    if name is None:
        raise UsageError(
            "which example?", advice="name one, see `worldline spacetime list`, or give your own with --file"
        )
    if name.endswith(".py"):
        raise UsageError(f"{name} is a file", advice=f"write --file {name}")
    return find(name)


def _list(console: Console) -> None:
    """Show each example on two lines: how long it runs and what can be set, and what it is."""
    for name in NAMES:
        found = find(name)
        settings = " ".join(f"{key}={value}" for key, value in found.parameters.items())
        console.print(Text.assemble((f"{name:14}", "bold"), f"until {found.until:g}; {settings}"))
        console.print(f"  {found.about}", style="dim")
