"""The participant as its program sees it: ordinary calls, blocking or awaited.

One definition runs everywhere: the program is a function of a `Participant`, and its *wire* leads to the arbiter and
back, be that in the same process, under a checker that permutes schedules, or behind a server's socket.

What only tells never waits. It travels with the next request, unless its wire says that it is due.

A wait that is interrupted, by a signal's handler that raises or by the cancellation of a task, is taken up by the same
call again (see the ledger, and `client` for where that can happen). For that a wire is asked again with
nothing to say, and keeps an answer until the next request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, MutableMapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from worldline.federation.participant.sometimes import CHANCE
from worldline.federation.sockets import not_ours
from worldline.lock import Crashed, EmergencyStop, ParticipantEvent, RunEnded, State
from worldline.lock.events import Recall
from worldline.lock.ledger import Ledger, Wire
from worldline.model import FOREVER, TIME_MAX, UNBOUNDED, Buffer, Message, Stream, UsageError, as_time, format_time
from worldline.model.clock import LocalClock, RunningClock
from worldline.model.draws.names import SOMETIMES, TURN
from worldline.model.draws.table import NamedStream
from worldline.model.errors import shown
from worldline.model.faults import ParticipantFault
from worldline.model.lifecycle import EmergencyNotice
from worldline.model.reading import as_time_difference
from worldline.model.time import TimeLike

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # Otherwise `participant.pxd` imports the compiled ones.
    Mutex, ReentrantMutex = threading.Lock, threading.RLock


class ForkedLock(Mutex if cython.compiled else object):  # type: ignore[misc] # Python's can't be derived from.
    """Stands in a forked process where its parent has a lock: a thread that takes it is told why it can't."""

    def __init__(self, participant: str) -> None:
        self._participant = participant

    def __enter__(self) -> NoReturn:
        raise not_ours(self._participant)

    def __exit__(self, *_: object) -> None:
        """It is never entered."""

    def acquire(self, blocking: bool = True) -> NoReturn:
        raise not_ours(self._participant)


# What a participant keeps when it crashes: its disk, so to speak.


class StableStore(MutableMapping[str, Any]):
    """A mapping whose values are copied on the way in and out, so that nothing else survives by being in one of them.

    A program that changes a value has to store it again.
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        return deepcopy(self._values[key])

    def __setitem__(self, key: str, value: Any) -> None:
        self._values[key] = deepcopy(value)

    def __delitem__(self, key: str) -> None:
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"StableStore({self._values!r})"


ClockName = Literal["true", "local"]
"""In whose time something is said: the simulation's, or that of the participant's own clock."""


class ParticipantClock:
    """A participant's own clock: what it shows, and when it shows what. Without one, it shows true time.

    A fast clock skips readings: no nanosecond of true time shows them (see `worldline.model.clock`). If the participant
    has advanced to such a one, then that is what the clock shows. So steps don't add up to more than they are.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        # The reading that was last asked for, and when it is shown. Only there it is the ledger's: if the call is
        # interrupted, the same call again must find what it found.
        self._aimed_at, self._aim = -1, 0

    def __repr__(self) -> str:
        return f"<clock of {self._ledger.name}: {format_time(self._read())}>"

    @property
    def now(self) -> int:
        """What the clock shows at present. It may be negative."""
        return self._read()

    @property
    def goes_back(self) -> bool:
        """Whether a jump sets the clock back, now or ever."""
        described: LocalClock = self._ledger.clock.described
        return described.goes_back

    def local(self, time: TimeLike) -> int:
        """Return what the clock shows at a true time."""
        return self._ledger.clock.local(as_time(time))

    def true(self, local: TimeLike, since: TimeLike | None = None) -> int:
        """Return the first true time at which the clock shows at least this, from now on or from another time on."""
        start = self._ledger.stands() if since is None else as_time(since)
        return self._true(as_time_difference(local, "a time of its clock"), start)

    def _read(self) -> int:
        clock: RunningClock = self._ledger.clock
        now = self._ledger.stands()
        if clock.is_steady:
            return now + clock.shift
        if self._aimed_at == now:
            self._ledger.reads_at, self._ledger.reads = now, self._aim
        shows = clock.local(now)
        # Further than that only a jump leads, and that has been seen.
        return self._ledger.reads if self._ledger.reads_at == now and self._ledger.reads == shows - 1 else shows

    def _true(self, local: int, since: int) -> int:
        found = self._ledger.clock.true(local, since)
        if found > TIME_MAX:
            raise UsageError(
                f"its clock never shows {format_time(local)}",
                participant=self._ledger.name,
                at=self._ledger.now,
                advice=f"the largest time is {format_time(TIME_MAX)}",
            )
        return found

    def _time(self, local: TimeLike, what: str) -> int:
        """Return the time, now or later, of a reading that may not have passed."""
        given = as_time_difference(local, what)
        shows = self._read()
        since = self._ledger.stands()
        if given < shows:
            since = self._ledger.due_since()  # One that is late may name what its clock has shown since.
        if given < shows and given < self._ledger.clock.local(since):
            raise UsageError(
                f"{format_time(given)} of its own clock has passed: it shows {format_time(shows)}",
                participant=self._ledger.name,
                at=self._ledger.now,
            )
        return self._true(given, since)

    def _target(self, local: TimeLike) -> int:
        """Return the time to go to, so that the clock shows this there."""
        found = self._time(local, "a time of its clock")
        self._aimed_at, self._aim = found, as_time_difference(local)
        return found

    def _step(self, by: TimeLike) -> int:
        step = as_time(by, "a step")
        clock: RunningClock = self._ledger.clock
        return self._ledger.stands() + step if clock.is_steady else self._target(self._read() + step)


