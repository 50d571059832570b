"""What isn't final yet: puts what an observer is told into the one order in which it is recorded.

Pure. Calls come in an order that luck decides; what is taken from here is ordered by content alone: publications by
(send time, sender, sequence number), and the fates of each by (arrival, receiver, copy). What a sender sends and notes
is numbered in the order in which it is told, which is that in which it happened (H1 in `history.observer`).

Invariants
----------
P1. A publication is taken once none can act at its expiry or before (expiry < floor), and not before every one that
    precedes it in the order was taken.
P2. Nothing that comes later precedes what was taken. Why: what was taken expired before the floor, a message doesn't
    expire before it is sent, and nothing is sent before the floor any more.

So the concatenation of all that is ever taken is the sorted list of all publications, however the calls interleave
and wherever the floor stood when it was asked for. Ordering by expiry instead would keep less, since a message that is
long under way delays all that were sent after it; but an expiry is only a bound, and may itself depend on luck.

Calls that contradict P1 or P2 are bugs of the caller and raise: a file that silently depended on luck would be worse.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from msgspec import msgpack

from worldline.history.account import Fate
from worldline.history.observer import OUTSIDE, UNDER_WAY, Observer
from worldline.model.errors import InternalError
from worldline.model.time import FOREVER, format_time
from worldline.recording.facts import Count

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

_WEIGHT_OF_A_FATE = 64  # About what a record takes besides its payload.


class Publication:
    """A message that was sent, and what became of it at all whom it concerned; or a note, which has no number.

    `sequence` counts what its sender has sent and noted; `number` is what the sender calls it.
    """

    __slots__ = ("_bound", "_fates", "expiry", "number", "payload", "sender", "sent", "sequence", "topic")

    sender: str
    sequence: int
    number: int | None
    topic: str
    sent: int
    payload: bytes
    expiry: int
    _bound: int
    _fates: list[Fate] | None

    def __lt__(self, other: Publication) -> bool:
        return self.precedes(other)

    def precedes(self, other: Publication) -> bool:
        """Whether it is recorded before the other one."""
        if self.sent != other.sent:
            return self.sent < other.sent
        return self.sequence < other.sequence if self.sender == other.sender else self.sender < other.sender

    def last(self, expiry: int) -> None:
        """Put off its expiry: until then or what was said before, or FOREVER until another is said."""
        if expiry < FOREVER:
            self._bound = max(expiry, self._bound)
        self.expiry = self._bound if expiry < FOREVER else FOREVER

    def add(self, arrival: int, receiver: str, copy: int, lost: str | None) -> None:
        """Note that it reaches a receiver, or gets lost on the way; what was said of the same before counts no more."""
        fate = (arrival, receiver, copy, lost)
        if self._fates is None:
            self._fates = [fate]
        else:
            self._fates.append(fate)

    def take_back(self, closures: dict[tuple[str, str], int]) -> None:
        """Forget what would have reached a receiver after it had closed the topic."""
        if self._fates is not None:
            topic = self.topic
            self._fates = [
                fate for fate in self._fates if (until := closures.get((fate[1], topic))) is None or fate[0] < until
            ]

    def break_off(self, end: int) -> None:
        """Let what would arrive at the end or later be under way for ever."""
        if self.expiry >= end and self._fates is not None:
            self._fates = [
                (arrival, receiver, copy, UNDER_WAY if arrival >= end and lost is None else lost)
                for arrival, receiver, copy, lost in self._fates
            ]

    def fates(self) -> list[Fate]:
        """Return what became of it, ordered by arrival, receiver and copy."""
        fates = self._fates
        if fates is None:
            return []
        if len(fates) == 1:
            return fates
        last = {fate[:3]: fate for fate in fates}
        return [last[key] for key in sorted(last)]


class _Sender:
    """How much a member has sent and noted, and what of it isn't final, by its own numbers."""

    __slots__ = ("open", "told")

    def __init__(self) -> None:
        self.told = 0
        self.open: dict[int, Publication] = {}


