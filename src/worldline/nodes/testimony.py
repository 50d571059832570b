"""Tells a observer, such as a recorder, what a trace says."""

from __future__ import annotations

from msgspec import json

from worldline.history.observer import Observer
from worldline.nodes.ends import name_of
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.trace import Record

LOG, META = "worldline/log", "worldline/meta"
"""The topics of what isn't a message: lines that nodes have written, and what the simulator did to them."""

UNDER_WAY = "still under way at the end"

_encode = json.Encoder(order="deterministic").encode


def testify(run: Scheduler, observer: Observer) -> None:
    """Tell all that has happened in a run that was traced: who took part, what was sent, and what became of it.

    Topics are the kinds of messages. Payloads are JSON.
    """
    histories = run.histories()
    for name, _, _ in histories:
        observer.began(name, 0)
    dropped = _dropped(run.records)
    sequences: dict[str, int] = {}
    for record in run.records:
        sender = "" if record.node is None else name_of(record.node, run.num_nodes)
        sequence = sequences.get(sender, 0)
        if record.kind == "sent":
            _tell_message(run, observer, record, sender, sequence, dropped)
        elif record.kind == "logged":
            observer.sent(sender, sequence, LOG, record.at, _encode({"text": record.text}), record.at)
        elif record.peer is None:
            observer.sent(sender, sequence, META, record.at, _encode({"text": record.text}), record.at)
        else:
            continue
        sequences[sender] = sequence + 1
    for name, end, history in histories:
        observer.ended(name, end, history)


def _tell_message(
    run: Scheduler,
    observer: Observer,
    record: Record,
    sender: str,
    sequence: int,
    dropped: dict[tuple[int | None, ...], list[str]],
) -> None:
    assert record.peer is not None
    receiver = name_of(record.peer, run.num_nodes)
    expiry = min(max(record.arrivals, default=record.at + 1), run.now + 1)
    observer.sent(sender, sequence, record.what, record.at, _encode(record.data), expiry)
    for copy, arrival in enumerate(record.arrivals):
        reasons = dropped.get((record.node, record.peer, record.at, arrival))
        if arrival > run.now:
            observer.arrives(sender, sequence, receiver, run.now + 1, copy, UNDER_WAY)
        else:
            observer.arrives(sender, sequence, receiver, arrival, copy, reasons.pop(0) if reasons else None)
    if not record.arrivals:
        observer.arrives(sender, sequence, receiver, record.at + 1, 0, record.reason)


def _dropped(records: list[Record]) -> dict[tuple[int | None, ...], list[str]]:
    """Return why messages were dropped where they arrived, by sender, receiver, when it was sent and arrived."""
    found: dict[tuple[int | None, ...], list[str]] = {}
    for record in records:
        if record.kind == "dropped":
            found.setdefault((record.peer, record.node, record.sent, record.at), []).append(record.reason)
    return found
