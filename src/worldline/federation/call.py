"""A participant's call to its server: where to connect, as whom, declaring what. Shared by all clients."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from worldline.federation.address import Address, parse_address
from worldline.federation.answering import recognised
from worldline.federation.declaration import Declaration, Subscribes
from worldline.federation.environment import Surroundings, read_surroundings
from worldline.federation.greeting import Greeting
from worldline.federation.sockets import client_context, dial, untrusted
from worldline.model import Stream, UsageError, WorldlineError
from worldline.model.message import check_name
from worldline.model.time import TimeLike
from worldline.wire.handshake import NONCE_SIZE

if TYPE_CHECKING:
    from worldline.federation.server import Server

PATIENCE_S = 10.0


class Declared(TypedDict, total=False):
    """The keywords of a `Declaration`."""

    publishes: Iterable[str] | None
    subscribes: Subscribes
    period: TimeLike
    latency_least: TimeLike
    controls: bool


class Call:
    """All that is needed to connect, complete and checked before anything is opened."""

    def __init__(
        self,
        address: str | Address | Server | None,
        name: str | None,
        *,
        federation: str | None,
        token: str | None,
        authority: Path | str | None,
        declared: Declared,
    ) -> None:
        launched = read_surroundings(os.environ)
        # With an address of its own, it is another run than the one that this process was started for, if it was.
        around = launched if address is None else Surroundings(token=launched.token, authority=launched.authority)
        given = name if name is not None else around.name
        if given is None:
            raise UsageError("a participant needs a name", advice="connect(address, name)")
        self.name = check_name(given, "a participant")
        target = address if address is not None else around.address
        if target is None:
            raise UsageError("there is no address to connect to", advice="connect(address, name)")
        self._target = parse_address(target) if isinstance(target, str) else target
        self.known = address is None  # Whoever started this process has given it: it is a server of ours.
        self._authority = authority if authority is not None else around.authority
        self.greeting = Greeting(
            (around.federation or "") if federation is None else federation,
            self.name,
            around.token if token is None else token,
            os.urandom(NONCE_SIZE),
        )
        self.shake = None if launched.shake is None else Stream(launched.shake, "shake", self.name)
        told = around.declaration.as_plain()
        self.ledger = Declaration(**{**told, **declared}).ledger(self.name)  # type: ignore[arg-type]

    def dial(self, patience_s: float) -> socket.socket:
        """Connect; to a server in this very process without a detour over the network."""
        return dial(self._target, patience_s) if isinstance(self._target, Address) else self._target.pair()

    def tls(self) -> ssl.SSLContext | None:
        """Return how the connection is to be encrypted, if it is."""
        if isinstance(self._target, Address) and self._target.kind == "tls":
            return client_context(self._authority)
        return None

    def recognise(self) -> None:
        """Raise what answers instead of our server, if that can be found out."""
        found = recognised(self._target) if isinstance(self._target, Address) else None
        if found is not None:
            raise found

    def untrusted(self, error: Exception) -> WorldlineError:
        """Return a failed TLS handshake as an error."""
        is_distrust = isinstance(error, ssl.SSLCertVerificationError)
        found = recognised(self._target) if isinstance(self._target, Address) and not is_distrust else None
        return found or untrusted(error)

    @property
    def host(self) -> str:
        """Whom the server's certificate has to name."""
        return self._target.place if isinstance(self._target, Address) else ""
