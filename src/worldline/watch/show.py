"""What a page is shown of one run, and what it can have done: the same for a run that goes on and for a recording.

A page asks for what it hasn't got (`news`), for a message that was clicked, and for a signal that was picked. What it
wants done is an order: `pause`, `resume`, `step`, `end`, or `do` with a command. A recording takes none. A page that is
a file has all of that in it (`packed`), up to a size that a browser still reads: of long runs, all messages, but
neither all payloads nor all signals.
"""

from __future__ import annotations

import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from math import inf
from typing import Any, NamedTuple, Protocol
from zlib import compress

from msgspec import json

from worldline.history.account import NOTES, Sending
from worldline.history.fields import fields_of, payload_text
from worldline.history.observer import MEASURE
from worldline.model.errors import UsageError, nearest, shown
from worldline.model.text import printable
from worldline.pictures.page import Page, title_of, written_page
from worldline.recording.signals import Decode, read
from worldline.watch.scene import Motions, reads_worlds
from worldline.watch.tape import ROWS_AT_ONCE, Tape

POINTS_MAX = 20_000
"""How many points of a signal a page is given: no screen shows more."""

PACKED_MESSAGES_MAX, PACKED_BYTES_MAX = 20_000, 2**21
"""Messages whose payloads go into a file, and how many bytes of payloads."""

PACKED_POINTS_MAX = 150_000
"""Points of signals that go into a file."""

_UNPLOTTED = NOTES.keys() - {"worldline/log", "worldline/measure", "worldline/record"}  # Whose numbers count nothing.
_TEXT_MAX = 20_000
_FIELDS_MAX = 500  # Of a topic.
_LOOKED_AT, _VALUES_LOOKED_AT = 200, 10_000  # Messages of a topic whose fields are listed, and how many these have.


Lines = dict[str, tuple[list[int], list[float]]]
"""Times and values of a field, by sender."""


class Fields(NamedTuple):
    """The numeric fields of each topic, and one to begin with, which goes up and down if any does: topic and field."""

    fields: dict[str, list[str]]
    lively: list[str] | None


class MessageSource(Protocol):
    """Where a show has its messages from, when they are asked for."""

    def payload(self, row: dict[str, Any]) -> bytes | None:
        """Return the payload of a row; None if it isn't kept."""

    def sendings(
        self, start: int = 0, stop: int | None = None, topics: Container[str] | None = None
    ) -> Iterable[Sending]:
        """Yield what was sent, as far as it is kept; of a run that goes on, in the rows between these, and on these
        topics."""


