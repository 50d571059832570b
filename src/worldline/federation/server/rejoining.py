"""The journal of a host: participants that were lost may come back, and so may the server itself.

A host with a journal hands what is heard, answered and lost to this component, which writes it down. A participant that
comes back under its name is *rehearsed*: what it says is compared with what it said before, and answered as it was,
without the arbiter or other participants noticing (`lock/rehearsal.py`). Once the journal is used up, it is live, and
the host hears it again. That takes nothing new of a participant: a fresh process joins, and begins at the beginning.

B1. A participant that is away stays where it was in the arbiter: computing, or waiting. So the others wait for it as
    they would for one that computes for long, and nothing of it shows in their history.
B2. What it is answered while it is away, or rehearsed, goes into the journal, and reaches it from there.
B3. A process that has only lost its connection *resumes*: it says how many answers it has been given, and says again
    what it has said since the last of them. It is rehearsed from there.
B4. A server that is started on a journal hears it all again. The arbiter does the same again, so its answers must be
    those in the journal; then all participants are away. What wasn't in the journal none has acted on (J1).
B5. A participant that dies twice of the same message would do so forever: that ends the run. It is taken for that if it
    has died while it computed on the same answer as the time before, and had said no more since. (How far it had got
    with that answer isn't known: what it had said last may not have been sent.) One that dies while it waits has done
    with what it was given.
B6. What a participant says that has come back differs from what it said before: that ends the run, too, since others
    have acted on what was said. Nothing else that a returning connection says does it any harm.
B7. A participant may offer *snapshots*. Each goes into the journal, at its place between what was said before and what
    is said after. One that has come back may ask for the last of them, and *resume* from its place, instead of doing
    again all that was before. The arbiter never hears of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import msgpack

from worldline.federation.server.host import Host
from worldline.federation.server.run_journal import (
    ANSWERS,
    HEAVY,
    HeavyPayloads,
    JournalRecord,
    RecordKind,
    RunJournal,
    opened,
)
from worldline.federation.server.session import Session
from worldline.history.account import named
from worldline.history.fields import payload_text
from worldline.lock import (
    OPERATOR,
    Abort,
    Action,
    Barrier,
    Grant,
    Join,
    Leave,
    Lost,
    Over,
    Publish,
    Reached,
    StartRun,
    State,
    Stop,
)
from worldline.lock.events import Recall, Recalled, Restore, Snapshot
from worldline.lock.member import Member
from worldline.lock.refusals import impossible
from worldline.lock.rehearsal import Rehearsal
from worldline.lock.states import STARTED
from worldline.model import (
    Interrupted,
    LossError,
    ModelError,
    NonDeterminism,
    PeerError,
    UsageError,
    WorldlineError,
    format_time,
)
from worldline.model.errors import shortened
from worldline.model.text import printable
from worldline.model.time import Int64
from worldline.wire.codec import decode_events, encode_answer, is_heavy
from worldline.wire.handshake import DECLARED, TAKEN, UNEXPECTED, Fail, Resume, Told

Mark = tuple[int, int]
"""A place in a participant's conversation: how many answers it had been given, and what it had said since then."""

_PORTION = 256  # Records of a script that are read at a time.
_SHOWN_MAX = 3  # Messages.
_FOR_JOURNAL = frozenset((Snapshot, Recall, Restore))  # Not for the arbiter.
_CHANGED = "its code isn't what it was when it joined, so it may not do the same again"
_START: Mark = (1, 0)  # It has started, and has said nothing since.

_encode = msgpack.Encoder().encode
_decode_operated: Callable[[bytes], Barrier | Stop] = msgpack.Decoder(Barrier | Stop).decode
_decode_lost: Callable[[bytes], Lost] = msgpack.Decoder(Lost).decode
_decode_join: Callable[[bytes], Join] = msgpack.Decoder(Join).decode


KeptSnapshot = tuple[Int64, Int64, bytes]
"""A snapshot in the journal: the participant's time, how many messages it had sent, and what it said."""

_decode_kept: Callable[[bytes], KeptSnapshot] = msgpack.Decoder(KeptSnapshot).decode


