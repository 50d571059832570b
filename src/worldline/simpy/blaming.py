"""Says which process has ended a run, and where in its author's code."""

from __future__ import annotations

from typing import NamedTuple

from worldline.model.blame import SourceLine, said_of
from worldline.simpy.engine import INVALID_YIELD, Environment, Process, failed_in

_ADVICE = "a process yields events, such as env.timeout(5)"


class ProcessFailure(NamedTuple):
    """What has ended a run, in words, and the process that it was; None if it was none."""

    process: Process | None
    said: str
    advice: str | None = None


def failure_in(env: Environment, error: BaseException) -> ProcessFailure | None:
    """Return what an environment's run has ended with; None if nothing has failed there."""
    failed = failed_in(env)
    if failed is None:
        return None
    if not isinstance(failed, Process):
        return ProcessFailure(
            None,
            f"an event failed, {type(failed).__name__}, and no process has dealt with it: {said_of(first_of(error))}",
        )
    return _invalid_yield(error, failed) or ProcessFailure(failed, said_of(first_of(error)))


def first_of(error: BaseException) -> BaseException:
    """Return what was raised first: those who wait for a process, and the run, are given copies of its failure."""
    while type(error.__cause__) is type(error):
        error = error.__cause__
    return error


def _invalid_yield(error: BaseException, process: Process) -> ProcessFailure | None:
    """Say what a process has yielded that isn't an event, and where: SimPy's text has that on several lines."""
    lines = str(error).splitlines()
    frame = getattr(process._generator, "gi_frame", None)
    if not isinstance(error, RuntimeError) or not lines or not lines[-1].startswith(INVALID_YIELD) or frame is None:
        return None
    place = SourceLine(frame.f_code.co_filename, frame.f_lineno, "")
    return ProcessFailure(process, f"{lines[-1]}, in {place}", _ADVICE)
