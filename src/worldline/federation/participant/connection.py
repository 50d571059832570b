"""A participant's connection to its server over a blocking socket.

When to send what only tells, apart from a request:

- a promise and a control operation at once: others may be waiting for them;
- anything else with the next of these, or with the first operation half a millisecond after the last frame, said or
  heard: one system call for many steps that are served from what was granted ahead, and no long silence toward others.

The program's thread and the pulse's use it side by side: each holds the lock for what it does, writing or reading.

A signal's handler may raise in the program's thread, which then goes on and waits again. So what is to be written is
put into a queue first, and the next to write, the pulse too, begins with the rest of it; what was read stays in a
queue until it is understood. Handlers run after calls and in loops, not within one of C: hence `map`, which leaves
nothing between what the system has done and the note of it, and statements without a call where two belong together.
In the compiled build, all of this is C, down to the system's calls (`calls.pyx`).

Silence of the server is no loss: it may be busy, or stopped. If it dies, the system closes the connection; if its
machine is gone, the system finds out, or this connection, which looks every second while it waits. Only a connection
that was given a limit gives up a server that says nothing for so long while it waits.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from worldline.federation.participant.call import Greeting, refusal
from worldline.federation.sockets import (
    CLOSED,
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
from worldline.lock import Abort, Action, Advance, Grant, Leave, Next, ParticipantEvent, Peek, StartRun
from worldline.lock.events import Recall, Recalled, Restore
from worldline.lock.ledger import Wire, broken_off
from worldline.model import LossError, Message, Stream, UsageError, WorldlineError
from worldline.model.errors import BrokenOff, shortened
from worldline.wire.codec import HEARTBEAT, Frames, decode_answer, encode_events
from worldline.wire.handshake import OVER, TAKEN, Answer, Deliver, Fail, Refused, Resume

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # Otherwise `connection.pxd` imports the compiled ones.
    from threading import Lock as Mutex
    from threading import RLock as ReentrantMutex
    from time import monotonic

    from worldline.federation.sockets import SocketCalls, yield_processor

# What a server says to its participant: bytes in, whole answers out. Shared by all clients, whatever they read with.
#
# Heartbeats, frames without a body, are dropped, and messages that came ahead of their grant are put back into it. An
# answer is kept until the next request goes out, and the last word of a run for good: a program that was interrupted
# while it waited asks after it again.

TELL_AFTER_S = _TELL_AFTER_S = 0.0005
"""How long what only tells may lie about before the next operation sends it: see `connection`."""

PULSE_S = 0.05
"""And how long at the most, if no operation follows."""

GREETING_S = 10.0
"""How long a server may take over the handshake."""

DOUBT_S = 1.0
"""After how long of it one looks whether it is a server of ours at all."""

HUNG_UP = "hung up"
"""The `code` of a loss for which the other end has hung up, without a word."""

_ANSWERED = (Advance, Next, Peek, Recall, Leave)  # The last of them, so that it is known to have been heard.


class Conversation:
    """One participant's side of it. `end` is why there is nothing more to be said, once there isn't."""

    def __init__(self, name: str) -> None:
        self.end: WorldlineError | None = None
        self.disowned = False  # This process was forked from the one that the conversation belongs to.
        self.frames = Frames()
        self._name = name
        self._bodies: list[bytes] = []
        self._parts: list[
            StartRun | Grant | Deliver | Recalled
        ] = []  # Of the answer; when it is whole, the last isn't a Deliver.

    def agree(self, frame_max: int, payload_max: int) -> None:
        """Take the longest frame and the largest payload from the server's welcome."""
        self.frames.longest = frame_max
        self.frames.admit(payload_max)

    def feed(self, data: bytes) -> None:
        """Take what has come in."""
        self.move([data])

    def move(self, unread: list[bytes]) -> bool:
        """Take what has come in first, in a program that may be interrupted meanwhile; whether a frame is whole now."""
        if unread:
            self.frames.push(unread)
        moved = False
        while self.frames.cut(self._bodies):
            moved = True
        return moved

    def body(self) -> bytes | None:
        """Return the next frame as it is, for the handshake; None: more has to come in."""
        while self._bodies and not self._bodies[0]:
            del self._bodies[0]
        return self._bodies.pop(0) if self._bodies else None

    def encode(self, events: list[ParticipantEvent]) -> bytes:
        """Return what the participant says as frames. What is answered leaves the answer before behind."""
        self.says(type(events[-1]))
        return encode_events(events, self.frames.longest)

    def says(self, last: type) -> None:
        """Note of which kind the last event is that the participant says now."""
        if last in _ANSWERED:
            self._parts = []

    def is_blank(self) -> bool:
        """Whether an answer may come next, since both ends have agreed, and nothing of it has come yet."""
        return self.frames.whole > 0 and not (self._parts or self._bodies or self.frames.is_cut_short())

    def take(self, grant: Grant) -> None:
        """Take a whole answer, understood already."""
        self._parts.append(grant)

    def answer(self) -> StartRun | Grant | None:
        """Return the answer, if it is whole; None: more has to come in. Raise if the server has ended it.

        Or what was recalled: the ledger knows what it has asked for.
        """
        while not self._is_whole():
            if not self._bodies:
                self.check()
                return None
            body = self._bodies[0]
            if body:
                part = self._understood(body)
                del self._bodies[0]  # With the next line, one step: its call is the last of it.
                self._parts.append(part)
            else:
                del self._bodies[0]
        answer: Any = self._parts[-1]
        if len(self._parts) == 1 or type(answer) is StartRun:
            return answer  # type: ignore[no-any-return] # it isn't a Deliver
        messages: list[Message] = []  # Those that came ahead are put back in front of the grant's own.
        for part in self._parts:
            messages += part.messages  # type: ignore[union-attr]
        whole: Grant = replace(answer, messages=messages)
        return whole

    def _is_whole(self) -> bool:
        return bool(self._parts) and type(self._parts[-1]) is not Deliver

    def look(self) -> None:
        """Raise if what has come in unasked is the end; it can be nothing else, once an answer is complete."""
        for body in self._bodies:
            if body:
                self._understood(body)
        self.check()

    def check(self) -> None:
        """Raise why there is nothing more to be said, if that is so."""
        if self.end is not None:
            raise self.end.with_traceback(None)  # It may be raised more than once, and each has its own way.

    def disown(self) -> None:
        """End it in a forked process, without a word: the connection belongs to the parent."""
        self.disowned = True
        self.end = not_ours(self._name)

    def lost(self, problem: str, advice: str | None = None) -> LossError:
        """Return the end of it: the server has gone, without another word."""
        self.end = LossError(problem, participant=self._name, advice=advice)
        return self.end

    def hung_up(self, problem: str) -> LossError:
        """Return the end, since the server has hung up: it may have been killed, and come back."""
        error = self.lost(problem)
        error.facts["code"] = HUNG_UP
        return error

    def silent(self, seconds: float) -> LossError:
        """Return the end of it, since the server has said nothing."""
        silence = f"nothing was heard from the server for {seconds:.0f} seconds"
        return self.lost(silence, advice="is it a Worldline server, and not stopped?")

    def unreachable(self, seconds: float) -> LossError:
        return self.lost(f"the server's machine hasn't answered for {seconds:.0f} seconds")

    def _understood(self, body: bytes) -> StartRun | Grant | Deliver | Recalled:
        answer: Answer = decode_answer(body)
        if type(answer) is Grant:
            return answer
        if isinstance(answer, Abort):
            self.end = broken_off(answer)
        elif isinstance(answer, Refused):
            self.end = refusal(answer, self._name)
        else:
            return answer
        raise self.end


