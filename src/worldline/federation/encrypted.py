"""A TLS connection that behaves like a blocking socket, for two threads at once.

TLS itself allows one thread at a time, and none may hold on to it while it waits. So the socket underneath doesn't
block, each call has the connection for itself, and waiting is done outside. As for a plain socket with a limit, a wait
that takes too long raises `BlockingIOError`.

A signal's handler may raise in a program's thread, anywhere between the steps of Python code. So what TLS itself
returns is noted before any of these: `map` and `extend` are C. If a call is interrupted after that, the next one,
which is for the same bytes, does nothing but return what was noted.
"""

from __future__ import annotations

import errno
import select
import socket
import ssl
import threading
from typing import Any


class Encrypted:
    """The calls of a socket that a client needs, over TLS."""

    def __init__(self, connection: ssl.SSLSocket, limit_s: float) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._using = threading.Lock()
        self._read: list[bytes] = []  # What was read, and how much was written, of which nobody has been told yet.
        self._written: list[int] = []
        self.limit_s = limit_s

    def recv(self, size: int, flags: int = 0) -> bytes:
        while not self._read:
            try:
                self._read_some(size)
            except ssl.SSLWantReadError as error:
                if flags & socket.MSG_DONTWAIT:
                    raise BlockingIOError(errno.EAGAIN, "nothing is there") from error
                self._wait(select.POLLIN)
            except ssl.SSLEOFError:  # As a socket says it.
                return b""
        # From here on there is no call: a handler runs only after all of it.
        (data,) = self._read
        self._read = []
        return data

    def send(self, data: bytes | memoryview) -> int:
        while not self._written:
            try:
                self._write_some(data)
            except ssl.SSLWantWriteError:  # There is no room: it is made while we wait.
                self._wait(select.POLLOUT)
        (size,) = self._written
        self._written = []
        return size

    def _read_some(self, size: int) -> None:
        with self._using:
            self._read.extend(map(self._tls().read, (size,)))

    def _write_some(self, data: bytes | memoryview) -> None:
        with self._using:
            self._written.extend(map(self._tls().write, (data,)))

    def _tls(self) -> Any:
        """Return TLS itself: the methods of a socket that has it are Python."""
        tls = self._connection._sslobj  # type: ignore[attr-defined]
        if tls is None:
            raise OSError(errno.EBADF, "the connection is closed")
        return tls

    @property
    def plain(self) -> socket.socket:
        """The socket underneath, for its settings."""
        return self._connection

    def shutdown(self, how: int) -> None:
        socket.socket.shutdown(self._connection, how)  # Not that of TLS, which forgets its keys.

    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        self._connection.close()

    def _wait(self, event: int) -> None:
        poll = select.poll()
        poll.register(self._connection, event)
        if not poll.poll(self.limit_s * 1000):
            raise BlockingIOError(errno.EAGAIN, "it takes too long")
