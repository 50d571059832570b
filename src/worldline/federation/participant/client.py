"""The blocking client: a participant connected to a server, as its program's author uses it, in a `with` statement.

What it is connected by, a connection of its own, a circuit of one that is shared, or the server's own thread, is for
that *wire* to know. With a connection of its own, the program's thread writes and reads; a second thread, the pulse,
keeps the connection alive while the program computes, and tells what the program has said and left lying for a
twentieth of a second.

The program may be interrupted: a signal's handler may raise in its thread, anywhere. It may go on then, and the same
call again gives what the interrupted one would have given. So what was taken from the ledger, and hadn't reached the
program yet, goes back. What an earlier call gave has reached it, and stays. Handlers run between the steps of Python
code, also right after a call of compiled code has returned; hence this module is Python in every build.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Any, Self, Unpack

from worldline.federation.address import Address
from worldline.federation.participant.call import PATIENCE_S, Call, Credentials, ServerHere
from worldline.federation.participant.connection import (
    GREETING_S,
    HUNG_UP,
    PULSE_S,
    RedialingWire,
    SocketConnection,
    gone,
)
from worldline.federation.participant.participant import ClockName, Operations, Participant
from worldline.federation.participant.program import blame, failed_at, is_normal_end
from worldline.federation.participant.sometimes import draw_for
from worldline.federation.sockets import Encrypted, remember
from worldline.lock import Ledger, State
from worldline.model import LossError, Message, UsageError, WorldlineError
from worldline.model.time import TimeLike
from worldline.wire.handshake import TAKEN

_NOTICE_S = 1.0  # Within this, a server notices that a process is gone, if it is on the same machine.
_RETRY_S = 0.05
_REDIAL_S = 0.2  # For each attempt; between two of them it is seen whether all are to end.


class Client(Participant):
    """A participant connected to a server.

    Use it in a `with` statement: entering waits for the start of the run, exiting leaves the run, and an exception
    inside is reported to the others as the reason why the run ended.

    Besides what every wire does, a client's can `look` whether the server has ended the run, `fail` with the program,
    and `close`; `end` is why there is nothing more to be said, and `disowned` says whether this process was forked from
    the one that it belongs to. A connection of its own is kept alive by a pulse.
    """

    def __init__(self, ledger: Ledger, wire: Any, reentrant: bool = False) -> None:
        super().__init__(ledger, wire, reentrant)
        ledger.allow_undo()
        self._done = threading.Event()
        remember(self)
        if isinstance(wire, SocketConnection | RedialingWire):
            threading.Thread(target=self._live, name=f"worldline pulse of {ledger.name}", daemon=True).start()

    def __enter__(self) -> Self:
        try:
            self.join()
        except BaseException as error:
            report_own(error, self)
            self.close()
            raise
        draw_for(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> bool:
        if not self._wire.disowned:  # By a fork: it is for the parent to leave.
            is_patient = False
            try:
                is_patient = depart(self, error)
            finally:
                self._hang_up(patient=is_patient)
        return self._has_unwound(error)

    # --- Interruptions: see above. These have to be Python in every build. ---

    def join(self) -> None:
        self._ledger.forget_mark()
        try:
            super().join()
        except BaseException:
            self._take_back()
            raise

    def advance(
        self, to: TimeLike | None = None, *, by: TimeLike | None = None, clock: ClockName = "true"
    ) -> list[Message]:
        self._ledger.forget_mark()
        try:
            return self._advanced(to, by, clock)
        except BaseException:
            self._take_back()
            raise

    def next(
        self,
        until: TimeLike | None = None,
        *,
        within: TimeLike | None = None,
        promise: TimeLike | None = None,
        clock: ClockName = "true",
    ) -> list[Message]:
        self._ledger.forget_mark()
        try:
            return self._come(until, within, promise, clock)
        except BaseException:
            self._take_back()
            raise

    def peek(self, until: TimeLike | None = None, *, within: TimeLike | None = None, clock: ClockName = "true") -> int:
        self._ledger.forget_mark()
        try:
            return super().peek(until, within=within, clock=clock)
        except BaseException:
            self._take_back()
            raise

    def _take_back(self) -> None:
        with self._lock:  # The pulse may be telling the time.
            self._ledger.take_back()

    # --- Leaving, and the pulse ---

    def leave(self) -> None:
        """Leave the run; raise if it was broken off."""
        if self._ledger.state is not State.LEFT and not self.ended:
            self._wire.look()
        super().leave()

    def close(self) -> None:
        """Hang up. Without `leave`, the others consider this participant lost."""
        self._hang_up(patient=False)

    def _hang_up(self, *, patient: bool) -> None:
        self._done.set()
        self._wire.close(patient=patient)

    def give_up(self, problem: str) -> None:
        """Have the program raise a `LossError` instead of waiting for the server. From any thread."""
        self._wire.give_up(problem)

    def _live(self) -> None:
        """The pulse: keep the connection alive, and tell what was left lying."""
        while not self._done.wait(PULSE_S):
            try:
                self.catch_up()
                self._wire.beat()
            except (WorldlineError, ValueError, OSError):
                return  # The program's own thread meets the same and says so, or has hung up just now.

    def catch_up_if_idle(self) -> None:
        """Do as `catch_up`, unless an operation is under way: where its wire is held back, that may take long."""
        if self._lock.acquire(blocking=False):
            try:
                self._catch_up()
            finally:
                self._lock.release()


def depart(participant: Operations, error: BaseException | None) -> bool:
    """Leave the run, or tell the others what the program has failed of; return whether it has ended well."""
    failure = None if participant._has_unwound(error) or is_normal_end(error) else error
    try:
        if failure is None:
            participant.leave()
    except BaseException as met:
        failure = met
        raise
    finally:
        if failure is not None and participant._wire.end is None:  # Otherwise it's the end of the run that it met.
            report(failure, participant)
    return failure is None


def report(failure: BaseException, participant: Operations) -> None:
    """Tell the others what a participant's program has failed of."""
    with participant._lock:
        participant._ledger.tell_time()
        participant._take_untold()
    participant._wire.fail(blame(failure), participant._untold, failed_at(failure, participant.name))


def report_own(error: BaseException, participant: Operations) -> None:
    """Tell the others why a participant couldn't join, if that is its own doing: a draw that can't be, perhaps."""
    if isinstance(error, UsageError) and participant._wire.end is None:
        participant._wire.fail(blame(error), [])


def connect(
    address: str | Address | ServerHere | None = None,
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
    its `key`, the one to present to a server that asks for it. `agreement` is what both ends must state identically:
    see `Server`. Other keywords are what a `Program` declares: `publishes`, `subscribes`, `period`, `latency_least`,
    `controls`; for anything not declared here, the server's file decides. `patience_s` is how long to wait for a server
    that isn't up yet, and `silence_s` how long one may say nothing while it is waited for, not even a heartbeat; None:
    forever, since it may be stopped.
    """
    call = Call(address, name, **given)

    def redialed() -> SocketConnection:  # The wire tries again by itself.
        return connection_over(call, dial_server(call, _REDIAL_S), silence_s)

    connection = connection_to(call, patience_s, silence_s)
    try:
        ledger = call.ledger(connection.welcome)
        wire = RedialingWire(connection, redialed) if connection.welcome.returns else connection
        return Client(ledger, wire)
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
