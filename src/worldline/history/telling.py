"""Passes on what observers are told: to several of them, or to one in another process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from worldline.history.observer import TOLD, Observer
from worldline.model.time import FOREVER

Key = tuple[Any, ...]
"""The place of what happens in the one order of a run: its time, and whatever decides between what happens then."""

Call = tuple[Key, str, tuple[Any, ...]]
"""When something was told, by which method of the observer, and with what."""


class RelayingObserver(Observer):
    """Hands all that it is told to one method: which of those in `TOLD` was called, and with what."""

    def relay(self, how: str, what: tuple[Any, ...]) -> None:
        raise NotImplementedError


def _relaying(how: str) -> Callable[..., None]:
    def told(self: RelayingObserver, *what: Any, **detail: Any) -> None:
        self.relay(how, (*what, *detail.values()))  # The last one, if it is given at all.

    return told


for _how in TOLD:
    setattr(RelayingObserver, _how, _relaying(_how))


class SeveralObservers(RelayingObserver):
    """Tells several observers of one run everything, in the order in which they are given."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)

    def relay(self, how: str, what: tuple[Any, ...]) -> None:
        for each in self._observers:
            getattr(each, how)(*what)


class Teller(RelayingObserver):
    """An observer that keeps what it is told until that is taken.

    `key()` says at what the run is. Who tells of one thing in the course of another has told it at that other one: so
    a message's arrivals come with the message, and its loss, if it is found out later, with what happens then.
    """

    def __init__(self, key: Callable[[], Key]) -> None:
        self._key = key
        self._calls: list[Call] = []

    def __len__(self) -> int:
        return len(self._calls)

    def take(self) -> list[Call]:
        """Return what was told since the last time."""
        calls, self._calls = self._calls, []
        return calls

    def relay(self, how: str, what: tuple[Any, ...]) -> None:
        self._calls.append((self._key(), how, what))

    def passed(self, time: int) -> None:
        """Nothing: what is final for one worker needn't be for the run."""


# Makes one history of what several workers tell.
#
# Pure. Each worker tells of its own members, in the order in which things happen there, and now and then how far it is:
# nothing that it tells later is told at an earlier time. What comes out is one sequence that doesn't depend on when the
# workers were heard, nor on how many they are.
#
# Invariants
# ----------
# M1. Something is passed on once all workers are beyond its time, and then the worker goes first whose next call has
#     the least key. That is the order of a single worker that has all members: it always takes the least of what is
#     known, and what becomes known at one moment without any delay is known by the worker at whose member it happens.
# M2. `passed` is told behind all that was told before that time. So H1 to H3 of `history.observer` hold if they hold
#     for each worker, and what happens to a message is told at a later time than the message.
# M3. What is kept is what isn't final: told at a time that some worker hasn't reached.


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
