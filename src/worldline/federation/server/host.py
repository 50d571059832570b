"""The host: a server without sockets. Bytes of connections in, bytes for connections out.

It admits participants, hands what they say to the arbiter and the arbiter's answers back, beats the heart, and ends
everything cleanly when a participant vanishes or misbehaves. The clock and entropy are passed in; the owner of the
sockets (`Server`) feeds it, so all of it can be tried without one.

Rules
-----
H1. A stranger learns nothing: version and token are judged (`Admission`) before any word about federation, roster or
    run. With a token for each, a name that has no token is refused in the same words as a wrong token. An
    operator has a token of its own, whatever participants have.
H2. Whatever a connection sends, the host stays sound: the connection is told why, and closed. If it spoke for a
    participant, that one is lost, and by the policy `abort` the run is broken off with its name.
H3. Memory is bounded, and none is given up for going ahead. What a participant has sent and others may still have
    to be given is counted (R1 of the router). Above its share of `memory_max` there are three cases:

    a. It is ahead of another one: its base is greater than the least. It isn't read until that one has caught up.
    b. None is further behind. It is read, whatever it sends: the others wait for it, so holding it back would hold
       all of them up. What is counted then has been sent, by its own time, and not yet arrived: the network that it
       simulates holds that much, at 30 MB a second over a link of 10 s as well, and the server must keep it. Above
       `under_way_max`, for all senders together, the run ends, and says who has sent what.
    c. As b., but it doesn't go on: its next send stays where it was while it sends more than `flood_max`. None can
       take that before it goes on; it is lost.

    Nothing locks up. One that isn't read has a base above the least one. The holder of the least base is read (b),
    and it doesn't wait for others: every send is at least that base, and every latency is positive, so its bound lies
    beyond what it needs (A3 of the arbiter). So it computes, or waits for what no participant can give: the barrier,
    or a newcomer. When it goes on, the least base grows, and sooner or later reaches that of one that isn't read. It is
    bounded: of one in case a. its share is kept and what it has sent of one body, of one in case b. what is under way,
    and a quarter. A body that comes in several frames counts as under way from its second frame on.

    What a connection doesn't take off our hands is counted too, and above a limit it is lost. Topics are counted, since
    something is kept for each.
H4. A participant that waits, for an answer or to be read, hears a heartbeat; one that computes has no need to.
H5. None is held up by one that says much. Work is done in turns: in one turn a connection is heard for a few frames
    or events. What is left over waits, and so does what it sends after that: it isn't read meanwhile. All who have
    something to say get their turn before any gets a second one.
H6. Until its start none is lost: who goes before that is expected again, and waited for, for `join_s` at the most.
H7. Silence is no loss. A process that dies closes its connection, and that a machine is gone is for the owner of
    the sockets to find out. One that computes without letting its pulse run, or is stopped, is alive: it is named as
    the one that holds the others, and goes on whenever it does. Only a host that was given a limit gives up who says
    nothing for so long, and even then none that is known to run. Time in which the host itself didn't listen, since
    it was busy or stopped, or its resident computed, isn't silence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import msgpack
from msgspec.structs import replace

from worldline.federation.participant.declaration import Plain
from worldline.federation.server.admission import Admission, Refusal
from worldline.federation.server.limits import Limits
from worldline.federation.server.session import Session, SessionOwner
from worldline.history.guarding import GuardedObserver
from worldline.history.observer import Observer
from worldline.history.outcome import Status, WaitReason
from worldline.lock import (
    OPERATOR,
    Abort,
    Action,
    Barrier,
    CallOff,
    Grant,
    Invite,
    Join,
    Lost,
    Over,
    Phase,
    State,
    Stop,
)
from worldline.lock.arbiter import Arbiter
from worldline.lock.member import Member
from worldline.lock.states import ASKING
from worldline.lock.why.reasons import vacant, waits_of_processes
from worldline.model import (
    ConfigurationError,
    InternalError,
    LossError,
    ModelError,
    PeerError,
    Plan,
    UsageError,
    WorldlineError,
    format_time,
)
from worldline.model.clock import LocalClock
from worldline.model.errors import shortened, shown
from worldline.model.frames import frame
from worldline.model.lifecycle import Lifecycle
from worldline.model.plan import check_plan
from worldline.wire.codec import (
    HEARTBEAT,
    add_grant,
    checked,
    count_events,
    decode_event,
    decode_events,
    encode_answer,
    split_events,
)
from worldline.wire.handshake import (
    BAD_VERSION,
    CROWDED,
    DECLARED,
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
    Told,
    Welcome,
)
from worldline.wire.trunk import OpenTrunk

if TYPE_CHECKING:
    from worldline.federation.server.operating import OperatorDesk
    from worldline.federation.server.rejoining import Rejoining
    from worldline.federation.server.run_journal import RunJournal
    from worldline.federation.server.trunk import Trunk

# Frames and events, taken together, that a connection is heard for before others get their turn: about as long as the
# answers to an ordinary frame take.
_TURN = EVENTS_AT_ONCE = 64  # The latter for others, who read that many at the most before they are heard.


_NOTICES_MAX = 64
_UNLIMITED = 2**60  # As good as that.
_VACANT = ""  # In the place of a name, which is never empty.
_SLOW = 2**16  # Bytes; what the system keeps for a connection comes on top.
_OVER = Phase.OVER
_encode = msgpack.Encoder().encode
_decode_first: Callable[[bytes], Hello | OpenTrunk] = msgpack.Decoder(Hello | OpenTrunk).decode


class HostOwner:
    """What the owner of a host, a server or a launcher, knows of participants and hears of them."""

    def __init__(self) -> None:
        self.notices: deque[str] = deque(maxlen=_NOTICES_MAX)  # Who came, was refused, or has gone before the start.
        # Told at once who may not do what it did before, and why; without it, a notice says so.
        self.doubts: Callable[[str, str], None] | None = None
        # Says whose program runs, or ran last, in the process of a participant that shares one; None: it isn't known.
        self.runner: Callable[[str], str | None] = lambda _: None
        self.unconnected: dict[str, str] = {}  # What is known of participants whose processes run, and don't connect.
        self.keeps_journal = False  # It needs the journal when the run isn't served any more, and lets go of it later.
        self.desk: Callable[[Session], OperatorDesk | None] | None = None  # Hears an operator, if anything does.


class FlowControl:
    """Which participants aren't read at present: those too far ahead (H3), or with too many frames in this second."""

    def __init__(self, host: Host) -> None:
        limits, plan = host.limits, host.arbiter.plan
        self._host = host
        self.share = min(limits.memory_max, _UNLIMITED) // max(1, len(plan.roster) + len(plan.guests) + plan.vacancies)
        self.weigh_above = min(self.share, limits.flood_max, limits.under_way_max)  # Less is no concern.
        self.frames_max = min(limits.frames_max, _UNLIMITED)
        self.frame_max = limits.frame_max
        self.unread_max = min(limits.unread_max, _UNLIMITED)
        self.paused: list[Session] = []
        self._throttled: list[Session] = []
        self._resumed_at = -1  # The least base when those that aren't read were last looked at.
        # By session: how much must be kept of it for another look to be worth while; its next send when it was last
        # seen to go on; how much was kept of it then.
        self._stood: dict[Session, tuple[int, int, int]] = {}

    def weigh(self, session: Session, member: Member) -> None:
        """Hold one back of whom too much is kept, or see whether what must be kept is too much (H3)."""
        host = self._host
        if member.base > host.arbiter.bounds.floor():
            if not session.paused and host.arbiter.router.relieve(member) > self.share // 2:
                session.paused = True
                self.paused.append(session)
                host.dirty.append(session)
            return
        look_above, stood_at, stood_with = self._stood.get(session, (0, -1, 0))
        if member.outstanding <= look_above:
            return
        kept = host.arbiter.router.relieve(member)
        if member.value > stood_at:
            stood_at, stood_with = member.value, kept
        # Looking costs what is kept: not with every frame.
        self._stood[session] = max(self.weigh_above, kept + kept // 4), stood_at, stood_with
        if kept - stood_with > host.limits.flood_max:
            sent = f"it has sent {kept:,} bytes without going on, and they can't be delivered before it does"
            host.drop(session, f"{sent} (limits.flood is {host.limits.flood_max:,})")
        elif kept > self.weigh_above:
            self.check_under_way(session)

    def check_under_way(self, session: Session) -> None:
        """Give up if the network holds more than there is room for."""
        host = self._host
        kept = {name: member.outstanding for name, member in host.arbiter.members.items() if member.outstanding}
        for name, each in host.sessions.items():
            if gathered := each.frames.gathered():
                kept[name] = kept.get(name, 0) + gathered
        total = sum(kept.values())
        if total > host.limits.under_way_max:
            most = ", ".join([f"{name} {kept[name]:,}" for name in sorted(kept, key=lambda name: -kept[name])[:3]])
            host.drop(
                session,
                f"{total:,} bytes are under way, sent and not yet received ({most}), and all others wait for it: "
                "send less, shorten the latency of its links, or raise limits.under_way",
            )

    def resume(self) -> None:
        """Read those again that were ahead, and aren't any more."""
        arbiter = self._host.arbiter
        floor = arbiter.bounds.floor()
        moved, self._resumed_at = floor != self._resumed_at, floor
        for session in list(self.paused):
            member = session.member
            assert member is not None
            # As long as the least base hasn't moved, nothing more can be forgotten of one that is ahead of it.
            if member.base <= floor or (moved and arbiter.router.relieve(member) <= self.share // 2):
                session.paused = session.throttled
                self.paused.remove(session)
                self._host.dirty.append(session)

    def throttle(self, session: Session) -> None:
        """Don't read it before the next tick: it has sent too many frames since the last one."""
        session.throttled = session.paused = True
        self._throttled.append(session)
        self._host.dirty.append(session)

    def release_throttled(self) -> None:
        """Let those go on that weren't read because they had sent too many frames since the last tick."""
        host = self._host
        for session in host.sessions.values():
            session.said = 0
        released, self._throttled = self._throttled, []
        for session in released:
            session.throttled = False
            session.paused = session in self.paused
            host.dirty.append(session)
            if session.busy:
                host.busy.append(session)

    def forget(self, session: Session) -> None:
        """It is gone."""
        self._stood.pop(session, None)
        if session in self.paused:
            self.paused.remove(session)

    def ahead(self) -> list[str]:
        """Return who isn't read at present because it runs far ahead of the others."""
        return [session.name for session in self.paused]

    def throttled(self) -> list[str]:
        """Return who isn't read at present because it has sent too many frames in this second."""
        return [session.name for session in self._throttled if session.name]


class Host:
    """One run, and the connections of its participants."""

    def __init__(
        self,
        plan: Plan,
        *,
        federation: str = "",
        token: bytes | Mapping[str, bytes] = b"",
        operator_token: bytes = b"",
        agreement: Mapping[str, str] | None = None,
        declared: Mapping[str, Plain] | None = None,
        observer: Observer | None = None,
        limits: Limits | None = None,
        entropy: Callable[[int], bytes],
    ) -> None:
        self.limits = limits or Limits()
        self.arbiter = Arbiter(plan, None if observer is None else GuardedObserver(observer))
        self.arbiter.topics_max = self.limits.topics_max
        self.arbiter.logs_max = self.limits.flood_max
        self.arbiter.payload_max = self.limits.payload_max
        self.digest: bytes | None = None  # Of the run, when it has ended well.
        self.failure: WorldlineError | None = None  # Why it hasn't.
        self.sessions: dict[str, Session] = {}  # By name, of those who have been admitted.
        self.rejoining: Rejoining | None = None  # The journal, and what lets participants come back, if they may.
        self.dirty: list[Session] = []  # Those to send to, to close or to pause; for the owner of the sockets.
        self.owner = HostOwner()
        self.busy: list[Session] = []  # Those who have said more than was heard: `work` goes on with them.
        self._strangers: list[Session] = []
        self._trunks: list[Trunk | OperatorDesk] = []
        self._admission = Admission(federation, token, operator_token, agreement or {}, declared or {}, entropy)
        self.flow = FlowControl(self)
        self._awaited: dict[str, float] = {}  # Who hasn't joined, and for how many seconds it has been waited for.
        self._ticked = 0.0

    @property
    def over(self) -> bool:
        return self.arbiter.phase is _OVER

    @property
    def federation(self) -> str:
        return self._admission.federation

    # --- Connections ---

    def open(self, now: float) -> Session:
        """Take in a new connection."""
        session = Session(self._admission.challenge(), now)
        self._meet(session)
        self.put(session, frame(_encode(session.challenge)))
        return session

    def open_circuit(self, carrier: Session, owner: SessionOwner) -> Session:
        """Take in another connection, over a trunk; its challenge is that of the trunk.

        On a trunk that is a stranger itself, it isn't another one: its first circuit would send away the very trunk
        that it belongs to, if that is the oldest of too many.
        """
        session = Session(carrier.challenge, carrier.heard)
        session.owner = owner
        session.is_foreign = carrier.is_foreign
        if carrier not in self._strangers:
            self._meet(session)
        return session

    def _meet(self, session: Session) -> None:
        if len(self._strangers) >= self.limits.strangers_max:  # Who has said nothing for longest makes room.
            self.send_away(self._strangers[0])
        self._strangers.append(session)

    def send_away(self, stranger: Session) -> None:
        """Let a stranger make room for others."""
        self.refuse(stranger, CROWDED, "too many connections are waiting to be admitted")

    def is_stranger(self, session: Session) -> bool:
        """Whether a connection hasn't been admitted, and no participant on it."""
        return session in self._strangers

    def trust(self, session: Session) -> None:
        """It is no stranger any more: it has been admitted, or a participant on the trunk that it is."""
        if session in self._strangers:
            self._strangers.remove(session)

    def seat(self, name: str, owner: SessionOwner, now: float) -> Session:
        """Admit a participant that lives in this very thread, and needn't prove who it is."""
        refusal = self._unwelcome(name)
        if refusal is not None:
            code, reason = refusal
            raise UsageError(reason, participant=name, code=code)
        session = Session(Challenge(PROTOCOL, VERSION, b""), now)
        session.owner = owner
        session.stopped = False  # It runs: it is what asks.
        self._admit(session, name)
        return session

    def receive(self, session: Session, data: bytes, now: float) -> None:
        """Take what has come in over a connection, besides what was read right into its frames.

        As long as it is `busy` with that, it isn't to be read.
        """
        session.heard = now
        while session.busy and session.trunk is None:  # Its owner has read on all the same.
            self._turn(session)
        if session.closing:
            return
        if data:
            session.frames.push([data])
        self._turn(session)
        if session.frames.gathered() > self.flow.frame_max and not session.closing:
            self.flow.check_under_way(session)

    def hears(self, session: Session) -> bool:
        """Whether a frame that comes alone may be handed to `hear`: nothing is before it."""
        return (
            session.member is not None
            and not (session.busy or session.closing or session.frames.is_cut_short())
            and self.arbiter.phase is not _OVER
        )

    def hear(self, session: Session, events: list[Told], now: float) -> None:
        """Take a frame that has come alone, and is read already. A journal keeps the body that is the session's."""
        session.heard = session.spoke = now
        session.said += 1
        body = session.bodies.pop() if session.bodies else None
        try:
            self._pass_on(session, events, body)
        except Exception as error:
            self._stumble(session, error)
        if session.said > self.flow.frames_max and not session.throttled:
            self.flow.throttle(session)

    def work(self) -> None:
        """Give those who have said more than was heard another turn, one after the other."""
        busy, self.busy = self.busy, []
        for session in busy:
            if session.busy:
                self._turn(session)

    def _turn(self, session: Session) -> None:
        """Hear a connection for a while (H5)."""
        left = _TURN
        busy = True
        frames, bodies = session.frames, session.bodies
        try:
            while left > 0:
                if session.closing:
                    busy = False
                    break
                if session.trunk is not None:
                    busy = session.trunk.turn()
                    break
                if session.events:
                    left -= self._hear_on(session)
                    continue
                if not frames.cut(bodies):
                    busy = False
                    break
                body = bodies.pop()
                left -= 1
                session.said += 1
                if body:
                    session.spoke = session.heard
                    if session.name:
                        left -= self._hear(session, body)
                    else:
                        self._greet(session, body)
        except Exception as error:
            busy = False
            self._stumble(session, error)
        session.busy = busy
        if session.said > self.flow.frames_max and not session.throttled:
            self.flow.throttle(session)
        if busy and not session.throttled:
            self.busy.append(session)

    def _stumble(self, session: Session, error: Exception) -> None:
        """Meet what went wrong while a connection was heard."""
        if isinstance(error, WorldlineError) and error.of_observer:
            self.end(error)  # The participant that happened to be speaking isn't to blame.
        elif isinstance(error, WorldlineError) and not isinstance(error, InternalError):
            self._fault(session, error)
        else:
            self._break_down(session, error)

    def _break_down(self, session: Session, error: Exception) -> None:
        """Meet a bug of ours: the run can't be trusted any more, but it ends in good order."""
        bug = error if isinstance(error, InternalError) else InternalError(f"{type(error).__name__}: {error}")
        bug.__cause__ = None if bug is error else error
        self.end(bug)
        self.refuse(session, PROTOCOL_ERROR, shortened(str(bug)))

    def closed(self, session: Session, cause: str) -> None:
        """A connection has ended, for whatever reason. What came in whole before that counts."""
        if session.trunk is not None:
            self._trunks.remove(session.trunk)
            for each in session.trunk.give_up():
                self.closed(each, cause)
        while session.busy and session.trunk is None:
            self._turn(session)
        session.closing = True
        session.out.clear()
        if session in self._strangers:
            self._strangers.remove(session)
            self.owner.notices.append(f"a connection ended before it was admitted: {cause}")
        if session.name and self.sessions.get(session.name) is session:
            del self.sessions[session.name]
            if session.frames.is_cut_short():
                cause += ", in the middle of a frame"
            self._lose(session, cause)

    def tick(self, now: float, absent_s: float = 0.0) -> None:
        """Beat the heart, and find those whose heart has stopped. To be called about every second.

        `absent_s` is for how long, since the last time, none was served, as far as that is known.
        """
        limits = self.limits
        for trunk in self._trunks:
            trunk.keep_time()
        passed = now - self._ticked
        waited_s = min(passed - absent_s, limits.heartbeat_s)  # Not while this end has slept.
        self._wait_for_the_missing(waited_s)
        self.flow.release_throttled()
        self._excuse(max(absent_s, passed - limits.heartbeat_s), now)
        self._ticked = now
        for stranger in list(self._strangers):
            if now - stranger.opened > limits.handshake_s:
                self.refuse(stranger, PROTOCOL_ERROR, "it didn't say who it was in time")
        for session in list(self.sessions.values()):
            if self.over:
                return
            if session.paused or session.busy:
                session.heard = now  # It isn't listened to.
            silence = now - session.heard
            if limits.silence_s is not None and silence > limits.silence_s and session.stopped is not False:
                stopped = ": its process is stopped" if session.stopped else ""
                self._miss(session, f"nothing was heard from it for {silence:.0f} seconds{stopped}")
            elif not session.out and now - session.sent > limits.heartbeat_s and self._listens(session):
                self.put(session, HEARTBEAT)
        self.flow.resume()
        if self.rejoining is not None:
            self.rejoining.tick(waited_s)

    def _wait_for_the_missing(self, seconds: float) -> None:
        """Wait a little longer for those who haven't joined, unless that has been long enough."""
        arbiter, limit = self.arbiter, self.limits.join_s
        if limit is None or self.over or not (arbiter.phase is Phase.GATHERING or arbiter.newcomers):
            return
        floor = arbiter.floor()  # A newcomer isn't late before all have come as far as its start.
        missing = {name: name for name in arbiter.missing() if arbiter.members[name].start <= floor}
        for places in vacant(arbiter.plan):
            missing[_VACANT] = places  # One wait for all of them, which goes on when some are taken.
        self._awaited = {key: self._awaited.get(key, 0.0) + seconds for key in missing}
        late = [missing[key] for key, waited in self._awaited.items() if waited > limit]
        if late:
            there = [name for name, session in self.sessions.items() if session.member is not None]
            them = "it" if len(late) == 1 else "them"
            self.end(
                LossError(
                    f"{', '.join(late)} didn't join within {limit:g} seconds, and the run can't go on without {them}",
                    advice=f"{'here: ' + ', '.join(sorted(there)) if there else 'none came'}; limits.join sets how "
                    "long to wait",
                )
            )

    def _excuse(self, missed: float, now: float) -> None:
        """Don't count the time in which this end was busy or stopped, and heard none (H7)."""
        if missed > 0:
            for session in (*self.sessions.values(), *self._strangers):
                session.heard = min(now, session.heard + missed)
                session.opened = min(now, session.opened + missed)

    def _listens(self, session: Session) -> bool:
        return session.paused or session.member is None or session.member.state in ASKING

    # --- Admitting ---

    def _greet(self, session: Session, body: bytes) -> None:
        hello = checked(_decode_first, body)
        if isinstance(hello, Hello):
            session.claims = shown(hello.name)
        if hello.version != VERSION:
            self.refuse(session, BAD_VERSION, f"this server speaks version {VERSION}, not {hello.version}")
            return
        if isinstance(hello, OpenTrunk):
            self._open_trunk(session)
            return
        is_operator = hello.name == OPERATOR and self.owner.desk is not None
        refusal = self._admission.stranger(hello, session.challenge, is_foreign=session.is_foreign)
        if refusal is None and not is_operator:
            refusal = (
                self._admission.disagreement(hello)
                or self._unwelcome(hello.name)
                or self._admission.inability(hello, self.arbiter.plan)
            )
        if refusal is not None:
            self.refuse(session, *refusal)
            return
        if is_operator:
            if not self._seat_operator(session):
                return
        else:
            self.trust(session)
            session.code = hello.code
            self._admit(session, hello.name)
        self.put(session, frame(self._welcome_for(hello, session).body()))

    def _welcome_for(self, hello: Hello, session: Session) -> Welcome:
        limits, rejoining = self.limits, self.rejoining
        declared, period, clock = self.stated(hello.name)
        life = self.life_of(hello.name)
        return Welcome(
            proof=self._admission.proof_for(hello, session.challenge),
            heartbeat=int(limits.heartbeat_s * 1e9),
            frame_max=limits.frame_max,
            declared=declared,
            period=period,
            payload_max=limits.payload_max,
            returns=0 if rejoining is None else int(rejoining.returns_s * 1e9),
            # A snapshot would know nothing of faults.
            has_snapshot=None if rejoining is None or life is not None else rejoining.has_snapshot(hello.name),
            clock=clock,
            life=life,
        )

    def _seat_operator(self, session: Session) -> bool:
        """Let an operator in, if there is a desk left."""
        desk = None if self.owner.desk is None else self.owner.desk(session)
        if desk is None:
            self.refuse(session, CROWDED, "too many operators are connected")
            return False
        self.trust(session)
        session.trunk = desk
        self._trunks.append(desk)
        return True

    def _open_trunk(self, session: Session) -> None:
        session.trunk = session.owner.carry()
        if session.trunk is None:
            raise PeerError("it can't be a trunk: it is part of one")
        self._trunks.append(session.trunk)

    def _admit(self, session: Session, name: str) -> None:
        if not self.is_known(name):
            self._make_room()
        self.sessions[name] = session
        session.name = name
        session.frames.longest = self.limits.frame_max
        if self.rejoining is not None:
            self.rejoining.admitted(session)

    def is_known(self, name: str) -> bool:
        return name in self.arbiter.members or name in self.arbiter.plan.guests

    def _make_room(self) -> None:
        """Bound those whose names aren't known, who have no place before they join, as strangers are."""
        unknown = [each for each in self.sessions.values() if not self.is_known(each.name)]
        if len(unknown) >= self.limits.strangers_max:
            del self.sessions[unknown[0].name]
            self.refuse(unknown[0], CROWDED, "too many connections are waiting to join")

    def stated(self, name: str) -> tuple[Join | None, int, LocalClock | None]:
        """Return what the file declares for a participant: what it would say at joining, its period and its clock."""
        return self._admission.stated(name)

    def life_of(self, name: str) -> Lifecycle | None:
        """Return what happens to a participant in simulated time; None if nothing does."""
        return self._admission.life_of(name, self.arbiter.plan)

    def _unwelcome(self, name: str) -> Refusal | None:
        """Refuse one that isn't expected, or not any more."""
        if self.over:
            return OVER, "the run is over"
        if name in self.sessions:
            return TAKEN, f"participant {name!r} is already connected"
        member = self.arbiter.members.get(name)
        plan = self.arbiter.plan
        if member is None and name not in plan.guests and not plan.vacancies:
            if self.arbiter.phase is Phase.RUNNING and not self.arbiter.missing():
                started = f"unexpected participant {shown(name)}: the run has started without it{self._expected_back()}"
                return UNEXPECTED, started
            expected = ", ".join(self.arbiter.missing()) or "none at present"
            return UNEXPECTED, f"unexpected participant {shown(name)}; expected: {expected}{self._expected_back()}"
        if member is not None and member.state is not State.EXPECTED and not self._may_return(member):
            return TAKEN, f"participant {name!r} has been here already"
        return None

    def _may_return(self, member: Member) -> bool:
        """Whether one that has been here may connect again; one that has left is told that it has."""
        return self.rejoining is not None and (member.name in self.rejoining.absent or member.state is State.LEFT)

    def _expected_back(self) -> str:
        away = self.lost()
        return f"; waiting for {', '.join(away)} to come back" if away else ""

    # --- Hearing and answering ---

    def _hear(self, session: Session, body: bytes) -> int:
        """Hear a frame, or begin to; return how many events that were."""
        if self.arbiter.phase is _OVER:
            return 0  # It has been told, and hadn't read it yet.
        count = count_events(body)
        if count <= _TURN:
            self._pass_on(session, decode_events(body), body)
            return count
        if count > self.limits.events_max:
            raise PeerError(
                f"a frame of {count:,} events is too long",
                participant=session.name,
                advice=f"the limit is {self.limits.events_max:,}",
            )
        session.events = split_events(body)
        session.events.reverse()
        return 0

    def _hear_on(self, session: Session) -> int:
        """Hear more of a long frame."""
        heard = session.events[-_TURN:]
        del session.events[-_TURN:]
        if self.arbiter.phase is not _OVER:
            events: list[Told] = [decode_event(raw) for raw in reversed(heard)]
            self._pass_on(session, events, None)
        return len(heard)

    def _pass_on(self, session: Session, events: list[Told], body: bytes | None) -> None:
        """Take what a participant says; `body` is the frame in which it said that, if it is all of it."""
        if self.rejoining is None:
            self.take(session, events)
        else:
            self.rejoining.hear(session, events, body)

    def take(self, session: Session, events: list[Told]) -> None:
        """Do as a participant says, which is live."""
        if events and session.member is None:
            self._joined(session, events.pop(0))
        if not events or session.closing or self.arbiter.phase is _OVER:
            return
        last = events[-1]
        if type(last) is Fail:
            cause = shortened(last.cause)
            if last.at is not None and session.member is not None:  # It can't have been later.
                session.member.now = min(session.member.now, last.at)
            self.drop(session, cause, ModelError(cause, participant=session.name, at=self._time_of(session)))
            return
        member = session.member
        if member is not None and member.controls:
            for event in events:
                if isinstance(event, Invite):
                    self._check_invited(event.newcomer, member)
        try:
            actions = self.arbiter.hear(session.name, events)  # type: ignore[arg-type] # a Fail elsewhere isn't legal
        except WorldlineError as error:
            if not error.of_observer:
                self._carry_out(self.arbiter.hear(session.name, []))  # What follows from those before the bad one.
            raise
        if actions:
            self._carry_out(actions)
        if member is not None and member.controls:
            for event in events:
                if isinstance(event, Invite):
                    self._welcome(event.newcomer)
        self._weigh(session)

    def _weigh(self, session: Session) -> None:
        member = session.member
        if member is not None and member.outstanding > self.flow.weigh_above:
            self.flow.weigh(session, member)
        if self.flow.paused:
            self.flow.resume()

    def _joined(self, session: Session, event: object) -> None:
        """The first word of a participant. A guest's waits until it has been invited."""
        if not isinstance(event, Join):
            raise PeerError(f"{type(event).__name__} isn't possible before joining", participant=session.name)
        if session.joining is not None:
            raise PeerError("it has already joined, and waits to be invited", participant=session.name)
        try:
            event = self.agreed(session.name, event)
        except ConfigurationError as error:
            self.sessions.pop(session.name)  # It may come again, once it has thought better of it.
            self.refuse(session, DECLARED, str(error))
            return
        if self.rejoining is None:
            self.enter(session, event)
        else:
            self.rejoining.enter(session, event)

    def enter(self, session: Session, event: Join) -> None:
        """Let a participant join as was agreed, or wait to be invited."""
        if not self.is_known(session.name):
            if not self.arbiter.plan.vacancies:  # Another one was quicker.
                self.sessions.pop(session.name)
                self.refuse(session, UNEXPECTED, "all places are taken")
                return
            self.arbiter.enroll(session.name, event)
            if not self.arbiter.plan.vacancies:
                try:
                    check_plan(self.arbiter.plan)  # Rules may be for names that are known only now.
                except ConfigurationError as error:
                    self.end(error)
                    return
        member = self.arbiter.members.get(session.name)
        if member is None:
            session.joining = event
            return
        try:
            actions = self.arbiter.handle(session.name, event)
        finally:
            if member.state is not State.EXPECTED:  # Also if only those who look on have failed.
                session.member = member
                session.frames.admit(self.limits.payload_max)
        self.owner.notices.append(f"{session.name} has joined")
        self._carry_out(actions)

    def agreed(self, name: str, join: Join) -> Join:
        """Return how a participant joins, by what it says and what the file declares for it; raise if they differ."""
        return self._admission.agreed(name, join, self.arbiter.plan)

    def _check_invited(self, name: str, inviting: Member) -> None:
        """Refuse an invitation of a participant that can never come, and that all would wait for."""
        plan = self.arbiter.plan
        if name in plan.guests or self._admission.could_come(name, plan.roster):
            return
        raise UsageError(
            f"it invites {shown(name)}, and there is no participant of that name",
            participant=inviting.name,
            at=inviting.now,
            advice=f"guests are {', '.join(plan.guests)}" if plan.guests else "there are no guests",
        )

    def _welcome(self, name: str) -> None:
        """Let in a guest that was here before it was invited."""
        session = self.sessions.get(name)
        if session is not None and session.joining is not None:
            event, session.joining = session.joining, None
            try:
                self._joined(session, event)
            except WorldlineError as error:  # The guest's mistake, not its host's.
                if error.of_observer:
                    raise
                self._fault(session, error)

    def _carry_out(self, actions: Sequence[Action]) -> None:
        action: Any
        rejoining = self.rejoining
        for action in actions:
            if rejoining is not None and rejoining.answered(action):
                continue
            if type(action) is Over:
                self.digest = action.digest
                self._dismiss_uninvited()
            elif (session := self.sessions.get(action.to)) is not None:
                if type(action) is not Grant:
                    self.put(session, encode_answer(action, self.flow.frame_max))
                elif self._reads(session):
                    add_grant(session.out, action, self.flow.frame_max)
                    self.dirty.append(session)

    def _dismiss_uninvited(self) -> None:
        for session in self.sessions.values():
            if session.member is None:
                self.put(session, encode_answer(Grant(session.name, self.arbiter.end, [], final=True)))

    def put(self, session: Session, data: bytes) -> None:
        if self._reads(session):
            session.out += data
            self.dirty.append(session)

    def _reads(self, session: Session) -> bool:
        """Whether the other end takes what is said."""
        if session.closing:
            return False
        if len(session.out) > self.flow.unread_max:
            self.drop(session, f"it hasn't read {len(session.out):,} bytes that it was sent")
            return False
        return True

    # --- Trouble ---

    def refuse(self, session: Session, code: str, reason: str) -> None:
        """Tell a connection why it ends, and end it."""
        self.trust(session)
        if not self.over:
            self.owner.notices.append(f"refused {session.claims or 'a connection'}: {reason}")
        self.put(session, encode_answer(Refused(code, reason)))
        session.closing = True
        self.dirty.append(session)

    def _fault(self, session: Session, error: WorldlineError) -> None:
        """A connection did what it may not: that one ends, and so does the run if it was a participant's."""
        self.refuse(session, PROTOCOL_ERROR, shortened(str(error)))
        if session.trunk is not None:
            for each in session.trunk.give_up():
                self._fault(each, error)
        if session.name:
            self.sessions.pop(session.name, None)
            self._lose(session, shortened(f"it was cut off: {error.problem}"), error)

    def give_up(self, name: str, cause: str) -> None:
        """Give up a participant that is known to be gone; one that isn't here is no concern."""
        if name in self.sessions and not self.over:
            self._miss(self.sessions[name], cause)

    def _miss(self, session: Session, cause: str) -> None:
        """Give up a participant that is gone, though its connection doesn't say so."""
        self._dismiss(session, cause)
        self._lose(session, cause)

    def drop(self, session: Session, cause: str, error: WorldlineError | None = None) -> None:
        """Give up a participant that does what it may not, and would again: it may not come back."""
        self._dismiss(session, cause)
        self._lose(session, cause, error or LossError(cause, participant=session.name, at=self._time_of(session)))

    def _dismiss(self, session: Session, cause: str) -> None:
        session.out += encode_answer(Abort(session.name, cause, session.name, self._time_of(session)))
        session.closing = True
        self.dirty.append(session)
        self.sessions.pop(session.name, None)

    def _lose(self, session: Session, cause: str, error: WorldlineError | None = None) -> None:
        self.flow.forget(session)
        if self.rejoining is not None and self.rejoining.lost(session, cause, error):
            return  # It is expected back.
        member = session.member
        if member is None or member.state is State.LEFT or self.over:
            return  # It has nothing more to say, or hasn't joined yet and may come again.
        if member.state is State.JOINED:  # It is expected again (H6).
            self.owner.notices.append(f"{session.name} was lost before the start: {cause}")
            self._carry_out(self.arbiter.handle(OPERATOR, Lost(session.name, cause)))
            return
        at = self._time_of(session)
        self.failure = error or LossError(cause, participant=session.name, at=at)
        self.break_off(Lost(session.name, cause), Abort("", cause, session.name, at))

    def _time_of(self, session: Session) -> int | None:
        return None if session.member is None else session.member.now

    # --- Operating ---

    def hold_at(self, until: int) -> None:
        """Move the barrier: none is granted time beyond it."""
        if not self.over and until != self.arbiter.barrier:
            self._operate(Barrier(until))

    def stop_at(self, at: int) -> None:
        """End the run at a time that none has passed."""
        if not self.over:
            self._operate(Stop(at))

    def _operate(self, event: Barrier | Stop) -> None:
        actions = self.arbiter.handle(OPERATOR, event)
        if self.rejoining is not None:
            self.rejoining.operated(event)
        self._carry_out(actions)

    def end(self, error: WorldlineError) -> None:
        """Break the run off."""
        if not self.over:
            self.failure = error
            cause = shortened(str(error))
            self.break_off(CallOff(cause), Abort("", cause))

    def resumed(self) -> str:
        """Say what the run goes on from, if another server had begun it."""
        journal = self.journal
        if journal is None or not journal.is_resumed:
            return ""
        return f"resuming {journal.path} at {format_time(self.arbiter.status().time)}"

    @property
    def journal(self) -> RunJournal | None:
        """What another server could go on from, if anything is written down."""
        return None if self.rejoining is None else self.rejoining.journal

    def let_go(self) -> None:
        """Let go of the journal, if there is one, since the run isn't served any more; remove it if all went well."""
        journal = self.journal
        if journal is None:
            return
        if self.digest is not None and self.failure is None:
            journal.remove()
        else:
            journal.close()

    def break_off(self, event: Lost | CallOff, abort: Abort) -> None:
        """End the run for all who are connected, also for those who haven't joined."""
        self._carry_out(self.arbiter.handle(OPERATOR, event))
        for session in list(self.sessions.values()):
            if session.member is None:
                self.put(session, encode_answer(replace(abort, to=session.name)))

    def slow(self) -> list[tuple[str, int]]:
        """Return who hasn't read what it was sent, and how many bytes."""
        return [(session.name, len(session.out)) for session in self.sessions.values() if session.out]

    def remarks(self) -> list[str]:
        """Say who is in the way: far ahead of the others, slow to read, stopped, alone at work, or away."""
        ahead = [f"{name} is far ahead, and is held back" for name in self.flow.ahead()]
        throttled = [f"{name} sends too many frames, and is slowed down" for name in self.flow.throttled()]
        stopped = [f"{session.name} is stopped" for session in self.sessions.values() if session.stopped]
        slow = [f"{name} hasn't read {size:,} bytes" for name, size in self.slow() if size > _SLOW]
        running = [remark for trunk in self._trunks if (remark := trunk.remark()) is not None]
        away = [f"waiting for {name} to come back" for name in self.lost()]
        return ahead + throttled + stopped + slow + running + away

    def status(self) -> Status:
        """Say how far the run is, and who is in whose way."""
        return replace(self.arbiter.status(), ask=lambda: tuple(map(self._traced, waits_of_processes(self.arbiter))))

    def _traced(self, wait: WaitReason) -> WaitReason:
        """Say why the holder really doesn't go on: it is away (B1), or another one of its process runs."""
        if wait.holder is None:
            return wait
        session = self.sessions.get(wait.holder)
        if session is None:
            lost = self.lost().get(wait.holder)
            if lost is None:
                return wait
            return WaitReason(wait.who, wait.holder, f"it was lost ({lost[0]}), and the run waits for it to come back")
        behind = session.owner.other_end().behind
        if not behind:
            return wait
        why = f"it is running, and {wait.holder}, in the same process, can't meanwhile; {wait.why}"
        return WaitReason(wait.who, behind, why)

    def lost(self) -> dict[str, tuple[str, float]]:
        """Return who was lost and is expected to come back: why it was lost, and for how many seconds it is away."""
        absent = {} if self.rejoining is None else self.rejoining.absent
        return {name: absence for name, absence in absent.items() if name not in self.sessions}

    def returning(self) -> list[str]:
        """Return who has come back, and hasn't got yet to where it was lost."""
        return [
            name for name, each in self.sessions.items() if each.returning is not None and not each.returning.is_live
        ]

    def has_left(self, name: str) -> bool:
        """Whether a participant has taken part and left. It can't come back."""
        member = self.arbiter.members.get(name)
        return member is not None and member.state is State.LEFT

    def missing(self) -> list[str]:
        """Return who isn't there yet before the start, of whom only the number may be known."""
        return [*self.arbiter.missing(), *vacant(self.arbiter.plan), *self.lost()]

    def waiting(self) -> str:
        """Say for whom all wait, in one line."""
        if self.arbiter.phase is Phase.GATHERING:
            return f"waiting for {', '.join(self.missing())}"
        whys = self.arbiter.why()
        return str(whys[0]) if whys else f"at {format_time(self.arbiter.floor())}"
