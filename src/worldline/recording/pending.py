"""What isn't final yet: puts what an observer is told into the one order in which it is recorded.

Pure. Calls come in an order that luck decides; what is taken from here is ordered by content alone: publications by
(send time, sender, sequence number), and the fates of each by (arrival, receiver, copy). What a sender sends and notes
is numbered in the order in which it is told, which is that in which it happened (H1 in `history.observer`).

Invariants
----------
P1. A publication is taken once nobody can act at its expiry or before (expiry < floor), and not before every one that
    precedes it in the order was taken.
P2. Nothing that comes later precedes what was taken. Why: what was taken expired before the floor, a message doesn't
    expire before it is sent, and nobody sends before the floor any more.

So the concatenation of all that is ever taken is the sorted list of all publications, however the calls interleave
and wherever the floor stood when somebody asked. Ordering by expiry instead would keep less, since a message that is
long under way delays all that were sent after it; but an expiry is only a bound, and may itself depend on luck.

Calls that contradict P1 or P2 are bugs of the caller and raise: a file that silently depended on luck would be worse.
"""

from __future__ import annotations

from worldline.history.account import Fate
from worldline.history.observer import OUTSIDE, UNDER_WAY
from worldline.model.errors import InternalError
from worldline.model.time import FOREVER, format_time

_WEIGHT_OF_A_FATE = 64  # About what a record takes besides its payload.


class Publication:
    """A message that was sent, and what became of it at everybody whom it concerned; or a note, which has no number.

    `sequence` counts what its sender has sent and noted; `number` is what the sender calls it.
    """

    __slots__ = ("_bound", "_fates", "expiry", "number", "payload", "sender", "sent", "sequence", "topic")

    def __init__(
        self, sender: str, sequence: int, topic: str, sent: int, payload: bytes, expiry: int, number: int | None
    ) -> None:
        self.sender = sender
        self.sequence = sequence
        self.number = number
        self.topic = topic
        self.sent = sent
        self.payload = payload
        self.expiry = self._bound = expiry
        self._fates: dict[tuple[int, str, int], str | None] = {}

    def add(self, arrival: int, receiver: str, copy: int, lost: str | None) -> None:
        """Note that it reaches a receiver, or gets lost on the way; saying the same twice changes nothing."""
        self._fates[arrival, receiver, copy] = lost

    def last(self, expiry: int) -> None:
        """Put off its expiry: until then or what was said before, or FOREVER until another is said."""
        if expiry < FOREVER:
            self._bound = max(expiry, self._bound)
        self.expiry = self._bound if expiry < FOREVER else FOREVER

    def take_back(self, closures: dict[tuple[str, str], int]) -> None:
        """Forget what would have reached a receiver after it had closed the topic."""
        topic = self.topic
        self._fates = {
            key: lost
            for key, lost in self._fates.items()
            if (until := closures.get((key[1], topic))) is None or key[0] < until
        }

    def break_off(self, end: int) -> None:
        """Let what would arrive at the end or later be under way for ever."""
        if self.expiry >= end:
            for key, lost in self._fates.items():
                if key[0] >= end and lost is None:
                    self._fates[key] = UNDER_WAY

    def fates(self) -> list[Fate]:
        """Return what became of it, ordered by arrival, receiver and copy."""
        return [(*key, lost) for key, lost in sorted(self._fates.items())]


