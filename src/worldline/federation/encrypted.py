"""A TLS connection that behaves like a blocking socket, for two threads at once.

TLS itself allows one thread at a time, and none may hold on to it while it waits. So the socket underneath doesn't
block, each call has the connection for itself, and waiting is done outside. As for a plain socket with a limit, a wait
that takes too long raises `BlockingIOError`. Waiting is also where a program is interrupted, so that nothing has been
read or written then.
"""

from __future__ import annotations

import errno
import select
import socket
import ssl
import threading


class Encrypted:
    """The calls of a socket that a client needs, over TLS."""

    def __init__(self, connection: ssl.SSLSocket, limit_s: float) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._using = threading.Lock()
        self.limit_s = limit_s

    def recv(self, size: int, flags: int = 0) -> bytes:
        while True:
            with self._using:
                try:
                    return self._connection.recv(size)
                except ssl.SSLWantReadError as error:
                    if flags & socket.MSG_DONTWAIT:
                        raise BlockingIOError(errno.EAGAIN, "nothing is there") from error
            self._wait(select.POLLIN)

    def send(self, data: bytes | memoryview) -> int:
        while True:
            with self._using:
                try:
                    return self._connection.send(data)
                except ssl.SSLWantWriteError:
                    pass  # There is no room: it is made while we wait.
            self._wait(select.POLLOUT)

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
