"""Failures: errors that ended a worker's run, on their way between processes, and which of them is the run's."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
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
