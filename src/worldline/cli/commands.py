"""The subcommands of `worldline`, put together; each is loaded when it is used.

What a command needs may take most of a second to load, and most of that is of no use to the others. So what each does
is said here, in the words of its module, and only the one that is wanted is imported.
"""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.main import get_command

from worldline.cli.help import HelpfulCommand, HelpfulGroup
from worldline.cli.leaving import leave_in_order
from worldline.cli.values import spare

ABOUT = {
    "run": "Run a federation, a kernel simulation, a distributed algorithm, agents in spacetime or a world.",
    "serve": "Serve one run of a federation to participants started elsewhere.",
    "join": "Start one participant of a federation here, for a run served elsewhere.",
    "metasim": "Coordinate simulators in several processes as one, without a federation's file.",
    "world": "Run a world of robots in lockstep, in one process or over several: the same bit for bit.",
    "init": "Write a small federation to start from: federation.toml and federation.py.",
    "check": "Run a federation under many schedules and compare every delivery; any difference is non-determinism.",
    "search": "Try a federation on many seeds until a property fails or a program raises; shrink what fails.",
    "verify": "Run a target twice, and across executors, hash seeds, surroundings, start orders and builds; compare the"
    " digests.",
    "why": "Say who waits for whom in a running federation, through which links, for how long, and what the holder is"
    " doing.",
    "pause": "Hold a running federation where it is; its result stays the same.",
    "step": "Let a federation go on, to the next time at which anybody acts or as far as you say, and hold it there.",
    "resume": "Let a federation go on that `worldline pause` or `worldline step` holds.",
    "end": "End a federation in good order: it has a result, as if it had been run with --until that time.",
    "draws": "List the random draws of a run: name, time, distribution and value.",
    "diff": "Show where two runs diverge: each member's first difference, the earliest cause, and what followed.",
    "replay": "Play a recording, or run members of it again on their own and compare what they do.",
    "export": "Write a recording as CSV, Parquet, an LCM log or a Chrome trace.",
    "info": "Show what a recording contains: who took part, what was sent and lost, and whether the file is intact.",
    "digest": "Print the digest of a recorded run on a line by itself; fail if the file is incomplete or altered.",
    "nodes": "Run a distributed algorithm and print what happens, or try it on many seeds.",
    "spacetime": "Run agents that send each other functions at the speed of light, and print what they log.",
}
"""What each command does: the first paragraph of the docstring of the function `NAME` in `worldline.cli.NAME`."""


class _Subcommands(UserDict[str, Any]):
    """The commands by their names, each made when it is looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.data = dict.fromkeys(ABOUT)

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = _loaded(name)
        return self.data[name]


def _loaded(name: str) -> Any:
    module = import_module(f"worldline.cli.{name}")
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    function, parts = getattr(module, name), getattr(module, "COMMANDS", {})
    if parts:  # It is a group of commands, which are loaded together.
        about = {part: cleandoc(each.__doc__).partition("\n\n")[0] for part, each in parts.items()}
        group = type("_Group", (HelpfulGroup,), {"about": about})
        alone.callback(cls=group, no_args_is_help=True)(function)
        for part, each in parts.items():
            alone.command(part, cls=_Subcommand)(each)
    else:
        kind = type(
            "_Command", (_Subcommand,), {"completed": staticmethod(getattr(module, "completed", _Subcommand.completed))}
        )
        alone.command(name, cls=kind, epilog=getattr(module, "EPILOG", None))(function)
    made = get_command(alone)
    leave_in_order()
    return made


class _Worldline(HelpfulGroup):
    about = ABOUT

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Subcommands()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        spare(self.get_params(ctx))
        return super().parse_args(ctx, args)


class _Subcommand(HelpfulCommand):
    @staticmethod
    def completed(arguments: list[str]) -> list[str]:
        """Add to the arguments what may be left out."""
        return arguments

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        spare(self.get_params(ctx))
        return super().parse_args(ctx, self.completed(args))


app = typer.Typer(
    cls=_Worldline,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Mistakes are told in plain lines, as everything else.
    help="Deterministic distributed simulation.",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version
        from platform import python_version

        print(f"worldline {version('worldline')}, Python {python_version()}")
        raise typer.Exit


@app.callback()
def _worldline(
    version_wanted: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Deterministic distributed simulation."""
