"""Feeds an outlet from a thread of its own, so that a slow one never holds up the run.

What isn't out yet is kept up to a limit. Beyond that, messages are left out, the newest first, and counted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

from worldline.metasim.public.clock import encode_time
from worldline.metasim.public.names import CHANNEL_BYTES_MAX, TIME_CHANNEL
from worldline.metasim.public.outlets import Outlet
from worldline.metasim.public.timeline import PublicEvent
from worldline.model.errors import LossError

QUEUE_BYTES_MAX = 2**25
_EVENT_COST = 200  # Bytes that an event takes besides its payload; about.
LINGER_S = 2.0


class Feed:
    """Passes events on to an outlet. `count` are out, `lost` never will be; `nameless` have too long a name for LCM."""

    def __init__(self, outlet: Outlet, *, queue_bytes_max: int = QUEUE_BYTES_MAX, linger_s: float = LINGER_S) -> None:
        self.outlet = outlet
        self.count = 0
        self.lost = 0
        self.nameless = 0
        self.trouble = ""
        self._queue_bytes_max = queue_bytes_max
        self._linger_s = linger_s
        self._events: deque[PublicEvent] = deque()
        self._size = 0
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=f"worldline to {outlet.url}", daemon=True)
        self._thread.start()

    def put(self, events: Iterable[PublicEvent]) -> None:
        """Take in events, as far as there is room; never waits."""
        with self._changed:
            for event in events:
                size = len(event.payload) + _EVENT_COST
                if len(event.name) > CHANNEL_BYTES_MAX or len(event.name.encode()) > CHANNEL_BYTES_MAX:
                    self.nameless += 1
                elif self._events and self._size + size > self._queue_bytes_max:
                    self.lost += 1
                else:
                    self._events.append(event)
                    self._size += size
            self._changed.notify_all()

    def drain(self, timeout_s: float) -> bool:
        """Wait until all is out, but not for longer than that; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._size, timeout_s)

    def close(self) -> None:
        """End it, when all is out or can't be helped."""
        self.drain(self._linger_s)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self.outlet.close()
        self._thread.join()

    def _work(self) -> None:
        told: tuple[int, int] | None = None
        while (event := self._next()) is not None:
            try:
                if (event.sent, event.at) != told:
                    self.outlet.publish(TIME_CHANNEL, encode_time(event.sent, event.at))
                    told = (event.sent, event.at)
                self.outlet.publish(event.name, event.payload)
                self.count += 1
            except LossError as error:
                self.lost += 1
                self.trouble = self.trouble or error.problem
            with self._changed:
                self._size -= len(event.payload) + _EVENT_COST
                if not self._size:
                    self._changed.notify_all()

    def _next(self) -> PublicEvent | None:
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._closing)
            if self._closing:
                self.lost += len(self._events)
                self._events.clear()
                return None
            return self._events.popleft()
