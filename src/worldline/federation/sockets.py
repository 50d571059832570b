"""Sockets: how ours are set up, on either side."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from pathlib import Path

from worldline.federation.address import Address
from worldline.federation.encrypted import Encrypted
from worldline.model import LossError, UsageError

_RETRY_S = 0.05
_KEEPALIVE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3))


def configure(connection: socket.socket) -> socket.socket:
    """Send small frames at once, and let the system find out when the other machine has gone."""
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            if hasattr(socket, option):  # Not every system lets a program choose these.
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return connection


def limit_silence(connection: socket.socket | Encrypted, seconds: float) -> None:
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
            connection = _connect(address, max(0.1, deadline - time.monotonic()))
            break
        except (ConnectionRefusedError, FileNotFoundError) as error:
            if time.monotonic() + _RETRY_S > deadline:
                raise LossError(f"nobody listens on {address}: {error.strerror}", advice="is the server up?") from error
            time.sleep(_RETRY_S)
        except (OSError, UnicodeError) as error:  # The latter, if it can't be anybody's name.
            raise LossError(f"can't connect to {address}: {error}") from error
    return configure(connection)


def untrusted(error: Exception) -> LossError:
    """Return a failed TLS handshake as an error."""
    return LossError(f"no trusted connection to the server: {error}", advice="check certificate and authority")


def broken(error: Exception) -> str:
    """Say how a connection broke. A server that wants a certificate only says so when the handshake is over."""
    return (
        untrusted(error).problem if isinstance(error, ssl.SSLError) else f"the connection to the server broke: {error}"
    )


def _connect(address: Address, timeout_s: float) -> socket.socket:
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
        raise UsageError(f"the certificate {certificate} can't be used: {error}") from error


def _trust(context: ssl.SSLContext, authority: Path | str) -> None:
    try:
        context.load_verify_locations(str(authority))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"the authority {authority} can't be used: {error}") from error
