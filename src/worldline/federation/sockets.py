"""Sockets: how ours are set up, on either side."""

from __future__ import annotations

import errno
import socket
import ssl
import struct
import sys
import time
from pathlib import Path

from worldline.federation.address import Address
from worldline.federation.encrypted import Encrypted
from worldline.model import LossError, UsageError

_RETRY_S = 0.05
_UNREACHABLE_S = 10.0  # As long as nothing else has been agreed.
_LEAST_S = 2.0  # Idle connections are probed every second at the most: what is shorter can't be told from being idle.
_GONE = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)
_PROBES, _UNACKNOWLEDGED, _LAST_HEARD_MS, _INFO_SIZE = 3, 24, 56, 60  # Where these stand in Linux's `struct tcp_info`.

READ_LEAST = 448
"""How much is read at a time at first: enough for what is usually said, and memory that Python has at hand."""

_READ_MAX = 2**18


def next_read(asked: int, came: int) -> int:
    """Return how much to read the next time, when so much was asked for and so much came."""
    if came == asked:
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
    interval_s = max(1, int(unreachable_s / 5))
    idle_s = max(1, int(unreachable_s) - 3 * interval_s)
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
    """Connect to a server; try again for a while if nobody listens there yet."""
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
        except (OSError, UnicodeError) as error:  # The latter, if it can't be anybody's name.
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
