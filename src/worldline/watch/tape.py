"""What a run has told so far, in columns: what the page draws, in the form in which it travels there.

There is a row for each message and receiver, whether it was reached or not; a message for no receiver has one without.
Rows only ever come behind the others, in the order of sending, and names, topics and reasons are numbered as they come.
So a page that has the first n of each asks for the rest. Times are floats, exact for runs of up to 104 days: a browser
has no faster numbers.

A tape has a length. What doesn't fit any more is cut off at its beginning; counts go on. The tape of a run that goes on
has payloads, too, those of the last messages: a recording's are in its file.
"""

from __future__ import annotations

import sys
import threading
from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from typing import Any

from msgspec import json

from worldline.history.account import NOTES, Sending, kind_of_note
from worldline.history.fields import payload_text
from worldline.model.text import printable
from worldline.model.time import FOREVER
from worldline.recording.scan import Record, RecordedPath

COLUMNS = {"sent": "d", "arrival": "d", "sender": "i", "receiver": "i", "topic": "i", "number": "I", "lost": "i"}
"""The columns and the type codes of their arrays; -1 stands for no receiver and for no loss."""

ROWS_MAX, NOTES_MAX = 4_000_000, 100_000
ROWS_AT_ONCE, NOTES_AT_ONCE = 200_000, 5_000
_NO_LOSS = array(COLUMNS["lost"], [-1]).tobytes()
_WEIGHT_OF_A_ROW = 40  # Bytes of a payload besides its content.
_NOTE_MAX = 2000  # Bytes of a note's payload that go along with it; what is longer is cut to a few words.

Columns = tuple[list[array[Any]], list[bytes]]
"""Rows by their columns, in the order and of the sizes of `COLUMNS`, and their payloads."""

Note = tuple[int, int, int, int, bytes]
"""A note: its time, its member's and topic's numbers, its own number, and what it says."""

_encode = json.Encoder().encode


