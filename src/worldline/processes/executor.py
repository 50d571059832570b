"""Executors: on what a simulation runs. All of them give the same history.

An executor is a value that says it, and has one text: ``"inline"``, ``"processes(4)"``, ``"mpi"``, ``"shuffled(7)"``,
and for federations ``"in-process"``, ``"tcp"``, ``"unix"``. What it takes to run on one is each
room's own business; a room says which it can use, and what it can't is refused here, in the same words everywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from worldline.model.errors import ConfigurationError, UsageError, shown

# MPI's library, which isn't installed everywhere.


def load_mpi() -> Any:
    """Return the library, ready to be used; it may well be that this process is the only rank."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UsageError(
            f"MPI can't be used: {error}", advice="pip install '.[mpi]' in the clone of Worldline"
        ) from error
    return MPI


PATIENCE_S = 600.0
"""How long ranks wait for each other unless they are told otherwise."""

_WORKERS_MAX = 64
_TEXT = re.compile(r"\s*([a-z-]+)\s*(?:\(\s*(-?[0-9]{0,19})\s*\))?\s*")


def _check_count(count: object) -> None:
    if type(count) is not int or not 1 <= count <= _WORKERS_MAX:
        raise ConfigurationError(f"there can't be {shown(count)} workers", advice=f"use 1 to {_WORKERS_MAX}")


class Executor(Struct, frozen=True):
    """On what a simulation runs."""

    @property
    def is_main(self) -> bool:
        """Whether this process is the one to print: where several run the whole script, one of them is."""
        return True


class Inline(Executor, frozen=True):
    """In this process; then a simulation of the kernel can be stepped, and run further."""

    def __str__(self) -> str:
        return "inline"


class Processes(Executor, frozen=True):
    """In so many worker processes on this machine; participants of a federation too, several in each.

    What a placement is the room says that runs on them.
    """

    count: int
    placement: Any = None

    def __post_init__(self) -> None:
        _check_count(self.count)

    def __str__(self) -> str:
        return f"processes({self.count})"


class Mpi(Executor, frozen=True):
    """On the ranks of MPI's world: every rank runs the whole script, and does its share.

    Ranks that have come to a run wait so many seconds for those that haven't.
    """

    placement: Any = None
    patience_s: float = PATIENCE_S

    def __post_init__(self) -> None:
        patience = self.patience_s
        if isinstance(patience, bool) or not isinstance(patience, int | float) or not patience > 0:
            raise ConfigurationError(f"{shown(patience)} isn't a patience", advice="it's a number of seconds above 0")

    @property
    def is_main(self) -> bool:
        return bool(load_mpi().COMM_WORLD.Get_rank() == 0)

    def __str__(self) -> str:
        return "mpi"


class Shuffled(Executor, frozen=True):
    """In this process, where a draw says who runs next: a check that this doesn't matter."""

    seed: int

    def __post_init__(self) -> None:
        if type(self.seed) is not int:
            raise ConfigurationError(f"{shown(self.seed)} isn't a seed", advice="it's a whole number: shuffled(7)")

    def __str__(self) -> str:
        return f"shuffled({self.seed})"


class InProcess(Executor, frozen=True):
    """All participants of a federation in this process."""

    def __str__(self) -> str:
        return "in-process"


class Tcp(Executor, frozen=True):
    """A process for each participant of a federation; they connect by TCP."""

    def __str__(self) -> str:
        return "tcp"


class Unix(Executor, frozen=True):
    """A process for each participant of a federation; they connect by a Unix socket."""

    def __str__(self) -> str:
        return "unix"


_EXAMPLES: dict[type[Executor], str] = {
    Inline: "inline",
    Processes: "processes(4)",
    Mpi: "mpi",
    Shuffled: "shuffled(7)",
    InProcess: "in-process",
    Tcp: "tcp",
    Unix: "unix",
}
_PLAIN: dict[str, Callable[[], Executor]] = {
    **{text: kind for kind, text in _EXAMPLES.items() if "(" not in text},
    "processes": Unix,  # A federation has as many as it has participants.
    "workers": lambda: Processes(min(cores(), _WORKERS_MAX)),
}
_NUMBERED: dict[str, Callable[[int], Executor]] = {
    "processes": Processes,
    "shuffled": Shuffled,
    "workers": Processes,  # Another word for it.
}

EVERY = tuple(_EXAMPLES)


def inline() -> Inline:
    """Run a simulation in this process."""
    return Inline()


def processes(workers: int, *, placement: Any = None) -> Processes:
    """Run a simulation in so many processes on this machine.

    The placement says which gets what. In the kernel, "links" keeps close entities together (the default if links are
    declared), "round robin" deals them out, and a dict names the worker of each.
    """
    return Processes(workers, placement)


def mpi(*, placement: Any = None, patience_s: float = PATIENCE_S) -> Mpi:
    """Run a simulation on the ranks of MPI: ``mpiexec -n 4 python model.py``. Every rank runs the whole script.

    Ranks that have come to a run wait so many seconds for those that haven't; then it is said who is missing, and all
    are ended. Without a limit it is `math.inf`.
    """
    return Mpi(placement, patience_s)


def as_executor(given: Any, allowed: Sequence[type[Executor]] = EVERY) -> Executor:
    """Take an executor or its text; refuse one that isn't of an allowed kind, and say what is."""
    found = readable_executor(given) if isinstance(given, str) else given() if given in (inline, mpi) else given
    advice = "use " + _listed([f'"{_EXAMPLES[kind]}"' for kind in allowed])
    if not isinstance(found, Executor):
        raise ConfigurationError(f"{shown(given)} isn't an executor", advice=advice)
    if not isinstance(found, tuple(allowed)):
        raise ConfigurationError(f"{shown(str(given))} can't be used here", advice=advice)
    return found


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
