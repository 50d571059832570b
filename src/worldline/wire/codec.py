"""What stands in the frames of a run: MessagePack arrays that begin with the name of their kind.

A participant's frame holds a list of events: all that it has said since its last one, ending with its request, if it
waits for an answer. The server's frame holds one answer. An answer with more messages than fit into a frame is
preceded by frames that only deliver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import msgpack

from worldline.lock.events import Grant, ParticipantEvent
from worldline.model.errors import PeerError, shortened
from worldline.wire.frames import FRAME_MAX, HEADER_SIZE
from worldline.wire.words import Answer, Deliver, Told

T = TypeVar("T")

_encoder = msgpack.Encoder()
_decode_events: Callable[[bytes], list[Told]] = msgpack.Decoder(list[Told]).decode
_decode_answer: Callable[[bytes], Answer] = msgpack.Decoder(Answer).decode


def encode_events(events: list[ParticipantEvent]) -> bytes:
    """Return what a participant says as a frame, or as several if it is too long for one."""
    encoded = _framed(events)
    if len(encoded) - HEADER_SIZE <= FRAME_MAX:
        return bytes(encoded)
    middle = len(events) // 2  # A single event always fits: payloads are limited.
    return encode_events(events[:middle]) + encode_events(events[middle:])


def encode_answer(answer: Answer) -> bytes:
    """Return an answer as a frame, after frames with those of its messages that don't fit into it."""
    encoded = _framed(answer)
    if len(encoded) - HEADER_SIZE <= FRAME_MAX or not isinstance(answer, Grant | Deliver):
        return bytes(encoded)
    middle = len(answer.messages) // 2
    first = Deliver(answer.messages[:middle])
    return encode_answer(first) + encode_answer(msgspec.structs.replace(answer, messages=answer.messages[middle:]))


def _framed(value: object) -> bytearray:
    encoded = bytearray(256)
    _encoder.encode_into(value, encoded, HEADER_SIZE)
    encoded[:HEADER_SIZE] = (len(encoded) - HEADER_SIZE).to_bytes(HEADER_SIZE, "big")
    return encoded


def decode_events(body: bytes) -> list[Told]:
    """Read a participant's frame."""
    return checked(_decode_events, body)


def decode_answer(body: bytes) -> Answer:
    """Read a server's frame."""
    return checked(_decode_answer, body)


def checked(decode: Callable[[bytes], T], body: bytes) -> T:
    """Decode what a stranger may have written."""
    try:
        return decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise PeerError(f"a frame of {len(body):,} bytes can't be read: {shortened(str(error))}") from error
