"""The blocking client: a participant at the end of a socket.

The program's thread writes and reads; a second thread, the pulse, keeps the connection alive while the program
computes, and tells what the program has said and left lying for a twentieth of a second.
"""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Self, Unpack

from worldline.federation.address import Address
from worldline.federation.blame import blame, is_normal_end
from worldline.federation.call import PATIENCE_S, Call, Credentials
from worldline.federation.connection import SocketConnection
from worldline.federation.conversation import GREETING_S, PULSE_S
from worldline.federation.encrypted import Encrypted
from worldline.federation.forks import ForkedLock, remember
from worldline.federation.interruptible import InterruptibleParticipant
from worldline.lock import Ledger, RunEnded, State
from worldline.model import WorldlineError

if TYPE_CHECKING:
    from worldline.federation.server import Server


class Client(InterruptibleParticipant):
    """A participant connected to a server.

    Use it in a `with` statement: entering waits for the start of the run, exiting leaves the run, and an exception
    inside is reported to the others as the reason why the run ended.
    """

    def __init__(self, ledger: Ledger, connection: SocketConnection) -> None:
        super().__init__(ledger, connection)
        self._wire = connection
        self._done = threading.Event()
        remember(self)
        threading.Thread(target=self._live, name=f"worldline pulse of {ledger.name}", daemon=True).start()

    def __enter__(self) -> Self:
        try:
            self.join()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> bool:
        if self._wire.disowned:  # By a fork: it is for the parent to leave.
            return isinstance(error, RunEnded)
        failure = None if isinstance(error, RunEnded) or is_normal_end(error) else error
        try:
            if failure is None:
                self.leave()
        except BaseException as met:
            failure = met
            raise
        finally:
            if failure is not None and self._wire.end is None:  # Otherwise it's the end of the run that it met.
                with self._lock:
                    self._ledger.tell_time()
                    untold = self._ledger.take_outbox()
                self._wire.fail(blame(failure), untold)
            self._hang_up(patient=failure is None)
        return isinstance(error, RunEnded)

    def leave(self) -> None:
        """Leave the run; raise if it was broken off."""
        if self._ledger.state is State.COMPUTING and not self.ended:
            self._wire.look()
        super().leave()

    def close(self) -> None:
        """Hang up. Without `leave`, the others consider this participant lost."""
        self._hang_up(patient=False)

    def give_up(self, problem: str) -> None:
        """Have the program raise a `LossError` instead of waiting for the server. From any thread."""
        self._wire.give_up(problem)

    def disown(self) -> None:
        """Let go of the connection in a forked process, which has no pulse either."""
        self._lock = ForkedLock(self.name)

    def _hang_up(self, *, patient: bool) -> None:
        self._done.set()
        self._wire.close(patient=patient)

    def _live(self) -> None:
        """The pulse: keep the connection alive, and tell what was left lying."""
        while not self._done.wait(PULSE_S):
            try:
                self.catch_up()
                self._wire.beat()
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
    dialed: socket.socket | Encrypted = call.dial(patience_s)
    try:
        if call.tls is not None:
            assert isinstance(dialed, socket.socket)
            try:
                dialed = Encrypted(call.tls.wrap_socket(dialed, server_hostname=call.host), GREETING_S)
            except OSError as error:
                raise call.untrusted(error) from error
        doubt = None if call.known else call.recognize
        connection = SocketConnection(dialed, call.greeting, call.name, call.shake, doubt=doubt, silence_s=silence_s)
        return Client(call.ledger(connection.welcome), connection)
    except BaseException:
        dialed.close()
        raise
