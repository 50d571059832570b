"""The subcommands of `worldline`, put together."""

from __future__ import annotations

from importlib.metadata import version
from platform import python_version
from typing import Annotated

import typer

from worldline.cli.check import check
from worldline.cli.diff import diff
from worldline.cli.digest import digest
from worldline.cli.help import HelpfulCommand, HelpfulGroup
from worldline.cli.info import info
from worldline.cli.init import init
from worldline.cli.nodes import nodes
from worldline.cli.nodes_syntax import SYNTAX
from worldline.cli.run import run
from worldline.cli.serve import serve
from worldline.cli.spacetime import spacetime
from worldline.cli.verify import verify

app = typer.Typer(
    cls=HelpfulGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Mistakes are told in plain lines, as everything else.
    help="Deterministic distributed simulation.",
)
for command in (run, serve, init, check, verify, diff, info, digest, nodes, spacetime):
    app.command(cls=HelpfulCommand, epilog=SYNTAX if command is nodes else None)(command)


def _say_version(wanted: bool) -> None:
    if wanted:
        print(f"worldline {version('worldline')}, Python {python_version()}")
        raise typer.Exit


@app.callback()
def _worldline(
    version_wanted: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Deterministic distributed simulation."""
