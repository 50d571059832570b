"""Frames between the ranks of MPI."""

from __future__ import annotations

import os
import time
from typing import Any

# A rank that waits asks again and again, which is fastest; where ranks share a core it lets the others run, and after
# a while it sleeps, for so long.
_ASKED_BEFORE_SLEEP = 2_000
_SLEEP_S = 50e-6


class RankPeers:
    """The channel of one rank to all others of a communicator that nobody else uses."""

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
        """Take in what still comes until everybody has finished: MPI wants every message to be received."""
        while not all(sending.Test() for sending, _ in self._under_way):
            self.poll()
        everybody = self._world.Ibarrier()
        asked = 0
        while not everybody.Test():
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
