"""A receiver's messages that the arbiter hasn't handed over yet, and the count of those that it never will.

Most messages are handed over with the next grant. They only pass through a plain list; those that arrive later than
that move on to a heap. So a message costs an append and its part of one small sort, unless it is long under way.
"""

from __future__ import annotations

from collections.abc import Container
from heapq import heappop, heappush

from worldline.model.message import Message
from worldline.model.time import FOREVER

_GHOSTS_KEPT = 256


class Inbox:
    """Arrivals at one participant, and the ghosts of those that got lost on the way."""

    __slots__ = ("_ghosts", "_ghosts_max", "_later", "dropped", "first", "fresh")

    def __init__(self) -> None:
        self.fresh: list[Message] = []  # In no order. The router appends here itself and keeps `first` true.
        self._later: list[Message] = []
        self.first = FOREVER  # The earliest arrival of all that is here.
        # (arrival, topic, reason) of messages that were lost. Like a message, a loss counts only if the participant
        # is still subscribed when it would have arrived, which isn't known yet when it is drawn.
        self._ghosts: list[tuple[int, str, str]] = []
        self._ghosts_max = _GHOSTS_KEPT
        self.dropped: dict[tuple[str, str], int] = {}  # (topic, reason) → how many.

    def put(self, message: Message) -> None:
        self.fresh.append(message)
        if message.arrival < self.first:
            self.first = message.arrival

    def put_ghost(self, arrival: int, topic: str, reason: str, now: int) -> None:
        """Note a loss. Those that lie before the participant's time are final and are counted from time to time."""
        self._ghosts.append((arrival, topic, reason))
        if len(self._ghosts) > self._ghosts_max:
            self.count(now)
            self._ghosts_max = max(_GHOSTS_KEPT, 2 * len(self._ghosts))

    def take(self, horizon: int) -> list[Message]:
        """Remove and return what arrives before the horizon, in order."""
        if self.first >= horizon:
            return []
        later, fresh = self._later, self.fresh
        taken = [message for message in fresh if message[0] < horizon]
        if len(taken) < len(fresh):
            for message in fresh:
                if message[0] >= horizon:
                    heappush(later, message)
        fresh.clear()
        while later and later[0][0] < horizon:
            taken.append(heappop(later))
        self.first = later[0][0] if later else FOREVER
        taken.sort()
        return taken

    def close(self, topics: Container[str], until: int) -> None:
        """Forget topics from `until` on."""
        if self.fresh or self._later:
            self.fresh = [message for message in (*self.fresh, *self._later) if message.topic not in topics]
            self._later = []
            self.first = min((message.arrival for message in self.fresh), default=FOREVER)
        if self._ghosts:
            self.count(until, topics)
            self._ghosts = [ghost for ghost in self._ghosts if ghost[1] not in topics]

    def count(self, before: int, topics: Container[str] | None = None) -> None:
        """Count the losses that would have arrived before a time, of some topics or of all."""
        kept = []
        for ghost in self._ghosts:
            if ghost[0] < before and (topics is None or ghost[1] in topics):
                self.dropped[ghost[1:]] = self.dropped.get(ghost[1:], 0) + 1
            else:
                kept.append(ghost)
        self._ghosts = kept

    def __len__(self) -> int:
        return len(self.fresh) + len(self._later)