class Surroundings:
    """What a process has one of, such as environment variables, and whether a program's own are in place.

    Those of a machine stay while it waits: the program that goes on next may be a machine's, too, and then changes them
    directly. Any other participant gives the process its own back when it goes on.
    """

    def __init__(self) -> None:
        self.give_back: Callable[[], None] | None = None  # None: they are the process's own.


surroundings = _surroundings = Surroundings()


class Operations:
    """What every participant can do without waiting. All times are nanoseconds or text such as ``"5ms"``.

    With ``clock="local"``, the times that are given are those of the participant's own clock.
    """

    # What each message takes, and what others may call too, is called by the class, ``Operations._next(self, ...)``: in
    # the compiled build, a call by the instance would look first whether a class in Python has another, each time.

    def __init__(self, ledger: Ledger, wire: Wire, reentrant: bool = False) -> None:
        self._ledger = ledger
        self._wire: Any = wire  # Its `ask` is awaited where the participant is.
        # The thread that keeps the connection alive also tells what has been lying about for too long.
        self._lock: Any = ReentrantMutex() if reentrant else Mutex()
        self._waits = False
        self._presses = False  # Whether a promise hasn't been told yet, for which others may be waiting.
        # Taken from the ledger, to be told and to be asked, and not handed over yet.
        self._untold: list[ParticipantEvent] = []
        self._asked: list[ParticipantEvent] = []
        self._stable = StableStore()
        self._clock = ParticipantClock(ledger)
        self.has_surroundings = False  # Whether its program sees to the process's surroundings.

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} at {format_time(self.now)}>"

    @property
    def name(self) -> str:
        return self._ledger.name

    @property
    def now(self) -> int:
        """The simulated time that this participant has reached."""
        return self._ledger.stands()

    @property
    def clock(self) -> ParticipantClock:
        """What this participant's clock shows; true time, if it has none of its own."""
        return self._clock

    @property
    def ended(self) -> bool:
        """Whether the run has ended: this was the last sequence point, and any further operation raises `RunEnded`."""
        return self._ledger.ended

    @property
    def digest(self) -> bytes:
        """The hash of everything that this participant has received and sent so far."""
        return self._ledger.journal.digest()

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The topics that this participant subscribes to at present."""
        return self._ledger.subscriptions

    @property
    def reach(self) -> int:
        """How soon a message could get here, and so how far it can `peek`; FOREVER if none can be sent to it."""
        return self._ledger.reach

    @property
    def payload_max(self) -> int:
        """How many bytes the payload of a message may have."""
        return self._ledger.payload_max

    @property
    def incarnation(self) -> int:
        """How often this participant has crashed and its program was started again."""
        return self._ledger.incarnation

    @property
    def process_fault_due(self) -> int:
        """When the next fault happens to its program alone, and not to its machine; for the room `programs`."""
        return FOREVER if self._ledger.life is None else self._ledger.life.process_fault_due()

    def take_process_faults(self) -> list[tuple[int, ParticipantFault]]:
        """Return the faults that happen to its program by now, each with the time at which it is over."""
        with self._lock:
            return [] if self._ledger.life is None else self._ledger.life.take_process_faults()

    @property
    def is_crashed(self) -> bool:
        """Whether this participant has crashed, and isn't back yet: whatever its program does now has no effect."""
        return self._ledger.is_crashed

    @property
    def stable(self) -> StableStore:
        """A mapping that survives crashes. Values are copied on the way in and out."""
        return self._stable

    @property
    def estopped(self) -> EmergencyNotice | None:
        """Who called an emergency stop, when and why, once this participant knows of one."""
        return self._ledger.estopped

    def estop(self, reason: str = "") -> int:
        """Call an emergency stop; return the time by which all are told. Latched: the first one counts."""
        with self._lock:
            told_by = self._ledger.estop(reason)
            self._say(True)
            return told_by

    def estop_done(self, what: str) -> None:
        """Say what this participant has done about the emergency stop, for the outcome and the recording."""
        with self._lock:
            self._ledger.estop_done(what)
            self._say()

    def publish(
        self,
        topic: str,
        payload: bytes,
        at: TimeLike | None = None,
        *,
        at_once: bool = True,
        clock: ClockName = "true",
    ) -> None:
        """Send a message on a topic, now or at a later time.

        Unless `at_once`, the server is told of it with whatever is said next: cheaper, if that follows soon.
        """
        if clock != "true":
            at = self._in_true_time(at, clock, "a send time")
        with self._lock:
            self._ledger.publish(topic, payload, at)
            if at_once:
                self._say()

    def promise(self, until: TimeLike, *, clock: ClockName = "true") -> None:
        """Promise to send nothing before `until`, so that others needn't wait for this participant until then."""
        if clock != "true":
            until = self._time_of(until, clock, "a promise")
        with self._lock:
            self._ledger.promise(until)
            self._say(True)

    def subscribe(self, topic: str, buffer: Buffer | str = UNBOUNDED) -> None:
        """Receive messages on a topic from now on."""
        with self._lock:
            self._ledger.subscribe(topic, buffer)
            self._say()

    def unsubscribe(self, topic: str) -> None:
        """Stop receiving messages on a topic."""
        with self._lock:
            self._ledger.unsubscribe(topic)
            self._say()

    def invite(self, newcomer: str, at: TimeLike, *, clock: ClockName = "true") -> None:
        """Let a newcomer join at a given time; no participant passes that time before it is there."""
        if clock != "true":
            at = self._time_of(at, clock, "the time to invite")
        with self._lock:
            self._ledger.invite(newcomer, at)
            self._say(True)

    def stop(self, at: TimeLike, *, clock: ClockName = "true") -> None:
        """End the run at a given time, the same for all."""
        if clock != "true":
            at = self._time_of(at, clock, "the time to stop")
        with self._lock:
            self._ledger.stop(at)
            self._say(True)

    def log(self, text: object) -> None:
        """Write a line for observers and recordings; it isn't part of the digest."""
        with self._lock:
            self._ledger.log(text)
            self._say()

    def measure(self, what: str, value: float) -> None:
        """Measure a number, as of now: it is in the outcome's monitors, for sweeps and observers, and in no digest."""
        with self._lock:
            self._ledger.measure(what, value)
            self._say()

    def leave(self) -> None:
        """Leave the run. Returning from the program does the same."""
        with self._lock:
            self._ledger.leave()
            self._tell()

    @property
    def random(self) -> Stream:
        """The participant's own random draws, like `random.Random`; determined by the run's seed and its name."""
        return self._ledger.stream()

    def stream(self, name: str) -> Stream:
        """Return a named stream of draws, independent of `random`: drawing from one doesn't affect the other."""
        return self._ledger.stream(name)

    def sometimes(self, branch: str, chance: float = CHANCE) -> bool:
        """Return whether to take a rare branch, drawn by its name; if so, a line of the log says that."""
        happens = self.draws_branch(branch, chance)
        if happens:
            self.log(f"sometimes: {branch}")
        return happens

    def draws_branch(self, branch: str, chance: float) -> bool:
        """Return whether to take a rare branch, and say nothing of it."""
        if not (isinstance(branch, str) and branch and isinstance(chance, int | float) and 0 <= chance <= 1):
            raise UsageError(
                f"sometimes({shown(branch)}, {shown(chance)}): it takes a name, and a chance from 0 to 1",
                participant=self.name,
                at=self.now,
            )
        if self._ledger.state is State.LEFT or self._ledger.ended:
            return False
        return self._ledger.stream(SOMETIMES, branch).happens(chance)

    def turns(self) -> Callable[[tuple[str, ...]], int] | None:
        """Return what chooses between callbacks that are ready; None unless the run's table of draws says how."""
        draws = self._ledger.draws
        if not any(row.name.partition("/")[0] == TURN for row in draws.rows):
            return None
        stream = self._ledger.stream(TURN, "")
        assert isinstance(stream, NamedStream)
        return stream.turn

    def _has_unwound(self, error: BaseException | None) -> bool:
        """Whether the program was only unwound: the run has ended, it was stopped, or it has crashed for good."""
        if isinstance(error, Crashed):
            return self._ledger.state is State.LEFT
        return isinstance(error, RunEnded | EmergencyStop)

    @property
    def restored(self) -> bytes | None:
        """The state that this program offered last, if it was started again and goes on from there; None: it begins.

        A program that offers snapshots reads this before it does anything else. Reading it takes the participant to
        the place of the snapshot: its time, its draws, its subscriptions and its digest are as they were.
        """
        with self._lock:
            return self._ledger.restored()

    def snapshot(self, state: bytes) -> None:
        """Offer to be restored from here: if its process is lost, the next one needn't begin at the beginning.

        `state` is all that the program needs to go on from here. It changes nothing in the run; where no participant
        can rejoin, nothing is done with it.
        """
        with self._lock:
            self._clock._read()  # So that the ledger knows what it shows.
            self._ledger.snapshot(state)
            self._say(True)  # It is of use only if it survives this process.

    def disown(self) -> None:
        """Let go of it in a forked process."""
        self._lock = ForkedLock(self.name)

    def catch_up(self) -> None:
        """Tell what hasn't been told yet. For the pulse, from any thread."""
        with self._lock:
            self._catch_up()

    def _say(self, urgent: bool = False) -> None:
        if self._wire.is_due(urgent or self._presses):
            Operations._catch_up(self)

    # --- Operations that may have to wait: what can be done without. None: it was asked for, and has to come in. ---

    def _advance(self, to: TimeLike | None, by: TimeLike | None, clock: str) -> list[Message] | None:
        target = to if to is not None and by is None and clock == "true" else self._target(to, by, clock)
        with self._lock:
            messages = self._ledger.advance(target)
            if messages is None:
                Operations._take_asked(self)
            else:
                self._say()
            return messages

    def _next(self, until: TimeLike | None, promise: TimeLike | None, clock: str) -> list[Message] | None:
        if clock != "true":
            promise = self._in_true_time(promise, clock, "a promise")
            until = self._limit(until, clock)
        with self._lock:
            before = self._ledger.now
            messages = self._ledger.next(until, promise)
            if messages is None:
                Operations._take_asked(self)
                return None
            self._presses = self._presses or promise is not None
            if self._ledger.now > before or promise is None:  # Otherwise it has more to do now, and says it then.
                self._say()
            return messages

    def _peek(self, until: TimeLike | None) -> int | None:
        with self._lock:
            known = self._ledger.peek(until)
            if known is None:
                self._take_asked()
            else:
                self._say()
            return known

    def _asks_to_revive(self) -> bool:
        """Whether it has crashed, and has to wait until its program is started again."""
        with self._lock:
            asks = self._ledger.revive() is None
            if asks:
                self._take_asked()
            elif not self._ledger.ended:  # To a guest that wasn't invited, the server has said so, and gone.
                self._say()
            return asks

    def _take_untold(self) -> None:
        self._presses = False
        self._ledger.hand_over(self._untold)

    def _take_asked(self) -> None:
        self._presses = False
        if self._untold:
            self._asked += self._untold
            self._untold = []
        ledger = self._ledger
        if self._asked:
            ledger.hand_over(self._asked)
        elif ledger.outbox:
            ledger.snapshots.is_fresh = False
            self._asked, ledger.outbox = ledger.outbox, self._asked  # The same, and one step as well: it is no call.

    def _catch_up(self) -> None:
        self._ledger.tell_time()
        self._tell()

    def _tell(self) -> None:
        Operations._take_untold(self)
        if self._untold:
            self._wire.tell(self._untold)

    def _crowded(self) -> UsageError:
        return UsageError("two of its threads or tasks wait at once", participant=self.name, at=self.now)

    def _target(self, to: TimeLike | None, by: TimeLike | None, clock: str) -> TimeLike:
        is_local = clock != "true" and self._is_local(clock)
        if by is None and to is not None:
            return self._clock._target(to) if is_local else to
        if to is None and by is not None:
            return self._clock._step(by) if is_local else self.now + as_time(by, "a step")
        raise UsageError("advance takes either `to` or `by`", participant=self.name, at=self.now)

    def _deadline(self, until: TimeLike | None, within: TimeLike | None, clock: str) -> TimeLike | None:
        """Return where a wait ends, as a time of that clock: `until`, or `within` a duration from now."""
        if within is None:
            return until
        if until is not None:
            raise UsageError(
                "a wait takes either `until` or `within`",
                participant=self.name,
                at=self.now,
                advice="`until` is a time of the run, `within` a duration from now",
            )
        is_local = clock != "true" and self._is_local(clock)
        return (self._clock._read() if is_local else self.now) + as_time(within, "a duration")

    def _limit(self, until: TimeLike | None, clock: str) -> TimeLike | None:
        """Return in true time where a wait ends, at which its clock then shows what was asked for."""
        return self._clock._target(until) if self._is_local(clock) and until is not None else until

    def _in_true_time(self, time: TimeLike | None, clock: str, what: str = "a time") -> TimeLike | None:
        return None if time is None else self._time_of(time, clock, what)

    def _time_of(self, time: TimeLike, clock: str, what: str) -> TimeLike:
        return self._clock._time(time, what) if self._is_local(clock) else time

    def _is_local(self, clock: str) -> bool:
        """Whether a time is that of a clock of its own. Without one, its clock shows true time."""
        if clock not in ("local", "true"):
            raise UsageError(
                f"there is no clock {shown(clock)}",
                participant=self.name,
                at=self.now,
                advice='write clock="local", or leave it out for true time',
            )
        return clock == "local" and self._ledger.has_clock


