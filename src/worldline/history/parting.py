"""Finds where two histories part: for each member, the first thing that isn't the same in both.

A member's history is what it received, in the order of arrivals, and what it sent and noted; at the same moment it
receives before it sends. (Also that it began, and that it ended.) Two histories of a member are sorted lists, so they
part at the least deed that only one of them holds, whatever else differs later. That is why one walk over both runs
finds it, in the order in which things were sent, without putting anybody's history together:

D1. What both runs hold alike can be passed over, whatever it is and in whatever pieces.
D2. A message arrives after it was sent. So once both the first deed that only A holds and the first that only B holds
    lie before what is being sent now, that member is settled; when all are, the rest needn't be read.

A sender's numbers are no part of a deed: one message more would change all that follow. The place of a message among
those that its sender sent at the same moment is; so another order of the same messages is a difference.

Whom a message reaches isn't the sender's deed, where it publishes for anybody who listens. But where a message that
both runs sent concerns members in one, others in the other, and nobody in both, its sender has addressed it otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from worldline.history.account import Account, Fate, Sending, Stay
from worldline.model.time import FOREVER


class Act(IntEnum):
    """What a member does, in the order of one moment."""

    BEGINS = 0
    RECEIVES = 1
    SENDS = 2
    ENDS = 3


class Deed(NamedTuple):
    """Something that a member does in one of two runs. The first five fields are its place in the member's history."""

    at: int
    act: Act
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


@dataclass
class Parting:
    """Where a member's two histories part: the first deed that only A holds, and the first that only B holds."""

    member: str
    a: Deed | None = None
    b: Deed | None = None

    @property
    def first(self) -> Deed:
        """The earlier of the two: up to here, both histories are the same."""
        deeds = [deed for deed in (self.a, self.b) if deed is not None]
        return min(deeds, key=lambda deed: deed.key)

    @property
    def at(self) -> int:
        return self.first.at

    @property
    def is_only_in_a(self) -> bool:
        return self.first is self.a and (self.b is None or self.b.key != self.a.key)

    @property
    def is_only_in_b(self) -> bool:
        return self.first is self.b

    def note(self, a: Deed | None, b: Deed | None) -> None:
        """Take in what only one of the runs holds, if it comes before what is known."""
        if a is not None and (self.a is None or a.key < self.a.key):
            self.a = a
        if b is not None and (self.b is None or b.key < self.b.key):
            self.b = b

    def is_settled(self, now: int) -> bool:
        """Whether nothing that is sent from now on comes before what is known (D2)."""
        return self.a is not None and self.b is not None and self.a.at <= now and self.b.at <= now


@dataclass
class Partings:
    """Where the members of two runs part, by name; who takes part in one run only is among them."""

    members: list[str] = field(default_factory=list)  # Those of both runs.
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)
    of: dict[str, Parting] = field(default_factory=dict)
    sends_part: dict[str, int] = field(default_factory=dict)  # From when on a member sends otherwise.
    unseen: list[str] = field(default_factory=list)  # The hashes of their histories differ, and nothing that was told.
    lost_otherwise: int = 0  # Messages that were lost otherwise, which nobody could notice.
    until: int = FOREVER  # How far both tell everything.
    ended: tuple[int, int] = (FOREVER, FOREVER)

    @property
    def is_same(self) -> bool:
        return not (self.of or self.unseen or self.lost_otherwise)

    def parted(self) -> list[Parting]:
        """Return the partings of those who are in both runs, the earliest first."""
        both = [self.of[name] for name in self.members if name in self.of]
        return sorted(both, key=lambda parting: (*parting.first.key[:2], parting.member))


def part(a: Account, b: Account) -> Partings:
    """Return where the members of two runs part."""
    walk = _Walk(a, b)
    for group in _unlike(a, b):
        walk.look_at(*group)
        if walk.is_settled:
            break
    return walk.finish()


Content = Sequence[Hashable]
Pair = tuple[Deed | None, Deed | None]


