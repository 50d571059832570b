"""How a participant's program has ended, and what the others are told of it, in a line."""

from __future__ import annotations

from worldline.model.blame import said_of
from worldline.model.errors import WorldlineError, shortened

NO_TERMINAL = "debug it with `worldline run --debug NAME`, or start it with `worldline join`"
"""What to do where a debugger has nobody to talk to."""


def blame(error: BaseException) -> str:
    """Return what was raised, and the line of the program that led to it, as short as it is told elsewhere."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    text = shortened(f"its program raised {said_of(error)}")
    return f"{text} ({NO_TERMINAL})" if is_debugger_quit(error) else text


def failed_at(error: BaseException, name: str) -> int | None:
    """Return when a participant's program failed, if the error says so: a simulator may be before its participant."""
    if isinstance(error, WorldlineError) and error.participant == name and error.at is not None and error.at >= 0:
        return error.at
    return None


def is_debugger_quit(error: BaseException) -> bool:
    """Whether a debugger has ended the program: somebody has quit it, or it had nobody to talk to."""
    return type(error).__name__ == "BdbQuit"  # By name: to load the debugger takes longer than all the rest here.


def is_normal_end(error: BaseException | None) -> bool:
    """Whether a program that has ended so has ended well: by returning, or by ``sys.exit()``."""
    return error is None or (
        isinstance(error, SystemExit) and (error.code is None or (isinstance(error.code, int) and error.code == 0))
    )
