"""The `worldline` command: one module per subcommand.

Exit codes tell who has to act: 0 all is well; 1 the model went wrong (non-determinism, a broken promise, a program
that raised); 2 the command was used wrongly; 3 a participant or connection was lost; 4 nobody could go on; 70 a bug
in Worldline.
"""

from __future__ import annotations

import sys
from typing import NoReturn

import typer
from rich.console import Console

from worldline.cli.check import check
from worldline.model import InternalError, LossError, ModelError, PeerError, Stuck, UsageError, WorldlineError

EXIT_CODES: dict[type[WorldlineError], int] = {
    UsageError: 2,
    PeerError: 2,
    LossError: 3,
    Stuck: 4,
    ModelError: 1,
    InternalError: 70,
}

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Deterministic distributed simulation.",
)
app.command()(check)


@app.callback()
def _worldline() -> None:
    """Deterministic distributed simulation."""


def main() -> NoReturn:
    """Run the command; a user's mistake ends in one line of text, not in a traceback."""
    try:
        app()
    except WorldlineError as error:
        Console(stderr=True).print(f"worldline: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind)))
    sys.exit(0)