class Returning:
    """A participant that has come back: rehearsed first, and live once that is done.

    Then it may still say times that it had said before, until it says something else.
    """

    def __init__(self, name: str, doubt: str | None = None) -> None:
        self.rehearsal = Rehearsal(name, open_answer=opened, advice=doubt)
        self._doubt = doubt  # Why it may not do the same again.
        self.begun = False
        self.is_live = False
        self.answers = 0  # How many it has been given.
        self.said = 0  # What it has said since the last of them.
        self.after = 0  # The place in the journal up to which its script was told to the rehearsal.
        self.places: deque[int] = deque()  # And where what comes next is.
        self.restored_at: int | None = None  # The time of the snapshot from which it goes on, if it does.

    @property
    def mark(self) -> Mark:
        return self.answers, self.said

    def go_on_at(self, mark: Mark, after: int, snapshot: KeptSnapshot | None = None) -> None:
        """Go on from another place than the beginning. `after` is where its last answer before that is."""
        advice, sent, now = self._doubt, 0, 0
        if snapshot is not None:
            now, sent, _ = snapshot
            restored = f"it was restored from its snapshot at {format_time(now)}"
            advice = f"{restored}; {advice or 'does that hold all of its state?'}"
        self.rehearsal = Rehearsal(
            self.rehearsal.name, open_answer=opened, skipped=mark[1], sent=sent, now=now, advice=advice
        )
        self.answers, self.said = mark
        self.after = after
        self.places.clear()
        self.restored_at = None if snapshot is None else snapshot[0]


