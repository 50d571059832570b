"""Reads a trace for its picture: which messages there were and what became of them, and what else happened to whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from worldline.model.time import format_time
from worldline.nodes.trace import NodeRecord

Fate = Literal["received", "dropped", "lost", "under way"]


class DrawnMessage(Struct, frozen=True, kw_only=True):
    """A message, or one copy of it. `end` is when it arrived, or would have; None if nothing says when."""

    sender: int
    receiver: int
    sent: int
    end: int | None
    fate: Fate
    what: str
    text: str
    reason: str = ""

    def __str__(self) -> str:
        became = self.fate if self.fate in ("lost", "under way") or self.end is None else self._ended(self.end)
        reason = f" ({self.reason})" if self.reason else ""
        times = f"sent at {format_time(self.sent)}, {became}{reason}"
        return f"{self.what} {self.sender} → {self.receiver}, {times}: {self.text}"

    def _ended(self, end: int) -> str:
        return f"{self.fate} at {format_time(end)}, after {format_time(end - self.sent)}"


class Span(Struct, frozen=True):
    """From when to when something was so; None: to the end. `nodes` are those whom it concerns."""

    start: int
    end: int | None
    nodes: tuple[int, ...]
    text: str


class Note(Struct, frozen=True):
    """What was logged at one moment by one node."""

    at: int
    node: int
    lines: tuple[str, ...]


class NodesPicture(Struct, frozen=True, kw_only=True):
    """All that a picture shows."""

    begin: int
    end: int
    messages: tuple[DrawnMessage, ...]
    kinds: tuple[str, ...]  # Of messages, in the order in which they came up.
    marks: tuple[NodeRecord, ...]  # What the simulator did to nodes.
    notes: tuple[Note, ...]
    downs: tuple[Span, ...]
    partitions: tuple[Span, ...]
    others: tuple[NodeRecord, ...]  # What happened in the network besides partitions.


def told(records: Sequence[NodeRecord], until: int | None = None) -> NodesPicture:
    """Make the story of some records, which are in the order in which things happened."""
    messages = _messages(records)
    times = [record.at for record in records] + [message.sent for message in messages]
    downs = _spans(records, "Crash", "Recover")
    partitions = _spans(records, "Partition", "Repair")
    ended = [span.end for span in partitions]
    return NodesPicture(
        begin=min(times, default=0),
        end=max([*times, until or 0]),
        messages=tuple(messages),
        kinds=tuple(dict.fromkeys(record.what for record in records if record.peer is not None)),
        marks=tuple(record for record in records if record.kind == "received" and record.peer is None),
        notes=tuple(_notes(records)),
        downs=tuple(downs),
        partitions=tuple(partitions),
        others=tuple(
            record
            for record in records
            if record.kind == "happened"
            and record.what != "Partition"
            and not (record.what == "Repair" and record.at in ended)
        ),
    )


# -- Messages


def _messages(records: Iterable[NodeRecord]) -> list[DrawnMessage]:
    """Match what was sent with what came of it, in order: what arrives when it should; what was kept back, later."""
    found: list[DrawnMessage] = []
    open_ones: dict[tuple[int, int, int], list[tuple[int, NodeRecord]]] = {}
    for record in records:
        if record.node is None or record.peer is None:
            continue
        if record.kind == "sent":
            key = (record.node, record.peer, record.at)
            open_ones.setdefault(key, []).extend((arrival, record) for arrival in record.arrivals)
            if not record.arrivals:
                found.append(_sent(record, None, "lost"))
        elif record.kind in ("received", "dropped"):
            sent = record.at if record.sent is None else record.sent
            _settle(open_ones.get((record.peer, record.node, sent), []), record)
            fate: Fate = "received" if record.kind == "received" else "dropped"
            found.append(
                DrawnMessage(
                    sender=record.peer,
                    receiver=record.node,
                    sent=sent,
                    end=record.at,
                    fate=fate,
                    what=record.what,
                    text=record.text,
                    reason=record.reason,
                )
            )
    found += [_sent(record, arrival, "under way") for rest in open_ones.values() for arrival, record in rest]
    return found


def _sent(record: NodeRecord, end: int | None, fate: Fate) -> DrawnMessage:
    assert record.node is not None
    assert record.peer is not None
    return DrawnMessage(
        sender=record.node,
        receiver=record.peer,
        sent=record.at,
        end=end,
        fate=fate,
        what=record.what,
        text=record.text,
        reason=record.reason,
    )


def _settle(open_ones: list[tuple[int, NodeRecord]], record: NodeRecord) -> None:
    """Take out what has come to its end by this record."""
    punctual = (place for place, (arrival, _) in enumerate(open_ones) if arrival == record.at)
    late = (
        place
        for place, (arrival, sent) in enumerate(open_ones)
        if arrival < record.at and (sent.what, sent.text) == (record.what, record.text)
    )
    place = next(punctual, None)
    if place is None:
        place = next(late, None)
    if place is not None:
        del open_ones[place]


# -- Everything else


def _spans(records: Iterable[NodeRecord], begins: str, ends: str) -> list[Span]:
    """Return what lasts from one record to another: a node's crash until it recovers, partitions until the repair."""
    found: list[Span] = []
    running: list[NodeRecord] = []
    for record in records:
        if record.peer is not None or record.kind not in ("received", "happened"):
            continue
        if record.what == begins:
            running.append(record)
        elif record.what == ends:
            found += [_span(each, record.at) for each in running if each.node == record.node]
            running = [each for each in running if each.node != record.node]
    return [*found, *(_span(each, None) for each in running)]


def _span(record: NodeRecord, end: int | None) -> Span:
    named = tuple(int(word) for word in record.text.split() if word.isdecimal())
    return Span(record.at, end, named if record.node is None else (record.node,), record.text)


def _notes(records: Iterable[NodeRecord]) -> list[Note]:
    lines: dict[tuple[int, int], list[str]] = {}
    for record in records:
        if record.kind == "logged" and record.node is not None:
            lines.setdefault((record.at, record.node), []).append(record.text)
    return [Note(at, node, tuple(texts)) for (at, node), texts in lines.items()]
