"""What happens to a participant: it boots late, crashes, hangs, is slow, or is stopped.

Theory of operation
-------------------
All of it is one rule about sequence points. **After a sequence point at t, the program goes on at `resumes(t)`**, which
isn't before t: a hang moves it to the hang's end, slowness by a delay. A wait of the program is therefore made of
several waits of its ledger: one to reach t, and others to get to where the program goes on. In between, the ledger's
`receive` returns None.

So a `LifecycleFilter` stands between the program and the ledger. The ledger leaves the waits to it (`advance`, `next`,
`revive`, and `answered` for each answer), and asks it at the other operations where it has a say: when a message is
sent, whether a promise is kept by now, whether a control operation is late. It knows the ledger; all that the ledger
knows of it is these calls. A ledger without one behaves as if nothing ever happened.

A crash cuts a sequence point off: the program gets `Crashed` there instead. Being down, for a boot or after a crash, is
one more wait. The arbiter sees a participant that asks for times; all that it is told is when what arrives is lost
(`Down`), for those who look on.

A participant that can be told of an emergency stop is woken by it. So even an `advance` is then a series of waits for
the next message; what arrives is kept until the time that was asked for.

Invariants
----------
C1. `arrived` is what has arrived and the program hasn't been given, in order; what the ledger holds arrives at its
    `now` or later (L1).
C2. What happens depends on simulated times and on the program's own sends and receipts, never on how far ahead it was
    granted. So it is the same wherever the participant runs, and in every interleaving.
C3. What arrives while it is down is lost, except what is durable; so says `Down`, and only that is counted as such.
    What had arrived before, and wasn't taken, is counted apart.
C4. What the program was told of the future stays true: a promise outlives a crash, and messages that were handed over
    for later are sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NoReturn

from worldline.history.journal import Befell
from worldline.lock.events import Advance, Down, Join, Leave, Log, Next, Publish, Subscription
from worldline.lock.ledger import Ledger
from worldline.lock.refusals import cant_go_back, no_estop
from worldline.lock.states import ROWS, State, StateRow
from worldline.model.clock import LocalClock
from worldline.model.draws.names import BOOT
from worldline.model.draws.table import DrawSource
from worldline.model.errors import UsageError
from worldline.model.faults import ParticipantFault, spans_of
from worldline.model.latency import Fixed
from worldline.model.lifecycle import (
    DOWN_LINE,
    ESTOP_LINE,
    ESTOP_LOG,
    FAULT_LINE,
    FAULT_LOG,
    UNEVENTFUL,
    UP_LINE,
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

_ACTING, _ADVANCING, _AWAITING = ROWS[State.COMPUTING], ROWS[State.ADVANCING], ROWS[State.AWAITING]

DOWN = StateRow(State.COMPUTING)
"""Where a participant stands that has crashed and will be back: it can do nothing at all."""
DOWN.legal = frozenset()


class Crashed(BaseException):
    """The participant has crashed: its program ends here, and may be started again later.

    Not an `Exception`: a program that survived this by catching all exceptions wouldn't have crashed.
    """


class EmergencyStop(BaseException):
    """A participant has called an emergency stop: `by` whom, `at` which time, and the `reason`.

    Not an `Exception`: a program that catches all exceptions in a loop would go on as if nothing had happened.
    """

    def __init__(self, by: str, at: int, reason: str) -> None:
        super().__init__(f"emergency stop by {by} at {format_time(at)}: {reason}")
        self.by = by
        self.at = at
        self.reason = reason


def ledger_of(
    name: str,
    join: Join,
    life: Lifecycle,
    *,
    period: int = 0,
    keep_journal: bool = False,
    clock: LocalClock | None = None,
) -> Ledger:
    """Return the ledger of a participant to which this happens."""
    if life.estop is not None:
        check_estop_latency(name, join.latency_least, life.estop)
        join = with_estop(join)
    ledger = Ledger(name, join, period=period, keep_journal=keep_journal, clock=clock)
    if life != UNEVENTFUL:
        ledger.life = LifecycleFilter(ledger, life)
    return ledger


_OF_PROCESSES = ("kill", "signal")


class FaultTimes:
    """When faults happen to a participant: from when until when, or after which event."""

    def __init__(self, faults: tuple[ParticipantFault, ...], name: str) -> None:
        verbs = ("crash", "hang", "slow", "dropout", "partition", *_OF_PROCESSES)
        self.spans: dict[str, list[tuple[int, int, ParticipantFault]]] = {
            verb: spans_of(faults, name, verb) for verb in verbs
        }
        self.waiting = [each for each in faults if each.after is not None]
        self._counts: dict[tuple[str, str], int] = {}  # How many events there were of those waited for.
        self.told_of: list[ParticipantFault] = []  # Those that a line has been written about.
        self.next_crash = FOREVER
        self._look_ahead()

    def covering(self, verb: str, time: int) -> list[tuple[int, int, ParticipantFault]]:
        """Return those that happen at a time, in the order of the plan."""
        return [span for span in self.spans[verb] if span[0] <= time < span[1]]

    def take_crashes(self, until: int) -> list[tuple[int, int, ParticipantFault]]:
        """Return the crashes until a time, and forget them."""
        taken = [crash for crash in self.spans["crash"] if crash[0] <= until]
        self.spans["crash"] = [crash for crash in self.spans["crash"] if crash[0] > until]
        self._look_ahead()
        return taken

    def count(self, verb: str, topic: str, at: int) -> None:
        """Count an event, and let happen what waits for it."""
        if not self.waiting:
            return
        key = (verb, topic)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        for fault in list(self.waiting):
            after = fault.after
            if after is not None and (after.verb, after.topic, after.count) == (verb, topic, count):
                self.waiting.remove(fault)
                until = FOREVER if fault.lasts is None else min(at + fault.lasts, FOREVER)
                self.spans[fault.verb].append((at, until, fault))
        self._look_ahead()

    def awaited(self) -> dict[str, int]:
        """Return the faults that wait for an event to this day, and how many such events there were."""
        return {
            str(fault): self._counts.get((fault.after.verb, fault.after.topic), 0)
            for fault in self.waiting
            if fault.after is not None
        }

    def _look_ahead(self) -> None:
        self.next_crash = min([crash[0] for crash in self.spans["crash"]], default=FOREVER)


class WaitStage(Enum):
    """How far a wait of the program has got."""

    NONE = 0
    """It doesn't wait."""
    REACHING = 1
    """On the way to the sequence point that it has asked for,"""
    STALLING = 2
    """from there to where it goes on,"""
    BEING_DOWN = 3
    """or to where it is up."""
    GIVEN = 4
    """It has been given what it waited for, and may not have it yet if it is interrupted now."""
    TAKEN_BACK = 5
    """It was interrupted: the same call gives that again."""


