"""Hears what hosts tell, and hands it on: the records to a trace, and everything to an observer, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from worldline.history.observer import Observer
from worldline.nodes.trace import NodeRecord

_COPIES_MAX = 1_000


class HostObserver(Observer):
    """An observer of hosts.

    A host that drops a message knows it by the kernel's number; that of a copy isn't the message's, and which is which
    was told by whoever sent it.
    """

    def __init__(self, take: Callable[[NodeRecord], None] | None, observer: Observer | None) -> None:
        self._take = take
        self._observer = Observer() if observer is None else observer  # If only a trace is wanted.
        self._copies: dict[tuple[str, int], tuple[int, int, int]] = {}  # → number, which copy, until when.
        self._copies_max = _COPIES_MAX

    def began(self, who: str, at: int) -> None:
        self._observer.began(who, at)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self._keep(detail)
        self._observer.sent(who, number, topic, at, payload, until, detail)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        if copy:
            self._copies[sender, number + copy] = (number, copy, at)
        else:
            number, copy, _ = self._copies.get((sender, number), (number, 0, at))
        self._observer.arrives(sender, number, receiver, at, copy, lost)

    def lasts(self, sender: str, number: int, until: int) -> None:
        if (sender, number) in self._copies:
            message, copy, _ = self._copies[sender, number]
            self._copies[sender, number] = (message, copy, until)
            number = message
        self._observer.lasts(sender, number, until)

    def closed(self, receiver: str, topic: str, at: int) -> None:
        self._observer.closed(receiver, topic, at)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        self._keep(detail)
        self._observer.noted(who, topic, at, payload, detail)

    def ended(self, who: str, at: int, chain: bytes) -> None:
        self._observer.ended(who, at, chain)

    def passed(self, time: int) -> None:
        if len(self._copies) > self._copies_max:
            self._copies = {key: copy for key, copy in self._copies.items() if copy[2] >= time}
            self._copies_max = max(_COPIES_MAX, 2 * len(self._copies))
        self._observer.passed(time)

    def _keep(self, record: NodeRecord) -> None:
        if self._take is not None:
            self._take(record)
