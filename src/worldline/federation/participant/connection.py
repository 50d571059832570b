"""A participant's connection to its server over a blocking socket.

When to send what only tells, apart from a request:

- a promise and a control operation at once: others may be waiting for them;
- anything else with the next of these, or with the first operation half a millisecond after the last frame: one
  system call for many steps that are served from what was granted ahead, and no long silence toward others.

The program's thread and the pulse's use it side by side: each holds the lock for what it does, writing or reading.

A signal's handler may raise in the program's thread, which then goes on and waits again. So what is to be written is
put into a queue first, and the next to write, the pulse too, begins with the rest of it; what was read stays in a
queue until it is understood. Handlers run after calls and in loops, not within one of C: hence `map`, which leaves
nothing between what the system has done and the note of it, and statements without a call where two belong together.
In the compiled build, all of this is C.

Silence of the server is no loss: it may be busy, or stopped. If it dies, the system closes the connection; if its
machine is gone, the system finds out, or this connection, which looks every second while it waits. Only a connection
that was given a limit gives up a server that says nothing for so long while it waits.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import Any

from worldline.builds import reason as uncompiled_because
from worldline.federation.participant.call import Greeting
from worldline.federation.participant.conversation import DOUBT_S, GREETING_S, TELL_AFTER_S, Conversation, failure
from worldline.federation.sockets import (
    READ_LEAST,
    Encrypted,
    broken,
    expect_signs_of_life,
    is_unreachable,
    next_read,
    not_ours,
    remember,
    wake_every,
)
from worldline.lock import Action, ParticipantEvent
from worldline.lock.events import Recalled, Restore
from worldline.model import LossError, Stream, UsageError, WorldlineError
from worldline.model.errors import BrokenOff
from worldline.wire.frames import HEARTBEAT
from worldline.wire.handshake import OVER, TAKEN, Resume

# How long one asks for what is to come before one goes to sleep.
#
# While answers come in briskly, falling asleep and being woken, and finding the processor's caches full of other
# things, costs more than most answers take. So one asks for a while, and lets others have the processor in between.
# Where that takes long, other processes may need it: one that sleeps is then woken sooner than one that asks gets
# another turn. So one doesn't ask for some time then, for so many times as long as it took that little is lost in all.
# But if it didn't take very long, and has brought what one waits for, then its sender had the processor, and nothing
# could be quicker.

_ASKED_S = 0.0002
_BRISK_S = 2 * _ASKED_S
_LONG_S = 0.00005
_VERY_LONG_S = 0.0003
_PAUSES = 64  # For so many times as long as it took one doesn't ask.


class Eagerness:
    """Of one end of a connection, or of several. `since` is always when it began to wait."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._brisk = False  # What was last waited for came soon.
        self._lost_s = 0.0  # How long somebody else had the processor, if what came of it isn't known yet.
        self._resumes = 0.0  # When it may ask again.

    def asks(self, since: float) -> bool:
        """Whether to ask, and not to sleep at once."""
        return self._brisk and since >= self._resumes

    def asks_again(self, since: float) -> bool:
        """Let others have the processor; return whether to ask again then."""
        before = self._clock()
        if self._lost_s:
            self._resumes = before + _PAUSES * self._lost_s
            return False
        os.sched_yield()
        now = self._clock()
        took = now - before
        if took > _VERY_LONG_S:
            self._resumes = now + _PAUSES * took
            return False
        if took > _LONG_S:
            self._lost_s = took
            return True
        return now - since < _ASKED_S

    def came(self, since: float, now: float) -> None:
        """Note when something has come."""
        self._brisk = now - since < _BRISK_S
        self._lost_s = 0.0


_LOOK_AFTER_S = 0.05
_WAKE_S = 1.0
_FAREWELL_S = 2.0
_SHAKE_S_MAX = 0.002
_IS_COMPILED = not uncompiled_because
_AT_ONCE = int(socket.MSG_DONTWAIT)
_LEAST = READ_LEAST

_clock = time.monotonic