_NONE, _REACHING, _STALLING, _BEING_DOWN, _GIVEN, _TAKEN_BACK = WaitStage


class ProgramWait:
    """What the program waits for, how far that has got, and what it is about to be given.

    `kind` is Advance or Next; None, if it waits to be started. `began` is where the program stood when it asked, `goal`
    the time that it has asked for, `aim` that as it is possible now, and `resumes` when the program goes on.
    """

    def __init__(self) -> None:
        self.kind: type | None = None
        self.stage = _NONE
        self.began = 0
        self.goal = 0
        self.aim = 0
        self.resumes = 0
        self.batch: list[Message] = []
        self.row = _ACTING  # Where the program stands once it has what was taken back.
        self.is_answered = False  # Whether the ledger has been granted what it has asked for, and hasn't moved yet.

    def is_under_way(self) -> bool:
        """Whether the program has asked and doesn't have what it has asked for."""
        return self.stage is not _NONE and self.stage is not _GIVEN


class Emergency:
    """An emergency stop, as a participant knows it: those that arrive, and the `notice` of the one that counts.

    The earliest that was called counts. It need not arrive first: a sender may need longer than others.
    """

    def __init__(self, latency: int | None) -> None:
        self.latency = latency  # Within which it is told of one; None: there is none.
        self.notice: EmergencyNotice | None = None
        self.alarm: Message | None = None  # One that has arrived, and of which it wasn't told yet.
        self.earlier: Message | None = None  # One that was called before the one it knows of, likewise.

    @property
    def may_wake(self) -> bool:
        """Whether an emergency stop would wake it."""
        return self.latency is not None and self.notice is None

    def hear(self, alarm: Message) -> None:
        """Take in one that has arrived."""
        if self.notice is None:
            self.alarm = _earlier(alarm, self.alarm)
        elif (alarm.sent, alarm.sender) < (self.notice.at, self.notice.by):
            self.earlier = _earlier(alarm, self.earlier)

    def learn_of(self, alarm: Message) -> EmergencyNotice:
        """Know of one that another participant has called, before all others that are known here."""
        self.alarm = self.earlier = None
        self.notice = EmergencyNotice(alarm.sender, alarm.sent, alarm.payload.decode("utf-8", "replace"))
        return self.notice


