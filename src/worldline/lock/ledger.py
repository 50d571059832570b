"""The ledger: a participant's own end of the lock.

Theory of operation
-------------------
Sans-IO, like the arbiter. Operations that only tell (publish, promise, subscribe, ...) are checked here, written
down, and put into the outbox; they never wait. `advance`, `next` and `peek` are served from what was granted ahead if
that reaches far enough; otherwise they put a request into the outbox and return None, and `receive` of the answer
returns what they would have. After a `peek` that is nothing: the same call, made again, is served then.

A wrong call raises at its caller and changes nothing, so the participant can go on.

A program may be interrupted while it waits. What it has asked for stays asked: the arbiter lets others go ahead on the
strength of it, so it can't be taken back or changed. The same call again takes the wait up; anything else raises.

Invariants
----------
L1. Everything in `_held` arrives at `now` or later; in order; and on topics that are subscribed.
L2. Everything that arrives before `horizon` on a subscribed topic has been handed over to this ledger.
L3. Hence a sequence point at T ≤ horizon is served completely from `_held`, and a batch at m < horizon too.
L4. Subscribing breaks L2 for the new topic, so it takes the horizon back to `now`; inviting and stopping take it back
    to the newcomer's start and the end. What is held stays held: the arbiter won't send it again. Therefore a request
    says the first held arrival. Without it the arbiter would believe that the participant can't act before its bound,
    and might let others pass the time at which it really acts.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import msgspec

from worldline.history.journal import Journal, Noted
from worldline.lock.events import (
    Abort,
    Action,
    Advance,
    Grant,
    Invite,
    Join,
    Leave,
    LedgerState,
    Log,
    Next,
    ParticipantEvent,
    Peek,
    Promise,
    Publish,
    Reached,
    Recalled,
    Restore,
    Snapshot,
    StartRun,
    Stop,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from worldline.lock.refusals import (
    breaks_promise,
    cant_go_back,
    cant_peek,
    control_too_early,
    idle,
    impossible,
    misses_local_period,
    misses_period,
    no_control,
    no_estop,
    not_at_the_beginning,
    not_restorable,
    not_subscribed,
    subscribed_already,
    takes_back_promise,
    too_large,
    undeclared,
    unreadable_snapshot,
)
from worldline.lock.states import GONE, RETIRED, ROWS, State, StateRow
from worldline.model.clock import TRUE_TIME, LocalClock
from worldline.model.draws.table import DrawFunction, Drawn, DrawRow, DrawTable, NamedStream, clock_in_run
from worldline.model.errors import BrokenOff, PeerError, UsageError, WorldlineError, shortened
from worldline.model.lifecycle import EmergencyNotice
from worldline.model.links import UNBOUNDED, Buffer, as_buffer, sift
from worldline.model.message import Message, check_name
from worldline.model.payload import PAYLOAD_MAX
from worldline.model.randomness import Stream
from worldline.model.reading import as_time
from worldline.model.time import FOREVER, TIME_MAX, TimeLike, format_time

_encode_state = msgspec.msgpack.Encoder().encode
_decode_state = msgspec.msgpack.Decoder(LedgerState).decode
IDLE_CALLS_MAX = 100_000
"""So many calls at one time that ask for that very time, with nothing sent, are a loop that never ends."""

_WAITS = {State.ADVANCING: ("advance", "to"), State.AWAITING: ("next", "until"), State.PEEKING: ("peek", "until")}

# Looked up often: where all acts are legal, and where one waits.
_ACTING, _ADVANCING, _AWAITING, _PEEKING = (
    ROWS[State.COMPUTING],
    ROWS[State.ADVANCING],
    ROWS[State.AWAITING],
    ROWS[State.PEEKING],
)


class RunEnded(BaseException):
    """The run has ended; there is nothing left to do but return.

    Not an `Exception`: a program that catches all exceptions in a loop would go on forever.
    """


def broken_off(abort: Abort) -> BrokenOff:
    """Return the end of a run as an error that names who caused it."""
    participant = None if abort.participant is None else shortened(abort.participant)
    text = f"the run was broken off: {shortened(abort.cause)}"
    return BrokenOff(text, participant=participant, at=abort.at, told=abort.to, cause=shortened(abort.cause))


class Ledger:
    """What one participant has promised, been granted, received and sent."""

    def __init__(
        self,
        name: str,
        join: Join,
        *,
        period: int = 0,
        keep_journal: bool = False,
        clock: LocalClock | None = None,
    ) -> None:
        self.name = check_name(name, "a participant")
        self.journal = Journal(keep=keep_journal)
        self.now = 0
        self.horizon = 0
        self._row = ROWS[State.JOINED]
        self.dropped: dict[str, int] = {}  # Topic → how many messages its buffer dropped,
        self.missed: dict[str, int] = {}  # how many got lost because it was down, and
        self.untaken: dict[str, int] = {}  # how many had arrived and were never taken: see `LifecycleLedger`.
        self.payload_max = PAYLOAD_MAX  # A server may take less.
        self._outbox: list[ParticipantEvent] = [join]
        self._publishes = join.publishes
        self._controls = join.controls
        self._buffers = {subscription.topic: subscription.buffer for subscription in join.subscribes}
        self._sifts = any(buffer != UNBOUNDED for buffer in self._buffers.values())
        self._topics: dict[str, bool] = {}  # Those that have been found good.
        self._period = period  # In the time of its clock.
        self.has_clock = clock is not None
        self._described = clock
        self.clock = TRUE_TIME  # Until it starts: its own depends on the run's seed.
        self.reads_at, self.reads = -1, 0  # The reading of that clock to which it has advanced, and when that was.
        self._promised = 0
        self._told = 0  # The time that the arbiter knows this participant to have reached.
        self._held: deque[Message] = deque()
        self._final = False
        self._until = 0
        self._idle_at = -1  # Where it last asked for a time that had come already, and how often.
        self._idle_calls = 0
        self._idle_sent = 0  # How many messages it had sent before it did so.
        # At a time reached by `next`, all arrivals of that very time have been given, except on topics subscribed
        # since.
        self._complete_at = -1
        self._incomplete: list[str] = []
        self._finished: list[str] = []  # Topics that were complete and have been unsubscribed since.
        self._seed = 0
        self._control_latency = 0
        self.reach = 0  # How far it may peek; 0 if nobody knows.
        self._streams: dict[tuple[str, ...], Stream] = {}
        self.load_draw_function: Callable[[str], DrawFunction] | None = None  # Finds what the run's table names.
        self.draws_heard: Callable[[Drawn], None] | None = None  # Told every draw of its streams.
        self._rows: tuple[DrawRow, ...] = ()
        self._draws: DrawTable | None = None
        self.has_snapshot: bool | None = None  # Whether the server has one of it; None: it keeps none.
        self._kept: Recalled | None = None  # That one.
        self._is_fresh = False  # Whether it has started, and nothing has been said since.
        self._asked_for_state = False  # Whether the program has asked from where it goes on, and so can be restored.
        self._restored: bytes | None = None  # The program's part of the snapshot from which it goes on.
        self.careful = False  # Whether the program may be interrupted before it has what it is given: see `take_back`.
        self._is_marked = False
        self._is_served = False  # Whether a call was taken back of which the arbiter knows: see there.
        self._called: tuple[StateRow, int] = (_ACTING, 0)
        self._before: tuple[Any, ...] = ()
        self._lists: tuple[Any, ...] = ()
        self._given: list[Message] = []
        self._waited: int | None = None  # Since when it waited for a next message, once it knows that none can come.
        self.incarnation = 0  # How often its program was started again: see `LifecycleLedger`.
        self.is_crashed = False
        self.estopped: EmergencyNotice | None = None

    @property
    def state(self) -> State:
        return self._row.state

    @property
    def ended(self) -> bool:
        """Whether the run has ended for this participant."""
        return self._row.ended

    @property
    def subscriptions(self) -> tuple[str, ...]:
        return tuple(self._buffers)

    def stands(self) -> int:
        """Return where the program stands: while it waits, where it did before, however far that has got."""
        return self.now

    def due_since(self) -> int:
        """Return where the program would stand if nothing made it late."""
        return self.now

    def may_give(self, until: int) -> bool:
        """Whether a wait for messages until then can bring any: that time is ahead, or it is late and some are there.

        Otherwise there is nothing to wait for.
        """
        return self.now < until

    # --- To and from the arbiter ---

    def take_outbox(self) -> list[ParticipantEvent]:
        """Return what the arbiter must be told, in order, and forget it."""
        taken: list[ParticipantEvent] = []
        self.hand_over(taken)
        return taken

    def hand_over(self, taken: list[ParticipantEvent]) -> None:
        """Move what the arbiter must be told behind what was taken before: all of it, or, if interrupted, nothing."""
        if self._outbox:
            self._is_fresh = False
        taken += self._outbox
        self._outbox = []

    def receive(self, action: Action) -> list[Message] | None:
        """Take the answer that this participant waits for; return the messages of its sequence point.

        None, which only a `LifecycleLedger` returns: there is more in the outbox, and another answer to wait for.
        """
        if action.__class__ is Abort:  # Wherever it stands: the run is over.
            self._row = GONE
            raise broken_off(action)
        row = self._row.moves.get(action.__class__)
        if row is None:
            if isinstance(action, Recalled):
                self._kept = action
                return []
            self._refuse(PeerError(f"{type(action).__name__} isn't an answer to one that is {self.state.value}"))
        if self.careful:
            self._mark(self._row, self._until, self._held.copy() if self._held else ())
        if row is _ACTING and action.__class__ is Grant:
            return self._granted(action)
        self._row = row
        if isinstance(action, StartRun):
            self.now = self.horizon = self._told = action.now
            self._seed = action.seed
            self._rows = action.draws
            if self._described is not None:
                self.clock = clock_in_run(self._described, self._seed, self.name, self._table(), self._time)
            self._control_latency = action.control_latency
            self.reach = action.reach
            self._is_fresh = True
        elif isinstance(action, Grant):  # The run ended before this newcomer's start.
            self.now = action.horizon
        return []

    def _mark(self, waits: StateRow, until: int, held: Iterable[Message] | None = None) -> None:
        """Remember how it is, and what is held if that will change by more than being given, for `take_back`.

        And what it was called for: where it waits until it is answered, and the time that it asks for.
        """
        self._before = (self.now, self.horizon, self._row, self._final, self._complete_at, self._waited)
        self._called = (waits, until)
        self._lists = (self._incomplete, self._finished, self.dropped, held)
        self._given = []
        self.journal.mark()
        self._is_marked = True

    def forget_mark(self) -> None:
        """The program has what the last call gave: that stays, whatever happens next."""
        self._is_marked = False

    def take_back(self) -> None:
        """Take back what the last call gave to a `careful` program: it was interrupted before it had it.

        What the arbiter was told can't be taken back. If that is the time which the call had reached, the program is
        bound to make the same call again, as if it still waited.
        """
        if self._is_marked:
            self._is_marked = False
            self.now, self.horizon, self._row, self._final, self._complete_at, self._waited = self._before
            self._incomplete, self._finished, self.dropped, held = self._lists
            if held is None:
                self._held.extendleft(reversed(self._given))
            else:
                self._held = deque(held)
            self.journal.take_back()
            if self._told > self.now and self._row is _ACTING:
                self._row, self._until = self._called
                self._is_served = True

    def _granted(self, grant: Grant) -> list[Message]:
        waited = self._row
        self._take_in(grant)
        if waited is _PEEKING:
            return []  # It stays where it is, and now knows what it has asked for.
        messages = self._wake() if waited is _AWAITING else self._go_to(self._until)
        self._told = self.now  # The arbiter works the same out from its side.
        return messages

    def _take_in(self, grant: Grant) -> None:
        """Hold what a grant brings, and know what it says; then the program may act again, from where it is."""
        horizon, messages = grant.horizon, grant.messages
        if not (horizon >= self._until or grant.final or self._wakes(grant)):
            granted, asked = format_time(horizon), format_time(self._until)
            self._refuse(PeerError(f"a grant up to {granted} doesn't answer a request for {asked}"))
        held = self._held
        if not held:
            held.extend(messages)
        else:
            for message in messages:
                if message < held[-1]:
                    insort(held, message)  # Only behind a late subscription is anything held that arrives later.
                else:
                    held.append(message)
        self.horizon = horizon
        self._final = grant.final
        self._row = _ACTING

    def _wakes(self, grant: Grant) -> bool:
        """Whether a grant brings the next message that is waited for, or makes one that is held complete."""
        if self._row is _ADVANCING:
            return False
        first = self._first()
        for message in grant.messages:
            first = min(first, message.arrival)
        return first < min(grant.horizon, self._until)

    # --- Operations that wait ---

    def advance(self, to: TimeLike) -> list[Message] | None:
        """Ask for a sequence point at `to`: all that arrives before it. None: wait for the answer and `receive` it."""
        self._is_marked = False
        if self._row is _ADVANCING and as_time(to) == self._until:  # It was interrupted.
            if not self._is_served:
                return None
            self._serve_again()
        target = self._target(to, Advance)
        if self._period:
            self._keep_period(target)
        if target <= self.horizon or self._final:
            if self.careful:
                self._mark(_ADVANCING, target)
            return self._go_to(target)
        request = Advance(target)
        self._until = target  # An interruption comes after a call: all of this happens, or nothing.
        self._outbox += (request,)
        self._row = _ADVANCING
        return None

    def next(self, until: TimeLike | None = None, promise: TimeLike | None = None) -> list[Message] | None:
        """Ask for all messages of the next arrival time before `until`, or none at `until`. None as for `advance`.

        A promise is made before anything else.
        """
        self._is_marked = False
        if self._row is _AWAITING and (FOREVER if until is None else as_time(until)) == self._until:
            if not self._is_served:
                return None
            self._serve_again()
        elif promise is not None:
            self.promise(promise)
        if until is None:
            if self._row is not _ACTING:
                self._check(Next)
            self._until = FOREVER
        else:
            self._until = self._target(until, Next)
        if self._period:
            self._keep_period(self._acts_next(self._until))
        first = self._first()
        if first < min(self.horizon, self._until) or self._until <= self.horizon or self._final:
            if self.careful:
                self._mark(_AWAITING, self._until)
            return self._wake()
        request = Next(self._until, first)
        self._outbox += (request,)
        self._row = _AWAITING
        return None

    def _serve_again(self) -> None:
        """Go on with a call that was taken back: all that it takes is known."""
        self._is_served = False
        self._row = _ACTING

    def _first(self) -> int:
        """Return the first arrival that is held."""
        return self._held[0].arrival if self._held else FOREVER

    def peek(self, until: TimeLike | None = None) -> int | None:
        """Say when the next message arrives, or up to when none does, without going there. None as for `advance`.

        After the answer, the same call says it. It looks at most as far ahead as `reach`: what is sent from now on may
        bring answers then. And no further than the run's end.
        """
        self._is_marked = False
        if self._row is _PEEKING and self._sight(until) == self._until:
            return None
        if until is None:
            self._check(Peek)
        else:
            self._target(until, Peek)
        if not self.reach:
            self._refuse(cant_peek())
        if self._period:
            self._keep_period(self.now)
        sight = self._sight(until)
        first = self._first()
        if first < min(self.horizon, sight):
            return first
        if sight <= self.horizon:
            return sight
        if self._final:
            if self.now == self.horizon:
                self._row = RETIRED
            return self.horizon
        self.tell_time()  # It stays where it is, and the arbiter must know where that is.
        request = Peek(sight, first)
        self._until = sight
        self._outbox += (request,)
        self._row = _PEEKING
        return None

    def _sight(self, until: TimeLike | None) -> int:
        """Return how far a peek looks: what it sends now may be answered after that."""
        farthest = min(self.now + self.reach, TIME_MAX)
        return max(self.now, farthest if until is None else min(as_time(until), farthest))

    def _target(self, time: TimeLike, kind: type) -> int:
        if self._row is not _ACTING:
            self._check(kind)
        target = as_time(time)
        if target <= self.now:
            if target < self.now:
                self._refuse(cant_go_back(target))
            self.note_idle_call()
        return target

    def note_idle_call(self) -> None:
        """Count a call that asks for a time that has come already: one in a loop would be made for ever.

        A program that sends in between has more of them, since it may send many messages at one time.
        """
        if self._idle_at != self.now:
            self._idle_at, self._idle_sent, self._idle_calls = self.now, self.journal.sent, 0
        self._idle_calls += 1
        limit = IDLE_CALLS_MAX if self.journal.sent == self._idle_sent else 10 * IDLE_CALLS_MAX
        if self._idle_calls >= limit:
            self._idle_calls = 0
            self._refuse(idle(self.now, limit))

    def _acts_next(self, until: int) -> int:
        """Return the first time at which it may act again once it waits for a message until a time."""
        is_complete = self._complete_at == self.now < until and not self._incomplete
        return self.now + 1 if is_complete else self.now

    def _keep_period(self, acts: int) -> None:
        """Promise by itself: whoever sends only at multiples of a period sends none before the next one."""
        due = self.clock.due(self._period, acts)
        if self._promised < due <= TIME_MAX and acts < due:  # Acting only then says as much as promising it.
            self._promised = due
            self._outbox.append(Promise(due))

    def _wake(self) -> list[Message]:
        """Serve `next`: go to the first arrival if it is complete and in time, else to the time asked for."""
        held = self._held
        first = self._first()
        if first < min(self.horizon, self._until):
            batch = [held.popleft()]
            while self._first() == first:
                batch.append(held.popleft())
            self._complete(first)
            return self._arrive(first, batch)
        return self._go_to(self._until)

    def _complete(self, moment: int) -> None:
        """Note that all arrivals of a moment are given, on all topics that are subscribed to."""
        self._incomplete = []
        if self._complete_at != moment:
            self._complete_at = moment
            self._finished = []

    def _go_to(self, target: int) -> list[Message]:
        """Serve a sequence point; where the run ends before the target, at its end."""
        if target > self.horizon or target == FOREVER:
            target = self._retire(target)
        held = self._held
        batch = []
        while self._first() < target:
            batch.append(held.popleft())
        return self._arrive(target, batch)

    def _retire(self, target: int) -> int:
        """Return where the run ends, before the target. A final grant says so, or that nothing can come any more."""
        if target == FOREVER:
            self._waited = self.now
        self._row = RETIRED
        return self.now if self.horizon == FOREVER else self.horizon

    def _arrive(self, now: int, batch: list[Message]) -> list[Message]:
        self.now = now
        if batch:
            self._given = batch
            if self._sifts:
                batch = self._sift(batch)
            self.journal.note_received(now, batch)
        return batch

    def _sift(self, batch: list[Message]) -> list[Message]:
        kept = sift(batch, self._buffers)
        if len(kept) < len(batch):
            remaining = Counter(message.topic for message in kept)
            dropped = Counter(self.dropped)
            for topic, count in Counter(message.topic for message in batch).items():
                if count > remaining[topic]:
                    dropped[topic] += count - remaining[topic]
            self.dropped = dict(dropped)
        return kept

    # --- Operations that only tell ---

    def publish(self, topic: str, payload: bytes, at: TimeLike | None = None) -> None:
        """Send a message, now or at a later time."""
        now = self.now
        sent = now if at is None else as_time(at, "a send time")
        if (
            self._row is not _ACTING
            or self._period
            or sent < now
            or sent < self._promised
            or sent > TIME_MAX
            or payload.__class__ is not bytes
            or len(payload) > self.payload_max
            or topic.__class__ is not str
            or topic not in self._topics
        ):
            self._check_send(topic, payload, sent)
            topic, payload = str.__str__(topic), bytes(payload)  # Of their kind, they may be more than that.
        self._outbox.append(Publish(topic, payload, sent))
        self.journal.note_sent(sent, topic, payload)

    def _check_send(self, topic: str, payload: bytes, sent: int) -> None:
        self._check(Publish)
        as_time(sent, "a send time")
        if self._publishes is not None and topic not in self._publishes:
            self._refuse(undeclared(topic, self._publishes))
        if sent < self.now:
            self._refuse(UsageError(f"it can't send at {format_time(sent)}, in its past"))
        # Before the promise, which follows from the period: nobody has made it in so many words.
        if self._period and not self.clock.is_due(self._period, sent):
            if self.has_clock:
                self._refuse(misses_local_period(sent, self._period, self.clock.local(sent)))
            self._refuse(misses_period(sent, self._period))
        if sent < self._promised:
            self._refuse(breaks_promise(sent, self._promised))
        if self._publishes is None:
            check_name(topic, "a topic")
        if not isinstance(payload, bytes):
            advice = "worldline.payload makes bytes of objects"
            self._refuse(UsageError(f"a payload is bytes, not {type(payload).__name__}", advice=advice))
        if len(payload) > self.payload_max:
            self._refuse(too_large(len(payload), self.payload_max))
        self._topics[topic] = True

    def promise(self, until: TimeLike) -> None:
        """Promise to send nothing before a time. It may be given again for a later time, never for an earlier one."""
        self._check(Promise)
        promised = as_time(until, "a promise")
        given = max(self._promised, self.now)
        if promised < given:
            self._refuse(takes_back_promise(promised, given))
        self._promised = promised
        self._outbox.append(Promise(promised))

    def subscribe(self, topic: str, buffer: Buffer | str = UNBOUNDED) -> None:
        """Receive a topic from now on."""
        self._check(Subscribe)
        topic = check_name(topic, "a topic")
        kept = as_buffer(buffer)
        if topic in self._buffers:
            self._refuse(subscribed_already(topic))
        self._buffers[topic] = kept
        self.reach = 0  # How soon it may be reached on this topic isn't known here.
        self._sifts = self._sifts or kept != UNBOUNDED
        self.horizon = self.now
        self._final = False
        self._told = self.now
        since = self.now
        if self._complete_at == self.now:
            if topic in self._finished:
                since += 1  # It was subscribed when all of this moment was given; nothing is given twice.
            else:
                self._incomplete.append(topic)
        self._outbox.append(Subscribe(Subscription(topic, kept), self.now, since))

    def unsubscribe(self, topic: str) -> None:
        """No longer receive a topic."""
        self._check(Unsubscribe)
        if topic not in self._buffers:
            self._refuse(not_subscribed(topic))
        topic = str.__str__(topic)
        until = self.now
        if self._buffers.pop(topic).limit != 0 and self._complete_at == self.now and topic not in self._incomplete:
            until += 1
            self._finished.append(topic)
        if topic in self._incomplete:
            self._incomplete.remove(topic)
        self._held = deque(message for message in self._held if message.topic != topic)
        self._told = self.now
        self._outbox.append(Unsubscribe(topic, self.now, until))

    def invite(self, newcomer: str, at: TimeLike) -> None:
        """Let a newcomer join at a time that the control link can meet."""
        newcomer = check_name(newcomer, "a participant")
        time = self._control(Invite, at)
        if time < self.horizon:
            self.horizon = time  # The newcomer may have something to say from then on.
            self._final = False
        self._outbox.append(Invite(newcomer, time))

    def stop(self, at: TimeLike) -> None:
        """End the run at a time that the control link can meet, for everybody."""
        time = self._control(Stop, at)
        if time <= self.horizon:
            self.horizon = time
            self._final = True
        self._outbox.append(Stop(time))

    def log(self, text: object) -> None:
        """Write a line for whoever looks on. It is in no digest: nobody acts on it."""
        self.journal.note_aside(Noted(self.now, self._tell_line(text)))

    def _tell_line(self, text: object, kind: str = "") -> str:
        self._check(Log)
        line = str(text).encode("utf-8", "replace")  # Half a character can't travel.
        if len(line) > self.payload_max:
            self._refuse(too_large(len(line), self.payload_max))
        self.tell_time()
        told = Log(line.decode(), kind)
        self._outbox.append(told)
        return told.text

    def _control(self, kind: type, at: TimeLike) -> int:
        self._check(kind)
        verb = _verb(kind)
        if not self._controls:
            self._refuse(no_control(verb))
        time = as_time(at, f"the time to {verb}")
        earliest = max(self.now, self._promised) + self._control_latency
        if time < earliest:
            self._refuse(control_too_early(verb, time, earliest))
        return time

    def leave(self) -> None:
        """Say goodbye; also the last word of a participant at the end of a run."""
        if self.state is State.LEFT:
            return
        if Leave not in self._row.legal:
            self._refuse_now(Leave)
        complete = self._complete_at == self.now
        if complete and not self.ended:
            for topic in list(self._incomplete):  # Of these it hasn't been given what arrives at this very time.
                self.unsubscribe(topic)
        self._row = self._row.moves[Leave]
        replaced = tuple(self._replaced())
        digest = self.journal.digest()
        told = (self.dropped, self._waited, replaced, self.missed, self._awaited(), self.untaken)
        self._outbox.append(Leave(self.now, digest, complete, *told))

    def _awaited(self) -> dict[str, int]:
        """Return the faults that wait for an event to this day, and how many such events there were."""
        return {}

    def estop(self, reason: str) -> int:
        """Tell everybody to stop; return by when they know."""
        self._refuse(no_estop())

    def estop_done(self, what: str) -> None:
        """Say what was done about an emergency stop."""
        self._refuse(no_estop())

    def revive(self) -> list[Message] | None:
        """After a crash, wait until the program is started again. None as for `advance`."""
        return []

    def stream(self, *names: str) -> Stream:
        """Return the participant's stream of this name: the same object each time, the same draws in each run."""
        if names not in self._streams:
            self._streams[names] = self._stream(names)
        return self._streams[names]

    def _stream(self, names: tuple[str, ...]) -> Stream:
        table = self._table()
        if table is None:
            return Stream(self._seed, self.name, *names)
        return NamedStream(table, self._seed, self.name, *names, time=self._time)

    def _table(self) -> DrawTable | None:
        """Return what its draws go through; None if nothing replaces them and nobody listens."""
        if self._draws is None and (self._rows or self.draws_heard is not None):
            self._draws = DrawTable(self._seed, self._rows, load=self.load_draw_function, heard=self.draws_heard)
        return self._draws

    def _replaced(self) -> list[int]:
        """Return the places of those rows of its table of draws that have matched some."""
        return [] if self._draws is None else self._draws.matched

    def _time(self) -> int:
        return self.now

    # --- Snapshots ---

    @property
    def misses_snapshot(self) -> bool:
        """Whether the server has a snapshot of it that hasn't come yet."""
        return bool(self.has_snapshot) and self._kept is None

    def restored(self) -> bytes | None:
        """Go on from the last snapshot, if there is one; return the program's part of it. To be asked first of all."""
        if not self._asked_for_state:
            if self._row is not _ACTING:
                self._check(Restore)
            if not self._is_fresh or self._outbox or self._streams:
                self._refuse(not_at_the_beginning())
            self._asked_for_state = True
            if self.has_snapshot is not None:
                self.journal.make_resumable()
            if self._kept is not None:
                self._go_on_from(self._kept)
        return self._restored

    def _go_on_from(self, kept: Recalled) -> None:
        try:
            state: LedgerState = _decode_state(kept.state)
        except (msgspec.DecodeError, ValueError) as error:
            self._refuse(unreadable_snapshot(str(error)))
        self.now, self.horizon, self._final = state.now, state.horizon, state.final
        if state.reading is not None:
            self.reads_at, self.reads = state.now, state.reading
        self._promised, self._told, self._complete_at = state.promised, state.told, state.complete_at
        self._incomplete, self._finished = state.incomplete, state.finished
        self._buffers, self.dropped, self.reach = state.buffers, state.dropped, state.reach
        self._sifts = any(buffer != UNBOUNDED for buffer in self._buffers.values())
        self._held = deque(state.held)
        for names, drawn in state.streams:
            self.stream(*names).setstate(drawn)
        table = self._table()
        if table is not None:
            table.note_matched(state.replaced)
        self.journal.take_up(state.sent, state.received, state.digest)
        self._is_marked = False
        self._restored = state.program
        self._outbox.append(Restore(kept.answers, kept.said))  # type: ignore[arg-type] # of the server, not the arbiter

    def snapshot(self, program: bytes) -> None:
        """Offer to be restored from here, with this state of the program."""
        if self._row is not _ACTING:
            self._check(Snapshot)
        if not isinstance(program, bytes):
            self._refuse(UsageError(f"a snapshot is bytes, not {type(program).__name__}"))
        if len(program) > self.payload_max:
            self._refuse(too_large(len(program), self.payload_max, "snapshot"))
        if not self._asked_for_state:
            self._refuse(not_restorable())
        if self.has_snapshot is None:
            return
        self.tell_time()
        state = _encode_state(self._state_with(bytes(program)))
        if len(state) <= self.payload_max:  # What was granted ahead is in it: how much that is, is no fault of its own.
            self._outbox.append(Snapshot(state))  # type: ignore[arg-type] # of the server, not the arbiter

    def _state_with(self, program: bytes) -> LedgerState:
        sent, received, digest = self.journal.put_away()
        return LedgerState(
            program=program,
            now=self.now,
            horizon=self.horizon,
            final=self._final,
            promised=self._promised,
            told=self._told,
            complete_at=self._complete_at,
            incomplete=self._incomplete,
            finished=self._finished,
            buffers=self._buffers,
            dropped=self.dropped,
            reach=self.reach,
            held=list(self._held),
            streams=[(names, stream.getstate()) for names, stream in self._streams.items()],
            sent=sent,
            received=received,
            digest=digest,
            reading=self.reads if self.reads_at == self.now else None,
            replaced=self._replaced(),
        )

    def tell_time(self) -> None:
        """Put the time that was reached without asking into the outbox, for whoever waits for it."""
        if self._told < self.now and self._row.state is State.COMPUTING:
            reached = Reached(self.now)
            self._told = self.now  # As for a request: all of this happens, or nothing.
            self._outbox += (reached,)

    # --- What it may not do ---

    def _check(self, kind: type) -> None:
        if self._row.ended:
            raise RunEnded(f"{self.name} at {format_time(self.now)}: the run has ended")
        if kind not in self._row.legal:
            self._refuse_now(kind)

    def _refuse_now(self, kind: type) -> NoReturn:
        advice = ""
        if self.state is State.JOINED:
            advice = "enter it first: with connect(...) as me: ..."
        elif self.state is not State.LEFT:
            state, until = self._waits_for()
            verb, word = _WAITS[state]
            asked = f"{verb}()" if until == FOREVER else f"{verb}({word}={format_time(until)!r})"
            advice = f"{asked} was interrupted, and is still asked for: call it again first"
        self._refuse(impossible(_verb(kind), self.state, advice))

    def _waits_for(self) -> tuple[State, int]:
        """Return what its program waits for, and until when."""
        return self.state, self._until

    def _refuse(self, error: WorldlineError) -> NoReturn:
        raise error.concerning(self.name, self.now)


def _verb(kind: type) -> str:
    """Return the method's name with which a participant says this."""
    return kind.__name__.lower()
