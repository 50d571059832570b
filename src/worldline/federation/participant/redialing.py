"""A participant's way to a server that may come back: if the connection is lost, it is made anew.

What was said since the last answer may not have been heard, and the answer to it may not have come. So that much is
kept, and is said again over the new connection, after how many answers there have been; the server compares it with
what it has heard, and goes on from there (`journaled_host`).

The program's thread and the pulse's use it side by side, as they do a connection: either may find that it is lost, and
one of them makes the new one while the other waits. The pulse looks at the connection, so that a server which has come
back needn't wait until a program that computes for long has something to say.

A signal's handler may raise in the program's thread: as in `connection`, two statements that belong together have no
call between them, and what isn't done is done by the next call.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from worldline.federation.participant.connection import SocketConnection
from worldline.lock import Action, ParticipantEvent
from worldline.lock.events import Recalled, Restore
from worldline.model import LossError, UsageError, WorldlineError
from worldline.model.errors import BrokenOff
from worldline.wire.handshake import OVER, TAKEN, Resume

_RETRY_S = 0.05


class RedialingWire:
    """A way to a server over one connection after the other. `dial` makes one, and raises if it can't."""

    def __init__(self, connection: SocketConnection, dial: Callable[[], SocketConnection]) -> None:
        self._connection = connection
        self._dial = dial
        self._patience_s = connection.welcome.returns / 1e9
        self._answers = 0
        self._said: list[ParticipantEvent] = []  # Since the last answer.
        self._unsaid: list[ParticipantEvent] = []  # Of these, what wasn't handed over to the connection yet.
        self._asks = False
        self._is_closed = False
        self._given_up: str | None = None
        self._renewing = threading.RLock()

    @property
    def disowned(self) -> bool:
        return self._connection.disowned

    @property
    def end(self) -> WorldlineError | None:
        end = self._connection.end
        return None if end is not None and self._is_lost(end) else end

    # --- For the participant ---

    def tell(self, events: list[ParticipantEvent]) -> None:
        with self._renewing:
            self._said += events
            self._unsaid += events  # All of this is one step: none of it is a call.
            del events[:]
            self._try(lambda connection: connection.tell(self._unsaid))

    def ask(self, events: list[ParticipantEvent]) -> Action:
        with self._renewing:  # Otherwise it might be half of what another thread says again.
            self._said += events
            self._unsaid += events  # All of this is one step: none of it is a call.
            del events[:]
            self._asks = True
        try:
            answer: Any = self._answer()
        finally:
            self._asks = False
        answers = self._place().answers + (answer.__class__ is not Recalled)
        self._said, self._unsaid, self._answers = [], [], answers
        return answer  # type: ignore[no-any-return] # it may be what was recalled

    def _answer(self) -> Action:
        while True:
            connection = self._connection
            try:
                return connection.ask(self._unsaid)
            except LossError as error:
                self._renew(connection, error)

    def is_due(self, urgent: bool) -> bool:
        connection = self._connection
        try:
            return connection.is_due(urgent)
        except LossError as error:
            self._renew(connection, error)
            return urgent

    def look(self) -> None:
        with self._renewing:
            self._try(lambda connection: connection.look())

    def fail(self, cause: str, events: list[ParticipantEvent], at: int | None = None) -> None:
        self._connection.fail(cause, events, at)

    def close(self, *, patient: bool = False) -> None:
        """Hang up. If all is well, only when the server has said that it knows: it may have been lost meanwhile."""
        try:
            if patient and self.end is None and self._said:
                with contextlib.suppress(BrokenOff):  # It has left; what becomes of the others is no concern of it.
                    self._farewell()
        finally:
            self._is_closed = True  # Whoever makes a new connection just now gives up.
            with self._renewing:
                self._connection.close(patient=patient)

    def _farewell(self) -> None:
        try:
            self.ask([])
        except UsageError as error:
            if error.facts.get("code") != OVER:  # Then it has been heard, too.
                raise

    def give_up(self, problem: str) -> None:
        self._given_up = problem
        self._connection.give_up(problem)

    # --- For the pulse ---

    def beat(self) -> None:
        connection = self._connection
        try:
            if not self._asks:
                connection.look()
            connection.beat()
        except LossError as error:
            self._renew(connection, error)

    # --- Connecting anew ---

    def _try(self, act: Callable[[SocketConnection], None]) -> None:
        connection = self._connection
        try:
            act(connection)
        except LossError as error:
            self._renew(connection, error)

    def _is_lost(self, error: WorldlineError) -> bool:
        is_loss = isinstance(error, LossError) and not isinstance(error, BrokenOff)
        return is_loss and self._given_up is None and not self._is_closed

    def _renew(self, lost: SocketConnection, error: LossError) -> None:
        """Have another connection in the place of one that is lost, over which all is said that may not be known."""
        if not self._is_lost(error) or lost.disowned:
            raise error
        with self._renewing:
            if self._connection is not lost:  # Another thread was quicker.
                return
            with contextlib.suppress(OSError):
                lost.close()
            deadline = time.monotonic() + self._patience_s
            while True:
                if self._is_closed:
                    raise error
                try:
                    self._connection = self._resumed()
                except LossError as met:
                    if not self._is_lost(met):
                        raise met from error
                    if time.monotonic() > deadline:
                        raise gone(error, met, self._patience_s) from error
                except UsageError as refused:
                    # Its server hasn't noticed yet that the old connection is gone.
                    if refused.facts.get("code") != TAKEN or time.monotonic() > deadline:
                        raise
                else:
                    return
                time.sleep(_RETRY_S)

    def _place(self) -> Resume | Restore:
        """Return where it stood before it said what it has said since: as it says itself, if it was restored."""
        if self._said and isinstance(first := self._said[0], Restore):
            return first
        return Resume(self._answers)

    def _resumed(self) -> SocketConnection:
        connection = self._dial()
        try:
            place = self._place()
            again: list[Any] = [place, *(event for event in self._said if not isinstance(event, Restore))]
            connection.tell(again)
        except BaseException:
            connection.close()
            raise
        self._unsaid = []
        return connection


def gone(lost: LossError, met: LossError, patience_s: float) -> LossError:
    """Return what there is to be said of a server that was lost, and hasn't come back."""
    return LossError(
        f"{lost.problem}, and it didn't come back within {patience_s:g} seconds: {met.problem}",
        participant=lost.participant,
        advice="if the run is taken up again later, start this participant again, too",
    )
