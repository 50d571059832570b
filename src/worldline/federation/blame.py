"""Says what a program has raised, and where in its own code: to the others in a line, to its author in full."""

from __future__ import annotations

import traceback

from worldline.model.blame import outer_frames, own_line
from worldline.model.errors import WorldlineError, shortened

NO_TERMINAL = "debug it with `worldline run --executor in-process`, or start it by hand beside `worldline serve`"
"""What to do where a debugger has nobody to talk to."""


def blame(error: BaseException) -> str:
    """Return what was raised, and the line of the program that led to it."""
    said = shortened(error.problem if isinstance(error, WorldlineError) else str(error))  # On one line.
    text = f"its program raised {type(error).__name__}" + (f": {said}" if said else "")
    if isinstance(error, WorldlineError) and error.advice:
        text += f" ({error.advice})"
    elif type(error).__name__ == "BdbQuit":  # By name: to load the debugger takes longer than all the rest here.
        text += f" ({NO_TERMINAL})"
    line = own_line(error)
    return text if line is None else f"{text}, in {line}"


def trace_of(error: BaseException) -> str:
    """Return an error's whole traceback, from where the author's program was called."""
    trace = error.__traceback__
    for _ in range(outer_frames(error)):
        assert trace is not None
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip("\n")


def is_normal_end(error: BaseException | None) -> bool:
    """Whether a program that has ended so has ended well: by returning, or by ``sys.exit()``."""
    return error is None or (
        isinstance(error, SystemExit) and (error.code is None or (isinstance(error.code, int) and error.code == 0))
    )
