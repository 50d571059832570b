"""A run as a trace that Chrome (about://tracing) and Perfetto show: members as rows, messages as arrows.

Times there are microseconds; fractions keep the nanoseconds. An arrow leads from a slice to a slice, so a send and a
reception are slices, of a nanosecond each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from worldline.history.account import Account
from worldline.history.steps import NOTES, named
from worldline.history.values import payload_text

_US = 1000
_MOMENT = 1 / _US
_PIECE = 2**16
_encode = msgspec.json.Encoder().encode


def chrome_trace_of(name: str, account: Account, topic: str | None = None) -> Iterator[bytes]:
    """Yield pieces of the JSON of a topic, or of everything, of a run of that name."""
    piece = bytearray(b'{"displayTimeUnit":"ns","traceEvents":[')
    piece += _encode(_naming("process_name", 0, name))
    for event in _events(account, topic):
        piece += b",\n" + _encode(event)
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
