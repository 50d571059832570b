"""The host: a server without sockets. Bytes of connections in, bytes for connections out.

It admits participants, hands what they say to the arbiter and the arbiter's answers back, beats the heart, and ends
everything cleanly when somebody vanishes or misbehaves. The clock and entropy are passed in; whoever has sockets
(`Server`) feeds it, so all of it can be tried without one.

Rules
-----
H1. A stranger learns nothing: version and token are judged before any word about federation, roster or run.
H2. Whatever a connection sends, the host stays sound: the connection is told why, and closed. If it spoke for a
    participant, that one is lost, and by the policy `abort` the run is broken off with its name.
H3. Memory is bounded. What a participant has sent and somebody may still need is counted (`Member.outstanding`). Above
    its share it isn't read any more, unless nobody is further behind than it: the one that is furthest behind is
    always read, and it never waits for one that isn't (its bound lies beyond what it needs, see A3 of the arbiter), so
    this can't lock up. If it floods the others without going on itself, it is lost. What a connection doesn't take
    off our hands is counted too, and above a limit it is lost. Not limited: what a participant has asked for at once,
    which is kept until it is complete.
H4. A participant that waits, for an answer or to be read, hears a heartbeat; one that computes has no need to.
H5. Silence is no loss. A process that dies closes its connection, and that a machine is gone is for whoever has the
    sockets to find out. One that computes without letting its pulse run, or is stopped, is alive: it is named as the
    one that holds the others, and goes on whenever it does. Only a host that was given a limit gives up who says
    nothing for so long, and even then nobody who is known to run. Time in which the host itself didn't listen, since
    it was busy or stopped, is nobody's silence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec import msgpack
from msgspec.structs import replace

from worldline.lock import (
    OPERATOR,
    Abort,
    Action,
    Arbiter,
    Barrier,
    End,
    Grant,
    Invite,
    Join,
    Lost,
    Over,
    Phase,
    State,
)
from worldline.lock.member import Member
from worldline.lock.states import ASKING
from worldline.lock.witness import Witness
from worldline.model import InternalError, LossError, ModelError, PeerError, Plan, WorldlineError, format_time
from worldline.model.errors import shortened, shown
from worldline.wire.codec import checked, decode_events, encode_answer
from worldline.wire.frames import FRAME_MAX, HEARTBEAT, Frames, frame
from worldline.wire.handshake import (
    BAD_FEDERATION,
    BAD_TOKEN,
    BAD_VERSION,
    CROWDED,
    HELLO_MAX,
    NONCE_SIZE,
    OVER,
    PROTOCOL,
    PROTOCOL_ERROR,
    TAKEN,
    UNEXPECTED,
    VERSION,
    Challenge,
    Fail,
    Hello,
    Refused,
    Welcome,
    client_proof,
    is_genuine,
    server_proof,
)

MEMORY_MAX = 2**28
UNREAD_MAX = 2**26
STRANGERS_MAX = 256
HANDSHAKE_S = 10.0
UNREACHABLE_S = 10.0

_SLOW = 2**16  # Bytes; what the system keeps for a connection comes on top.
_encode = msgpack.Encoder().encode
_decode_hello = msgpack.Decoder(Hello).decode


class Session:
    """One connection, and the participant that it speaks for once that is known."""

    __slots__ = (
        "challenge",
        "closing",
        "frames",
        "heard",
        "joining",
        "member",
        "name",
        "opened",
        "out",
        "owner",
        "paused",
        "sent",
        "stopped",
    )

    def __init__(self, challenge: Challenge, now: float) -> None:
        self.challenge = challenge
        self.frames = Frames(HELLO_MAX)
        self.out = bytearray()  # What is still to be sent.
        self.name = ""
        self.member: Member | None = None  # Once it has joined.
        self.joining: Join | None = None  # A guest's, kept until somebody invites it.
        self.opened = now
        self.heard = now  # When something last came in.
        self.sent = now  # When something last went out.
        self.stopped: bool | None = None  # Whether its process is, if it says nothing; None: that isn't known.
        self.closing = False  # It is to be closed when all is sent.
        self.paused = False  # It isn't to be read at present.
        self.owner: object = None  # Whoever has its socket.


@dataclass(frozen=True)
class Limits:
    """How much a host puts up with. Memory in bytes, times in seconds of the wall clock.

    `unreachable_s` is how long a participant's machine may give no sign of life. `silence_s` is how long a participant
    itself may say nothing, not even a heartbeat; without it, that is no fault: it may be computing, or stopped.
    `memory_max` is for what all participants together have sent and somebody may still need: who has more than its
    share isn't read for a while. `flood_max` is how much of that one may have that goes on sending and never goes on.
    """

    silence_s: float | None = None
    unreachable_s: float = UNREACHABLE_S
    handshake_s: float = HANDSHAKE_S
    memory_max: int = MEMORY_MAX
    flood_max: int = MEMORY_MAX
    unread_max: int = UNREAD_MAX
    strangers_max: int = STRANGERS_MAX

    @property
    def heartbeat_s(self) -> float:
        """How often everybody should say something, if only a heartbeat."""
        return (self.unreachable_s if self.silence_s is None else self.silence_s) / 4


class Host:
    """One run, and the connections of its participants."""

    def __init__(
        self,
        plan: Plan,
        *,
        federation: str = "",
        token: bytes = b"",
        witness: Witness | None = None,
        limits: Limits | None = None,
        entropy: Callable[[int], bytes],
    ) -> None:
        self.arbiter = Arbiter(plan, witness)
        self.limits = limits or Limits()
        self.federation = federation
        self.digest: bytes | None = None  # Of the run, when it has ended well.
        self.failure: WorldlineError | None = None  # Why it hasn't.
        self.sessions: dict[str, Session] = {}  # By name, of those who have been admitted.
        self.dirty: list[Session] = []  # Those to send to, to close or to pause; for whoever has the sockets.
        self._strangers: list[Session] = []
        self._token = token
        self._entropy = entropy
        self._share = self.limits.memory_max // max(1, len(plan.roster) + len(plan.guests))
        self._paused: list[Session] = []
        self._ticked = 0.0

    @property
    def over(self) -> bool:
        return self.arbiter.phase is Phase.OVER

    # --- Connections ---

    def open(self, now: float) -> Session:
        """Take in a new connection."""
        session = Session(Challenge(PROTOCOL, VERSION, self._entropy(NONCE_SIZE)), now)
        if len(self._strangers) >= self.limits.strangers_max:  # Who has said nothing for longest makes room.
            self._refuse(self._strangers[0], CROWDED, "too many connections are waiting to be admitted")
        self._strangers.append(session)
        self._put(session, frame(_encode(session.challenge)))
        return session

    def receive(self, session: Session, data: bytes, now: float) -> None:
        """Take what has come in over a connection."""
        session.heard = now
        if session.closing:
            return
        try:
            for body in session.frames.feed(data):
                if session.closing:
                    return
                if not body:
                    continue
                if session.name:
                    self._hear(session, body)
                else:
                    self._greet(session, body)
        except WorldlineError as error:
            self._fault(session, error)
        except Exception as error:  # A bug of ours: the run can't be trusted any more, but it ends in good order.
            bug = InternalError(f"a bug in Worldline: {type(error).__name__}: {error}")
            bug.__cause__ = error
            self.end(bug)
            self._refuse(session, PROTOCOL_ERROR, shortened(str(bug)))

    def closed(self, session: Session, cause: str) -> None:
        """A connection has ended, for whatever reason."""
        session.closing = True
        session.out.clear()
        if session in self._strangers:
            self._strangers.remove(session)
        if session.name and self.sessions.get(session.name) is session:
            del self.sessions[session.name]
            if session.frames.is_cut_short:
                cause += ", in the middle of a frame"
            self._lose(session, cause)

    def tick(self, now: float) -> None:
        """Beat the heart, and find those whose heart has stopped. To be called about every second."""
        limits = self.limits
        self._excuse(now - self._ticked - limits.heartbeat_s, now)
        self._ticked = now
        for stranger in list(self._strangers):
            if now - stranger.opened > limits.handshake_s:
                self._refuse(stranger, PROTOCOL_ERROR, "it didn't say who it is in time")
        for session in list(self.sessions.values()):
            if self.over:
                return
            if session.paused:
                session.heard = now  # It isn't listened to.
            silence = now - session.heard
            if limits.silence_s is not None and silence > limits.silence_s and session.stopped is not False:
                stopped = ": its process is stopped" if session.stopped else ""
                self._drop(session, f"nothing was heard of it for {silence:.0f} seconds{stopped}")
            elif not session.out and now - session.sent > limits.heartbeat_s and self._listens(session):
                self._put(session, HEARTBEAT)
        self._resume()

    def _excuse(self, missed: float, now: float) -> None:
        """Don't count the time in which this end was busy or stopped, and heard nobody (H5)."""
        if missed > 0:
            for session in (*self.sessions.values(), *self._strangers):
                session.heard = min(now, session.heard + missed)
                session.opened = min(now, session.opened + missed)

    def _listens(self, session: Session) -> bool:
        return session.paused or session.member is None or session.member.state in ASKING

    # --- Admitting ---

    def _greet(self, session: Session, body: bytes) -> None:
        hello: Hello = checked(_decode_hello, body)
        if hello.version != VERSION:
            self._refuse(session, BAD_VERSION, f"this server speaks version {VERSION}, not {hello.version}")
            return
        expected = client_proof(self._token, session.challenge, hello.federation, hello.name, hello.nonce)
        if not is_genuine(hello.proof, expected):
            self._refuse(
                session, BAD_TOKEN, "the token is wrong, or missing" if self._token else "this server uses no token"
            )
            return
        if hello.federation not in ("", self.federation):
            self._refuse(
                session, BAD_FEDERATION, f"this is federation {self.federation!r}, not {shown(hello.federation)}"
            )
            return
        refusal = self._unwelcome(hello.name)
        if refusal is not None:
            self._refuse(session, *refusal)
            return
        self._strangers.remove(session)
        self.sessions[hello.name] = session
        session.name = hello.name
        session.frames.longest = FRAME_MAX
        proof = server_proof(self._token, session.challenge, hello)
        heartbeat = int(self.limits.heartbeat_s * 1e9)
        self._put(session, frame(_encode(Welcome(proof, heartbeat, FRAME_MAX))))

    def _unwelcome(self, name: str) -> tuple[str, str] | None:
        if self.over:
            return OVER, "the run is over"
        if name in self.sessions:
            return TAKEN, f"a participant {name!r} is connected already"
        member = self.arbiter.members.get(name)
        if member is None and name not in self.arbiter.plan.guests:
            expected = ", ".join(self.arbiter.missing()) or "nobody at present"
            return UNEXPECTED, f"nobody expects {shown(name)}; expected: {expected}"
        if member is not None and member.state is not State.EXPECTED:
            return TAKEN, f"participant {name!r} has been here already"
        return None

    # --- Hearing and answering ---

    def _hear(self, session: Session, body: bytes) -> None:
        if self.over:
            return  # It has been told, and hadn't read it yet.
        events = decode_events(body)
        if events and session.member is None:
            self._joined(session, events.pop(0))
        if not events:
            return
        if isinstance(events[-1], Fail):
            cause = shortened(events[-1].cause)
            self._drop(session, cause, ModelError(cause, participant=session.name, at=self._time_of(session)))
            return
        try:
            actions = self.arbiter.handle(session.name, *events)  # type: ignore[arg-type] # a Fail elsewhere isn't legal
        except WorldlineError:
            self._carry_out(self.arbiter.handle(session.name))  # What follows from those before the bad one.
            raise
        if actions:
            self._carry_out(actions)
        member = session.member
        if member is not None and member.controls:
            for event in events:
                if isinstance(event, Invite):
                    self._welcome(event.newcomer)
        if member is not None and member.outstanding > self._share:
            self._pause(session, member)
        if self._paused:
            self._resume()

    def _joined(self, session: Session, event: object) -> None:
        """The first word of everybody. A guest's waits until it has been invited."""
        if not isinstance(event, Join):
            raise PeerError(f"{type(event).__name__} isn't possible before joining", participant=session.name)
        if session.joining is not None:
            raise PeerError("it has joined already, and waits to be invited", participant=session.name)
        member = self.arbiter.members.get(session.name)
        if member is None:
            session.joining = event
            return
        actions = self.arbiter.handle(session.name, event)
        session.member = member
        self._carry_out(actions)

    def _welcome(self, name: str) -> None:
        """Let in a guest that was here before it was invited."""
        session = self.sessions.get(name)
        if session is not None and session.joining is not None:
            event, session.joining = session.joining, None
            try:
                self._joined(session, event)
            except WorldlineError as error:  # The guest's mistake, not its host's.
                self._fault(session, error)

    def _carry_out(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, Over):
                self.digest = action.digest
                self._dismiss_uninvited()
            elif (session := self.sessions.get(action.to)) is not None:
                self._put(session, encode_answer(action))

    def _dismiss_uninvited(self) -> None:
        for session in self.sessions.values():
            if session.member is None:
                self._put(session, encode_answer(Grant(session.name, self.arbiter.end, [], final=True)))

    def _put(self, session: Session, data: bytes) -> None:
        if session.closing:
            return
        if len(session.out) > self.limits.unread_max:
            self._drop(session, f"it hasn't read {len(session.out):,} bytes that it was sent")
            return
        session.out += data
        self.dirty.append(session)

    # --- Trouble ---

    def _refuse(self, session: Session, code: str, reason: str) -> None:
        """Tell a connection why it ends, and end it."""
        if session in self._strangers:
            self._strangers.remove(session)
        self._put(session, encode_answer(Refused(code, reason)))
        session.closing = True
        self.dirty.append(session)

    def _fault(self, session: Session, error: WorldlineError) -> None:
        """A connection did what it may not: that one ends, and so does the run if it was a participant's."""
        self._refuse(session, PROTOCOL_ERROR, shortened(str(error)))
        if session.name:
            self.sessions.pop(session.name, None)
            self._lose(session, shortened(f"it was cut off: {error.problem}"), error)

    def _drop(self, session: Session, cause: str, error: WorldlineError | None = None) -> None:
        """Give a participant up."""
        session.out += encode_answer(Abort(session.name, cause, session.name, self._time_of(session)))
        session.closing = True
        self.dirty.append(session)
        self.sessions.pop(session.name, None)
        self._lose(session, cause, error)

    def _lose(self, session: Session, cause: str, error: WorldlineError | None = None) -> None:
        if session in self._paused:
            self._paused.remove(session)
        member = session.member
        if member is None or member.state is State.LEFT or self.over:
            return  # It has nothing more to say, or hasn't joined yet and may come again.
        at = self._time_of(session)
        self.failure = error or LossError(cause, participant=session.name, at=at)
        self._break_off(Lost(session.name, cause), Abort("", cause, session.name, at))

    def _time_of(self, session: Session) -> int | None:
        return None if session.member is None else session.member.now

    # --- Operating ---

    def hold_at(self, until: int) -> None:
        """Move the barrier: nobody is granted beyond it."""
        if not self.over:
            self._carry_out(self.arbiter.handle(OPERATOR, Barrier(until)))

    def end(self, error: WorldlineError) -> None:
        """Break the run off."""
        if not self.over:
            self.failure = error
            cause = shortened(str(error))
            self._break_off(End(cause), Abort("", cause))

    def _break_off(self, event: Lost | End, abort: Abort) -> None:
        """End the run for everybody who is connected, also for those who haven't joined."""
        self._carry_out(self.arbiter.handle(OPERATOR, event))
        for session in list(self.sessions.values()):
            if session.member is None:
                self._put(session, encode_answer(replace(abort, to=session.name)))

    # --- Those who run ahead ---

    def _pause(self, session: Session, member: Member) -> None:
        if session.paused:
            return
        outstanding = self.arbiter.router.outstanding(member)
        if member.base <= self.arbiter.floor():
            if outstanding > self.limits.flood_max:
                self._drop(session, f"it has sent {outstanding:,} bytes, and nobody can take them before it goes on")
        elif outstanding > self._share:
            session.paused = True
            self._paused.append(session)
            self.dirty.append(session)

    def _resume(self) -> None:
        floor = self.arbiter.floor()
        for session in list(self._paused):
            member = session.member
            assert member is not None
            if member.base <= floor or self.arbiter.router.outstanding(member) <= self._share // 2:
                session.paused = False
                self._paused.remove(session)
                self.dirty.append(session)

    def ahead(self) -> list[str]:
        """Return who isn't read at present because it runs far ahead of the others."""
        return [session.name for session in self._paused]

    def slow(self) -> list[tuple[str, int]]:
        """Return who hasn't read what it was sent, and how many bytes."""
        return [(session.name, len(session.out)) for session in self.sessions.values() if session.out]

    def remarks(self) -> list[str]:
        """Say who is in the way: far ahead of the others, slow to read, or stopped."""
        ahead = [f"{name} is far ahead, and isn't read" for name in self.ahead()]
        ahead += [f"{session.name} is stopped" for session in self.sessions.values() if session.stopped]
        return ahead + [f"{name} hasn't read {size:,} bytes" for name, size in self.slow() if size > _SLOW]

    def waiting(self) -> str:
        """Say for whom everybody waits, in one line."""
        if self.arbiter.phase is Phase.GATHERING:
            return f"waiting for {', '.join(self.arbiter.missing())}"
        whys = self.arbiter.why()
        return str(whys[0]) if whys else f"at {format_time(self.arbiter.floor())}"
