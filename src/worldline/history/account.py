"""A run as it is told after it is over: all that was sent, in one order, and who took part from when to when."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from msgspec import DecodeError, Struct, json

from worldline.history.observer import LOG, META
from worldline.model.lifecycle import FAULT_KINDS
from worldline.model.text import printable
from worldline.model.time import FOREVER

Fate = tuple[int, str, int, str | None]
"""Arrival, receiver, copy, and the reason if it got lost."""

Sending = tuple[int, str, str, bytes | None, list[Fate], int]
"""When it was sent, by whom, topic, payload, what became of it, and its sender's number for it.

A plain tuple, since there are millions of them. A note is one that concerns no other. Without a payload it is the rest
of one whose beginning wasn't read.
"""


NOTES = {  # What members note and send to no other, by its topic.
    "worldline/log": "logs",
    "worldline/measure": "measures",
    "worldline/meta": "notes an event",
    "worldline/process": "resumes or interrupts a process",
    "worldline/record": "records a value",
    "worldline/setting": "notes the setting",
    "worldline/state": "shows its state",
    "worldline/timer": "sets a timer",
}


class LogLine(Struct):
    """What a note of a line in a log says: the line, and of which kind it is, if it isn't the member's own."""

    text: str = ""
    kind: str = ""


log_line_in = json.Decoder(LogLine).decode


def kind_of_note(topic: str, payload: bytes) -> str:
    """Return what the simulator says that a note is about, one of `FAULT_KINDS`; "" if it says nothing of it."""
    if topic not in (LOG, META):
        return ""
    try:
        kind = log_line_in(payload).kind
    except DecodeError:
        return ""
    return kind if kind in FAULT_KINDS else ""


def named(name: str) -> str:
    """Return how a member is called. What no member does, such as a fault, is done from outside."""
    return printable(name) or "(from outside)"


class Membership(NamedTuple):
    """From when to when a member took part, and the hash of all that it received and sent."""

    began: int
    ended: int | None = None
    chain: str | None = None


@dataclass
class Account:
    """What is told of a run, ordered by the times of sending, the senders' names and their numbers.

    `until` counts once everything is told: what was sent from then on may be missing. If the account isn't complete,
    others than those in `stays` may have come later, but of those who were `planned` all are there.
    """

    sendings: Iterable[Sending]
    stays: Mapping[str, Membership] = field(default_factory=dict)
    planned: Collection[str] = ()
    until: int = FOREVER
    is_complete: bool = True

    def lacks(self, name: str, other: Account) -> bool:
        """Whether a member of another run takes no part in this one, as far as that can be known."""
        if name in self.stays or name in self.planned:
            return False
        return self.is_complete or name in other.planned

    @property
    def ended(self) -> int:
        """When the last one ended; FOREVER, if that isn't known."""
        ends = [stay.ended for stay in self.stays.values() if stay.ended is not None]
        return max(ends) if ends and self.is_complete else FOREVER


# What members do in one of two runs, and what differs in what one of them sent at one moment.
#
# A sender's numbers are no part of an action: one message more would change all that follow. The place of a message
# among those that its sender sent at the same moment is; so another order of the same messages is a difference.
#
# Whom a message reaches isn't the sender's action, where it publishes for all who listen. But where a message that
# both runs sent concerns members in one, others in the other, and none in both, its sender has addressed it
# otherwise.

Content = Sequence[Hashable]


class ActionKind(IntEnum):
    """What a member does, in the order of one moment."""

    BEGINS = 0
    RECEIVES = 1
    SENDS = 2
    ENDS = 3


class MemberAction(NamedTuple):
    """Something that a member does in one of two runs. The first five fields are its place in the member's history."""

    at: int
    act: ActionKind
    sent: int = 0
    peer: str = ""  # Who sent what it receives.
    place: int = 0
    topic: str = ""
    payload: bytes = b""
    to: tuple[str, ...] = ()  # Whom what it sends concerns.
    reordered: bool = False  # The other run has the same at this moment, in another order.
    elsewhere: tuple[Fate, ...] | None = None  # What became of it in the other run; None: it wasn't sent there.

    @property
    def key(self) -> tuple[int, int, int, str, int]:
        return self[:5]


Pair = tuple[MemberAction | None, MemberAction | None]

_ANY, _NOBODY = 0, 1  # Among the names of those whom messages concern: all messages, and those that concern none.


