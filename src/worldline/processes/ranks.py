"""The ranks of MPI in one run, as one of them sees them."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from math import inf
from typing import Any, NoReturn, TypeVar, cast

from worldline.model.errors import ConfigurationError, Interrupted, LossError, WorldlineError
from worldline.processes.executor import load_mpi
from worldline.processes.failures import Failure, told
from worldline.processes.forking import end_stray

# Frames between the ranks of MPI.

# A rank that waits asks again and again, which is fastest; where ranks share a core it lets the others run, and after
# a while it sleeps, for so long.
_ASKED_BEFORE_SLEEP = 2_000
_SLEEP_S = 50e-6


class RankPeers:
    """The channel of one rank to all others of a communicator that nothing else uses."""

    def __init__(self, mpi: Any, world: Any) -> None:
        self._mpi = mpi
        self._world = world
        self._status = mpi.Status()
        self._under_way: list[tuple[Any, bytes]] = []  # MPI reads what is sent until it has left.

    def post(self, other: int, frame: bytes) -> None:
        self._under_way = [sending for sending in self._under_way if not sending[0].Test()]
        self._under_way.append((self._world.Issend([frame, self._mpi.BYTE], dest=other), frame))

    def poll(self) -> list[tuple[int, bytes]]:
        heard = []
        while self._world.Iprobe(status=self._status):
            other = self._status.Get_source()
            frame = bytearray(self._status.Get_count(self._mpi.BYTE))
            self._world.Recv([frame, self._mpi.BYTE], source=other)
            heard.append((other, bytes(frame)))
        return heard

    def wait(self) -> list[tuple[int, bytes]]:
        asked = 0
        while not (heard := self.poll()):
            asked += 1
            rest(asked)
        return heard

    def finish(self) -> None:
        """Take in what still comes until all ranks have finished: MPI wants every message to be received."""
        while not all(sending.Test() for sending, _ in self._under_way):
            self.poll()
        all_ranks = self._world.Ibarrier()
        asked = 0
        while not all_ranks.Test():
            self.poll()
            asked += 1
            rest(asked)
        self.poll()

    def close(self) -> None:
        """Say and hear nothing any more: this is a process that was forked, and MPI is its parent's."""
        self._world = None
        self._under_way = []


def rest(asked: int) -> None:
    if asked > _ASKED_BEFORE_SLEEP:
        time.sleep(_SLEEP_S)
    else:
        os.sched_yield()


# Waits until all ranks of MPI have come to a run, and says who hasn't.
#
# A collective call of MPI can't tell who is missing, and never gives up. So ranks that wait answer to a roll call: who
# doesn't answer isn't there. Roll calls are numbered as the runs of a rank are, since a late answer is one to another.

_NOTICE_S = 10.0
_ANSWER_S = 2.0
_TAG = 30_577  # On the world's communicator, which is all programs': an unusual one.

_runs = 0


def assembled(mpi: Any, patience_s: float) -> Any:
    """Return a communicator of all ranks for the next run, once all have come to it."""
    global _runs
    _runs += 1
    all_ranks = mpi.COMM_WORLD
    world, coming = all_ranks.Idup()
    roll = _Roll(mpi, _runs)
    began = time.monotonic()
    notice, end, asked = _NOTICE_S, patience_s, 0
    while not coming.Test():
        waited = time.monotonic() - began
        roll.answer()
        if waited > min(notice, end):
            roll.call()
        if waited > end + _ANSWER_S:
            _give_up(all_ranks, roll.missing(), patience_s)
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


def _give_up(all_ranks: Any, missing: str, patience_s: float) -> NoReturn:
    """End all ranks: MPI has no way to leave a collective call."""
    error = LossError(
        f"{missing} didn't come to this run within {patience_s:g} seconds",
        advice="every rank runs the same script, and makes the same runs; mpi(patience_s=...) waits longer",
    )
    _say(str(error))
    all_ranks.Abort(error.exit_code)
    raise error


def _say(text: str) -> None:
    sys.stderr.write(f"worldline: {text}\n")  # At once: `print` writes the end of the line apart, and others write too.
    sys.stderr.flush()


Made = TypeVar("Made")
Report = TypeVar("Report")


