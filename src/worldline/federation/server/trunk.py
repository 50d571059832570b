"""The host's end of a trunk: one connection, and the sessions of all the participants that it carries.

Each circuit is an ordinary session of the host: it is admitted, paused, blamed and recorded like any other. The trunk
cuts what comes in, and collects what goes out, so that a turn takes one read and one write, however many participants
it was for. The connection has a session of its own, the *carrier*, which no participant ever gets.

Rules
-----
T1. A trunk on which no participant has been admitted is a stranger, and can do what a stranger can: send one short
    hello, in time. So it has one circuit at a time until then, which counts as one stranger with it. Later there are
    as many as participants that there is a place for.
T2. The numbers of circuits grow. So a number that isn't open, and isn't higher than the last one, was closed: what
    still comes for it is forgotten, like what comes over a connection that is being closed.
T3. One circuit doesn't hold up another. If one isn't to be read at present, the trunk is read all the same, and what
    comes for that circuit is kept, in its order. If it is `busy` (H5 of the host), that is what came with one read: the
    trunk isn't read again before it is heard. If it is `paused` (H3), the other end is told to hold it; above
    `unread_max` and a largest payload for the whole trunk, the one that has gone on to say most is lost.
T4. No more is put into the carrier's output than keeps the system busy. The rest stays with its session, where it is
    counted (H3), and every circuit gets a piece of it sent before any gets a second one sent.
T5. If the connection ends, all of its participants are lost. The run names one of them: the one whose program ran
    then, if the host knows it; otherwise one that was computing. Its code may be what has ended the process.
"""

from __future__ import annotations

from collections import deque

from worldline.federation.server.host import Host
from worldline.federation.server.session import OtherEnd, Session
from worldline.lock import State
from worldline.model.errors import PeerError
from worldline.wire.trunk import (
    FIRST_LONGEST,
    LONGEST,
    NUMBER_SIZE,
    PIECE_MAX,
    HoldCircuit,
    ResumeCircuit,
    RunningCircuit,
    circuit_of,
    decode_running,
    is_piece,
    piece,
    word,
)

_ROOM = 4 * PIECE_MAX


class TrunkCircuit:
    """One participant's part of a trunk; the owner of its session."""

    __slots__ = ("is_held", "kept", "number", "session", "trunk")

    session: Session  # Set by the trunk, which opens it.

    def __init__(self, trunk: Trunk, number: int) -> None:
        self.trunk = trunk
        self.number = number
        self.kept: deque[bytes] = deque()  # What has come in and can't be heard yet; an empty piece ends it.
        self.is_held = False  # The other end has been told to hold it.

    def write(self) -> None:
        self.trunk.note(self)

    def carry(self) -> None:
        """A circuit isn't a trunk."""

    def other_end(self) -> OtherEnd:
        return self.trunk.other_end(self)