def failure(cause: str, at: int | None = None) -> bytes:
    """Return the last word of a participant whose program has failed, as a frame."""
    return encode_events([Fail(shortened(cause), at)])  # type: ignore[list-item] # of the server, not the arbiter


# How long one asks for what is to come before one goes to sleep.
#
# While answers come in briskly, falling asleep and being woken, and finding the processor's caches full of other
# things, costs more than most answers take. So one asks for a while, and lets others have the processor in between.
# Where that takes long, other processes may need it: one that sleeps is then woken sooner than one that asks gets
# another turn. So one doesn't ask for some time then, for so many times as long as it took that little is lost in all.
# But if it didn't take very long, and has brought what one waits for, then its sender had the processor, and nothing
# could be quicker.

_ASKED_S = 0.0002
_BRISK_S = 2 * _ASKED_S  # Being woken takes time, too.
_LONG_S = 0.00005
_VERY_LONG_S = 0.0003
_PAUSES = 64  # For so many times as long as it took one doesn't ask.


class MonotonicClock:
    """`time.monotonic`, which is asked in C, or a function that stands in for it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = None if clock is time.monotonic else clock

    def read(self) -> float:
        return monotonic() if self._clock is None else self._clock()


class Eagerness:
    """Of one end of a connection, or of several. `since` is always when it began to wait."""

    def __init__(self, clock: MonotonicClock) -> None:
        self._clock = clock
        self._brisk = False  # What was last waited for came soon.
        self._lost_s = 0.0  # How long another process had the processor, if what came of it isn't known yet.
        self._resumes = 0.0  # When it may ask again.

    def asks(self, since: float) -> bool:
        """Whether to ask, and not to sleep at once."""
        return self._brisk and since >= self._resumes

    def asks_again(self, since: float) -> bool:
        """Let others have the processor; return whether to ask again then."""
        before = self._clock.read()
        if self._lost_s:
            self._resumes = before + _PAUSES * self._lost_s
            return False
        yield_processor()
        now = self._clock.read()
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
        # What came after it had stopped asking was asked for in vain: so it goes in rings.
        self._brisk = now - since < (_ASKED_S if self._brisk else _BRISK_S)
        self._lost_s = 0.0


_LOOK_AFTER_S = 0.05
_WAKE_S = 1.0
_FAREWELL_S = 2.0
_SHAKE_S_MAX = 0.002
_AT_ONCE = int(socket.MSG_DONTWAIT)
_LEAST = READ_LEAST
_NOTHING: list[bytes] = []


class QueuedSocket:
    """A blocking socket with a queue of what is to be written and one of what was read: see above.

    Its users hold `writing` while they `send`, and `reading` while they `receive`.
    """

    def __init__(self, connection: socket.socket | Encrypted, shake: Stream | None, patience_s: float) -> None:
        self.socket = connection
        self.plain = connection.plain if isinstance(connection, Encrypted) else connection
        self._calls: Any = SocketCalls(connection, connection is self.plain, True)
        self.reading = Mutex()
        self.writing = Mutex()
        self.unsent: list[bytes] = []
        self.written = 0.0
        self.patience_s = patience_s  # How long the other machine may leave what was sent unanswered.
        self.deadline: float | None = None  # When waiting ends, if it does.
        self._shake = shake  # Draws delays, to show that they don't show.
        self._sent: list[int] = []  # How much was written of the first of `unsent`, each time.
        self._unread: list[bytes] = []
        self._sizes: list[int] = []  # How much was read where long frames are put together, each time.
        self._size = READ_LEAST
        wake_every(connection, min(_WAKE_S, patience_s))

    def say(self, events: list[ParticipantEvent], longest: int) -> bool:
        """Write events at once, and have the rest follow; False: that can't be, or something is before them."""
        if self.unsent or self._shake is not None or self.writing.locked() or not self._calls.takes_frames(0):
            return False
        rest = self._calls.say(events, longest)
        if rest is None:
            return False
        self.written = monotonic()
        if rest:
            self.unsent.append(rest)
        return True

    def hears(self) -> bool:
        """Whether to `hear` what comes next: nothing that was read is left over, and frames are short."""
        return not (self._unread or self._sizes) and bool(self._calls.takes_frames(self._size))

    def hear(self, longest: int, flags: int) -> Grant | None:
        """Return a grant, if that alone has come; anything else is left over for `receive`."""
        heard = self._calls.hear_grant(longest, flags)
        if type(heard) is not bytes:
            return heard  # type: ignore[no-any-return]
        self._unread.append(heard)
        return None

    def send(self) -> bool:
        """Write what fits of what is to be written; False: there is no room for it."""
        if self._shake is not None:
            time.sleep(_SHAKE_S_MAX * max(0.0, self._shake.uniform(-1, 1)))
        self.written = monotonic()
        if len(self.unsent) > 1 and not self._sent:
            count = len(self.unsent)  # Other threads may put more behind these meanwhile.
            joined = b"".join(self.unsent[:count])
            self.unsent[:count] = [joined]
        data = self.unsent[0]
        done = sum(self._sent) if self._sent else 0
        if done < len(data):
            if not self._calls.send(data, done, self._sent):
                return False
            done = self._sent[0] if len(self._sent) == 1 else sum(self._sent)
        if done == len(data):
            self._sent = []
            del self.unsent[0]
        return True

    def receive(self, frames: Frames, flags: int = 0) -> bool:
        """Have `frames` take in what has come. False: nothing has for a second, or, if the flags say so, by now.

        Raise an `EOFError` where the server has closed the connection.
        """
        while not (self._unread or self._sizes):
            room = frames.room() if self.socket is self.plain else None
            if room is None:
                if not self._calls.receive(self._size, flags, self._unread):
                    return False
            else:
                try:
                    with room:  # The room can't grow as long as anything has a view of it, such as a traceback.
                        self._sizes.extend(map(self.plain.recv_into, (room,), (0,), (flags,)))
                except BlockingIOError:
                    return False
        if not (self._sizes[0] if self._sizes else self._unread[0]):
            raise EOFError
        if self._sizes:
            frames.fill(self._sizes)
        else:
            if self._size != _LEAST or len(self._unread[0]) >= _LEAST:
                self._size = next_read(self._size, len(self._unread[0]))
            frames.push(self._unread)
        return True

    def is_late(self) -> bool:
        """Whether the time for waiting is over."""
        return self.deadline is not None and time.monotonic() > self.deadline

    def is_unreachable(self) -> bool:
        """Whether the other machine has gone, as far as the system knows."""
        return is_unreachable(self.plain, self.patience_s)

    def expect_signs_of_life(self, patience_s: float) -> None:
        """Let the other machine leave what is sent unanswered for so long."""
        self.patience_s = patience_s
        expect_signs_of_life(self.plain, patience_s)

    def forget(self) -> None:
        """Drop what is to be written."""
        self._sent = []
        self.unsent.clear()

    def disown(self) -> None:
        """Let go of it in a forked process: not a word, and nothing that keeps the other process's connection open."""
        self.reading, self.writing = Mutex(), Mutex()  # Their holders aren't in this process.
        self.forget()
        self.close()

    def close(self) -> None:
        self._calls.close()
        self.socket.close()


