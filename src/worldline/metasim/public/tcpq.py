"""LCM's tcpq protocol: bytes in, frames out, on either side of a connection. Pure.

All numbers are 32 bits, the most significant byte first. The client greets with its magic number and a version, the
server answers with its own. Then come frames: their kind, the length of a channel's name, the name; a publication adds
the length of its data, and the data. Subscriptions are regular expressions that match a whole name. The server forwards
publications as they came.

A decoder is given whatever came in. It keeps at most one frame that isn't complete, and raises `PeerError` for
whatever isn't the protocol or is too large; nothing can be read from that connection after that.
"""

from __future__ import annotations

import contextlib
import math
import re
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from worldline.extras import installing
from worldline.federation.address import Address, parse_address
from worldline.model.errors import ConfigurationError, LossError, PeerError, UsageError, WorldlineError, shown

if TYPE_CHECKING:
    import lcm

CLIENT_MAGIC, SERVER_MAGIC, VERSION = 0x287617FB, 0x287617FA, 0x0100
NAME_MAX = 1024  # Patterns may be longer than names of channels.
DATA_MAX = 2**25
_GREETING = struct.Struct(">II")
_HEAD = struct.Struct(">II")
_LENGTH = struct.Struct(">I")


PUBLISH, SUBSCRIBE, UNSUBSCRIBE = 1, 2, 3


class TcpqFrame(NamedTuple):
    """A publication, or a pattern that is subscribed to or no longer."""

    kind: int
    channel: str
    data: bytes = b""

    def encode(self) -> bytes:
        name = self.channel.encode()
        head = _HEAD.pack(self.kind, len(name)) + name
        return head + _LENGTH.pack(len(self.data)) + self.data if self.kind == PUBLISH else head


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
        kind, name_size = _HEAD.unpack_from(buffer)
        if kind not in (PUBLISH, SUBSCRIBE, UNSUBSCRIBE):
            raise PeerError(f"tcpq has no frames of kind {kind}")
        if name_size > NAME_MAX:
            raise PeerError(f"a channel's name of {name_size:,} bytes is longer than {NAME_MAX:,}")
        end = _HEAD.size + name_size
        data = b""
        if kind == PUBLISH:
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
        # No more than the greeting: what follows is for the port that reads on.
        data = connection.recv(len(greeting(SERVER_MAGIC)) - len(decoder))
        if not data:
            raise LossError("it hung up")
        decoder.feed(data)


# Names of channels on the public LCM: the sender of a message, and the participant that it was delivered to.
#
# A message that `plant` sends on `STATE` appears on ``STATE/plant``. Each of its deliveries appears on
# ``STATE/plant>controller``. Both begin with the sender, so that a list of channels that is sorted by name, such as
# that of lcm-spy, has the deliveries right below the send: what a link loses is the difference between two
# neighboring rates. Subscriptions are regular expressions that match the whole name: ``STATE/[^>]*`` are the sends on
# a channel, ``.*>controller`` all that arrives at one participant.
#
# A channel may hold slashes; participants' names may hold neither `/` nor `>`. So a name has one reading.

CHANNEL_BYTES_MAX = 63
"""LCM's own limit, over UDP; other transports have others, but a name must be good for all of them."""

TIME_CHANNEL = "WORLDLINE_TIME"
"""The channel that says at which time what follows was sent. Without a slash, it is no mirrored channel's name."""

_SEPARATORS = "/>"


class PublicName(NamedTuple):
    """What a channel of the public LCM stands for; without a receiver, it is a send."""

    channel: str
    sender: str
    receiver: str | None = None

    def __str__(self) -> str:
        name = f"{self.channel}/{self.sender}"
        return name if self.receiver is None else f"{name}>{self.receiver}"


