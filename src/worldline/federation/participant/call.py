"""A participant's call to its server: where to connect, as whom, declaring what, and its side of the handshake.

Shared by all clients.
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar, Unpack

from msgspec import msgpack

from worldline.federation.address import Address, parse_address
from worldline.federation.environment import read_surroundings
from worldline.federation.participant.declaration import Declaration, Declared, as_agreement, loader_of
from worldline.federation.sockets import client_context, dial, open_socket, untrusted
from worldline.lock import Ledger
from worldline.model import PeerError, Stream, UsageError, WorldlineError
from worldline.model.errors import BrokenOff, shortened
from worldline.model.frames import frame
from worldline.model.lifecycle import UNEVENTFUL
from worldline.model.message import check_name
from worldline.model.time import format_time
from worldline.wire.codec import checked
from worldline.wire.handshake import (
    ABILITIES,
    BAD_TOKEN,
    NONCE_SIZE,
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


@dataclass
class Greeting:
    """One handshake: `hello` answers the server's challenge, `settle` judges its verdict."""

    federation: str
    name: str
    token: str | None = field(repr=False)
    nonce: bytes
    agreement: dict[str, str] = field(default_factory=dict)
    code: str = ""
    _said: tuple[Challenge, Hello] | None = field(default=None, init=False, repr=False)

    def hello(self, body: bytes) -> bytes:
        """Return the frame that answers a challenge."""
        challenge = self._accepted(checked(_decode_challenge, body))
        if challenge.protocol != PROTOCOL or challenge.version != VERSION:
            raise PeerError(
                f"the server speaks {shortened(challenge.protocol)} version {challenge.version}",
                advice=f"this is version {VERSION}; use the same Worldline on both sides",
            )
        secret = (self.token or "").encode()
        proof = client_proof(secret, challenge, self.federation, self.name, self.nonce, self.agreement)
        hello = Hello(VERSION, self.federation, self.name, self.nonce, proof, self.agreement, self.code, ABILITIES)
        self._said = challenge, hello
        return frame(hello.body())

    def settle(self, body: bytes) -> Welcome:
        """Return the server's welcome, or raise why there is none."""
        welcome = self._accepted(checked(_decode_verdict, body))
        assert self._said is not None
        if not is_genuine(welcome.proof, server_proof((self.token or "").encode(), *self._said)):
            raise PeerError("the server doesn't know the token", advice="is it the right server?")
        return welcome

    def _accepted(self, answer: T | Refused) -> T:
        if isinstance(answer, Refused):
            raise refusal(answer, self.name)
        return answer


def refusal(refused: Refused, name: str) -> UsageError | PeerError:
    """Return a server's refusal as an error: of the protocol's author, or of the participant's user."""
    reason = shortened(refused.reason)
    if refused.code == PROTOCOL_ERROR:
        return PeerError(f"the server refused to go on: {reason}", participant=name, code=refused.code)
    advice = None
    if refused.code == BAD_TOKEN and name:  # A run has tokens of its own for those whom it starts.
        advice = f"if it is the run's own, {name} is already there, or the run starts it itself: --without {name}"
    return UsageError(
        f"the server refused the connection: {reason}", participant=name, advice=advice, code=refused.code
    )


# Programs whose run was broken off because of another participant: a line of theirs is enough.
#
# The launcher shows the cause, once. Tracebacks of all programs that were waiting just then would bury it.


def is_cut_short(error: BaseException | None) -> bool:
    """Whether a program that has ended so has ended because of another participant."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_cut_short, error.exceptions))
    return isinstance(error, BrokenOff) and error.participant != error.facts["told"]


def parting_words(error: BaseException | None) -> str:
    """Return what a program says that was cut short."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, BrokenOff) or error.participant is None:
        return f"worldline: {error}"
    at = "" if error.at is None else f" at {format_time(error.at)}"
    return f"worldline: the run was broken off because of {error.participant}{at}"


def be_brief() -> None:
    """Let programs of this process that are cut short say no more than that. For processes of a launcher."""
    if _brief:
        return
    _brief.append(True)
    usual, usual_of_threads = sys.excepthook, threading.excepthook

    def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if is_cut_short(error):
            print(parting_words(error), file=sys.stderr)
        else:
            usual(kind, error, trace)

    def end_thread(how: threading.ExceptHookArgs) -> None:
        if is_cut_short(how.exc_value):
            print(parting_words(how.exc_value), file=sys.stderr)
        else:
            usual_of_threads(how)

    sys.excepthook, threading.excepthook = end, end_thread


