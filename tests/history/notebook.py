"""An observer that writes down what it is told, and holds whoever tells to the rules of `history.observer`."""

from __future__ import annotations

from typing import Any

from worldline.history.observer import Observer


class Notebook(Observer):
    """`lines` has all that was told but how much has passed; `passes` has that. `present` began before."""

    def __init__(self, present: str = "") -> None:
        self.lines: list[tuple[Any, ...]] = []
        self.passes: list[int] = []
        self._until: dict[tuple[str, int], int] = {}
        self._last: dict[str, int] = dict.fromkeys(present, 0)

    def began(self, who: str, at: int) -> None:
        self._happens(at)
        assert who not in self._last, f"{who} began twice"
        self._last[who] = at
        self.lines.append(("began", who, at))

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self._happens(at)
        self._does(who, at)
        assert (who, number) not in self._until, f"{who} sent {number} twice"
        self._until[who, number] = until
        self.lines.append(("sent", who, number, topic, at, payload, until, detail))

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        self._happens(at)
        assert at <= self._until[sender, number]
        self.lines.append(("arrives", sender, number, receiver, at, copy, lost))

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        self._happens(at)
        self._does(who, at)
        self.lines.append(("noted", who, topic, at, payload, detail))

    def ended(self, who: str, at: int, chain: bytes) -> None:
        assert who in self._last
        self.lines.append(("ended", who, at, chain))

    def passed(self, time: int) -> None:
        self.passes.append(time)

    def _happens(self, at: int) -> None:
        assert at >= max(self.passes, default=0), "H3: that had passed"

    def _does(self, who: str, at: int) -> None:
        assert at >= self._last[who], f"H1: {who} did something later before"
        self._last[who] = at