def parse_public_name(text: str) -> PublicName:
    """Read the name of a mirrored channel."""
    channel, slash, path = text.rpartition("/")
    sender, arrow, receiver = path.partition(">")
    if not (channel and slash and sender) or (arrow and not receiver):
        raise ConfigurationError(f"{shown(text)} isn't a channel of the public LCM", advice="write CHANNEL/participant")
    return PublicName(channel, sender, receiver if arrow else None)


def check_channel(name: str) -> str:
    """Return the name of a channel if LCM can carry it."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ConfigurationError(f"{shown(name)} can't name an LCM channel", advice="it isn't valid Unicode") from None
    if not name or "\0" in name:
        raise ConfigurationError(
            f"{shown(name)} can't name an LCM channel", advice="a name has at least one character, and none is NUL"
        )
    if size > CHANNEL_BYTES_MAX:
        raise ConfigurationError(
            f"{shown(name)} can't name an LCM channel: it has {size} bytes",
            advice=f"LCM has room for {CHANNEL_BYTES_MAX}",
        )
    return name


def check_participant(name: str) -> str:
    """Return the name of a participant if it can be a part of a public channel's name."""
    if found := next((character for character in _SEPARATORS if character in name), None):
        raise ConfigurationError(
            f"{shown(name)} can't name a participant on a public LCM",
            advice=f"there, {shown(found)} separates names: leave it out",
        )
    check_channel(str(PublicName("C", name)))
    return name


def check_public_names(publishes: Mapping[str, Iterable[str]], subscribes: Mapping[str, Iterable[str]]) -> None:
    """Refuse names that can't appear on a public LCM: of participants, each with the channels that it declares."""
    for name in sorted({*publishes, *subscribes}):
        check_participant(name)
    receivers: dict[str, list[str]] = {}
    for receiver, channels in sorted(subscribes.items()):
        for channel in channels:
            receivers.setdefault(channel, []).append(receiver)
    for sender, channels in sorted(publishes.items()):
        for channel in channels:
            others = [receiver for receiver in receivers.get(channel, []) if receiver != sender]
            for public in (PublicName(channel, sender), *(PublicName(channel, sender, other) for other in others)):
                _check_public(public)


def _check_public(public: PublicName) -> None:
    try:
        check_channel(str(public))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"on the public LCM, {shown(public.channel)} of {public.sender} is {error.problem}",
            participant=public.sender,
            advice="shorten the names of the channel or the participants, or do without a public LCM",
        ) from None


def open_lcm(url: str) -> lcm.LCM:
    """Open an LCM of the LCM library itself."""
    try:
        library = import_module("lcm")
    except ImportError as error:
        raise UsageError(f"{url} needs the LCM library", advice=installing("lcm")) from error
    try:
        opened: lcm.LCM = library.LCM(url)
    except (RuntimeError, ValueError, TypeError) as error:
        raise UsageError(
            f"LCM can't be opened at {shown(url)}",
            advice="the lines above say why; multicast needs a route, on this machine alone for instance"
            " `ip route add 224.0.0.0/4 dev lo`",
        ) from error
    return opened


# Ports: how LCM programs are reached, over multicast or through a broker.
#
# A port may block, and it may break. It is used by one thread, but for `close`.

_PATIENCE_S = 10.0
_READ_SIZE = 2**16
_LIBRARY_QUEUE_MAX = 10_000

# Of multicast: what is sent between two pauses fits into a receiver's buffer several times, which has 208 KiB by
# default. Each packet takes room there besides its data.
_BURST_BYTES = 2**14
_PACKET_COST = 1000
_PAUSE_S = 0.001

Received = tuple[str, bytes]
"""A channel, and what was published on it."""


def open_port(url: str, channels: Sequence[str] = (), patience_s: float | None = None) -> TcpqPort | LcmLibraryPort:
    """Open what a text such as ``udpm://239.255.76.67:7667?ttl=0`` names, to publish, and to receive some channels."""
    return TcpqPort(url, channels, patience_s) if url.startswith(SCHEME) else LcmLibraryPort(url, channels)


