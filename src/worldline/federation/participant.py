"""The participant as its program sees it: ordinary blocking calls.

One definition runs everywhere: the program is a function of a `Participant`, and what the participant is connected to
(an arbiter in the same process, a checker that permutes schedules, a server across a socket) is a `Connection`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from worldline.lock import Action, Ledger, ParticipantEvent
from worldline.model import TIME_MAX, UNBOUNDED, Buffer, Message, Stream, UsageError, as_time
from worldline.model.time import TimeLike


class Connection(Protocol):
    """The way to the arbiter and back."""

    def tell(self, events: list[ParticipantEvent]) -> None:
        """Hand over a frame of events; don't wait for an answer."""

    def ask(self, events: list[ParticipantEvent]) -> Action:
        """Hand over a frame of events and wait for the answer."""

    def flush_after_operation(self) -> bool:
        """Whether what was just said should be told at once; otherwise it travels with the next request."""


class Participant:
    """One participant of a run. All times are nanoseconds or text such as ``"5ms"``."""

    def __init__(self, ledger: Ledger, connection: Connection) -> None:
        self._ledger = ledger
        self._connection = connection

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

    def join(self) -> None:
        """Wait until the run starts, or until this newcomer's time."""
        self._wait()

    def advance(self, to: TimeLike | None = None, *, by: TimeLike | None = None) -> list[Message]:
        """Go to a time, or so much further, and return, in order, every message that arrives before it."""
        if (to is None) == (by is None):
            raise UsageError("advance takes either `to` or `by`", participant=self.name, at=self.now)
        target = to if by is None else self.now + as_time(by, "a step")
        assert target is not None
        return self._served(self._ledger.advance(target))

    def next(self, until: TimeLike | None = None) -> list[Message]:
        """Go to the next arrival and return all messages of that very time, or go to `until` and return none.

        Without `until` it waits as long as anything can come: it returns none only when the run has ended for it.
        """
        return self._served(self._ledger.next(until))

    def messages(self, until: TimeLike | None = None) -> Iterator[Message]:
        """Iterate over the messages that arrive before `until`, moving to each one's arrival.

        All messages of one moment are given together: leaving the loop between two of them loses the rest.
        """
        limit = TIME_MAX if until is None else as_time(until)
        while self.now < limit and (batch := self.next(until)):
            yield from batch

    def publish(self, topic: str, payload: bytes, at: TimeLike | None = None) -> None:
        """Send a message on a topic, now or at a later time."""
        self._ledger.publish(topic, payload, at)
        self._flush()

    def promise(self, until: TimeLike) -> None:
        """Promise to send nothing before `until`: others needn't wait for this participant until then."""
        self._ledger.promise(until)
        self._flush()

    def subscribe(self, topic: str, buffer: Buffer | str = UNBOUNDED) -> None:
        """Receive what arrives on a topic from now on."""
        self._ledger.subscribe(topic, buffer)
        self._flush()

    def unsubscribe(self, topic: str) -> None:
        """Receive a topic no longer."""
        self._ledger.unsubscribe(topic)
        self._flush()

    def invite(self, newcomer: str, at: TimeLike) -> None:
        """Let a newcomer join at a time; nobody passes that time before it is there."""
        self._ledger.invite(newcomer, at)
        self._flush()

    def stop(self, at: TimeLike) -> None:
        """End the run at a time, the same for everybody."""
        self._ledger.stop(at)
        self._flush()

    def leave(self) -> None:
        """Leave the run. Returning from the program does the same."""
        self._ledger.leave()
        if outbox := self._ledger.take_outbox():
            self._connection.tell(outbox)

    def random(self, name: str) -> Stream:
        """Return a named stream of random draws, usable as a `random.Random`."""
        return self._ledger.random(name)

    def _served(self, messages: list[Message] | None) -> list[Message]:
        if messages is None:
            return self._wait()
        self._flush()
        return messages

    def _wait(self) -> list[Message]:
        return self._ledger.receive(self._connection.ask(self._ledger.take_outbox()))

    def _flush(self) -> None:
        if self._connection.flush_after_operation():
            self._ledger.tell_time()
            if outbox := self._ledger.take_outbox():
                self._connection.tell(outbox)
