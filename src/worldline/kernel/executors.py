"""Executors: what runs a simulation. All of them give the same history."""

from __future__ import annotations

import re
from typing import Any, Protocol, cast

from worldline.history.observer import Observer
from worldline.kernel.model import Model
from worldline.kernel.placement import Placement
from worldline.kernel.progress import Progress
from worldline.kernel.result import Result
from worldline.model.errors import ConfigurationError, shown
from worldline.workers.assembly import PATIENCE_S

_WORKERS_MAX = 64
_TEXT = re.compile(r"\s*([a-z]+)\s*(?:\(\s*([0-9]*)\s*\))?\s*")


class Executor(Protocol):
    """Runs a model elsewhere, from its start to an end."""

    @property
    def is_main(self) -> bool:
        """Whether this process is the one to print: where several run the whole script, one of them is."""

    def run(self, model: Model, end: int, progress: Progress, observer: Observer | None) -> Result: ...


class Inline:
    """Says that a simulation runs itself, in this process; then it can be stepped, and run further."""

    is_main = True

    def __str__(self) -> str:
        return "inline"


def inline() -> Inline:
    return Inline()


def processes(workers: int, *, placement: Placement | None = None) -> Executor:
    """Run a simulation in so many processes on this machine.

    The placement says which gets what: "links" keeps close entities together (the default if links are declared),
    "round robin" deals them out, and a dict names the worker of each.
    """
    from worldline.kernel.on_processes import Processes

    if type(workers) is not int or not 1 <= workers <= _WORKERS_MAX:
        raise ConfigurationError(f"{shown(workers)} workers can't be", advice=f"use 1 to {_WORKERS_MAX}")
    return Processes(workers, placement)


def mpi(*, placement: Placement | None = None, patience_s: float = PATIENCE_S) -> Executor:
    """Run a simulation on the ranks of MPI: ``mpiexec -n 4 python model.py``. Every rank runs the whole script.

    Ranks that have come to a run wait so many seconds for those that haven't; then it is said who is missing, and all
    are ended. Without a limit it is `math.inf`.
    """
    from worldline.kernel.ranks import Ranks

    if isinstance(patience_s, bool) or not isinstance(patience_s, int | float) or not patience_s > 0:
        raise ConfigurationError(f"{shown(patience_s)} isn't a patience", advice="it's a number of seconds above 0")
    return Ranks(placement, patience_s)


def as_executor(executor: Any) -> Executor | Inline:
    """Take an executor or its text: ``"inline"``, ``"processes(4)"`` or ``"mpi"``."""
    if not isinstance(executor, str):
        if executor in (inline, mpi):  # Written without its brackets.
            executor = executor()
        if isinstance(executor, Inline) or callable(getattr(executor, "run", None)):
            return cast(Executor | Inline, executor)
        raise _refusal(executor)
    match = _TEXT.fullmatch(executor)
    if match is None:
        raise _refusal(executor)
    kind, number = match[1], match[2]
    if kind == "processes" and number:
        return processes(int(number))
    if kind in ("inline", "mpi") and not number:
        return inline() if kind == "inline" else mpi()
    raise _refusal(executor)


def _refusal(executor: object) -> ConfigurationError:
    return ConfigurationError(f"{shown(executor)} isn't an executor", advice='use "inline", "processes(4)" or "mpi"')
