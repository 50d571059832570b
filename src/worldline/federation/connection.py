"""A participant's connection to its server over a blocking socket.

When to send what only tells, apart from a request:

- a promise and a control operation at once: others may be waiting for them;
- anything else with the next of these, or with the first operation half a millisecond after the last frame: one
  system call for many steps that are served from what was granted ahead, and no long silence towards others.

The program's thread and the pulse's use it side by side: whoever writes or reads holds the lock for it.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time

from worldline.federation.conversation import GREETING_S, TELL_AFTER_S, Conversation, failure
from worldline.federation.encrypted import Encrypted
from worldline.federation.greeting import Greeting
from worldline.federation.sockets import broken, limit_silence
from worldline.lock import Action, ParticipantEvent
from worldline.model import Stream, WorldlineError
from worldline.wire.codec import encode_events
from worldline.wire.frames import HEARTBEAT

_RECEIVE_MAX = 2**14  # More at a time would have to be fetched from the system for each read.
_LOOK_AFTER_S = 0.05
_SHAKE_S_MAX = 0.002


class SocketConnection:
    """A connection to a server over a blocking socket."""

    def __init__(
        self, connection: socket.socket | Encrypted, greeting: Greeting, name: str, shake: Stream | None = None
    ) -> None:
        self._socket = connection
        self._shake = shake  # Draws delays, to show that they don't show.
        self._conversation = Conversation(name)
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._written = 0.0
        self._looked = 0.0
        self._heard = 0.0
        self.silence_s = GREETING_S
        limit_silence(connection, self.silence_s)
        self._write(greeting.hello(self._body()))
        self.welcome = greeting.settle(self._body())
        self.frame_max = self._conversation.frame_max = self.welcome.frame_max
        self.heartbeat_s = self.welcome.heartbeat / 1e9
        self.silence_s = 4 * self.heartbeat_s
        limit_silence(connection, self.silence_s)

    @property
    def end(self) -> WorldlineError | None:
        """Why there is nothing more to be said, once there isn't."""
        return self._conversation.end

    # --- For the participant ---

    def tell(self, events: list[ParticipantEvent]) -> None:
        self._write(encode_events(events, self.frame_max))

    def ask(self, events: list[ParticipantEvent]) -> Action:
        if events:  # Otherwise the pulse was quicker.
            self._write(encode_events(events, self.frame_max))
        return self._answer()

    def is_due(self, *, urgent: bool) -> bool:
        now = time.monotonic()
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

    def fail(self, cause: str) -> None:
        """Say that the program has failed; if that can't be said any more, the closed connection says enough."""
        with contextlib.suppress(WorldlineError):
            self._write(failure(cause))

    def close(self) -> None:
        """Hang up; if all is well, only when the server has taken all that it was told.

        A connection that is closed with something unread, if only a heartbeat, is reset, and what is still on its way
        is lost.
        """
        try:
            if self.end is None:
                self._socket.shutdown(socket.SHUT_WR)
                while self._socket.recv(_RECEIVE_MAX):
                    continue
        except OSError:  # The server has hung up, or doesn't: either way there is nothing left to be done.
            self._conversation.lost("the connection is closed")
        finally:
            self._socket.close()

    def _write(self, data: bytes) -> None:
        if self._shake is not None:
            time.sleep(_SHAKE_S_MAX * max(0.0, self._shake.uniform(-1, 1)))
        self._conversation.check()
        try:
            with self._writing:
                self._written = time.monotonic()
                sent = self._send(data)
                while sent < len(data):
                    sent += self._send(data[sent:])
        except OSError as error:
            raise self._reason(error) from error

    def _send(self, data: bytes) -> int:
        """Send what fits. A server that lets a participant wait that is far ahead beats its heart meanwhile."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            with self._reading:
                if self._is_ready(select.POLLIN):
                    self._receive()
                elif time.monotonic() - self._heard > self.silence_s:
                    raise self._conversation.silent(self.silence_s) from None
            return 0

    def _is_ready(self, event: int) -> bool:
        poll = select.poll()
        poll.register(self._socket, event)
        return bool(poll.poll(0))

    def _reason(self, error: OSError) -> WorldlineError:
        """Return why nothing can be said any more: what the server has said last, if it has said anything."""
        try:
            self._answer()
        except WorldlineError as said:
            return said
        return self._conversation.lost(broken(error))

    def _answer(self) -> Action:
        """Wait for the server's answer."""
        with self._reading:
            while (answer := self._conversation.answer()) is None:
                self._receive()
            return answer

    def look(self) -> None:
        """See whether the server has said something that nobody has asked for: it can only be the end."""
        with self._reading:
            self._conversation.look()
            self._receive(socket.MSG_DONTWAIT)
            self._conversation.look()

    def _body(self) -> bytes:
        while (body := self._conversation.body()) is None:
            self._receive()
        return body

    def _receive(self, flags: int = 0) -> None:
        """Take in what the server has sent: wait for it, unless the flags say otherwise."""
        try:
            data = self._socket.recv(_RECEIVE_MAX, flags) if flags else self._socket.recv(_RECEIVE_MAX)
        except BlockingIOError as error:
            if flags:
                return
            raise self._conversation.silent(self.silence_s) from error
        except OSError as error:
            raise self._conversation.lost(broken(error)) from error
        self._heard = time.monotonic()
        if not data:
            raise self._conversation.lost("the server closed the connection")
        self._conversation.feed(data)