def _earlier(alarm: Message, other: Message | None) -> Message:
    return alarm if other is None or (alarm.sent, alarm.sender) < (other.sent, other.sender) else other


class Losses:
    """Counts what arrived and the program will never be given: while it was down, or before (C3)."""

    def __init__(self, durable: tuple[str, ...]) -> None:
        self.durable = durable
        self.since: dict[str, int] = {}  # While it is down: topic → from when on what arrives is lost.
        self.missed: dict[str, int] = {}  # Topic → how many got lost because it was down,
        self.untaken: dict[str, int] = {}  # and how many had arrived and were never taken.

    def lose(self, messages: Iterable[Message]) -> None:
        for message in messages:
            topic = message.topic
            counts = self.missed if message.arrival >= self.since.get(topic, FOREVER) else self.untaken
            counts[topic] = counts.get(topic, 0) + 1


class LifecycleFilter:
    """Makes happen to a participant, at its ledger, what its lifecycle says."""

    def __init__(self, ledger: Ledger, life: Lifecycle) -> None:
        self.ledger = ledger
        self._life = life
        self._declared = dict(ledger.topics.buffers)
        self._declared_reach = 0
        self._corruption: Corruption | None = None
        self._faults = FaultTimes(life.faults, ledger.name)
        self._losses = Losses((*life.durable, ESTOP_TOPIC))
        self.emergency = Emergency(life.estop)
        self._wait = ProgramWait()
        self._arrived: list[Message] = []
        self.reached = 0  # Where it would be if it weren't late: earlier times than that it must not ask for.
        self._inherited = 0  # What an earlier incarnation has promised.
        self._last_fault: ParticipantFault | None = None  # What ends it for good while it is down.
        self.is_crashed = False
        self.incarnation = 0

    @property
    def estopped(self) -> EmergencyNotice | None:
        """The emergency stop that it knows of."""
        return self.emergency.notice

    # --- The program's waits ---

    def start(self) -> list[Message] | None:
        """The run has started: it boots."""
        ledger = self.ledger
        self._declared_reach = ledger.reach
        if self._life.network is not None:
            seed, table = ledger.draws.seed, ledger.draws.table()
            self._corruption = Corruption(self._life.network, seed, ledger.name, table)
        self._wait.resumes = min(ledger.now + self._boot_time(), FOREVER)
        return self._wait_to_be_up()

    def _boot_time(self) -> int:
        boot, name = self._life.boot, self.ledger.name
        table = self.ledger.draws.table()
        if boot is None:
            return 0
        if table is None or isinstance(boot, Fixed):  # What is fixed isn't drawn.
            return boot.draw(draw_bits(key_of(self.ledger.draws.seed, "boot", name), 0))
        return int(table.draw(DrawSource((BOOT, name, "0"), boot, ("boot", name), 0), self.ledger.now))

    def revive(self) -> list[Message] | None:
        """After a crash, wait until the program is started again."""
        if self._wait.is_under_way() and self._wait.kind is None:
            return None  # It was interrupted.
        if self.ledger.row is not DOWN:
            return []
        self.ledger.row = _ACTING
        return self._wait_to_be_up()

    def _wait_to_be_up(self) -> list[Message] | None:
        self._wait.kind, self._wait.stage = None, _BEING_DOWN
        return self._go_on()

    def answered(self) -> list[Message] | None:
        """The ledger has been granted what it has asked for."""
        self._wait.is_answered = True
        return self._go_on()

    def advance(self, goal: int) -> list[Message] | None:
        return self._wait_for(Advance, goal)

    def next(self, goal: int, promise: TimeLike | None) -> list[Message] | None:
        if promise is not None and not self._wait.is_under_way():
            self.ledger.promise(promise)
        return self._wait_for(Next, goal)

    def _wait_for(self, kind: type, goal: int) -> list[Message] | None:
        ledger, wait = self.ledger, self._wait
        if wait.is_under_way():  # It was interrupted.
            if wait.kind is not kind or wait.goal != goal:
                ledger.refuse_now(kind)
            return self._give_again()
        if ledger.row is not _ACTING:
            ledger.check(kind)
        target = self._not_late(goal)
        if target < ledger.now:
            ledger.refuse(cant_go_back(target))
        is_given_at_once = self.has_arrivals()
        if target == ledger.now and not is_given_at_once:
            ledger.note_idle_call()
        wait.began, wait.kind, wait.goal, wait.aim, wait.stage = ledger.now, kind, goal, target, _REACHING
        wait.batch = []
        if ledger.period:
            acts = ledger.now if is_given_at_once else ledger.acts_next(target)
            if kind is Advance and not self.emergency.may_wake:
                # After a crash, another incarnation may be back before the target.
                acts = min(target, self._faults.next_crash)
            ledger.keep_period(acts)
        return self._go_on()

    def forget_given(self) -> None:
        """The program has what it was given."""
        if self._wait.stage is _GIVEN:
            self._wait.stage = _NONE

    def take_back(self) -> None:
        """The program was interrupted before it had what the last call gave: it gets that by the same call again."""
        wait = self._wait
        if wait.stage is _GIVEN:
            wait.stage, wait.row = _TAKEN_BACK, self.ledger.row
            self.ledger.row = _ADVANCING if wait.kind is Advance else _AWAITING

    def _give_again(self) -> list[Message] | None:
        wait = self._wait
        if wait.stage is not _TAKEN_BACK:
            return None
        self.ledger.row, wait.stage = wait.row, _GIVEN
        return wait.batch

    def waits_for(self) -> tuple[State, int]:
        """Return what the program waits for, and until when."""
        return State.ADVANCING if self._wait.kind is Advance else State.AWAITING, self._wait.goal

    def stands(self) -> int:
        """Return where the program stands."""
        wait = self._wait
        return wait.began if wait.is_under_way() and wait.kind is not None else self.ledger.now

    def may_give(self, until: int) -> bool:
        """Whether a wait until a time that isn't ahead can bring anything."""
        if self._wait.is_under_way():  # It was interrupted, and asks again.
            return True
        return bool(self._arrived) and self.reached <= until

    def has_arrivals(self) -> bool:
        """Whether there is something to be taken at once."""
        return bool(self._arrived) or self.emergency.alarm is not None

    def peek_limit(self, until: TimeLike | None) -> int | None:
        """Return how far a peek may look: not beyond a crash."""
        limit = FOREVER if until is None else max(as_time(until), self.ledger.now)
        limit = min(limit, self._faults.next_crash)
        return None if limit == FOREVER else limit

    # --- The stages of a wait ---

    def _go_on(self) -> list[Message] | None:
        """Take the steps that can be taken now. None: there is a request in the outbox."""
        wait = self._wait
        while True:
            if wait.stage is _BEING_DOWN and not self._stay_down():
                return None
            if wait.stage is _REACHING and not self._reach():
                return None
            if wait.stage is _STALLING and not self._stall():
                return None
            if wait.stage is not _BEING_DOWN:
                return self._give()

    def _move(self, target: int, wakes: bool) -> bool:
        """Go to a time, or to the first arrival before it; False: that has been asked for."""
        ledger = self.ledger
        if not ledger.knows(target, wakes):
            ledger.ask(target, wakes)
            return False
        for message in ledger.go(target, wakes):
            if message.topic == ESTOP_TOPIC and self.emergency.latency is not None:
                self.emergency.hear(message)
            else:
                assert not self._arrived or self._arrived[-1].arrival <= message.arrival, "C1: in order"
                self._arrived.append(message)
        if self._wait.is_answered:
            self._wait.is_answered = False
            ledger.told = ledger.now  # The arbiter works the same out from its side.
        return True

    def _reach(self) -> bool:
        """Go to the sequence point that the program has asked for."""
        ledger, wait, faults = self.ledger, self._wait, self._faults
        is_next = wait.kind is Next
        while self.emergency.alarm is None and not (is_next and self._arrived):
            if not self._move(min(wait.aim, faults.next_crash), is_next or self.emergency.may_wake):
                return False
            if ledger.row.ended:
                break
            if faults.next_crash <= ledger.now:
                self._crash()
            if ledger.now >= wait.aim:
                break
        self.reached = min(wait.goal, ledger.now)
        wait.stage, wait.resumes = _STALLING, ledger.now
        arrived, dropped = self._arrived, ledger.topics.dropped
        if ledger.row.ended or self.emergency.alarm is None:
            wait.batch = ledger.topics.sift(arrived) if ledger.topics.sifts else arrived
            self._arrived = []
        if is_next and wait.batch:  # It may be given them late, and go by when they arrived.
            self.reached = min(self.reached, wait.batch[0].arrival)
        if not ledger.row.ended:
            for message in wait.batch:
                faults.count("receives", message.topic, ledger.now)
            if faults.next_crash <= ledger.now:  # It isn't given anything, so its buffers have nothing to decide.
                wait.batch, self._arrived, ledger.topics.dropped = [], arrived, dropped
                self._crash()
            wait.resumes = self._resumption(ledger.now)
        return True

    def _stall(self) -> bool:
        """Go to where the program goes on, and keep what arrives meanwhile."""
        ledger, wait, faults = self.ledger, self._wait, self._faults
        while ledger.now < wait.resumes and not ledger.row.ended:
            limit = min(wait.resumes, faults.next_crash)
            if not self._move(limit, limit == FOREVER):
                return False
            if faults.next_crash <= ledger.now and not ledger.row.ended:
                if wait.kind is not None:
                    self._crash()
                self._go_down()  # Its program hasn't begun, and needn't be ended.
                if ledger.row is DOWN:
                    ledger.row, wait.stage = _ACTING, _BEING_DOWN
                return True
        if ledger.now < wait.resumes:  # It would have gone on after the run's end.
            self._losses.lose(wait.batch)
            wait.batch = []
        return True

    def _stay_down(self) -> bool:
        """Wait for the end of a boot, or for the recovery from a crash."""
        ledger, wait = self.ledger, self._wait
        before = -1
        while self._last_fault is None and before < wait.resumes:  # To wait for its period may be to wait for a crash.
            before = wait.resumes
            for at, until, fault in self._faults.spans["crash"]:
                if at <= wait.resumes and self._last_fault is None:  # It crashes while down: it is down for longer.
                    self._last_fault = fault if until == FOREVER else None
                    wait.resumes = max(wait.resumes, until) if self._last_fault is None else max(at, ledger.now)
            if self._last_fault is None:
                wait.resumes = self._on_time(wait.resumes)
        if ledger.now < wait.resumes:
            self._tell_down(wait.resumes if self._last_fault is None else FOREVER)
            if not self._move(wait.resumes, False):
                return False
        wait.stage, wait.batch = _STALLING, []
        if ledger.row.ended:
            wait.resumes = ledger.now
        elif self._last_fault is not None:
            wait.stage = _NONE
            self._end_for_good(self._last_fault)
        else:
            self._rise()
            wait.resumes = self._resumption(ledger.now)
        return True

    def _give(self) -> list[Message]:
        """Let the program go on with what has arrived."""
        ledger, wait, emergency = self.ledger, self._wait, self.emergency
        is_start = wait.kind is None
        wait.stage = _NONE
        if not self.is_crashed:
            for verb in ("dropout", "partition"):
                for span in self._faults.covering(verb, ledger.now):
                    self._note_once(span[2])  # What it sends from now on is lost: the network sees to that.
            if emergency.alarm is not None and not ledger.row.ended and not is_start:
                self._arrived = wait.batch + self._arrived
                wait.batch = []
                notice = self._learn_of(emergency.alarm)
                raise EmergencyStop(notice.by, notice.at, notice.reason)
            if emergency.earlier is not None:
                self._learn_of(emergency.earlier)  # It isn't woken: it knows that all are to stop.
        if wait.batch:
            if self._corruption is not None:
                wait.batch = self._corrupted(self._corruption, wait.batch)
            ledger.journal.note_received(ledger.now, wait.batch)
        if is_start:
            return []
        wait.stage = _GIVEN
        return wait.batch

    def _corrupted(self, corruption: Corruption, batch: list[Message]) -> list[Message]:
        ledger = self.ledger
        found = []
        for message in batch:
            bit = corruption.bit_of(message, ledger.now)
            if bit is not None:
                if not ledger.row.ended:
                    what = f"{message.topic} from {message.sender} arrives with bit {bit} flipped"
                    ledger.journal.note_aside(Befell(ledger.now, what))
                    ledger.tell_line(f"{FAULT_LOG}{what}", FAULT_LINE)
                message = flipped(message, bit)
            found.append(message)
        return found

    # --- Being up and down ---

    def _rise(self) -> None:
        """Be up, from the beginning: all that has arrived meanwhile is lost, except what is durable."""
        durable = self._losses.durable
        self._losses.lose(message for message in self._arrived if message.topic not in durable)
        self._arrived = [message for message in self._arrived if message.topic in durable]
        self._losses.since = {}
        meanwhile = self._faults.take_crashes(self.ledger.now)
        self.reached, self._inherited = 0, self.ledger.promised  # C4
        recovers = self.is_crashed
        if recovers:
            self.is_crashed = False
            self.incarnation += 1
        for crash in meanwhile:
            self._note_fault(f"{crash[2]}, before it was up")
        if recovers:
            self._note_fault(f"it recovers, and is incarnation {self.incarnation}", UP_LINE)
        elif self._life.boot is not None:
            self._note_fault("it has booted", UP_LINE)

    def _crash(self) -> NoReturn:
        """End the program here."""
        fault = self._go_down()
        raise Crashed(f"{self.ledger.name} at {format_time(self.ledger.now)}: {fault}")

    def _go_down(self) -> ParticipantFault:
        """Be down, for good or until it recovers; return because of what."""
        wait = self._wait
        if wait.is_under_way():  # Otherwise the program has been given them.
            self._arrived = wait.batch + self._arrived
        wait.batch = []
        wait.kind, wait.stage = None, _NONE
        crashes = self._faults.take_crashes(self.ledger.now)
        assert crashes, "C2: it goes down because of a crash that is due"
        until = max(crash[1] for crash in crashes)
        fault = crashes[0][2]
        if until == FOREVER:
            self._end_for_good(fault)
        else:
            self._note_fault(str(fault), DOWN_LINE)
            self._subscribe_as_declared()
            self.is_crashed = True
            wait.resumes = until
            self.ledger.row = DOWN
        return fault

    def _end_for_good(self, fault: ParticipantFault) -> None:
        self.is_crashed = False  # Until it has said its last words.
        self._note_fault(str(fault), DOWN_LINE)
        self._tell_down(FOREVER)
        self.ledger.leave()
        self.is_crashed = True

    def _tell_down(self, until: int) -> None:
        """Tell, once, that what arrives from now on is lost, except what is durable (C3)."""
        ledger, losses = self.ledger, self._losses
        if losses.since:
            return
        now = ledger.now
        given = [topic for topic in ledger.topics.buffers if ledger.topics.is_given(topic, now)]
        for message in self._arrived:
            if message.arrival == now and message.topic in given:
                given.remove(message.topic)  # It has arrived just now, and the program wasn't given it.
        losses.since = {topic: now + (topic in given) for topic in ledger.topics.buffers if topic not in losses.durable}
        if losses.since:
            ledger.told = now
            ledger.outbox.append(Down(now, until, losses.since))

    def _subscribe_as_declared(self) -> None:
        """Subscribe to what was declared, and as it was: whatever the program has made of that is gone with it.

        What has arrived of declared topics stays, since it may be durable.
        """
        ledger, declared = self.ledger, self._declared
        arrived, self._arrived = self._arrived, []
        for topic, buffer in list(ledger.topics.buffers.items()):
            if declared.get(topic) != buffer:
                ledger.unsubscribe(topic)
        for topic, buffer in declared.items():
            if topic not in ledger.topics.buffers:
                ledger.subscribe(topic, buffer)
        self._arrived = [message for message in arrived if message.topic in declared]
        self._losses.lose(message for message in arrived if message.topic not in declared)
        ledger.reach = self._declared_reach

    def _resumption(self, reached: int) -> int:
        """Return when the program goes on after a sequence point."""
        resumes = self._after_hangs(reached)
        slows = [span[2] for span in self._faults.covering("slow", resumes)]
        for fault in slows:
            self._note_once(fault)
        if slows:
            resumes = self._after_hangs(min(resumes + max([fault.delay for fault in slows]), FOREVER))
        if reached < resumes < FOREVER:
            resumes = self._on_time(resumes)
        assert resumes >= reached, "C2: a program goes on at its sequence point, or later"
        return resumes

    def _after_hangs(self, time: int) -> int:
        """Return the first time from then on at which it doesn't hang."""
        while hangs := self._faults.covering("hang", time):
            time = hangs[0][1]
            self._note_once(hangs[0][2])
        return time

    def _not_late(self, time: int) -> int:
        """Return a time that the program names, or now if it would have been possible had nothing happened."""
        return self.ledger.now if self.reached <= time < self.ledger.now else time

    def _on_time(self, time: int) -> int:
        """Return the first time from then on at which it sends."""
        period = self.ledger.period
        return self.ledger.clock.due(period, time) if period else time

    # --- Where it has a say in what the program tells ---

    def check_up(self) -> None:
        """Refuse everything of one that has crashed."""
        if self.is_crashed:
            raise Crashed(f"{self.ledger.name} at {format_time(self.ledger.now)}: it has crashed")

    def send_time(self, topic: str, at: TimeLike | None) -> int:
        """Return when a message is sent that the program sends now or at a time."""
        sent = self.ledger.now if at is None else self._not_late(as_time(at, "a send time"))
        if sent < self._inherited:
            sent = self._inherited
        if at is None and self.emergency.notice is not None:
            # That has woken it where it may not send: it does so when it may.
            sent = self._on_time(max(sent, self.ledger.promised))
        if topic == ESTOP_TOPIC and self.emergency.latency is not None:
            self.ledger.refuse(UsageError(f"{ESTOP_TOPIC} is for emergency stops", advice="call estop(reason)"))
        return sent

    def has_sent(self, topic: str, sent: int) -> None:
        """A message has been sent: it may crash because of that."""
        if self._faults.waiting:
            self._faults.count("sends", topic, sent)
            if self._faults.next_crash <= self.ledger.now:
                self._crash()

    # --- Faults of a program whose machine goes on ---

    def process_fault_due(self) -> int:
        """Return when the next one happens."""
        spans = self._faults.spans
        return min([span[0] for verb in _OF_PROCESSES for span in spans[verb]], default=FOREVER)

    def take_process_faults(self) -> list[tuple[int, ParticipantFault]]:
        """Return those that happen by now, each with the time at which it is over, and forget them."""
        taken = []
        for verb in _OF_PROCESSES:
            due = [span for span in self._faults.spans[verb] if span[0] <= self.ledger.now]
            self._faults.spans[verb] = [span for span in self._faults.spans[verb] if span[0] > self.ledger.now]
            for span in due:
                self._note_fault(str(span[2]))
                taken.append((span[1], span[2]))
        return taken

    def has_kept(self, promised: int) -> bool:
        """Whether a promise has been kept by now, or an earlier incarnation has promised more."""
        return self.reached <= promised < self.ledger.now or promised < self._inherited

    def has_unsubscribed(self, topic: str) -> None:
        """A topic isn't received any more."""
        self._losses.lose(message for message in self._arrived if message.topic == topic)
        self._arrived = [message for message in self._arrived if message.topic != topic]

    def is_late_for(self, time: int) -> bool:
        """Whether a control operation would have been possible had nothing happened: it is then done when it can be."""
        return self.reached < self.ledger.now and self.reached <= time

    def before_leaving(self) -> None:
        if self.ledger.row is DOWN:
            self.check_up()
        if Leave in self.ledger.row.legal:
            self._losses.lose(self._arrived)
            self._arrived = []

    def last_words(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """Return what was missed, the faults that wait to this day, and what was never taken: see `Leave`."""
        return self._losses.missed, self._faults.awaited(), self._losses.untaken

    # --- Emergency stops ---

    def estop(self, reason: str) -> int:
        """Tell all participants to stop; return by when they know."""
        ledger, emergency = self.ledger, self.emergency
        ledger.check(Publish)
        if emergency.latency is None:
            ledger.refuse(no_estop())
        if emergency.notice is None and emergency.alarm is not None:
            self._learn_of(emergency.alarm)  # It had been called before.
        if emergency.notice is None:
            at = self._on_time(max(ledger.now, ledger.promised))
            text = str(reason)
            payload = text.encode("utf-8", "replace")
            ledger.check_send(ESTOP_TOPIC, payload, at)
            ledger.outbox.append(Publish(ESTOP_TOPIC, payload, at))
            ledger.journal.note_sent(at, ESTOP_TOPIC, payload)
            emergency.notice = EmergencyNotice(ledger.name, at, text)
            self._note_estop(f"{ESTOP_LOG}: {text}")
        return emergency.notice.at + emergency.latency

    def estop_done(self, what: str) -> None:
        """Say what was done about an emergency stop."""
        self.ledger.check(Log)
        if self.emergency.notice is None:
            unknown = UsageError("no emergency stop has been called, or it doesn't know of it yet")
            self.ledger.refuse(no_estop() if self.emergency.latency is None else unknown)
        self._note_estop(f"{ESTOP_LOG}, done: {what}")

    def _learn_of(self, alarm: Message) -> EmergencyNotice:
        notice = self.emergency.learn_of(alarm)
        self._note_estop(f"{ESTOP_LOG}, told by {notice.by}: {notice.reason}")
        return notice

    # --- Lines about it, for the digest and for those who look on ---

    def _note_fault(self, what: str, kind: str = FAULT_LINE) -> None:
        self._note(what, FAULT_LOG + what, kind)

    def _note_once(self, fault: ParticipantFault) -> None:
        if fault not in self._faults.told_of:
            self._faults.told_of.append(fault)
            self._note_fault(str(fault))

    def _note_estop(self, line: str) -> None:
        self._note(line, line, ESTOP_LINE)

    def _note(self, what: str, line: str, kind: str) -> None:
        ledger = self.ledger
        if not ledger.row.ended:
            ledger.journal.note_fate(ledger.now, what)
            ledger.tell_line(line, kind)


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
