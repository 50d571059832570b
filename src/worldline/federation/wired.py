"""A participant at the end of a wire, as its program's author uses it: in a `with` statement.

Entering waits for the start of the run; exiting leaves it, or says why it can't go on. What the wire is, a connection
of its own or a circuit of one that is shared, is for the wire to know.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

from worldline.federation.blame import blame, failed_at, is_normal_end
from worldline.federation.forks import ForkedLock, remember
from worldline.federation.interruptible import InterruptibleParticipant
from worldline.federation.participant import Connection
from worldline.lock import Ledger, ParticipantEvent, State
from worldline.model import UsageError, WorldlineError


class ParticipantWire(Connection, Protocol):
    """What a participant needs of its way to the server, besides asking and telling."""

    @property
    def disowned(self) -> bool:
        """Whether this process was forked from the one that it belongs to."""

    @property
    def end(self) -> WorldlineError | None:
        """Why there is nothing more to be said, once there isn't."""

    def look(self) -> None:
        """Raise if the server has ended the run meanwhile."""

    def fail(self, cause: str, events: list[ParticipantEvent], at: int | None = None) -> None:
        """Say what is still to be told, and that the program has failed; `at`, if that was before its time."""

    def close(self, *, patient: bool = False) -> None:
        """Hang up; if `patient`, only when the server has taken all that it was told."""


class WiredParticipant(InterruptibleParticipant):
    """A participant connected to a server.

    Use it in a `with` statement: entering waits for the start of the run, exiting leaves the run, and an exception
    inside is reported to the others as the reason why the run ended.
    """

    def __init__(self, ledger: Ledger, wire: ParticipantWire) -> None:
        super().__init__(ledger, wire)
        self._wire = wire
        remember(self)

    def __enter__(self) -> Self:
        try:
            self.join()
        except BaseException as error:
            if isinstance(error, UsageError) and self._wire.end is None:  # Of its own: a draw that can't be, perhaps.
                self._wire.fail(blame(error), [])
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> bool:
        if self._wire.disowned:  # By a fork: it is for the parent to leave.
            return self._has_unwound(error)
        failure = None if self._has_unwound(error) or is_normal_end(error) else error
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
                    self._take_untold()
                self._wire.fail(blame(failure), self._untold, failed_at(failure, self.name))
            self._hang_up(patient=failure is None)
        return self._has_unwound(error)

    def leave(self) -> None:
        """Leave the run; raise if it was broken off."""
        if self._ledger.state is State.COMPUTING and not self.ended:
            self._wire.look()
        super().leave()

    def catch_up_if_idle(self) -> None:
        """Do as `catch_up`, unless an operation is under way: where its wire is held back, that may take long."""
        lock: Any = self._lock
        if lock.acquire(blocking=False):
            try:
                self._catch_up()
            finally:
                lock.release()

    def close(self) -> None:
        """Hang up. Without `leave`, the others consider this participant lost."""
        self._hang_up(patient=False)

    def disown(self) -> None:
        """Let go of the connection in a forked process."""
        self._lock = ForkedLock(self.name)

    def _hang_up(self, *, patient: bool) -> None:
        self._wire.close(patient=patient)
