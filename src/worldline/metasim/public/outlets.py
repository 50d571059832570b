"""Where the public LCM's messages go: a multicast group, or a broker.

An outlet may block, and it may break; whoever publishes in it does that in a thread of its own (`feed`).
"""

from __future__ import annotations

import contextlib
import socket
import time
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from worldline.metasim.public.tcpq import SCHEME, TcpqFrame, TcpqKind, dial_broker
from worldline.model.errors import LossError, UsageError, shown

if TYPE_CHECKING:
    import lcm

_PATIENCE_S = 5.0

# Of multicast: what is sent between two pauses fits into a receiver's buffer several times, which has 208 KiB by
# default. Each packet takes room there besides its data.
_BURST_BYTES = 2**14
_PACKET_COST = 1000
_PAUSE_S = 0.001


class Outlet(Protocol):
    """Publishes messages. `url` is what its user calls it."""

    @property
    def url(self) -> str: ...

    def publish(self, channel: str, data: bytes) -> None:
        """Pass on a message; raise `LossError` if that can't be done."""

    def close(self) -> None:
        """End it, also if it is blocked in another thread."""


def open_lcm(url: str) -> lcm.LCM:
    """Open an LCM of the LCM library itself."""
    try:
        library = import_module("lcm")
    except ImportError as error:
        raise UsageError(
            f"{url} needs the LCM library", advice="pip install '.[lcm]' in the clone of Worldline"
        ) from error
    try:
        opened: lcm.LCM = library.LCM(url)
    except (RuntimeError, ValueError, TypeError) as error:
        raise UsageError(
            f"LCM can't be opened at {shown(url)}",
            advice="the lines above say why; multicast needs a route, on this machine alone for instance"
            " `ip route add 224.0.0.0/4 dev lo`",
        ) from error
    return opened


class LcmOutlet:
    """An LCM of the LCM library, for ``udpm://``. It is paced: what a receiver has no room for is lost unnoticed."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lcm: lcm.LCM | None = open_lcm(url)
        self._burst = 0  # Bytes since the last pause.

    def publish(self, channel: str, data: bytes) -> None:
        opened = self._lcm
        if opened is None:
            raise LossError(f"{self.url} is closed")
        try:
            opened.publish(channel, data)
        except (OSError, ValueError) as error:
            raise LossError(f"{self.url} doesn't take a message on {channel}: {error}") from error
        self._burst += len(data) + _PACKET_COST
        if self._burst > _BURST_BYTES:
            time.sleep(_PAUSE_S * self._burst / _BURST_BYTES)
            self._burst = 0

    def close(self) -> None:
        self._lcm = None  # Nothing is under way in it, and the library closes it when nobody has it any more.


class TcpqOutlet:
    """A connection to a broker. It waits for one that doesn't read, which the library's own would do, too."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._socket = dial_broker(url, _PATIENCE_S)

    def publish(self, channel: str, data: bytes) -> None:
        try:
            self._socket.sendall(TcpqFrame(TcpqKind.PUBLISH, channel, data).encode())
        except OSError as error:
            raise LossError(f"the connection to {self.url} broke: {error.strerror or error}") from error

    def close(self) -> None:
        with contextlib.suppress(OSError):  # Broken already.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def open_outlet(url: str) -> Outlet:
    """Open what a text such as ``udpm://239.255.76.67:7667?ttl=0`` names."""
    return TcpqOutlet(url) if url.startswith(SCHEME) else LcmOutlet(url)