class SocketConnection(Wire):
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
        self.queued = QueuedSocket(connection, shake, GREETING_S)
        self._conversation = Conversation(name)
        self._eagerness = Eagerness(MonotonicClock())
        self._is_plain = not isinstance(connection, Encrypted)
        self._looked = 0.0
        self._doubt = doubt
        self._heard = time.monotonic()
        self._silence_s = silence_s
        self._given_up: str | None = None
        remember(self)
        if doubt is not None:
            self.queued.deadline = self._heard + GREETING_S
        self._write(greeting.hello(self._body()))
        self.welcome = greeting.settle(self._body())
        self._doubt = self.queued.deadline = None
        self._conversation.agree(self.welcome.frame_max, self.welcome.payload_max)
        self.queued.expect_signs_of_life(4 * self.welcome.heartbeat / 1e9)

    @property
    def end(self) -> WorldlineError | None:
        """Why there is nothing more to be said, once there isn't."""
        return self._conversation.end

    @property
    def disowned(self) -> bool:
        """Whether this process was forked from the one that the connection belongs to."""
        return self._conversation.disowned

    # --- For the participant ---

    def tell(self, events: list[ParticipantEvent]) -> None:
        self._say(events)

    def ask(self, events: list[ParticipantEvent]) -> Action:
        """Say it, and wait for the answer. Nothing to say: the pulse was quicker, or the wait is taken up again."""
        self._say(events)
        if self._silence_s is not None:
            self._heard = time.monotonic()  # What it said before, while nothing was waited for, doesn't matter.
        with self.queued.reading:
            return self._answer()

    def is_due(self, urgent: bool) -> bool:
        now = monotonic()
        if now - self._looked > _LOOK_AFTER_S:
            self._looked = now
            self.look()
        return urgent or now - max(self.queued.written, self._heard) > _TELL_AFTER_S

    # --- For the pulse ---

    def beat(self) -> None:
        """Show that this end is alive, unless it has just said something, or will as soon as there is room for it."""
        is_quiet = time.monotonic() - self.queued.written > self.welcome.heartbeat / 1e9
        if is_quiet and _has_room(self.queued.socket):
            self._write(HEARTBEAT)

    # --- Writing and reading ---

    def look(self) -> None:
        """See whether the server has said something unasked: it can only be the end."""
        with self.queued.reading:
            self._conversation.look()
            self._receive(_AT_ONCE)
            self._conversation.look()

    def fail(self, cause: str, events: list[ParticipantEvent], at: int | None = None) -> None:
        """Say what is still to be told, when it was above all, and that the program has failed.

        If that can't be said in time, the closed connection says enough.
        """
        self.queued.deadline = time.monotonic() + _FAREWELL_S
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
        self.queued.deadline = None if patient else time.monotonic() + _FAREWELL_S
        try:
            if self.end is None:
                self.queued.socket.shutdown(socket.SHUT_WR)
                with self.queued.reading:
                    while True:
                        self._receive()
        except (OSError, WorldlineError):  # The server has hung up, or doesn't: there is nothing left to be done.
            self._conversation.lost("the connection is closed")
        finally:
            self.queued.close()

    def give_up(self, problem: str) -> None:
        """Have the thread that waits for the server wait no more. From any thread."""
        self._given_up = problem
        with contextlib.suppress(OSError):  # It is closed already.
            self.queued.plain.shutdown(socket.SHUT_RDWR)

    def disown(self) -> None:
        """Let go of it in a forked process."""
        self._conversation.disown()
        self.queued.disown()

    def _say(self, events: list[ParticipantEvent]) -> None:
        conversation, queued = self._conversation, self.queued
        if events and not self._says_at_once(events):
            data = conversation.encode(events)
            del events[:]  # With the next line, one step: its call is the last of it.
            queued.unsent.append(data)
        if queued.unsent:
            self._write(b"")
        else:
            conversation.check()

    def _says_at_once(self, events: list[ParticipantEvent]) -> bool:
        """Write what a hop takes, as far as it fits; False: it has to be queued."""
        conversation = self._conversation
        if conversation.end is not None:
            return False
        last: object = type(events[-1])
        try:
            if not self.queued.say(events, conversation.frames.longest):
                return False
        except OSError as error:
            raise self._reason(error) from error
        conversation.says(last)  # type: ignore[arg-type]
        return True

    def _write(self, data: bytes) -> None:
        self._conversation.check()
        if data:
            self.queued.unsent.append(data)
        try:
            with self.queued.writing:
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
        """Send all that is to be sent. A server may let a participant wait that is far ahead."""
        while self.queued.unsent:
            if not self.queued.send():
                with self.queued.reading:
                    self._receive(_AT_ONCE)
                    self._conversation.look()
                self._check_patience()

    def _reason(self, error: OSError) -> WorldlineError:
        """Return why nothing can be said any more: what the server has said last, if it has said anything."""
        try:
            with self.queued.reading:
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
        if self._conversation.move(_NOTHING):
            return  # It was left over when the program was interrupted.
        written = self.queued.written
        came = False
        try:
            if not flags and self._is_plain and self._eagerness.asks(written):
                while not came and self._eagerness.asks_again(written):
                    came = self._hear(_AT_ONCE)
            while not (came or self._hear(flags)):
                if flags:
                    return
                self._check_patience()
        except EOFError:
            raise self._conversation.hung_up(self._given_up or CLOSED) from None
        except ssl.SSLError as error:
            raise self._conversation.lost(broken(error)) from error
        except OSError as error:
            raise self._conversation.hung_up(broken(error)) from error
        self._heard = monotonic()
        self._eagerness.came(written, self._heard)
        self._conversation.move(_NOTHING)

    def _hear(self, flags: int) -> bool:
        """Have what has come taken in; False: nothing has. A grant that has come alone is understood at once."""
        conversation, queued = self._conversation, self.queued
        if queued.hears() and conversation.is_blank():
            grant = queued.hear(conversation.frames.longest, flags)
            if grant is not None:
                conversation.take(grant)
                return True
            if queued.hears():
                return False
        return queued.receive(conversation.frames, flags)

    def _check_patience(self) -> None:
        """Raise if there is nothing to wait for: the server's machine is gone, or the time for it is over."""
        silent_s = time.monotonic() - self._heard
        if self._doubt is not None and silent_s > DOUBT_S:
            doubt, self._doubt = self._doubt, None
            doubt()
        if self.queued.is_unreachable():
            raise self._conversation.unreachable(self.queued.patience_s)
        if self.queued.is_late():
            raise self._conversation.silent(GREETING_S)
        if self._silence_s is not None and silent_s > self._silence_s:
            raise self._conversation.silent(self._silence_s)


