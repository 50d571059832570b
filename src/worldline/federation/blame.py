"""How a participant's program has ended, and what the others are told of it, in a line."""

from __future__ import annotations

from worldline.model.blame import described, own_line, said_of
from worldline.model.errors import InternalError, Interrupted, LossError, ModelError, ObserverFailure, WorldlineError

NO_TERMINAL = "debug it with `worldline run --debug NAME`, or start it with `worldline join`"
"""What to do where a debugger has nobody to talk to."""


def blame(error: BaseException) -> str:
    """Return what was raised, and the line of the program that led to it."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    text = f"its program raised {said_of(error)}"
    return f"{text} ({NO_TERMINAL})" if is_debugger_quit(error) else text


def is_debugger_quit(error: BaseException) -> bool:
    """Whether a debugger has ended the program: somebody has quit it, or it had nobody to talk to."""
    return type(error).__name__ == "BdbQuit"  # By name: to load the debugger takes longer than all the rest here.


def failed_program(error: WorldlineError) -> WorldlineError:
    """Return an error of ours that a program has raised as the failure that the others see: the same on every executor.

    What isn't its author's to mend stays as it is: a lost disk, an interruption, a bug of ours, a failing observer.
    """
    if isinstance(error, (LossError, Interrupted, InternalError, ObserverFailure)):
        return error
    line = own_line(error)
    problem = f"its program raised {described(error)}" + ("" if line is None else f", in {line}")
    if not isinstance(error, ModelError) or error.exit_code != ModelError.exit_code:
        made = ModelError(problem, advice=error.advice, **error.facts)
        made.__cause__ = error
        return made
    error.problem, error.participant, error.at = problem, None, None
    error.args = (error.text(),)
    return error


def is_normal_end(error: BaseException | None) -> bool:
    """Whether a program that has ended so has ended well: by returning, or by ``sys.exit()``."""
    return error is None or (
        isinstance(error, SystemExit) and (error.code is None or (isinstance(error.code, int) and error.code == 0))
    )
