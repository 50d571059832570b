"""The queue of the uncompiled engine: events in the order of their keys. The compiled one's is in `heap.pyx`.

An event is a tuple that begins with its key: (time, sent, sender's rank, order). In plain Python one heap of all events
is slow, since every step up or down compares two tuples; to sort a list takes much less. So events wait in buckets,
unsorted, and a bucket is sorted when it is reached; its number is the upper bits of its events' times. What is pushed
into a bucket after it was reached, or before it, is late, and goes into a heap. That is right however much is late, and
if everything is, it is as fast as one heap for all.

How wide a bucket should be depends on how close events follow each other, so that is measured. It is looked at after as
many turns off the fast path (a bucket reached, a late event taken) as there were events in the queue: to spread these
over other buckets then takes no longer, all in all, than those turns did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import chain
from typing import Any

from worldline.model.time import FOREVER

Entry = tuple[Any, ...]  # Time, sent, rank, order, what happens; the rest is the engine's.

_SHIFT_AT_FIRST = 20  # Buckets of a millisecond.
_FULL = 256  # So many events in a bucket are worth its while, and still few beside those that wait in large models.
_TURNS_MIN = 1_000


class BucketQueue:
    """Events that wait, of which about so many are `dead`.

    `event` is the one that was taken out last, while it happens: `process.advance` sets it.
    """

    __slots__ = (
        *("_buckets", "_late", "_numbers", "_present", "_reached", "_shift", "_since", "_taken", "_turns"),
        *("dead", "event"),
    )

    def __init__(self) -> None:
        self.event: Any = None
        self.dead = 0
        self._shift = _SHIFT_AT_FIRST
        self._buckets: dict[int, list[Entry]] = {}  # Those that haven't been reached.
        self._numbers: list[int] = []  # Theirs, a heap.
        self._present: list[Entry] = []  # What is left of the bucket that was reached last: the next event is the last.
        self._reached = -1
        self._late: list[Entry] = []  # A heap.
        self._turns = _TURNS_MIN  # How many are left until the width is looked at.
        self._since = 0  # When that was the last time, and how many events were taken since.
        self._taken = 0

    def __len__(self) -> int:
        return len(self._present) + len(self._late) + sum(map(len, self._buckets.values()))

    def push(self, entry: Entry) -> None:
        number = entry[0] >> self._shift
        bucket = self._buckets.get(number)
        if bucket is not None:
            bucket.append(entry)
        elif number > self._reached:
            self._buckets[number] = [entry]
            heappush(self._numbers, number)
        else:
            heappush(self._late, entry)

    def next_time(self) -> int:
        """Return when the next event is due; FOREVER if there is none."""
        first = [*self._present[-1:], *self._late[:1]]
        if not first and self._numbers:
            first = self._buckets[self._numbers[0]]
        return int(min(first)[0]) if first else FOREVER

    def until(self, end: int) -> Iterator[Entry]:
        """Take out the events before `end`, one by one; what is pushed meanwhile has its place among them."""
        present, late = self._present, self._late
        pop = present.pop
        while present or late or self._reach(end):
            if late and not (present and present[-1] < late[0]):
                if late[0][0] >= end:
                    return
                yield self._pop_late()
            elif not late and present[0][0] < end:  # Then all of the bucket is: the usual case.
                while present and not late:
                    yield pop()
            elif present[-1][0] < end:
                yield pop()
            else:
                return

    def purge(self, is_dead: Callable[[Any, int], bool]) -> list[int]:
        """Take out the events of entities' own that are dead. Owners have no numbers here, so none are returned."""
        entries = self._entries()  # Let go at the end, because that may run code of the model's.
        self._spread([entry for entry in entries if not is_dead(entry[4], entry[3])])
        return []

    def _reach(self, end: int) -> bool:
        """Go on to the next bucket, if it begins before `end`, and return whether there is one."""
        if not self._numbers or self._numbers[0] << self._shift >= end:
            return False
        self._count_turn(self._numbers[0] << self._shift)
        self._reached = heappop(self._numbers)
        bucket = self._buckets.pop(self._reached)
        bucket.sort(reverse=True)
        self._present += bucket
        self._taken += len(bucket)
        return True

    def _pop_late(self) -> Entry:
        entry = heappop(self._late)
        self._taken += 1
        self._count_turn(entry[0])
        return entry

    def _count_turn(self, now: int) -> None:
        self._turns -= 1
        if self._turns == 0:
            self._adapt(now)

    def _adapt(self, now: int) -> None:
        """Make buckets as wide as they should be by the events since the last time, unless they are nearly that."""
        if now > self._since and self._taken:
            shift = (_FULL * (now - self._since) // self._taken).bit_length()
            if abs(shift - self._shift) > 1:
                self._shift = shift
                self._spread(self._entries())
            self._since, self._taken = now, 0
        self._turns = max(_TURNS_MIN, len(self))

    def _entries(self) -> list[Entry]:
        return [*self._present, *self._late, *chain.from_iterable(self._buckets.values())]

    def _spread(self, entries: list[Entry]) -> None:
        """Put these events, which are all that there are, into buckets that haven't been reached."""
        self._present.clear()
        self._late.clear()
        self._buckets.clear()
        self._reached = -1
        for entry in entries:
            self._buckets.setdefault(entry[0] >> self._shift, []).append(entry)
        self._numbers[:] = sorted(self._buckets)
