"""Envelopes: what a message is put into whose path has no channel of its own.

A channel of an MCAP file is one path, from a sender to a receiver on a topic, and there is room for 65,535. In a run
with more of them, those that come late share a channel for each topic. There the data of a message is JSON that says
whose it is and for whom: a payload that is JSON stands in it as it is, for tools to read, all others in base64.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from worldline.recording.scan import Damaged

SHARED_CHANNEL = {"worldline": "shared"}
"""The metadata of a channel that several paths share."""

ENVELOPE_SCHEMA_NAME = "worldline.Envelope"
# By hand, as the others: the file's bytes mustn't change with msgspec's version.
ENVELOPE_SCHEMA = (
    b'{"type":"object","properties":{"sender":{"type":"string"},"receiver":{"type":"string"},'
    b'"copy":{"type":"integer"},"payload":{},"base64":{"type":"string","contentEncoding":"base64"}},'
    b'"required":["sender"]}'
)


class RecordedPath(NamedTuple):
    """What the messages of a path have in common. Receiver "": they reached nobody."""

    topic: str
    sender: str
    receiver: str
    copy: int


class _Envelope(Struct, frozen=True, kw_only=True, omit_defaults=True):
    sender: str
    receiver: str = ""
    copy: int = 0
    payload: Raw | UnsetType = UNSET
    base64: bytes | UnsetType = UNSET


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Envelope).decode


def put_in(path: RecordedPath, payload: bytes) -> bytes:
    """Return a message of a path as it is written to a shared channel."""
    _, sender, receiver, copy = path
    made = _encode(_Envelope(sender=sender, receiver=receiver, copy=copy, payload=Raw(payload)))
    try:
        if take_out(path.topic, made) == (path, payload):
            return made
    except Damaged:
        pass  # It isn't JSON.
    return _encode(_Envelope(sender=sender, receiver=receiver, copy=copy, base64=payload))


def take_out(topic: str, data: bytes) -> tuple[RecordedPath, bytes]:
    """Return of which path of the topic a message is, and its payload."""
    try:
        found = _decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Damaged(f"an envelope on {topic} can't be read: {error}") from error
    payload = found.base64 if found.payload is UNSET else bytes(found.payload)
    if payload is UNSET:
        raise Damaged(f"an envelope on {topic} has nothing in it")
    return RecordedPath(topic, found.sender, found.receiver, found.copy), payload
