"""What can be said over the wire: the words of the lock, of the handshake, and those that only the wire needs."""

from __future__ import annotations

from msgspec import Struct

from worldline.lock.events import Abort, Grant, ParticipantEvent, Recall, Recalled, Restore, Snapshot, StartRun
from worldline.model.message import Message
from worldline.wire.handshake import Fail, Refused


class Deliver(Struct, frozen=True, array_like=True, tag="deliver"):
    """Messages that belong to the next grant."""

    messages: list[Message]


class Resume(Struct, frozen=True, array_like=True, tag="resume", gc=False):
    """I am still here, though our connection was lost: the first word on a new one, in the place of `join`.

    I have been given so many answers (`start` and grants), and say again all that I have said since the last of them.
    """

    answers: int


Answer = StartRun | Grant | Abort | Refused | Deliver | Recalled
"""What a server says."""

Told = ParticipantEvent | Fail | Resume | Snapshot | Recall | Restore
"""What a participant says."""
