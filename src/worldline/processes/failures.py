"""Failures: errors that ended a worker's run, on their way between processes, and which of them is the run's."""

from __future__ import annotations

import dis
import os
import pickle
import signal
from collections.abc import Iterable
from functools import partial
from types import CodeType, TracebackType
from typing import Any, NamedTuple

from worldline.model.blame import trace_of
from worldline.model.errors import WorldlineError


class Failure(NamedTuple):
    """An error that ended a worker's run, and the key of what it happened at: the least of a run came first."""

    key: tuple[Any, ...]
    error: WorldlineError


def raised_outside(error: WorldlineError) -> Failure:
    """Return the failure of a worker that couldn't even say at what: it goes before all others."""
    return _sendable(Failure((), error))


def told(report: Any) -> Any:
    """Return a worker's report as it is sent to other processes; a failure gets the trace of what went wrong."""
    return _sendable(_with_trace(report)) if isinstance(report, Failure) else report


def first_failure(reports: Iterable[object]) -> Failure | None:
    """Return the failure that happened first, if there are any among the reports."""
    failures = [report for report in reports if isinstance(report, Failure)]
    return min(failures, key=lambda failure: failure.key) if failures else None


def first_error(reports: Iterable[object]) -> WorldlineError | None:
    """Return the error of that one."""
    failure = first_failure(reports)
    return None if failure is None else failure.error


def _with_trace(failure: Failure) -> Failure:
    """Add the trace of what went wrong in the model, which doesn't survive the way to the parent by itself."""
    cause = failure.error.__cause__
    if cause is not None:
        failure.error.add_note(trace_of(cause))
    return failure


def _sendable(failure: Failure) -> Failure:
    """Return a failure as it is, or, if a fact of its error can't leave the process, with one that just says it."""
    try:
        pickle.loads(pickle.dumps(failure))
    except Exception:  # What the model put into its error decides what pickling it raises.
        said = failure.error
        error = type(said)(said.problem, participant=said.participant, at=said.at, advice=said.advice)
        for note in getattr(said, "__notes__", ()):
            error.add_note(note)
        return Failure(failure.key, error)
    return failure


# Tells what ends a run from outside from what the model's code has raised itself.
#
# Whatever a handler raises is a failure of the model, an exit too, and it is told in the same way on every executor:
# who, and when. Four things aren't, and pass as they are: a `KeyboardInterrupt` that no code has raised, since it was
# Ctrl-C; what the program's own handler of a signal raises, such as the exit of one that is asked to terminate; a
# `BreakOff`; and whatever is raised in a process that a handler has forked, which isn't the one of the run.

_RAISES = dis.opmap["RAISE_VARARGS"]

_run_by = 0  # The process of the last run that began here; another one has inherited it.


class BreakOff(BaseException):
    """Ends a run at once, by a wish from outside: an alarm's, for instance."""


def begin_run() -> None:
    """Say that a run is this process's own."""
    global _run_by
    _run_by = os.getpid()


def is_from_outside(error: BaseException) -> bool:
    """Whether an error that came out of the model's code isn't the model's."""
    if isinstance(error, Exception):
        return False
    return (
        isinstance(error, BreakOff)
        or _run_by not in (0, os.getpid())
        or (isinstance(error, KeyboardInterrupt) and not _was_raised(error.__traceback__))
        or _came_by_signal(error.__traceback__)
    )


def _was_raised(trace: TracebackType | None) -> bool:
    """Whether the innermost line is a `raise`; a signal comes in between instructions, and never at that one."""
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code.co_code
    return 0 <= trace.tb_lasti < len(code) and code[trace.tb_lasti] == _RAISES


def _came_by_signal(trace: TracebackType | None) -> bool:
    """Whether it was raised in, or below, the program's own handler of a signal, wherever that came in between."""
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def _code_of(handler: Any) -> CodeType | None:
    """Return the code of a handler that is written in Python; None for others."""
    while isinstance(handler, partial):
        handler = handler.func
    code = getattr(handler, "__code__", None) or getattr(getattr(handler, "__call__", None), "__code__", None)  # noqa: B004
    return code if isinstance(code, CodeType) else None