class RankGroup:
    """So many ranks, of which this is one. All of them make the same calls, in the same order."""

    def __init__(self, mpi: Any, world: Any) -> None:
        self._world = world
        self.rank: int = world.Get_rank()
        self.count: int = world.Get_size()
        self.peers = RankPeers(mpi, world)

    def agreed(self, make: Callable[[], Made]) -> Made:
        """Make something on every rank; if one of them can't, all say so, and none waits for it."""
        made: Made | None = None
        error = None
        try:
            made = make()
        except WorldlineError as reason:
            error = reason
        for failed in self._world.allgather(error):
            if failed is not None:
                raise failed
        return cast("Made", made)

    def exchanged(self, said: Made) -> list[Made]:
        """Return what each rank says, on all of them."""
        return list(self._world.allgather(said))

    def brought(self, said: Made, to: Iterable[int]) -> list[Made]:
        """Return what each rank says, on those that it is brought to; nothing on the others, which needn't hold it."""
        found: list[Made] = []
        for rank in to:
            found.extend(self._world.gather(said, root=rank) or ())
        return found

    def check_equal(self, outline: object) -> None:
        """Refuse to run a model that isn't the same on all ranks: then something in the script depends on the rank."""
        outlines = self._world.allgather(outline)
        differing = [rank for rank, other in enumerate(outlines) if other != outlines[0]]
        if differing:
            raise ConfigurationError(
                f"rank {differing[0]} has built another simulation than rank 0",
                advice="every rank runs the same script; it must build the same, whatever its rank",
            )

    def gather(self, report: Report | Failure) -> list[Report | Failure]:
        """Wait until all ranks are done; return what each reports, on all of them."""
        self.peers.finish()
        return list(self._world.allgather(told(report)))


_in_use: list[RankPeers] = []


def _close_inherited() -> None:
    for peers in _in_use:
        peers.close()


os.register_at_fork(after_in_child=_close_inherited)


def gathered(work: Callable[[RankGroup], Report | Failure], patience_s: float) -> list[Report | Failure]:
    """Do the work of this rank, while all others do theirs; return what each reports, on all of them.

    A report is anything that can be pickled; a `Failure`, if it is the model that has failed. A `WorldlineError` that
    `work` raises is one that all ranks raise, as `RankGroup.agreed` and `RankGroup.check_equal` do. Everything else
    ends all ranks, an interruption when it has ended the program. Ranks that have come to a run wait so many seconds
    for those that haven't.
    """
    mpi = load_mpi()
    try:
        return _gathered(mpi, assembled(mpi, patience_s), work)
    except KeyboardInterrupt:
        end_all_at_exit()
        raise


def _gathered(mpi: Any, world: Any, work: Callable[[RankGroup], Report | Failure]) -> list[Report | Failure]:
    me = os.getpid()
    try:
        ranks = RankGroup(mpi, world)
        _in_use.append(ranks.peers)
        report = work(ranks)
        if os.getpid() != me:
            end_stray(None)
        reports = ranks.gather(report)
    except WorldlineError as error:  # All ranks have agreed on it.
        if os.getpid() != me:
            end_stray(error)
        world.Free()
        raise
    except BaseException as error:  # Whatever it is, the other ranks wait for this one, and would for ever.
        if os.getpid() != me:
            end_stray(error)
        if not isinstance(error, KeyboardInterrupt):
            traceback.print_exc()
            sys.stderr.flush()
            world.Abort(70)
        raise
    finally:
        _in_use.clear()
    world.Free()
    return reports


# Ends all ranks of MPI with one that was interrupted: the others would wait for it, and MPI itself at its end, too.
#
# That happens when the program of this rank ends, so that it can close its files and say what has happened. If all were
# interrupted, as by Ctrl-C, rank 0 has something to say and to close, and ends the others; they give it time for that.


_FIRST_RANK_S = 5.0


def end_all_at_exit() -> None:
    """End all ranks when this program ends. Where MPI isn't in use, that is nothing."""
    mpi = getattr(sys.modules.get("mpi4py"), "MPI", None)
    if mpi is not None and mpi.COMM_WORLD.Get_size() > 1:
        atexit.register(_end_all, mpi.COMM_WORLD)


def _end_all(all_ranks: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # It comes from the terminal, and from mpiexec once more.
    rank = all_ranks.Get_rank()
    if rank != 0:
        time.sleep(_FIRST_RANK_S)
        sys.stderr.write(f"worldline: rank {rank} was interrupted, and with it all others\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # What MPI would say of it reads like a failure.
    all_ranks.Abort(Interrupted.exit_code)