class Pending:
    """The publications of a run that aren't final.

    Looking for what is final costs a sort, so it is done only when there are about as many bytes as are `worth_a_look`.
    """

    def __init__(self, worth_a_look: int = 64 * 1024) -> None:
        self._worth_a_look = worth_a_look
        self._floor = 0
        self._open: dict[tuple[str, int], Publication] = {}  # By the sender's own numbers.
        self._told: dict[str, int] = {}  # How much each sender has sent and noted.
        self._order: list[tuple[int, str, int, Publication]] = []  # Sorted when something is taken.
        self._closures: dict[tuple[str, str], int] = {}  # (receiver, topic) → until, of those not yet carried out.
        self._weight = 0
        self._enough = worth_a_look

    def __len__(self) -> int:
        return len(self._order)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int) -> None:
        if (who, number) in self._open:
            raise InternalError(f"message {number} was recorded twice", participant=who, at=at)
        self._open[who, number] = self._add(who, topic, at, payload, until, number)

    def noted(self, who: str, topic: str, at: int, payload: bytes) -> None:
        """Take in what nobody is sent; it is final when its time has passed."""
        self._add(who, topic, at, payload, at)

    def _add(
        self, who: str, topic: str, at: int, payload: bytes, expiry: int, number: int | None = None
    ) -> Publication:
        sequence = self._told.get(who, 0)
        if at < self._floor:
            raise InternalError(
                f"message {sequence} was sent though nobody acts before {format_time(self._floor)} any more",
                participant=who,
                at=at,
            )
        self._told[who] = sequence + 1
        publication = Publication(who, sequence, topic, at, payload, expiry, number)
        self._order.append((at, who, sequence, publication))
        self._weight += len(payload) + _WEIGHT_OF_A_FATE
        return publication

    def arrives(self, sender: str, number: int, receiver: str, arrival: int, copy: int, lost: str | None) -> None:
        publication = self._open.get((sender, number))
        at_once = sender == OUTSIDE  # What comes from there may take no time (H2).
        if publication is None or not publication.sent < arrival + at_once <= publication.expiry + at_once:
            raise self._bad_arrival(publication, sender, number, receiver, arrival)
        # Only a closure of this very topic and receiver matters: it holds for what was said before, not for this.
        if self._closures and (receiver, publication.topic) in self._closures:
            self._carry_out_closures()
        publication.add(arrival, receiver, copy, lost)
        self._weight += _WEIGHT_OF_A_FATE

    def lasts(self, sender: str, number: int, expiry: int) -> None:
        publication = self._open.get((sender, number))
        if publication is not None:
            publication.last(expiry)
        elif expiry >= self._floor:  # Below the floor it says nothing new of a message that is final.
            raise InternalError(
                f"message {number} lasts until {format_time(expiry)} though it is final or was never sent",
                participant=sender,
            )

    def closed(self, receiver: str, topic: str, until: int) -> None:
        # Carried out later, for many at a time: at the end of a run everybody closes everything, and to go through all
        # that is pending for each of them would take its square.
        earlier = self._closures.get((receiver, topic), FOREVER)
        self._closures[receiver, topic] = min(until, earlier)

    def advance(self, floor: int) -> list[Publication]:
        """Learn that nobody acts before the floor any more; return what is final, if there is enough to be worth it.

        The floor is remembered, so nothing is lost by not looking each time.
        """
        self._floor = max(floor, self._floor)
        return self.take() if self._weight >= self._enough else []

    def take(self) -> list[Publication]:
        """Remove and return all that is final, in order (P1)."""
        self._carry_out_closures()
        floor, order = self._floor, self._order
        order.sort()  # Never compares publications: no two share (send time, sender, sequence number).
        count = next((place for place, entry in enumerate(order) if entry[3].expiry >= floor), len(order))
        return self._remove(count)

    def finish(self, end: int) -> list[Publication]:
        """Remove and return everything, in order: the run was over at `end`. Whatever comes after this raises."""
        self._carry_out_closures()
        self._order.sort()
        for entry in self._order:
            if entry[3].expiry >= self._floor:  # Otherwise it is final, whatever the end is.
                entry[3].break_off(end)
        self._floor = FOREVER
        return self._remove(len(self._order))

    def complete_until(self) -> int:
        """Return a time before which all that was sent has been taken."""
        return min(self._floor, *(entry[0] for entry in self._order), FOREVER)

    def _remove(self, count: int) -> list[Publication]:
        final = [entry[3] for entry in self._order[:count]]
        del self._order[:count]
        for publication in final:
            if publication.number is not None:
                del self._open[publication.sender, publication.number]
        self._weight = sum(len(entry[3].payload) + _WEIGHT_OF_A_FATE for entry in self._order)
        # Twice what stayed: so looking costs a fixed share of recording, however much is long under way.
        self._enough = max(self._worth_a_look, 2 * self._weight)
        return final

    def _carry_out_closures(self) -> None:
        if self._closures:
            for entry in self._order:
                entry[3].take_back(self._closures)
            self._closures.clear()

    def _bad_arrival(
        self, publication: Publication | None, sender: str, number: int, receiver: str, arrival: int
    ) -> InternalError:
        if publication is None:
            problem = f"message {number} of {sender} reaches it though that one is final or was never sent"
        else:
            problem = (
                f"message {number} of {sender}, sent at {format_time(publication.sent)}, can't reach it then"
                f" if it expires at {format_time(publication.expiry)}"
            )
        return InternalError(problem, participant=receiver, at=arrival)
