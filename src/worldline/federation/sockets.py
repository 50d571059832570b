"""Sockets: how ours are set up, on either side."""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from threading import get_ident, main_thread
from typing import Any
from weakref import WeakSet

from worldline.federation.address import Address
from worldline.model import LossError, UsageError

# A TLS connection that behaves like a blocking socket, for two threads at once.
#
# TLS itself allows one thread at a time, and none may hold on to it while it waits. So the socket underneath doesn't
# block, each call has the connection for itself, and waiting is done outside. As for a plain socket with a limit, a
# wait that takes too long raises `BlockingIOError`.
#
# A signal's handler may raise in the main thread. Python's TLS has handlers run after it has read or written, and
# forgets how much that was if one raises. Handlers run in no other thread. So what the main thread wants read or
# written is done by a second one, which notes what came of it; if the main thread is interrupted meanwhile, its next
# call, which is for the same bytes, finds the note. Handlers run after calls and in loops: where two statements belong
# together, the only call is the last of them.


class Encrypted:
    """The calls of a socket that a client needs, over TLS."""

    def __init__(self, connection: ssl.SSLSocket, limit_s: float) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._using = threading.Lock()
        self._read: list[bytes] = []  # What was read, and how much was written, of which no caller has been told yet.
        self._written: list[int] = []
        self._wanted: Callable[[], None] | None = None  # What the second thread is to do, until it is done,
        self._met: Exception | None = None  # and why it couldn't.
        self._go, self._done = threading.Lock(), threading.Lock()  # A thread that waits for one is let go by the other.
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
        """Whether something was decrypted that hasn't been read: the system doesn't know of it."""
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


# The calls of a connection, as those in `calls.pyx`, which the compiled build has. What they have done is noted in the
# caller's list by `map`: a signal's handler finds nothing between the two at which it could raise.


class SocketCalls:
    """The calls of one socket, of whichever kind."""

    def __init__(self, connection: socket.socket | Encrypted, plain: bool, waits: bool) -> None:
        del plain, waits  # The socket knows.
        self._connection = connection

    def takes_frames(self, size: int) -> bool:
        """Whether it can write and read whole frames, where so much is read at a time. These calls can't."""
        return False

    def pass_on(self, out: bytearray) -> int:
        """Write what fits of this, and take it out; return how much that was. For a socket that doesn't wait."""
        done = self.send_some(out, 0)
        del out[:done]
        return done

    def send(self, data: bytes, start: int, sent: list[int]) -> bool:
        """Write what fits of this from there on; False: nothing did."""
        try:
            sent.extend(map(self._connection.send, (memoryview(data)[start:] if start else data,)))
        except BlockingIOError:
            return False
        return True

    def receive(self, size: int, flags: int, unread: list[bytes]) -> bool:
        """Read so much at the most; False: nothing has come. What came is empty if nothing more will."""
        try:
            unread.extend(map(self._connection.recv, (size,), (flags,)))
        except BlockingIOError:
            return False
        return True

    def send_some(self, data: bytes | bytearray, start: int) -> int:
        """Write what fits of this from there on; return how much that was."""
        try:
            return self._connection.send(memoryview(data)[start:])
        except (BlockingIOError, InterruptedError):
            return 0

    def received(self, size: int, flags: int) -> bytes | None:
        """Return what has come, so much at the most; None: nothing has."""
        try:
            return self._connection.recv(size, flags)
        except (BlockingIOError, InterruptedError):
            return None

    def close(self) -> None:
        """Make no more calls."""


def yield_processor() -> None:
    """Let another process have the processor, if one wants it."""
    os.sched_yield()


# What becomes of connections in a forked process: they stay with the process that made them.
#
# A forked process has a copy of everything, the sockets too. If it spoke, it would speak for its parent; if it only
# kept them open, the server would never notice that its parent has died. So right after a fork the copy is let go of,
# without a word. (A process that is started, not forked, never gets them: Python's sockets aren't inherited.)


def not_ours(participant: str) -> UsageError:
    """Return what a forked process is told that uses its parent's participant."""
    return UsageError(
        "this process was forked from the participant's own, which alone speaks for it",
        participant=participant,
        advice="let the parent do it, or connect under another name",
    )


_connected: WeakSet[Any] = WeakSet()


def remember(connected: Any) -> None:
    """Have what holds sockets `disown` them in processes that are forked from this one."""
    _connected.add(connected)


def _disown_all() -> None:
    for connected in list(_connected):
        connected.disown()


os.register_at_fork(after_in_child=_disown_all)


_RETRY_S = 0.05
_UNREACHABLE_S = 10.0  # As long as nothing else has been agreed.
_LEAST_S = 2.0  # Idle connections are probed every second at the most: what is shorter can't be told from being idle.
_PROBE_S_MAX = 2**15 - 1  # The longest that Linux takes.
_GONE = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)
_PROBES, _UNACKNOWLEDGED, _LAST_HEARD_MS, _INFO_SIZE = 3, 24, 56, 60  # Where these stand in Linux's `struct tcp_info`.

CLOSED = "the server closed the connection"

READ, WRITE = 0x001, 0x004  # POLLIN and POLLOUT, and EPOLLIN and EPOLLOUT on Linux: the same everywhere.

READ_LEAST = 448
"""How much is read at a time at first: enough for what is usually said, and memory that Python has at hand."""

_READ_MAX = 2**18


