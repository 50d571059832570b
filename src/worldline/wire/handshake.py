"""The handshake: how a server and a participant make sure of each other before anything is said about the run.

    server       Challenge(protocol, version, nonce)
    participant  Hello(version, federation, name, nonce, proof, agreement, code, abilities)
    server       Welcome(proof, heartbeat, frame_max, declared, ...), or Refused(code, reason)

A proof is an HMAC under the participant's token over both nonces and the names, with a different word for each side,
so neither the token nor anything that could be used again crosses the wire. Without a token its place is taken by an
empty one. Version and proof are judged first: who doesn't know the token learns nothing about the run. Nonces come
from outside, since entropy is IO. What both sides must agree on is judged next, before anything about the run.
"""

from __future__ import annotations

import hmac
import re
from typing import Annotated

from msgspec import Meta, Struct, msgpack

from worldline.lock.events import Abort, Grant, Join, ParticipantEvent, Recall, Recalled, Restore, Snapshot, StartRun
from worldline.model.clock import LocalClock
from worldline.model.errors import PeerError
from worldline.model.lifecycle import Lifecycle
from worldline.model.message import Message
from worldline.model.payload import PAYLOAD_MAX
from worldline.model.time import TIME_MAX

# Recognizes what isn't our protocol by its first bytes, so that it can be called by its name.

_RECORDS = range(0x14, 0x18)  # TLS: kinds of records, each followed by a version 3.x.
_REQUEST = re.compile(rb"[A-Z]{3,16} [!-~]+ HTTP/")
_ANSWER = re.compile(rb"HTTP/|\s*<(!doctype )?html", re.IGNORECASE)
_TEXT = re.compile(rb"[ -~\t]{4,}")
_SHOWN_MAX = 60


def foreign(data: bytes) -> PeerError | None:
    """Return what the beginning of a stream is, if it is something that people connect to by mistake."""
    if data[:1] and data[0] in _RECORDS and data[1:2] == b"\x03":
        return PeerError("that is TLS, and this connection isn't encrypted", advice="tls:// goes with tls://")
    if _ANSWER.match(data):
        return PeerError("that is an HTTP server, not Worldline's", advice="is the port right?")
    if _REQUEST.match(data):
        return PeerError("that is an HTTP request, and this is a Worldline server", advice="is the port right?")
    if text := _TEXT.match(data):
        said = text[0][:_SHOWN_MAX].decode().strip()
        return PeerError(f"that isn't Worldline: it says {said!r}", advice="is the port right?")
    return None


PROTOCOL = "worldline"
VERSION = 1
NONCE_SIZE = 16
HELLO_MAX = 4096
"""The longest frame before a participant is admitted."""


_Time = Annotated[int, Meta(ge=0, le=TIME_MAX)]
_FrameSize = Annotated[int, Meta(ge=1, lt=2**31)]  # What a frame's header has room for.
_PayloadSize = Annotated[int, Meta(ge=0, le=2**62)]


CLOCK, LIFE = "clock", "life"
ABILITIES = (CLOCK, LIFE)
"""What a client may be asked to act out: a client that ignored it would make another history of the run."""


class Challenge(Struct, frozen=True, array_like=True, tag="challenge"):
    """Who are you? Prove it with this nonce."""

    protocol: str
    version: int
    nonce: bytes


class Hello(Struct, frozen=True, array_like=True, tag="hello"):
    """I am this participant of that federation, and take it that both sides agree on this.

    `code` is a hash of what I am made of, if that is known: it shows if I come back as another program. `abilities` are
    what I act out by myself if the welcome says so: a local `clock`, and a `life` with faults.
    """

    version: int
    federation: str
    name: str
    nonce: bytes
    proof: bytes
    agreement: dict[str, str] = {}
    code: str = ""
    abilities: tuple[str, ...] = ()

    def body(self) -> bytes:
        """Return it as it is sent: with nothing to agree on, as short as it can be."""
        if self.code or self.abilities:
            return _encode(self)
        said = ("hello", self.version, self.federation, self.name, self.nonce, self.proof, self.agreement)
        return _encode(said if self.agreement else said[:-1])


