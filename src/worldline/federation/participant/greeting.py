"""The participant's side of the handshake, shared by all clients. Bytes in, bytes out."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TypeVar

from msgspec import msgpack

from worldline.federation.address import Address
from worldline.federation.sockets import open_socket
from worldline.model import PeerError, UsageError
from worldline.model.errors import shortened
from worldline.model.frames import frame
from worldline.wire.codec import checked
from worldline.wire.handshake import (
    ABILITIES,
    BAD_TOKEN,
    PROTOCOL,
    PROTOCOL_ERROR,
    VERSION,
    Challenge,
    Hello,
    Refused,
    Welcome,
    client_proof,
    foreign,
    is_genuine,
    server_proof,
)

# Finds out what answers at an address where no Worldline server did, or not in the way that was expected.
#
# Some wait to be spoken to, some speak first: so it listens, then tries TLS, then HTTP, each on a connection of its
# own.

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


T = TypeVar("T")

_decode_challenge: Callable[[bytes], Challenge | Refused] = msgpack.Decoder(Challenge | Refused).decode
_decode_verdict: Callable[[bytes], Welcome | Refused] = msgpack.Decoder(Welcome | Refused).decode


class Greeting:
    """One handshake: `hello` answers the server's challenge, `settle` judges its verdict."""

    def __init__(
        self,
        federation: str,
        name: str,
        token: str | None,
        nonce: bytes,
        agreement: dict[str, str] | None = None,
        code: str = "",
    ) -> None:
        self._federation = federation
        self._name = name
        self._token = (token or "").encode()
        self._nonce = nonce
        self._agreement = agreement or {}
        self._code = code
        self._challenge: Challenge | None = None
        self._hello: Hello | None = None

    def hello(self, body: bytes) -> bytes:
        """Return the frame that answers a challenge."""
        challenge = self._accepted(checked(_decode_challenge, body))
        if challenge.protocol != PROTOCOL or challenge.version != VERSION:
            raise PeerError(
                f"the server speaks {shortened(challenge.protocol)} version {challenge.version}",
                advice=f"this is version {VERSION}; use the same Worldline on both sides",
            )
        proof = client_proof(self._token, challenge, self._federation, self._name, self._nonce, self._agreement)
        self._challenge = challenge
        self._hello = Hello(
            VERSION, self._federation, self._name, self._nonce, proof, self._agreement, self._code, ABILITIES
        )
        return frame(self._hello.body())

    def settle(self, body: bytes) -> Welcome:
        """Return the server's welcome, or raise why there is none."""
        welcome = self._accepted(checked(_decode_verdict, body))
        assert self._challenge is not None
        assert self._hello is not None
        if not is_genuine(welcome.proof, server_proof(self._token, self._challenge, self._hello)):
            raise PeerError("the server doesn't know the token", advice="is it the right server?")
        return welcome

    def _accepted(self, answer: T | Refused) -> T:
        if isinstance(answer, Refused):
            raise refusal(answer, self._name)
        return answer


def refusal(refused: Refused, name: str) -> UsageError | PeerError:
    """Return a server's refusal as an error: of the protocol's author, or of whoever started the participant."""
    reason = shortened(refused.reason)
    if refused.code == PROTOCOL_ERROR:
        return PeerError(f"the server refused to go on: {reason}", participant=name, code=refused.code)
    advice = None
    if refused.code == BAD_TOKEN and name:  # A run has tokens of its own for those whom it starts.
        advice = f"if it is the run's own, {name} is already there, or the run starts it itself: --without {name}"
    return UsageError(
        f"the server refused the connection: {reason}", participant=name, advice=advice, code=refused.code
    )
