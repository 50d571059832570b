"""Connecting to a broker of LCM's tcpq protocol."""

from __future__ import annotations

import socket

from worldline.federation.address import Address, parse_address
from worldline.metasim.public.tcpq import CLIENT_MAGIC, SERVER_MAGIC, TcpqDecoder, greeting
from worldline.model.errors import LossError, UsageError, WorldlineError

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
