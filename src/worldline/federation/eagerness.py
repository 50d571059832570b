"""How long one asks for what is to come before one goes to sleep.

While answers come in briskly, falling asleep and being woken, and finding the processor's caches full of other things,
costs more than most answers take. So one asks for a while, and lets others have the processor in between. Where that
takes long, strangers may need it: who sleeps is then woken sooner than who asks gets another turn. So one doesn't ask
for some time then, for so many times as long as it took that little is lost in all. But if it didn't take very long,
and has brought what one waits for, then whoever sends that had the processor, and nothing could be quicker.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_ASKED_S = 0.0002
_BRISK_S = 2 * _ASKED_S
_LONG_S = 0.00005
_VERY_LONG_S = 0.0003
_PAUSES = 64  # For so many times as long as it took one doesn't ask.


class Eagerness:
    """Of one end of a connection, or of several. `since` is always when it began to wait."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._brisk = False  # What was last waited for came soon.
        self._lost_s = 0.0  # How long somebody else had the processor, if what came of it isn't known yet.
        self._resumes = 0.0  # When it may ask again.

    def asks(self, since: float) -> bool:
        """Whether to ask, and not to sleep at once."""
        return self._brisk and since >= self._resumes

    def asks_again(self, since: float) -> bool:
        """Let others have the processor; return whether to ask again then."""
        before = self._clock()
        if self._lost_s:
            self._resumes = before + _PAUSES * self._lost_s
            return False
        os.sched_yield()
        now = self._clock()
        took = now - before
        if took > _VERY_LONG_S:
            self._resumes = now + _PAUSES * took
            return False
        if took > _LONG_S:
            self._lost_s = took
            return True
        return now - since < _ASKED_S

    def came(self, since: float, now: float) -> None:
        """Note when something has come."""
        self._brisk = now - since < _BRISK_S
        self._lost_s = 0.0
