"""A TLS connection that behaves like a blocking socket, for two threads at once.

TLS itself allows one thread at a time, and none may hold on to it while it waits. So the socket underneath doesn't
block, each call has the connection for itself, and waiting is done outside. As for a plain socket with a limit, a wait
that takes too long raises `BlockingIOError`.

A signal's handler may raise in the main thread. Python's TLS has handlers run after it has read or written, and forgets
how much that was if one raises. Handlers run in no other thread. So what the main thread wants read or written is done
by a second one, which notes what came of it; if the main thread is interrupted meanwhile, its next call, which is for
the same bytes, finds the note. Handlers run after calls and in loops: where two statements belong together, the only
call is the last of them.
"""

from __future__ import annotations

import errno
import select
import socket
import ssl
import threading
from collections.abc import Callable
from threading import get_ident, main_thread
from typing import Any


class Encrypted:
    """The calls of a socket that a client needs, over TLS."""

    def __init__(self, connection: ssl.SSLSocket, limit_s: float) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._using = threading.Lock()
        self._read: list[bytes] = []  # What was read, and how much was written, of which nobody has been told yet.
        self._written: list[int] = []
        self._wanted: Callable[[], None] | None = None  # What the second thread is to do, until it is done,
        self._met: Exception | None = None  # and why it couldn't.
        self._go, self._done = threading.Lock(), threading.Lock()  # Who waits for one is let go by the other thread.
        self._go.acquire()
        self._done.acquire()
        self._is_closed = False
        self.limit_s = limit_s
        threading.Thread(target=self._help, name="worldline TLS", daemon=True).start()

    def recv(self, size: int, flags: int = 0) -> bytes:
        self._finish()
        limit_s = 0.0 if flags & socket.MSG_DONTWAIT else self.limit_s
        while not self._read:
            if not self._is_pending():
                self._wait(select.POLLIN, limit_s)
            try:
                self._do(lambda: self._read.append(self._tls().read(size)))
            except ssl.SSLWantReadError:
                pass  # It was half of a record, or nothing that is for us.
            except ssl.SSLEOFError:  # As a socket says it.
                return b""
        # From here on there is no call.
        data = self._read[0]
        del self._read[0]
        return data

    def send(self, data: bytes | memoryview) -> int:
        self._finish()
        while not self._written:
            try:
                self._do(lambda: self._written.append(self._tls().write(data)))
            except ssl.SSLWantWriteError:  # There is no room: it is made while we wait.
                self._wait(select.POLLOUT, self.limit_s)
        size = self._written[0]
        del self._written[0]
        return size

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
        self._is_closed = True
        if self._go.locked():  # Otherwise the second thread is about to look by itself.
            self._go.release()

    # --- TLS itself ---

    def _tls(self) -> Any:
        """Return TLS itself: a socket's own methods would fall back on plain text when it is closed."""
        tls = self._connection._sslobj  # type: ignore[attr-defined]
        if tls is None:
            raise OSError(errno.EBADF, "the connection is closed")
        return tls

    def _is_pending(self) -> bool:
        """Whether something was decrypted that nobody has read: the system doesn't know of it."""
        with self._using:
            return bool(self._tls().pending())

    def _wait(self, event: int, limit_s: float) -> None:
        poll = select.poll()
        poll.register(self._connection, event)
        if not poll.poll(limit_s * 1000):
            raise BlockingIOError(errno.EAGAIN, "it takes too long")

    # --- The second thread ---

    def _do(self, act: Callable[[], None]) -> None:
        """Read or write, in a thread in which no handler runs."""
        if get_ident() != main_thread().ident or self._is_closed:
            with self._using:
                act()
            return
        self._met = None
        self._wanted = act  # With the next line, one step: its call is the last of it.
        self._go.release()
        self._finish()
        met, self._met = self._met, None
        if met is not None:
            raise met

    def _finish(self) -> None:
        """Wait until the second thread has done what it was last told: in the main thread, which tells it."""
        while self._wanted is not None and not self._is_closed and get_ident() == main_thread().ident:
            self._done.acquire()  # Perhaps for what was done before.

    def _help(self) -> None:
        while not self._is_closed:
            self._go.acquire()
            if self._wanted is None:
                continue  # It is closed.
            try:
                with self._using:
                    self._wanted()
            except Exception as error:
                self._met = error
            self._wanted = None
            if self._done.locked():
                self._done.release()
