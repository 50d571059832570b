"""Feeds an outlet from a thread of its own, so that a slow one never holds up the run.

What isn't out yet is kept up to a limit. Beyond that, messages are left out, the newest first, and counted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from worldline.metasim.public.clock import encode_time
from worldline.metasim.public.names import CHANNEL_BYTES_MAX, TIME_CHANNEL
from worldline.metasim.public.outlets import Outlet
from worldline.metasim.public.timeline import PublicEvent
from worldline.model.errors import LossError, shortened

QUEUE_BYTES_MAX = 2**25
_EVENT_COST = 200  # Bytes that an event takes besides its payload; about.
LINGER_S = 2.0


class Feed:
    """Passes events on to an outlet. `count` are out, `lost` never will be; `nameless` have too long a name for LCM."""

    def __init__(
        self, outlet: Outlet, *, queue_bytes_max: int = QUEUE_BYTES_MAX, linger_s: float | None = LINGER_S
    ) -> None:
        self.outlet = outlet
        self.count = 0
        self.lost = 0
        self.nameless = 0
        self.trouble = ""
        self._queue_bytes_max = queue_bytes_max
        self._linger_s = linger_s
        self._events: list[PublicEvent] = []
        self._size = 0  # With what is just being passed on.
        self._told: tuple[int, int] | None = None
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name=f"worldline to {outlet.url}", daemon=True)
        self._thread.start()

    def put(self, events: Iterable[PublicEvent]) -> None:
        """Take in events, as far as there is room; never waits."""
        with self._changed:
            for event in events:
                name = event.name
                size = len(event.payload) + _EVENT_COST
                if len(name) > CHANNEL_BYTES_MAX or (not name.isascii() and len(name.encode()) > CHANNEL_BYTES_MAX):
                    self.nameless += 1
                elif self._size and self._size + size > self._queue_bytes_max:
                    self.lost += 1
                else:
                    self._events.append(event)
                    self._size += size
            self._changed.notify_all()

    def drain(self, timeout_s: float | None) -> bool:
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
        while (events := self._next()) is not None:
            for event in events:
                self._pass_on(event)
            with self._changed:
                self._size -= sum(len(event.payload) + _EVENT_COST for event in events)
                if not self._size:
                    self._changed.notify_all()

    def _pass_on(self, event: PublicEvent) -> None:
        if self._closing:
            self._lose("")
            return
        try:
            if (event.sent, event.at) != self._told:
                self.outlet.publish(TIME_CHANNEL, encode_time(event.sent, event.at))
                self._told = (event.sent, event.at)
            self.outlet.publish(event.name, event.payload)
            self.count += 1
        except LossError as error:
            self._lose(error.problem)
        except Exception as error:  # A thread has no caller to tell, and what follows is to be passed on, too.
            self._lose(shortened(f"{error!r}"))

    def _lose(self, reason: str) -> None:
        with self._changed:  # Whoever puts in more counts, too.
            self.lost += 1
            self.trouble = self.trouble or reason

    def _next(self) -> list[PublicEvent] | None:
        """Return what there is to pass on, all that has come in since the last time; None, if that was all."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._closing)
            events, self._events = self._events, []
            return events or None