class Welcome(Struct, frozen=True, array_like=True, tag="welcome"):
    """You are expected. Say something every `heartbeat` nanoseconds, if only an empty frame.

    `declared` is what the server's file says of you, with your `period` and your local `clock`, if it says anything:
    join with that. If the connection is lost, try for `returns` nanoseconds to connect again and to resume; 0: the
    server won't come back. `life` is what happens to you in simulated time, if anything does: it is for you to see that
    it happens. `has_snapshot` says whether there is one from which you can be restored; None: the server
    keeps none.
    """

    proof: bytes
    heartbeat: _Time
    frame_max: _FrameSize
    declared: Join | None = None
    period: _Time = 0
    payload_max: _PayloadSize = PAYLOAD_MAX
    returns: _Time = 0
    has_snapshot: bool | None = None
    clock: LocalClock | None = None
    life: Lifecycle | None = None

    def body(self) -> bytes:
        """Return it as it is sent: as short as it can be, if nothing is declared or all is as usual."""
        if self.life is not None or self.clock is not None:
            return _encode(self)
        said = ("welcome", self.proof, self.heartbeat, self.frame_max, self.declared, self.period, self.payload_max)
        if self.has_snapshot is not None:
            return _encode((*said, self.returns, self.has_snapshot))
        if self.returns:
            return _encode((*said, self.returns))
        if self.payload_max != PAYLOAD_MAX:
            return _encode(said)
        return _encode(said[:4] if self.declared is None else said[:6])


class Refused(Struct, frozen=True, array_like=True, tag="refused"):
    """The connection ends here, for this reason; `code` is one of the constants below."""

    code: str
    reason: str


class Fail(Struct, frozen=True, array_like=True, tag="fail"):
    """A participant's last word when its program has failed: others are told the cause, and when that was.

    `at` is given if that isn't the participant's time: a simulator fails on its way there.
    """

    cause: str
    at: _Time | None = None


BAD_VERSION = "version"
BAD_TOKEN = "token"
BAD_FEDERATION = "federation"
DISAGREES = "agreement"
UNEXPECTED = "unexpected"
TAKEN = "taken"
DECLARED = "declared"
UNABLE = "unable"
OVER = "over"
CROWDED = "crowded"
PROTOCOL_ERROR = "protocol"

_encode = msgpack.Encoder().encode


def client_proof(
    token: bytes,
    challenge: Challenge,
    federation: str,
    name: str,
    nonce: bytes,
    agreement: dict[str, str] | None = None,
) -> bytes:
    """Return what shows the server that its participant knows the token."""
    return _proof(token, "client", challenge.nonce, nonce, federation, name, agreement)


def server_proof(token: bytes, challenge: Challenge, hello: Hello) -> bytes:
    """Return what shows the participant that its server knows the token."""
    return _proof(token, "server", challenge.nonce, hello.nonce, hello.federation, hello.name, hello.agreement)


def is_genuine(proof: bytes, expected: bytes) -> bool:
    """Compare in a time that doesn't depend on where they differ."""
    return hmac.compare_digest(proof, expected)


def _proof(token: bytes, *content: object) -> bytes:
    *rest, agreement = content
    if agreement:  # Otherwise the proof is as it was before there were agreements.
        rest.append(agreement)
    return hmac.digest(token, _encode((PROTOCOL, VERSION, *rest)), "sha256")


# What can be said over the wire: the words of the lock, of the handshake, and those that only the wire needs.


class Deliver(Struct, frozen=True, array_like=True, tag="deliver"):
    """Messages that belong to the next grant."""

    messages: list[Message]


class Resume(Struct, frozen=True, array_like=True, tag="resume", gc=False):
    """I am still here, though our connection was lost: the first word on a new one, in the place of `join`.

    I have been given so many answers (`start` and grants), and say again all that I have said since the last of them.
    """

    answers: int


Answer = StartRun | Grant | Abort | Refused | Deliver | Recalled
"""What a server says."""

Told = ParticipantEvent | Fail | Resume | Snapshot | Recall | Restore
"""What a participant says."""
