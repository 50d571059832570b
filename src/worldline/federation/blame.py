"""How a participant's program has ended, and what the others are told of it, in a line."""

from __future__ import annotations

from worldline.model.blame import said_of

NO_TERMINAL = "debug it with `worldline run --executor in-process`, or start it by hand next to `worldline serve`"
"""What to do where a debugger has nobody to talk to."""


def blame(error: BaseException) -> str:
    """Return what was raised, and the line of the program that led to it."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    text = f"its program raised {said_of(error)}"
    # By name: to load the debugger takes longer than all the rest here.
    return f"{text} ({NO_TERMINAL})" if type(error).__name__ == "BdbQuit" else text


def is_normal_end(error: BaseException | None) -> bool:
    """Whether a program that has ended so has ended well: by returning, or by ``sys.exit()``."""
    return error is None or (
        isinstance(error, SystemExit) and (error.code is None or (isinstance(error.code, int) and error.code == 0))
    )