class Trunk:
    """A connection, and all that it carries."""

    def __init__(self, host: Host, carrier: Session) -> None:
        self._host = host
        self._carrier = carrier
        self._circuits: dict[int, TrunkCircuit] = {}
        self._last = -1  # The highest number of a circuit so far.
        self._is_trusted = False  # A participant has been admitted (T1).
        self._waiting: dict[TrunkCircuit, None] = {}  # Those of whom something is kept.
        self._noted: dict[TrunkCircuit, None] = {}  # Those for which something is to be sent.
        self._is_noted = False  # The host has been told that.
        self._running: RunningCircuit | None = None  # What was last said of a program that runs for long.
        carrier.frames.longest = FIRST_LONGEST

    # --- For the host ---

    def turn(self) -> bool:
        """Hear what has come in; return whether some of it could be heard soon, and is to be before more is read."""
        for circuit in list(self._waiting):
            self._go_on(circuit)
        frames, bodies = self._carrier.frames, self._carrier.bodies
        while frames.cut(bodies):
            body = bodies.pop()
            if not body:
                continue
            if is_piece(body):
                self._running = None
                self._take(body)
            else:
                self._running = decode_running(body)
        return self._has_more()

    def remark(self) -> str | None:
        """Say whose program keeps all others in its process waiting, if there is one."""
        circuit = None if self._running is None else self._circuits.get(self._running.circuit)
        if self._running is None or circuit is None or len(self._circuits) == 1:
            return None
        running = f"{circuit.session.name} has been running for {self._running.seconds} s"
        return f"{running}, and keeps {len(self._circuits) - 1} more in its process waiting"

    def other_end(self, circuit: TrunkCircuit) -> OtherEnd:
        """Say what is known of the process, and of who of its participants runs, for one of them."""
        carrier = self._carrier
        process = carrier.owner.other_end().process
        running = None if self._running is None else self._circuits.get(self._running.circuit)
        if self._running is None or running is None:
            runner = self._host.owner.runner(circuit.session.name)  # For less than a second, or it isn't told yet.
            if runner is None or runner == circuit.session.name:
                return OtherEnd(process)
            return OtherEnd(process, None, f"{runner} is running in the same process", runner)
        if running is circuit:
            return OtherEnd(process, carrier.heard - self._running.seconds)
        name = running.session.name
        told = f"{name}, in the same process, has been running for {self._running.seconds} s"
        return OtherEnd(process, None, told, name)

    def keep_time(self) -> None:
        """Tell the sessions what is known of the connection that they share."""
        carrier = self._carrier
        for circuit in self._circuits.values():
            session = circuit.session
            session.heard = max(session.heard, carrier.heard)
            session.sent = max(session.sent, carrier.sent)
            session.stopped = carrier.stopped

    def give_up(self) -> list[Session]:
        """Nothing more comes in: hear what was kept, and return whose sessions end, the one to be named first (T5)."""
        for circuit in list(self._waiting):
            while circuit.kept:
                self._hear(circuit, circuit.kept.popleft())
        runs = self._host.owner.runner
        sessions = [circuit.session for circuit in self._circuits.values()]
        return sorted(sessions, key=lambda session: (runs(session.name) != session.name, _is_idle(session)))

    # --- For the connection and the circuits ---

    def note(self, circuit: TrunkCircuit) -> None:
        """Something is to be done for a circuit: to send, to hold, to resume or to end it."""
        self._noted[circuit] = None
        if not self._is_noted:
            self._is_noted = True
            self._host.dirty.append(self._carrier)
        if circuit.kept and not self._carrier.busy and self._has_more():
            self._carrier.busy = True
            self._host.busy.append(self._carrier)

    def fill(self) -> None:
        """Put out what is to be sent, as much as there is room for (T4)."""
        self._is_noted = False
        out, noted = self._carrier.out, self._noted
        while noted and len(out) < _ROOM:
            circuit = next(iter(noted))
            del noted[circuit]
            self._put_out(circuit, out)

    def _put_out(self, circuit: TrunkCircuit, out: bytearray) -> None:
        session, number = circuit.session, circuit.number
        if session.paused != circuit.is_held and not session.closing:
            circuit.is_held = session.paused
            out += word(HoldCircuit(number) if session.paused else ResumeCircuit(number))
        said = session.out
        if len(said) > PIECE_MAX:
            out += piece(number, said[:PIECE_MAX])
            del said[:PIECE_MAX]
            self._noted[circuit] = None
            return
        if said:
            out += piece(number, said)
            said.clear()
        if session.closing and self._circuits.pop(number, None) is not None:
            self._forget(circuit)
            out += piece(number, b"")

    # --- What comes in ---

    def _take(self, body: bytes) -> None:
        number = circuit_of(body)
        circuit = self._circuits.get(number)
        if circuit is None:
            if number <= self._last:
                return  # T2
            circuit = self._open(number)
        said = body[NUMBER_SIZE:]
        session = circuit.session
        if circuit.kept or session.busy or session.paused:
            self._keep(circuit, said)
        else:
            self._hear(circuit, said)

    def _open(self, number: int) -> TrunkCircuit:
        if self._circuits and not self._is_trusted:
            raise PeerError("there can't be a second circuit before a participant has been admitted on the first")
        plan = self._host.arbiter.plan
        places = len(plan.roster) + len(plan.guests) + plan.vacancies
        if (
            len(self._circuits) >= places
            and sum(not each.session.closing for each in self._circuits.values()) >= places
        ):
            raise PeerError(f"{len(self._circuits) + 1:,} circuits are more than there are participants")
        self._last = number
        self._circuits[number] = circuit = TrunkCircuit(self, number)
        circuit.session = self._host.open_circuit(self._carrier, circuit)
        return circuit

    def _hear(self, circuit: TrunkCircuit, said: bytes) -> None:
        session = circuit.session
        if not said:
            self._circuits.pop(circuit.number, None)
            self._forget(circuit)
            self._host.closed(session, "its connection was closed, and it hadn't left")
            return
        self._host.receive(session, said, self._carrier.heard)
        if not self._is_trusted and session.name:
            self._is_trusted = True
            self._carrier.frames.longest = LONGEST
            self._host.trust(self._carrier)

    def _keep(self, circuit: TrunkCircuit, said: bytes) -> None:
        circuit.kept.append(said)
        self._waiting[circuit] = None
        if not circuit.session.paused:
            return
        kept = {each: sum(map(len, each.kept)) for each in self._waiting}
        limits = self._host.limits
        if sum(kept.values()) > limits.unread_max + limits.payload_max:
            most = max(kept, key=kept.__getitem__)
            cause = f"it has sent {kept[most]:,} bytes more while it was held back"
            self._forget(most)
            self._host.give_up(most.session.name, cause)

    def _go_on(self, circuit: TrunkCircuit) -> None:
        """Hear what was kept, as far as that is possible now."""
        session = circuit.session
        while circuit.kept and not session.busy and not session.paused:
            self._hear(circuit, circuit.kept.popleft())
        if not circuit.kept:
            self._waiting.pop(circuit, None)

    def _has_more(self) -> bool:
        """Whether something is kept that isn't held back for long."""
        return any(not circuit.session.paused for circuit in self._waiting)

    def _forget(self, circuit: TrunkCircuit) -> None:
        circuit.kept.clear()
        self._waiting.pop(circuit, None)


def _is_idle(session: Session) -> bool:
    return session.member is None or session.member.state is not State.COMPUTING
