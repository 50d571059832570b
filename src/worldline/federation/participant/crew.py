"""A crew: the programs of several participants in one process, each a strand, over one trunk to their server.

A program that has an answer goes on until it waits for the next one. When none can go on, the trunk is listened to.
Which one goes on first shows in nothing: that is what the lock is for.

Each participant has a circuit, which is all that it sees of that. What is to be sent is put into a queue, and one write
sends all that has come together there:

- when no program can go on, since all wait for answers;
- otherwise two milliseconds after the last write, so that the server has something to do while this process has;
- and by the pulse, a second thread, if a program computes for long. It also keeps the connection alive, and tells what
  that program has said and left lying.

If the server holds a circuit, because its participant is far ahead of others, telling makes that one wait.

A signal's handler may raise anywhere here, in the program that waits or in the thread that reads for all. As in
`connection`, nothing is lost or done twice then: what is written or read stays in a queue until the note of it, and
where two statements belong together, the only call is the last of them. A circuit is woken before it is given
something, and so perhaps for nothing, rather than not at all.

Where strands are greenlets, a handler that raises while all wait raises in none of the programs. Then the one that went
on last gets it, if it hasn't come to its end, out of the wait in which it is; or another one. Where they are threads,
programs aren't in the thread that handlers run in, and what those raise ends the process.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import get_ident

from worldline.federation.inprocess.strand import Strand, ThreadStrand, strand_kind
from worldline.federation.participant.call import Call, refusal
from worldline.federation.participant.client import Client, dial_server
from worldline.federation.participant.connection import TELL_AFTER_S, Conversation, QueuedSocket, failure
from worldline.federation.sockets import CLOSED, Encrypted, broken, remember
from worldline.lock import Action, Ledger, ParticipantEvent
from worldline.lock.ledger import Wire
from worldline.model import LossError, Stream, WorldlineError
from worldline.wire.codec import HEARTBEAT, Frames
from worldline.wire.handshake import Refused
from worldline.wire.trunk import (
    LONGEST,
    NUMBER_SIZE,
    HoldCircuit,
    RunningCircuit,
    circuit_of,
    decode_word,
    is_piece,
    opening,
    piece,
    pieces,
    word,
)

_PULSE_S = 0.01
_SEND_AFTER_S = 0.002
_BUSY_S = 1.0  # A program that runs for longer without waiting is named.
_FAREWELL_S = 2.0
_UNREACHABLE_S = 10.0  # As long as the server has said nothing else.


class Circuit(Wire):
    """One participant's way to its server, over a trunk that it shares with others.

    `pause` is set by the crew that runs its program, and returns when there may be something new. `catch_up` tells what
    was left lying, from any thread, and never waits.
    """

    pause: Callable[[], None]

    def __init__(self, trunk: WorkerTrunk, number: int, call: Call) -> None:
        self.number = number
        self.conversation = Conversation(call.name)
        self.waits = False  # Its program can't go on before something comes in.
        self.is_held = False
        self.closed: str | None = None  # Why nothing more comes in.
        self.verdict: Ledger | WorldlineError | None = None  # Of the server: admitted, or why not.
        self.catch_up: Callable[[], None] = lambda: None
        self.interruption: BaseException | None = None  # What a handler has raised, to be raised in the program's wait.
        self.unread: list[bytes] = []  # What the trunk has brought.
        self._trunk = trunk
        self._call = call
        self._thread = 0
        self._told = 0.0

    @property
    def name(self) -> str:
        return self._call.name

    # --- The handshake ---

    def greet(self, challenge: bytes) -> None:
        """Answer the trunk's challenge for this participant."""
        self._send(self._call.greeting.hello(challenge))

    def settle(self) -> bool:
        """Take the server's verdict, if it is there; return whether it is, or was."""
        if self.verdict is not None:
            return True
        try:
            self._hear()
            body = self.conversation.body()
            if body is None and self.closed is None:
                return False
            if body is None:
                raise self.conversation.lost(self.closed or CLOSED)
            welcome = self._call.greeting.settle(body)
            self.conversation.agree(welcome.frame_max, welcome.payload_max)
            self._trunk.queued.patience_s = 4 * welcome.heartbeat / 1e9
            self.verdict = self._call.ledger(welcome)
        except WorldlineError as error:
            self.verdict = error
        return True

    def ledger(self) -> Ledger:
        """Return the ledger of a participant that was admitted, for the thread that runs its program."""
        if isinstance(self.verdict, WorldlineError):
            raise self.verdict
        assert self.verdict is not None
        self._thread = get_ident()
        return self.verdict

    # --- For the participant ---

    @property
    def end(self) -> WorldlineError | None:
        return self.conversation.end

    @property
    def disowned(self) -> bool:
        return self.conversation.disowned

    def tell(self, events: list[ParticipantEvent]) -> None:
        self._check()
        self._say(events)
        self._told = time.monotonic()
        while self.is_held and get_ident() == self._thread:
            self._wait()
            self._check()

    def ask(self, events: list[ParticipantEvent]) -> Action:
        if events:
            self.conversation.check()
            self._say(events)
        while (answer := self._answer()) is None:
            if self.closed is not None:
                raise self.conversation.lost(self.closed)
            self._wait()
        self._told = time.monotonic()
        return answer

    def is_due(self, urgent: bool) -> bool:
        now = time.monotonic()
        if now > self._trunk.due:
            self._trunk.keep_up(now)
            self._check()
        return urgent or now - self._told > TELL_AFTER_S

    def look(self) -> None:
        self._trunk.keep_up(time.monotonic())
        self._check()

    def fail(self, cause: str, events: list[ParticipantEvent], at: int | None = None) -> None:
        with contextlib.suppress(WorldlineError):
            if events:
                self._say(events)
        self._send(failure(cause, at))

    def close(self, *, patient: bool = False) -> None:
        """Hang up. Whether the server has taken all of it, the trunk sees to, when all have hung up."""
        if self.end is None:
            self.conversation.lost("the connection is closed")
        self._trunk.hang_up(self, patient=patient)

    def _send(self, data: bytes) -> None:
        """Have something sent, soon."""
        self._trunk.queued.unsent.extend(pieces(self.number, data))

    def _say(self, events: list[ParticipantEvent]) -> None:
        said = pieces(self.number, self.conversation.encode(events))
        del events[:]  # With the next line, one step: its call is the last of it.
        self._trunk.queued.unsent.extend(said)

    def _wait(self) -> None:
        self.waits = True
        self.pause()
        raised, self.interruption = self.interruption, None
        if raised is not None:
            raise raised

    def _answer(self) -> Action | None:
        self._hear()
        return self.conversation.answer()

    def _hear(self) -> None:
        """Take what the trunk has brought, and what was left over when the program was interrupted."""
        self.conversation.move(self.unread)
        while self.unread:
            self.conversation.move(self.unread)

    def _check(self) -> None:
        """Raise if the server has ended it."""
        if get_ident() == self._thread:  # The pulse would get in its way.
            self._hear()
        self.conversation.look()
        if self.closed is not None:
            raise self.conversation.lost(self.closed)


