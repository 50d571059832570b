"""Puts the sends and deliveries of a run into the order in which they happen. Pure.

An observer is told of arrivals when a message is sent, and in an order that luck decides (`history.observer`). Taken
from here, they are ordered by their times; at the same time deliveries come first, since what is sent then may be the
answer to them, and then names and numbers decide. So the sequence of all that is ever taken is the same in every run.

Unlike a recorder, which writes all that becomes of a message in one place, this needn't wait for the last arrival of a
message: what happens before the time that has passed is settled (H3). So messages that are under way for long, or
held back by an outage, hold up nobody who looks on.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from worldline.metasim.public.names import PublicName
from worldline.model.time import FOREVER

# When it happens; 0 for a delivery, 1 for a send; sender, number, receiver, copy.
_Key = tuple[int, int, str, int, str, int]


class PublicEvent(NamedTuple):
    """A send or a delivery: its name on the public LCM, when it happens, and when the message was sent."""

    name: str
    payload: bytes
    sent: int
    at: int


class _Message:
    __slots__ = ("payload", "sent", "topic", "until")

    def __init__(self, topic: str, sent: int, payload: bytes, until: int) -> None:
        self.topic = topic
        self.sent = sent
        self.payload = payload
        self.until = until


class Timeline:
    """What has been told of a run, and hasn't been taken."""

    def __init__(self) -> None:
        self._messages: dict[tuple[str, int], _Message] = {}
        self._expiries: list[tuple[int, str, int]] = []
        # A heap. What is said anew has the same key, so a number of its own keeps messages from being compared.
        self._ahead: list[tuple[_Key, int, _Message]] = []
        self._said = 0
        self._due: dict[tuple[str, str], dict[_Key, object]] = {}  # Receiver and topic → the arrivals that hold.
        self._names: dict[tuple[str, str, str], str] = {}

    def __len__(self) -> int:
        """How many messages are kept."""
        return len(self._messages)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int) -> None:
        message = self._messages[who, number] = _Message(topic, at, payload, until)
        heappush(self._expiries, (until, who, number))
        heappush(self._ahead, ((at, 1, who, number, "", 0), 0, message))

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        message = self._messages[sender, number]
        key = (at, 0, sender, number, receiver, copy)
        due = self._due.get((receiver, message.topic))
        if due is None:
            due = self._due[receiver, message.topic] = {}
        if lost is not None:
            due.pop(key, None)
        elif key not in due:
            due[key] = None
            self._said += 1
            heappush(self._ahead, (key, self._said, message))

    def lasts(self, sender: str, number: int, until: int) -> None:
        message = self._messages.get((sender, number))
        if message is not None and until != message.until:
            message.until = until if message.until == FOREVER else max(until, message.until)
            heappush(self._expiries, (message.until, sender, number))

    def closed(self, receiver: str, topic: str, at: int) -> None:
        due = self._due.get((receiver, topic), {})
        for key in [key for key in due if key[0] >= at]:
            del due[key]

    def take(self, passed: int) -> list[PublicEvent]:
        """Remove and return, in order, all that happens before a time that has passed."""
        taken: list[PublicEvent] = []
        ahead, dues, names = self._ahead, self._due, self._names
        while ahead and ahead[0][0][0] < passed:
            key, _, message = heappop(ahead)
            at, is_send, sender, _, receiver, _ = key
            if is_send or dues[receiver, message.topic].pop(key, _ABSENT) is not _ABSENT:
                name = names.get((message.topic, sender, receiver)) or self._name(message.topic, sender, receiver)
                taken.append(PublicEvent(name, message.payload, message.sent, at))
        expiries, messages = self._expiries, self._messages
        while expiries and expiries[0][0] < passed:
            until, sender, number = heappop(expiries)
            expired = messages.get((sender, number))
            if expired is not None and expired.until <= until:
                del messages[sender, number]
        return taken

    def _name(self, topic: str, sender: str, receiver: str) -> str:
        name = self._names[topic, sender, receiver] = str(PublicName(topic, sender, receiver or None))
        return name


_ABSENT = object()
