"""The `worldline` command: one module per subcommand.

Exit codes tell who has to act: 0 all is well; 1 the model went wrong during a run (non-determinism, a broken promise, a
program that raised, or did what it may not); 2 what was asked for was refused before it began; 3 a participant, a
connection or the disk was lost; 4 no participant could go on; 70 a bug in Worldline; 130 interrupted; 141 the reader of
what is printed is gone, `| head -1`.

To load a subcommand may take most of a second, in which its user may well press Ctrl-C. So this module loads nothing by
itself, and until the subcommand is there, an interruption simply ends the process: modules that are half loaded can't
be left.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import NoReturn

INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command. A mistake of the user ends in a line of text, an interruption in none, neither in a trace."""
    sys.excepthook = _except_interruptions
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # There is nothing left to interrupt.
    leave_at_once()
    gc.disable()
    from worldline.cli.commands import Subcommands, app
    from worldline.processes.standard_output import guard_output

    guard_output()
    Subcommands.when_loaded = staticmethod(_is_loaded)
    code = 0
    try:
        _run(app)
    except Exception as error:
        code = _exit_code(error)
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        _is_loaded()
    if code == INTERRUPTED:
        from worldline.processes.ranks import end_all_at_exit

        end_all_at_exit()
    if code:
        from worldline.model.errors import WorldlineError

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


def _exit_code(error: Exception) -> int:
    """Say it in a line to the user, and return the exit code; an error that isn't ours is raised again."""
    from worldline.cli.console import PlainConsole, own_lines
    from worldline.model.errors import LossError, Unread, WorldlineError

    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        PlainConsole(sys.stderr).print(f"worldline: {error.strerror}: raise the limit with `ulimit -n`", style="red")
        return LossError.exit_code
    if not isinstance(error, WorldlineError):
        raise error
    if not isinstance(error, Unread):
        PlainConsole(sys.stderr).print(own_lines(f"worldline: {error}"), style="red")
    return error.exit_code


def _except_interruptions(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


def leave_at_once() -> None:
    """From now on an interruption ends the process, unless a handler is set already: nothing has begun."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_DFL):
        signal.signal(signal.SIGINT, _leave)


def leave_in_order() -> None:
    """From now on an interruption is a KeyboardInterrupt, as usual: all is loaded."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_loaded() -> None:
    """Go on as usual; what is loaded by now stays, so the garbage collector needn't look through it, also at the end.

    That is a quarter of what a short command takes. What users' own modules make comes later, and is collected.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    leave_in_order()


def _leave(*_: object) -> NoReturn:
    os._exit(INTERRUPTED)