class Rejoining:
    """The journal of a host. If `rejoins`, participants that are lost may come back; otherwise only the server may."""

    def __init__(self, host: Host, journal: Path | str | None, *, rejoins: bool) -> None:
        self._host = host
        self.journal = RunJournal(
            journal,
            {
                "federation": host.federation,
                "payload_max": host.limits.payload_max,
                "plan": msgspec.to_builtins(host.arbiter.plan),
            },
        )
        # For how long participants are to try to come back if their connection is lost.
        self.returns_s = 0.0 if journal is None else host.limits.rejoin_s or 1e9
        self._payloads = HeavyPayloads(self.journal)
        self._rejoins = rejoins
        # Participants that were lost and may come back: why each was lost, and for how many seconds it has been away.
        self.absent: dict[str, tuple[str, float]] = {}
        self._deaths: dict[str, Mark] = {}  # Where each participant was lost last.
        self._speaker = ""  # The participant that the arbiter hears just now,
        self._unwritten: list[Told] | None = None  # what it says, until that is written,
        self._frame: bytes | None = None  # the frame in which it said that, if it is all of it,
        self._enrolls = False  # whether it takes a vacancy with that,
        self._heard = 0  # and how many events were heard before.
        try:
            self._hear_again()
        except BaseException:
            self.journal.close()
            raise

    # --- Hearing and answering ---

    def hear(self, session: Session, events: list[Told], frame: bytes | None = None) -> None:
        """Hear a participant: rehearse it if it has come back, otherwise let the host take it, and write it down.

        That is written as it came if it is the whole of a `frame`.
        """
        host, name = self._host, session.name
        if not events:
            return
        if session.returning is not None:
            if not session.returning.is_live:
                self._rehearse(session, session.returning, events)
                return
            events, frame = self._without_past(session, events), None
            if not events:
                return
        if session.member is None:
            if isinstance(events[0], Resume):  # Nothing that it has said was heard before.
                if events[0].answers:
                    raise PeerError("it can't resume: this server never answered it", participant=name)
                del events[0]
            frame = None
            if events:
                host.take(session, [events.pop(0)])
            if not events or session.closing or host.over:
                return
        for event in events:
            if type(event) in _FOR_JOURNAL:
                self._take_in_parts(session, events)
                return
        last: object = type(events[-1])
        if last is Fail:  # That ends the run, and isn't heard by the arbiter.
            host.take(session, events)
            return
        self._speaker, self._unwritten, self._frame, self._heard = name, events, frame, host.arbiter.events
        try:
            host.take(session, events)
            if self._unwritten is not None:  # Nothing has followed from it.
                self._write()
        finally:
            self._unwritten = None
        if last is Leave and self.returns_s:
            host.put(session, self._farewell(name))

    def _take_in_parts(self, session: Session, events: list[Told]) -> None:
        """Take what is for the arbiter, and what is for this journal alone, in order (B7)."""
        number = [type(event) in _FOR_JOURNAL for event in events].index(True)
        before, said, after = events[:number], events[number], events[number + 1 :]
        if before:
            self.hear(session, before)
        if session.closing or self._host.over:
            return
        member = self._host.arbiter.members[session.name]
        if Publish not in member.legal:
            raise impossible(type(said).__name__, member.state, "", PeerError).concerning(session.name, member.now)
        if isinstance(said, Snapshot):
            self.journal.restorable(session.name, _encode((member.now, member.sequence, said.state)))
        else:
            self._restore(session, said, self._mark(session.name))
        if after:
            self.hear(session, after)

    def _restore(self, session: Session, said: Told, mark: Mark) -> tuple[KeptSnapshot, Mark]:
        """Give a participant its last snapshot, or let it resume from there: only at its start."""
        name = session.name
        place = self.journal.snapshots.get(name)
        if place is None or mark != _START:
            why = "there is no snapshot of it" if place is None else "it has said something since its start"
            raise PeerError(f"it can't be restored: {why}", participant=name)
        kept, where = _decode_kept(self.journal.record(place).body), self._mark(name, place)
        if isinstance(said, Recall):
            self._host.put(session, encode_answer(Recalled(*where, kept[2]), self._host.flow.frame_max))
        elif not isinstance(said, Restore) or (said.answers, said.said) != where:
            raise PeerError("it can't be restored: that isn't the place of its last snapshot", participant=name)
        return kept, where

    def has_snapshot(self, name: str) -> bool | None:
        """Whether a participant can be restored from a snapshot; None: where none may come back, none are kept."""
        if not (self._rejoins or self.returns_s):
            return None
        return name in self.journal.snapshots and name in self.absent

    def enter(self, session: Session, join: Join) -> None:
        """Let a participant join, and write that down."""
        self._write()  # The invitation that lets it in, if it is one.
        host, name = self._host, session.name
        self._speaker, self._unwritten, self._frame, self._heard = name, [join], None, host.arbiter.events
        self._enrolls = not host.is_known(name)
        try:
            host.enter(session, join)
            self._write()
            if session.code and session.member is not None and session.code != self.journal.codes.get(name):
                self.journal.coded(name, session.code)
        finally:
            self._unwritten, self._enrolls = None, False

    def _write(self) -> None:
        """Write down what the arbiter has just heard, if it has, before anything that follows from it (J1)."""
        if self._unwritten is None or self._host.arbiter.events == self._heard:
            return
        name, events, self._unwritten = self._speaker, self._unwritten, None
        if self._enrolls:
            self.journal.enrolled(name, _encode(events[0]))
        body = _encode(events) if self._frame is None else self._frame
        place = self.journal.heard(name, body)
        if len(body) >= HEAVY:
            self._payloads.note(name, self._host.arbiter.members[name].sequence, events, place)

    def answered(self, action: Any) -> bool:
        """Write an answer down before it goes out; return whether it needn't be sent: it was, or has to wait (B2)."""
        kind: object = type(action)
        if kind is not Grant and kind is not StartRun:
            return False
        if self._unwritten is not None:
            self._write()
        if self._unwritten is not None:  # It has said something illegal: the run ends, and was heard up to here.
            return False
        host, name = self._host, action.to
        session: Session | None = host.sessions.get(name)
        if session is not None and session.returning is not None and not session.returning.is_live:
            session = None  # It gets to this in the course of its rehearsal.
        if kind is Grant and is_heavy(action):
            self.journal.granted(name, self._payloads.without(action))
            return session is None
        answer = encode_answer(action, host.flow.frame_max)
        self.journal.answered(name, answer)
        if session is not None:
            host.put(session, answer)
        return True

    def _answer(self, record: JournalRecord) -> bytes:
        """Return an answer in the journal as it is sent."""
        if record.kind is RecordKind.ANSWERED:
            return record.body
        return encode_answer(self._payloads.whole(record.body), self._host.flow.frame_max)

    def _farewell(self, name: str) -> bytes:
        """Return what tells a participant that the server knows that it has left, also if it comes back."""
        return encode_answer(Grant(name, self._host.arbiter.members[name].now, [], final=True))

    def operated(self, event: Barrier | Stop) -> None:
        """Write down what an operator has said, and the arbiter has heard."""
        self.journal.operated(_encode(event))

    # --- Losing ---

    def lost(self, session: Session, cause: str, error: WorldlineError | None) -> bool:
        """Note that a participant is lost, by an error that it would make again or by chance; whether it may return."""
        host, name, back = self._host, session.name, session.returning
        session.returning = None
        member = host.arbiter.members.get(name)
        if member is None or member.state is State.LEFT or host.over:
            return False
        if back is not None and not back.is_live:
            if isinstance(error, ModelError):  # Of those who return, nothing else matters (B6).
                session.member = member
                return False
            if back.begun:  # Otherwise it has only knocked, and is away as before.
                self._note_death(member, cause, back.mark)
            return True
        if member.state in STARTED and error is None and self._rejoins:
            self._note_death(member, cause, self._mark(name) if member.state is State.COMPUTING else None)
            return True
        if member.state is State.JOINED and session.member is not None:
            self.journal.lost(name, _encode(Lost(name, cause)))
        return False

    def _note_death(self, member: Member, cause: str, mark: Mark | None) -> None:
        """Wait for a participant that was lost to come back, unless it has been lost there before (B5)."""
        host, name = self._host, member.name
        before = self._deaths.pop(name, None)
        if mark is not None and mark[0] + mark[1]:
            self._deaths[name] = mark
            if before is not None and mark[0] == before[0] and mark[1] <= before[1]:
                host.failure = self._died_twice(member, cause, mark)
                problem = shortened(host.failure.problem)
                host.break_off(Lost(name, problem), Abort("", problem, name, member.now))
                return
        self._await(name, cause)
        host.owner.notices.append(f"{name} was lost at {format_time(member.now)}: {cause}; waiting for it to come back")

    def _mark(self, name: str, before: int | None = None) -> Mark:
        """Return the place that a participant has come to, as far as is known; or had before a place in the journal."""
        answers = 0
        since: list[int] = []
        for place in self.journal.places(name):
            if before is not None and place >= before:
                break
            kind = self.journal.kind(place)
            if kind in ANSWERS:
                answers += 1
                since.clear()
            elif kind == RecordKind.HEARD:
                since.append(place)
        heard = [event for place in since for event in decode_events(self.journal.record(place).body)]
        return answers, len([event for event in heard if not isinstance(event, Reached)])

    def _await(self, name: str, cause: str) -> None:
        self.absent[name] = cause, 0.0

    def _died_twice(self, member: Member, cause: str, mark: Mark) -> ModelError:
        given = self._given(member.name, mark[0])
        shown = "; ".join(given[:_SHOWN_MAX]) or "no message, only leave to go on"
        more = f"; and {len(given) - _SHOWN_MAX} more" if len(given) > _SHOWN_MAX else ""
        return ModelError(
            f"it was lost twice at the same message ({cause}), so it wasn't started a third time; it had been given "
            f"{shown}{more}",
            participant=member.name,
            at=member.now,
            given=given,
        )

    def _given(self, name: str, answers: int) -> list[str]:
        """Return the messages of an answer, in words."""
        place = self.journal.place_of_answer(name, answers)
        answer = opened(self._answer(self.journal.record(place))) if place else None
        if not isinstance(answer, Grant):
            return []
        return [
            f"message {message.sequence} of {named(message.sender)} on {printable(message.topic)}, which arrived at "
            f"{format_time(message.arrival)}: {payload_text(message.payload)}"
            for message in answer.messages
        ]

    def tick(self, seconds: float) -> None:
        """Wait a little longer for participants that are away, unless that has been long enough."""
        host = self._host
        limit = host.limits.rejoin_s
        for name, (cause, missed_s) in host.lost().items():
            missed_s += max(0.0, seconds)
            self.absent[name] = cause, missed_s
            if limit is not None and missed_s > limit and not host.over:
                problem = f"{cause}, and it didn't come back within {limit:g} seconds"
                at = host.arbiter.time_of(name)
                advice = "limits.rejoin sets how long to wait"
                host.failure = LossError(problem, participant=name, at=at, advice=advice)
                host.break_off(Lost(name, problem), Abort("", problem, name, at))

    # --- Coming back ---

    def admitted(self, session: Session) -> None:
        """Rehearse a participant that has been admitted, and has been here before."""
        name = session.name
        member = self._host.arbiter.members.get(name)
        if member is not None and member.state is not State.EXPECTED:
            is_changed = bool(session.code) and self.journal.codes.get(name, session.code) != session.code
            if is_changed:
                doubts = self._host.owner.doubts
                if doubts is None:
                    self._host.owner.notices.append(f"{name}: {_CHANGED}")
                else:
                    doubts(name, _CHANGED)
            session.returning = Returning(name, "its code has been changed since" if is_changed else None)

    def _rehearse(self, session: Session, back: Returning, events: list[Told]) -> None:
        host = self._host
        if host.over:
            return
        if not back.begun:
            if not self._begin(session, back, events):
                return
            if self._is_live(session, back):
                self.hear(session, events)
                return
        if events and isinstance(last := events[-1], Fail):
            cause = shortened(last.cause)
            at = host.arbiter.time_of(session.name)
            host.drop(session, cause, ModelError(cause, participant=session.name, at=at))
            return
        for number, event in enumerate(events, 1):
            if isinstance(event, Recall | Restore):
                kept, where = self._restore(session, event, back.mark)
                if isinstance(event, Restore):
                    back.go_on_at(where, self.journal.place_of_answer(session.name, where[0]) or 0, kept)
            else:
                back.rehearsal.hear(event)  # type: ignore[arg-type] # what isn't of the lock isn't compared
                back.said += not isinstance(event, Reached | Snapshot)
            if self._is_live(session, back):
                if rest := events[number:]:
                    self.hear(session, rest)
                return

    def _begin(self, session: Session, back: Returning, events: list[Told]) -> bool:
        """Take the first word of a participant that has come back; return whether it is rehearsed."""
        name, first = session.name, events[0]
        member = self._host.arbiter.members[name]
        if isinstance(first, Resume | Restore):
            place = self.journal.place_of_answer(name, first.answers)
            known, said = self._mark(name)
            skipped = first.said if isinstance(first, Restore) else 0
            if place is None or skipped < 0 or (first.answers == known and skipped > said):
                self._turn_away(
                    session,
                    UNEXPECTED,
                    f"it has been given {first.answers:,} answers, and the journal knows of {known:,}: its end is "
                    "missing; start this participant anew",
                )
                return False
            back.go_on_at((first.answers, skipped), place)
            del events[0]
        elif isinstance(first, Join):
            if member.state is State.LEFT:
                self._turn_away(
                    session, TAKEN, f"participant {name!r} has left the run already, and has nothing more to do"
                )
                return False
            try:
                events[0] = self._host.agreed(name, first)
            except UsageError as error:
                self._turn_away(session, DECLARED, str(error))
                return False
        else:
            raise PeerError(f"{type(first).__name__} isn't possible before joining", participant=name)
        back.begun = True
        session.frames.admit(self._host.limits.payload_max)
        return True

    def _turn_away(self, session: Session, code: str, reason: str) -> None:
        """Refuse a participant that would come back, and go on waiting."""
        self._host.sessions.pop(session.name)
        session.returning = None
        self._host.refuse(session, code, reason)

    def _is_live(self, session: Session, back: Returning) -> bool:
        """Give a participant the answers that are due; return whether nothing is left to be rehearsed."""
        rehearsal = back.rehearsal
        while True:
            for answer in rehearsal.due():
                self._host.put(session, answer)
                back.answers += 1
                back.said = 0
            if not rehearsal.is_used_up:
                return False
            if not self._prompt(back):
                break
        self._enliven(session, back)
        return True

    def _prompt(self, back: Returning) -> bool:
        """Tell the rehearsal more of the script; return whether there is more."""
        rehearsal, journal = back.rehearsal, self.journal
        if not back.places:
            back.places.extend(journal.places(rehearsal.name, back.after))
            if not back.places:
                return False
        for _ in range(min(_PORTION, len(back.places))):
            back.after = back.places.popleft()
            record = journal.record(back.after)
            if record.kind in ANSWERS:
                rehearsal.answered(self._answer(record))
            elif record.kind is RecordKind.HEARD:
                for event in decode_events(record.body):
                    rehearsal.said(event)  # type: ignore[arg-type] # nothing else gets into a journal
        return True

    def _enliven(self, session: Session, back: Returning) -> None:
        """From now on the arbiter hears what it says."""
        host, name = self._host, session.name
        self.absent.pop(name, None)
        member = session.member = host.arbiter.members[name]
        back.is_live = True
        if member.state is State.LEFT:
            host.put(session, self._farewell(name))
        else:
            how = "" if back.restored_at is None else f" from its snapshot at {format_time(back.restored_at)}"
            host.owner.notices.append(f"{name} has come back{how}, and goes on at {format_time(member.now)}")

    def _without_past(self, session: Session, events: list[Told]) -> list[Told]:
        """Leave out times that a participant had said to have reached, and more, before it was lost."""
        now = self._host.arbiter.members[session.name].now
        later = [event for event in events if not (isinstance(event, Reached) and event.now < now)]
        if [event for event in later if not isinstance(event, Reached)]:
            session.returning = None
        return later

    # --- Hearing it all again ---

    def _hear_again(self) -> None:
        """Hear what the journal tells, and wait for all participants to come back (B4)."""
        journal = self.journal
        if not journal.is_resumed:
            return
        expected: deque[tuple[str, bytes]] = deque()
        for record in journal.records():
            try:
                if record.kind in ANSWERS:
                    if not expected or expected.popleft() != (record.name, self._answer(record)):
                        raise self._unlike(record)
                    continue
                actions = self._heard_again(record)
            except WorldlineError as error:
                if error.of_observer or isinstance(error, NonDeterminism | Interrupted):
                    raise
                raise self._unlike(record, error) from error
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise self._unlike(record, PeerError("what it says can't be read")) from error
            for action in actions:
                if isinstance(action, Over):
                    self._host.digest = action.digest
                elif isinstance(action, StartRun | Grant):
                    expected.append((action.to, encode_answer(action, self._host.flow.frame_max)))
            if self._host.over and self._host.digest is None:
                raise self._unlike(record, PeerError("the run is broken off there"))
        for name, answer in expected:  # They were about to be written.
            journal.answered(name, answer)
        for name, member in self._host.arbiter.members.items():
            if member.state not in (State.EXPECTED, State.LEFT):
                self._await(name, "its server was gone")

    def _heard_again(self, record: JournalRecord) -> Sequence[Action]:
        name, body = record.name, record.body
        if record.kind is RecordKind.HEARD:
            events: list[Any] = decode_events(body)
            actions = self._host.arbiter.hear(name, events)
            if len(body) >= HEAVY:
                self._payloads.note(name, self._host.arbiter.members[name].sequence, events, record.place)
            return actions
        if record.kind is RecordKind.ENROLLED:
            self._host.arbiter.enroll(name, _decode_join(body))
        elif record.kind is RecordKind.SNAPSHOT:
            _decode_kept(body)
        elif record.kind is RecordKind.LOST:
            lost = _decode_lost(body)
            if lost.name != name:
                raise PeerError("it tells of another participant")
            return self._host.arbiter.handle(OPERATOR, lost)
        elif record.kind is RecordKind.OPERATED:
            return self._host.arbiter.handle(OPERATOR, _decode_operated(body))
        return ()

    def _unlike(self, record: JournalRecord, error: WorldlineError | None = None) -> NonDeterminism:
        why = "other answers follow from it than were given" if error is None else error.problem
        return NonDeterminism(
            f"the journal {self.journal.path} can't be gone through again: at byte {record.place:,}, {why}",
            participant=record.name or None,
            advice="was it altered, or written by another version of Worldline? Begin a new one",
        )