class WorkerTrunk:
    """A connection, and the circuits of all who share it. `wake` is told whose program may go on."""

    def __init__(
        self, connection: socket.socket | Encrypted, wake: Callable[[Circuit], None], shake: Stream | None = None
    ) -> None:
        self.queued = QueuedSocket(connection, shake, _UNREACHABLE_S)
        self.running: Circuit | None = None  # Whose program runs just now,
        self.turns = 0  # and how many times one has gone on.
        self.due = 0.0  # When the server is to be told what there is, and to be listened to.
        self._wake = wake
        self._frames = Frames(LONGEST)
        self._bodies: list[bytes] = []
        self._circuits: dict[int, Circuit] = {}
        self._challenge: bytes | None = None
        self._is_patient = True  # No program has come to a bad end.
        self._is_mute = False  # Nothing can be sent any more; what the server says of that is still to be read.
        self._over: str | None = None  # Why nothing comes in any more.
        self._done = threading.Event()
        self._pulse = threading.Thread(target=self._live, name="worldline pulse", daemon=True)
        remember(self)

    # --- For the crew ---

    def open(self, calls: Sequence[Call]) -> list[Circuit]:
        """Have the participants admitted, each on its own proof; a refused one's circuit has the reason."""
        while self._challenge is None:
            self.listen()
            self._check()
        self.queued.unsent.append(opening())
        circuits = [Circuit(self, number, call) for number, call in enumerate(calls)]
        is_trusted = False
        for circuit in circuits:
            self._circuits[circuit.number] = circuit
            circuit.greet(self._challenge)
            if not is_trusted:  # The server takes a second circuit only when it knows a participant.
                self._settle(circuit)
                is_trusted = not isinstance(circuit.verdict, WorldlineError)
        for circuit in circuits:
            self._settle(circuit)
        self.queued.expect_signs_of_life(self.queued.patience_s)
        self._pulse.start()
        return circuits

    def keep_up(self, now: float) -> None:
        """Send what there is, and take in what is there."""
        self.due = now + _SEND_AFTER_S
        self.flush()
        is_mine: list[bool] = []
        try:
            is_mine.extend(map(self.queued.reading.acquire, (False,)))
            if is_mine[0]:  # Otherwise another thread listens already.
                self._receive(socket.MSG_DONTWAIT)
        finally:
            if is_mine and is_mine[0]:
                self.queued.reading.release()

    def listen(self) -> None:
        """Send what there is, and wait until something comes in."""
        self.flush()
        with self.queued.reading:
            self._receive(0)
        self.due = time.monotonic() + _SEND_AFTER_S

    def close(self) -> None:
        """Hang up. If all went well, only when the server has taken all that it was told, however long that takes."""
        self.queued.deadline = None if self._is_patient else time.monotonic() + _FAREWELL_S
        self._done.set()
        if self._pulse.ident is not None:
            self._pulse.join()  # It may be sending.
        self.flush()
        with contextlib.suppress(OSError):
            self.queued.socket.shutdown(socket.SHUT_WR)
        while self._over is None and not self.queued.is_late():
            self.listen()
        self.queued.close()

    def disown(self) -> None:
        """Let go of it in a forked process."""
        self._is_mute, self._over = True, CLOSED
        self.queued.disown()
        for circuit in self._circuits.values():
            circuit.conversation.disown()

    # --- For circuits ---

    def hang_up(self, circuit: Circuit, *, patient: bool) -> None:
        self._is_patient = self._is_patient and patient
        if self._circuits.pop(circuit.number, None) is not None:
            self.queued.unsent.append(piece(circuit.number, b""))

    def flush(self) -> None:
        """Send what there is."""
        if self.queued.unsent:
            with self.queued.writing:
                self._write_all()

    # --- Writing and reading ---

    # This loop is apart from where the lock is held: see `connection`.

    def _write_all(self) -> None:
        while self.queued.unsent:
            if self._is_mute:
                self.queued.forget()
                return
            try:
                if not self.queued.send():
                    self._is_mute = self.queued.is_late() or self.queued.is_unreachable()
            except OSError:
                self._is_mute = True  # Why, the server may have said before, and the thread that reads finds out.

    def _receive(self, flags: int) -> None:
        """Take in what the server has sent: wait for it, unless the flags say otherwise."""
        if self._take_all():
            return  # It was left over when a program was interrupted.
        try:
            while self._over is None and not self.queued.receive(self._frames, flags):
                if flags or self.queued.is_late():
                    return
                if self.queued.is_unreachable():
                    self._end(f"the server's machine hasn't answered for {self.queued.patience_s:.0f} seconds")
        except EOFError:
            self._end(CLOSED)
        except OSError as error:
            self._end(broken(error))
        self._take_all()

    def _take_all(self) -> bool:
        """Do as the server says; whether it has said anything."""
        took = False
        try:
            while self._over is None and (self._bodies or self._frames.cut(self._bodies)):
                took = True
                self._take(self._bodies[0])
        except WorldlineError as error:
            self._end(error.problem)
        return took

    def _take(self, body: bytes) -> None:
        """Do as the server says with the first body, and forget that."""
        if not body:
            del self._bodies[0]
        elif self._challenge is None:
            self._challenge = body
            del self._bodies[0]
        elif not is_piece(body):
            self._obey(body)
        elif (circuit := self._circuits.get(circuit_of(body))) is None:
            del self._bodies[0]  # It has hung up.
        else:
            is_end = len(body) == NUMBER_SIZE
            self._rouse(circuit)
            if is_end:
                circuit.closed = CLOSED
                del self._bodies[0]
            else:
                said = body[NUMBER_SIZE:]
                del self._bodies[0]  # With the next line, one step: its call is the last of it.
                circuit.unread.append(said)

    def _obey(self, body: bytes) -> None:
        """Do what the server says of the trunk itself."""
        said = decode_word(body)
        if isinstance(said, Refused):
            self._end(refusal(said, "").problem)
        elif (circuit := self._circuits.get(said.circuit)) is not None:
            is_held = isinstance(said, HoldCircuit)
            self._rouse(circuit)
            circuit.is_held = is_held
        del self._bodies[0]

    def _rouse(self, circuit: Circuit) -> None:
        """Let the program of a circuit go on: if it is interrupted after that, it finds nothing, and waits again."""
        if circuit.waits:
            circuit.waits = False  # With the next line, one step: its call is the last of it.
            self._wake(circuit)

    def _end(self, problem: str) -> None:
        for circuit in list(self._circuits.values()):
            self._rouse(circuit)
            circuit.closed = circuit.closed or problem
        self._over = problem  # Last: until then, it is found out again.

    # --- The handshake ---

    def _settle(self, circuit: Circuit) -> None:
        while not circuit.settle():
            self._check()
            self.listen()

    def _check(self) -> None:
        if self._over is not None:
            raise LossError(self._over, advice="a trunk needs the same Worldline on both sides")

    # --- The pulse ---

    def _live(self) -> None:
        """Keep the connection alive, and tell what was left lying while a program computes."""
        turns, since, said = 0, 0.0, 0.0
        while not self._done.wait(_PULSE_S):
            running, now = self.running, time.monotonic()
            if running is None or self.turns != turns:
                turns, since, said = self.turns, now, now
            elif now - said > _BUSY_S:
                said = now
                self.queued.unsent.append(word(RunningCircuit(running.number, int(now - since))))
            if running is not None and not running.is_held:
                with contextlib.suppress(WorldlineError):  # Its own thread meets the same.
                    running.catch_up()
            if not self.queued.unsent and now - self.queued.written > self.queued.patience_s / 4:
                self.queued.unsent.append(HEARTBEAT)
            self.flush()


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
        self._raised: list[BaseException] = []  # What handlers have raised here, and no program has got yet.
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
        """Let all of them live, to the end."""
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
        for failed in self._failures:
            raise failed
        self._trunk.close()

    def _live(self) -> None:
        """Let all go on that can, and listen, until all have come to an end."""
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
