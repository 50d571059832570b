"""LCM's tcpq protocol: bytes in, frames out, on either side of a connection. Pure.

All numbers are 32 bits, the most significant byte first. The client greets with its magic number and a version, the
server answers with its own. Then come frames: their kind, the length of a channel's name, the name; a publication adds
the length of its data, and the data. Subscriptions are regular expressions that match a whole name. The server forwards
publications as they came.

A decoder is given whatever came in. It keeps at most one frame that isn't complete, and raises `PeerError` for
whatever isn't the protocol or is too large; nothing can be read from that connection after that.
"""

from __future__ import annotations

import socket
import struct
from enum import IntEnum
from typing import NamedTuple

from worldline.federation.address import Address, parse_address
from worldline.model.errors import LossError, PeerError, UsageError, WorldlineError

CLIENT_MAGIC, SERVER_MAGIC, VERSION = 0x287617FB, 0x287617FA, 0x0100
NAME_MAX = 1024  # Patterns may be longer than names of channels.
DATA_MAX = 2**25
_GREETING = struct.Struct(">II")
_HEAD = struct.Struct(">II")
_LENGTH = struct.Struct(">I")


class TcpqKind(IntEnum):
    """What a frame is."""

    PUBLISH = 1
    SUBSCRIBE = 2
    UNSUBSCRIBE = 3


class TcpqFrame(NamedTuple):
    """A publication, or a pattern that is subscribed to or no longer."""

    kind: TcpqKind
    channel: str
    data: bytes = b""

    def encode(self) -> bytes:
        name = self.channel.encode()
        head = _HEAD.pack(self.kind, len(name)) + name
        return head + _LENGTH.pack(len(self.data)) + self.data if self.kind is TcpqKind.PUBLISH else head


def greeting(magic: int) -> bytes:
    """Return what one end says first."""
    return _GREETING.pack(magic, VERSION)


class TcpqDecoder:
    """One direction of a connection, from the greeting on. `magic` is what the other end must greet with."""

    def __init__(self, magic: int) -> None:
        self._magic = magic
        self._buffer = bytearray()
        self.greeted = False

    def __len__(self) -> int:
        """How many bytes are waiting for the rest of their frame."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[TcpqFrame]:
        """Take in what has come, and return the frames that are complete with it."""
        self._buffer += data
        frames: list[TcpqFrame] = []
        if self.greeted or self._take_greeting():
            while (frame := self._take_frame()) is not None:
                frames.append(frame)
        return frames

    def _take_greeting(self) -> bool:
        if len(self._buffer) < _GREETING.size:
            return False
        magic, _ = _GREETING.unpack_from(self._buffer)  # LCM doesn't look at the version either.
        if magic != self._magic:
            raise PeerError(f"that isn't LCM's tcpq protocol: it begins with {magic:#010x}, not {self._magic:#010x}")
        del self._buffer[: _GREETING.size]
        self.greeted = True
        return True

    def _take_frame(self) -> TcpqFrame | None:
        buffer = self._buffer
        if len(buffer) < _HEAD.size:
            return None
        code, name_size = _HEAD.unpack_from(buffer)
        if code not in _KINDS:
            raise PeerError(f"tcpq has no frames of kind {code}")
        if name_size > NAME_MAX:
            raise PeerError(f"a channel's name of {name_size:,} bytes is longer than {NAME_MAX:,}")
        end = _HEAD.size + name_size
        kind, data = _KINDS[code], b""
        if kind is TcpqKind.PUBLISH:
            if len(buffer) < end + _LENGTH.size:
                return None
            (data_size,) = _LENGTH.unpack_from(buffer, end)
            if data_size > DATA_MAX:
                raise PeerError(f"a message of {data_size:,} bytes is longer than {DATA_MAX:,}")
            begin = end + _LENGTH.size
            end = begin + data_size
            if len(buffer) < end:
                return None
            data = bytes(memoryview(buffer)[begin:end])
        elif len(buffer) < end:
            return None
        try:
            channel = bytes(memoryview(buffer)[_HEAD.size : _HEAD.size + name_size]).decode()
        except UnicodeDecodeError:
            raise PeerError("a channel's name isn't UTF-8") from None
        del buffer[:end]
        return TcpqFrame(kind, channel, data)


_KINDS = {int(kind): kind for kind in TcpqKind}


# Connecting to a broker of LCM's tcpq protocol.

SCHEME = "tcpq://"
_PORT = 7700  # LCM's own default.


def tcpq_address(text: str | Address) -> Address:
    """Read ``tcpq://HOST:PORT``, or ``HOST:PORT``; what is left out is as in LCM."""
    if isinstance(text, str):
        place = text.removeprefix(SCHEME)
        text = place if place.rpartition("]")[2].count(":") else f"{place}:{_PORT}"
    address = parse_address(text)
    if address.kind != "tcp":
        raise UsageError(f"{address} isn't an address of LCM's tcpq protocol", advice=f"write {SCHEME}HOST:PORT")
    return address


def dial_broker(url: str, patience_s: float) -> socket.socket:
    """Connect to a broker and exchange greetings; each step may take that long."""
    address = tcpq_address(url)
    connection: socket.socket | None = None
    try:
        connection = socket.create_connection((address.place, address.port), timeout=patience_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(greeting(CLIENT_MAGIC))
        _await_greeting(connection)
        connection.settimeout(None)
    except (OSError, UnicodeError, WorldlineError) as error:
        if connection is not None:
            connection.close()
        problem = error.problem if isinstance(error, WorldlineError) else getattr(error, "strerror", None) or error
        raise LossError(f"no LCM broker can be reached at {url}: {problem}", advice="is it up?") from error
    return connection


def _await_greeting(connection: socket.socket) -> None:
    decoder = TcpqDecoder(SERVER_MAGIC)
    while not decoder.greeted:
        # No more than the greeting: what follows is for whoever reads on.
        data = connection.recv(len(greeting(SERVER_MAGIC)) - len(decoder))
        if not data:
            raise LossError("whoever listens there hung up")
        decoder.feed(data)