class Pending:
    """The publications of a run that aren't final.

    Looking for what is final costs a sort, so it is done only when there are about as many bytes as are `worth_a_look`.
    """

    def __init__(self, worth_a_look: int = 64 * 1024) -> None:
        self._worth_a_look = worth_a_look
        self._floor = 0
        self._senders: dict[str, _Sender] = {}
        self._order: list[Publication] = []
        self._is_sorted = True  # Whether these are, as they stand there.
        self._latest: Publication | None = None  # The last message that was sent: what is told next mostly concerns it.
        self._latest_number = -1
        self._closures: dict[tuple[str, str], int] = {}  # (receiver, topic) → until, of those not yet carried out.
        self._weight = 0
        self._enough = worth_a_look

    def __len__(self) -> int:
        return len(self._order)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int) -> None:
        sender = self._sender(who)
        if number in sender.open:
            raise InternalError(f"message {number} was recorded twice", participant=who, at=at)
        self._latest = sender.open[number] = self._add(sender, who, topic, at, payload, until, number)
        self._latest_number = number

    def noted(self, who: str, topic: str, at: int, payload: bytes) -> None:
        """Take in what is sent to none; it is final when its time has passed."""
        self._add(self._sender(who), who, topic, at, payload, at, None)

    def _sender(self, who: str) -> _Sender:
        sender = self._senders.get(who)
        if sender is None:
            sender = self._senders[who] = _Sender()
        return sender

    def _add(
        self, sender: _Sender, who: str, topic: str, at: int, payload: bytes, expiry: int, number: int | None
    ) -> Publication:
        sequence = sender.told
        if at < self._floor:
            raise InternalError(
                f"message {sequence} was sent though none acts before {format_time(self._floor)} any more",
                participant=who,
                at=at,
            )
        sender.told = sequence + 1
        publication = Publication.__new__(Publication)  # Not by an `__init__`: compiled, that would cost a tuple.
        publication.sender = who
        publication.sequence = sequence
        publication.number = number
        publication.topic = topic
        publication.sent = at
        publication.payload = payload
        publication.expiry = publication._bound = expiry
        publication._fates = None
        if self._is_sorted and self._order and publication.precedes(self._order[-1]):
            self._is_sorted = False
        self._order.append(publication)
        self._weight += len(payload) + _WEIGHT_OF_A_FATE
        return publication

    def arrives(self, sender: str, number: int, receiver: str, arrival: int, copy: int, lost: str | None) -> None:
        publication = self._find(sender, number)
        at_once = sender == OUTSIDE  # What comes from there may take no time (H2).
        if publication is None or not publication.sent < arrival + at_once <= publication.expiry + at_once:
            raise self._bad_arrival(publication, sender, number, receiver, arrival)
        # Only a closure of this very topic and receiver matters: it holds for what was said before, not for this.
        if self._closures and (receiver, publication.topic) in self._closures:
            self._carry_out_closures()
        publication.add(arrival, receiver, copy, lost)
        self._weight += _WEIGHT_OF_A_FATE

    def _find(self, sender: str, number: int) -> Publication | None:
        """Return the message if it isn't final."""
        latest = self._latest
        if latest is not None and number == self._latest_number and sender == latest.sender:
            return latest
        of_sender = self._senders.get(sender)
        return None if of_sender is None else of_sender.open.get(number)

    def lasts(self, sender: str, number: int, expiry: int) -> None:
        publication = self._find(sender, number)
        if publication is not None:
            publication.last(expiry)
        elif expiry >= self._floor:  # Below the floor it says nothing new of a message that is final.
            raise InternalError(
                f"message {number} lasts until {format_time(expiry)} though it is final or was never sent",
                participant=sender,
            )

    def closed(self, receiver: str, topic: str, until: int) -> None:
        # Carried out later, for many at a time: at the end of a run all close everything, and to go through all
        # that is pending for each of them would take its square.
        earlier = self._closures.get((receiver, topic), FOREVER)
        self._closures[receiver, topic] = min(until, earlier)

    def advance(self, floor: int) -> list[Publication]:
        """Learn that none acts before the floor any more; return what is final, if there is enough to be worth it.

        The floor is remembered, so nothing is lost by not looking each time.
        """
        self._floor = max(floor, self._floor)
        return self.take() if self._weight >= self._enough else []

    def take(self) -> list[Publication]:
        """Remove and return all that is final, in order (P1)."""
        self._carry_out_closures()
        self._sort()
        floor, count = self._floor, 0
        for publication in self._order:
            if publication.expiry >= floor:
                break
            count += 1
        return self._remove(count)

    def finish(self, end: int) -> list[Publication]:
        """Remove and return everything, in order: the run was over at `end`. Whatever comes after this raises."""
        self._carry_out_closures()
        self._sort()
        for publication in self._order:
            if publication.expiry >= self._floor:  # Otherwise it is final, whatever the end is.
                publication.break_off(end)
        self._floor = FOREVER
        return self._remove(len(self._order))

    def complete_until(self) -> int:
        """Return a time before which all that was sent has been taken."""
        return min(self._floor, *[publication.sent for publication in self._order], FOREVER)

    def _sort(self) -> None:
        if not self._is_sorted:
            self._order.sort()
            self._is_sorted = True

    def _remove(self, count: int) -> list[Publication]:
        final = self._order[:count]
        del self._order[:count]
        for publication in final:
            if publication.number is not None:
                sender = self._senders[publication.sender]
                del sender.open[publication.number]
        self._latest = None  # It may be final.
        self._weight = 0
        for publication in self._order:
            self._weight += len(publication.payload) + _WEIGHT_OF_A_FATE
        # Twice what stayed: so looking costs a fixed share of recording, however much is long under way.
        self._enough = max(self._worth_a_look, 2 * self._weight)
        return final

    def _carry_out_closures(self) -> None:
        if self._closures:
            for publication in self._order:
                publication.take_back(self._closures)
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


