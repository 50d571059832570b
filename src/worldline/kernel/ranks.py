"""Runs a simulation on the ranks of MPI: every rank runs the whole script, and keeps its share of the entities."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar, cast

from worldline.kernel.crew import Crew
from worldline.kernel.model import Model
from worldline.kernel.pacing import Pacing
from worldline.kernel.placement import Placement, place
from worldline.kernel.progress import Progress
from worldline.kernel.reports import failure_told, part_told, settled
from worldline.kernel.result import Result
from worldline.kernel.worker import Worker
from worldline.model.errors import ConfigurationError, UsageError, WorldlineError

Made = TypeVar("Made")

# A rank that waits asks again and again, which is fastest; where ranks share a core it lets the others run, and after
# a while it sleeps, for so long.
_ASKED_BEFORE_SLEEP = 2_000
_SLEEP_S = 50e-6


class Ranks:
    """Runs a simulation on the ranks of MPI's world."""

    def __init__(self, placement: Placement | None) -> None:
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            raise UsageError(f"MPI can't be used: {error}", advice="pip install 'worldline[mpi]'") from error
        self._mpi: Any = MPI
        self._placement = placement

    @property
    def is_main(self) -> bool:
        return bool(self._mpi.COMM_WORLD.Get_rank() == 0)

    def __str__(self) -> str:
        return f"mpi with {self._mpi.COMM_WORLD.Get_size()} ranks"

    def run(self, model: Model, end: int, progress: Progress) -> Result:
        world = self._mpi.COMM_WORLD.Dup()
        try:
            reports = self._run(world, model, end, progress)
        except WorldlineError:  # All ranks have agreed on it.
            world.Free()
            raise
        except BaseException:  # Whatever it is, the other ranks wait for this one, and would for ever.
            traceback.print_exc()
            sys.stderr.flush()
            world.Abort(70)
            raise
        world.Free()
        return settled(model, reports, end)

    def _run(self, world: Any, model: Model, end: int, progress: Progress) -> list[Any]:
        rank, count = world.Get_rank(), world.Get_size()
        workers = _agreed(world, lambda: place(self._placement, model.names, model.topology, count))
        self._check_equal(world, (model.outline(), workers, end))
        channel = _Channel(self._mpi, world)
        worker = _agreed(world, lambda: Worker(model, workers, rank))
        pacing = Pacing(rank, model.topology.lookahead(model.names, workers, count))

        def look(now: int, events: int) -> int:
            progress.look(now, events)
            return progress.events_until_look

        with progress:
            failure = Crew(worker, pacing, channel, rank, count).run(end, look)
        channel.finish()
        return list(world.allgather(failure_told(failure) if failure is not None else part_told(worker)))

    def _check_equal(self, world: Any, outline: object) -> None:
        """Refuse to run a model that isn't the same on all ranks: then something in the script depends on the rank."""
        outlines = world.allgather(outline)
        differing = [rank for rank, other in enumerate(outlines) if other != outlines[0]]
        if differing:
            raise ConfigurationError(
                f"rank {differing[0]} has built another simulation than rank 0",
                advice="every rank runs the same script; it must build the same, whatever its rank",
            )


def _agreed(world: Any, make: Callable[[], Made]) -> Made:
    """Make something on every rank; if one of them can't, all say so, and none waits for it."""
    made: Made | None = None
    error = None
    try:
        made = make()
    except WorldlineError as reason:
        error = reason
    for failed in world.allgather(error):
        if failed is not None:
            raise failed
    return cast(Made, made)


class _Channel:
    """Frames between ranks."""

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
            _rest(asked)
        return heard

    def finish(self) -> None:
        """Take in what still comes until everybody has finished: MPI wants every message to be received."""
        while not all(sending.Test() for sending, _ in self._under_way):
            self.poll()
        everybody = self._world.Ibarrier()
        asked = 0
        while not everybody.Test():
            self.poll()
            asked += 1
            _rest(asked)
        self.poll()


def _rest(asked: int) -> None:
    if asked > _ASKED_BEFORE_SLEEP:
        time.sleep(_SLEEP_S)
    else:
        os.sched_yield()
