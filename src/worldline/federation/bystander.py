"""Those whose run was broken off because of somebody else: a line of theirs is enough.

Whoever has started them shows the cause, once. A traceback of everybody who was waiting just then would bury it.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType

from worldline.model.errors import BrokenOff
from worldline.model.time import format_time


def is_bystander(error: BaseException | None) -> bool:
    """Whether a program that has ended so has ended because of somebody else."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_bystander, error.exceptions))
    return isinstance(error, BrokenOff) and error.participant != error.facts["told"]


def parting_words(error: BaseException | None) -> str:
    """Return what a bystander says of its end."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, BrokenOff) or error.participant is None:
        return f"worldline: {error}"
    at = "" if error.at is None else f" at {format_time(error.at)}"
    return f"worldline: the run was broken off because of {error.participant}{at}"


def be_brief() -> None:
    """Let what ends in this process because of somebody else say no more than that. For processes of a launcher."""
    if _brief:
        return
    _brief.append(True)
    usual, usual_of_threads = sys.excepthook, threading.excepthook

    def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if is_bystander(error):
            print(parting_words(error), file=sys.stderr)
        else:
            usual(kind, error, trace)

    def end_thread(how: threading.ExceptHookArgs) -> None:
        if is_bystander(how.exc_value):
            print(parting_words(how.exc_value), file=sys.stderr)
        else:
            usual_of_threads(how)

    sys.excepthook, threading.excepthook = end, end_thread


_brief: list[bool] = []  # Not empty: this process is.
