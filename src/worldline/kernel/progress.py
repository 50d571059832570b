"""Shows how far a long run is, if somebody looks at a terminal.

It looks at a clock, and nothing that happens depends on that.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from worldline.model.errors import Stuck
from worldline.model.time import FOREVER, format_time

_SHOWN_AFTER_S = 1.0
_LOOK_EVERY_S = 0.05
_EVENTS_FIRST = 1_000


class Progress:
    """A bar that appears when a run has taken a while. `wanted`: always, never, or (None) on a terminal.

    A run with more than `events_max` events is taken to have no end.
    """

    def __init__(self, end: int, wanted: bool | None, events_max: int | None = None) -> None:
        self._end = end
        self._events_max = events_max
        self._wanted = sys.stderr.isatty() if wanted is None else wanted
        self._bar: Any = None
        self._task: Any = None
        self._begun = self._looked = time.monotonic()
        self.events_until_look = _EVENTS_FIRST if self._wanted else FOREVER

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def check(self, events: int, now: int) -> None:
        """Refuse to go on after too many events."""
        if self._events_max is not None and events > self._events_max:
            raise Stuck(
                f"it hasn't ended after {self._events_max:,} events",
                at=now,
                advice="does it end at all? If it takes longer, say events_max, or --events-max",
            )

    def reached(self, now: int, events: int) -> None:
        self.check(events, now)
        self.look(now, events)

    def look(self, now: int, events: int) -> int:
        """Say how far it is; adapt how many events pass until the next look, and return that."""
        if not self._wanted:
            return self.events_until_look
        clock = time.monotonic()
        took = max(clock - self._looked, 1e-6)
        self._looked = clock
        if self.events_until_look < FOREVER:
            scale = min(4.0, max(0.25, _LOOK_EVERY_S / took))
            self.events_until_look = max(1, int(self.events_until_look * scale))
        if clock - self._begun >= _SHOWN_AFTER_S:
            self._show(now, events, clock)
        return self.events_until_look

    def _show(self, now: int, events: int, clock: float) -> None:
        if self._bar is None:
            self._open()
        text = f"{format_time(now - now % 1_000)}  {events / (clock - self._begun):,.0f} events/s"
        self._bar.update(self._task, completed=min(now, self._end), description=text)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        has_end = self._end < FOREVER
        columns = (BarColumn(), TimeRemainingColumn()) if has_end else (SpinnerColumn(),)
        console = Console(stderr=True, force_terminal=True if self._wanted else None)
        self._bar = Bar(*columns, TextColumn("{task.description}"), console=console, transient=True)
        self._task = self._bar.add_task("", total=self._end if has_end else None)
        self._bar.start()
