"""What an arbiter was told, and when, without the payloads: enough to let an arbiter hear it again.

Wall-clock times are in nanoseconds since the log began. They are no part of any recording, since no two runs have the
same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct, msgpack

from worldline.lock.events import (
    Advance,
    Barrier,
    CallOff,
    Down,
    Event,
    Invite,
    Join,
    Leave,
    Log,
    Lost,
    Next,
    Peek,
    Promise,
    Publish,
    Reached,
    Stop,
    Subscribe,
    Unsubscribe,
)
from worldline.model.errors import PeerError, shortened
from worldline.model.plan import Plan


class HeardSending(Struct, frozen=True, array_like=True, tag="sending", gc=False):
    """A message was published; of its payload only the size is kept, since links may go by that."""

    topic: str
    size: int
    at: int


HeardEvent = (
    Join
    | HeardSending
    | Promise
    | Reached
    | Subscribe
    | Unsubscribe
    | Down
    | Invite
    | Stop
    | Log
    | Advance
    | Next
    | Peek
    | Leave
    | Barrier
    | Lost
    | CallOff
)


class Heard(Struct, frozen=True, array_like=True):
    """What somebody said at once, and when that was heard."""

    wall: int
    who: str
    events: tuple[HeardEvent, ...]


class TimingHeader(Struct, frozen=True, kw_only=True):
    """What is known of a run before it begins."""

    name: str
    plan: Plan


_encode = msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder(order="deterministic").encode
_decode_heard = msgpack.Decoder(list[Heard]).decode
_decode_header = msgspec.json.Decoder(TimingHeader).decode


def stripped(events: Iterable[Any]) -> list[HeardEvent]:
    """Return what was said without the payloads."""
    return [
        HeardSending(each.topic, len(each.payload), each.at) if each.__class__ is Publish else each for each in events
    ]


def restored(events: Iterable[HeardEvent]) -> list[Event]:
    """Return what was said, with payloads of the same sizes."""
    return [
        Publish(each.topic, bytes(each.size), each.at) if isinstance(each, HeardSending) else each for each in events
    ]


def encode_heard(heard: Sequence[Heard | tuple[int, str, list[HeardEvent]]]) -> bytes:
    """Write a portion of a log: a tuple in the place of a `Heard` costs whoever notes it less."""
    return _encode(heard)


def encode_header(header: TimingHeader) -> bytes:
    return _encode_json(header)


def decode_heard(data: bytes) -> list[Heard]:
    """Read a portion of a log."""
    try:
        return _decode_heard(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise PeerError(f"it isn't what was noted: {shortened(str(error))}") from error


def decode_header(data: bytes) -> TimingHeader:
    """Read the beginning of a log."""
    try:
        return _decode_header(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise PeerError(f"its beginning isn't what was noted: {shortened(str(error))}") from error
