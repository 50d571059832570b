"""What a run tells, as rows for the tape: kept as plain numbers until they are final.

A run tells this in the middle of everything, so it takes next to nothing: a message is a row of numbers, and no object
of its own. Ten times a second, what is final goes to the tape, in the order of a recording: by time of
sending, sender and number.

Rows come in that order mostly, and all that is said of a message is said at once. Where that isn't so, rows are
*untidy* until they are arranged: out of order, taken back (`closed`), or said anew.

R1. A row goes to the tape once its message is final (it expires before the floor), and not before all rows that precede
    it. Nothing that is told later precedes it, as in `recording.pending`.
"""

from __future__ import annotations

from array import array
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING, Any

from worldline.history.account import NOTES
from worldline.history.observer import UNDER_WAY, Observer
from worldline.model.time import FOREVER
from worldline.watch.tape import Columns, Note, Tape

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

TAKE_S = 0.1

_LEAST = 1024  # Rows for which there is room.
_GONE = -2  # The receiver of a row that was taken back; such a row goes when rows are arranged.
_INT = 2**31 - 1  # What is larger than that is counted from 0 again.
_CODES = "dddiiiiiii"
"""The types of the columns: `sent`, `arrival`, `expiry`, `sender`, `receiver`, `topic`, `sequence`, `lost`, `number`,
`copy`; -1 is none."""

_ON_TAPE = (0, 1, 3, 4, 5, 6, 7)  # The columns that the tape has, too.
_MESSAGE = itemgetter(0, 1, 2, 3)  # Of a row's key: what all rows of its message have in common.


def _doubles(column: array[float]) -> array[float]:
    """Return what a column's numbers are read from: in C, a pointer to them."""
    if cython.compiled:
        return column.data.as_doubles  # type: ignore[attr-defined, no-any-return]
    else:  # noqa: RET505
        return column


def _ints(column: array[int]) -> array[int]:
    if cython.compiled:
        return column.data.as_ints  # type: ignore[attr-defined, no-any-return]
    else:  # noqa: RET505
        return column


class Ints:
    """Whole numbers by place, as far as there is room for them: 0 until they are set."""

    def __init__(self) -> None:
        self.room = 0
        self._all = array("i")
        self.make_room(_LEAST)

    def make_room(self, count: int) -> None:
        self._all.frombytes(bytes(4 * (count - self.room)))
        self.room = count
        self.at = _ints(self._all)


class Numbers:
    """The columns of rows but for their payloads, with room for so many rows."""

    def __init__(self) -> None:
        self.room = 0
        self.all: list[array[Any]] = [array(code) for code in _CODES]
        self.make_room(_LEAST)

    def make_room(self, count: int) -> None:
        for column in self.all:
            column.frombytes(bytes(column.itemsize * (count - self.room)))
        self.room = count
        self.sent, self.arrival, self.expiry = _doubles(self.all[0]), _doubles(self.all[1]), _doubles(self.all[2])
        self.sender, self.receiver = _ints(self.all[3]), _ints(self.all[4])
        self.topic, self.sequence = _ints(self.all[5]), _ints(self.all[6])
        self.lost, self.number, self.copy = _ints(self.all[7]), _ints(self.all[8]), _ints(self.all[9])


