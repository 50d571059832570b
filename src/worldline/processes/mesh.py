"""Frames between local processes: a Unix socket for each two workers.

Sockets never block: what they don't take waits here, so two workers that send each other more than a socket holds can't
lock each other up.
"""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol

from worldline.model.errors import LossError
from worldline.model.frames import Cutter, frame
from worldline.processes.executor import cores

if TYPE_CHECKING:
    from multiprocessing import connection  # A run in one process has no use for all that it loads.

# The way from one worker to the others, whatever carries it.
#
# Frames between two workers keep their order. Local processes have a `Mesh`, the ranks of MPI a `RankPeers`.


class Peers(Protocol):
    """Carries frames to other workers, by number, and brings theirs, with the number of who sent them."""

    def post(self, other: int, frame: bytes) -> None:
        """Send a frame; never wait."""

    def poll(self) -> list[tuple[int, bytes]]:
        """Return the frames that have come."""

    def wait(self) -> list[tuple[int, bytes]]:
        """Wait until there are frames, and return them."""


_READ_MAX = 1 << 18
_ASKED_S = 2e-3


class PeerGone(LossError):
    """Another worker has closed its end before the run was over. Facts: `worker`."""


class Mesh:
    """The sockets of one worker to all others, by number."""

    def __init__(self, sockets: dict[int, socket.socket], parent: connection.Connection) -> None:
        self._sockets = sockets
        self._parent = parent
        self._frames = {other: Cutter() for other in sockets}
        self._unsent: dict[int, deque[memoryview]] = {other: deque() for other in sockets}
        self._writing: dict[int, bool] = {}
        self._selector = selectors.DefaultSelector()
        for other, end in sockets.items():
            end.setblocking(False)
            self._selector.register(end, selectors.EVENT_READ, other)
        self._selector.register(parent, selectors.EVENT_READ)
        # A processor that has slept comes back slowly: a worker that has one to itself asks a while before it sleeps.
        self._has_core = len(sockets) < cores()

    def post(self, other: int, body: bytes) -> None:
        """Send a frame, or keep it until the socket takes it."""
        self._unsent[other].append(memoryview(frame(body)))
        self._send(other)

    def poll(self) -> list[tuple[int, bytes]]:
        """Return the frames that have come."""
        return [heard for other in self._sockets for heard in self._read(other)]

    def wait(self) -> list[tuple[int, bytes]]:
        """Wait for frames; keep sending what wasn't taken yet."""
        if self._has_core and not self._writing:
            asked_until = time.monotonic() + _ASKED_S
            while time.monotonic() < asked_until:
                if heard := self.poll():
                    return heard
                os.sched_yield()  # Should the processor be wanted after all.
        while True:
            heard = []
            for key, events in self._selector.select():
                if key.fileobj is self._parent:
                    raise EOFError("the parent is gone")  # It never says anything.
                if events & selectors.EVENT_WRITE:
                    self._send(key.data)
                if events & selectors.EVENT_READ:
                    heard += self._read(key.data)
            if heard:
                return heard

    def linger(self) -> None:
        """Keep sending what others haven't taken yet, until the parent has heard all workers and closes its pipe."""
        for end in self._sockets.values():
            self._selector.unregister(end)
        while True:
            waiting = list(self._writing)
            for other in waiting:
                self._selector.register(self._sockets[other], selectors.EVENT_WRITE, other)
            ready = self._selector.select()
            for other in waiting:
                self._selector.unregister(self._sockets[other])
            for key, _ in ready:
                if key.fileobj is self._parent:
                    return
                self._flush(key.data)

    def close(self) -> None:
        for end in self._sockets.values():
            end.close()
        self._selector.close()

    def _send(self, other: int) -> None:
        before = other in self._writing
        self._flush(other)
        if before != (other in self._writing):
            events = selectors.EVENT_READ | (0 if before else selectors.EVENT_WRITE)
            self._selector.modify(self._sockets[other], events, other)

    def _flush(self, other: int) -> None:
        unsent = self._unsent[other]
        while unsent:
            try:
                sent = self._sockets[other].send(unsent[0])
            except BlockingIOError:
                break
            except OSError:  # It is gone; reading from it tells.
                unsent.clear()
                break
            unsent[0] = unsent[0][sent:]
            if not unsent[0]:
                unsent.popleft()
        if unsent:
            self._writing[other] = True
        else:
            self._writing.pop(other, None)

    def _read(self, other: int) -> list[tuple[int, bytes]]:
        try:
            received = self._sockets[other].recv(_READ_MAX)
        except BlockingIOError:
            return []
        except ConnectionError:
            received = b""
        if not received:
            raise PeerGone(f"worker {other} is gone", worker=other)
        return [(other, body) for body in self._frames[other].feed(received)]