class TcpqPort:
    """A connection to a broker. `patience_s` is how long that may take to read a message; None: for ever."""

    def __init__(self, url: str, channels: Sequence[str] = (), patience_s: float | None = None) -> None:
        self.url = url
        self._patience_s = patience_s
        self._socket = dial_broker(url, _PATIENCE_S)
        self._decoder = TcpqDecoder(SERVER_MAGIC)
        self._decoder.feed(greeting(SERVER_MAGIC))  # It has been taken already.
        self._received: deque[Received] = deque()
        for channel in channels:
            self._send(TcpqFrame(SUBSCRIBE, re.escape(channel)))

    def publish(self, channel: str, data: bytes) -> None:
        """Pass on a message; raise `LossError` if that can't be done."""
        self._send(TcpqFrame(PUBLISH, channel, data))

    def receive(self, timeout_s: float) -> Received | None:
        """Return the next message on one of the port's channels; None, if none comes within that time."""
        deadline = time.monotonic() + timeout_s
        while not self._received:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.0))  # 0: what is there already.
            try:
                data = self._socket.recv(_READ_SIZE)
            except (BlockingIOError, TimeoutError):
                return None
            except OSError as error:
                raise self._broken(error.strerror or str(error)) from error
            if not data:
                raise self._broken("it hung up")
            self._received += ((frame.channel, frame.data) for frame in self._decoder.feed(data))
        return self._received.popleft()

    def close(self) -> None:
        """End it, also if it is blocked in another thread."""
        with contextlib.suppress(OSError):  # Broken already.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _send(self, frame: TcpqFrame) -> None:
        self._socket.settimeout(self._patience_s)
        try:
            self._socket.sendall(frame.encode())
        except (BlockingIOError, TimeoutError) as error:
            raise self._broken(f"it hasn't read a message within {self._patience_s:g} s") from error
        except OSError as error:
            raise self._broken(error.strerror or str(error)) from error

    def _broken(self, problem: str) -> LossError:
        return LossError(f"the connection to the LCM broker at {self.url} broke: {problem}")


class LcmLibraryPort:
    """An LCM of the LCM library, for ``udpm://``. A thread of the library's own keeps what has come in, up to a limit.

    The library doesn't say what it has left out, no more than what multicast has lost. So what is published is paced.
    """

    def __init__(self, url: str, channels: Sequence[str] = ()) -> None:
        self.url = url
        self._lcm: lcm.LCM | None = open_lcm(url)
        self._burst = 0  # Bytes since the last pause.
        self._received = received = deque[Received]()
        for channel in channels:
            # What the library calls must not hold this port: the library would never be closed.
            subscription = self._lcm.subscribe(re.escape(channel), lambda *message: received.append(message))
            subscription.set_queue_capacity(_LIBRARY_QUEUE_MAX)  # By default it would keep 30.

    def publish(self, channel: str, data: bytes) -> None:
        """Pass on a message; raise `LossError` if that can't be done."""
        opened = self._lcm
        if opened is None:
            raise LossError(f"{self.url} is closed")
        try:
            opened.publish(channel, data)
        except (OSError, ValueError) as error:
            raise LossError(f"LCM at {self.url} doesn't take a message on {channel}: {error}") from error
        self._burst += len(data) + _PACKET_COST
        if self._burst > _BURST_BYTES:
            time.sleep(_PAUSE_S * self._burst / _BURST_BYTES)
            self._burst = 0

    def receive(self, timeout_s: float) -> Received | None:
        """Return the next message on one of the port's channels; None, if none comes within that time."""
        if not self._received and self._lcm is not None:
            self._lcm.handle_timeout(math.ceil(timeout_s * 1000))
        return self._received.popleft() if self._received else None

    def close(self) -> None:
        self._lcm = None  # Nothing is under way in it, and the library closes it when nothing refers to it any more.