_brief: list[bool] = []  # Not empty: this process is.


PATIENCE_S = 10.0


class ServerHere(Protocol):
    """A `Server` in this very process."""

    def pair(self) -> socket.socket:
        """Return a connection for a participant in this process."""


class Credentials(Declared, total=False):
    """The keywords of a `Call`: who it is and whom it trusts, and all that a `Declaration` takes."""

    federation: str | None
    token: str | None
    authority: Path | str | None
    certificate: Path | str | None
    key: Path | str | None
    agreement: Mapping[str, str] | None


class Call:
    """All that is needed to connect, complete and checked before anything is opened."""

    def __init__(
        self,
        address: str | Address | ServerHere | None,
        name: str | None,
        *,
        federation: str | None = None,
        token: str | None = None,
        authority: Path | str | None = None,
        certificate: Path | str | None = None,
        key: Path | str | None = None,
        agreement: Mapping[str, str] | None = None,
        **declared: Unpack[Declared],
    ) -> None:
        around = launched = read_surroundings(os.environ)
        if address is not None:  # It is another run than the one that this process was started for, if it was.
            around = replace(launched, address=None, name=None, federation=None, code=None)
        elif launched.address is not None:
            be_brief()
        given = name if name is not None else around.name
        if given is None:
            raise UsageError("a participant needs a name", advice="connect(address, name)")
        self.name = check_name(given, "a participant")
        target = address if address is not None else around.address
        if target is None:
            raise UsageError("there is no address to connect to", advice="connect(address, name)")
        self._target = parse_address(target) if isinstance(target, str) else target
        self.known = address is None  # The launcher has given it: it is a server of ours.
        self.tls: ssl.SSLContext | None = None  # How the connection is to be encrypted, if it is.
        if isinstance(self._target, Address) and self._target.kind == "tls":
            self.tls = client_context(
                around.authority if authority is None else authority,
                around.certificate if certificate is None else certificate,
                around.key if key is None else key,
            )
        self.greeting = Greeting(
            (around.federation or "") if federation is None else federation,
            self.name,
            around.token if token is None else token,
            os.urandom(NONCE_SIZE),
            as_agreement(agreement),
            around.code or "",
        )
        self._functions = launched.functions
        self.shake = None if launched.shake is None else Stream(launched.shake, "shake", self.name)
        self._declaration = Declaration(**declared)
        self._declaration.join()  # What can't be declared is found out before anything is opened.

    def greet(self) -> Greeting:
        """Return another handshake; each connection needs its own."""
        return replace(self.greeting, nonce=os.urandom(NONCE_SIZE))

    def ledger(self, welcome: Welcome) -> Ledger:
        """Return the ledger, for what was declared here or, where nothing was, by the server's file."""
        completed = self._declaration.completed(welcome.declared, welcome.period, welcome.clock)
        ledger = completed.ledger(self.name, welcome.life or UNEVENTFUL)
        ledger.payload_max = welcome.payload_max
        ledger.snapshots.at_server = welcome.has_snapshot
        if isinstance(self._target, Address):  # Otherwise the server is this very process.
            ledger.draws.load = loader_of(self._functions)
        return ledger

    def dial(self, patience_s: float) -> socket.socket:
        """Connect; to a server in this very process without a detour over the network."""
        return dial(self._target, patience_s) if isinstance(self._target, Address) else self._target.pair()

    def recognize(self) -> None:
        """Raise what answers instead of our server, if that can be found out."""
        found = recognized(self._target) if isinstance(self._target, Address) else None
        if found is not None:
            raise found

    def untrusted(self, error: Exception) -> WorldlineError:
        """Return a failed TLS handshake as an error."""
        is_distrust = isinstance(error, ssl.SSLCertVerificationError)
        found = recognized(self._target) if isinstance(self._target, Address) and not is_distrust else None
        return found or untrusted(error)

    @property
    def host(self) -> str:
        """Whom the server's certificate has to name."""
        return self._target.place if isinstance(self._target, Address) else ""
