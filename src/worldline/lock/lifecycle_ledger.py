"""The ledger of a participant to which something happens: it boots late, crashes, hangs, is slow, or is stopped.

Theory of operation
-------------------
All of it is one rule about sequence points. **After a sequence point at t, the program goes on at `resumes(t)`**, which
isn't before t: a hang moves it to the hang's end, slowness by a delay. A wait of the program is therefore made of
several waits here: one to reach t, and others to get to where the program goes on. `receive` returns None in between.

A crash cuts a sequence point off: the program gets `Crashed` there instead. Being down, for a boot or after a crash, is
one more wait. The arbiter sees a participant that asks for times; all that it is told is when what arrives is lost
(`Down`), for whoever looks on.

Whoever can be told of an emergency stop is woken by it. So even an `advance` is then a series of waits for the next
message; what arrives is kept until the time that was asked for.

Invariants
----------
C1. `_arrived` is what has arrived and the program hasn't been given, in order; `_held` arrives at `now` or later (L1).
C2. What happens depends on simulated times and on the program's own sends and receipts, never on how far ahead it was
    granted. So it is the same wherever the participant runs, and in every interleaving.
C3. What arrives while it is down is lost, except what is durable; so says `Down`, and only that is counted as such.
    What had arrived before, and wasn't taken, is counted apart.
C4. What the program was told of the future stays true: a promise outlives a crash, and messages that were handed over
    for later are sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from worldline.history.journal import Befell
from worldline.lock.events import (
    Action,
    Advance,
    Down,
    Grant,
    Join,
    Leave,
    Log,
    Next,
    Publish,
    StartRun,
    Subscription,
)
from worldline.lock.ledger import Ledger
from worldline.lock.refusals import cant_go_back, no_emergency, no_estop
from worldline.lock.states import ROWS, State, StateRow
from worldline.model.clock import LocalClock
from worldline.model.draws.names import BOOT
from worldline.model.draws.table import DrawSource
from worldline.model.errors import UsageError
from worldline.model.faults.faults import ParticipantFault, spans_of
from worldline.model.latency import Fixed
from worldline.model.lifecycle import (
    ESTOP_LINE,
    ESTOP_LOG,
    FAULT_LINE,
    FAULT_LOG,
    Corruption,
    EmergencyNotice,
    Lifecycle,
    flipped,
)
from worldline.model.links import ESTOP_TOPIC, UNBOUNDED, check_estop_latency
from worldline.model.message import Message
from worldline.model.randomness import draw_bits, key_of
from worldline.model.reading import as_time
from worldline.model.time import FOREVER, TimeLike, format_time

_ACTING, _ADVANCING, _AWAITING, _PEEKING = (
    ROWS[State.COMPUTING],
    ROWS[State.ADVANCING],
    ROWS[State.AWAITING],
    ROWS[State.PEEKING],
)

DOWN = StateRow(State.COMPUTING)
"""Where a participant stands that has crashed and will be back: it can do nothing at all."""
DOWN.legal = frozenset()

# What the program waits for, and which part of that is under way.
_NOTHING, _ADVANCE, _NEXT, _REVIVAL = range(4)
_NO_STAGE, _REACHING, _STALLING, _BEING_DOWN = range(4)


class Crashed(BaseException):
    """The participant has crashed: its program ends here, and may be started again later.

    Not an `Exception`: a program that survived this by catching all exceptions wouldn't have crashed.
    """


class EmergencyStop(BaseException):
    """Somebody has called an emergency stop: `by` whom, `at` which time, and the `reason`.

    Not an `Exception`: a program that catches all exceptions in a loop would go on as if nothing had happened.
    """

    def __init__(self, by: str, at: int, reason: str) -> None:
        super().__init__(f"emergency stop by {by} at {format_time(at)}: {reason}")
        self.by = by
        self.at = at
        self.reason = reason


class LifecycleLedger(Ledger):
    """A ledger that makes happen what a participant's lifecycle says."""

    def __init__(
        self,
        name: str,
        join: Join,
        life: Lifecycle,
        *,
        period: int = 0,
        keep_journal: bool = False,
        clock: LocalClock | None = None,
    ) -> None:
        if life.estop is not None:
            check_estop_latency(name, join.latency_least, life.estop)
            join = with_estop(join)
        super().__init__(name, join, period=period, keep_journal=keep_journal, clock=clock)
        self._life = life
        self._declared = dict(self._buffers)
        self._declared_reach = 0
        self._durable = (*life.durable, ESTOP_TOPIC)
        self._crashes: list[tuple[int, int, ParticipantFault]] = spans_of(life.faults, name, "crash")
        self._hangs: list[tuple[int, int, ParticipantFault]] = spans_of(life.faults, name, "hang")
        self._slows: list[tuple[int, int, ParticipantFault]] = spans_of(life.faults, name, "slow")
        self._dropouts: list[tuple[int, int, ParticipantFault]] = spans_of(life.faults, name, "dropout")
        self._lost_from: dict[str, int] = {}  # While it is down: topic → from when on what arrives is lost.
        self._told_of: list[ParticipantFault] = []  # Those that a line has been written about.
        self._waiting = [each for each in life.faults if each.after is not None]  # For an event.
        self._counts: dict[tuple[str, str], int] = {}  # How many events there were of those waited for.
        self._crash_at = FOREVER
        self._look_ahead()
        self._corruption: Corruption | None = None
        self._kind = _NOTHING
        self._began = 0  # Where the program stood when it asked,
        self._goal = 0  # the time that it has asked for,
        self._aim = 0  # that as it is possible now,
        self._stage = _NO_STAGE
        self._resumes = 0  # and when the program goes on.
        self._reached = 0  # Where it would be if it weren't late: earlier times than that it must not ask for.
        self._inherited = 0  # What an earlier incarnation has promised.
        self._is_answered = False
        self._doom: ParticipantFault | None = None  # What ends it for good while it is down.
        self._arrived: list[Message] = []
        self._batch: list[Message] = []  # Those that it is about to be given.
        self._alarm: Message | None = None  # An emergency stop that has arrived, and that it wasn't told of yet.
        self._forestalling: Message | None = None  # One that was called before the one it knows of, likewise.
        self._has_given = False
        self._owed: list[Message] | None = None
        self._owed_row = _ACTING

    # --- To and from the arbiter ---

    def receive(self, action: Action) -> list[Message] | None:
        if action.__class__ is Grant and self._row in (_ADVANCING, _AWAITING, _PEEKING):
            is_peek = self._row is _PEEKING
            self._take_in(action)
            if is_peek:
                return []
            self._is_answered = True
            return self._go_on()
        result = Ledger.receive(self, action)
        if action.__class__ is not StartRun:
            return result
        self._is_marked = False
        self._declared_reach = self.reach
        if self._life.network is not None:
            self._corruption = Corruption(self._life.network, self._seed, self.name, self._table())
        self._resumes = min(self.now + self._boot_time(), FOREVER)
        self._kind, self._stage = _REVIVAL, _BEING_DOWN
        return self._go_on()

    def _boot_time(self) -> int:
        boot, table = self._life.boot, self._table()
        if boot is None:
            return 0
        if table is None or isinstance(boot, Fixed):  # What is fixed isn't drawn.
            return boot.draw(draw_bits(key_of(self._seed, "boot", self.name), 0))
        return int(table.draw(DrawSource((BOOT, self.name, "0"), boot, ("boot", self.name), 0), self.now))

    def forget_mark(self) -> None:
        self._has_given = False

    def take_back(self) -> None:
        """The program was interrupted before it had what the last call gave: it gets that by the same call again."""
        if self._has_given:
            self._has_given = False
            self._owed, self._owed_row = self._batch, self._row
            self._row = _ADVANCING if self._kind == _ADVANCE else _AWAITING

    # --- Operations that wait ---

    def advance(self, to: TimeLike) -> list[Message] | None:
        return self._wait_for(_ADVANCE, as_time(to), Advance)

    def next(self, until: TimeLike | None = None, promise: TimeLike | None = None) -> list[Message] | None:
        if promise is not None and self._stage == _NO_STAGE and self._owed is None:
            self.promise(promise)
        return self._wait_for(_NEXT, FOREVER if until is None else as_time(until), Next)

    def peek(self, until: TimeLike | None = None) -> int | None:
        if self._row is _ACTING and (self._arrived or self._alarm is not None):
            return self.now  # There is something to be taken.
        limit = FOREVER if until is None else max(as_time(until), self.now)
        if self._crash_at < limit:
            limit = self._crash_at
        return Ledger.peek(self, None if limit == FOREVER else limit)

    def revive(self) -> list[Message] | None:
        if self._kind != _REVIVAL:
            if self._row is not DOWN:
                return []
            self._row = _ACTING
            self._kind, self._stage = _REVIVAL, _BEING_DOWN
            return self._go_on()
        return None  # It was interrupted.

    def _wait_for(self, kind: int, goal: int, event: type) -> list[Message] | None:
        if self._owed is not None or self._stage != _NO_STAGE:  # It was interrupted.
            if self._kind != kind or self._goal != goal:
                self._refuse_now(event)
            return self._give_again()
        if self._row is not _ACTING:
            self._check(event)
        target = self._not_late(goal)
        if target < self.now:
            self._refuse(cant_go_back(target))
        if target == self.now and not self._arrived and self._alarm is None:
            self.note_idle_call()
        self._began, self._kind, self._goal, self._aim, self._stage = self.now, kind, goal, target, _REACHING
        self._batch = []
        if self._period:
            is_given_at_once = self._arrived or self._alarm is not None
            acts = self.now if is_given_at_once else self._acts_next(target)
            if kind == _ADVANCE and not self._is_listening():
                acts = min(target, self._crash_at)  # After that, another incarnation may be back before the target.
            self._keep_period(acts)
        return self._go_on()

    def _give_again(self) -> list[Message] | None:
        batch = self._owed
        if batch is not None:
            self._row = self._owed_row
            self._owed = None
            self._has_given = True
        return batch

    def _go_on(self) -> list[Message] | None:
        """Take the steps that can be taken now. None: there is a request in the outbox."""
        while True:
            if self._stage == _BEING_DOWN and not self._stay_down():
                return None
            if self._stage == _REACHING and not self._reach():
                return None
            if self._stage == _STALLING and not self._stall():
                return None
            if self._stage != _BEING_DOWN:
                return self._give()

    def _reach(self) -> bool:
        """Go to the sequence point that the program has asked for."""
        is_next = self._kind == _NEXT
        while self._alarm is None and not (is_next and self._arrived):
            limit = min(self._aim, self._crash_at)
            if not self._move(limit, is_next or self._is_listening()):
                return False
            if self._row.ended:
                break
            if self._crash_at <= self.now:
                self._crash()
            if self.now >= self._aim:
                break
        self._reached = min(self._goal, self.now)
        self._stage, self._resumes = _STALLING, self.now
        arrived, dropped = self._arrived, self.dropped
        if self._row.ended or self._alarm is None:
            self._batch = self._sift(self._arrived) if self._sifts else self._arrived
            self._arrived = []
        if is_next and self._batch:  # It may be given them late, and go by when they arrived.
            self._reached = min(self._reached, self._batch[0].arrival)
        if not self._row.ended:
            for message in self._batch:
                self._count("receives", message.topic, self.now)
            if self._crash_at <= self.now:  # It isn't given anything, so its buffers have nothing to decide.
                self._batch, self._arrived, self.dropped = [], arrived, dropped
                self._crash()
            self._resumes = self._resumption(self.now)
        return True

    def _stall(self) -> bool:
        """Go to where the program goes on, and keep what arrives meanwhile."""
        while self.now < self._resumes and not self._row.ended:
            limit = min(self._resumes, self._crash_at)
            if not self._move(limit, limit == FOREVER):
                return False
            if self._crash_at <= self.now and not self._row.ended:
                if self._kind != _REVIVAL:
                    self._crash()
                self._go_down()  # Its program hasn't begun, and needn't be ended.
                self._kind = _REVIVAL
                if self._row is DOWN:
                    self._row, self._stage = _ACTING, _BEING_DOWN
                return True
        if self.now < self._resumes:  # It would have gone on after the run's end.
            self._lose(self._batch)
            self._batch = []
        return True

    def _stay_down(self) -> bool:
        """Wait for the end of a boot, or for the recovery from a crash."""
        before = -1
        while self._doom is None and before < self._resumes:  # To wait for its period may be to wait for a crash.
            before = self._resumes
            for at, until, fault in self._crashes:
                if at <= self._resumes and self._doom is None:  # It crashes while it is down: it is down for longer.
                    self._doom = fault if until == FOREVER else None
                    self._resumes = max(self._resumes, until) if self._doom is None else max(at, self.now)
            if self._doom is None:
                self._resumes = self._on_time(self._resumes)
        if self.now < self._resumes:
            self._tell_down(self._resumes if self._doom is None else FOREVER)
            if not self._move(self._resumes, False):
                return False
        self._stage, self._batch = _STALLING, []
        if self._row.ended:
            self._resumes = self.now
        elif self._doom is not None:
            self._stage = _NO_STAGE
            self._end_for_good(self._doom)
        else:
            self._rise()
            self._resumes = self._resumption(self.now)
        return True

    def _rise(self) -> None:
        """Be up, from the beginning: all that has arrived meanwhile is lost, except what is durable."""
        kept = [message for message in self._arrived if message.topic in self._durable]
        self._lose(message for message in self._arrived if message.topic not in self._durable)
        self._arrived = kept
        self._lost_from = {}
        meanwhile = [crash[2] for crash in self._crashes if crash[0] <= self.now]
        self._crashes = [crash for crash in self._crashes if crash[0] > self.now]
        self._look_ahead()
        self._reached, self._inherited = 0, self._promised
        before = self.incarnation
        if self.is_crashed:
            self.is_crashed = False
            self.incarnation += 1
        for fault in meanwhile:
            self._befall(f"{fault}, before it was up")
        if self.incarnation > before:
            self._befall(f"it recovers, and is incarnation {self.incarnation}")
        elif self._life.boot is not None:
            self._befall("it has booted")

    def _crash(self) -> NoReturn:
        """End the program here."""
        fault = self._go_down()
        raise Crashed(f"{self.name} at {format_time(self.now)}: {fault}")

    def _go_down(self) -> ParticipantFault:
        """Be down, for good or until it recovers; return because of what."""
        if self._stage != _NO_STAGE:  # Otherwise the program has been given them.
            self._arrived = self._batch + self._arrived
        self._batch = []
        self._kind, self._stage = _NOTHING, _NO_STAGE
        until = max(crash[1] for crash in self._crashes if crash[0] <= self.now)
        fault = next(crash[2] for crash in self._crashes if crash[0] <= self.now)
        self._crashes = [crash for crash in self._crashes if crash[0] > self.now]
        self._look_ahead()
        if until == FOREVER:
            self._end_for_good(fault)
        else:
            self._befall(str(fault))
            self._subscribe_as_declared()
            self.is_crashed = True
            self._resumes = until
            self._row = DOWN
        return fault

    def _tell_down(self, until: int) -> None:
        """Tell, once, that what arrives from now on is lost, except what is durable (C3)."""
        if self._lost_from:
            return
        now, is_complete = self.now, self._complete_at == self.now
        given = [topic for topic in self._buffers if is_complete and topic not in self._incomplete]
        for message in self._arrived:
            if message.arrival == now and message.topic in given:
                given.remove(message.topic)  # It has arrived just now, and the program wasn't given it.
        self._lost_from = {topic: now + (topic in given) for topic in self._buffers if topic not in self._durable}
        if self._lost_from:
            self._told = now
            self._outbox.append(Down(now, until, self._lost_from))

    def _subscribe_as_declared(self) -> None:
        """Subscribe to what was declared, and as it was: whatever the program has made of that is gone with it.

        What has arrived of declared topics stays, since it may be durable.
        """
        arrived, self._arrived = self._arrived, []
        for topic, buffer in list(self._buffers.items()):
            if self._declared.get(topic) != buffer:
                self.unsubscribe(topic)
        for topic, buffer in self._declared.items():
            if topic not in self._buffers:
                self.subscribe(topic, buffer)
        self._arrived = [message for message in arrived if message.topic in self._declared]
        self._lose(message for message in arrived if message.topic not in self._declared)
        self.reach = self._declared_reach

    def _end_for_good(self, fault: ParticipantFault) -> None:
        self.is_crashed = False  # Until it has said its last words.
        self._befall(str(fault))
        self._tell_down(FOREVER)
        self._lose(self._arrived)
        self._arrived = []
        Ledger.leave(self)
        self.is_crashed = True

    def _give(self) -> list[Message]:
        """Let the program go on with what has arrived."""
        is_start = self._kind == _REVIVAL
        self._stage = _NO_STAGE
        if self._dropouts and not self.is_crashed:
            self._note_dropouts()
        if self._alarm is not None and not self._row.ended and not is_start and not self.is_crashed:
            self._arrived = self._batch + self._arrived
            self._batch = []
            self._kind = _NOTHING
            self._sound(self._alarm)
        if self._forestalling is not None and not self.is_crashed:
            self._learn_of(self._forestalling)  # It isn't woken: it knows that everybody is to stop.
        batch = self._batch
        if batch:
            if self._corruption is not None:
                batch = self._batch = self._corrupted(batch)
            self.journal.note_received(self.now, batch)
        if is_start:
            self._kind = _NOTHING
            return []
        self._has_given = True
        return batch

    def _corrupted(self, batch: list[Message]) -> list[Message]:
        assert self._corruption is not None
        found = []
        for message in batch:
            bit = self._corruption.bit_of(message, self.now)
            if bit is not None:
                if not self._row.ended:
                    what = f"{message.topic} from {message.sender} arrives with bit {bit} flipped"
                    self.journal.note_aside(Befell(self.now, what))
                    self._tell_line(f"{FAULT_LOG}{what}", FAULT_LINE)
                message = flipped(message, bit)
            found.append(message)
        return found

    # --- Moving ---

    def _move(self, target: int, wakes: bool) -> bool:
        """Go to a time, or to the first arrival before it; False: that has to be asked for."""
        first = self._first()
        if wakes and first < min(self.horizon, target):
            self._gather(first + 1)
            self._complete(first)
            self.now = first
        elif target <= self.horizon or self._final:
            if target > self.horizon or target == FOREVER:
                target = self._retire(target)
            self._gather(target)
            self.now = target
        else:
            self._until = target
            self._outbox += (Next(target, first) if wakes else Advance(target),)
            self._row = _AWAITING if wakes else _ADVANCING
            return False
        if self._is_answered:
            self._is_answered = False
            self._told = self.now  # The arbiter works the same out from its side.
        return True

    def _gather(self, before: int) -> None:
        """Take what arrives before a time out of what is held (C1)."""
        while self._first() < before:
            message = self._held.popleft()
            if message.topic != ESTOP_TOPIC or self._life.estop is None:
                self._arrived.append(message)
            elif self.estopped is None:
                self._alarm = _earlier(message, self._alarm)
            elif (message.sent, message.sender) < (self.estopped.at, self.estopped.by):
                self._forestalling = _earlier(message, self._forestalling)

    def _resumption(self, reached: int) -> int:
        """Return when the program goes on after a sequence point."""
        resumes = self._after_hangs(reached)
        slows = [fault for start, end, fault in self._slows if start <= resumes < end]
        for fault in slows:
            self._befall_once(fault)
        if slows:
            resumes = self._after_hangs(min(resumes + max([fault.delay for fault in slows]), FOREVER))
        if resumes > reached and self._period and resumes < FOREVER:
            resumes = self.clock.due(self._period, resumes)
        return resumes

    def _after_hangs(self, time: int) -> int:
        """Return the first time from then on at which it doesn't hang."""
        covering = [hang for hang in self._hangs if hang[0] <= time < hang[1]]
        while covering:
            time = covering[0][1]
            self._befall_once(covering[0][2])
            covering = [hang for hang in self._hangs if hang[0] <= time < hang[1]]
        return time

    def _not_late(self, time: int) -> int:
        """Return a time that the program names, or now if it would have been possible had nothing happened."""
        return self.now if self._reached <= time < self.now else time

    def stands(self) -> int:
        is_asking = self._stage != _NO_STAGE and self._kind != _REVIVAL
        return self._began if is_asking or self._owed is not None else self.now

    def due_since(self) -> int:
        return self._reached

    def may_give(self, until: int) -> bool:
        if self._stage != _NO_STAGE or self._owed is not None:  # It was interrupted, and asks again.
            return True
        return self.now < until or (bool(self._arrived) and self._reached <= until)

    def _look_ahead(self) -> None:
        self._crash_at = min([crash[0] for crash in self._crashes], default=FOREVER)

    # --- Operations that only tell ---

    def publish(self, topic: str, payload: bytes, at: TimeLike | None = None) -> None:
        sent = self.now if at is None else self._not_late(as_time(at, "a send time"))
        if sent < self._inherited:
            sent = self._inherited
        if at is None and self.estopped is not None:  # That wakes it where it may not send: it does so when it may.
            sent = self._on_time(max(sent, self._promised))
        if topic == ESTOP_TOPIC and self._life.estop is not None:
            self._refuse(UsageError(f"{ESTOP_TOPIC} is for emergency stops", advice="call estop(reason)"))
        Ledger.publish(self, topic, payload, sent)
        if self._waiting:
            self._count("sends", topic, sent)
            if self._crash_at <= self.now:
                self._crash()

    def promise(self, until: TimeLike) -> None:
        promised = as_time(until, "a promise")
        if self._row is _ACTING and (self._reached <= promised < self.now or promised < self._inherited):
            return  # It has been kept by now; or an earlier incarnation has promised more.
        Ledger.promise(self, promised)

    def unsubscribe(self, topic: str) -> None:
        Ledger.unsubscribe(self, topic)
        self._lose(message for message in self._arrived if message.topic == topic)
        self._arrived = [message for message in self._arrived if message.topic != topic]

    def invite(self, newcomer: str, at: TimeLike) -> None:
        Ledger.invite(self, newcomer, self._possible(as_time(at, "the time to invite")))

    def stop(self, at: TimeLike) -> None:
        Ledger.stop(self, self._possible(as_time(at, "the time to stop")))

    def _possible(self, at: int) -> int:
        """Return the time of a control operation, or the first that is possible if it is late."""
        is_late = self._reached < self.now and self._reached <= at
        return max(at, max(self.now, self._promised) + self._control_latency) if is_late else at

    def leave(self) -> None:
        if self._row is DOWN:
            self._check(Leave)
        if self.state is not State.LEFT and Leave in self._row.legal:
            self._lose(self._arrived)
            self._arrived = []
        Ledger.leave(self)

    def estop(self, reason: str) -> int:
        self._check(Publish)
        if self._life.estop is None:
            self._refuse(no_estop())
        if self.estopped is None and self._alarm is not None:
            self._learn_of(self._alarm)  # It had been called before.
        if self.estopped is None:
            at = self._on_time(max(self.now, self._promised))
            text = str(reason)
            Ledger.publish(self, ESTOP_TOPIC, text.encode("utf-8", "replace"), at)
            self.estopped = EmergencyNotice(self.name, at, text)
            self._note_estop(f"{ESTOP_LOG}: {text}")
        return self.estopped.at + self._life.estop

    def estop_done(self, what: str) -> None:
        self._check(Log)
        if self.estopped is None:
            self._refuse(no_estop() if self._life.estop is None else no_emergency())
        self._note_estop(f"{ESTOP_LOG}, done: {what}")

    def _sound(self, alarm: Message) -> NoReturn:
        """Tell the program of an emergency stop, once."""
        notice = self._learn_of(alarm)
        raise EmergencyStop(notice.by, notice.at, notice.reason)

    def _learn_of(self, alarm: Message) -> EmergencyNotice:
        """Know of an emergency stop that somebody else has called, before all others that are known here."""
        self._alarm = self._forestalling = None
        self.estopped = notice = EmergencyNotice(alarm.sender, alarm.sent, _reason_of(alarm))
        self._note_estop(f"{ESTOP_LOG}, told by {notice.by}: {notice.reason}")
        return notice

    def _is_listening(self) -> bool:
        """Whether an emergency stop would wake it."""
        return self._life.estop is not None and self.estopped is None

    def _on_time(self, time: int) -> int:
        """Return the first time from then on at which it sends."""
        return self.clock.due(self._period, time) if self._period else time

    # --- What happens to it ---

    def _count(self, verb: str, topic: str, at: int) -> None:
        """Count an event, and let happen what waits for it."""
        if not self._waiting:
            return
        key = (verb, topic)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        for fault in list(self._waiting):
            after = fault.after
            if after is not None and (after.verb, after.topic, after.count) == (verb, topic, count):
                self._waiting.remove(fault)
                span = (at, FOREVER if fault.lasts is None else min(at + fault.lasts, FOREVER), fault)
                spans = {"crash": self._crashes, "hang": self._hangs, "slow": self._slows}[fault.verb]
                spans.append(span)
        self._look_ahead()

    def _awaited(self) -> dict[str, int]:
        return {
            str(fault): self._counts.get((fault.after.verb, fault.after.topic), 0)
            for fault in self._waiting
            if fault.after is not None
        }

    def _befall(self, what: str) -> None:
        """Note what has happened to it, for the digest and for whoever looks on."""
        if not self._row.ended:
            self.journal.note_fate(self.now, what)
            self._tell_line(FAULT_LOG + what, FAULT_LINE)

    def _note_estop(self, line: str) -> None:
        """Likewise, note what it has to do with an emergency stop."""
        if not self._row.ended:
            self.journal.note_fate(self.now, line)
            self._tell_line(line, ESTOP_LINE)

    def _note_dropouts(self) -> None:
        """Note that what it sends from now on is lost: the network sees to that."""
        for start, end, fault in self._dropouts:
            if start <= self.now < end:
                self._befall_once(fault)

    def _befall_once(self, fault: ParticipantFault) -> None:
        if fault not in self._told_of:
            self._told_of.append(fault)
            self._befall(str(fault))

    def _lose(self, messages: Iterable[Message]) -> None:
        """Count messages that arrived and that the program will never be given: while it was down, or before (C3)."""
        missed, untaken = dict(self.missed), dict(self.untaken)
        for message in messages:
            topic = message.topic
            counts = missed if message.arrival >= self._lost_from.get(topic, FOREVER) else untaken
            counts[topic] = counts.get(topic, 0) + 1
        self.missed, self.untaken = missed, untaken

    def restored(self) -> None:
        """Begin at the beginning: a snapshot would have to know what has befallen it, so none is kept of it."""
        self._asked_for_state = True

    # --- What it may not do ---

    def _check(self, kind: type) -> None:
        if self.is_crashed:
            raise Crashed(f"{self.name} at {format_time(self.now)}: it has crashed")
        Ledger._check(self, kind)

    def _waits_for(self) -> tuple[State, int]:
        if self._row is _PEEKING:
            return Ledger._waits_for(self)
        return State.ADVANCING if self._kind == _ADVANCE else State.AWAITING, self._goal


def _earlier(alarm: Message, other: Message | None) -> Message:
    """Return the emergency stop that counts. It need not arrive first: a sender may need longer than others."""
    return alarm if other is None or (alarm.sent, alarm.sender) < (other.sent, other.sender) else other


def _reason_of(alarm: Message) -> str:
    return alarm.payload.decode("utf-8", "replace")


def with_estop(join: Join) -> Join:
    """Return what a participant declares that can call an emergency stop, and is told of one."""
    publishes = join.publishes
    if publishes is not None and ESTOP_TOPIC not in publishes:
        publishes = (*publishes, ESTOP_TOPIC)
    subscribes = join.subscribes
    if all(each.topic != ESTOP_TOPIC for each in subscribes):
        subscribes = (*subscribes, Subscription(ESTOP_TOPIC, UNBOUNDED))
    return Join(publishes, subscribes, join.latency_least, join.controls)


def without_estop(join: Join) -> Join:
    """Return what it declares by itself."""
    publishes = None if join.publishes is None else tuple(each for each in join.publishes if each != ESTOP_TOPIC)
    subscribes = tuple(each for each in join.subscribes if each.topic != ESTOP_TOPIC)
    return Join(publishes, subscribes, join.latency_least, join.controls)