class SocketConnection:
    """A connection to a server over a blocking socket.

    `doubt` is called if the server keeps silent, and raises if it isn't one of ours. Without doubt, its greeting is
    waited for as long as it takes. `silence_s` is how long the server may then say nothing, not even a heartbeat.
    """

    def __init__(
        self,
        connection: socket.socket | Encrypted,
        greeting: Greeting,
        name: str,
        shake: Stream | None = None,
        *,
        doubt: Callable[[], None] | None = None,
        silence_s: float | None = None,
    ) -> None:
        self._socket = connection
        self._plain = connection.plain if isinstance(connection, Encrypted) else connection
        self._shake = shake  # Draws delays, to show that they don't show.
        self._name = name
        self._conversation = Conversation(name)
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._unsent: list[bytes] = []
        self._sent: list[int] = []  # How much was written of the first of them, each time.
        self._unread: list[bytes] = []
        self._sizes: list[int] = []  # How much was read where long frames are put together, each time.
        self._size = READ_LEAST
        self._eagerness = Eagerness(_clock)
        self._comes = None if self._socket is not self._plain else _asker(self._plain)
        self._written = 0.0
        self._looked = 0.0
        self._patience_s = GREETING_S
        self._doubt = doubt
        self._begun = self._heard = time.monotonic()
        self._silence_s = silence_s
        self._given_up: str | None = None
        # When waiting ends, if it does.
        self._deadline: float | None = None if doubt is None else self._begun + GREETING_S
        self.disowned = False  # This process was forked from the one that the connection belongs to.
        remember(self)
        wake_every(connection, min(_WAKE_S, GREETING_S))
        self._write(greeting.hello(self._body()))
        self.welcome = greeting.settle(self._body())
        self._doubt = self._deadline = None
        self._conversation.agree(self.welcome.frame_max, self.welcome.payload_max)
        self.heartbeat_s = self.welcome.heartbeat / 1e9
        self._patience_s = 4 * self.heartbeat_s
        expect_signs_of_life(self._plain, self._patience_s)

    @property
    def end(self) -> WorldlineError | None:
        """Why there is nothing more to be said, once there isn't."""
        return self._conversation.end

    # --- For the participant ---

    def tell(self, events: list[ParticipantEvent]) -> None:
        if events:
            self._queue(events)
        self._write(b"")

    def ask(self, events: list[ParticipantEvent]) -> Action:
        """Say it, and wait for the answer. Nothing to say: the pulse was quicker, or the wait is taken up again."""
        if events:
            self._queue(events)
        self._write(b"")
        if self._silence_s is not None:
            self._heard = time.monotonic()  # What it said before, while nobody listened, doesn't matter.
        with self._reading:
            return self._answer()

    def is_due(self, urgent: bool) -> bool:
        now = _clock()
        if now - self._looked > _LOOK_AFTER_S:
            self._looked = now
            self.look()
        return urgent or now - self._written > TELL_AFTER_S

    # --- For the pulse ---

    def beat(self) -> None:
        """Show that this end is alive, unless it has just said something, or will as soon as there is room for it."""
        if time.monotonic() - self._written > self.heartbeat_s and self._is_ready(select.POLLOUT):
            self._write(HEARTBEAT)

    # --- Writing and reading ---

    def look(self) -> None:
        """See whether the server has said something that nobody has asked for: it can only be the end."""
        with self._reading:
            self._conversation.look()
            self._receive(_AT_ONCE)
            self._conversation.look()

    def fail(self, cause: str, events: list[ParticipantEvent], at: int | None = None) -> None:
        """Say what is still to be told, when it was above all, and that the program has failed.

        If that can't be said in time, the closed connection says enough.
        """
        self._deadline = time.monotonic() + _FAREWELL_S
        with contextlib.suppress(WorldlineError):
            if events:
                self.tell(events)
        with contextlib.suppress(WorldlineError):
            self._write(failure(cause, at))

    def close(self, *, patient: bool = False) -> None:
        """Hang up. If all is well, only when the server has taken all that it was told, however long that takes.

        A connection that is closed with something unread, if only a heartbeat, is reset, and what is still on its way
        is lost.
        """
        self._deadline = None if patient else time.monotonic() + _FAREWELL_S
        try:
            if self.end is None:
                self._socket.shutdown(socket.SHUT_WR)
                with self._reading:
                    while True:
                        self._receive()
        except (OSError, WorldlineError):  # The server has hung up, or doesn't: there is nothing left to be done.
            self._conversation.lost("the connection is closed")
        finally:
            self._socket.close()

    def give_up(self, problem: str) -> None:
        """Have whoever waits for the server wait no more. From any thread."""
        self._given_up = problem
        with contextlib.suppress(OSError):  # It is closed already.
            self._plain.shutdown(socket.SHUT_RDWR)

    def disown(self) -> None:
        """Let go of it in a forked process: not a word, and nothing that keeps the other process's connection open."""
        self.disowned = True
        self._conversation.end = not_ours(self._name)
        self._reading, self._writing = threading.Lock(), threading.Lock()  # Who held them isn't in this process.
        self._unsent.clear()
        self._socket.close()

    def _queue(self, events: list[ParticipantEvent]) -> None:
        data = self._conversation.encode(events)
        del events[:]  # With the next line, one step: its call is the last of it.
        self._unsent.append(data)

    def _write(self, data: bytes) -> None:
        if self._shake is not None:
            time.sleep(_SHAKE_S_MAX * max(0.0, self._shake.uniform(-1, 1)))
        self._conversation.check()
        if data:
            self._unsent.append(data)
        try:
            with self._writing:
                self._send_all()
        except OSError as error:
            raise self._reason(error) from error

    # These loops are apart from where the locks are held: a signal's handler that raises at a loop's jump back leaves
    # the lock locked there, since CPython (seen in 3.13) counts that jump as outside of the `with`.

    def _answer(self) -> Action:
        while (answer := self._conversation.answer()) is None:
            self._receive()
        return answer

    def _send_all(self) -> None:
        while self._unsent:
            self._send(self._unsent[0])

    def _send(self, data: bytes) -> None:
        """Send what fits. A server may let a participant wait that is far ahead."""
        self._written = _clock()
        done = sum(self._sent) if self._sent else 0
        if done < len(data):
            try:
                rest = memoryview(data)[done:] if done else data
                if _IS_COMPILED:
                    self._sent.append(self._socket.send(rest))
                else:
                    self._sent.extend(map(self._socket.send, (rest,)))
            except BlockingIOError:
                with self._reading:
                    self._receive(_AT_ONCE)
                    self._conversation.look()
                self._check_patience()
                return
            done = sum(self._sent)
        if done == len(data):
            self._sent = []
            del self._unsent[0]

    def _is_ready(self, event: int) -> bool:
        return bool(_asker(self._socket, event)(0))

    def _reason(self, error: OSError) -> WorldlineError:
        """Return why nothing can be said any more: what the server has said last, if it has said anything."""
        try:
            with self._reading:
                while True:
                    self._conversation.look()
                    self._receive()
        except WorldlineError as said:
            return said

    def _body(self) -> bytes:
        while (body := self._conversation.body()) is None:
            self._receive()
        return body

    def _receive(self, flags: int = 0) -> None:
        """Take in what the server has sent: wait for it, unless the flags say otherwise."""
        if not self._unread and self._conversation.move(self._unread):
            return  # It was left over when the program was interrupted.
        if not flags and self._comes is not None and self._eagerness.asks(self._written):
            while not self._comes(0) and self._eagerness.asks_again(self._written):
                pass
        while not (self._unread or self._sizes):
            room = self._conversation.room() if self._socket is self._plain else None
            try:
                if room is None:
                    if _IS_COMPILED:
                        self._unread.append(self._socket.recv(self._size, flags))
                    else:
                        self._unread.extend(map(self._socket.recv, (self._size,), (flags,)))
                else:
                    with room:  # The room can't grow as long as anybody has a view of it, such as a traceback.
                        self._sizes.extend(map(self._plain.recv_into, (room,), (0,), (flags,)))
            except BlockingIOError:
                if flags:
                    return
                self._check_patience()
            except OSError as error:
                is_told = isinstance(error, ssl.SSLError)
                raise (self._conversation.lost if is_told else self._conversation.hung_up)(broken(error)) from error
        if not (self._sizes[0] if self._sizes else self._unread[0]):
            raise self._conversation.hung_up(self._given_up or "the server closed the connection")
        heard = _clock()
        self._eagerness.came(self._written, heard)
        if self._silence_s is not None:
            self._heard = heard
        if self._sizes:
            self._conversation.fill(self._sizes)
        elif self._size != _LEAST or len(self._unread[0]) == _LEAST:
            self._size = next_read(self._size, len(self._unread[0]))
        self._conversation.move(self._unread)

    def _check_patience(self) -> None:
        """Raise if there is nothing to wait for: the server's machine is gone, or the time for it is over."""
        now = time.monotonic()
        if self._doubt is not None and now - self._begun > DOUBT_S:
            doubt, self._doubt = self._doubt, None
            doubt()
        if is_unreachable(self._plain, self._patience_s):
            raise self._conversation.unreachable(self._patience_s)
        if self._deadline is not None and now > self._deadline:
            raise self._conversation.silent(GREETING_S)
        if self._silence_s is not None and now - self._heard > self._silence_s:
            raise self._conversation.silent(self._silence_s)


