"""A crew: the programs of several participants in one process, each a strand, over one trunk.

Whoever has an answer goes on until it waits for the next one. When nobody can go on, the trunk is listened to. Who goes
on first shows in nothing: that is what the lock is for.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from worldline.federation.call import Call
from worldline.federation.circuits import Circuit, WorkerTrunk
from worldline.federation.client import dial_server
from worldline.federation.strand import Strand, strand_kind
from worldline.federation.wired import WiredParticipant
from worldline.model import Stream

Live = Callable[[Circuit], None]
"""What a strand does with a circuit: it never raises."""


class Crew:
    """The participants of a process. With `shake`, who goes on first and when things are sent is drawn."""

    def __init__(self, calls: Sequence[Call], shake: Stream | None = None) -> None:
        self._ready: deque[Circuit] = deque()
        self._shake = shake
        self._strands: dict[Circuit, Strand] = {}
        self._participants: dict[Circuit, WiredParticipant] = {}
        dialed = dial_server(calls[0])
        try:
            self._trunk = WorkerTrunk(dialed, self._ready.append, shake)
            self._circuits = self._trunk.open(calls)
        except BaseException:
            dialed.close()
            raise

    def running(self) -> str | None:
        """Return whose program runs."""
        running = self._trunk.running
        return None if running is None else running.name

    def now(self) -> int | None:
        """Return the time of the participant whose program runs."""
        participant = self._participants.get(self._trunk.running)  # type: ignore[arg-type]
        return None if participant is None else participant.now

    def participant(self, circuit: Circuit) -> WiredParticipant:
        """Return the participant of a circuit, in the strand of its program; raise if it wasn't admitted."""
        self._participants[circuit] = participant = WiredParticipant(circuit.ledger(), circuit)
        circuit.catch_up = participant.catch_up_if_idle
        return participant

    def run(self, live: Live) -> None:
        """Let everybody live, to the end."""
        kind = strand_kind()
        for circuit in self._circuits:
            strand = kind(circuit.name, lambda circuit=circuit: live(circuit))  # type: ignore[misc]
            circuit.pause = strand.pause
            self._strands[circuit] = strand
            self._ready.append(circuit)
        trunk, ready = self._trunk, self._ready
        while self._strands:
            while ready:
                self._go_on(ready.popleft() if self._shake is None else self._drawn())
                now = time.monotonic()
                if now > trunk.due:
                    trunk.keep_up(now)
            if self._strands:
                trunk.listen()
        trunk.close()

    def _go_on(self, circuit: Circuit) -> None:
        strand = self._strands[circuit]
        self._trunk.running = circuit
        self._trunk.turns += 1
        strand.resume()
        self._trunk.running = None
        if strand.finished:
            del self._strands[circuit]
            if strand.failure is not None:
                raise strand.failure

    def _drawn(self) -> Circuit:
        assert self._shake is not None
        self._ready.rotate(self._shake.randrange(len(self._ready)))
        return self._ready.popleft()