class SendingsAt:
    """What one member sent at one moment of a run, with what finds things in it: there may be many of them."""

    def __init__(self, now: int, sender: str, sendings: list[Sending]) -> None:
        self._sender = sender
        self._arrivals: dict[str, list[tuple[Fate, int]]] = {}
        self.sent: list[MemberAction] = []
        for place, (_, _, topic, payload, fates, _) in enumerate(sendings):
            for fate in fates:
                self._arrivals.setdefault(fate[1], []).append((fate, place))
            to = tuple(sorted({fate[1] for fate in fates}))
            self.sent.append(MemberAction(now, ActionKind.SENDS, now, "", place, topic, payload or b"", to))
        self._alike = _Alike(self.sent, range(len(self.sent)))

    def received(self, receiver: str) -> list[MemberAction]:
        """Return what a receiver receives of it, in the order of arrival."""
        there = [(fate[0], place, fate[2]) for fate, place in self._arrivals.get(receiver, ()) if fate[3] is None]
        return [
            self.sent[number]._replace(at=at, act=ActionKind.RECEIVES, peer=self._sender, place=place)
            for place, (at, number, _) in enumerate(sorted(there))
        ]

    def fates(self, receiver: str, action: MemberAction) -> tuple[Fate, ...] | None:
        """Return what became, at a receiver, of what the other run sent; None, if it wasn't sent here."""
        found = tuple(
            fate
            for fate, place in self._arrivals.get(receiver, ())
            if (self.sent[place].topic, self.sent[place].payload) == (action.topic, action.payload)
        )
        return found if found or self._alike.holds(action) else None


class _Alike:
    """Finds messages that were sent like another: equal messages may concern others, if they are for all."""

    def __init__(self, sent: list[MemberAction], places: Iterable[int]) -> None:
        self._places: dict[tuple[str, bytes], dict[str | int, deque[int]]] = {}
        self._taken: set[int] = set()
        for place in places:
            action = sent[place]
            names = self._places.setdefault((action.topic, action.payload), {})
            for name in (_ANY, *(action.to or (_NOBODY,))):
                names.setdefault(name, deque()).append(place)

    def holds(self, action: MemberAction) -> bool:
        return self._first(action) is not None

    def take(self, action: MemberAction) -> int | None:
        """Return the first place of a message that was sent like this one; it isn't found again."""
        first = self._first(action)
        if first is not None:
            self._taken.add(first)
        return first

    def _first(self, action: MemberAction) -> int | None:
        names = self._places.get((action.topic, action.payload))
        if names is None:
            return None
        wanted = (_NOBODY, *action.to) if action.to else (_ANY,)
        firsts = [self._first_left(names[name]) for name in wanted if name in names]
        return min((place for place in firsts if place is not None), default=None)

    def _first_left(self, places: deque[int]) -> int | None:
        while places and places[0] in self._taken:
            places.popleft()
        return places[0] if places else None


def sent_otherwise(a: SendingsAt, b: SendingsAt) -> Pair:
    """Return the first of a member's messages at a moment that only A holds, and the first that only B holds."""
    contents: list[Hashable] = [(action.topic, action.payload, action.to) for action in a.sent]
    others: list[Hashable] = [(action.topic, action.payload, action.to) for action in b.sent]
    only_a, only_b = _unmatched(contents, others)
    alike = _Alike(b.sent, only_b)
    for place in only_a:
        match = alike.take(a.sent[place])
        if match is not None:
            others[match] = contents[place]
    return _first_unlike(a.sent, b.sent, contents, others)


def received_otherwise(receiver: str, a: SendingsAt, b: SendingsAt) -> Pair:
    """Return the first of these messages that reaches a receiver in A only, and the first that does in B only."""
    ours, theirs = a.received(receiver), b.received(receiver)
    one, other = _first_unlike(
        ours,
        theirs,
        [(action.at, action.topic, action.payload) for action in ours],
        [(action.at, action.topic, action.payload) for action in theirs],
    )
    return (
        None if one is None else one._replace(elsewhere=b.fates(receiver, one)),
        None if other is None else other._replace(elsewhere=a.fates(receiver, other)),
    )


def _first_unlike(ours: list[MemberAction], theirs: list[MemberAction], contents: Content, others: Content) -> Pair:
    """Return the first actions that have no match, or stand in another order."""
    only_a, only_b = _unmatched(contents, others)
    one = ours[only_a[0]] if only_a else None
    other = theirs[only_b[0]] if only_b else None
    alone_a, alone_b = set(only_a), set(only_b)
    common_a = [place for place in range(len(ours)) if place not in alone_a]
    common_b = [place for place in range(len(theirs)) if place not in alone_b]
    for x, y in zip(common_a, common_b, strict=True):
        if contents[x] != others[y]:
            if one is None or ours[x].key < one.key:
                one = ours[x]._replace(reordered=True)
            if other is None or theirs[y].key < other.key:
                other = theirs[y]._replace(reordered=True)
            break
    return one, other


def _unmatched(contents: Content, others: Content) -> tuple[list[int], list[int]]:
    """Return the places of those that the other list doesn't hold, or not as often."""
    spare, wanted = Counter(others), Counter(contents)
    spare.subtract(contents)
    wanted.subtract(others)
    return _last(contents, wanted), _last(others, spare)


def _last(contents: Content, surplus: Counter[Hashable]) -> list[int]:
    """Return the places of as many as are too many, of equal ones the last."""
    places = []
    for place in range(len(contents) - 1, -1, -1):
        if surplus[contents[place]] > 0:
            surplus[contents[place]] -= 1
            places.append(place)
    return places[::-1]
