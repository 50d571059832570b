"""Puts what participants print in an order in which the cause of a failure comes first.

When somebody fails, the run is broken off, and all others end with a line about it. These often are quicker than the
traceback of the one that has failed; so they wait until that one has said all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from worldline.launch.processes import Hear


class CauseFirst:
    """Passes lines on. `culprit` says who has broken the run off, once somebody has."""

    def __init__(self, hear: Hear, culprit: Callable[[], str | None]) -> None:
        self._hear = hear
        self._culprit = culprit
        self._silent: set[str] = set()
        self._waiting: list[tuple[str, int | None, str]] = []
        self._lock = threading.RLock()

    def hear(self, name: str, now: int | None, text: str) -> None:
        """Pass a line on, or keep it until the culprit has said all."""
        with self._lock:
            culprit = self._culprit()
            if culprit in (None, name) or culprit in self._silent:
                self._hear(name, now, text)
            else:
                self._waiting.append((name, now, text))

    def fell_silent(self, name: str) -> None:
        """This one will print no more."""
        with self._lock:
            self._silent.add(name)
            if name == self._culprit():
                self.release()

    def release(self) -> None:
        """Pass on what has waited."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
            for line in waiting:
                self._hear(*line)