def _asker(connection: socket.socket | Encrypted, event: int = select.POLLIN) -> Callable[[int], object]:
    """Return what tells whether a socket is ready, within so many milliseconds."""
    poll = select.poll()
    poll.register(connection, event)
    return poll.poll


# A participant's way to a server that may come back: if the connection is lost, it is made anew.
#
# What was said since the last answer may not have been heard, and the answer to it may not have come. So that much is
# kept, and is said again over the new connection, after how many answers there have been; the server compares it with
# what it has heard, and goes on from there (`rejoining`).
#
# The program's thread and the pulse's use it side by side, as they do a connection: either may find that it is lost,
# and one of them makes the new one while the other waits. The pulse looks at the connection, so that a server which has
# come back needn't wait until a program that computes for long has something to say.
#
# A signal's handler may raise in the program's thread: as above, two statements that belong together have no call
# between them, and what isn't done is done by the next call.

_RETRY_S = 0.05


class RedialingWire:
    """A way to a server over one connection after the other. `dial` makes one, and raises if it can't."""

    def __init__(self, connection: SocketConnection, dial: Callable[[], SocketConnection]) -> None:
        self._connection = connection
        self._dial = dial
        self._patience_s = connection.welcome.returns / 1e9
        self._answers = 0
        self._said: list[ParticipantEvent] = []  # Since the last answer.
        self._unsaid: list[ParticipantEvent] = []  # Of these, what wasn't handed over to the connection yet.
        self._asks = False
        self._is_closed = False
        self._given_up: str | None = None
        self._renewing = threading.RLock()

    @property
    def disowned(self) -> bool:
        return self._connection.disowned

    @property
    def end(self) -> WorldlineError | None:
        end = self._connection.end
        return None if end is not None and self._is_lost(end) else end

    # --- For the participant ---

    def tell(self, events: list[ParticipantEvent]) -> None:
        with self._renewing:
            self._said += events
            self._unsaid += events  # All of this is one step: none of it is a call.
            del events[:]
            self._try(lambda connection: connection.tell(self._unsaid))

    def ask(self, events: list[ParticipantEvent]) -> Action:
        with self._renewing:  # Otherwise it might be half of what another thread says again.
            self._said += events
            self._unsaid += events  # All of this is one step: none of it is a call.
            del events[:]
            self._asks = True
        try:
            answer: Any = self._answer()
        finally:
            self._asks = False
        answers = self._place().answers + (answer.__class__ is not Recalled)
        self._said, self._unsaid, self._answers = [], [], answers
        return answer  # type: ignore[no-any-return] # it may be what was recalled

    def _answer(self) -> Action:
        while True:
            connection = self._connection
            try:
                return connection.ask(self._unsaid)
            except LossError as error:
                self._renew(connection, error)

    def is_due(self, urgent: bool) -> bool:
        connection = self._connection
        try:
            return connection.is_due(urgent)
        except LossError as error:
            self._renew(connection, error)
            return urgent

    def look(self) -> None:
        with self._renewing:
            self._try(lambda connection: connection.look())

    def fail(self, cause: str, events: list[ParticipantEvent], at: int | None = None) -> None:
        self._connection.fail(cause, events, at)

    def close(self, *, patient: bool = False) -> None:
        """Hang up. If all is well, only when the server has said that it knows: it may have been lost meanwhile."""
        try:
            if patient and self.end is None and self._said:
                with contextlib.suppress(BrokenOff):  # It has left; what becomes of the others is no concern of it.
                    self._farewell()
        finally:
            self._is_closed = True  # Whoever makes a new connection just now gives up.
            with self._renewing:
                self._connection.close(patient=patient)

    def _farewell(self) -> None:
        try:
            self.ask([])
        except UsageError as error:
            if error.facts.get("code") != OVER:  # Then it has been heard, too.
                raise

    def give_up(self, problem: str) -> None:
        self._given_up = problem
        self._connection.give_up(problem)

    # --- For the pulse ---

    def beat(self) -> None:
        connection = self._connection
        try:
            if not self._asks:
                connection.look()
            connection.beat()
        except LossError as error:
            self._renew(connection, error)

    # --- Connecting anew ---

    def _try(self, act: Callable[[SocketConnection], None]) -> None:
        connection = self._connection
        try:
            act(connection)
        except LossError as error:
            self._renew(connection, error)

    def _is_lost(self, error: WorldlineError) -> bool:
        is_loss = isinstance(error, LossError) and not isinstance(error, BrokenOff)
        return is_loss and self._given_up is None and not self._is_closed

    def _renew(self, lost: SocketConnection, error: LossError) -> None:
        """Have another connection in the place of one that is lost, over which all is said that may not be known."""
        if not self._is_lost(error) or lost.disowned:
            raise error
        with self._renewing:
            if self._connection is not lost:  # Another thread was quicker.
                return
            with contextlib.suppress(OSError):
                lost.close()
            deadline = time.monotonic() + self._patience_s
            while True:
                if self._is_closed:
                    raise error
                try:
                    self._connection = self._resumed()
                except LossError as met:
                    if not self._is_lost(met):
                        raise met from error
                    if time.monotonic() > deadline:
                        raise gone(error, met, self._patience_s) from error
                except UsageError as refused:
                    # Its server hasn't noticed yet that the old connection is gone.
                    if refused.facts.get("code") != TAKEN or time.monotonic() > deadline:
                        raise
                else:
                    return
                time.sleep(_RETRY_S)

    def _place(self) -> Resume | Restore:
        """Return where it stood before it said what it has said since: as it says itself, if it was restored."""
        if self._said and isinstance(first := self._said[0], Restore):
            return first
        return Resume(self._answers)

    def _resumed(self) -> SocketConnection:
        connection = self._dial()
        try:
            place = self._place()
            again: list[Any] = [place, *(event for event in self._said if not isinstance(event, Restore))]
            connection.tell(again)
        except BaseException:
            connection.close()
            raise
        self._unsaid = []
        return connection


def gone(lost: LossError, met: LossError, patience_s: float) -> LossError:
    """Return what there is to be said of a server that was lost, and hasn't come back."""
    return LossError(
        f"{lost.problem}, and it didn't come back within {patience_s:g} seconds: {met.problem}",
        participant=lost.participant,
        advice="if the run is taken up again later, start this participant again, too",
    )
