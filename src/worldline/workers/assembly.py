"""Waits until all ranks of MPI have come to a run, and says who hasn't.

A collective call of MPI can't tell who is missing, and never gives up. So ranks that wait answer to a roll call: who
doesn't answer isn't there. Roll calls are numbered as the runs of a rank are, since a late answer is one to another.
"""

from __future__ import annotations

import sys
import time
from math import inf
from typing import Any, NoReturn

from worldline.model.errors import LossError
from worldline.workers.rank_peers import rest

_NOTICE_S = 10.0
_ANSWER_S = 2.0
_TAG = 30_577  # On the world's communicator, which is everybody's: an unusual one.

_runs = 0


def assembled(mpi: Any, patience_s: float) -> Any:
    """Return a communicator of all ranks for the next run, once all have come to it."""
    global _runs
    _runs += 1
    everybody = mpi.COMM_WORLD
    world, coming = everybody.Idup()
    roll = _Roll(mpi, _runs)
    began = time.monotonic()
    notice, end, asked = _NOTICE_S, patience_s, 0
    while not coming.Test():
        waited = time.monotonic() - began
        roll.answer()
        if waited > min(notice, end):
            roll.call()
        if waited > end + _ANSWER_S:
            _give_up(everybody, roll.missing(), patience_s)
        if waited > notice + _ANSWER_S:
            notice = inf
            if roll.is_first():
                _say(f"waiting for {roll.missing()} to come to this run")
        asked += 1
        rest(asked)
    roll.answer()
    return world


class _Roll:
    """Who of all ranks waits for this run."""

    def __init__(self, mpi: Any, number: int) -> None:
        self._world = mpi.COMM_WORLD
        self._status = mpi.Status()
        self._number = number
        self._me: int = self._world.Get_rank()
        self._others = [rank for rank in range(self._world.Get_size()) if rank != self._me]
        self._here: dict[int, bool] = {}
        self._is_called = False
        self._under_way: list[Any] = []

    def call(self) -> None:
        """Ask the others whether they are here."""
        if not self._is_called:
            self._is_called = True
            for other in self._others:
                self._send(other, "who is here?")

    def answer(self) -> None:
        """Take in what others ask and answer."""
        while self._world.iprobe(tag=_TAG, status=self._status):
            other = self._status.Get_source()
            number, said = self._world.recv(source=other, tag=_TAG)
            if number == self._number:
                self._here[other] = True
                if said == "who is here?":
                    self._send(other, "I am")

    def is_first(self) -> bool:
        """Whether no rank before this one is here."""
        return all(self._me < other for other in self._here)

    def missing(self) -> str:
        """Return who isn't here, in words."""
        missing = [str(other) for other in self._others if other not in self._here]
        return f"rank {missing[0]}" if len(missing) == 1 else f"ranks {', '.join(missing)}"

    def _send(self, other: int, what: str) -> None:
        self._under_way = [sending for sending in self._under_way if not sending.Test()]
        self._under_way.append(self._world.isend((self._number, what), dest=other, tag=_TAG))


def _give_up(everybody: Any, missing: str, patience_s: float) -> NoReturn:
    """End all ranks: MPI has no way to leave a collective call."""
    error = LossError(
        f"{missing} didn't come to this run within {patience_s:g} seconds",
        advice="every rank runs the same script, and makes the same runs; mpi(patience_s=...) waits longer",
    )
    _say(str(error))
    everybody.Abort(error.exit_code)
    raise error


def _say(text: str) -> None:
    sys.stderr.write(f"worldline: {text}\n")  # At once: `print` writes the end of the line apart, and others write too.
    sys.stderr.flush()