class OrderingObserver(Observer):
    """An observer to whom all messages and notes are pending until they are final: of a recording, of a page."""

    def __init__(self, worth_a_look: int) -> None:
        self._pending = Pending(worth_a_look)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self._pending.sent(who, number, topic, at, payload, until)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        self._pending.arrives(sender, number, receiver, at, copy, lost)

    def lasts(self, sender: str, number: int, until: int) -> None:
        self._pending.lasts(sender, number, until)

    def closed(self, receiver: str, topic: str, at: int) -> None:
        self._pending.closed(receiver, topic, at)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if payload is not None:
            self._pending.noted(who, topic, at, payload)


# The certificate of a recording: a hash over everything that it says, in canonical form.
#
# Pure. The writer hashes what it writes, a reader what it finds; both must come to the same. The canonical form is a
# sequence of MessagePack arrays:
#
#     [header: names and texts]
#     [send time, sender, sequence number, topic, payload, [[arrival, receiver, copy, reason or nil], ...]] each message
#     [outcome: names and texts, without the certificate]
#
# It knows nothing of chunks, compression or channel numbers, so a file that a tool has packed anew still fits its
# certificate.

_SIZE = 32
SEQUENCES = 2**32
"""MCAP has 32 bits for a sequence number; what is recorded, and hashed, is the remainder."""

_encode = msgpack.Encoder().encode
_HASH_EVERY = 2**16  # Bytes: hashing many messages together costs much less than one by one.

if not cython.compiled:  # Otherwise that of `pending.pxd` writes the same.

    def add_message(
        target: bytearray, sent: int, sender: str, sequence: int, topic: str, payload: bytes, fates: list[Fate]
    ) -> bool:
        """Put a message in its canonical form behind what is there; False: it isn't written here."""
        target += _encode((sent, sender, sequence, topic, payload, fates))
        return True


class _Count:
    """How many messages of a topic were published, and arrived; and of how many bytes."""

    __slots__ = ("arrivals", "bytes", "published")

    def __init__(self) -> None:
        self.published = self.arrivals = self.bytes = 0


class Contents:
    """All that a recording says: a running hash over header, messages and outcome, and how much there is of it."""

    def __init__(self, header: Mapping[str, str]) -> None:
        self._hash = blake2b(digest_size=_SIZE)
        self._hash.update(_encode(sorted(header.items())))
        self._unhashed = bytearray()
        self._counts: dict[str, _Count] = {}  # By topic.
        self.losses: dict[tuple[str, str, str], int] = {}  # By receiver, topic and reason.

    def add(self, sent: int, sender: str, sequence: int, topic: str, payload: bytes, fates: list[Fate]) -> None:
        """Go on with the next message; the fates are in their order, and stay as they are."""
        if not add_message(self._unhashed, sent, sender, sequence, topic, payload, fates):
            self._catch_up()
            self._hash.update(_encode((sent, sender, sequence, topic, payload, fates)))
        if len(self._unhashed) >= _HASH_EVERY:
            self._catch_up()
        count = self._counts.get(topic)
        if count is None:
            count = self._counts[topic] = _Count()
        count.published += 1
        count.bytes += len(payload)
        for _, receiver, _, lost in fates:
            if lost is None:
                count.arrivals += 1
            else:
                self.losses[receiver, topic, lost] = self.losses.get((receiver, topic, lost), 0) + 1

    def counts(self) -> dict[str, Count]:
        """Return how much there is of each topic."""
        return {
            topic: Count(published=count.published, arrivals=count.arrivals, bytes=count.bytes)
            for topic, count in sorted(self._counts.items())
        }

    def certificate(self, outcome: Mapping[str, str]) -> str:
        """Return the certificate, in hex, for a recording that ends like this."""
        self._catch_up()
        sealed = self._hash.copy()
        sealed.update(_encode(sorted([item for item in outcome.items() if item[0] != "certificate"])))
        return sealed.hexdigest()

    def _catch_up(self) -> None:
        self._hash.update(self._unhashed)
        self._unhashed = bytearray()
