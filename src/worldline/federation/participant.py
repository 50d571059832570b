"""The participant as its program sees it: ordinary calls, blocking or awaited.

One definition runs everywhere: the program is a function of a `Participant`, and what the participant is connected to
(an arbiter in the same process, a checker that permutes schedules, a server across a socket) is a `Connection`.

What only tells never waits. It travels with the next request, unless it is better told at once, which is for the
connection to say.

A wait that is interrupted, by a signal's handler that raises or by the cancellation of a task, is taken up by the same
call again (see the ledger, and `interruptible` for where that can happen). For that a connection is asked again with
nothing to say, and keeps an answer until the next request.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from worldline.lock import Action, ParticipantEvent
from worldline.lock.ledger import Ledger
from worldline.lock.restoring import Recall
from worldline.model import TIME_MAX, UNBOUNDED, Buffer, Message, Stream, UsageError, as_time
from worldline.model.time import TimeLike


class ArbiterLink(Protocol):
    """The way to the arbiter."""

    def tell(self, events: list[ParticipantEvent]) -> None:
        """Hand over a frame of events, and don't wait for an answer.

        What is handed over is taken out of the list: who is interrupted before that hands it over again.
        """

    def is_due(self, urgent: bool) -> bool:
        """Whether what was just said should be told at once; `urgent`, if others may be waiting for it."""


class Connection(ArbiterLink, Protocol):
    """The way to the arbiter and back."""

    def ask(self, events: list[ParticipantEvent]) -> Action:
        """Hand over a frame of events, if there are any, as `tell` does; wait for the answer to the last request."""


class Operations:
    """What every participant can do without waiting. All times are nanoseconds or text such as ``"5ms"``."""

    def __init__(self, ledger: Ledger, courier: ArbiterLink) -> None:
        self._ledger = ledger
        self._courier = courier
        # Whoever keeps the connection alive also tells, in its own thread, what has been lying about for too long.
        self._lock: AbstractContextManager[object] = threading.Lock()
        self._waits = False
        self._presses = False  # Whether a promise hasn't been told yet, for which others may be waiting.
        # Taken from the ledger, to be told and to be asked, and not handed over yet.
        self._untold: list[ParticipantEvent] = []
        self._asked: list[ParticipantEvent] = []

    @property
    def name(self) -> str:
        return self._ledger.name

    @property
    def now(self) -> int:
        """This participant's own time."""
        return self._ledger.now

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
        """How soon a message could get here, and so how far it can `peek`; FOREVER if nobody can send it any."""
        return self._ledger.reach

    def publish(self, topic: str, payload: bytes, at: TimeLike | None = None, *, at_once: bool = True) -> None:
        """Send a message on a topic, now or at a later time.

        Unless `at_once`, the server is told of it with whatever is said next: cheaper, if that follows soon.
        """
        with self._lock:
            self._ledger.publish(topic, payload, at)
            if at_once:
                self._say()

    def promise(self, until: TimeLike) -> None:
        """Promise to send nothing before `until`, so that others needn't wait for this participant until then."""
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

    def invite(self, newcomer: str, at: TimeLike) -> None:
        """Let a newcomer join at a given time; nobody passes that time before the newcomer is there."""
        with self._lock:
            self._ledger.invite(newcomer, at)
            self._say(True)

    def stop(self, at: TimeLike) -> None:
        """End the run at a given time, the same for everybody."""
        with self._lock:
            self._ledger.stop(at)
            self._say(True)

    def log(self, text: object) -> None:
        """Write a line for observers and recordings; it isn't part of the digest."""
        with self._lock:
            self._ledger.log(text)
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

        `state` is all that the program needs to go on from here. It changes nothing in the run; where nobody can
        rejoin, nothing is done with it.
        """
        with self._lock:
            self._ledger.snapshot(state)
            self._say(True)  # It is of use only to whoever survives this process.

    def catch_up(self) -> None:
        """Tell what hasn't been told yet. For whoever keeps the connection alive, from any thread."""
        with self._lock:
            self._catch_up()

    def _say(self, urgent: bool = False) -> None:
        if self._courier.is_due(urgent or self._presses):
            self._catch_up()

    def _served_next(self, before: int, promise: TimeLike | None) -> None:
        """Say what is to be said after a `next` that didn't have to wait."""
        self._presses = self._presses or promise is not None
        if self._ledger.now > before or promise is None:  # Otherwise it has more to do now, and says it then.
            self._say()

    def _take_untold(self) -> None:
        self._presses = False
        self._ledger.hand_over(self._untold)

    def _take_asked(self) -> None:
        self._presses = False
        if self._untold:
            self._asked += self._untold
            self._untold = []
        self._ledger.hand_over(self._asked)

    def _catch_up(self) -> None:
        self._ledger.tell_time()
        self._tell()

    def _tell(self) -> None:
        self._take_untold()
        if self._untold:
            self._courier.tell(self._untold)

    def _crowded(self) -> UsageError:
        return UsageError("two of its threads or tasks wait at once", participant=self.name, at=self.now)

    def _target(self, to: TimeLike | None, by: TimeLike | None) -> TimeLike:
        if by is None and to is not None:
            return to
        if to is None and by is not None:
            return self.now + as_time(by, "a step")
        raise UsageError("advance takes either `to` or `by`", participant=self.name, at=self.now)


