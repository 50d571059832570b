"""What members do in one of two runs, and what differs in what one of them sent at one moment.

A sender's numbers are no part of a deed: one message more would change all that follow. The place of a message among
those that its sender sent at the same moment is; so another order of the same messages is a difference.

Whom a message reaches isn't the sender's deed, where it publishes for anybody who listens. But where a message that
both runs sent concerns members in one, others in the other, and nobody in both, its sender has addressed it otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from enum import IntEnum
from typing import NamedTuple

from worldline.history.account import Fate, Sending

Content = Sequence[Hashable]


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


Pair = tuple[Deed | None, Deed | None]


def sent_otherwise(now: int, a: list[Sending], b: list[Sending]) -> Pair:
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


def received_otherwise(receiver: str, now: int, sender: str, a: list[Sending], b: list[Sending]) -> Pair:
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
