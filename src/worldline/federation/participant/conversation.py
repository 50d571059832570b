"""What a server says to its participant: bytes in, whole answers out. Shared by all clients, whatever they read with.

Heartbeats, frames without a body, are dropped, and messages that came ahead of their grant are put back into it. An
answer is kept until the next request goes out, and the last word of a run for good: a program that was interrupted
while it waited asks after it again.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from worldline.federation.participant.call import refusal
from worldline.federation.sockets import not_ours
from worldline.lock import Abort, Advance, Grant, Next, ParticipantEvent, Peek, StartRun
from worldline.lock.events import Recall, Recalled
from worldline.lock.ledger import broken_off
from worldline.model import LossError, Message, WorldlineError
from worldline.model.errors import shortened
from worldline.wire.codec import decode_answer, encode_events
from worldline.wire.frames import Frames
from worldline.wire.handshake import Answer, Deliver, Fail, Refused

TELL_AFTER_S = 0.0005
"""How long what only tells may lie about before the next operation sends it: see `connection`."""

PULSE_S = 0.05
"""And how long at the most, if no operation follows."""

GREETING_S = 10.0
"""How long a server may take over the handshake."""

DOUBT_S = 1.0
"""After how long of it one looks whether it is a server of ours at all."""

HUNG_UP = "hung up"
"""The `code` of a loss for which the other end has hung up, without a word."""

_REQUESTS = (Advance, Next, Peek, Recall)


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
        """Return what the participant says as frames. A request leaves the answer to the one before behind."""
        if type(events[-1]) in _REQUESTS:
            self._parts = []
        return encode_events(events, self.frames.longest)

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
