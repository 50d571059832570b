"""What a member says when it is run again, against what it said before: the first thing that isn't the same.

A member that is given the same must say the same. So one difference is enough to know that it isn't deterministic, or
isn't the program that it was, and the first one shows where to look.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from worldline.history.account import NOTES, Account, Fate, Membership, Sending
from worldline.history.fields import (
    FieldDifference,
    field_differences,
    payload_text,
    payload_texts,
)
from worldline.history.journal import Entry, Received, Sent
from worldline.history.observer import DOWN, LOG, MEASURE, Observer
from worldline.history.outcome import End
from worldline.model.errors import NonDeterminism
from worldline.model.message import Message
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


# What members say when they are run again, against what they said and were given in a recorded run.
#
# `RecordedPart` compares one member with its part. `Following` does that for all members of a model that is run as a
# whole: as long as all say the same, each is given what it was given then. So that is as good as to be fed from the
# recording, and needs no payload to be made of what was recorded: in most rooms those are objects, of which a recording
# has only what can be read. A participant of a federation can be fed alone (`lock.feeding`).


# What single members said and were given in a recorded run, each in its own order, from one walk over the account.
#
# An account is ordered by the times of sending. A member's own order is another: it may send for a later time before it
# says something else, and what it is given comes by arrival. So things wait here until their turn:
#
# T1. What a member said comes in the order of its numbers, which count what it sends and notes without a gap.
# T2. A message arrives after it was sent. So what arrives at or before the time that the walk has reached is all there.
# T3. Nothing is kept of what is of no interest: others' messages to others.
#
# An account may end before its run did. Then it says how far it goes (`until`), and what comes after that is unknown,
# which isn't the same as nothing.


_ASIDES = (LOG, MEASURE)  # Nothing depends on what is logged or measured.


class SaidThen(NamedTuple):
    """What a member said: a message by its number, or a note, with how many messages came before it; and its fates."""

    at: int
    number: int
    topic: str
    payload: bytes
    fates: list[Fate]

    @property
    def utterance(self) -> Utterance:
        if self.topic in NOTES and not self.fates:
            return Utterance(NOTES[self.topic], self.at, self.number, self.topic, self.payload, (("at", self.at),))
        return Utterance(SENDS, self.at, self.number, self.topic, self.payload)

    @property
    def to(self) -> list[str]:
        """Whom it concerned."""
        return sorted({fate[1] for fate in self.fates})


class RecordedPart:
    """One member's part in a recorded run, and how much of it what the member says now was compared with."""

    __slots__ = ("_arrivals", "_notes", "_parts", "_said", "_taken", "compared", "latest", "name", "sent")

    def __init__(self, name: str, parts: RecordedParts) -> None:
        self.name = name
        self._parts = parts
        self._notes: list[int] = []  # The numbers of its notes: messages are counted without them.
        self._said: dict[int, SaidThen | None] = {}  # By number; None for what isn't compared.
        self._taken = 0
        self._arrivals: list[Message] = []  # A heap.
        self.sent = 0  # How many messages it has sent now,
        self.compared = 0  # and how many of them could be compared.
        self.latest: tuple[int, SaidThen] | None = None  # The number that it gave the last, and what it said then.

    @property
    def stays(self) -> Mapping[str, Membership]:
        """From when to when each member of the run took part."""
        return self._parts.account.stays

    @property
    def stay(self) -> Membership | None:
        """From when to when it took part."""
        return self.stays.get(self.name)

    @property
    def is_known(self) -> bool:
        """Whether all of its part is known, since the run came to its end."""
        return self._parts.account.is_complete

    # --- What it said and was given then ---

    def add(self, number: int, said: SaidThen, is_note: bool, is_kept: bool) -> SaidThen:
        """Take in what it said, by its number among all that it said; return it by its number among messages."""
        if is_note:
            self._notes.append(number)
        # All notes of lower numbers were made by the time of sending, and have been walked over.
        count = number - bisect_left(self._notes, number) if self._notes else number
        numbered = said._replace(number=count)
        if is_kept:
            self._said[number] = None if said.topic in _ASIDES and is_note else numbered
        return numbered

    def give(self, message: Message) -> None:
        """Take in what it was given."""
        heappush(self._arrivals, message)

    def next_said(self) -> SaidThen | None:
        """Take the next thing that it said; None if the account has no more of it."""
        if not self.says_more():
            return None
        self._taken += 1
        return self._said.pop(self._taken - 1)

    def says_more(self) -> bool:
        """Whether there is more that it said."""
        while True:
            while self._taken not in self._said:
                if not self._parts.step():
                    return False
            if self._said[self._taken] is not None:
                return True
            del self._said[self._taken]  # Nothing to be compared.
            self._taken += 1

    def arrivals(self, count: int) -> tuple[list[Message], int]:
        """Take the next messages that it was given, so many at most, and say before when that is all there is.

        FOREVER, if nothing came any more; or as far as anything is known.
        """
        heap, parts = self._arrivals, self._parts
        found: list[Message] = []
        while True:
            while not heap or heap[0].arrival > parts.reached:
                if not parts.step():
                    break
            until = parts.account.until
            if parts.is_over and not (heap and heap[0].arrival <= until):
                return found, until if self.is_known else until + 1
            if len(found) == count:
                return found, heap[0].arrival
            found.append(heappop(heap))

    # --- What it says now ---

    def compare_sent(self, at: int, topic: str, payload: bytes) -> SaidThen | None:
        """Compare a message with what it said next; return that, if it is known."""
        then = self.compare(SaidThen(at, self.sent, topic, payload, _TO_ANYBODY))
        self.sent += 1
        return then

    def compare(self, now: SaidThen) -> SaidThen | None:
        """Compare what it says with what it said next; return that, if it is known."""
        then = self.next_said()
        if then is None and not self.is_known:
            return None
        self.compared += 1
        if then is None or then[:4] != now[:4]:
            self.differ(None if then is None else then.utterance, now.utterance)
        return then

    def compare_end(self, verb: str, at: int, chain: bytes, now: int) -> None:
        """Compare how it ends, after the last thing that it says."""
        stay = self.stay
        if stay is None or not self.is_known:
            return
        if (said := self.next_said()) is not None:
            self.differ(said.utterance, None)
        elif stay.ended != at:
            self.differ(self.saying(verb, now, now=stay.ended), self.saying(verb, now, now=at))
        elif stay.chain is not None and stay.chain != chain.hex():
            then, digest = stay.chain, chain.hex()
            self.differ(self.saying(_RECEIVES, now, digest=then), self.saying(_RECEIVES, now, digest=digest))

    def saying(self, verb: str, at: int, /, **details: Any) -> Utterance:
        """Return something that it says now, or said at this place."""
        return Utterance(verb, at, self.sent, details=tuple(details.items()))

    def differ(self, then: Utterance | None, now: Utterance | None) -> None:
        """Tell what differs, if anything does."""
        difference = compared(self.name, then, now)
        if difference is not None:
            self._parts.differs(difference)