class NumberedNames:
    """Texts with a number each, in the order in which they came."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(printable(text))
        return found


class Tape:
    """Everything that a run has told, for one or many pages. One thread adds to it, and any may read."""

    def __init__(self, rows_max: int = ROWS_MAX, notes_max: int = NOTES_MAX, bytes_max: int = 0) -> None:
        self._rows_max, self._notes_max, self._bytes_max = rows_max, notes_max, bytes_max
        self._names = {"members": NumberedNames(), "topics": NumberedNames(), "reasons": NumberedNames()}
        self._columns = {name: array(code) for name, code in COLUMNS.items()}
        self._payloads: list[bytes] = []  # Of the last rows.
        self._weight = 0  # About what these take.
        self._notes: list[Note] = []
        self._stays: dict[int, list[int | None]] = {}
        self._cut_rows = self._cut_notes = 0  # How many were cut off.
        self._lost: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._cut_rows + len(self._columns["sent"])

    def member(self, name: str, began: int, ended: int | None = None) -> None:
        """Take in from when to when a member takes part: to the end, if that is forever."""
        with self._lock:
            self._stays[self._names["members"].number(name)] = [began, None if ended == FOREVER else ended]

    def number(self, kind: str, text: str) -> int:
        """Return the number of a member, topic or reason."""
        return self._names[kind].number(text)

    def texts(self, kind: str) -> list[str]:
        """Return the members, topics or reasons by their numbers."""
        return self._names[kind].texts

    def add_columns(self, columns: list[array[Any]], payloads: list[bytes], weight: int) -> None:
        """Go on with rows by their columns; their payloads have so many bytes in all."""
        with self._lock:
            for column, values in zip(self._columns.values(), columns, strict=True):
                column.frombytes(values.tobytes())
            lost = columns[-1]
            if lost.tobytes() != _NO_LOSS * len(lost):  # Far quicker than to count.
                names = self._names["reasons"].texts
                self._lost.update(names[each] for each in lost if each >= 0)
            self._payloads += payloads
            self._weight += weight + _WEIGHT_OF_A_ROW * len(payloads)
            self._cut()

    def add_notes(self, notes: Iterable[Note]) -> None:
        """Go on with what was noted next."""
        with self._lock:
            self._notes += ((*note[:4], _shortened(note[4])) for note in notes)
            self._cut()

    def add(self, sendings: Iterable[Sending]) -> None:
        """Go on with what was sent and noted next."""
        with self._lock:
            self._add(sendings)
            self._cut()

    def _add(self, sendings: Iterable[Sending]) -> None:
        member, topic_of = self._names["members"].number, self._names["topics"].number
        reason_of = self._names["reasons"].number
        add_sent, add_arrival, add_sender, add_receiver, add_topic, add_number, add_lost = (
            column.append for column in self._columns.values()
        )
        for sent, sender, topic, payload, fates, number in sendings:
            who, what = member(sender), topic_of(topic)
            if not fates and topic in NOTES:
                self._notes.append((sent, who, what, number, _shortened(payload or b"")))
                continue
            for arrival, receiver, _, lost in fates or ((sent, None, 0, None),):
                add_sent(sent)
                add_arrival(arrival)
                add_sender(who)
                add_receiver(-1 if receiver is None else member(receiver))
                add_topic(what)
                add_number(number)
                if lost is None:
                    add_lost(-1)
                else:
                    add_lost(reason_of(lost))
                    self._lost[lost] += 1

    def add_recorded(self, records: Iterable[Record]) -> list[Record]:
        """Go on with what was recorded, as the file has it: in half of the time that sendings would take.

        Each record is a row; but before the losses of a message that reached no receiver there is one of the message
        itself, which isn't. If that is the last, it is returned: it depends on what comes next.
        """
        with self._lock:
            return self._add_recorded(records)

    def _add_recorded(self, records: Iterable[Record]) -> list[Record]:
        member, topic_of = self._names["members"].number, self._names["topics"].number
        paths: dict[RecordedPath, int] = {}
        parts: tuple[list[int], list[int], list[int]] = ([], [], [])  # Of each path: sender, receiver, topic.
        columns: list[list[Any]] = [[], [], [], [], []]
        sents, arrivals, ways, numbers, losts = columns
        alone: Record | None = None  # The last record, if it is without a receiver.

        def take_back(record: Record) -> None:
            if record[3].topic in NOTES:
                self._notes.pop()
            else:
                for column in columns:
                    column.pop()

        for record in records:
            arrival, sent, number, path, payload, lost = record
            way = paths.get(path)
            if way is None:
                topic, sender, receiver, _ = path
                way = paths[path] = len(paths)
                told = member(sender), member(receiver) if receiver else -1, topic_of(topic)
                for part, value in zip(parts, told, strict=True):
                    part.append(value)
            loss = -1
            if lost is not None:
                loss = self._names["reasons"].number(lost)
                self._lost[lost] += 1
                if alone is not None and (sent, number, *path[:2]) == (*alone[1:3], *alone[3][:2]):
                    take_back(alone)
            alone = record if parts[1][way] < 0 else None
            if alone is not None and path.topic in NOTES:
                self._notes.append((sent, parts[0][way], parts[2][way], number, _shortened(payload or b"")))
                continue
            sents.append(sent)
            arrivals.append(arrival)
            ways.append(way)
            numbers.append(number)
            losts.append(loss)
        if alone is not None:
            take_back(alone)
        self._columns["sent"].extend(sents)
        self._columns["arrival"].extend(arrivals)
        for name, part in zip(("sender", "receiver", "topic"), parts, strict=True):
            self._columns[name].extend(map(part.__getitem__, ways))
        self._columns["number"].extend(numbers)
        self._columns["lost"].extend(losts)
        return [] if alone is None else [alone]

    def _cut(self) -> None:
        """Cut off a quarter of the tape where it is too long, so that this is rare."""
        if len(self._columns["sent"]) > self._rows_max:
            count = len(self._columns["sent"]) - self._rows_max * 3 // 4
            for column in self._columns.values():
                del column[:count]
            self._cut_rows += count
            self._cut_payloads(len(self._payloads) - len(self._columns["sent"]))
        while self._weight > self._bytes_max:
            self._cut_payloads(-(-len(self._payloads) // 2))
        if len(self._notes) > self._notes_max:
            count = len(self._notes) - self._notes_max * 3 // 4
            del self._notes[:count]
            self._cut_notes += count

    def _cut_payloads(self, count: int) -> None:
        """Forget the first payloads. One that has several receivers is there once, however many rows have it."""
        del self._payloads[: max(0, count)]
        different = {id(each): each for each in self._payloads}.values()
        self._weight = sum(map(len, different)) + _WEIGHT_OF_A_ROW * len(self._payloads)

    def payload(self, row: dict[str, Any]) -> bytes | None:
        """Return the payload of a row; None if it isn't kept."""
        with self._lock:
            place = row["place"] - (len(self) - len(self._payloads))
            return self._payloads[place] if 0 <= place < len(self._payloads) else None

    def sendings(
        self, start: int = 0, stop: int | None = None, topics: Container[str] | None = None
    ) -> Iterator[Sending]:
        """Yield the messages whose payloads are kept, in the order of sending, and then the notes.

        With a `stop`, those of the rows between, and no notes; a message is in rows that stand together. With `topics`,
        those of these topics.
        """
        with self._lock:
            cut = len(self) - len(self._payloads)  # The payloads are those of the last rows.
            first, last = max(start, cut), len(self) if stop is None else max(stop, cut)
            payloads, notes = self._payloads[first - cut : last - cut], self._notes[:] if stop is None else []
            columns = [column[first - self._cut_rows : last - self._cut_rows] for column in self._columns.values()]
        members, named, reasons = (names.texts for names in self._names.values())
        wanted = {number for number, text in enumerate(named) if topics is None or text in topics}
        sending: Sending | None = None
        for payload, *row in zip(payloads, *columns, strict=True):
            sent, arrival, sender, receiver, topic, number, lost = row
            if topic not in wanted:
                continue
            if sending is None or (int(sent), members[sender], number) != (*sending[:2], sending[5]):
                if sending is not None:
                    yield sending
                sending = int(sent), members[sender], named[topic], payload, [], number
            if receiver >= 0:
                sending[4].append((int(arrival), members[receiver], 0, None if lost < 0 else reasons[lost]))
        if sending is not None:
            yield sending
        for at, who, topic, number, payload in notes:
            if topic in wanted:
                yield at, members[who], named[topic], payload, [], number

    def row(self, place: int) -> dict[str, Any] | None:
        """Return what is known of one row; None if it is none of those that are there."""
        with self._lock:
            index = place - self._cut_rows
            if not 0 <= index < len(self._columns["sent"]):
                return None
            found = {name: column[index] for name, column in self._columns.items()}
            members = self._names["members"].texts
            return {
                **found,
                "place": place,
                "sent": int(found["sent"]),
                "arrival": int(found["arrival"]),
                "sender": members[found["sender"]],
                "receiver": None if found["receiver"] < 0 else members[found["receiver"]],
                "topic": self._names["topics"].texts[found["topic"]],
                "lost": None if found["lost"] < 0 else self._names["reasons"].texts[found["lost"]],
            }

    def since(self, have: dict[str, int], facts: dict[str, Any], rows_max: int = ROWS_AT_ONCE) -> bytes:
        """Return what a page hasn't got: `have` says how many rows, notes, members, topics and reasons it has.

        It is a header in JSON, padded so that the columns behind it can be used where they stand; its length is in the
        first four bytes. `facts` go with it. It is never much at once: `more` says whether to ask again at once.
        """
        with self._lock:
            first = max(have.get("rows", 0), self._cut_rows)
            start = first - self._cut_rows
            stop = min(start + rows_max, len(self._columns["sent"]))
            first_note = max(have.get("notes", 0), self._cut_notes)
            notes = self._notes[first_note - self._cut_notes :][: max(NOTES_AT_ONCE, rows_max - ROWS_AT_ONCE)]
            topics = self._names["topics"].texts
            header = {
                **facts,
                "first": first,
                "count": max(0, stop - start),
                "firstNote": first_note,
                "notes": [(*note[:4], note_text(note[4]), kind_of_note(topics[note[2]], note[4])) for note in notes],
                **{name: each.texts[have.get(name, 0) :] for name, each in self._names.items()},
                "stays": [[who, *stay] for who, stay in sorted(self._stays.items())],
                "losses": sorted(self._lost.items()),
                "columns": list(COLUMNS.items()),
                "more": stop < len(self._columns["sent"])
                or first_note + len(notes) < self._cut_notes + len(self._notes),
            }
            bodies = [_little(column[start:stop]) for column in self._columns.values()]
        head = _encode(header)
        head += b" " * (-(len(head) + 4) % 8)
        return b"".join([len(head).to_bytes(4, "little"), head, *(body + bytes(-len(body) % 8) for body in bodies)])


def _little(column: array[Any]) -> bytes:
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _shortened(note: bytes) -> bytes:
    return note if len(note) <= _NOTE_MAX else payload_text(note).encode()


def note_text(payload: bytes) -> str:
    """Return what a note says: its payload, if that is a text of ordinary length."""
    if len(payload) <= _NOTE_MAX:
        with suppress(UnicodeDecodeError):
            return printable(payload.decode())
    return payload_text(payload)
