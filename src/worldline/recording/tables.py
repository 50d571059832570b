"""What was told in a run as tables: rows of plain values, for CSV, Parquet and pandas.

There is a row for each message and receiver, whether it was reached or the message got lost; a message that concerned
no receiver, or what a member noted, has one without. They are in the order of the file, by the times of sending. Each
field has a column (`history/fields.py` names it); in a table of one topic, without that topic's name before it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import msgspec

from worldline.extras import installing
from worldline.history.account import NOTES, Account, kind_of_note, named
from worldline.history.fields import Fields, fields_of, joined, payload_text
from worldline.model.errors import UsageError
from worldline.recording.signals import (
    MONITORS,
    Names,
    Rest,
    Telling,
    Tellings,
    meant_by,
    told_in,
    told_together,
    unknown_name,
)

FACTS = ("sent", "arrival", "sender", "receiver", "sequence", "copy", "lost")
"""The columns that every table has. Times are nanoseconds."""

TOPIC, PAYLOAD = "topic", "payload"
"""The columns of topics, in tables of several; and in a table of one, of payloads that have no fields."""

COLUMNS_MAX = 10_000

_WHOLE_NUMBERS = ("sent", "arrival", "sequence", "copy")
_LINES_AT_ONCE = 1000
_NESTED = frozenset((dict, list))
_encode = msgspec.json.Encoder().encode

Row = tuple[tuple[Any, ...], Fields]
"""The facts, and the fields by the names of their columns."""


class RecordedTable:
    """Rows of a recording: those of the topics and fields that are named, or of everything."""

    def __init__(self, run: Tellings, names: Sequence[str] = ()) -> None:
        self._run = run
        self._names = Names(names)
        self._topic = names[0] if len(names) == 1 and names[0] in topics_of(run) else None
        self.facts = FACTS if self._topic is not None else (*FACTS, TOPIC)
        self._taken = frozenset((*self.facts, PAYLOAD) if self._topic is not None else self.facts)
        self._distinct: set[tuple[str, ...]] = set()  # Lists of names that need no change: most payloads are alike.
        self._rests: dict[tuple[str, str], list[tuple[int, Rest]]] = {}  # Which names are of a topic, by sender.
        self._meant: dict[tuple[str, str, str], list[int]] = {}  # Which names mean a field of a sender's topic.

    def rows(self) -> Iterator[Row]:
        """Yield the rows."""
        for block in self._told():
            yield from self._rows_of(block)

    def _told(self) -> Iterator[list[Telling]]:
        def wants(sender: str, topic: str) -> bool:
            if self._topic is not None:
                return topic == self._topic
            found = self._rests[sender, topic] = self._names.rests(sender, topic)
            return bool(found)

        return told_together(self._run, wants)

    def _rows_of(self, block: Iterable[Telling]) -> Iterator[Row]:
        for telling in block:
            at, sender, topic, _, fates, number = telling
            fields = self._fields(telling, self._rests.get((sender, topic)))
            if fields is None:
                continue
            end = () if self._topic is not None else (topic,)
            for arrival, receiver, copy, lost in fates:
                yield (at, arrival, sender, receiver, number, copy, lost, *end), fields
            if not fates:
                yield (at, None, sender, None, number, None, None, *end), fields

    def _columns_of(self, block: list[Telling]) -> tuple[list[Sequence[Any]], Fields] | None:
        """Return the columns of messages of one topic that all are alike, which are had together; None if they aren't.

        Then each has concerned one receiver, and its payload has the same fields, none of which has parts.
        """
        if self._topic is None or not block:
            return None
        sent, senders, _, values, fates, numbers = zip(*block, strict=True)
        if {*map(len, fates)} != {1} or {*map(type, values)} != {dict} or len({*map(tuple, values)}) > 1:
            return None
        names = [name for name, _ in self._fields(block[0], None) or ()]
        fields = [[value[key] for value in values] for key in values[0]]
        if len(names) != len(fields) or not all(_NESTED.isdisjoint(map(type, column)) for column in fields):
            return None
        arrivals, receivers, copies, losses = zip(*[fate for (fate,) in fates], strict=True)
        facts: list[Sequence[Any]] = [sent, arrivals, senders, receivers, numbers, copies, losses]
        return facts, list(zip(names, fields, strict=True))

    def _fields(self, telling: Telling, rests: Any) -> Fields | None:
        """Return the fields of a payload that are wanted; None, if it has none of them. A number is a field itself.

        Names that are taken are kept apart: those of facts, of whole payloads, and those that another field has, too.
        """
        _, sender, topic, value, _, _ = telling
        fields = [] if value == {} else fields_of(value)
        if self._names.names and self._topic is None:
            meant = self._meant
            for field, _ in fields:
                if (sender, topic, field) not in meant:
                    meant[sender, topic, field] = meant_by(field, rests)
            fields = [(field, each) for field, each in fields if meant[sender, topic, field]]
            if not fields:
                return None
        if self._topic is None:
            fields = [(joined(topic, field), each) for field, each in fields]
        elif len(fields) == 1 and not fields[0][0]:
            return [(PAYLOAD, fields[0][1])]
        names = tuple([name for name, _ in fields])
        if names in self._distinct:
            return fields
        if self._taken.isdisjoint(names) and len({*names}) == len(names):
            self._distinct.add(names)
            return fields
        apart: dict[str, Any] = {}
        for name, each in fields:
            while name in apart or name in self._taken:
                name += "_"
            apart[name] = each
        return list(apart.items())

    def header(self) -> list[str]:
        """Return the names of all columns: of the facts, and of the fields in the order in which they come up."""
        names: dict[str, None] = dict.fromkeys(self.facts)
        for _, fields in self.rows():
            for name, _ in fields:
                names[name] = None
            self._check_width(len(names))
        self._check_found()
        return list(names)

    def columns(self) -> dict[str, list[Any]]:
        """Return all columns, by their names."""
        facts: list[list[Any]] = [[] for _ in self.facts]
        found: dict[str, list[Any]] = {}
        for block in self._told():
            together = self._columns_of(block)
            if together is not None:
                count = len(facts[0])
                for column, more in zip(facts, together[0], strict=True):
                    column += more
                for name, values in together[1]:
                    self._column(found, name, count).extend(values)
                continue
            for row, fields in self._rows_of(block):
                count = len(facts[0])
                for column, fact in zip(facts, row, strict=True):
                    column.append(fact)
                for name, value in fields:
                    self._column(found, name, count).append(value)
        self._check_found()
        for column in found.values():
            column.extend([None] * (len(facts[0]) - len(column)))
        return {**dict(zip(self.facts, facts, strict=True)), **found}

    def _column(self, found: dict[str, list[Any]], name: str, count: int) -> list[Any]:
        """Return a column that has so many values."""
        column = found.get(name)
        if column is None:
            column = found[name] = []
            self._check_width(len(found))
        if len(column) < count:
            column.extend([None] * (count - len(column)))
        return column

    def _check_width(self, count: int) -> None:
        if count > COLUMNS_MAX:
            problem = f"{self._run.path} has more than {COLUMNS_MAX:,} fields"
            raise UsageError(problem, advice="choose some by name")

    def _check_found(self) -> None:
        """Refuse names that mean nothing."""
        found = {number for numbers in self._meant.values() for number in numbers}
        for number, name in enumerate(self._names.names):
            if self._topic is None and number not in found:
                raise unknown_name(self._run, name)


def topics_of(run: Tellings) -> set[str]:
    """Return the topics of a recording, and its monitors, which are topics as well."""
    there = set(run.topics)
    if there & MONITORS:
        there.update(topic for _, _, topic, _, _, _ in told_in(run, lambda _, topic: topic not in there))
    return there


# --- What is made of them ---


def frame_of(run: Tellings, names: Sequence[str]) -> Any:
    """Return a table as a pandas DataFrame."""
    pandas = _library("pandas", "a frame")
    table: dict[str, Any] = RecordedTable(run, names).columns()
    for name in FACTS + ((TOPIC,) if TOPIC in table else ()):
        table[name] = (_whole_numbers if name in _WHOLE_NUMBERS else _repeated)(pandas, table[name])
    return pandas.DataFrame(table)


def _whole_numbers(pandas: Any, values: list[int | None]) -> Any:
    """Return whole numbers for a frame, exact also where one is missing."""
    numpy = import_module("numpy")
    missing = numpy.array([each is None for each in values], dtype=bool)
    return pandas.arrays.IntegerArray(numpy.array([each or 0 for each in values], dtype="int64"), missing)


def _repeated(pandas: Any, values: list[str | None]) -> Any:
    """Return texts for a frame of which there are few, each many times."""
    places = {text: place for place, text in enumerate(dict.fromkeys(values))}
    return pandas.Series(list(places)).array.take([places[each] for each in values]) if values else []


def parquet_of(run: Tellings, names: Sequence[str]) -> bytes:
    """Return a table as a Parquet file."""
    return parquet_file(RecordedTable(run, names).columns())


def parquet_file(columns: Mapping[str, list[Any]]) -> bytes:
    """Return columns, by their names, as a Parquet file."""
    arrow = _library("pyarrow", "Parquet")
    writer = import_module("pyarrow.parquet")
    file = io.BytesIO()
    writer.write_table(arrow.table({name: _arrow_array(arrow, values) for name, values in columns.items()}), file)
    return file.getvalue()


def _arrow_array(arrow: Any, values: list[Any]) -> Any:
    """Return a column; as texts, if its values are of kinds that don't go together."""
    try:
        return arrow.array([_text(each) if isinstance(each, dict) else each for each in values])
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError):
        return arrow.array([None if each is None else _text(each) for each in values])


