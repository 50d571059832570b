"""What a server says to its participant: bytes in, whole answers out. Shared by all clients, whatever they read with.

Heartbeats are dropped, and messages that came ahead of their grant are put back into it. The last word of a run is
kept: whoever asks after it gets it again.
"""

from __future__ import annotations

from collections import deque

from msgspec import msgpack

from worldline.federation.greeting import refusal
from worldline.lock import Abort, Grant, Start
from worldline.lock.ledger import broken_off
from worldline.model import LossError, Message, WorldlineError
from worldline.model.errors import shortened
from worldline.wire.codec import decode_answer
from worldline.wire.frames import Frames, frame
from worldline.wire.handshake import Fail, Refused
from worldline.wire.words import Answer, Deliver

TELL_AFTER_S = 0.0005
"""How long what only tells may lie about before the next operation sends it: see `connection`."""

PULSE_S = 0.05
"""And how long at the most, if no operation follows."""

GREETING_S = 10.0
"""How long a server may take over the handshake."""

_encode = msgpack.Encoder().encode


class Conversation:
    """One participant's side of it. `end` is why there is nothing more to be said, once there isn't."""

    def __init__(self, name: str) -> None:
        self.end: WorldlineError | None = None
        self._name = name
        self._frames = Frames()
        self._bodies: deque[bytes] = deque()
        self._delivered: list[Message] = []

    @property
    def frame_max(self) -> int:
        """The longest frame, as the server's welcome says it."""
        return self._frames.longest

    @frame_max.setter
    def frame_max(self, longest: int) -> None:
        self._frames.longest = longest

    def feed(self, data: bytes) -> None:
        """Take what has come in."""
        self._bodies.extend(body for body in self._frames.feed(data) if body)

    def body(self) -> bytes | None:
        """Return the next frame as it is, for the handshake; None: more has to come in."""
        return self._bodies.popleft() if self._bodies else None

    def answer(self) -> Start | Grant | None:
        """Return the next whole answer; None: more has to come in. Raise if the server has ended it."""
        while self._bodies:
            answer = self._understood(self._bodies.popleft())
            if not isinstance(answer, Deliver):
                if isinstance(answer, Grant):
                    answer.messages[:0] = self._delivered
                    self._delivered = []
                return answer
            self._delivered += answer.messages
        self.check()
        return None

    def look(self) -> None:
        """Raise if what has come in unasked is the end; it can be nothing else, once an answer is complete."""
        if self._bodies:
            self._understood(self._bodies[0])
        self.check()

    def check(self) -> None:
        """Raise why there is nothing more to be said, if that is so."""
        if self.end is not None:
            raise self.end.with_traceback(None)  # It may be raised more than once, and each has its own way.

    def lost(self, problem: str) -> LossError:
        """Return the end, if the server hasn't said another: it has gone, or fallen silent."""
        self.end = LossError(problem, participant=self._name)
        return self.end

    def silent(self, seconds: float) -> LossError:
        return self.lost(f"nothing was heard of the server for {seconds:.0f} seconds")

    def _understood(self, body: bytes) -> Start | Grant | Deliver:
        answer: Answer = decode_answer(body)
        if isinstance(answer, Abort):
            self.end = broken_off(answer)
        elif isinstance(answer, Refused):
            self.end = refusal(answer, self._name)
        else:
            return answer
        raise self.end


def failure(cause: str) -> bytes:
    """Return the last word of a participant whose program has failed, as a frame."""
    return frame(_encode([Fail(shortened(cause))]))
