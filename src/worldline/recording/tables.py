"""What was sent in a run as tables: rows of plain values, for CSV, Parquet and pandas.

There is a row for each message and receiver, whether it was reached or the message got lost; a message that concerned
no receiver has one without. They are in the order of the file, by the times of sending.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any

import msgspec

from worldline.history.diff.account import NOTES, Account, Sending, named
from worldline.history.diff.values import decoded, is_nothing, payload_text
from worldline.model.errors import UsageError

FACTS = ("sent", "arrival", "sender", "receiver", "sequence", "copy", "lost")
"""The columns that every table has. Times are nanoseconds."""

PAYLOAD = "payload"
"""The column of payloads that have no fields."""

_TAKEN = frozenset((*FACTS, PAYLOAD))
_WHOLE_NUMBERS = ("sent", "arrival", "sequence", "copy")
_LINES_AT_ONCE = 1000
_encode = msgspec.json.Encoder().encode

Row = tuple[str, bytes, tuple[Any, ...]]
"""Topic, payload, and the facts."""


def rows(sendings: Iterable[Sending], topic: str | None = None) -> Iterator[Row]:
    """Yield the rows of a topic, or of all that was sent and noted."""
    for at, sender, its_topic, payload, fates, number in sendings:
        if topic is not None and its_topic != topic:
            continue
        for arrival, receiver, copy, lost in fates:
            yield its_topic, payload or b"", (at, arrival, sender, receiver, number, copy, lost)
        if not fates:
            yield its_topic, payload or b"", (at, None, sender, None, number, None, None)


def columns(sendings: Iterable[Sending], topic: str) -> dict[str, list[Any]]:
    """Return a topic as columns: the facts, and the fields of its payloads by their dotted names."""
    found: dict[str, list[Any]] = {name: [] for name in FACTS}
    for count, (_, payload, facts) in enumerate(rows(sendings, topic)):
        for name, value in zip(FACTS, facts, strict=True):
            found[name].append(value)
        for name, value in _fields(payload).items():
            column = found.get(name)
            if column is None:
                column = found[name] = [None] * count
            column.append(value)
        for column in found.values():
            if len(column) <= count:
                column.append(None)
    return found


def _fields(payload: bytes) -> dict[str, Any]:
    """Return the fields of a payload; one that has none is a field itself.

    Names that are taken are kept apart: those of facts, of whole payloads, and dotted ones that another field has, too.
    """
    value = decoded(payload)
    if is_nothing(value):
        return {PAYLOAD: payload}
    if not isinstance(value, dict):
        return {PAYLOAD: value}
    fields: dict[str, Any] = {}
    for name, each in _flattened("", value):
        while name in fields or name in _TAKEN:
            name += "_"
        fields[name] = each
    return fields


def _flattened(path: str, value: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, each in value.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(each, dict) and each:
            yield from _flattened(name, each)
        else:
            yield name, each


# --- What is made of them ---


def frame_of(sendings: Iterable[Sending], topic: str) -> Any:
    """Return a topic as a pandas DataFrame."""
    pandas = _library("pandas", "a frame")
    table = columns(sendings, topic)
    whole = {
        name: pandas.array(table[name], dtype="Int64") for name in _WHOLE_NUMBERS
    }  # Exact, also where one is missing.
    return pandas.DataFrame({**table, **whole})


def parquet_of(sendings: Iterable[Sending], topic: str | None) -> bytes:
    """Return a topic, or everything, as a Parquet file."""
    arrow = _library("pyarrow", "Parquet")
    writer = import_module("pyarrow.parquet")
    table = columns(sendings, topic) if topic is not None else _everything(sendings)
    file = io.BytesIO()
    writer.write_table(arrow.table({name: _arrow_array(arrow, values) for name, values in table.items()}), file)
    return file.getvalue()


def _arrow_array(arrow: Any, values: list[Any]) -> Any:
    """Return a column; as texts, if its values are of kinds that don't go together."""
    try:
        return arrow.array(values)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError):
        return arrow.array([None if each is None else _text(each) for each in values])


def _everything(sendings: Iterable[Sending]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in (*FACTS, "topic", PAYLOAD)}
    for topic, payload, facts in rows(sendings):
        for name, value in zip(found, (*facts, topic, payload), strict=True):
            found[name].append(value)
    return found


def csv_of(sendings: Iterable[Sending], topic: str | None) -> Iterator[bytes]:
    """Yield a topic, or everything, as pieces of a CSV file."""
    if topic is None:
        lines: Iterable[Sequence[Any]] = ((*facts, name, payload) for name, payload, facts in rows(sendings))
        yield from _csv((*FACTS, "topic", PAYLOAD), lines)
    else:
        table = columns(sendings, topic)
        yield from _csv(tuple(table), zip(*table.values(), strict=True))


def _csv(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> Iterator[bytes]:
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
        raise UsageError(f"{what} needs {name}, which isn't installed", advice=f"pip install {name}") from error


# A run as a trace that Chrome (about://tracing) and Perfetto show: members as rows, messages as arrows.
#
# Times there are microseconds; fractions keep the nanoseconds. An arrow leads from a slice to a slice, so a send and a
# reception are slices, of a nanosecond each.

_US = 1000
_MOMENT = 1 / _US
_PIECE = 2**16
_encode_trace = msgspec.json.Encoder().encode


def chrome_trace_of(name: str, account: Account, topic: str | None = None) -> Iterator[bytes]:
    """Yield pieces of the JSON of a topic, or of everything, of a run of that name."""
    piece = bytearray(b'{"displayTimeUnit":"ns","traceEvents":[')
    piece += _encode_trace(_naming("process_name", 0, name))
    for event in _events(account, topic):
        piece += b",\n" + _encode_trace(event)
        if len(piece) >= _PIECE:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece) + b"]}\n"


def _events(account: Account, topic: str | None) -> Iterator[dict[str, Any]]:
    rows: dict[str, int] = {}
    for name in sorted(account.stays):
        rows[name] = len(rows) + 1
        yield _naming("thread_name", rows[name], named(name))
    flow = 0
    for at, sender, its_topic, payload, fates, number in account.sendings:
        if topic is not None and its_topic != topic:
            continue
        for name in (sender, *(fate[1] for fate in fates)):
            if name not in rows:
                rows[name] = len(rows) + 1
                yield _naming("thread_name", rows[name], named(name))
        told = {"payload": payload_text(payload or b""), "sequence": number}
        if its_topic in NOTES and not fates:
            yield {"ph": "i", "s": "t", "cat": "note", **_place(NOTES[its_topic], rows[sender], at), "args": told}
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
