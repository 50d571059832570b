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

What happens to a participant (boots, crashes, emergency stops) is no business of the ledger. `life`, if there is one,
stands between the program and the ledger: each operation asks it where it has a say, and waits are left to it, which
makes them of the same three steps as `_wait` does: `knows`, `ask`, `go`. See `lock.lifecycle`.

Invariants
----------
L1. Everything in `held` arrives at `now` or later; in order, the first last; and on topics that are subscribed.
L2. Everything that arrives before `horizon` on a subscribed topic has been handed over to this ledger.
L3. Hence a sequence point at T ≤ horizon is served completely from what is held, and a batch at m < horizon too.
L4. Subscribing breaks L2 for the new topic, so it takes the horizon back to `now`; inviting and stopping take it back
    to the newcomer's start and the end. What is held stays held: the arbiter won't send it again. Therefore a request
    says the first held arrival. Without it the arbiter would believe that the participant can't act before its bound,
    and might let others pass the time at which it really acts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from worldline.history.journal import Journal, Noted
from worldline.history.monitor import checked_measure
from worldline.history.resumable_hash import HashState
from worldline.lock.events import (
    Abort,
    Action,
    Advance,
    Grant,
    Invite,
    Join,
    Leave,
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
    control_too_early,
    impossible,
    no_control,
    no_estop,
    not_subscribed,
    subscribed_already,
    takes_back_promise,
    too_large,
    undeclared,
)
from worldline.lock.states import GONE, RETIRED, ROWS, State, StateRow
from worldline.model.clock import TRUE_TIME, LocalClock
from worldline.model.draws.table import DrawFunction, Drawn, DrawRow, DrawTable, NamedStream, clock_in_run
from worldline.model.errors import BrokenOff, BrokenPromise, PeerError, UsageError, WorldlineError, shortened
from worldline.model.lifecycle import MEASURE_LINE, EmergencyNotice
from worldline.model.links import UNBOUNDED, Buffer, as_buffer, sift
from worldline.model.message import Message, check_name
from worldline.model.payload import PAYLOAD_MAX, to_json
from worldline.model.randomness import Stream
from worldline.model.reading import as_time
from worldline.model.time import FOREVER, TIME_MAX, TimeLike, format_time

if TYPE_CHECKING:
    import worldline.uncompiled as cython
    from worldline.lock.lifecycle import LifecycleFilter
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # Otherwise `ledger.pxd` imports those in C.
    new_publish, new_next, new_advance = Publish, Next, Advance

_encode_state = msgspec.msgpack.Encoder().encode
# Of a ledger at the place of a snapshot: see `Ledger._state_with`.
_STATE: tuple[Any, ...] = (
    *(bytes, int, int, bool, int, int),
    *(int, list[str], list[str], dict[str, Buffer], dict[str, int]),
    *(int, list[Message], list[tuple[tuple[str, ...], tuple[int, int, float | None]]]),
    *(int, int, HashState, int | None, list[int]),
)
_decode_state: Callable[[bytes], tuple[Any, ...]] = msgspec.msgpack.Decoder(tuple[_STATE]).decode  # type: ignore[valid-type]
IDLE_CALLS_MAX = 100_000
"""So many calls at one time that ask for that very time, with nothing sent, are a loop that never ends."""

_WAITS = {State.ADVANCING: ("advance", "to"), State.AWAITING: ("next", "until"), State.PEEKING: ("peek", "until")}

_NOTHING: list[Message] = []  # It stays empty.

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


class Subscriptions:
    """The topics that are received, how much of each is kept, and which have been given whole at a moment.

    At a time reached by `next`, all arrivals of that very time have been given, except on topics subscribed since.
    """

    def __init__(self, subscriptions: tuple[Subscription, ...]) -> None:
        self.buffers = {each.topic: each.buffer for each in subscriptions}
        self.sifts = True in [buffer != UNBOUNDED for buffer in self.buffers.values()]
        self.dropped: dict[str, int] = {}  # Topic → how many messages its buffer dropped.
        self.complete_at = -1
        self.incomplete: list[str] = []  # Topics that have been subscribed since.
        self.finished: list[str] = []  # Topics that were complete and have been unsubscribed since.

    def complete(self, moment: int) -> None:
        """Note that all arrivals of a moment are given, on all topics that are subscribed to."""
        if self.incomplete:
            self.incomplete = []
        if self.complete_at != moment:
            self.complete_at = moment
            if self.finished:
                self.finished = []

    def is_given(self, topic: str, now: int) -> bool:
        """Whether all that arrives now on a subscribed topic has been given."""
        return self.complete_at == now and topic not in self.incomplete

    def add(self, topic: str, buffer: Buffer, now: int) -> int:
        """Receive a topic; return from when on."""
        self.buffers[topic] = buffer
        self.sifts = self.sifts or buffer != UNBOUNDED
        if self.complete_at == now:
            if topic in self.finished:
                return now + 1  # It was subscribed when all of this moment was given; nothing is given twice.
            self.incomplete.append(topic)
        return now

    def remove(self, topic: str, now: int) -> int:
        """No longer receive a topic; return from when on."""
        until = now
        if self.buffers.pop(topic).limit != 0 and self.is_given(topic, now):
            until += 1
            self.finished.append(topic)
        if topic in self.incomplete:
            self.incomplete.remove(topic)
        return until

    def sift(self, batch: list[Message]) -> list[Message]:
        """Return what the buffers keep of a batch, and count the rest."""
        kept = sift(batch, self.buffers)
        if len(kept) < len(batch):
            remaining = Counter([message.topic for message in kept])
            dropped = Counter(self.dropped)
            for topic, count in Counter([message.topic for message in batch]).items():
                if count > remaining[topic]:
                    dropped[topic] += count - remaining[topic]
            self.dropped = dict(dropped)
        return kept


