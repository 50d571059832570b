"""Makes one history of what several workers tell.

Pure. Each worker tells of its own members, in the order in which things happen there, and now and then how far it is:
nothing that it tells later is told at an earlier time. What comes out is one sequence that doesn't depend on when the
workers were heard, nor on how many they are.

Invariants
----------
M1. Something is passed on once all workers are beyond its time, and then the worker goes first whose next call has the
    least key. That is the order of a single worker that has all members: it always takes the least of what is known,
    and what becomes known at one moment without any delay is known by the worker at whose member it happens.
M2. `passed` is told behind all that was told before that time. So H1 to H3 of `history.observer` hold if they hold for
    each worker, and what happens to a message is told at a later time than the message.
M3. What is kept is what isn't final: told at a time that some worker hasn't reached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from worldline.history.observer import Observer
from worldline.history.telling import Call, Key
from worldline.model.time import FOREVER


class Merging:
    """Passes on to an observer what so many workers tell."""

    def __init__(self, workers: int, observer: Observer) -> None:
        self._observer = observer
        self._calls: list[deque[Call]] = [deque() for _ in range(workers)]
        self._reached = [0] * workers
        self._floor = 0

    def __len__(self) -> int:
        """How many calls are kept."""
        return sum(map(len, self._calls))

    def hear(self, worker: int, calls: Iterable[Call], reached: int) -> None:
        """Take in what a worker has told since the last time; what it tells from now on is told at `reached` or later.

        FOREVER, if it won't tell anything more.
        """
        self._calls[worker].extend(calls)
        self._reached[worker] = max(reached, self._reached[worker])
        floor = min(self._reached)
        if floor > self._floor:
            self._floor = floor
            self._pass_on((floor,))
            if floor < FOREVER:
                self._observer.passed(floor)

    def break_off(self, key: Key) -> None:
        """Pass on what was told up to that key: there the run has failed, and all workers have told what was before."""
        self._pass_on((*key, ""))  # Behind the key itself: what was told until then is part of it.
        self._observer.passed(key[0])

    def _pass_on(self, end: Key) -> None:
        """Pass on all that was told before the end, the least key first (M1)."""
        while True:
            first = min((calls for calls in self._calls if calls), key=lambda calls: calls[0][0], default=None)
            if first is None or first[0][0] >= end:
                return
            key = first[0][0]
            while first and first[0][0] == key:
                _, how, what = first.popleft()
                getattr(self._observer, how)(*what)


def merged(observer: Observer, batches: Sequence[tuple[Iterable[Call], int]]) -> Merging:
    """Pass on what workers tell all at once, each with how far it has got."""
    merging = Merging(len(batches), observer)
    for worker, (calls, reached) in enumerate(batches):
        merging.hear(worker, calls, reached)
    return merging