class Participant(Operations):
    """One participant of a run, in blocking style."""

    def __init__(self, ledger: Ledger, connection: Connection) -> None:
        super().__init__(ledger, connection)
        self._connection = connection

    def join(self) -> None:
        """Wait until the run starts, or until the time at which this newcomer joins."""
        with self._lock:
            self._take_asked()
        self._wait()
        if self._ledger.misses_snapshot:
            self._asked.append(Recall())  # type: ignore[arg-type] # of the server, not the arbiter
            self._wait()

    def advance(self, to: TimeLike | None = None, *, by: TimeLike | None = None) -> list[Message]:
        """Advance to a time, or by a duration, and return, in order, every message that arrives before then."""
        return self._advance(to, by)

    def _advance(self, to: TimeLike | None, by: TimeLike | None) -> list[Message]:
        target = to if to is not None and by is None else self._target(to, by)
        with self._lock:
            messages = self._ledger.advance(target)
            if messages is not None:
                self._say()
                return messages
            self._take_asked()
        return self._wait()

    def next(self, until: TimeLike | None = None, *, promise: TimeLike | None = None) -> list[Message]:
        """Advance to the next arrival and return all messages of that exact time, or to `until` and return none.

        Without `until`, wait as long as anything can arrive: an empty result then means that the run has ended for this
        participant. With a `promise`, first promise to send nothing before then: cheaper than to do so on its own.
        """
        return self._next(until, promise)

    def _next(self, until: TimeLike | None, promise: TimeLike | None) -> list[Message]:
        with self._lock:
            before = self._ledger.now
            messages = self._ledger.next(until, promise)
            if messages is not None:
                self._served_next(before, promise)
                return messages
            self._take_asked()
        return self._wait()

    def peek(self, until: TimeLike | None = None) -> int:
        """Return when the next message arrives, or a time before which none does, and stay where you are.

        For a program that finds out what it sends only by running. If the time returned is later than now, run up to
        there, publish what it sends on the way (``publish(..., at=...)``), and `advance` there. If it is now, a message
        arrives now: take it with `next`.

        It looks ahead no further than `until`, and no further than it takes anybody to reach this participant: what
        comes later may answer what it sends now. It sees the end of the run, too: the run has ended for a participant
        that is there and would look beyond.
        """
        with self._lock:
            known = self._ledger.peek(until)
            if known is not None:
                self._say()
                return known
            self._take_asked()
        self._wait()
        with self._lock:
            known = self._ledger.peek(until)
        assert known is not None
        return known

    def messages(self, until: TimeLike | None = None) -> Iterator[Message]:
        """Iterate over the messages that arrive before `until`, advancing to the arrival of each.

        All messages of one moment are delivered together: leaving the loop between two of them loses the rest.
        """
        limit = TIME_MAX if until is None else as_time(until)
        while self.now < limit and (batch := self.next(until)):
            yield from batch

    def _wait(self) -> list[Message]:
        if self._waits:
            raise self._crowded()
        self._waits = True
        try:
            answer = self._connection.ask(self._asked)
            with self._lock:
                return self._ledger.receive(answer)
        finally:
            self._waits = False