class Show:
    """A run as pages see it. `facts` say what it is, `status` how it is; both are told with all news."""

    def __init__(
        self,
        facts: dict[str, Any],
        tape: Tape,
        *,
        source: MessageSource | None = None,
        order: Callable[[str, dict[str, Any]], str] | None = None,
        look: Callable[[], dict[str, Any]] = dict,
        decoder: Callable[[str], Decode] = lambda _: read,
    ) -> None:
        self.tape = tape
        self.facts = {"orders": [], **facts}
        self.status: dict[str, Any] = {"phase": "loading"}
        self.reading: threading.Thread | None = None  # Fills the tape, if it is read in the background.
        self._source: MessageSource = tape if source is None else source
        self._order = order
        self._look = look
        self._decoder = reads_worlds(decoder) if facts.get("room") == "world" else decoder  # Of a topic's payloads.
        self._watched = 0.0
        self._motions = Motions()
        self._moved = 0  # How many rows are in there.
        self._motions_lock = threading.Lock()
        self.placements: list[tuple[int, dict[str, str]]] = []  # Which secondary has which mover, from when on.

    @property
    def is_watched(self) -> bool:
        """Whether a page has asked for news just now: if none does, nothing has to be found out for it."""
        return time.monotonic() - self._watched < 3

    def news(self, have: dict[str, int], rows_max: int = ROWS_AT_ONCE) -> bytes:
        """Return what a page hasn't got."""
        self._watched = time.monotonic()
        return self.tape.since(have, {"facts": self.facts, "status": {**self.status, **self._look()}}, rows_max)

    def message(self, place: int) -> dict[str, Any]:
        """Return all of one message."""
        row = self.tape.row(place)
        if row is None:
            raise UsageError("this message isn't kept any more", advice="record the run, and view the recording")
        return self._with_payload(row, self._source.payload(row))

    def _with_payload(self, row: dict[str, Any], payload: bytes | None) -> dict[str, Any]:
        """Return a row with its payload as a text, if that is kept."""
        if payload is None:
            return {**row, "payload": None, "bytes": None}
        return {**row, "payload": _text(payload, self._decoder(row["topic"])), "bytes": len(payload)}

    def fields(self) -> Fields:
        """Return what numbers there are in messages."""
        found: dict[str, dict[str, None]] = {}
        looked: Counter[str] = Counter()
        values: Counter[str] = Counter()
        moves: dict[tuple[str, str], tuple[float, bool, bool]] = {}  # A field's last value, whether it rose, and fell.
        for _, _, topic, payload, _, _ in self._source.sendings():
            if payload is None or topic in _UNPLOTTED:
                continue
            if topic != MEASURE and (looked[topic] >= _LOOKED_AT or values[topic] >= _VALUES_LOOKED_AT):
                continue  # What is measured last may be what matters: how an episode went.
            looked[topic] += 1
            names = found.setdefault(topic, {})
            for name, value in numbers_in(self._decoder(topic)(payload)):
                names[name] = None
                values[topic] += 1
                last, rose, fell = moves.get((topic, name), (value, False, False))
                moves[topic, name] = value, rose or value > last, fell or value < last
        listed = {topic: list(names)[:_FIELDS_MAX] for topic, names in sorted(found.items()) if names}
        plotted = [(topic, name) for topic in listed if topic not in NOTES for name in listed[topic]]
        lively = max(plotted, key=lambda each: sum(moves[each][1:]), default=None)  # The first of those that move most.
        return Fields(
            {printable(topic): names for topic, names in listed.items()},
            None if lively is None else [printable(lively[0]), lively[1]],
        )

    def signal(self, topic: str, field: str) -> dict[str, Any]:
        """Return a field of a topic over time, for each sender of it."""
        found = self.signals({topic: [field]})
        if not found:
            known = self.fields().fields
            advice = nearest(field, known[topic]) if topic in known else nearest(topic, list(known))
            raise UsageError(f"no message has the field {shown(field)} on {shown(topic)}", advice=advice)
        return found[0]

    def signals(self, wanted: dict[str, list[str]]) -> list[dict[str, Any]]:
        """Return some fields of some topics over time, all from one walk through what was sent."""
        fields = {(topic, name): Lines() for topic, names in wanted.items() for name in names}
        for sent, sender, its_topic, payload, _, _ in self._source.sendings(topics=wanted):
            topic = printable(its_topic)
            if topic not in wanted or payload is None:
                continue
            for name, value in numbers_in(self._decoder(its_topic)(payload)):
                lines = fields.get((topic, name))
                if lines is not None:
                    times, values = lines.setdefault(printable(sender), ([], []))
                    times.append(sent)
                    values.append(value)
        return [
            {"topic": topic, "field": name, "lines": [_thinned(who, *line) for who, line in lines.items()]}
            for (topic, name), lines in fields.items()
            if lines
        ]

    def payloads(self, count: int) -> Iterator[bytes]:
        """Yield the payloads of the first rows, from one walk."""
        rows = (
            payload or b""
            for _, _, topic, payload, fates, _ in self._source.sendings()
            if fates or topic not in NOTES
            for _ in (fates or (None,))
        )
        return islice(rows, count)

    def scene(self, have: int = 0, stride: int = 0) -> dict[str, Any] | None:
        """Return the solids of a world and how they move, as far as a page hasn't got it, if it is one."""
        if self.reading is not None:
            self.reading.join()
        with self._motions_lock:
            start, self._moved = self._moved, len(self.tape)
            if start < self._moved:
                self._motions.take(self._source.sendings(start, self._moved))
            found = self._motions.scene(have, stride)
        return None if found is None else {**found, "placements": self.placements}

    def packed(self) -> dict[str, Any]:
        """Return all that a page could ask for, as it is answered."""
        if self.reading is not None:
            self.reading.join()
        fields, signals, points = self.fields(), {}, 0
        for found in self.signals(fields.fields):
            points += sum(len(line["times"]) for line in found["lines"])
            if points <= PACKED_POINTS_MAX:
                signals[f"{found['topic']} {found['field']}"] = found
        messages, size = [], 0
        for place, payload in enumerate(self.payloads(PACKED_MESSAGES_MAX)):
            size += len(payload)
            if size > PACKED_BYTES_MAX:
                break
            row = self.tape.row(place)
            if row is not None:
                messages.append(self._with_payload(row, payload))
        return {
            "news": b64encode(self.news({}, rows_max=2**62)).decode(),
            "messages": messages,
            "fields": fields._asdict(),
            "signals": signals,
            "scene": self.scene(),
        }

    def page(self) -> Page:
        """Return the page as a file, which needs no server."""
        packed = b64encode(compress(json.encode([self.packed()]))).decode()
        return written_page(title_of([self.facts]), {"shows": [self.facts], "packed": packed})

    def order(self, name: str, given: dict[str, Any]) -> str:
        """Do what a page wants done, and say what came of it."""
        if self._order is None:
            raise UsageError("a recording can't be driven: it is over")
        return self._order(name, given)


def numbers_in(value: Any) -> Iterator[tuple[str, float]]:
    """Yield the numbers in a payload that was read, by the names of their fields; one that is a number has none."""
    for name, each in fields_of(value):
        if isinstance(each, int | float) and abs(each) < inf:
            with suppress(OverflowError):  # No float is as large as that.
                yield name, float(each)


def _thinned(who: str, times: list[int], values: list[float]) -> dict[str, Any]:
    """Return a line with at most so many points: of each stretch the least and the greatest, so no peak is lost."""
    count = len(times)
    if count <= POINTS_MAX:
        return {"who": who, "times": times, "values": values}
    stretch = -(-2 * count // POINTS_MAX)
    kept: list[int] = []
    for start in range(0, count, stretch):
        places = range(start, min(start + stretch, count))
        kept += sorted({min(places, key=values.__getitem__), max(places, key=values.__getitem__)})
    return {"who": who, "times": [times[i] for i in kept], "values": [values[i] for i in kept]}


def _text(payload: bytes, decode: Decode) -> str:
    """Return a payload as it is shown: all of it, if it is a text of ordinary length."""
    try:
        text = payload.decode() if payload else ""
    except UnicodeDecodeError:
        value = decode(payload)
        text = payload_text(payload) if isinstance(value, bytes) else repr(value)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}… ({len(payload):,} bytes)"


def in_background(work: Callable[[], None], show: Show) -> threading.Thread:
    """Do what takes a while in a thread of its own; what goes wrong there is what the page says."""

    def run() -> None:
        try:
            work()
        except Exception as error:  # Whatever it is, the page is where it can be seen.
            show.status = {**show.status, "phase": "failed", "failure": str(error)}

    thread = threading.Thread(target=run, name="worldline page", daemon=True)
    thread.start()
    return thread
