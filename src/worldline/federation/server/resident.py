"""The resident: a participant that lives in its server's own thread.

Between a client and its server there are two sockets, and a process or thread that has to wake up: where one
participant talks with all the others at every step, that is most of what a step costs. A resident's frames go straight
to the host, and its waiting is the server's loop: no socket, no thread, and still ordinary blocking code.

What breaks while the resident serves, by a signal's handler that raises or by a bug, may have left the host in the
middle of something. So that ends the run, whereas a client may go on waiting.
"""

from __future__ import annotations

import contextlib
import os
import time
from threading import get_ident
from typing import TYPE_CHECKING, Self

from worldline.federation.outcome import FederationOutcome
from worldline.federation.participant.client import Client, report
from worldline.federation.participant.connection import TELL_AFTER_S, Conversation, failure
from worldline.federation.participant.declaration import Declaration
from worldline.federation.participant.program import is_normal_end
from worldline.federation.server.session import OtherEnd, Session
from worldline.federation.sockets import not_ours, remember
from worldline.history.outcome import Watch
from worldline.lock import Action, ParticipantEvent, State
from worldline.lock.ledger import Wire
from worldline.model import UsageError, WorldlineError
from worldline.model.lifecycle import UNEVENTFUL

if TYPE_CHECKING:
    from worldline.federation.server.server import Server

FAREWELL_S = 60.0
"""How long the others may go on when a resident has left."""

_LOOK_AFTER_S = 0.05


class ResidentConnection(Wire):
    """Both ends of a resident's connection to the host: it asks like a client, and owns its session like a socket."""

    def __init__(self, server: Server, name: str) -> None:
        self._server = server
        self._name = name
        self._conversation = Conversation(name)
        self._conversation.agree(server.host.limits.frame_max, server.host.limits.payload_max)
        self._session: Session | None = None
        self._thread: int | None = None
        self._serves = False
        self._told = self._looked = 0.0
        self.disowned = False  # This process was forked from the one that it lives in.
        remember(self)

    def open(self, now: float) -> None:
        """Take the seat, in this thread."""
        self._session = self._server.host.seat(self._name, self, now)
        self._thread = get_ident()

    @property
    def end(self) -> WorldlineError | None:
        """Why there is nothing more to be said, once there isn't."""
        return self._conversation.end

    # --- For the host ---

    def write(self) -> None:
        assert self._session is not None
        out = self._session.out
        if out:
            self._conversation.feed(bytes(out))
            out.clear()

    def carry(self) -> None:
        """A resident isn't a trunk."""

    def other_end(self) -> OtherEnd:
        return OtherEnd(os.getpid())

    # --- For the participant ---

    def tell(self, events: list[ParticipantEvent]) -> None:
        self._check_thread()
        self._conversation.check()
        self._hand_over(events)

    def ask(self, events: list[ParticipantEvent]) -> Action:
        self._check_thread()
        if events:
            self._hand_over(events)
        else:
            self._server.come_back()
        while (answer := self._conversation.answer()) is None:
            if self._server.host.over:
                raise self._conversation.lost("the run is over")
            self._serve(patient=True)
        return answer

    def is_due(self, urgent: bool) -> bool:
        self._check_thread()
        now = time.monotonic()
        if now - self._looked > _LOOK_AFTER_S:
            self._looked = now
            self.look()
        return urgent or now - self._told > TELL_AFTER_S

    def look(self) -> None:
        """Serve those who have something to say, without waiting, and see whether that has ended the run."""
        self._conversation.look()
        if not self._serves:
            self._server.come_back()
            self._serve(patient=False)
            self._conversation.look()

    def serve_for(self, seconds: float) -> None:
        self._check_thread()
        self.look()
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._server.wake_within(left)
            self._serve(patient=True)
            self._conversation.look()

    def fail(self, cause: str, events: list[ParticipantEvent], at: int | None = None) -> None:
        """Say what is still to be told, and that the program has failed."""
        with contextlib.suppress(WorldlineError):
            if events:
                self.tell(events)
        with contextlib.suppress(WorldlineError):
            self._say(failure(cause, at))

    def close(self, *, patient: bool = False) -> None:
        """Hang up: the host has taken all that it was told."""
        if self._session is not None:
            self._server.host.closed(self._session, "it has hung up")

    def disown(self) -> None:
        """Have nothing more to say, in a forked process."""
        self.disowned = True
        self._conversation.end = not_ours(self._name)

    # --- In the server's place ---

    def _hand_over(self, events: list[ParticipantEvent]) -> None:
        """Give events to the host: at once, unless it doesn't read one that is so far ahead of the others."""
        assert self._session is not None
        self._server.come_back()
        while self._session.paused and not self._server.host.over:
            self._serve(patient=True)
        if events:  # Or the watcher of the run has said something meanwhile, and these along with it.
            data = self._conversation.encode(events)
            del events[:]
            self._say(data)

    def _say(self, data: bytes) -> None:
        session = self._session
        assert session is not None
        try:
            session.said = 0  # How many frames it sends is its own affair: it keeps only itself busy.
            self._server.hear(session, data)
        except BaseException as error:
            self._server.break_off(error)
            raise
        self._told = time.monotonic()

    def _serve(self, *, patient: bool) -> None:
        if self._serves:
            raise UsageError("it can't wait while it serves the others", participant=self._name)
        self._serves = True
        try:
            self._server.turn(patient=patient)
        except BaseException as error:
            self._server.break_off(error)
            raise
        finally:
            self._serves = False

    def _check_thread(self) -> None:
        if self._thread != get_ident():
            raise UsageError(
                "a resident lives in the thread that has entered it, which is its server's",
                participant=self._name,
                advice="use it in a `with` statement, in one thread only",
            )