class Participant(Operations):
    """One participant of a run, in blocking style."""

    def join(self) -> None:
        """Wait until the run starts, or until the time at which this newcomer joins."""
        with self._lock:
            self._take_asked()
        self._wait()
        if self._ledger.misses_snapshot:
            self._asked.append(Recall())  # type: ignore[arg-type] # of the server, not the arbiter
            self._wait()

    def advance(
        self, to: TimeLike | None = None, *, by: TimeLike | None = None, clock: ClockName = "true"
    ) -> list[Message]:
        """Advance to a time, or by a duration, and return, in order, every message that arrives before then."""
        return Participant._advanced(self, to, by, clock)

    def next(
        self,
        until: TimeLike | None = None,
        *,
        within: TimeLike | None = None,
        promise: TimeLike | None = None,
        clock: ClockName = "true",
    ) -> list[Message]:
        """Advance to the next arrival and return all messages of that exact time, or to `until` and return none.

        `until` is a time of the run; ``within="100ms"`` is the same for 100 ms from now. Without either, wait as long
        as anything can arrive: an empty result then means that the run has ended for this participant. With a
        `promise`, first promise to send nothing before then: cheaper than to do so on its own.
        """
        return Participant._come(self, until, within, promise, clock)

    def peek(self, until: TimeLike | None = None, *, within: TimeLike | None = None, clock: ClockName = "true") -> int:
        """Return when the next message arrives, or a time before which none does, and stay where you are.

        For a program that finds out what it sends only by running. If the time returned is later than now, run up to
        there, publish what it sends on the way (``publish(..., at=...)``), and `advance` there. If it is now, a message
        arrives now: take it with `next`.

        It looks ahead no further than `until` (or `within` a duration), and no further than it takes others to reach
        this participant: what comes later may answer what it sends now. It sees the end of the run, too: the run has
        ended for a participant that is there and would look beyond. What it returns is true time, whatever clock
        `until` is a time of.
        """
        until = self._deadline(until, within, clock)
        if clock != "true":
            until = self._in_true_time(until, clock)
        known = self._peek(until)
        if known is None:
            self._wait()
            with self._lock:
                known = self._ledger.peek(until)
        assert known is not None
        return known

    def revive(self) -> bool:
        """If it has crashed, wait until its program is started again. Return whether the program is to run."""
        if self._asks_to_revive():
            self._wait()
        return not (self.ended or self.is_crashed)

    def messages(
        self, until: TimeLike | None = None, *, within: TimeLike | None = None, clock: ClockName = "true"
    ) -> Iterator[Message]:
        """Iterate over the messages that arrive before `until`, or `within` a duration, advancing to each arrival.

        All messages of one moment are delivered together: leaving the loop between two of them loses the rest. A
        participant that is late, because of a fault, is given what has arrived by now, even if `until` has passed.
        """
        end = self._limit(self._deadline(until, within, clock), clock)
        limit = TIME_MAX if end is None else as_time(end)
        if not self._ledger.may_give(limit):
            self._ledger.note_idle_call()
        while self._ledger.may_give(limit) and (batch := self.next(end)):
            yield from batch

    def _advanced(self, to: TimeLike | None, by: TimeLike | None, clock: str) -> list[Message]:
        messages = Operations._advance(self, to, by, clock)
        return self._wait() if messages is None else messages

    def _come(
        self, until: TimeLike | None, within: TimeLike | None, promise: TimeLike | None, clock: str
    ) -> list[Message]:
        messages = Operations._next(self, Operations._deadline(self, until, within, clock), promise, clock)
        return self._wait() if messages is None else messages

    def _wait(self) -> list[Message]:
        if self._waits:
            raise self._crowded()
        self._waits = True
        try:
            messages: list[Message] | None = None
            while messages is None:
                answer = self._wire.ask(self._asked)
                with self._lock:
                    messages = self._ledger.receive(answer)
                    if messages is None:  # Something happens to it on the way.
                        self._take_asked()
            return messages
        finally:
            self._waits = False
            if _surroundings.give_back is not None and not self.has_surroundings:
                _surroundings.give_back()
