"""What stands in the frames of a run: MessagePack arrays that begin with the name of their kind.

A participant's frame holds a list of events: all that it has said since its last one, ending with its request, if it
waits for an answer. The server's frame holds one answer. An answer with more messages than fit into a frame is
preceded by frames that only deliver. A single event or message that is too long for a frame goes into several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import msgpack
from msgspec.structs import replace

from worldline.lock.events import Advance, Grant, Leave, Next, ParticipantEvent, Peek, Publish, StartRun
from worldline.model.errors import PeerError, WorldlineError, shortened
from worldline.model.frames import HEADER_SIZE, PIECE_LEAST, Cutter, frame, frames, header
from worldline.model.message import Message
from worldline.wire.handshake import Answer, Deliver, Fail, Told, foreign

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # Otherwise `codec.pxd` imports those of `packed.pyx`, which do in C what most hops take.

    def _left_to_msgspec(*_: object) -> Any:
        return None

    packed_events = pack_grant = packed_grant = unpacked_events = unpacked_grant = _left_to_msgspec

# What comes in over a connection as frames: how long they may be, and what is said of what can't be one.
#
# An empty frame is a heartbeat: it says that its sender is alive.

SAID_MAX = 2**16
"""What has to be said about a payload is shorter than this."""

FRAME_MAX = 2**24 + SAID_MAX
"""The longest frame, unless the welcome says otherwise; what is longer goes into several."""

HEARTBEAT = bytes(HEADER_SIZE)

_LOOKED_AT = 100  # Bytes of what can't be a frame.


class Frames(Cutter):
    """Cuts what a peer says; heartbeats are empty bodies."""

    def __init__(self, longest: int = FRAME_MAX) -> None:
        super().__init__(longest)

    def admit(self, payload_max: int) -> None:
        """Let payloads of this size come, in several frames if need be."""
        self.whole = payload_max + SAID_MAX

    def _too_long(self, length: int) -> WorldlineError:
        return foreign(self._rest[self._at : self._at + _LOOKED_AT]) or PeerError(
            f"a frame of {length:,} bytes is too long", advice=f"the limit is {self.longest:,}"
        )

    def _too_short(self, length: int) -> WorldlineError:
        return PeerError(
            f"a frame of {length:,} bytes that goes on in the next one is too short",
            advice=f"all but the last have at least {PIECE_LEAST:,}",
        )

    def _too_much(self, length: int) -> WorldlineError:
        limit = f"the limit is {self.whole:,}: the largest payload (limits.payload) and {SAID_MAX:,}"
        return PeerError(f"{length:,} bytes in several frames are too many", advice=limit)


T = TypeVar("T")

_FEW = 64  # So few messages are encoded first, and measured then.
_PORTION = 2**20
_HEAVY = 2**16  # A payload of this size isn't copied more often than it must be.
EVENTS_SAID_MAX = 2**14
"""How many events a client says in one frame. Servers take more, from clients that know no such limit."""

_OVERHEAD = 64
_EVENTS_SAID_MAX = EVENTS_SAID_MAX
_REQUESTS = (Advance, Next, Peek)

_FEW_EVENTS = 0xA0  # Up to this first byte, an array has at most 15 items.
_COUNTED = {0xDC: 3, 0xDD: 5}  # The first byte of a longer array, and how many bytes say how long it is, this included.

_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)

_encode: Callable[[object], bytes] = msgpack.Encoder().encode
_encode_into: Callable[[object, bytearray, int], None] = msgpack.Encoder().encode_into
_decode_events: Callable[[bytes], list[Told]] = msgpack.Decoder(list[Told]).decode
_decode_event: Callable[[msgspec.Raw], Told] = msgpack.Decoder(Told).decode
_split: Callable[[bytes], list[msgspec.Raw]] = msgpack.Decoder(list[msgspec.Raw]).decode
_decode_answer: Callable[[bytes], Answer] = msgpack.Decoder(Answer).decode


def encode_events(events: list[ParticipantEvent], longest: int = FRAME_MAX) -> bytes:
    """Return what a participant says as a frame, or as several if it is too long for one."""
    packed: bytes | None = packed_events(events, longest)
    if packed is not None:
        return packed
    if _is_heavy_publish(events):
        said = bytearray()
        _add(said, events, longest)
        return said  # type: ignore[return-value] # It isn't changed any more.
    last: object = type(events[-1]) if events else None
    body = _encode(_with_short_end(events) if last is Leave or last is Fail else events)
    if len(events) == 1:
        return frames(body, longest)
    if len(body) <= longest and len(events) <= _EVENTS_SAID_MAX:
        return frame(body)
    middle = len(events) // 2
    return encode_events(events[:middle], longest) + encode_events(events[middle:], longest)


def _with_short_end(events: list[ParticipantEvent]) -> list[object]:
    """Return what ends with a last word, which is as short as it can be: in most runs there is little to say."""
    leave: object = events[-1]
    if isinstance(leave, Fail):
        return [*events[:-1], leave if leave.at is not None else ("fail", leave.cause)]
    assert isinstance(leave, Leave)
    if leave.untaken:
        return list(events)
    said: tuple[object, ...] = ("leave", leave.now, leave.digest, leave.complete, leave.dropped, leave.waited)
    if leave.missed or leave.awaited:
        said = (*said, leave.replaced, leave.missed, leave.awaited)
    elif leave.replaced:
        said = (*said, leave.replaced)
    return [*events[:-1], said]


def _is_heavy_publish(events: list[ParticipantEvent]) -> bool:
    """Whether a large payload is published, with at most a request behind it."""
    if not events or len(events) > 2 or type(events[0]) is not Publish:
        return False
    return len(events[0].payload) >= _HEAVY and (len(events) == 1 or type(events[1]) in _REQUESTS)


def encode_answer(answer: Answer, longest: int = FRAME_MAX) -> bytes:
    """Return an answer as a frame, after frames with those of its messages that don't fit into it."""
    if type(answer) is StartRun and not answer.draws:  # As short as it can be: most runs replace none.
        return frame(_encode(("start", answer.to, answer.now, answer.seed, answer.control_latency, answer.reach)))
    if type(answer) is not Grant:
        return frame(_encode(answer))
    packed: bytes | None = packed_grant(answer, longest)
    if packed is not None:
        return packed
    out = bytearray()
    add_grant(out, answer, longest)
    return bytes(out)


