"""A crew: the programs of several participants in one process, each a strand, over one trunk.

Whoever has an answer goes on until it waits for the next one. When nobody can go on, the trunk is listened to. Who goes
on first shows in nothing: that is what the lock is for.

Where strands are greenlets, a signal's handler that raises while everybody waits raises here, in none of the programs.
Then the one that went on last gets it, if it hasn't come to its end, out of the wait in which it is; or another one.
So whatever is done here may be interrupted: at worst somebody goes on for nothing, and waits again. Where they are
threads, programs aren't in the thread that handlers run in, and what those raise ends the process.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from worldline.federation.inprocess.strand import Strand, ThreadStrand, strand_kind
from worldline.federation.participant.call import Call
from worldline.federation.participant.circuits import Circuit, WorkerTrunk
from worldline.federation.participant.client import Client, dial_server
from worldline.model import Stream

Live = Callable[[Circuit], None]
"""What a strand does with a circuit: it never raises."""


class Crew:
    """The participants of a process. With `shake`, who goes on first and when things are sent is drawn.

    `note_running` is told the place in `calls` of the one whose program goes on, or None when none does.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        shake: Stream | None = None,
        note_running: Callable[[int | None], None] = lambda _: None,
    ) -> None:
        self._note_running = note_running
        self._ready: deque[Circuit] = deque()
        self._shake = shake
        self._strands: dict[Circuit, Strand] = {}
        self._participants: dict[Circuit, Client] = {}
        self._last: Circuit | None = None  # Who went on last.
        self._raised: list[BaseException] = []  # What handlers have raised here, and nobody has got yet.
        self._failures: list[BaseException] = []
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

    def participant(self, circuit: Circuit) -> Client:
        """Return the participant of a circuit, in the strand of its program; raise if it wasn't admitted."""
        self._participants[circuit] = participant = Client(circuit.ledger(), circuit)
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
        while self._strands and not self._failures:
            try:
                self._live()
            except BaseException as error:
                if kind is ThreadStrand:
                    raise
                self._raised.append(error)
        for failure in self._failures:
            raise failure
        self._trunk.close()

    def _live(self) -> None:
        """Let everybody go on who can, and listen, until all have come to an end."""
        trunk, ready = self._trunk, self._ready
        self._see_off()
        while self._raised and self._strands:
            self._pass_on(self._raised[0])
        while self._strands and not self._failures:
            while ready:
                self._go_on(ready[0] if self._shake is None else self._drawn())
                now = time.monotonic()
                if now > trunk.due:
                    trunk.keep_up(now)
            if self._strands:
                trunk.listen()

    def _go_on(self, circuit: Circuit) -> None:
        strand = self._strands.get(circuit)
        if strand is not None:  # Otherwise it was woken for nothing.
            self._last = self._trunk.running = circuit
            self._trunk.turns += 1
            self._note_running(circuit.number)
            strand.resume()
            self._see_off()
        del self._ready[0]

    def _see_off(self) -> None:
        """See whether the one that went on last has come to its end."""
        self._trunk.running = None
        self._note_running(None)
        strand = None if self._last is None else self._strands.get(self._last)
        if strand is not None and strand.finished:
            assert self._last is not None
            if strand.failure is not None:
                self._failures.append(strand.failure)
            del self._strands[self._last]

    def _pass_on(self, error: BaseException) -> None:
        """Have what a handler has raised raised in a program that waits."""
        last = self._last
        circuit = last if last is not None and last in self._strands else next(iter(self._strands))
        self._ready.append(circuit)
        circuit.interruption = error
        del self._raised[0]

    def _drawn(self) -> Circuit:
        assert self._shake is not None
        self._ready.rotate(self._shake.randrange(len(self._ready)))
        return self._ready[0]
