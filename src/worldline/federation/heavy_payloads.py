"""Where large payloads are in a journal, so that the answers that deliver them needn't hold them once more.

What a participant publishes is in the journal once, as it was heard. Every receiver's grant would add a copy, which has
to be written and checked while everybody waits. A *light* grant has an empty payload instead, and says which record
holds it: one that was written before, so whoever has the light grant has the payload, too.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, msgpack
from msgspec.structs import replace

from worldline.federation.run_journal import RunJournal
from worldline.lock import Grant, Publish
from worldline.model import PeerError
from worldline.wire.codec import decode_events
from worldline.wire.words import Told

HEAVY = 2**16
"""The size from which a payload is large. It takes a thousandth of that to remember where it is."""


class LightGrant(Struct, frozen=True, array_like=True):
    """A grant without its large payloads; and of each, which message it belongs to, its record, and which event."""

    grant: Grant
    payloads: list[tuple[int, int, int]]


_encode = msgpack.Encoder().encode
_decode = msgpack.Decoder(LightGrant).decode


class HeavyPayloads:
    """The places of all large payloads in one journal, by sender and sequence number."""

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal
        self._places: dict[tuple[str, int], tuple[int, int]] = {}

    def note(self, sender: str, sent: int, events: list[Told], place: int) -> None:
        """Note where events are that were heard just now; `sent` is how many messages their sender has sent."""
        published = [(event, number) for number, event in enumerate(events) if isinstance(event, Publish)]
        for sequence, (event, number) in enumerate(published, sent - len(published)):
            if len(event.payload) >= HEAVY:
                self._places[sender, sequence] = (place, number)

    def without(self, grant: Grant) -> bytes:
        """Return a grant as it is written: without the payloads that are in the journal already."""
        messages, payloads = list(grant.messages), []
        for number, message in enumerate(messages):
            where = self._places.get((message.sender, message.sequence))
            if where is not None:
                messages[number] = message._replace(payload=b"")
                payloads.append((number, *where))
        return _encode(LightGrant(replace(grant, messages=messages), payloads))

    def whole(self, body: bytes) -> Grant:
        """Return the grant that was written like this."""
        light = _decode(body)
        messages = light.grant.messages
        for number, *where in light.payloads:
            message = messages[number] if 0 <= number < len(messages) else None
            if message is None or self._places.get((message.sender, message.sequence)) != tuple(where):
                raise PeerError("it delivers a payload that isn't there")
            place, event = where
            heard: Any = decode_events(self._journal.record(place).body)
            messages[number] = message._replace(payload=heard[event].payload)
        return light.grant
