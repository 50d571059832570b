"""What travels between machines: segments of TCP and datagrams of UDP, as bytes with a checksum.

A segment's sender is known from its message, so only ports are in it. In place of random sequence numbers, each
connection has a number of its opener's choice, in which the opener's incarnation is: a segment of a machine that has
crashed since belongs to no connection, and is answered with a reset. Sequence numbers count from 0 for the first byte.
"""

from __future__ import annotations

from struct import Struct as Packing
from zlib import crc32

from msgspec import Struct

SYN, ACK, FIN, RST, PROBE = 1, 2, 4, 8, 16
OPENER = 32
"""Set in what the end sends that has opened the connection: both ends may be on one machine."""

_TCP = Packing("!BHHIQQI")
_UDP = Packing("!BHH")
_SUM = Packing("!I")

HEADER_SIZE = _TCP.size + _SUM.size
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
        header = _TCP.pack(
            self.flags,
            self.source,
            self.target,
            self.connection,
            self.sequence,
            self.acknowledged,
            self.window,
        )
        body = header + self.data
        return body + _SUM.pack(crc32(body))

    def __str__(self) -> str:
        names = [name for flag, name in _NAMES if self.flags & flag]
        if self.flags & ACK and self.flags & SYN:
            names.append("ACK")
        what = " ".join(names) or ("" if self.data else "ACK")
        size = f"{len(self.data):,} bytes" if self.data else ""
        return f"{self.source} → {self.target} {' '.join(filter(None, (what, size)))}"


class Datagram(Struct, array_like=True, gc=False):
    """A datagram; or, without data, word that there is no socket at the port that one was sent to."""

    source: int
    target: int
    data: bytes = b""
    is_unreachable: bool = False

    def encoded(self) -> bytes:
        """Return it as it is sent."""
        body = _UDP.pack(_UNREACHABLE if self.is_unreachable else _DATA, self.source, self.target) + self.data
        return body + _SUM.pack(crc32(body))

    def __str__(self) -> str:
        what = "unreachable" if self.is_unreachable else f"{len(self.data):,} bytes"
        return f"{self.source} → {self.target} {what}"


def read_segment(payload: bytes) -> Segment | None:
    """Return the segment that a message holds; None if it was damaged on its way."""
    if not _is_whole(payload, HEADER_SIZE):
        return None
    flags, source, target, connection, sequence, acknowledged, window = _TCP.unpack_from(payload)
    data = payload[_TCP.size : -_SUM.size]
    return Segment(flags, source, target, connection, sequence, acknowledged, window, data)


def read_datagram(payload: bytes) -> Datagram | None:
    """Return the datagram that a message holds; None if it was damaged on its way."""
    if not _is_whole(payload, _UDP.size + _SUM.size):
        return None
    kind, source, target = _UDP.unpack_from(payload)
    return Datagram(source, target, payload[_UDP.size : -_SUM.size], kind == _UNREACHABLE)


def _is_whole(payload: bytes, least: int) -> bool:
    return len(payload) >= least and crc32(payload[: -_SUM.size]) == _SUM.unpack_from(payload, len(payload) - 4)[0]
