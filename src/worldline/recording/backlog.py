"""Does work in another thread, in order: what takes long and leaves Python's lock to others meanwhile.

Hashing, compressing and writing many bytes are such work. So whoever runs the model goes on with it, on another core.
With few bytes, handing them over costs more than it gains: that is done at once, unless something is to be done before.

There is a thread only as long as there is something to do. So nothing has to be ended, and a process that forks or
exits between two runs has no thread of ours.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

_WORTH_A_THREAD = 2**18
_WEIGHT_MAX = 2**24


class Backlog:
    """Jobs, done one after the other. When one has failed, those after it aren't done, and `failed` says so."""

    def __init__(self) -> None:
        self.failed = False
        self._failure: Exception | None = None  # Until somebody has been told.
        self._jobs: deque[tuple[int, Callable[..., None], tuple[Any, ...]]] = deque()
        self._weight = 0  # How many bytes they hold, about.
        self._has_thread = False
        self._changing = threading.Lock()
        self._doing = threading.Lock()  # Held by whoever does them.

    def add(self, weight: int, job: Callable[..., None], *given: Any) -> None:
        """Have a job done that holds so many bytes. Takes part in the work if there is too much; raises as `check`."""
        if self._weight > _WEIGHT_MAX:
            self._do_all()
        self.check()
        if weight < _WORTH_A_THREAD and not self._jobs and not self._doing.locked():
            try:
                job(*given)
            except Exception:
                self.failed = True
                raise
            return
        with self._changing:
            self._jobs.append((weight, job, given))
            self._weight += weight
            if self._has_thread:
                return
            try:
                self._has_thread = True
                threading.Thread(target=self._work, name="worldline recorder", daemon=True).start()
            except BaseException:
                self._has_thread = False  # If there is one all the same, two take turns.
                raise

    def check(self) -> None:
        """Raise what a job has raised, once."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def drain(self) -> None:
        """Do what is left; raise as `check`."""
        self._do_all()
        self.check()

    def _work(self) -> None:
        while True:
            self._do_all()
            with self._changing:
                if not self._jobs:
                    self._has_thread = False
                    return

    def _do_all(self) -> None:
        with self._doing:
            while self._jobs:
                weight, job, given = self._jobs.popleft()
                try:
                    if not self.failed:
                        job(*given)
                except Exception as error:
                    self.failed, self._failure = True, error
                with self._changing:
                    self._weight -= weight
