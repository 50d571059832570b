"""A participant's call to its server: where to connect, as whom, declaring what. Shared by all clients."""

from __future__ import annotations

import os
import socket
import ssl
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from worldline.federation.address import Address, parse_address
from worldline.federation.agreement import as_agreement
from worldline.federation.environment import read_surroundings
from worldline.federation.participant.declaration import Declaration, Declared, loader_of
from worldline.federation.participant.greeting import Greeting, recognized
from worldline.federation.sockets import client_context, dial, untrusted
from worldline.lock import Ledger
from worldline.model import Stream, UsageError, WorldlineError
from worldline.model.errors import BrokenOff
from worldline.model.lifecycle import UNEVENTFUL
from worldline.model.message import check_name
from worldline.model.time import format_time
from worldline.wire.handshake import NONCE_SIZE, Welcome

if TYPE_CHECKING:
    from worldline.federation.server.server import Server


# Those whose run was broken off because of somebody else: a line of theirs is enough.
#
# Whoever has started them shows the cause, once. A traceback of everybody who was waiting just then would bury it.


def is_bystander(error: BaseException | None) -> bool:
    """Whether a program that has ended so has ended because of somebody else."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_bystander, error.exceptions))
    return isinstance(error, BrokenOff) and error.participant != error.facts["told"]


def parting_words(error: BaseException | None) -> str:
    """Return what a bystander says of its end."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, BrokenOff) or error.participant is None:
        return f"worldline: {error}"
    at = "" if error.at is None else f" at {format_time(error.at)}"
    return f"worldline: the run was broken off because of {error.participant}{at}"


def be_brief() -> None:
    """Let what ends in this process because of somebody else say no more than that. For processes of a launcher."""
    if _brief:
        return
    _brief.append(True)
    usual, usual_of_threads = sys.excepthook, threading.excepthook

    def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if is_bystander(error):
            print(parting_words(error), file=sys.stderr)
        else:
            usual(kind, error, trace)

    def end_thread(how: threading.ExceptHookArgs) -> None:
        if is_bystander(how.exc_value):
            print(parting_words(how.exc_value), file=sys.stderr)
        else:
            usual_of_threads(how)

    sys.excepthook, threading.excepthook = end, end_thread


_brief: list[bool] = []  # Not empty: this process is.


PATIENCE_S = 10.0


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
        address: str | Address | Server | None,
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
        self.known = address is None  # Whoever started this process has given it: it is a server of ours.
        self.tls: ssl.SSLContext | None = None  # How the connection is to be encrypted, if it is.
        if isinstance(self._target, Address) and self._target.kind == "tls":
            self.tls = client_context(
                around.authority if authority is None else authority,
                around.certificate if certificate is None else certificate,
                around.key if key is None else key,
            )
        self._federation = (around.federation or "") if federation is None else federation
        self._token = around.token if token is None else token
        self._agreement = as_agreement(agreement)
        self._code = around.code or ""
        self._functions = launched.functions
        self.greeting = self.greet()
        self.shake = None if launched.shake is None else Stream(launched.shake, "shake", self.name)
        self._declaration = Declaration(**declared)
        self._declaration.join()  # What can't be declared is found out before anything is opened.

    def greet(self) -> Greeting:
        """Return a handshake; each connection needs its own."""
        return Greeting(self._federation, self.name, self._token, os.urandom(NONCE_SIZE), self._agreement, self._code)

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