class _Walk:
    """One walk over two runs at once."""

    def __init__(self, a: Account, b: Account) -> None:
        self._a, self._b = a, b
        self._settled: set[str] = set()
        self._common = [name for name in a.stays if name in b.stays]
        self.found = Partings(
            only_a=sorted(name for name in a.stays if b.lacks(name, a)),
            only_b=sorted(name for name in b.stays if a.lacks(name, b)),
        )
        for name in self.found.only_a:
            self.found.of[name] = Parting(name, a=Deed(a.stays[name].began, Act.BEGINS))
        for name in self.found.only_b:
            self.found.of[name] = Parting(name, b=Deed(b.stays[name].began, Act.BEGINS))
        self._alone = frozenset(self.found.of)

    @property
    def is_settled(self) -> bool:
        """Whether nobody's parting can change any more."""
        if len(self._settled) < len(self._common) or not (self._a.is_complete and self._b.is_complete):
            return False
        return all(name in self._settled or name in self._alone for name in self.found.of)

    def finish(self) -> Partings:
        """Add what isn't known before the end."""
        a, b, found = self._a, self._b, self.found
        found.until = min(a.until, b.until)
        found.ended = a.ended, b.ended
        if a.is_complete and b.is_complete:
            for name in self._common:
                self._compare_stays(name, a.stays[name], b.stays[name])
        names = sorted({**a.stays, **b.stays, **found.of})
        found.members = [name for name in names if name not in self._alone]
        return found

    def _compare_stays(self, name: str, a: Stay, b: Stay) -> None:
        if a.began != b.began:
            self._note(name, Deed(a.began, Act.BEGINS), Deed(b.began, Act.BEGINS))
        if a.ended != b.ended:
            deeds = [None if end is None else Deed(end, Act.ENDS) for end in (a.ended, b.ended)]
            self._note(name, deeds[0], deeds[1])
        if a.chain != b.chain and name not in self.found.of:
            self.found.unseen.append(name)

    def look_at(self, now: int, sender: str, a: list[Sending], b: list[Sending]) -> None:
        """Note what differs in what one member sent at one moment."""
        receivers = dict.fromkeys(fate[1] for sending in (*a, *b) for fate in sending[4])
        pending = [name for name in receivers if not self._is_past(name, now)]
        if sender in self.found.sends_part and not pending and self._is_past(sender, now):
            return
        noticed = self._note(sender, *_sent_otherwise(now, a, b))
        if noticed:
            self.found.sends_part.setdefault(sender, now)
        for receiver in pending:
            noticed = self._note(receiver, *_received_otherwise(receiver, now, sender, a, b)) or noticed
        if not noticed and len(pending) == len(receivers):
            self.found.lost_otherwise += 1

    def _is_past(self, name: str, now: int) -> bool:
        """Whether nothing that is sent from now on can change where a member parts."""
        if name in self._settled or name in self._alone:
            return True
        parting = self.found.of.get(name)
        if parting is None or not parting.is_settled(now):
            return False
        self._settled.add(name)
        return True

    def _note(self, member: str, a: Deed | None, b: Deed | None) -> bool:
        """Note what only one of the runs holds; return whether there is anything."""
        if a is None and b is None:
            return False
        if member not in self._alone:
            self.found.of.setdefault(member, Parting(member)).note(a, b)
        return True


def _unlike(a: Account, b: Account) -> Iterator[tuple[int, str, list[Sending], list[Sending]]]:
    """Yield what one member sent at one moment, wherever that isn't the same in both runs."""
    left, right = iter(a.sendings), iter(b.sendings)
    x, y = next(left, None), next(right, None)
    while True:
        while x is not None and y is not None and (x == y or x[:5] == y[:5]):  # D1; their numbers don't count.
            x, y = next(left, None), next(right, None)
        if x is None and y is None:
            return
        key = min(each[:2] for each in (x, y) if each is not None)
        if (x is None and key[0] >= a.until) or (y is None and key[0] >= b.until):
            return  # One of them tells no more.
        ours, theirs = list[Sending](), list[Sending]()
        while x is not None and x[:2] == key:
            ours.append(x)
            x = next(left, None)
        while y is not None and y[:2] == key:
            theirs.append(y)
            y = next(right, None)
        yield *key, ours, theirs


