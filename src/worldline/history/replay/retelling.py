"""What a member says when it is run again, against what it said before: the first thing that isn't the same.

A member that is given the same must say the same. So one difference is enough to know that it isn't deterministic, or
isn't the program that it was, and the first one shows where to look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from worldline.history.diff.account import Account, Fate, Membership, Sending
from worldline.history.diff.values import (
    FieldDifference,
    field_differences,
    payload_text,
    payload_texts,
)
from worldline.history.journal import Entry, Received, Sent
from worldline.history.outcome import End
from worldline.model.errors import NonDeterminism
from worldline.model.text import printable
from worldline.model.time import FOREVER, format_time

# A run as its members' journals tell it: what each was given when, and what it sent.
#
# That is all that a program has seen, so it is told by the times at which it was given things, which may be later than
# they arrived. What was lost is in no journal.


def account_of(journals: Mapping[str, Sequence[Entry]], members: Mapping[str, End]) -> Account:
    """Return what the journals of all members tell of a run that has come to its end."""
    fates: dict[tuple[str, int], list[Fate]] = {}
    for receiver, entries in journals.items():
        for entry in entries:
            if isinstance(entry, Received):
                message = entry.message
                fate = entry.now, receiver, message.copy, None
                fates.setdefault((message.sender, message.sequence), []).append(fate)
    sendings: list[Sending] = [
        (entry.at, sender, entry.topic, entry.payload, sorted(fates.get((sender, entry.sequence), ())), entry.sequence)
        for sender, entries in journals.items()
        for entry in entries
        if isinstance(entry, Sent)
    ]
    sendings.sort(key=lambda sending: (sending[0], sending[1], sending[5]))
    return Account(sendings, {name: Membership(0, end.at, end.chain.hex()) for name, end in members.items()})


_TIMES = ("at", "to", "until", "held", "now", "since", "waited")  # Fields of an utterance that are times.
_HEX_MAX = 20


class Utterance(NamedTuple):
    """Something that a member says: that it sends a message, or wants to go on. `at` is its time.

    `number` counts the messages that it sends: this one's, or how many it had sent before. `details` are its other
    fields by name.
    """

    verb: str
    at: int
    number: int = 0
    topic: str = ""
    payload: bytes = b""
    details: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        if self.verb == SENDS:
            return f"sends {printable(self.topic)} at {format_time(self.at)}: {payload_text(self.payload)}"
        told = ", ".join(f"{name} {_detail_text(name, value)}" for name, value in self.details)
        return f"{self.verb} {told}" if told else self.verb

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        found: dict[str, Any] = {"verb": self.verb, "at": self.at, "number": self.number}
        if self.verb == SENDS:
            found |= {"topic": self.topic, "payload": payload_text(self.payload)}
        return found | {name: _plain(value) for name, value in self.details}


SENDS = "sends"
"""The verb of a message."""


class RetoldDifference(NamedTuple):
    """The first thing that a member says otherwise than before. One of `then` and `now` may be missing."""

    member: str
    then: Utterance | None
    now: Utterance | None
    fields: tuple[FieldDifference, ...] = ()

    @property
    def first(self) -> Utterance:
        """The earlier of the two: up to there, it has said the same."""
        said = [each for each in (self.then, self.now) if each is not None]
        return min(said, key=lambda each: each.at)

    @property
    def field(self) -> FieldDifference | None:
        """The first field that differs, if both say the same kind of thing."""
        return self.fields[0] if self.fields else None

    def __str__(self) -> str:
        if self.then is None:
            return f"now it {self.now}, and before it said nothing more"
        if self.now is None:
            return f"before it {self.then}, and now it says nothing more"
        if self.field is None:
            return f"before it {self.then}, and now it {self.now}"
        which = f"message {self.now.number} on {printable(self.now.topic)}" if self.now.verb == SENDS else self.now.verb
        return f"{which}: {_field_text(self.field)}"

    def lines(self) -> list[str]:
        """Return it as lines of text: who, when, which message, both versions, and the fields that differ."""
        first = self.first
        what = f"sends {printable(first.topic)}" if first.verb == SENDS else first.verb
        count = f"message {first.number}" if first.verb == SENDS else f"after {first.number} messages"
        head = f"{printable(self.member)} at {format_time(first.at)}, {count}: {what}"
        return [head, *(f"  {line}" for line in self._versions()), *(f"  {_field_text(each)}" for each in self.fields)]

    def _versions(self) -> list[str]:
        if self.then is not None and self.now is not None and self.then.verb == self.now.verb == SENDS:
            then, now = payload_texts(self.then.payload, self.now.payload)
        else:
            then, now = (str(each or "says nothing more") for each in (self.then, self.now))
        return [f"before: {then}", f"now:    {now}"]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "member": self.member,
            "at": self.first.at,
            "message": self.first.number,
            "then": None if self.then is None else self.then.as_json(),
            "now": None if self.now is None else self.now.as_json(),
            "fields": [each.as_json() for each in self.fields],
        }

    def error(self, advice: str | None = None) -> NonDeterminism:
        """Return it as an error of the model's author. Its facts: `message`, `field`, `difference`."""
        return NonDeterminism(
            f"run again, it doesn't say the same: {self}",
            participant=self.member,
            at=self.first.at,
            advice=advice,
            message=self.first.number,
            field=None if self.field is None else self.field.path,
            difference=self,
        )


def compared(member: str, then: Utterance | None, now: Utterance | None) -> RetoldDifference | None:
    """Return what differs between what a member said then and what it says now; None, if nothing does."""
    if then == now:
        return None
    if then is None or now is None or then.verb != now.verb:
        return RetoldDifference(member, then, now)
    found = [
        FieldDifference(name, a, b)
        for name, a, b in (("topic", then.topic, now.topic), ("at", then.at, now.at))
        if a != b and (name != "at" or then.verb == SENDS)
    ]
    details = dict(now.details)
    found += [FieldDifference(name, a, details.get(name)) for name, a in then.details if a != details.get(name)]
    if then.payload != now.payload:
        found += field_differences(then.payload, now.payload)
    return RetoldDifference(member, then, now, tuple(found))


def _field_text(field: FieldDifference) -> str:
    if field.path in _TIMES and isinstance(field.a, int) and isinstance(field.b, int):
        return f"{field.path}: {_detail_text(field.path, field.a)} → {_detail_text(field.path, field.b)}"
    return str(field)


def _detail_text(name: str, value: Any) -> str:
    if name in _TIMES and isinstance(value, int) and not isinstance(value, bool):
        return "any time" if value >= FOREVER else format_time(value)
    return value[:_HEX_MAX].hex() if isinstance(value, bytes) else printable(str(value))


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
