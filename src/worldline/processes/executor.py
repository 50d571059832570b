"""Executors: on what a simulation runs. All of them give the same history.

An executor is a value that says it, and has one text: ``"inline"``, ``"processes(4)"``, ``"mpi"``, ``"shuffled(7)"``,
and for federations ``"in-process"``, ``"tcp"``, ``"unix"``. What it takes to run on one is each
room's own business; a room says which it can use, and what it can't is refused here, in the same words everywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

from msgspec import Struct

from worldline.extras import installing
from worldline.model.errors import ConfigurationError, UsageError, shown

# MPI's library, which isn't installed everywhere.


def load_mpi() -> Any:
    """Return the library, ready to be used; it may well be that this process is the only rank."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UsageError(f"MPI can't be used: {error}", advice=installing("mpi")) from error
    return MPI


PATIENCE_S = 600.0
"""How long ranks wait for each other unless they are told otherwise."""

WORKERS_MAX = 64
"""So many processes of its own a run has on one machine at the most."""

_TEXT = re.compile(r"\s*([a-z-]+)\s*(?:\(\s*(-?[0-9]{0,19})\s*\))?\s*")


Kind = Literal["inline", "processes", "mpi", "shuffled", "in-process", "tcp", "unix"]


class Executor(Struct, frozen=True):
    """On what a simulation runs, by its kind.

    ==========  =======================================================================================
    inline      in this process; then a simulation of the kernel can be stepped, and run further
    processes   in `count` worker processes on this machine; participants of a federation, several in each
    mpi         on the ranks of MPI's world: every rank runs the whole script, and does its share; ranks that
                have come to a run wait `patience_s` for those that haven't
    shuffled    in this process, where a draw with `seed` says who runs next: a check that this doesn't matter
    in-process  all participants of a federation in this process
    tcp, unix   a process for each participant of a federation; they connect by TCP, or by a Unix socket
    ==========  =======================================================================================

    What a placement is, says the room that runs on worker processes or ranks.
    """

    kind: Kind
    count: int = 1
    placement: Any = None
    patience_s: float = PATIENCE_S
    seed: int = 0

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= WORKERS_MAX:
            raise ConfigurationError(f"there can't be {shown(self.count)} workers", advice=f"use 1 to {WORKERS_MAX}")
        patience = self.patience_s
        if isinstance(patience, bool) or not isinstance(patience, int | float) or not patience > 0:
            raise ConfigurationError(f"{shown(patience)} isn't a patience", advice="it's a number of seconds above 0")
        if type(self.seed) is not int:
            raise ConfigurationError(f"{shown(self.seed)} isn't a seed", advice="it's a whole number: shuffled(7)")

    @property
    def is_main(self) -> bool:
        """Whether this process is the one to print: where several run the whole script, one of them is."""
        return self.kind != "mpi" or bool(load_mpi().COMM_WORLD.Get_rank() == 0)

    def __str__(self) -> str:
        numbers = {"processes": self.count, "shuffled": self.seed}
        return f"{self.kind}({numbers[self.kind]})" if self.kind in numbers else self.kind


_EXAMPLES: dict[Kind, str] = {
    **{kind: kind for kind in get_args(Kind)},
    "processes": "processes(4)",
    "shuffled": "shuffled(7)",
}
EVERY: tuple[Kind, ...] = tuple(_EXAMPLES)

_PLAIN: dict[str, Callable[[], Executor]] = {
    "inline": lambda: Executor("inline"),
    "mpi": lambda: Executor("mpi"),
    "in-process": lambda: Executor("in-process"),
    "tcp": lambda: Executor("tcp"),
    "unix": lambda: Executor("unix"),
    "processes": lambda: Executor("unix"),  # A federation has as many as it has participants.
    "workers": lambda: Executor("processes", min(cores(), WORKERS_MAX)),
}
_NUMBERED: dict[str, Callable[[int], Executor]] = {
    "processes": lambda count: Executor("processes", count),
    "workers": lambda count: Executor("processes", count),  # Another word for it.
    "shuffled": lambda seed: Executor("shuffled", seed=seed),
}


def inline() -> Executor:
    """Run a simulation in this process."""
    return Executor("inline")


def processes(workers: int, *, placement: Any = None) -> Executor:
    """Run a simulation in so many processes on this machine.

    The placement says which gets what. In the kernel, "links" keeps close entities together (the default if links are
    declared), "round robin" deals them out, and a dict names the worker of each.
    """
    return Executor("processes", workers, placement)


def mpi(*, placement: Any = None, patience_s: float = PATIENCE_S) -> Executor:
    """Run a simulation on the ranks of MPI: ``mpiexec -n 4 python model.py``. Every rank runs the whole script.

    Ranks that have come to a run wait so many seconds for those that haven't; then it is said who is missing, and all
    are ended. Without a limit it is `math.inf`.
    """
    return Executor("mpi", placement=placement, patience_s=patience_s)


def shuffled(seed: int) -> Executor:
    """Run agents in this process, where a draw says who runs next: a check that this doesn't matter."""
    return Executor("shuffled", seed=seed)


def as_executor(given: Any, allowed: Sequence[Kind] = EVERY) -> Executor:
    """Take an executor or its text; refuse one that isn't of an allowed kind, and say what is."""
    found = readable_executor(given) if isinstance(given, str) else given() if given in (inline, mpi) else given
    if isinstance(found, Executor) and found.kind in allowed:
        return found
    problem = (
        f"{shown(str(given))} can't be used here"
        if isinstance(found, Executor)
        else f"{shown(given)} isn't an executor"
    )
    raise ConfigurationError(problem, advice="use " + _listed([f'"{_EXAMPLES[kind]}"' for kind in allowed]))


def readable_executor(text: str) -> Executor | None:
    """Return the executor of a text; None if it isn't that of any."""
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    word, number = match[1], match[2]
    if number or (number == "" and word in _NUMBERED):  # `inline()` may be written, but `workers()` lacks a number.
        return _NUMBERED[word](int(number)) if word in _NUMBERED and number not in ("", "-") else None
    return _PLAIN[word]() if word in _PLAIN else None


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _listed(texts: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
