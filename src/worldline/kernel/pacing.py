"""How far a worker may go: the lock's bound calculus between the workers of one simulation.

Theory of operation
-------------------
Workers are the clocks of `lock.bounds`, linked by lookaheads: the least latency of any link from an entity of one to
an entity of the other. There is no arbiter between them; each tells all others where it stands, along with the messages
for them, and each works out its own bound from what it has heard:

    bound(w) = min over workers v of value(v) + distance(v → w)

where a distance is the length of the shortest way over lookaheads, through any number of workers, at least one step
long; the way from w back to itself counts as well. `value(v)` is a time before which v sends nothing:

- its *promise*, which holds for ever: v said it when its own bound was known;
- its *base*, the time of its next event, if v said that it waits, and nothing is under way to it that it hadn't
  counted then. Whatever wakes it earlier is a message that another sends later, at or after that one's value; so it is
  covered by the way through v.

The base is what makes idle time free: with promises alone, two workers without events for an hour would promise
each other one lookahead after the other. To know that nothing is under way, each worker says how many messages it has
sent to and received from each other. That takes channels that keep the order of frames between two workers: what a
worker says of itself never overtakes the messages that it counts.

Invariants
----------
P1. No message arrives at a worker before a bound that it has worked out.
P2. When all wait and have heard all that was said, the one with the least base has a bound beyond it: lookaheads are
    positive. So one worker can always go on, and none waits for nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from worldline.model.time import FOREVER

AWAKE = -1


class WorkerProgress(NamedTuple):
    """Where a worker stands. `base` is AWAKE unless it waits; `failed` is the time of its failure, or FOREVER."""

    promise: int
    base: int
    sent: tuple[int, ...]
    received: tuple[int, ...]
    failed: int = FOREVER


class Pacing:
    """What one worker knows of the others."""

    def __init__(self, me: int, lookahead: list[list[int]]) -> None:
        self._me = me
        self._count = len(lookahead)
        self._others = [other for other in range(self._count) if other != me]
        distances = _distances(lookahead)
        self._distances = [distances[other][me] for other in range(self._count)]
        self._sent = [0] * self._count
        self._received = [0] * self._count
        nothing = (0,) * self._count
        self.progress = [WorkerProgress(0, AWAKE, nothing, nothing) for _ in range(self._count)]
        # How far to go before telling the others: half of what they may be ahead, so that they needn't stop for it.
        ahead = min((lookahead[me][other] for other in self._others), default=FOREVER)
        self.stride = max(1, ahead // 2)

    def count_sent(self, other: int, messages: int) -> None:
        self._sent[other] += messages

    def hear(self, other: int, told: WorkerProgress, messages: int) -> None:
        """Take in what another worker says, and how many messages came with it."""
        self._received[other] += messages
        # A worker may say less than before, when a message came in that it had covered by waiting; what it said holds.
        promised = self.progress[other].promise
        self.progress[other] = told if told.promise >= promised else told._replace(promise=promised)

    def bound(self, base: int) -> int:
        """Return the time before which nothing can arrive that isn't here; `base` is that of the next event here."""
        bound = base + self._distances[self._me]
        for other in self._others:
            bound = min(bound, self._value(other) + self._distances[other])
        return min(bound, FOREVER)

    def progress_at(self, base: int, bound: int) -> WorkerProgress:
        """Return what to tell the others."""
        if base < bound:
            return WorkerProgress(base, AWAKE, tuple(self._sent), tuple(self._received))
        return WorkerProgress(min(base, bound), base, tuple(self._sent), tuple(self._received))

    def farewell(self, failed: int = FOREVER) -> WorkerProgress:
        """Return what to tell the others at the end: nothing more will come."""
        return WorkerProgress(FOREVER, AWAKE, tuple(self._sent), tuple(self._received), failed)

    def _value(self, other: int) -> int:
        told = self.progress[other]
        if told.base == AWAKE:
            return told.promise
        for third in self._others:
            if third != other and self.progress[third].sent[other] != told.received[third]:
                return told.promise
        return told.base if self._sent[other] == told.received[self._me] else told.promise


def _distances(lookahead: list[list[int]]) -> list[list[int]]:
    """Return the length of the shortest way between each two workers, of at least one step (Floyd and Warshall)."""
    size = range(len(lookahead))
    shortest = [[FOREVER if here == there else lookahead[here][there] for there in size] for here in size]
    for via in size:
        for here in size:
            for there in size:
                shortest[here][there] = min(shortest[here][there], shortest[here][via] + shortest[via][there], FOREVER)
    return shortest
