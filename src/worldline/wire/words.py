"""What can be said over the wire: the words of the lock, of the handshake, and those that only the wire needs."""

from __future__ import annotations

from msgspec import Struct

from worldline.lock.events import Abort, Grant, ParticipantEvent, StartRun
from worldline.lock.restoring import Restore, Restored, Resume, Snapshot
from worldline.model.message import Message
from worldline.wire.handshake import Fail, Refused


class Deliver(Struct, frozen=True, array_like=True, tag="deliver"):
    """Messages that belong to the next grant."""

    messages: list[Message]


Answer = StartRun | Grant | Abort | Refused | Deliver | Restored
"""What a server says."""

Told = ParticipantEvent | Fail | Resume | Restore | Snapshot
"""What a participant says."""
