"""Follows a run of a whole model against a recorded one: what its members say now must be what they said then.

As long as nobody says anything else, everybody is given what it was given then. So for each member this is as good as
to be fed from the recording, and it needs no payload to be made of what was recorded: in most rooms those are objects,
of which a recording has only what can be read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection
from heapq import heappop, heappush
from typing import Any, NamedTuple

from worldline.history.diff.account import Account, Fate, Membership
from worldline.history.diff.steps import NOTES
from worldline.history.observer import LOG, Observer
from worldline.history.replay.retelling import SENDS, RetoldDifference, Utterance, compared
from worldline.model.message import Message
from worldline.model.time import FOREVER

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


class _MemberPart:
    """What is known so far of one member."""

    __slots__ = ("arrivals", "notes", "said", "taken")

    def __init__(self) -> None:
        self.notes: list[int] = []  # The numbers of its notes: messages are counted without them.
        self.said: dict[int, SaidThen | None] = {}  # By number; None for what isn't compared.
        self.taken = 0
        self.arrivals: list[Message] = []  # A heap.


class RecordedParts:
    """The parts of members in a run: of these, or of all."""

    def __init__(self, account: Account, members: Collection[str] | None = None) -> None:
        self._account = account
        self._sendings = iter(account.sendings)
        self._wanted = None if members is None else frozenset(members)
        self._parts: dict[str, _MemberPart] = {}
        self._reached = -1
        self.is_over = False  # Whether all of the account has been walked over.

    def stay(self, name: str) -> Membership | None:
        """Return from when to when a member took part."""
        return self._account.stays.get(name)

    @property
    def stays(self) -> dict[str, Membership]:
        return dict(self._account.stays)

    @property
    def is_complete(self) -> bool:
        return self._account.is_complete

    @property
    def until(self) -> int:
        """How far everything is known: FOREVER for a run that came to its end. Certain once the walk `is_over`."""
        return self._account.until

    def next_said(self, name: str) -> SaidThen | None:
        """Take the next thing that a member said; None if the account has no more of it."""
        if not self.says_more(name):
            return None
        part = self._parts[name]
        part.taken += 1
        return part.said.pop(part.taken - 1)

    def says_more(self, name: str) -> bool:
        """Whether there is more that a member said."""
        part = self._part(name)
        while True:
            while part.taken not in part.said:
                if not self._step():
                    return False
            if part.said[part.taken] is not None:
                return True
            del part.said[part.taken]  # Nothing to be compared.
            part.taken += 1

    def arrivals(self, name: str, count: int) -> tuple[list[Message], int]:
        """Take the next messages that a member was given, so many at most, and say before when that is all there is.

        FOREVER, if nothing came any more; or as far as anything is known.
        """
        heap = self._part(name).arrivals
        found: list[Message] = []
        while True:
            while not heap or heap[0].arrival > self._reached:
                if not self._step():
                    break
            if self.is_over and not (heap and heap[0].arrival <= self.until):
                return found, self.until if self.is_complete else self.until + 1
            if len(found) == count:
                return found, heap[0].arrival
            found.append(heappop(heap))

    def _part(self, name: str) -> _MemberPart:
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = _MemberPart()
        return part

    def _step(self) -> bool:
        """Walk on by one sending; return whether there was one."""
        sending = next(self._sendings, None)
        if sending is None:
            self._reached, self.is_over = FOREVER, True
            return False
        at, sender, topic, payload, fates, number = sending
        self._reached = at
        part = self._parts.get(sender) or self._part(sender)
        wanted = self._wanted
        is_note = topic in NOTES and not fates
        if is_note:
            part.notes.append(number)
        # All notes of lower numbers were made by the time of sending, and have been walked over.
        count = number - bisect_left(part.notes, number) if part.notes else number
        if wanted is None or sender in wanted:
            said = SaidThen(at, count, topic, payload or b"", fates)
            part.said[number] = None if topic == LOG and is_note else said
        if wanted is not None:
            for arrival, receiver, copy, lost in fates:
                if receiver in wanted and lost is None:
                    message = Message(arrival, at, sender, count, copy, topic, payload or b"")
                    heappush(self._part(receiver).arrivals, message)
        return True


_TO_ANYBODY: list[Fate] = [(0, "", 0, None)]  # Makes a message of it, whatever its topic is called.
_UNKNOWN = SaidThen(0, 0, "", b"", [])


class Following(Observer):
    """Compares everything that is told with what was recorded; `differs` is called with every difference.

    What it raises ends the run. It is called in the middle of what the member does, if the room tells things then.
    """

    def __init__(self, parts: RecordedParts, differs: Callable[[RetoldDifference], None]) -> None:
        self._parts = parts
        self._differs = differs
        self._latest: dict[str, tuple[int, SaidThen]] = {}  # Each member's last message, by its number.
        self.counts: Counter[str] = Counter()  # How much each has sent.
        self.now = 0

    def began(self, who: str, at: int) -> None:
        if self._parts.stay(who) is None and self._parts.is_complete:
            self._differ(who, None, Utterance("begins", at))

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        then = self._compare(who, SaidThen(at, self.counts[who], topic, payload, _TO_ANYBODY))
        self._latest[who] = number, then
        self.counts[who] += 1

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        latest, then = self._latest.get(sender, (None, _UNKNOWN))
        if latest == number and then is not _UNKNOWN and receiver not in then.to:
            before, now = (
                then.utterance._replace(details=(("to", ", ".join(names)),))
                for names in (then.to or ["nobody"], [receiver])
            )
            self._differ(sender, before, now)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if payload is not None and topic != LOG:  # Nothing depends on what is logged.
            self._compare(who, SaidThen(at, self.counts[who], topic, payload, []))

    def ended(self, who: str, at: int, chain: bytes) -> None:
        stay = self._parts.stay(who)
        if stay is None or not self._parts.is_complete:
            return
        if (said := self._parts.next_said(who)) is not None:
            self._differ(who, said.utterance, None)
        elif stay.ended != at:
            self._differ(who, self._end(who, at, "ends", now=stay.ended), self._end(who, at, "ends", now=at))
        elif stay.chain != chain.hex():
            verb = "receives what it is given"
            self._differ(who, self._end(who, at, verb, digest=stay.chain), self._end(who, at, verb, digest=chain.hex()))

    def passed(self, time: int) -> None:
        self.now = time

    def _end(self, who: str, at: int, verb: str, **details: Any) -> Utterance:
        return Utterance(verb, min(at, self.now), self.counts[who], details=tuple(details.items()))

    def _compare(self, who: str, now: SaidThen) -> SaidThen:
        """Compare what a member says with what it said next, and return that."""
        then = self._parts.next_said(who)
        if then is None and not self._parts.is_complete:  # What it said then isn't known.
            return _UNKNOWN
        if then is None or then[:4] != now[:4]:
            self._differ(who, None if then is None else then.utterance, now.utterance)
        return then or _UNKNOWN

    def _differ(self, who: str, then: Utterance | None, now: Utterance | None) -> None:
        difference = compared(who, then, now)
        if difference is not None:
            self._differs(difference)
