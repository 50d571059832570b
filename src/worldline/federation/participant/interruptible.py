"""A participant whose program may be interrupted: a signal's handler may raise in its thread, anywhere.

The program may go on then, and the same call again gives what the interrupted one would have given. So what was taken
from the ledger, and hadn't reached the program yet, goes back. What an earlier call gave has reached it, and stays.
Handlers run between the steps of Python code, also right after a call of compiled code has returned; hence these few
methods are Python in every build.
"""

from __future__ import annotations

from worldline.federation.participant.participant import ClockName, Connection, Participant
from worldline.lock import Ledger
from worldline.model import Message
from worldline.model.time import TimeLike


class InterruptibleParticipant(Participant):
    """A participant that loses nothing when it is interrupted."""

    def __init__(self, ledger: Ledger, connection: Connection) -> None:
        super().__init__(ledger, connection)
        ledger.allow_undo()

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
            return self._advance(to, by, clock)
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
            return self._next(self._deadline(until, within, clock), promise, clock)
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