def _sent_otherwise(now: int, a: list[Sending], b: list[Sending]) -> Pair:
    """Return the first of a member's messages at a moment that only A holds, and the first that only B holds."""
    ours, theirs = _sent(now, a), _sent(now, b)
    contents: list[Hashable] = [(deed.topic, deed.payload, deed.to) for deed in ours]
    others: list[Hashable] = [(deed.topic, deed.payload, deed.to) for deed in theirs]
    only_a, only_b = _unmatched(contents, others)
    for place in only_a:  # What was sent alike may concern others, if it is for anybody who listens.
        alike = (each for each in only_b if _is_sent_alike(ours[place], theirs[each]))
        match = next(alike, None)
        if match is not None:
            others[match] = contents[place]
            only_b.remove(match)
    return _first_unlike(ours, theirs, contents, others)


def _sent(now: int, sendings: list[Sending]) -> list[Deed]:
    return [
        Deed(now, Act.SENDS, now, "", place, topic, payload or b"", tuple(sorted({fate[1] for fate in fates})))
        for place, (_, _, topic, payload, fates, _) in enumerate(sendings)
    ]


def _is_sent_alike(one: Deed, other: Deed) -> bool:
    if (one.topic, one.payload) != (other.topic, other.payload):
        return False
    return not one.to or not other.to or any(name in other.to for name in one.to)


def _received_otherwise(receiver: str, now: int, sender: str, a: list[Sending], b: list[Sending]) -> Pair:
    """Return the first of these messages that reaches a receiver in A only, and the first that does in B only."""
    ours, theirs = _received(receiver, now, sender, a), _received(receiver, now, sender, b)
    one, other = _first_unlike(
        ours,
        theirs,
        [(deed.at, deed.topic, deed.payload) for deed in ours],
        [(deed.at, deed.topic, deed.payload) for deed in theirs],
    )
    return (
        None if one is None else one._replace(elsewhere=_elsewhere(one, receiver, b)),
        None if other is None else other._replace(elsewhere=_elsewhere(other, receiver, a)),
    )


def _received(receiver: str, now: int, sender: str, sendings: list[Sending]) -> list[Deed]:
    arrivals = sorted(
        (at, number, copy)
        for number, sending in enumerate(sendings)
        for at, name, copy, lost in sending[4]
        if name == receiver and lost is None
    )
    deeds = []
    for place, (at, number, _) in enumerate(arrivals):
        _, _, topic, payload, fates, _ = sendings[number]
        to = tuple(sorted({fate[1] for fate in fates}))
        deeds.append(Deed(at, Act.RECEIVES, now, sender, place, topic, payload or b"", to))
    return deeds


def _elsewhere(deed: Deed, receiver: str, sendings: list[Sending]) -> tuple[Fate, ...] | None:
    """Return what became of a message at a receiver in the other run; None, if it wasn't sent there."""
    sent = _sent(deed.sent, sendings)
    alike = [sending for sending, other in zip(sendings, sent, strict=True) if _is_sent_alike(deed, other)]
    if not alike:
        return None
    return tuple(fate for sending in alike for fate in sending[4] if fate[1] == receiver)


def _first_unlike(ours: list[Deed], theirs: list[Deed], contents: Content, others: Content) -> Pair:
    """Return the first deeds that have no match, or stand in another order."""
    only_a, only_b = _unmatched(contents, others)
    one = ours[only_a[0]] if only_a else None
    other = theirs[only_b[0]] if only_b else None
    common_a = [place for place in range(len(ours)) if place not in only_a]
    common_b = [place for place in range(len(theirs)) if place not in only_b]
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
