"""How long one asks for what is to come before one goes to sleep.

While answers come in briskly, falling asleep and being woken, and finding the processor's caches full of other things,
costs more than most answers take. So one asks for a while, and lets others have the processor in between. Where that
takes long, and brings nothing, strangers need it: who sleeps is then woken sooner than who asks gets another turn, so
one doesn't ask for some time; for longer, if it is so again afterwards. If it has brought what one waits for, whoever
sends that was given the processor, and nothing could be quicker.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_ASKED_S = 0.0002
_BRISK_S = 2 * _ASKED_S
_CROWDED_S = 0.00005
_PAUSE_LEAST_S = 0.001
_PAUSE_MAX_S = 0.256
_UNCROWDED_S = 0.004  # Who could ask for so long may take what stops it next for the first of its kind.


class Eagerness:
    """Of one end of a connection, or of several. `since` is always when it began to wait."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._brisk = False  # What was last waited for came soon.
        self._yielded_long = False  # Somebody else had the processor, and what came of it isn't known yet.
        self._pause_s = _PAUSE_LEAST_S  # How long it sleeps the next time that others need the processor,
        self._resumes = 0.0  # and when it may ask again after the last time.

    def asks(self, since: float) -> bool:
        """Whether to ask, and not to sleep at once."""
        return self._brisk and since >= self._resumes

    def asks_again(self, since: float) -> bool:
        """Let others have the processor; return whether to ask again then."""
        before = self._clock()
        if self._yielded_long:
            self._yielded_long = False
            if before - self._resumes > _UNCROWDED_S:
                self._pause_s = _PAUSE_LEAST_S
            self._resumes = before + self._pause_s
            self._pause_s = min(2 * self._pause_s, _PAUSE_MAX_S)
            return False
        os.sched_yield()
        now = self._clock()
        self._yielded_long = now - before > _CROWDED_S
        return self._yielded_long or now - since < _ASKED_S

    def came(self, since: float, now: float) -> None:
        """Note when something has come."""
        self._brisk = now - since < _BRISK_S
        self._yielded_long = False
