"""Keeps what an observer would be told, for one in another process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from worldline.history.observer import Observer

Key = tuple[Any, ...]
"""The place of what happens in the one order of a run: its time, and whatever decides between what happens then."""

Call = tuple[Key, str, tuple[Any, ...]]
"""When something was told, by which method of the observer, and with what."""


class Teller(Observer):
    """An observer that keeps what it is told until somebody takes it.

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

    def began(self, who: str, at: int) -> None:
        self._keep("began", who, at)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self._keep("sent", who, number, topic, at, payload, until, detail)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        self._keep("arrives", sender, number, receiver, at, copy, lost)

    def lasts(self, sender: str, number: int, until: int) -> None:
        self._keep("lasts", sender, number, until)

    def closed(self, receiver: str, topic: str, at: int) -> None:
        self._keep("closed", receiver, topic, at)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        self._keep("noted", who, topic, at, payload, detail)

    def ended(self, who: str, at: int, chain: bytes) -> None:
        self._keep("ended", who, at, chain)

    def passed(self, time: int) -> None:
        """Nothing: what is final for one worker needn't be for the run."""

    def _keep(self, how: str, *what: Any) -> None:
        self._calls.append((self._key(), how, what))
