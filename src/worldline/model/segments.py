"""What travels between machines: segments of TCP and datagrams of UDP, as bytes with a checksum.

A segment's sender is known from its message, so only ports are in it. In place of random sequence numbers, each
connection has a number of its opener's choice, in which the opener's incarnation is: a segment of a machine that has
crashed since belongs to no connection, and is answered with a reset. Sequence numbers count from 0 for the first byte.
"""

from __future__ import annotations

from struct import Struct as Packing
from zlib import crc32

from msgspec import Struct, structs

SYN, ACK, FIN, RST, PROBE = 1, 2, 4, 8, 16
OPENER = 32
"""Set in what the end sends that has opened the connection: both ends may be on one machine."""

_TCP = Packing("!BHHIqqI")
_UDP = Packing("!BHH")
_packed, _unpacked = _TCP.pack, _TCP.unpack_from
_HEAD, _SUM = _TCP.size, 4

HEADER_SIZE = _HEAD + _SUM
"""How many bytes a segment has besides its data."""
DATAGRAM_MAX = 65_507

_DATA, _UNREACHABLE = 0, 1

_NAMES = ((SYN, "SYN"), (FIN, "FIN"), (RST, "RST"), (PROBE, "probe"))


class Segment(Struct, array_like=True, gc=False):
    """A segment. `window` is how many bytes beyond `acknowledged` its sender has room for."""

    flags: int
    source: int
    target: int
    connection: int
    sequence: int
    acknowledged: int
    window: int
    data: bytes = b""

    def encoded(self) -> bytes:
        """Return it as it is sent."""
        head = _packed(
            self.flags, self.source, self.target, self.connection, self.sequence, self.acknowledged, self.window
        )
        return _with_sum(head + self.data)

    @property
    def is_idle(self) -> bool:
        """Whether it only acknowledges or closes."""
        is_answer = not self.flags & SYN or bool(self.flags & ACK)
        return not self.data and not self.flags & RST and is_answer

    def __str__(self) -> str:
        names = [name for flag, name in _NAMES if self.flags & flag]
        if self.flags & ACK and (self.flags & SYN or not (names or self.data)):
            names.append("ACK")
        words = [*names, said_of_data(self.data)] if self.data else names
        return f"{self.source} → {self.target} {' '.join(words)}"


class Datagram(Struct, array_like=True, gc=False):
    """A datagram; or, without data, word that there is no socket at the port that one was sent to."""

    source: int
    target: int
    data: bytes = b""
    is_unreachable: bool = False

    def encoded(self) -> bytes:
        """Return it as it is sent."""
        return _with_sum(
            _UDP.pack(_UNREACHABLE if self.is_unreachable else _DATA, self.source, self.target) + self.data
        )

    def __str__(self) -> str:
        return f"{self.source} → {self.target} {'unreachable' if self.is_unreachable else said_of_data(self.data)}"


def read_segment(payload: bytes) -> Segment | None:
    """Return the segment that a message holds; None if it was damaged on its way."""
    body = _without_sum(payload)
    if body is None or len(body) < _HEAD:
        return None
    flags, source, target, connection, sequence, acknowledged, window = _unpacked(body)
    return Segment(flags, source, target, connection, sequence, acknowledged, window, body[_HEAD:])


def read_datagram(payload: bytes) -> Datagram | None:
    """Return the datagram that a message holds; None if it was damaged on its way."""
    body = _without_sum(payload)
    if body is None or len(body) < _UDP.size:
        return None
    kind, source, target = _UDP.unpack_from(body)
    return Datagram(source, target, body[_UDP.size :], kind == _UNREACHABLE)


def _with_sum(body: bytes) -> bytes:
    return body + crc32(body).to_bytes(_SUM)


def _without_sum(payload: bytes) -> bytes | None:
    """Return a payload without its checksum; None if that is wrong."""
    body = payload[:-_SUM]
    return body if crc32(body) == int.from_bytes(payload[-_SUM:]) else None


# --- In words ---

_LINE_MAX = 80
_FRAMES = {0x81: "text", 0x82: "binary", 0x88: "close", 0x89: "ping", 0x8A: "pong"}
_MASKED = 0x80
_TLS, _RECORD_HEAD = b"\x03\x03", 5
_RECORDS = {21: "alert", 22: "handshake", 23: ""}


def said_of_data(data: bytes) -> str:
    """Say what data is: its first line, if it begins with one, as HTTP does; or a WebSocket's frame; and its size.

    TLS's records are plain text here: what is in the first is said.
    """
    if data[1:3] == _TLS and data[0] in _RECORDS:
        return f"TLS {_RECORDS[data[0]] or said_of_data(data[_RECORD_HEAD:])}"
    size = f"{len(data):,} byte{'' if len(data) == 1 else 's'}"
    frame = _frame(data)
    if frame is not None:
        return f"WebSocket {frame} ({size})"
    line = data[: 4 * _LINE_MAX].split(b"\r\n", 1)[0].split(b"\n", 1)[0]
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return size
    if not text or not text.isprintable():
        return size
    return f"{text if len(text) <= _LINE_MAX else f'{text[: _LINE_MAX - 1]}…'} ({size})"


def _frame(data: bytes) -> str | None:
    """Say what a short frame of a WebSocket holds, if this is one, whole."""
    kind = _FRAMES.get(data[0]) if len(data) >= 2 else None
    if kind is None:
        return None
    is_masked, length = data[1] & _MASKED, data[1] & ~_MASKED
    start = 6 if is_masked else 2
    if length > 125 or len(data) != start + length:
        return None
    content = data[start:]
    if is_masked:
        content = bytes(byte ^ data[2 + place % 4] for place, byte in enumerate(content))
    text = content.decode("utf-8", "replace") if kind == "text" else ""
    return f"{kind} {text}" if text.isprintable() and text else kind


def read_any(payload: bytes) -> Segment | Datagram | None:
    """Return what a payload is, if it is a segment or a datagram: their checksum tells."""
    return read_segment(payload) or read_datagram(payload)


def parts_of(found: Segment | Datagram) -> dict[str, object]:
    """Return it as plain values, by name."""
    fields = structs.asdict(found)
    return {**fields, "data": said_of_data(found.data)} if found.data else fields