def is_heavy(grant: Grant) -> bool:
    """Whether a grant brings a large payload, of which there should be as few copies as can be."""
    messages: list[Message] = grant.messages
    return len(messages) > 0 and len(messages[0].payload) >= _HEAVY


def add_grant(out: bytearray, grant: Grant, longest: int = FRAME_MAX) -> None:
    """Put a grant behind what is to be sent, after frames with those of its messages that don't fit into it."""
    if pack_grant(out, grant, longest):
        return
    messages: list[Message] = grant.messages
    if len(messages) < _FEW and not is_heavy(grant):
        body = _encode(grant)
        if len(body) <= longest:
            out += header(len(body))
            out += body
            return
    *first, last = _portions(messages, longest)
    for portion in first:
        _add(out, Deliver(portion), longest)
    _add(out, replace(grant, messages=last) if first else grant, longest)


def _add(out: bytearray, said: object, longest: int) -> None:
    """Put a frame behind what is to be sent, or several if it is too long for one; its body is encoded right there."""
    start = len(out)
    body = start + HEADER_SIZE
    _encode_into(said, out, body)
    length = len(out) - body
    if length <= longest:
        out[start:body] = header(length)
    else:
        whole = bytes(memoryview(out)[body:])
        del out[start:]
        out += frames(whole, longest)


def _portions(messages: list[Message], longest: int) -> list[list[Message]]:
    """Cut messages into portions of about a megabyte, or of one message that is larger."""
    portions = []
    start = size = 0
    for place, message in enumerate(messages):
        size += len(message.payload) + 4 * (len(message.topic) + len(message.sender)) + _OVERHEAD
        if size > min(_PORTION, longest) and place > start:
            portions.append(messages[start:place])
            start, size = place, len(message.payload)
    portions.append(messages[start:])
    return portions


def decode_events(body: bytes) -> list[Told]:
    """Read a participant's frame."""
    events: list[Told] | None = unpacked_events(body)
    if events is not None:
        return events
    try:
        return _decode_events(body)
    except _UNREADABLE as error:
        raise _unreadable(body, error) from error


def count_events(body: bytes) -> int:
    """Return how many events a frame says that it holds, without reading them; 0 if it isn't a frame of events."""
    first = body[0]
    if first < _FEW_EVENTS:
        return max(0, first - 0x90)
    return int.from_bytes(body[1 : _COUNTED[first]], "big") if first in _COUNTED else 0


def split_events(body: bytes) -> list[msgspec.Raw]:
    """Cut a participant's frame into events that aren't read yet: reading them all takes long if there are many."""
    return checked(_split, body)


def decode_event(raw: msgspec.Raw) -> Told:
    """Read one event of a frame."""
    return checked(_decode_event, raw)  # type: ignore[arg-type]


def decode_answer(body: bytes) -> Answer:
    """Read a server's frame."""
    grant: Grant | None = unpacked_grant(body)
    if grant is not None:
        return grant
    try:
        return _decode_answer(body)
    except _UNREADABLE as error:
        raise _unreadable(body, error) from error


def checked(decode: Callable[[bytes], T], body: bytes) -> T:
    """Decode what a stranger may have written."""
    try:
        return decode(body)
    except _UNREADABLE as error:
        raise _unreadable(body, error) from error


def _unreadable(body: bytes, error: Exception) -> PeerError:
    return PeerError(f"a frame of {len(body):,} bytes can't be read: {shortened(str(error))}")
