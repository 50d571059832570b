"""Several observers of one run, such as a recorder and somebody who looks on. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from worldline.history.observer import Observer


class SeveralObservers(Observer):
    """Tells each of them everything, in the order in which they are given."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)

    def began(self, who: str, at: int) -> None:
        for each in self._observers:
            each.began(who, at)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        for each in self._observers:
            each.sent(who, number, topic, at, payload, until, detail)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        for each in self._observers:
            each.arrives(sender, number, receiver, at, copy, lost)

    def lasts(self, sender: str, number: int, until: int) -> None:
        for each in self._observers:
            each.lasts(sender, number, until)

    def closed(self, receiver: str, topic: str, at: int) -> None:
        for each in self._observers:
            each.closed(receiver, topic, at)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        for each in self._observers:
            each.noted(who, topic, at, payload, detail)

    def ended(self, who: str, at: int, chain: bytes) -> None:
        for each in self._observers:
            each.ended(who, at, chain)

    def passed(self, time: int) -> None:
        for each in self._observers:
            each.passed(time)
