"""Names whoever keeps a run from going on for long. It only looks, so nothing of the result changes."""

from __future__ import annotations

import time
from collections.abc import Callable

from worldline.history.outcome import EVERYBODY_ELSE, THE_RUN, Status, WaitReason
from worldline.model.time import format_time

PATIENCE_S = 10.0
"""How long time may stand still before somebody is named, unless another patience is chosen."""


class HolderNotice:
    """Is told the status now and then, and says so when time has stood still for long; again after twice as long.

    What isn't a participant's doing isn't said: that somebody hasn't joined is shown anyway, and an operator who holds
    the run knows.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say = say
        self._patience_s = patience_s
        self._clock = clock
        self._time = -1
        self._since = clock()
        self._next_s = patience_s

    def __call__(self, status: Status) -> None:
        now = self._clock()
        if status.time != self._time:
            self._time, self._since, self._next_s = status.time, now, self._patience_s
            return
        held_s = now - self._since
        if held_s < self._next_s:
            return
        reason = root_of(status.waits)
        if reason is None or reason.holder is None:
            self._since = now  # Nobody holds it: the operator, the wall clock, somebody who isn't there.
            return
        self._next_s = 2 * held_s
        lasted = f"{held_s:.1f}" if held_s < 1 else f"{held_s:.0f}"
        self._say(f"{reason.holder} has held the run at {format_time(status.time)} for {lasted} s: {reason.why}")


def root_of(waits: tuple[WaitReason, ...]) -> WaitReason | None:
    """Return why the one that is held back most waits for one that doesn't wait itself; None if nobody is held so."""
    reasons = {wait.who: wait for wait in waits if wait.who != THE_RUN}
    if not reasons:
        return None
    if EVERYBODY_ELSE in reasons:
        return reasons[EVERYBODY_ELSE]
    reason = next(iter(reasons.values()))
    met = {reason.who}
    while reason.holder in reasons and reason.holder not in met:
        reason = reasons[reason.holder]
        met.add(reason.who)
    return reason
