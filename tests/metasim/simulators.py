"""Simulators in plain Python."""

from __future__ import annotations

from worldline.metasim import Send
from worldline.model import Message

Noted = tuple[int, str, str]


class Counter:
    """Sends its count once in a period; counts on by what arrives. It knows when it sends, unless it is `blind`."""

    def __init__(self, channel: str, period: int, *, blind: bool = False) -> None:
        self.count = 0
        self.noted: list[Noted] = []
        self._channel = channel
        self._period = period
        self._blind = blind
        self._now = 0

    def begin(self, now: int, send: Send) -> None:
        self._send = send
        self._now = now
        self._say(now)

    def due(self) -> int | None:
        return None if self._blind else (self._now // self._period + 1) * self._period

    def advance_to(self, time: int) -> None:
        for at in range((self._now // self._period + 1) * self._period, time + 1, self._period):
            self._say(at)
        self._now = time

    def receive(self, messages: list[Message]) -> None:
        for message in messages:
            self.noted.append((self._now, message.sender, message.payload.decode()))
            assert message.arrival == self._now
            self.count += int(message.payload) % 7

    def _say(self, at: int) -> None:
        self.count += 1
        self._send(self._channel, str(self.count).encode(), at)