_TO_ANYBODY: list[Fate] = [(0, "", 0, None)]  # Makes a message of it, whatever its topic is called.
_RECEIVES = "receives what it is given"


class RecordedParts:
    """The parts of members in a recorded run: of these, or of all.

    `differs` is called with every difference, in the middle of what the member does, if the room tells things then.
    What it raises ends the run.
    """

    def __init__(
        self, account: Account, differs: Callable[[RetoldDifference], None], members: Collection[str] | None = None
    ) -> None:
        self.account = account
        self.differs = differs
        self._sendings = iter(account.sendings)
        self._wanted = None if members is None else frozenset(members)
        self._parts: dict[str, RecordedPart] = {}
        self.reached = -1  # How far the walk over the account has come,
        self.is_over = False  # and whether that is all of it.

    def of(self, name: str) -> RecordedPart:
        """Return the part of a member."""
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = RecordedPart(name, self)
        return part

    def step(self) -> bool:
        """Walk on by one sending; return whether there was one."""
        sending = next(self._sendings, None)
        if sending is None:
            self.reached, self.is_over = FOREVER, True
            return False
        at, sender, topic, payload, fates, number = sending
        self.reached = at
        wanted = self._wanted
        said = SaidThen(at, 0, topic, payload or b"", fates)
        is_kept = wanted is None or sender in wanted
        said = self.of(sender).add(number, said, topic in NOTES and not fates, is_kept)
        if wanted is not None:
            for arrival, receiver, copy, lost in fates:
                # What got lost while it was down still came: a crash may have waited for just that message.
                if receiver in wanted and lost in (None, DOWN):
                    self.of(receiver).give(Message(arrival, at, sender, said.number, copy, topic, said.payload))
        return True


class Following(Observer):
    """Compares everything that is told of a run with what was recorded."""

    def __init__(self, parts: RecordedParts) -> None:
        self._parts = parts
        self.now = 0

    def began(self, who: str, at: int) -> None:
        part = self._parts.of(who)
        if part.stay is None and part.is_known:
            part.differ(None, Utterance("begins", at))

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        part = self._parts.of(who)
        then = part.compare_sent(at, topic, payload)
        part.latest = None if then is None else (number, then)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        part = self._parts.of(sender)
        if part.latest is not None and part.latest[0] == number and receiver not in part.latest[1].to:
            then = part.latest[1]
            before, now = (
                then.utterance._replace(details=(("to", ", ".join(names)),))
                for names in (then.to or ["no participant"], [receiver])
            )
            part.differ(before, now)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if payload is not None and topic not in _ASIDES:
            part = self._parts.of(who)
            part.compare(SaidThen(at, part.sent, topic, payload, []))

    def ended(self, who: str, at: int, chain: bytes) -> None:
        self._parts.of(who).compare_end("ends", at, chain, min(at, self.now))

    def passed(self, time: int) -> None:
        self.now = time