def next_read(asked: int, came: int) -> int:
    """Return how much to read the next time, when so much was asked for and so much came."""
    if came >= asked:
        return min(4 * asked, _READ_MAX)
    return asked // 2 if asked // 2 >= READ_LEAST and came < asked // 4 else asked


def configure(connection: socket.socket, unreachable_s: float) -> socket.socket:
    """Send small frames at once, and let the system find out when the other machine has gone."""
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        expect_signs_of_life(connection, unreachable_s)
    return connection


def expect_signs_of_life(connection: socket.socket, unreachable_s: float) -> None:
    """Let the system ask the other machine now and then while nothing is said, and give up after so long.

    It is the other *system* that answers, whatever its programs do: computing, stopped, or not reading.
    """
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return  # On one machine, a connection lives as long as both of its ends.
    interval_s = max(1, min(int(unreachable_s / 5), _PROBE_S_MAX))
    idle_s = max(1, min(int(unreachable_s) - 3 * interval_s, _PROBE_S_MAX))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": idle_s, "TCP_KEEPALIVE": idle_s, "TCP_KEEPINTVL": interval_s, "TCP_KEEPCNT": 3}
    for option, value in options.items():
        if hasattr(socket, option):  # Not every system lets a program choose these, nor has the same name for them.
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def is_unreachable(connection: socket.socket, unreachable_s: float) -> bool:
    """Whether the other machine has left what we sent unanswered for so long.

    Keepalive is for a connection on which nothing is under way; for what is under way, the system would try for a
    quarter of an hour. TCP_USER_TIMEOUT shortens that, but it also gives up a machine that answers all the time, only
    because the program there doesn't read. So we look for ourselves when the other system was last heard.
    """
    if sys.platform != "linux" or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_SIZE)
    (unacknowledged,) = struct.unpack_from("I", info, _UNACKNOWLEDGED)
    (last_heard_ms,) = struct.unpack_from("I", info, _LAST_HEARD_MS)
    # A single probe may have been sent just now, after a long pause.
    is_asked = unacknowledged > 0 or info[_PROBES] > 1
    return is_asked and last_heard_ms > 1000 * max(unreachable_s, _LEAST_S)


def breakage(error: OSError) -> str:
    """Say why a connection has ended, if the system knows."""
    return "the other machine doesn't answer" if error.errno in _GONE else error.strerror or str(error)


def wake_every(connection: socket.socket | Encrypted, seconds: float) -> None:
    """Let a blocking read or write end after so long. Python's own timeouts cost a system call more for each."""
    if isinstance(connection, Encrypted):
        connection.limit_s = seconds
        return
    whole = int(seconds)
    limit = struct.pack("ll", whole, int((seconds - whole) * 1_000_000))
    connection.setblocking(True)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def dial(address: Address, patience_s: float) -> socket.socket:
    """Connect to a server; try again for a while if nothing listens there yet."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            connection = open_socket(address, max(0.1, deadline - time.monotonic()))
            break
        except (ConnectionRefusedError, FileNotFoundError) as error:
            if time.monotonic() + _RETRY_S > deadline:
                raise LossError(
                    f"nothing listens on {address}: {error.strerror}", advice="is the server up?"
                ) from error
            time.sleep(_RETRY_S)
        except (OSError, UnicodeError) as error:  # The latter, if it can't be a host's name.
            raise LossError(f"can't connect to {address}: {error}") from error
    return configure(connection, _UNREACHABLE_S)


def untrusted(error: Exception) -> LossError:
    """Return a failed TLS handshake as an error."""
    return LossError(f"no trusted connection to the server: {error}", advice="check certificate and authority")


def broken(error: Exception) -> str:
    """Say how a connection broke. A server that wants a certificate only says so when the handshake is over."""
    if isinstance(error, ssl.SSLError):
        wanted = "CERTIFICATE_REQUIRED" in (error.reason or "")
        return f"{untrusted(error).problem}{'; it wants to be shown a certificate' if wanted else ''}"
    return f"the connection to the server broke: {breakage(error) if isinstance(error, OSError) else error}"


def open_socket(address: Address, timeout_s: float) -> socket.socket:
    """Connect a socket; each call on it may take so long."""
    if address.kind != "unix":
        return socket.create_connection((address.place, address.port), timeout=timeout_s)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(address.place)
    except OSError:
        connection.close()
        raise
    return connection


def server_context(
    certificate: Path | str, key: Path | str | None, authority: Path | str | None = None
) -> ssl.SSLContext:
    """Show a certificate; with an authority, let in only those who show one of its."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _show(context, certificate, key)
    if authority is not None:
        _trust(context, authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(
    authority: Path | str | None, certificate: Path | str | None = None, key: Path | str | None = None
) -> ssl.SSLContext:
    """Trust the given authority's certificates, or those that the system trusts; show one's own, if there is one."""
    context = ssl.create_default_context() if authority is None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authority is not None:
        _trust(context, authority)
    if certificate is not None:
        _show(context, certificate, key)
    return context


def _show(context: ssl.SSLContext, certificate: Path | str, key: Path | str | None) -> None:
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        advice = "give its key, too, unless that is in the same file" if key is None else "is this its key?"
        raise UsageError(f"the certificate {certificate} can't be used: {error}", advice=advice) from error


def _trust(context: ssl.SSLContext, authority: Path | str) -> None:
    try:
        context.load_verify_locations(str(authority))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"the authority {authority} can't be used: {error}") from error