class Rows:
    """Rows that aren't final, as columns and their payloads."""

    def __init__(self) -> None:
        self.count = 0
        self.payloads: list[bytes] = []
        self._numbers = Numbers()
        self._places: dict[tuple[int, int], int] = {}  # (sender, number) → its first row, as far as was looked.
        self._looked = 0
        self._closures: dict[tuple[int, int], int] = {}  # (receiver, topic) → until, of those not yet carried out.
        self._reached = Ints()  # By receiver, the row in which it was reached last, if that is still there.

    def add(self, at: int, sender: int, topic: int, sequence: int, payload: bytes, until: int, number: int) -> None:
        """Add a message that has no receiver yet."""
        numbers = self._numbers
        if self.count == numbers.room:
            numbers.make_room(2 * self.count)
        place = self.count
        self.count = place + 1
        numbers.sent[place] = numbers.arrival[place] = at
        numbers.expiry[place] = until
        numbers.sender[place] = sender
        numbers.receiver[place] = numbers.lost[place] = -1
        numbers.topic[place] = topic
        numbers.sequence[place] = sequence & _INT
        numbers.number[place] = -1 if number < 0 else number & _INT
        numbers.copy[place] = 0
        self.payloads.append(payload)

    def reach(self, place: int, receiver: int, arrival: int, copy: int, lost: int) -> None:
        """Let the message of a row reach a receiver: in the row itself, if it has none, or in one more."""
        numbers = self._numbers
        if numbers.receiver[place] != -1:
            self.add(
                int(numbers.sent[place]),
                numbers.sender[place],
                numbers.topic[place],
                numbers.sequence[place],
                self.payloads[place],
                int(numbers.expiry[place]),
                numbers.number[place],
            )
            place = self.count - 1
        numbers.arrival[place] = arrival
        numbers.receiver[place] = receiver
        numbers.lost[place] = lost
        numbers.copy[place] = copy
        if receiver >= self._reached.room:
            self._reached.make_room(2 * receiver)
        self._reached.at[receiver] = place

    def find(self, sender: int, number: int) -> int:
        """Return the first row of a message; -1 if there is none."""
        for place in range(self._looked, self.count):
            self._places.setdefault((self._numbers.sender[place], self._numbers.number[place]), place)
        self._looked = self.count
        return self._places.get((sender, number & _INT), -1)

    def last(self, place: int, until: int) -> None:
        """Put off the expiry of a row's message; FOREVER is until another time is said."""
        before = self._numbers.expiry[place]
        self._numbers.expiry[place] = until if before >= FOREVER or until > before else before

    def count_final(self, floor: int) -> int:
        """Return how many rows are final, from the first on."""
        for place in range(self.count):
            if self._numbers.expiry[place] >= floor:
                return place
        return self.count

    def break_off(self, floor: int, end: int, reason: int) -> None:
        """Let what isn't final, and would arrive at the end or later, be lost."""
        numbers = self._numbers
        for place in range(self.count):
            is_final = numbers.expiry[place] < floor or numbers.arrival[place] < end
            if not is_final and numbers.receiver[place] >= 0 and numbers.lost[place] < 0:
                numbers.lost[place] = reason

    def take(self, count: int) -> Columns:
        """Remove so many rows, and return their columns, as the tape has them."""
        self._forget_places()
        taken = [self._numbers.all[number][:count] for number in _ON_TAPE]
        payloads = self.payloads[:count]
        del self.payloads[:count]
        rest = self.count - count
        for column in self._numbers.all:
            column[:rest] = column[count : self.count]
        self.count = rest
        return taken, payloads

    def retell(self, receiver: int, arrival: int, copy: int, lost: int) -> bool:
        """Change what was said of the last message, of the same receiver, arrival and copy; False if nothing was."""
        numbers = self._numbers
        last = self.count - 1
        if numbers.receiver[last] == -1 or receiver >= self._reached.room:
            return False
        place = self._reached.at[receiver]  # Mostly a row of an earlier message: then this isn't told twice.
        if place > last:
            return False
        while place >= 0 and self._is_same(place, last):
            is_same = numbers.receiver[place] == receiver and numbers.copy[place] == copy
            if is_same and numbers.arrival[place] == arrival:
                numbers.lost[place] = lost
                return True
            place -= 1
        return False

    def _is_same(self, place: int, other: int) -> bool:
        """Whether two rows are of the same message."""
        numbers = self._numbers
        return numbers.sender[place] == numbers.sender[other] and numbers.sequence[place] == numbers.sequence[other]

    def close(self, receiver: int, topic: int, until: int) -> None:
        """Let nothing on a topic that was said so far reach a receiver then or later."""
        # Carried out later, for many at a time: at the end of a run all close everything.
        self._closures[receiver, topic] = min(until, self._closures.get((receiver, topic), until))

    def reopen(self, place: int, receiver: int) -> bool:
        """Take back what a receiver has closed of a row's topic, before more reaches it; False if that is nothing."""
        if not self._closures:
            return False
        key = receiver, self._numbers.topic[place]
        until = self._closures.pop(key, None)
        return until is not None and self._take_back({key: until})

    def carry_out_closures(self) -> bool:
        """Take back all that was closed; False if that changes nothing."""
        if not self._closures:
            return False
        closures, self._closures = self._closures, {}
        return self._take_back(closures)

    def _take_back(self, closures: dict[tuple[int, int], int]) -> bool:
        numbers = self._numbers
        is_changed = False
        first = min(closures.values())
        for place in range(self.count):
            if numbers.arrival[place] < first or numbers.receiver[place] < 0:
                continue
            until = closures.get((numbers.receiver[place], numbers.topic[place]))
            if until is not None and numbers.arrival[place] >= until:
                numbers.arrival[place] = numbers.sent[place]
                numbers.receiver[place] = _GONE
                numbers.lost[place] = -1
                numbers.copy[place] = 0
                is_changed = True
        return is_changed

    def arrange(self, names: list[str]) -> None:
        """Put rows in order; of what was said of the same twice, the last counts, and what was taken back is gone.

        Those of one message stay in the order in which they were told, whenever they are arranged.
        """
        self._forget_places()
        columns = [column[: self.count].tolist() for column in self._numbers.all]
        rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        expiries: dict[tuple[int, int], Any] = {}
        reached: set[tuple[int, int]] = set()
        for row in zip(*columns, self.payloads, strict=True):
            sent, arrival, expiry, sender, receiver, topic, sequence, lost, number, copy, payload = row
            message = sender, sequence
            expiries.setdefault(message, expiry)
            if receiver >= 0:
                reached.add(message)
            key = sent, names[sender], sequence, sender, receiver, arrival, copy
            rows[key] = topic, lost, number, payload
        self.count = 0
        self.payloads = []
        for key in sorted(rows, key=_MESSAGE):
            sent, _, sequence, sender, receiver, arrival, copy = key
            message = sender, sequence
            if receiver >= 0 or message not in reached:
                topic, lost, number, payload = rows[key]
                self.add(sent, sender, topic, sequence, payload, expiries[message], number)
                if receiver >= 0:
                    self.reach(self.count - 1, receiver, arrival, copy, lost)

    def _forget_places(self) -> None:
        self._places.clear()
        self._looked = 0