def _has_room(connection: socket.socket | Encrypted) -> bool:
    """Whether a socket takes what is written to it."""
    poll = select.poll()
    poll.register(connection, select.POLLOUT)
    return bool(poll.poll(0))


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


class RedialingWire(Wire):
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
        self._renewing = ReentrantMutex()

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
            connection = self._connection
            try:
                connection.tell(self._unsaid)
            except LossError as error:
                self._renew(connection, error)

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
        answers = self._answers
        first: object = self._said[0].__class__ if self._said else None
        if first is Restore:
            answers = self._place().answers
        if answer.__class__ is not Recalled:
            answers += 1
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
            connection = self._connection
            try:
                connection.look()
            except LossError as error:
                self._renew(connection, error)

    def fail(self, cause: str, events: list[ParticipantEvent], at: int | None = None) -> None:
        self._connection.fail(cause, events, at)

    def close(self, *, patient: bool = False) -> None:
        """Hang up. If all is well, only when the server has said that it knows: it may have been lost meanwhile."""
        try:
            if patient and self.end is None and self._said:
                with contextlib.suppress(BrokenOff):  # It has left; what becomes of the others is no concern of it.
                    self._farewell()
        finally:
            self._is_closed = True  # A thread that makes a new connection just now gives up.
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
            again: list[Any] = [place, *[event for event in self._said if not isinstance(event, Restore)]]
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