class Undo:
    """What the last call has changed, of a program that may be interrupted before it has what it is given.

    It has what the ledger had, under the same names; of what is held, only if that changed by more than being `given`.
    `waits` and `until` are what it was called for: where it waits until it is answered, and the time that it asks for.
    """

    def __init__(self) -> None:
        self.is_marked = False
        self.is_served = False  # Whether a call was taken back of which the arbiter knows: see `Ledger.take_back`.
        self.waits: StateRow = _ACTING
        self.until = 0
        self.given: list[Message] = []
        self.now = self.horizon = self.complete_at = 0
        self.row: StateRow = _ACTING
        self.final = False
        self.waited: int | None = None
        self.incomplete: list[str] = []
        self.finished: list[str] = []
        self.dropped: dict[str, int] = {}
        self.held: list[Message] | None = None


class ParticipantDraws:
    """A participant's streams, and the table of the run, by which their draws may be replaced."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.seed = 0
        self.rows: tuple[DrawRow, ...] = ()
        self.load: Callable[[str], DrawFunction] | None = None  # Finds what the run's table names.
        self.heard: Callable[[Drawn], None] | None = None  # Told every draw.
        self.streams: dict[tuple[str, ...], Stream] = {}
        self._table: DrawTable | None = None

    def stream(self, names: tuple[str, ...], time: Callable[[], int]) -> Stream:
        """Return the stream of this name; `time` says when something is drawn."""
        stream = self.streams.get(names)
        if stream is None:
            table = self.table()
            if table is None:
                stream = Stream(self.seed, self._name, *names)
            else:
                stream = NamedStream(table, self.seed, self._name, *names, time=time)
            self.streams[names] = stream
        return stream

    def table(self) -> DrawTable | None:
        """Return what all draws go through; None if nothing replaces them and there is no listener."""
        if self._table is None and (self.rows or self.heard is not None):
            self._table = DrawTable(self.seed, self.rows, load=self.load, heard=self.heard)
        return self._table

    def matched(self) -> list[int]:
        """Return the places of those rows of the table that have matched some."""
        return [] if self._table is None else self._table.matched


class Snapshots:
    """Whether there is a snapshot to go on from, and whether the program is able to."""

    def __init__(self) -> None:
        self.at_server: bool | None = None  # Whether the server has one; None: it keeps none.
        self.recalled: Recalled | None = None  # That one.
        self.is_fresh = False  # Whether the participant has started, and nothing has been said since.
        self.is_asked_for = False  # Whether the program has asked from where it goes on, and so can be restored.
        self.program: bytes | None = None  # The program's part of the one from which it goes on.


class Wire:
    """A participant's way to the arbiter and back."""

    def tell(self, events: list[ParticipantEvent]) -> None:
        """Hand over a frame of events, and don't wait for an answer.

        What is handed over is taken out of the list: a caller that is interrupted before that hands it over again.
        """
        raise NotImplementedError

    def ask(self, events: list[ParticipantEvent]) -> Any:
        """Hand over a frame, if there are any events, and wait for the answer to the last request."""
        raise NotImplementedError

    def is_due(self, urgent: bool) -> bool:
        """Whether what was just said should be told at once; `urgent`, if others may be waiting for it."""
        raise NotImplementedError


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
        self.row = ROWS[State.JOINED]
        self.until = 0  # What it has asked for, while it waits.
        self.told = 0  # The time that the arbiter knows this participant to have reached.
        self.outbox: list[ParticipantEvent] = [join]
        self.horizon = 0  # What was granted ahead: all that arrives before this time;
        self.final = False  # and if it is final, the run ends there.
        self.held: list[Message] = []  # The first of them last, where it is taken from.
        self.topics = Subscriptions(join.subscribes)
        self._publishes = join.publishes
        self._checked: dict[str, bool] = {}  # The topics on which it has been found that it may send.
        self.period = period  # In the time of its clock.
        self.promised = 0
        self.payload_max = PAYLOAD_MAX  # A server may take less.
        self.reach = 0  # How far it may peek; 0 if that isn't known.
        self._controls = join.controls
        self._control_latency = 0
        self._described = clock
        self.clock = TRUE_TIME  # Until it starts: its own depends on the run's seed.
        self.reads_at, self.reads = -1, 0  # The reading of that clock to which it has advanced, and when that was.
        self.draws = ParticipantDraws(self.name)
        self.snapshots = Snapshots()
        self.undo: Undo | None = None
        self.life: LifecycleFilter | None = None
        self._idle = (-1, 0, 0)  # When calls asked for that very time, how many, and how much was sent before.
        self._waited: int | None = None  # Since when it waited for a next message, once it knows that none can come.

    @property
    def state(self) -> State:
        return self.row.state

    @property
    def ended(self) -> bool:
        """Whether the run has ended for this participant."""
        return self.row.ended

    @property
    def has_clock(self) -> bool:
        """Whether it has a clock of its own."""
        return self._described is not None

    @property
    def subscriptions(self) -> tuple[str, ...]:
        return tuple(self.topics.buffers)

    @property
    def incarnation(self) -> int:
        """How often its program was started again."""
        return 0 if self.life is None else self.life.incarnation

    @property
    def is_crashed(self) -> bool:
        return self.life is not None and self.life.is_crashed

    @property
    def estopped(self) -> EmergencyNotice | None:
        """The emergency stop that it knows of."""
        return None if self.life is None else self.life.estopped

    def stands(self) -> int:
        """Return where the program stands: while it waits, where it did before, however far that has got."""
        return self.now if self.life is None else self.life.stands()

    def due_since(self) -> int:
        """Return where the program would stand if nothing made it late."""
        return self.now if self.life is None else self.life.reached

    def may_give(self, until: int) -> bool:
        """Whether a wait for messages until then can bring any: that time is ahead, or it is late and some are there.

        Otherwise there is nothing to wait for.
        """
        return self.now < until or (self.life is not None and self.life.may_give(until))

    # --- To and from the arbiter ---

    def take_outbox(self) -> list[ParticipantEvent]:
        """Return what the arbiter must be told, in order, and forget it."""
        taken: list[ParticipantEvent] = []
        self.hand_over(taken)
        return taken

    def hand_over(self, taken: list[ParticipantEvent]) -> None:
        """Move what the arbiter must be told behind what was taken before: all of it, or, if interrupted, nothing."""
        if self.outbox:
            self.snapshots.is_fresh = False
        taken += self.outbox
        self.outbox = []

    def receive(self, action: Action) -> list[Message] | None:
        """Take the answer that this participant waits for; return the messages of its sequence point.

        None, if something happens to it: there is more in the outbox, and another answer to wait for.
        """
        if type(action) is Abort:  # Wherever it stands: the run is over.
            self.row = GONE
            raise broken_off(action)
        row = self.row.moves.get(type(action))
        if row is None:
            if isinstance(action, Recalled):
                self.snapshots.recalled = action
                return []
            self.refuse(PeerError(f"{type(action).__name__} isn't an answer to one that is {self.state.value}"))
        if self.undo is not None:
            self._mark(self.row, self.until, self.held)  # `_take_in` makes another list.
        if row is _ACTING and type(action) is Grant:
            return self._answered(action)
        self.row = row
        if isinstance(action, StartRun):
            self._start(action)
            if self.life is not None:
                return self.life.start()
        elif isinstance(action, Grant):  # The run ended before this newcomer's start.
            self.now = action.horizon
        return []

    def _start(self, start: StartRun) -> None:
        self.now = self.horizon = self.told = start.now
        self.draws.seed, self.draws.rows = start.seed, start.draws
        if self._described is not None:
            self.clock = clock_in_run(self._described, start.seed, self.name, self.draws.table(), self._time)
        self._control_latency = start.control_latency
        self.reach = start.reach
        self.snapshots.is_fresh = True

    def allow_undo(self) -> None:
        """The program may be interrupted before it has what it is given: see `take_back`."""
        if self.life is None:  # That one remembers by itself what it gave.
            self.undo = Undo()

    def _mark(self, waits: StateRow, until: int, held: list[Message] | None) -> None:
        undo, topics = self.undo, self.topics
        assert undo is not None
        undo.now, undo.horizon, undo.final = self.now, self.horizon, self.final
        undo.row, undo.waited = self.row, self._waited
        undo.complete_at, undo.incomplete = topics.complete_at, topics.incomplete
        undo.finished, undo.dropped = topics.finished, topics.dropped
        undo.waits, undo.until = waits, until
        undo.given, undo.held = _NOTHING, held
        self.journal.mark()
        undo.is_marked = True

    def forget_mark(self) -> None:
        """The program has what the last call gave: that stays, whatever happens next."""
        if self.undo is not None:
            self.undo.is_marked = False
        elif self.life is not None:
            self.life.forget_given()

    def take_back(self) -> None:
        """Take back what the last call gave to a program that was interrupted before it had it: see `allow_undo`.

        What the arbiter was told can't be taken back. If that is the time which the call had reached, the program is
        bound to make the same call again, as if it still waited.
        """
        if self.life is not None:
            self.life.take_back()
        undo = self.undo
        if undo is None or not undo.is_marked:
            return
        undo.is_marked = False
        topics = self.topics
        self.now, self.horizon, self.final = undo.now, undo.horizon, undo.final
        self.row, self._waited = undo.row, undo.waited
        topics.complete_at, topics.incomplete = undo.complete_at, undo.incomplete
        topics.finished, topics.dropped = undo.finished, undo.dropped
        if undo.held is None:
            self.held += reversed(undo.given)
        else:
            self.held = undo.held
        self.journal.take_back()
        if self.told > self.now and self.row is _ACTING:
            self.row, self.until = undo.waits, undo.until
            undo.is_served = True

    def _answered(self, grant: Grant) -> list[Message] | None:
        waited = self.row
        self._take_in(grant)
        if waited is _PEEKING:
            return []  # It stays where it is, and now knows what it has asked for.
        if self.life is not None:
            return self.life.answered()
        messages = self._give(self.go(self.until, waited is _AWAITING))
        self.told = self.now  # The arbiter works the same out from its side.
        return messages

    def _take_in(self, grant: Grant) -> None:
        """Hold what a grant brings, and know what it says; then the program may act again, from where it is."""
        horizon, messages, final = grant.horizon, grant.messages, grant.final
        if not (horizon >= self.until or final or self._wakes(horizon, messages)):
            granted, asked = format_time(horizon), format_time(self.until)
            self.refuse(PeerError(f"a grant up to {granted} doesn't answer a request for {asked}"))
        if messages:
            first = messages[0]
            arrival = first.arrival
            if arrival < self.now:  # L1
                self.refuse(PeerError(f"a grant brings what has arrived at {format_time(arrival)}"))
        held = messages + self.held if self.held else list(messages)
        if self.held:
            held.sort()  # Only behind a late subscription is anything held that arrives later.
        held.reverse()
        self.held = held
        self.horizon = horizon
        self.final = final
        self.row = _ACTING

    def _wakes(self, horizon: int, messages: list[Message]) -> bool:
        """Whether a grant brings the next message that is waited for, or makes one that is held complete."""
        if self.row is _ADVANCING:
            return False
        first = self.first_held()
        for message in messages:
            arrival = message.arrival
            if arrival < first:
                first = arrival
        return first < horizon and first < self.until

    # --- Operations that wait ---

    def advance(self, to: TimeLike) -> list[Message] | None:
        """Ask for a sequence point at `to`: all that arrives before it. None: wait for the answer and `receive` it."""
        if self.life is not None:
            return self.life.advance(as_time(to))
        if self.undo is not None:
            self.undo.is_marked = False
        if self.row is _ADVANCING and as_time(to) == self.until and not self._serves_again():
            return None  # It was interrupted.
        target = self._target(to, Advance)
        if self.period:
            self.keep_period(target)
        return self._wait(target, False)

    def next(self, until: TimeLike | None = None, promise: TimeLike | None = None) -> list[Message] | None:
        """Ask for all messages of the next arrival time before `until`, or none at `until`. None as for `advance`.

        A promise is made before anything else.
        """
        if self.life is not None:
            return self.life.next(FOREVER if until is None else as_time(until), promise)
        if self.undo is not None:
            self.undo.is_marked = False
        if self.row is _AWAITING and (FOREVER if until is None else as_time(until)) == self.until:
            if not self._serves_again():
                return None
        elif promise is not None:
            self.promise(promise)
        if until is not None:
            target = self._target(until, Next)
        else:
            target = FOREVER
            if self.row is not _ACTING:
                self.check(Next)
        if self.period:
            self.keep_period(self.acts_next(target))
        return self._wait(target, True)

    def _serves_again(self) -> bool:
        """Whether a call that is made again is served now: it was taken back, and all that it takes is known."""
        if self.undo is None or not self.undo.is_served:
            return False
        self.undo.is_served = False
        self.row = _ACTING
        return True

    def _wait(self, target: int, wakes: bool) -> list[Message] | None:
        """Go to a time, or to the first arrival before it if that `wakes`; None: that has been asked for."""
        if not self.knows(target, wakes):
            self.ask(target, wakes)
            return None
        if self.undo is not None:
            self._mark(_AWAITING if wakes else _ADVANCING, target, None)
        return self._give(self.go(target, wakes))

    def knows(self, target: int, wakes: bool) -> bool:
        """Whether all is known that a wait for a time takes (L3), or, if a message wakes it, for the first before."""
        if target <= self.horizon or self.final:
            return True
        return wakes and self.first_held() < self.horizon

    def first_held(self) -> int:
        """Return the first arrival that is held."""
        if not self.held:
            return FOREVER
        first = self.held[-1]
        return first.arrival

    def ask(self, target: int, wakes: bool) -> None:
        """Ask the arbiter for a time, or for the first arrival before it."""
        # What is held is said, too (L4).
        request = new_next(target, self.first_held()) if wakes else new_advance(target)
        self.until = target  # An interruption comes after a call: all of this happens, or nothing.
        self.row = _AWAITING if wakes else _ADVANCING
        self.outbox.append(request)

    def go(self, target: int, wakes: bool) -> list[Message]:
        """Go where nothing has to be asked for: to the first arrival, to the target, or to the run's end before it.

        Return what has arrived.
        """
        first = self.first_held()
        if wakes and first < min(self.horizon, target):
            self.topics.complete(first)
            target, before = first, first + 1
        else:
            if target > self.horizon or target == FOREVER:
                target = self._retire(target)
            before = target
        assert self.now <= target <= self.horizon, "L3: it goes on, and as far as all arrivals are known"
        self.now = target
        held, taken = self.held, []
        while held:
            message = held[-1]
            arrival = message.arrival
            if arrival >= before:
                break
            taken.append(held.pop())
        return taken

    def _give(self, batch: list[Message]) -> list[Message]:
        if batch:
            if self.undo is not None:
                self.undo.given = batch
            if self.topics.sifts:
                batch = self.topics.sift(batch)
            self.journal.note_received(self.now, batch)
        return batch

    def _retire(self, target: int) -> int:
        """Return where the run ends, before the target. A final grant says so, or that nothing can come any more."""
        if target == FOREVER:
            self._waited = self.now
        self.row = RETIRED
        return self.now if self.horizon == FOREVER else self.horizon

    def peek(self, until: TimeLike | None = None) -> int | None:
        """Say when the next message arrives, or up to when none does, without going there. None as for `advance`.

        After the answer, the same call says it. It looks at most as far ahead as `reach`: what is sent from now on may
        bring answers then. And no further than the run's end.
        """
        if self.life is not None:
            if self.life.has_arrivals() and self.row is _ACTING:
                return self.now  # There is something to be taken.
            until = self.life.peek_limit(until)
        if self.undo is not None:
            self.undo.is_marked = False
        if self.row is _PEEKING and self._sight(until) == self.until:
            return None
        if until is None:
            self.check(Peek)
        else:
            self._target(until, Peek)
        if not self.reach:
            problem = "it has subscribed to a topic after joining, or the server is too old to say"
            advice = "declare all topics on joining: subscribes=[...]"
            self.refuse(UsageError(f"it isn't known how far it may peek: {problem}", advice=advice))
        if self.period:
            self.keep_period(self.now)
        sight = self._sight(until)
        first, horizon = self.first_held(), self.horizon
        if first < min(horizon, sight):
            return first
        if sight <= horizon:
            return sight
        if self.final:
            if self.now == horizon:
                self.row = RETIRED
            return horizon
        self.tell_time()  # It stays where it is, and the arbiter must know where that is.
        request = Peek(sight, first)
        self.until = sight
        self.outbox += (request,)
        self.row = _PEEKING
        return None

    def _sight(self, until: TimeLike | None) -> int:
        """Return how far a peek looks: what it sends now may be answered after that."""
        farthest = min(self.now + self.reach, TIME_MAX)
        return max(self.now, farthest if until is None else min(as_time(until), farthest))

    def _target(self, time: TimeLike, kind: type) -> int:
        if self.row is not _ACTING:
            self.check(kind)
        target = time if type(time) is int and 0 <= time <= TIME_MAX else as_time(time)  # Nearly always without a call.
        if target <= self.now:
            if target < self.now:
                self.refuse(cant_go_back(target))
            self.note_idle_call()
        return target

    def note_idle_call(self) -> None:
        """Count a call that asks for a time that has come already, and refuse too many."""
        at, calls, before = self._idle
        sent = self.journal.sent
        if at != self.now:
            calls, before = 0, sent
        # A program that sends in between has more of them, since it may send many messages at one time.
        limit = IDLE_CALLS_MAX if sent == before else 10 * IDLE_CALLS_MAX
        calls += 1
        self._idle = (self.now, calls % limit, before)
        if calls >= limit:
            self.refuse(
                UsageError(
                    f"it has asked {limit:,} times in a row to wait until {format_time(self.now)}, which it has "
                    "reached: each of these calls returned at once, and so would the next",
                    advice="`until` and `to` are times of the run, not durations; for a duration from now, write "
                    'next(within="100ms"), messages(within="100ms") or advance(by="100ms")',
                )
            )

    def acts_next(self, until: int) -> int:
        """Return the first time at which it may act again once it waits for a message until a time."""
        is_complete = self.topics.complete_at == self.now < until and not self.topics.incomplete
        return self.now + 1 if is_complete else self.now

    def keep_period(self, acts: int) -> None:
        """Promise by itself: a participant that sends only at multiples of a period sends none before the next one."""
        due = self.clock.due(self.period, acts)
        if self.promised < due <= TIME_MAX and acts < due:  # Acting only then says as much as promising it.
            self.promised = due
            self.outbox.append(Promise(due))

    # --- Operations that only tell ---

    def publish(self, topic: str, payload: bytes, at: TimeLike | None = None) -> None:
        """Send a message, now or at a later time."""
        if self.life is not None:
            at = self.life.send_time(topic, at)
        now = self.now
        sent = now if at is None else as_time(at, "a send time")
        if (
            self.row is not _ACTING
            or self.period
            or sent < now
            or sent < self.promised
            or sent > TIME_MAX
            or type(payload) is not bytes
            or len(payload) > self.payload_max
            or type(topic) is not str
            or topic not in self._checked
        ):
            self.check_send(topic, payload, sent)
            topic, payload = str.__str__(topic), bytes(payload)  # Of their kind, they may be more than that.
        self.outbox.append(new_publish(topic, payload, sent))
        self.journal.note_sent(sent, topic, payload)
        if self.life is not None:
            self.life.has_sent(topic, sent)

    def check_send(self, topic: str, payload: bytes, sent: int) -> None:
        """Refuse a message that it may not send."""
        self.check(Publish)
        as_time(sent, "a send time")
        if self._publishes is not None and topic not in self._publishes:
            self.refuse(undeclared(topic, self._publishes))
        if sent < self.now:
            self.refuse(UsageError(f"it can't send at {format_time(sent)}, in its past"))
        # Before the promise, which follows from the period: the program hasn't made it in so many words.
        if self.period and not self.clock.is_due(self.period, sent):
            period = format_time(self.period)
            when = problem = ""
            advice = "nothing was sent; send on time, or declare no period"
            if self.has_clock:
                when = f", when its clock shows {format_time(self.clock.local(sent))},"
                problem = ", which is in the time of that clock"
                advice = 'nothing was sent; advance to a multiple with clock="local", or declare no period'
            problem = f"a send at {format_time(sent)}{when} isn't at a multiple of its period, {period}{problem}"
            self.refuse(BrokenPromise(problem, advice=advice, period=self.period, attempt=sent))
        if sent < self.promised:
            self.refuse(breaks_promise(sent, self.promised))
        if self._publishes is None:
            check_name(topic, "a topic")
        if not isinstance(payload, bytes):
            advice = "worldline.payload makes bytes of objects"
            self.refuse(UsageError(f"a payload is bytes, not {type(payload).__name__}", advice=advice))
        if len(payload) > self.payload_max:
            self.refuse(too_large(len(payload), self.payload_max))
        self._checked[topic] = True

    def promise(self, until: TimeLike) -> None:
        """Promise to send nothing before a time. It may be given again for a later time, never for an earlier one."""
        self.check(Promise)
        promised = as_time(until, "a promise")
        if self.life is not None and self.life.has_kept(promised):
            return
        given = max(self.promised, self.now)
        if promised < given:
            self.refuse(takes_back_promise(promised, given))
        self.promised = promised
        self.outbox.append(Promise(promised))

    def subscribe(self, topic: str, buffer: Buffer | str = UNBOUNDED) -> None:
        """Receive a topic from now on."""
        self.check(Subscribe)
        topic = check_name(topic, "a topic")
        kept = as_buffer(buffer)
        if topic in self.topics.buffers:
            self.refuse(subscribed_already(topic))
        since = self.topics.add(topic, kept, self.now)
        self.reach = 0  # How soon it may be reached on this topic isn't known here.
        self.horizon = self.now  # L4
        self.final = False
        self.told = self.now
        self.outbox.append(Subscribe(Subscription(topic, kept), self.now, since))

    def unsubscribe(self, topic: str) -> None:
        """No longer receive a topic."""
        self.check(Unsubscribe)
        if topic not in self.topics.buffers:
            self.refuse(not_subscribed(topic))
        topic = str.__str__(topic)
        until = self.topics.remove(topic, self.now)
        self.held = [message for message in self.held if message.topic != topic]
        self.told = self.now
        self.outbox.append(Unsubscribe(topic, self.now, until))
        if self.life is not None:
            self.life.has_unsubscribed(topic)

    def invite(self, newcomer: str, at: TimeLike) -> None:
        """Let a newcomer join at a time that the control link can meet."""
        newcomer = check_name(newcomer, "a participant")
        time = self._control(Invite, at)
        if time < self.horizon:
            self.horizon = time  # The newcomer may have something to say from then on (L4).
            self.final = False
        self.outbox.append(Invite(newcomer, time))

    def stop(self, at: TimeLike) -> None:
        """End the run at a time that the control link can meet, for all participants."""
        time = self._control(Stop, at)
        if time <= self.horizon:
            self.horizon = time
            self.final = True
        self.outbox.append(Stop(time))

    def _control(self, kind: type, at: TimeLike) -> int:
        self.check(kind)
        verb = _verb(kind)
        if not self._controls:
            self.refuse(no_control(verb))
        time = as_time(at, f"the time to {verb}")
        earliest = max(self.now, self.promised) + self._control_latency
        if time < earliest:
            if self.life is None or not self.life.is_late_for(time):
                self.refuse(control_too_early(verb, time, earliest))
            time = earliest
        return time

    def log(self, text: object) -> None:
        """Write a line for those who look on. It is in no digest: no participant acts on it."""
        self.journal.note_aside(Noted(self.now, self.tell_line(text)))

    def measure(self, what: str, value: float) -> None:
        """Measure a number. It is in no digest, either."""
        what, value = checked_measure(what, value)
        self.tell_line(to_json({what: value}).decode(), MEASURE_LINE)

    def tell_line(self, text: object, kind: str = "") -> str:
        """Tell a line of a kind; return it as it is told."""
        self.check(Log)
        line = str(text).encode("utf-8", "replace")  # Half a character can't travel.
        if len(line) > self.payload_max:
            self.refuse(too_large(len(line), self.payload_max))
        self.tell_time()
        told = Log(line.decode(), kind)
        self.outbox.append(told)
        return told.text

    def leave(self) -> None:
        """Say goodbye; also the last word of a participant at the end of a run."""
        if self.state is State.LEFT:
            return
        if self.life is not None:
            self.life.before_leaving()
        if Leave not in self.row.legal:
            self.refuse_now(Leave)
        complete = self.topics.complete_at == self.now
        if complete and not self.ended:
            for topic in list(self.topics.incomplete):  # Of these, it hasn't been given what arrives at this very time.
                self.unsubscribe(topic)
        self.row = self.row.moves[Leave]
        replaced = tuple(self.draws.matched())
        missed, awaited, untaken = ({}, {}, {}) if self.life is None else self.life.last_words()
        told = (self.topics.dropped, self._waited, replaced, missed, awaited, untaken)
        self.outbox.append(Leave(self.now, self.journal.digest(), complete, *told))

    def estop(self, reason: str) -> int:
        """Tell all participants to stop; return by when they know."""
        if self.life is None:
            self.refuse(no_estop())
        return self.life.estop(reason)

    def estop_done(self, what: str) -> None:
        """Say what was done about an emergency stop."""
        if self.life is None:
            self.refuse(no_estop())
        self.life.estop_done(what)

    def revive(self) -> list[Message] | None:
        """After a crash, wait until the program is started again. None as for `advance`."""
        return [] if self.life is None else self.life.revive()

    def stream(self, *names: str) -> Stream:
        """Return the participant's stream of this name: the same object each time, the same draws in each run."""
        return self.draws.stream(names, self._time)

    def _time(self) -> int:
        return self.now

    # --- Snapshots ---

    @property
    def misses_snapshot(self) -> bool:
        """Whether the server has a snapshot of it that hasn't come yet."""
        return bool(self.snapshots.at_server) and self.snapshots.recalled is None

    def restored(self) -> bytes | None:
        """Go on from the last snapshot, if there is one; return the program's part of it. To be asked first of all.

        There is none of a participant to which something happens: that would have to be in the snapshot, too.
        """
        snapshots = self.snapshots
        if not snapshots.is_asked_for and self.life is None:
            if self.row is not _ACTING:
                self.check(Restore)
            if not snapshots.is_fresh or self.outbox or self.draws.streams:
                problem = "`restored` was read too late: it has sent, drawn or asked for something already"
                self.refuse(UsageError(problem, advice="read it before anything else, and go on from it"))
            if snapshots.at_server is not None:
                self.journal.make_resumable()
            if snapshots.recalled is not None:
                self._go_on_from(snapshots.recalled)
        snapshots.is_asked_for = True
        return snapshots.program

    def _go_on_from(self, kept: Recalled) -> None:
        try:
            state = _decode_state(kept.state)
        except (msgspec.DecodeError, ValueError) as error:
            advice = "was it offered by another program, or another version of this?"
            self.refuse(UsageError(f"its snapshot can't be read ({error})", advice=advice))
        topics = self.topics
        # In the order of `_state_with`.
        self.snapshots.program, self.now, self.horizon, self.final, self.promised, self.told = state[:6]
        topics.complete_at, topics.incomplete, topics.finished, topics.buffers, topics.dropped = state[6:11]
        self.reach, held, streams, sent, received, digest, reading, replaced = state[11:]
        topics.sifts = True in [buffer != UNBOUNDED for buffer in topics.buffers.values()]
        self.held = held[::-1]
        if reading is not None:
            self.reads_at, self.reads = self.now, reading
        for names, drawn in streams:
            self.stream(*names).setstate(drawn)
        table = self.draws.table()
        if table is not None:
            table.note_matched(replaced)
        self.journal.take_up(sent, received, digest)
        if self.undo is not None:
            self.undo.is_marked = False
        self.outbox.append(Restore(kept.answers, kept.said))  # type: ignore[arg-type] # of the server, not the arbiter

    def snapshot(self, program: bytes) -> None:
        """Offer to be restored from here, with this state of the program."""
        if self.row is not _ACTING:
            self.check(Snapshot)
        if not isinstance(program, bytes):
            self.refuse(UsageError(f"a snapshot is bytes, not {type(program).__name__}"))
        if len(program) > self.payload_max:
            self.refuse(too_large(len(program), self.payload_max, "snapshot"))
        if not self.snapshots.is_asked_for:
            advice = "read `restored` before anything else, and go on from it unless it is None"
            self.refuse(
                UsageError("it offers a snapshot and never reads one, so it couldn't be restored", advice=advice)
            )
        if self.snapshots.at_server is None:
            return
        self.tell_time()
        state = _encode_state(self._state_with(bytes(program)))
        if len(state) <= self.payload_max:  # What was granted ahead is in it: how much that is, is no fault of its own.
            self.outbox.append(Snapshot(state))  # type: ignore[arg-type] # of the server, not the arbiter

    def _state_with(self, program: bytes) -> list[Any]:
        """Return all that another ledger needs to go on from here, and the program's own state."""
        topics = self.topics
        streams = [(names, stream.getstate()) for names, stream in self.draws.streams.items()]
        reading = self.reads if self.reads_at == self.now else None  # What its clock showed, if that was advanced to.
        state = [program, self.now, self.horizon, self.final, self.promised, self.told]
        state += [topics.complete_at, topics.incomplete, topics.finished, topics.buffers, topics.dropped]
        state += [self.reach, self.held[::-1], streams]
        state += self.journal.put_away()
        state += [reading, self.draws.matched()]
        return state

    def tell_time(self) -> None:
        """Put the time that was reached without asking into the outbox: others may wait for it."""
        if self.told < self.now and self.row.state is State.COMPUTING:
            reached = Reached(self.now)
            self.told = self.now  # As for a request: all of this happens, or nothing.
            self.outbox += (reached,)

    # --- What it may not do ---

    def check(self, kind: type) -> None:
        """Refuse what can't be said where it stands."""
        if self.life is not None:
            self.life.check_up()
        if self.row.ended:
            raise RunEnded(f"{self.name} at {format_time(self.now)}: the run has ended")
        if kind not in self.row.legal:
            self.refuse_now(kind)

    def refuse_now(self, kind: type) -> NoReturn:
        """Refuse what can't be said where it stands, and say what can."""
        advice = ""
        if self.state is State.JOINED:
            advice = "enter it first: with connect(...) as me: ..."
        elif self.state is not State.LEFT:
            life = None if self.row is _PEEKING else self.life
            state, until = (self.state, self.until) if life is None else life.waits_for()
            verb, word = _WAITS[state]
            asked = f"{verb}()" if until == FOREVER else f"{verb}({word}={format_time(until)!r})"
            advice = f"{asked} was interrupted, and is still asked for: call it again first"
        self.refuse(impossible(_verb(kind), self.state, advice))

    def refuse(self, error: WorldlineError) -> NoReturn:
        raise error.concerning(self.name, self.now)


def _verb(kind: type) -> str:
    """Return the method's name with which a participant says this."""
    return kind.__name__.lower()
