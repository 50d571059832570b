"""The story of a run, as the checks of its properties see it: one happening after the other.

It is made of the participants' journals, so it tells what their programs have seen and done, and when that was for
them. Its order is that of times, of names at the same time, and of each participant's own doings: what it received, and
what it then noted and sent. No message arrives when it is sent, so nothing comes before its cause. The order depends on
the history alone, so a property holds on every executor or on none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from worldline.history.journal import Aside, Befell, Entry, Journal, Noted, Sent
from worldline.history.observer import LOG
from worldline.model.payload import from_json
from worldline.search.properties import Property, Verdicts

HappeningKind = Literal["sent", "received", "noted", "befell"]


class Happening:
    """One participant has sent, received or noted something.

    `who` did it, at `at`; `sender` is whose message it is. What a participant wrote to its log was `noted`; a crash and
    the like `befell` it.
    """

    def __init__(self, at: int, who: str, kind: HappeningKind, topic: str, payload: bytes, sender: str) -> None:
        self.at = at
        self.who = who
        self.kind = kind
        self.topic = topic
        self.payload = payload
        self.sender = sender

    @cached_property
    def value(self) -> Any:
        """The payload as an object, if it is JSON."""
        return from_json(self.payload)

    @property
    def text(self) -> str:
        """What was noted, or the payload as text."""
        return self.payload.decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"Happening({self.at}, {self.who!r}, {self.kind!r}, {self.topic!r}, {self.payload!r}, {self.sender!r})"


class Story:
    """What has happened so far. `last` happened just now; at the end it is None."""

    def __init__(self) -> None:
        self.now = 0
        self.last: Happening | None = None
        self.happenings: list[Happening] = []
        self._by_kind: dict[HappeningKind, list[Happening]] = {}  # What always has to hold asks for one kind each time.
        self.ends: dict[str, int] = {}

    @property
    def actor(self) -> str | None:
        return None if self.last is None else self.last.who

    def sent(self, topic: str | None = None, *, by: str | None = None) -> list[Happening]:
        """Return what was sent so far, on a topic, by somebody, or both."""
        return self._of("sent", topic, by)

    def received(self, topic: str | None = None, *, by: str | None = None) -> list[Happening]:
        """Return what was received so far, on a topic, by somebody, or both."""
        return self._of("received", topic, by)

    def noted(self, *, by: str | None = None) -> list[Happening]:
        """Return what was noted so far."""
        return self._of("noted", None, by)

    def befell(self, *, whom: str | None = None) -> list[Happening]:
        """Return what befell somebody so far: faults, recoveries, emergency stops."""
        return self._of("befell", None, whom)

    def _of(self, kind: HappeningKind, topic: str | None, by: str | None) -> list[Happening]:
        found = self._by_kind.get(kind, [])
        if topic is not None:
            found = [each for each in found if each.topic == topic]
        if by is not None:
            found = [each for each in found if each.who == by]
        return list(found)

    def judge(self, happenings: Iterable[Happening], properties: Sequence[Property], ends: Mapping[str, int]) -> None:
        """Let it all happen, and raise a `Violation` where a property doesn't hold. `ends` are all participants'."""
        verdicts = Verdicts(properties)
        for each in happenings:
            self.now, self.last = each.at, each
            self.happenings.append(each)
            self._by_kind.setdefault(each.kind, []).append(each)
            if verdicts.watches:
                verdicts.look(self)
        self.last = None
        self.ends = dict(ends)
        self.now = max(ends.values(), default=self.now)
        verdicts.finish(self)


def told_by(journals: Mapping[str, Journal]) -> list[Happening]:
    """Return what journals tell, in one order."""
    found = [
        (happening.at, name, place, happening)
        for name, own in journals.items()
        for place, happening in enumerate(_told(name, own.told()))
    ]
    return [happening for *_, happening in sorted(found, key=lambda each: each[:3])]


def _told(name: str, entries: Iterable[Entry | Aside]) -> Iterator[Happening]:
    for entry in entries:
        if isinstance(entry, Sent):
            yield Happening(entry.at, name, "sent", entry.topic, entry.payload, name)
        elif isinstance(entry, Noted):
            yield Happening(entry.at, name, "noted", LOG, entry.text.encode(), name)
        elif isinstance(entry, Befell):
            yield Happening(entry.at, name, "befell", "", entry.what.encode(), name)
        else:
            message = entry.message
            yield Happening(entry.now, name, "received", message.topic, message.payload, message.sender)
