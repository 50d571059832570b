"""The `worldline` command: one module per subcommand.

Exit codes tell who has to act: 0 all is well; 1 the model went wrong (non-determinism, a broken promise, a program
that raised); 2 the command was used wrongly; 3 a participant, a connection or the disk was lost; 4 nobody could go on;
70 a bug in Worldline; 130 interrupted.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from platform import python_version
from typing import Annotated, NoReturn

import typer

from worldline.cli.check import check
from worldline.cli.console import PlainConsole
from worldline.cli.digest import digest
from worldline.cli.help import HelpfulCommand, HelpfulGroup
from worldline.cli.info import info
from worldline.cli.init import init
from worldline.cli.nodes import nodes
from worldline.cli.nodes_syntax import SYNTAX
from worldline.cli.run import run
from worldline.cli.serve import serve
from worldline.cli.spacetime import spacetime
from worldline.model import WorldlineError

app = typer.Typer(
    cls=HelpfulGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Mistakes are told in plain lines, as everything else.
    help="Deterministic distributed simulation.",
)
for command in (run, serve, init, check, info, digest, nodes, spacetime):
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


def main() -> NoReturn:
    """Run the command; a user's mistake ends in one line of text, not in a traceback."""
    try:
        app()
    except WorldlineError as error:
        PlainConsole(sys.stderr).print(f"worldline: {error}", style="red")
        sys.exit(error.exit_code)
    sys.exit(0)
