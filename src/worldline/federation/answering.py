"""Finds out what answers at an address where no Worldline server did, or not in the way that was expected.

Some wait to be spoken to, some speak first: so it listens, then tries TLS, then HTTP, each on a connection of its own.
"""

from __future__ import annotations

import ssl

from worldline.federation.address import Address
from worldline.federation.sockets import open_socket
from worldline.model import UsageError
from worldline.wire.foreign import foreign
from worldline.wire.handshake import PROTOCOL

_PATIENCE_S = 1.0
_REQUEST = b"HEAD / HTTP/1.0\r\n\r\n"


def recognized(address: Address) -> UsageError | None:
    """Return what to do instead of connecting to this address, if it is known what answers there."""
    for words in (b"", _client_hello(), _REQUEST):
        heard = _answer(address, words)
        if heard[:1] in (b"\x15", b"\x16"):
            encrypted = Address("tls", address.place, address.port)
            return None if address == encrypted else UsageError("the server speaks TLS", advice=f"use {encrypted}")
        if PROTOCOL.encode() in heard:
            plain = Address("tcp", address.place, address.port)
            return None if address.kind != "tls" else UsageError("the server doesn't speak TLS", advice=f"use {plain}")
        if (other := foreign(heard)) is not None:
            return UsageError(other.problem, advice=other.advice)
    return None


def _answer(address: Address, words: bytes) -> bytes:
    try:
        with open_socket(address, _PATIENCE_S) as connection:
            connection.sendall(words)
            return connection.recv(1024)
    except OSError:  # Which says nothing: it was silent, or hung up.
        return b""


def _client_hello() -> bytes:
    """Return the first words of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    hello = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), hello).do_handshake()
    except ssl.SSLWantReadError:
        return hello.read()
    raise AssertionError("a handshake without an answer")
