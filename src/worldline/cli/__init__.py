"""The `worldline` command: one module per subcommand.

Exit codes tell who has to act: 0 all is well; 1 the model went wrong (non-determinism, a broken promise, a program
that raised); 2 the command was used wrongly; 3 a participant, a connection or the disk was lost; 4 nobody could go on;
70 a bug in Worldline; 130 interrupted; 141 nobody reads on, `| head -1`.

To load the subcommands takes most of a second, in which somebody may well press Ctrl-C. So this module loads nothing
by itself.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import NoReturn

_INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command. A mistake of the user ends in a line of text, an interruption in none, neither in a trace."""
    sys.excepthook = _except_interruptions
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # There is nothing left to interrupt.
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # Nothing has begun, and modules that are being loaded can't be left.
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    from worldline.cli.commands import app
    from worldline.cli.console import PlainConsole
    from worldline.model.errors import Unread, WorldlineError
    from worldline.workers.standard_output import guard_output

    if usual is signal.default_int_handler:
        signal.signal(signal.SIGINT, usual)
    guard_output()
    try:
        _run(app)
    except WorldlineError as error:
        if not isinstance(error, Unread):
            PlainConsole(sys.stderr).print(f"worldline: {error}", style="red")
        code = error.exit_code
    except KeyboardInterrupt:
        code = _INTERRUPTED
    else:
        sys.exit(0)
    if code == _INTERRUPTED:
        from worldline.workers.rank_end import end_all_at_exit

        end_all_at_exit()
    with suppress(WorldlineError):  # There was something worse.
        sys.stdout.flush()
    sys.exit(code)


def _run(app: Callable[[], object]) -> None:
    """Run the command until all that it prints is written."""
    try:
        app()
    except SystemExit:
        sys.stdout.flush()
        raise


def _except_interruptions(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