class Reel(Observer):
    """Tells the tape of a run what happens in it, and another observer, if there is one, too."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._also: Observer | None = None
        self._members: dict[str, int] = {}
        self._topics: dict[str, int] = {}
        self._told = Ints()  # By member, how much it has sent and noted.
        self._rows = Rows()
        self._notes: list[Note] = []
        self._is_tidy = True
        self._last_who = ""  # The last that has sent something: what is told next mostly concerns that.
        self._last_number = -1
        self._latest_at = 0  # The last row there was so far, in order: what comes behind it is in order, too.
        self._latest_who = ""
        self._weight = 0  # Bytes of the payloads since the tape was given some.
        self._floor = 0
        self._due = 0.0

    def telling(self, also: Observer | None) -> Reel:
        """Let another observer be told everything, too."""
        self._also = also
        return self

    def began(self, who: str, at: int) -> None:
        if self._also is not None:
            self._also.began(who, at)
        self._tape.member(who, at)

    def ended(self, who: str, at: int, chain: bytes) -> None:
        if self._also is not None:
            self._also.ended(who, at, chain)
        self._tape.member(who, 0, at)

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        if self._also is not None:
            self._also.sent(who, number, topic, at, payload, until, detail)
        self._add(who, topic, at, payload, until, number)

    def _add(self, who: str, topic: str, at: int, payload: bytes, until: int, number: int) -> None:
        if at > self._latest_at or (at == self._latest_at and who >= self._latest_who):
            self._latest_at, self._latest_who = at, who
        else:
            self._is_tidy = False
        self._last_who, self._last_number = who, number
        sender = self._member(who)
        sequence = self._told.at[sender]
        self._told.at[sender] = (sequence + 1) & _INT
        self._weight += len(payload)
        self._rows.add(at, sender, self._topic(topic), sequence, payload, until, number)

    def _member(self, name: str) -> int:
        found = self._members.get(name)
        if found is None:
            found = self._members[name] = self._tape.number("members", name)
            if found >= self._told.room:
                self._told.make_room(2 * found)
        return found

    def _topic(self, name: str) -> int:
        found = self._topics.get(name)
        if found is None:
            found = self._topics[name] = self._tape.number("topics", name)
        return found

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        if self._also is not None:
            self._also.arrives(sender, number, receiver, at, copy, lost)
        loss = -1 if lost is None else self._tape.number("reasons", lost)
        whom = self._member(receiver)
        is_last = number == self._last_number and sender == self._last_who
        place = self._rows.count - 1 if is_last else self._rows.find(self._member(sender), number)
        if place < 0:
            return  # It is final; a recorder would complain.
        if self._rows.reopen(place, whom):
            self._is_tidy = False
        if not is_last:
            self._is_tidy, self._last_number = False, -1
        elif self._rows.retell(whom, at, copy, loss):
            return
        self._rows.reach(place, whom, at, copy, loss)

    def lasts(self, sender: str, number: int, until: int) -> None:
        if self._also is not None:
            self._also.lasts(sender, number, until)
        place = self._rows.find(self._member(sender), number)
        if place >= 0:
            self._rows.last(place, until)
            self._is_tidy = False

    def closed(self, receiver: str, topic: str, at: int) -> None:
        if self._also is not None:
            self._also.closed(receiver, topic, at)
        self._rows.close(self._member(receiver), self._topic(topic), at)

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if self._also is not None:
            self._also.noted(who, topic, at, payload, detail)
        if payload is None:
            return
        if topic not in NOTES:
            self._add(who, topic, at, payload, at, -1)
            return
        sender = self._member(who)
        self._notes.append((at, sender, self._topic(topic), self._told.at[sender], payload))
        self._told.at[sender] = (self._told.at[sender] + 1) & _INT

    def passed(self, time: int) -> None:
        if self._also is not None:
            self._also.passed(time)
        self._floor = max(time, self._floor)
        if (now := monotonic()) >= self._due:
            self._due = now + TAKE_S
            self.take()

    def take(self) -> None:
        """Give the tape what is final."""
        self._arrange()
        self._give(self._rows.count_final(self._floor), self._floor)

    def finish(self, end: int) -> None:
        """Give the tape everything: the run was over at `end`, and what would arrive then or later never does."""
        self._arrange()
        if self._rows.count_final(self._floor) < self._rows.count:
            self._rows.break_off(self._floor, end, self._tape.number("reasons", UNDER_WAY))
        self._give(self._rows.count, FOREVER)

    def _arrange(self) -> None:
        if self._rows.carry_out_closures() or not self._is_tidy:
            self._rows.arrange(self._tape.texts("members"))
            self._is_tidy, self._last_number = True, -1

    def _give(self, count: int, floor: int) -> None:
        if count:
            self._tape.add_columns(*self._rows.take(count), self._weight)
            self._weight, self._last_number = 0, -1
        if self._notes:
            names = self._tape.texts("members")
            self._notes.sort(key=lambda note: (note[0], names[note[1]], note[3]))
            final = [note for note in self._notes if note[0] < floor]
            del self._notes[: len(final)]
            self._tape.add_notes(final)
