"""How long one asks for what is to come before one goes to sleep.

While answers come in briskly, falling asleep and being woken, and finding the processor's caches full of other things,
costs more than most answers take. So one asks for a while, and lets others have the processor in between. Where that
takes long, others need it: who sleeps is then woken sooner than who asks gets another turn, so one doesn't ask for some
time.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_ASKED_S = 0.0002
_BRISK_S = 2 * _ASKED_S
_CROWDED_S = 0.00005
_PAUSE_S = 0.1


class Eagerness:
    """Of one end of a connection, or of several. `since` is always when it began to wait."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._brisk = False  # What was last waited for came soon.
        self._resumes = 0.0  # When it may ask again.

    def asks(self, since: float) -> bool:
        """Whether to ask, and not to sleep at once."""
        return self._brisk and since >= self._resumes

    def asks_again(self, since: float) -> bool:
        """Let others have the processor; return whether to ask again then."""
        before = self._clock()
        os.sched_yield()
        now = self._clock()
        if now - before > _CROWDED_S:
            self._resumes = now + _PAUSE_S
            return False
        return now - since < _ASKED_S

    def came(self, since: float, now: float) -> None:
        """Note when something has come."""
        self._brisk = now - since < _BRISK_S
