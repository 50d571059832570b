"""What members say when they are run again, against what they said and were given in a recorded run.

`RecordedPart` compares one member with its part. `Following` does that for all members of a model that is run as a
whole: as long as all say the same, each is given what it was given then. So that is as good as to be fed from the
recording, and needs no payload to be made of what was recorded: in most rooms those are objects, of which a recording
has only what can be read. A participant of a federation can be fed alone (`lock.feeding`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping
from heapq import heappop, heappush
from typing import Any, NamedTuple

from worldline.history.diff.account import NOTES, Account, Fate, Membership
from worldline.history.observer import DOWN, LOG, MEASURE, Observer
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
