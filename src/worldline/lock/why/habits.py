"""What everybody ever did in a run that could be declared: the topics that it sent on, and the period of its sends.

A declaration that one single send contradicts breaks the run. So this looks at all that was noted, unlike what is
played again, for which a part is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd

from worldline.lock.events import Join, Promise
from worldline.lock.why.heard import Heard, HeardSending
from worldline.model.time import US

_SENDS_LEAST = 3


class Habit:
    """What one participant sent in all."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self._sends = 0
        self._common = 0  # The greatest time of which all sends are multiples.
        self._promises = False

    def add(self, event: object) -> None:
        if isinstance(event, HeardSending):
            self.topics.add(event.topic)
            self._sends += 1
            self._common = gcd(self._common, event.at)
        elif isinstance(event, Promise):
            self._promises = True

    @property
    def period(self) -> int | None:
        """A time of which all sends were multiples, if there is one that is worth being declared."""
        is_worth_it = self._sends >= _SENDS_LEAST and self._common >= US and not self._promises
        return self._common if is_worth_it else None


class Habits:
    """What was noted of a run, as far as it has been listened to: who joined, their habits, and how long it took."""

    def __init__(self, noted: Iterable[Heard] = ()) -> None:
        self.of: dict[str, Habit] = {}
        self.took = 0
        for _ in self.listening(noted):
            pass

    def listening(self, noted: Iterable[Heard]) -> Iterator[Heard]:
        """Pass on what was noted, and listen."""
        first: int | None = None
        for heard in noted:
            first = heard.wall if first is None else first
            self.took = heard.wall - first
            for event in heard.events:
                if isinstance(event, Join):
                    self.of.setdefault(heard.who, Habit())
                elif (habit := self.of.get(heard.who)) is not None:
                    habit.add(event)
            yield heard
