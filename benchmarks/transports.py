"""What carries frames between two local processes fastest: round trips per second of 300 bytes.

The contestants, from the bare call to what the kernel needs, which is to wait for several others at once and never to
block on one that doesn't read:

* Unix socketpair, blocking: `send` and `recv`, nothing else; also with asking again and again instead of sleeping.
* Unix socketpair as in `processes/mesh.py`: that module itself, with its selector, its header and its queues. It asks
  again and again for a while before it sleeps.
* Shared memory and eventfd, blocking: the frame is copied into `multiprocessing.shared_memory`, and an eventfd says
  so. Its system calls are the barriers that shared memory needs on ARM.
* Shared memory and eventfd as the mesh would use them: a ring in each direction that holds several frames, and a
  selector over the eventfds of all others; also with asking for a while first.
* MPI as in `processes/ranks.py`: that module itself. A rank that waits asks again and again, so it is fast as
  long as it has a core for itself, and uses it up.

The two processes are not pinned; they are where the system puts them, as workers are.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import selectors
import socket
import statistics
import struct
import time
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any, Protocol

from contest import race, shown
from parallel import has_mpi, mpiexec
from peers.apart import Facts, measure, settled
from rich.console import Console
from rich.table import Table

FRAME = bytes(300)
TRIPS = 20_000
WARM_UP = 1_000
RING_SIZE = 1 << 16
LENGTH = struct.Struct("<I")

_context = multiprocessing.get_context("fork")


class Channel(Protocol):
    """One end: a frame goes out, and the next one is waited for."""

    def post(self, frame: bytes) -> None: ...

    def wait(self) -> bytes: ...


class BlockingSocket:
    def __init__(self, end: socket.socket) -> None:
        self.post = end.sendall
        self.wait = lambda: end.recv(1 << 16)


class AskingSocket:
    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._send = end.send
        self._receive = end.recv

    def post(self, frame: bytes) -> None:
        self._send(frame)

    def wait(self) -> bytes:
        while True:
            try:
                return self._receive(1 << 16)
            except BlockingIOError:
                pass


class MeshEnd:
    """The kernel's own mesh, with one other."""

    def __init__(self, end: socket.socket, other: int, parent: Any) -> None:
        from worldline.processes.mesh import Mesh

        self._mesh = Mesh({other: end}, parent)
        self._other = other

    def post(self, frame: bytes) -> None:
        self._mesh.post(self._other, frame)

    def wait(self) -> bytes:
        return self._mesh.wait()[0][1]


class BlockingMemory:
    """Room for one frame in each direction, which is enough for round trips."""

    def __init__(self, out: memoryview, into: memoryview, told: int, hears: int) -> None:
        self._out, self._into, self._told, self._hears = out, into, told, hears

    def post(self, frame: bytes) -> None:
        size = len(frame)
        LENGTH.pack_into(self._out, 0, size)
        self._out[4 : 4 + size] = frame
        os.eventfd_write(self._told, 1)

    def wait(self) -> bytes:
        os.eventfd_read(self._hears)
        (size,) = LENGTH.unpack_from(self._into, 0)
        return bytes(self._into[4 : 4 + size])