def csv_of(run: Tellings, names: Sequence[str]) -> Iterator[bytes]:
    """Yield a table as pieces of a CSV file. The file is read twice: its first line has the names of all columns."""
    table = RecordedTable(run, names)
    header = table.header()
    places = {name: place for place, name in enumerate(header)}
    yield from csv_file(header, (_line(row, places) for row in table.rows()))


def _line(row: Row, places: dict[str, int]) -> list[Any]:
    facts, fields = row
    line = [*facts, *[None] * (len(places) - len(facts))]
    for name, value in fields:
        line[places[name]] = value
    return line


def csv_file(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Yield rows as pieces of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for count, line in enumerate(lines, 1):
        writer.writerow(["" if each is None else _text(each) for each in line])
        if count % _LINES_AT_ONCE == 0:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode()


def _text(value: Any) -> str:
    """Return a value as one writes it in a cell: JSON, except for texts; bytes that are no text in hex."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    try:
        return _encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _library(name: str, what: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise UsageError(f"{what} needs {name}, which isn't installed", advice=installing("tables")) from error


# A run as a trace that Chrome (about://tracing) and Perfetto show: members as rows, messages as arrows.
#
# Times there are microseconds; fractions keep the nanoseconds. An arrow leads from a slice to a slice, so a send and a
# reception are slices, of a nanosecond each.

_US = 1000
_MOMENT = 1 / _US
_PIECE = 2**16
_encode_trace = msgspec.json.Encoder().encode


def chrome_trace_of(name: str, account: Account, topics: Sequence[str] = ()) -> Iterator[bytes]:
    """Yield pieces of the JSON of some topics, or of everything, of a run of that name."""
    piece = bytearray(b'{"displayTimeUnit":"ns","traceEvents":[')
    piece += _encode_trace(_naming("process_name", 0, name))
    for event in _events(account, topics):
        piece += b",\n" + _encode_trace(event)
        if len(piece) >= _PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece) + b"]}\n"


def _events(account: Account, topics: Sequence[str]) -> Iterator[dict[str, Any]]:
    rows: dict[str, int] = {}
    for name in sorted(account.stays):
        rows[name] = len(rows) + 1
        yield _naming("thread_name", rows[name], named(name))
    flow = 0
    for at, sender, its_topic, payload, fates, number in account.sendings:
        if topics and its_topic not in topics:
            continue
        for name in (sender, *(fate[1] for fate in fates)):
            if name not in rows:
                rows[name] = len(rows) + 1
                yield _naming("thread_name", rows[name], named(name))
        told = {"payload": payload_text(payload or b""), "sequence": number}
        if its_topic in NOTES and not fates:
            kind = kind_of_note(its_topic, payload or b"") or "note"
            yield {"ph": "i", "s": "t", "cat": kind, **_place(NOTES[its_topic], rows[sender], at), "args": told}
            continue
        yield {"ph": "X", "dur": _MOMENT, "cat": "send", **_place(f"send {its_topic}", rows[sender], at), "args": told}
        for arrival, receiver, copy, lost in fates:
            if lost is not None:
                place = _place(f"lost {its_topic}", rows[receiver], arrival)
                yield {"ph": "i", "s": "t", "cat": "lost", **place, "args": {**told, "sender": sender, "reason": lost}}
                continue
            flow += 1
            place = _place(f"receive {its_topic}", rows[receiver], arrival)
            told_there = {**told, "sender": sender, "copy": copy}
            yield {"ph": "X", "dur": _MOMENT, "cat": "receive", **place, "args": told_there}
            yield {"ph": "s", "id": flow, "cat": "message", **_place(its_topic, rows[sender], at)}
            yield {"ph": "f", "bp": "e", "id": flow, "cat": "message", **_place(its_topic, rows[receiver], arrival)}


def _place(name: str, row: int, at: int) -> dict[str, Any]:
    return {"name": name, "pid": 1, "tid": row, "ts": at / _US}


def _naming(what: str, row: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 1, "tid": row, "args": {"name": name}}
