"""The blocking client: a participant at the end of a socket.

The program's thread writes and reads; a second thread, the pulse, keeps the connection alive while the program
computes, and tells what the program has said and left lying for a twentieth of a second.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Unpack

from worldline.federation.address import Address
from worldline.federation.call import PATIENCE_S, Call, Credentials
from worldline.federation.connection import SocketConnection
from worldline.federation.conversation import GREETING_S, HUNG_UP, PULSE_S
from worldline.federation.encrypted import Encrypted
from worldline.federation.redialing import RedialingWire, gone
from worldline.federation.wired import WiredParticipant
from worldline.lock import Ledger
from worldline.model import LossError, UsageError, WorldlineError
from worldline.wire.handshake import TAKEN

if TYPE_CHECKING:
    from worldline.federation.server import Server

_NOTICE_S = 1.0  # Within this, a server notices that a process is gone, if it is on the same machine.
_RETRY_S = 0.05
_REDIAL_S = 0.2  # For each attempt; between two of them it is seen whether all are to end.


class Client(WiredParticipant):
    """A participant with a connection of its own, and a pulse that keeps it alive."""

    def __init__(self, ledger: Ledger, connection: SocketConnection | RedialingWire) -> None:
        super().__init__(ledger, connection)
        self._connected = connection
        self._done = threading.Event()
        threading.Thread(target=self._live, name=f"worldline pulse of {ledger.name}", daemon=True).start()

    def give_up(self, problem: str) -> None:
        """Have the program raise a `LossError` instead of waiting for the server. From any thread."""
        self._connected.give_up(problem)

    def _hang_up(self, *, patient: bool) -> None:
        self._done.set()
        super()._hang_up(patient=patient)

    def _live(self) -> None:
        """The pulse: keep the connection alive, and tell what was left lying."""
        while not self._done.wait(PULSE_S):
            try:
                self.catch_up()
                self._connected.beat()
            except (WorldlineError, ValueError, OSError):
                return  # The program's own thread meets the same and says so, or has hung up just now.


def connect(
    address: str | Address | Server | None = None,
    name: str | None = None,
    *,
    patience_s: float = PATIENCE_S,
    silence_s: float | None = None,
    **given: Unpack[Credentials],
) -> Client:
    """Connect to a server as one of its participants.

    Arguments that aren't given come from the environment that `worldline run` sets up: in a process that it started,
    ``with worldline.connect() as me:`` is enough. `federation` is the federation to join, and `token` shows that the
    participant may join it. For ``tls://``, `authority` is the file of certificates to trust, and `certificate`, with
    its `key`, the one to present to a server that asks for it. `agreement` is what both ends must state alike: see
    `Server`. Other keywords are what a `Program` declares: `publishes`, `subscribes`, `period`, `latency_least`,
    `controls`; for anything not declared here, the server's file decides. `patience_s` is how long to wait for a server
    that isn't up yet, and `silence_s` how long one may say nothing while it is waited for, not even a heartbeat; None:
    forever, since it may be stopped.
    """
    call = Call(address, name, **given)

    connection = connection_to(call, patience_s, silence_s)
    try:
        ledger = call.ledger(connection.welcome)
        if connection.welcome.returns:
            return Client(ledger, RedialingWire(connection, lambda: connection_to(call, _REDIAL_S, silence_s)))
        return Client(ledger, connection)
    except BaseException:
        connection.close()
        raise


def connection_to(call: Call, patience_s: float = PATIENCE_S, silence_s: float | None = None) -> SocketConnection:
    """Connect to the server that is called, until it welcomes the participant.

    A server that was killed before that is given time to come back: once, since what hangs up each time isn't one of
    ours. And one that knows a participant of this name may just not have noticed yet that its process is gone.
    """
    begun = time.monotonic()
    hung_up: LossError | None = None
    while True:
        try:
            dialed = dial_server(call, begun + patience_s - time.monotonic())
        except LossError as error:
            raise error if hung_up is None else gone(hung_up, error, patience_s) from error
        try:
            return connection_over(call, dialed, silence_s)
        except LossError as error:
            if hung_up is not None or error.facts.get("code") != HUNG_UP:
                raise
            hung_up = error
        except UsageError as refused:
            if refused.facts.get("code") != TAKEN or time.monotonic() > begun + min(patience_s, _NOTICE_S):
                raise
            time.sleep(_RETRY_S)


def connection_over(call: Call, dialed: socket.socket | Encrypted, silence_s: float | None = None) -> SocketConnection:
    """Return the connection over a socket that has just been dialed, when the server has welcomed the participant."""
    try:
        doubt = None if call.known else call.recognize
        return SocketConnection(dialed, call.greet(), call.name, call.shake, doubt=doubt, silence_s=silence_s)
    except BaseException:
        dialed.close()
        raise


def dial_server(call: Call, patience_s: float = PATIENCE_S) -> socket.socket | Encrypted:
    """Connect to the server that is called; encrypt what is said, if it is to be."""
    dialed = call.dial(patience_s)
    if call.tls is None:
        return dialed
    try:
        return Encrypted(call.tls.wrap_socket(dialed, server_hostname=call.host), GREETING_S)
    except BaseException as error:
        dialed.close()
        if isinstance(error, OSError):
            raise call.untrusted(error) from error
        raise