class RingMemory:
    """A ring of frames in each direction; the eventfd counts those that were written, a selector waits for it."""

    asked_s = 0.0  # How long to ask before sleeping.

    def __init__(self, out: memoryview, into: memoryview, told: int, hears: int) -> None:
        self._out, self._into, self._told, self._hears = out, into, told, hears
        self._written = self._read = 0
        self._heard: list[bytes] = []
        os.set_blocking(hears, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(hears, selectors.EVENT_READ)

    def post(self, frame: bytes) -> None:
        size = len(frame)
        start = self._written
        if start + LENGTH.size + size > RING_SIZE:  # What doesn't fit before the end starts at the beginning.
            LENGTH.pack_into(self._out, start, 0)
            start = 0
        self._out[start + LENGTH.size : start + LENGTH.size + size] = frame
        LENGTH.pack_into(self._out, start, size)
        self._written = start + LENGTH.size + size
        os.eventfd_write(self._told, 1)

    def wait(self) -> bytes:
        if not self._heard:
            asked_until = time.monotonic() + self.asked_s
            while (count := self._count()) == 0:
                if time.monotonic() >= asked_until:
                    self._selector.select()
            self._heard += [self._next() for _ in range(count)]
        return self._heard.pop(0)

    def _count(self) -> int:
        try:
            return os.eventfd_read(self._hears)
        except BlockingIOError:
            return 0

    def _next(self) -> bytes:
        (size,) = LENGTH.unpack_from(self._into, self._read)
        if not size:
            self._read = 0
            (size,) = LENGTH.unpack_from(self._into, 0)
        start = self._read + LENGTH.size
        self._read = start + size
        return bytes(self._into[start : start + size])


class AskingMemory(RingMemory):
    asked_s = 200e-6  # As in the mesh.


def over_sockets(kind: Callable[[socket.socket], Channel], trips: int) -> Facts:
    here, there = socket.socketpair()
    return _between(lambda: kind(here), lambda: kind(there), trips)


def over_mesh(trips: int) -> Facts:
    here, there = socket.socketpair()
    pipes = [_context.Pipe() for _ in range(2)]
    return _between(lambda: MeshEnd(here, 1, pipes[0][0]), lambda: MeshEnd(there, 0, pipes[1][0]), trips)


def over_memory(kind: Callable[..., Channel], trips: int) -> Facts:
    # One word of room beyond the ring, for the mark at its end.
    areas = [shared_memory.SharedMemory(create=True, size=RING_SIZE + LENGTH.size) for _ in range(2)]
    try:
        first, second = (area.buf for area in areas)
        one, two = os.eventfd(0), os.eventfd(0)
        return _between(lambda: kind(first, second, one, two), lambda: kind(second, first, two, one), trips)
    finally:
        for area in areas:
            area.unlink()


def _between(here: Callable[[], Channel], there: Callable[[], Channel], trips: int) -> Facts:
    other = _context.Process(target=_echo, args=(there, trips + WARM_UP), daemon=True)
    other.start()
    facts = _drive(here(), trips)
    other.join(10)
    return facts


def _drive(channel: Channel, trips: int) -> Facts:
    for _ in range(WARM_UP):
        channel.post(FRAME)
        channel.wait()
    start = time.perf_counter()
    used = time.process_time()
    for _ in range(trips):
        channel.post(FRAME)
        if channel.wait() != FRAME:
            raise SystemExit("another frame came back than was sent")
    seconds, used = time.perf_counter() - start, time.process_time() - used
    return {"rate": trips / seconds, "us": seconds / trips * 1e6, "busy": used / seconds}


def _echo(there: Callable[[], Channel], trips: int) -> None:
    channel = there()
    for _ in range(trips):
        channel.post(channel.wait())


def over_mpi(trips: int) -> Facts | None:
    """Called on both ranks; the first one returns what it found."""
    from mpi4py import MPI

    from worldline.processes.ranks import RankPeers

    world = MPI.COMM_WORLD

    class Rank:
        def __init__(self, other: int) -> None:
            self._channel = RankPeers(MPI, world)
            self._other = other

        def post(self, frame: bytes) -> None:
            self._channel.post(self._other, frame)

        def wait(self) -> bytes:
            return self._channel.wait()[0][1]

    if world.Get_rank() == 0:
        return _drive(Rank(1), trips)
    _echo(lambda: Rank(0), trips + WARM_UP)
    return None


TRANSPORTS: dict[str, Callable[[int], Facts | None]] = {
    "Unix socketpair, blocking": lambda trips: over_sockets(BlockingSocket, trips),
    "Unix socketpair, asking": lambda trips: over_sockets(AskingSocket, trips),
    "Unix socketpair, as in mesh.py": over_mesh,
    "shared memory + eventfd, blocking": lambda trips: over_memory(BlockingMemory, trips),
    "shared memory + eventfd, ring and selector": lambda trips: over_memory(RingMemory, trips),
    "shared memory + eventfd, ring, asking first": lambda trips: over_memory(AskingMemory, trips),
    "MPI, as in ranks.py": over_mpi,
}


def compare(console: Console, runs: int, scale: float) -> None:
    trips = max(1_000, int(TRIPS * scale))

    def run(name: str) -> Facts:
        launcher = [str(mpiexec()), "-n", "2"] if name.startswith("MPI") else []
        settled()
        return measure(Path(__file__).resolve(), "--child", name, "--trips", trips, launcher=launcher)

    there = [name for name in TRANSPORTS if has_mpi() or not name.startswith("MPI")]
    found = race(console, "transport", {name: lambda name=name: run(name) for name in there}, runs)  # type: ignore[misc]
    table = Table(title=f"Two local processes, round trips of {len(FRAME)} bytes, medians of {runs}")
    for column in ("", "round trips/s", "µs", "least", "most", "core used by one end"):
        table.add_column(column, justify="right" if column else "left")
    for name, facts in found.items():
        rates = sorted(fact["rate"] for fact in facts)
        middle = statistics.median(rates)
        busy = statistics.median(fact["busy"] for fact in facts)
        table.add_row(name, shown(middle), f"{1e6 / middle:.1f}", shown(rates[0]), shown(rates[-1]), f"{busy:.0%}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--trips", type=int, default=TRIPS)
    parser.add_argument("--child", choices=TRANSPORTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is None:
        compare(Console(highlight=False, width=120), given.runs, given.trips / TRIPS)
        return
    facts = TRANSPORTS[given.child](given.trips)
    if facts is not None:
        print(json.dumps(facts))


if __name__ == "__main__":
    main()
