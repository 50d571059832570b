"""What a worker's entities tell an observer, kept until it can be told in the one order of events."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import merge
from typing import Any

from worldline.history.observer import Observer

Entry = tuple[tuple[Any, ...], str, tuple[Any, ...]]


class Notebook:
    """An observer that writes down all it is told, and during which event."""

    def __init__(self, engine: Any) -> None:
        self.entries: list[Entry] = []
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def write(*given: Any) -> None:
            engine = self._engine
            sender = engine.sender.name
            self.entries.append(((engine.now, engine.sent, not sender, sender, engine.order), name, given))

        return write


def tell(observer: Observer, notebooks: Iterable[list[Entry]]) -> None:
    """Tell what is in notebooks, in the order of events."""
    for _, name, given in merge(*notebooks, key=lambda entry: entry[0]):
        getattr(observer, name)(*given)
