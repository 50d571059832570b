"""The handshake: how a server and a participant make sure of each other before anything is said about the run.

    server       Challenge(protocol, version, nonce)
    participant  Hello(version, federation, name, nonce, proof)
    server       Welcome(proof, heartbeat, frame_max), or Refused(code, reason)

A proof is an HMAC under the shared token over both nonces and the names, with a different word for each side, so
neither the token nor anything that could be used again crosses the wire. Without a token its place is taken by an
empty one. Version and proof are judged first: who doesn't know the token learns nothing about the run. Nonces come
from outside, since entropy is IO.
"""

from __future__ import annotations

import hmac

from msgspec import Struct, msgpack

PROTOCOL = "worldline"
VERSION = 1
NONCE_SIZE = 16
HELLO_MAX = 4096
"""The longest frame before somebody is admitted."""


class Challenge(Struct, frozen=True, array_like=True, tag="challenge"):
    """Who are you? Prove it with this nonce."""

    protocol: str
    version: int
    nonce: bytes


class Hello(Struct, frozen=True, array_like=True, tag="hello"):
    """I am this participant of that federation."""

    version: int
    federation: str
    name: str
    nonce: bytes
    proof: bytes


class Welcome(Struct, frozen=True, array_like=True, tag="welcome"):
    """You are expected. Say something every `heartbeat` nanoseconds, if only an empty frame."""

    proof: bytes
    heartbeat: int
    frame_max: int


class Refused(Struct, frozen=True, array_like=True, tag="refused"):
    """The connection ends here, for this reason; `code` is one of the constants below."""

    code: str
    reason: str


class Fail(Struct, frozen=True, array_like=True, tag="fail"):
    """A participant's last word when its program has failed: others are told the cause."""

    cause: str


BAD_VERSION = "version"
BAD_TOKEN = "token"
BAD_FEDERATION = "federation"
UNEXPECTED = "unexpected"
TAKEN = "taken"
OVER = "over"
CROWDED = "crowded"
PROTOCOL_ERROR = "protocol"

_encode = msgpack.Encoder().encode


def client_proof(token: bytes, challenge: Challenge, federation: str, name: str, nonce: bytes) -> bytes:
    """Return what shows the server that its participant knows the token."""
    return _proof(token, "client", challenge.nonce, nonce, federation, name)


def server_proof(token: bytes, challenge: Challenge, hello: Hello) -> bytes:
    """Return what shows the participant that its server knows the token."""
    return _proof(token, "server", challenge.nonce, hello.nonce, hello.federation, hello.name)


def is_genuine(proof: bytes, expected: bytes) -> bool:
    """Compare in a time that doesn't depend on where they differ."""
    return hmac.compare_digest(proof, expected)


def _proof(token: bytes, side: str, server_nonce: bytes, client_nonce: bytes, federation: str, name: str) -> bytes:
    content = _encode((PROTOCOL, VERSION, side, server_nonce, client_nonce, federation, name))
    return hmac.digest(token, content, "sha256")