class ResidentParticipant(Client):
    """A participant in the thread of its server: see `Server.resident`.

    Use it in a `with` statement. Entering opens the server and waits for the start of the run, for `limits.join_s` at
    the most; exiting leaves the run and serves the others until they have left too, for `farewell_s` at the most; then
    the server is closed, and `outcome` says what came of the run. An exception inside breaks the run off, and the
    others are told the reason. If the run is broken off otherwise, the next operation raises a `LossError` that says by
    whom and why, or, if there is none, the exit does.

    The others are served whenever the resident waits. While it computes none is: one that then connects, or has
    something to say, waits until the resident does. That time isn't silence, and counts against no limit.
    """

    def __init__(
        self,
        server: Server,
        name: str,
        declaration: Declaration,
        watch: Watch | None,
        watch_every_s: float,
        farewell_s: float,
    ) -> None:
        host = server.host
        ledger = declaration.completed(*host.stated(name)).ledger(name, host.life_of(name) or UNEVENTFUL)
        ledger.payload_max = host.limits.payload_max
        self._seat = ResidentConnection(server, name)
        super().__init__(ledger, self._seat, reentrant=True)  # Its watcher may publish in the middle of an operation.
        self._server = server
        self._watch = watch
        self._watch_every_s = watch_every_s
        self._farewell_s = farewell_s

    def __enter__(self) -> Self:
        server = self._server
        server.open()
        try:
            self._seat.open(server.begin(self._watch, self._watch_every_s))
            self.join()
        except BaseException as error:
            server.break_off(error)
            server.finish()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> bool:
        if self._wire.disowned:  # By a fork: it is for the parent to leave.
            return self._has_unwound(error)
        failed = None if self._has_unwound(error) or is_normal_end(error) else error
        try:
            if failed is None:
                self.leave()
                self._wire.close()
                self._server.serve_on(self.name, self._farewell_s)
        except BaseException as met:
            failed = met
            raise
        finally:
            if failed is not None:
                if self._ledger.state is not State.LEFT and self._wire.end is None and not self._server.host.over:
                    report(failed, self)
                self._server.break_off(failed)
            self._server.finish()
        return self._has_unwound(error)

    def serve_for(self, seconds: float) -> None:
        """Stand still for a while of the wall clock, and serve the others; raise if the run is broken off meanwhile."""
        self._seat.serve_for(seconds)

    def outcome(self) -> FederationOutcome:
        """Return the outcome of the run; if there is none, raise the reason."""
        return self._server.outcome()
