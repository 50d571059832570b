"""Ends a program's thread that catches whatever is raised, and goes on.

Where it goes on, at whatever line of Python, `ThreadEnding` is raised: also where one was caught. So none of what the
program's functions do comes to anything, until all of them have ended.
"""

from __future__ import annotations

import sys
from ctypes import PYFUNCTYPE, c_ulong, py_object, pythonapi
from functools import partial
from threading import get_ident
from types import FrameType


class ThreadEnding(BaseException):
    """Ends the functions of a program, one after the other.

    `sys.settrace` puts an end to it, and may raise the last one.
    """


# It is called at each line, as a debugger is. What that raises would be the last that it raises; and in a function of
# Python's, an error that is to be raised soon would be raised there. So it is the one of C, which ignores what it is
# told besides: frame, event and argument.
_raise_soon = PYFUNCTYPE(None, c_ulong, py_object, *(py_object,) * 3)(("PyThreadState_SetAsyncExc", pythonapi))


_OUTERMOST = ("_run", "live")  # Our own functions, in `machine` and `threads`, that let programs run.


def end_thread() -> None:
    """Let the program's functions that are being called in this thread end, and any that they call on their way."""
    stop = partial(_raise_soon, get_ident(), ThreadEnding)
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if not str(frame.f_globals.get("__name__")).startswith("worldline."):
            frame.f_trace = stop
        elif frame.f_code.co_name in _OUTERMOST:
            break
        frame = frame.f_back
    sys.settrace(stop)
