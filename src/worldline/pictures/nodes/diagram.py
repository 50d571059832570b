"""Draws a run as a space-time diagram: a lifeline for each node, time to the right, messages as arrows between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from worldline.model.errors import WorldlineError
from worldline.model.text import counted
from worldline.model.time import DAY, HOUR, MINUTE, MS, NS, SECOND, US, format_time
from worldline.nodes.trace import NodeRecord
from worldline.pictures import svg
from worldline.pictures.sheet import (
    SMALL,
    Arrow,
    Lines,
    Sample,
    Sheet,
    axes,
    chosen,
    counts,
    fading_sample,
    line_sample,
    ticks_between,
)
from worldline.pictures.svg import LabelSpace, Parts, Point

# Reads a trace: which messages there were and what became of them, and what else happened to which nodes.

Fate = Literal["received", "dropped", "lost", "under way"]
_FATES = {"received": "received", "lost": "lost", "dropped": "dropped", "under way": "under way at the end"}


class DrawnMessage(NamedTuple):
    """A message, or one copy of it. `end` is when it arrived, or would have; None if nothing says when."""

    sender: int
    receiver: int
    sent: int
    end: int | None
    fate: Fate
    record: NodeRecord

    def __str__(self) -> str:
        became: str = self.fate
        if self.fate in ("received", "dropped") and self.end is not None:
            became = f"{self.fate} at {format_time(self.end)}, after {format_time(self.end - self.sent)}"
        reason = f" ({self.record.reason})" if self.record.reason else ""
        times = f"sent at {format_time(self.sent)}, {became}{reason}"
        return f"{self.record.what} {self.sender} → {self.receiver}, {times}: {self.record.text}"


class Span(NamedTuple):
    """From when to when something was so; None: to the end. `nodes` are those that it concerns."""

    start: int
    end: int | None
    nodes: tuple[int, ...]
    text: str


class NodesPicture(NamedTuple):
    """All that a picture shows."""

    begin: int
    end: int
    messages: list[DrawnMessage]
    kinds: list[str]  # Of messages, in the order in which they came up.
    marks: list[NodeRecord]  # What the simulator did to nodes.
    notes: dict[tuple[int, int], list[str]]  # What was logged, by time and node.
    downs: list[Span]
    happened: list[tuple[int, str]]  # What happened in the network, and when.
    partitions: list[Span]


def told(records: Sequence[NodeRecord], until: int | None = None) -> NodesPicture:
    """Make the story of some records, which are in the order in which things happened."""
    messages = _messages(records)
    times = [record.at for record in records] + [message.sent for message in messages]
    partitions = _spans(records, "Partition", "Repair")
    repairs = dict.fromkeys(span.end for span in partitions if span.end is not None)
    notes: dict[tuple[int, int], list[str]] = {}
    for record in records:
        if record.kind == "logged" and record.node is not None:
            notes.setdefault((record.at, record.node), []).append(record.text)
    happened = [(span.start, span.text) for span in partitions] + [(end, "Repair") for end in repairs]
    happened += [
        (record.at, record.text)
        for record in records
        if record.kind == "happened"
        and record.what != "Partition"
        and not (record.what == "Repair" and record.at in repairs)
    ]
    return NodesPicture(
        begin=min(times, default=0),
        end=max([*times, until or 0]),
        messages=messages,
        kinds=list(dict.fromkeys(record.what for record in records if record.peer is not None)),
        marks=[record for record in records if record.kind == "received" and record.peer is None],
        notes=notes,
        downs=_spans(records, "Crash", "Recover"),
        happened=sorted(happened),
        partitions=partitions,
    )


def _messages(records: Iterable[NodeRecord]) -> list[DrawnMessage]:
    """Match what was sent with what came of it, in order: what arrives when it should; what was kept back, later."""
    found: list[DrawnMessage] = []
    open_ones: dict[tuple[int, int, int], list[tuple[int, NodeRecord]]] = {}
    for record in records:
        node, peer = record.node, record.peer
        if node is None or peer is None:
            continue
        if record.kind == "sent":
            key = (node, peer, record.at)
            open_ones.setdefault(key, []).extend((arrival, record) for arrival in record.arrivals)
            if not record.arrivals:
                found.append(DrawnMessage(node, peer, record.at, None, "lost", record))
        elif record.kind in ("received", "dropped"):
            sent = record.at if record.sent is None else record.sent
            _settle(open_ones.get((peer, node, sent), []), record)
            fate: Fate = "received" if record.kind == "received" else "dropped"
            found.append(DrawnMessage(peer, node, sent, record.at, fate, record))
    found += [
        DrawnMessage(sender, receiver, sent, arrival, "under way", record)
        for (sender, receiver, sent), rest in open_ones.items()
        for arrival, record in rest
    ]
    return found


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


WIDTH_MAX = 6_000
_NARROWEST = 820.0
RECORDS_MAX = 5_000
NODES_MAX = 300

_LABELS_UP_TO = 25  # Messages; with more of them, texts would cover everything.
_NOTES_UP_TO = 20
_MARKS_UP_TO = 16
_WIDE_TARGETS_UP_TO = 1_000  # Messages that are easy to hit with the mouse.
_LANES = 3
_HAPPENED_UP_TO = 36  # Letters.
_LANE = 18.0
_LABEL = 13.0  # The size of texts: to be read from the back of a room.
_DECIDING = 8  # So many of the last notes before a failure are written in any case.
_BEYOND = 34.0  # How far the picture goes on after the end: there messages fade that are still under way.
_NAMES_AGAIN_FROM = 1_300.0  # A picture as wide as that has the lifelines' names on both sides.

_LIFE = "#8a96a3"
_WELL = "#00734f"
_DEAD = "#a3adb8"
_BAND = "#fdf3d8"
_BAND_GROUP = "#f7dfa2"
_BAND_INK = "#8a6100"
_KINDS_UP_TO = 14

# Up to so many messages.
_LINES = (
    (_LABELS_UP_TO, Lines(1.6, 0.95, 9.0)),
    (100, Lines(1.3, 0.85, 8.0)),
    (400, Lines(1.1, 0.7, 7.0)),
    (1_000, Lines(0.9, 0.55, 6.0)),
    (math.inf, Lines(0.8, 0.4, 5.0)),
)
# Up to so many nodes: how far lifelines are from each other.
_GAPS = ((3, 110.0), (5, 88.0), (10, 64.0), (20, 42.0), (40, 28.0), (100, 18.0), (math.inf, 12.0))
_UNITS = {"d": DAY, "h": HOUR, "min": MINUTE, "s": SECOND, "ms": MS, "µs": US, "ns": NS}

# What stands for an event that isn't a message: its name, its color and its sign. The last is for all others.
_SIGNS: dict[str, tuple[str, str, Parts]] = {
    "Start": ("start", svg.INK, (("bar", 5, 2),)),
    "Timer": ("timer", svg.INK, (("rhomb", 4, 1),)),
    "Crash": ("crash", svg.ALARM, (("cross", 5, 2.6),)),
    "Recover": ("recovery", _WELL, (("ring", 4.5, 2),)),
    "LinkDown": ("link down", svg.ALARM, (("plug", 6, 2),)),
    "LinkUp": ("link up", _WELL, (("plus", 6, 2),)),
    "": ("other event", svg.SOFT, (("full square", 3, 0),)),
}


def diagram_svg(
    records: Sequence[NodeRecord],
    num_nodes: int,
    *,
    title: str = "",
    until: int | None = None,
    failure: WorldlineError | None = None,
) -> svg.Svg:
    """Draw the space-time diagram of a run. `until` is when it ended, if that was after the last record.

    `failure` is what it ended with, if it did: when and where stands out. Only so much is drawn as can be looked at:
    the first records, of the first nodes; the picture says so.
    """
    first, shown = records[:RECORDS_MAX], min(num_nodes, NODES_MAX)
    drawn = [record for record in first if max(record.node or 0, record.peer or 0) < shown]
    cuts = []
    if len(first) < len(records):
        cuts.append(f"Only the first {RECORDS_MAX:,} of {len(records):,} records are drawn.")
        until = failure = None
    if num_nodes > NODES_MAX:
        cuts.append(f"Only the first {NODES_MAX:,} of {num_nodes:,} nodes are drawn, and messages between these.")
    return _NodesDiagram(told(drawn, until), shown, title, failure).text(cuts)


class _NodesDiagram:
    def __init__(self, story: NodesPicture, num_nodes: int, title: str, failure: WorldlineError | None) -> None:
        self.story = story
        self.failure = failure if failure is not None and failure.at is not None else None
        self.num_nodes = num_nodes
        self.room = LabelSpace()
        self.looks = svg.looks_of(story.kinds)
        self.lines = chosen(_LINES, len(story.messages))
        self.gap = chosen(_GAPS, num_nodes)
        self.left = 34.0 + svg.text_width(str(num_nodes - 1), 15)
        self.right = self.left + self._chosen_width()
        self.usual_way = self._usual_way()
        width = self.right + _BEYOND + (self.left - 12 if self.is_wide else 14)
        self.lanes = self._lanes()
        # From above: the title, the legend, what happened in the network, the lifelines, and the time axis.
        self.sheet = Sheet(title, width, list(self._entries()))
        over = self.sheet.top + _LANE * (max(self.lanes, default=-1) + 1)
        self.ceiling = over + max(2.0, self.gap * 0.15)
        self.top = self.ceiling + max(14.0, self.gap * 0.3)
        self.floor = self.y(num_nodes - 1) + max(18.0, self.gap * 0.4)

    @property
    def shows_texts(self) -> bool:
        return len(self.story.messages) <= _LABELS_UP_TO

    @property
    def is_wide(self) -> bool:
        return self.right - self.left >= _NAMES_AGAIN_FROM

    def _chosen_width(self) -> float:
        """Choose a width: enough for what happens soon after each other, and for labels, but not without end."""
        story = self.story
        times: dict[int, dict[int, None]] = {}
        for message in story.messages:
            times.setdefault(message.sender, {})[message.sent] = None
            if message.end is not None and message.end <= story.end:
                times.setdefault(message.receiver, {})[message.end] = None
        for mark in story.marks:
            if mark.node is not None:
                times.setdefault(mark.node, {})[mark.at] = None
        gaps = sorted(later - earlier for own in times.values() for earlier, later in pairwise(sorted(own)))
        # A quarter of them may be closer than this: what happens in bursts can't all be drawn out.
        for_events = 10 * (story.end - story.begin) / gaps[len(gaps) // 4] if gaps else 0.0
        # How many messages go from one lifeline to the next, or past it, on average.
        crossing = sum(abs(each.sender - each.receiver) for each in story.messages) / max(1, self.num_nodes - 1)
        for_labels = 46.0 * len(story.messages) if self.shows_texts else 0.0
        wanted = max(for_events, 18.0 * crossing, for_labels, _NARROWEST)
        return float(round(min(wanted, _NARROWEST + 6.0 * sum(map(len, times.values())), WIDTH_MAX)))

    def _entries(self) -> Iterator[tuple[str, Sample]]:
        """Yield what the legend explains."""
        story = self.story
        sent = [message.record.what for message in story.messages]
        for kind, look in list(self.looks.items())[:_KINDS_UP_TO]:
            text = f"{svg.shortened(kind, 40)} ({sent.count(kind):,})"
            yield text, line_sample(look.color, 1.6, look.dashes, self.lines.head)
        if len(self.looks) > _KINDS_UP_TO:
            yield f"and {len(self.looks) - _KINDS_UP_TO} other kinds", lambda _x, _y: ""
        fates = [message.fate for message in story.messages]
        if "lost" in fates or "dropped" in fates:
            yield "lost", _lost_sample
        if "under way" in fates:
            yield "still under way", fading_sample(1.6)
        shown = [mark.what if mark.what in _SIGNS else "" for mark in story.marks]
        for what, (name, _, _) in _SIGNS.items():
            if what in shown:
                yield name, lambda x, y, what=what: _glyph(what, x + 12, y)  # type: ignore[misc]
        if story.notes:
            yield "logged", lambda x, y: svg.element("circle", cx=x + 12, cy=y, r=2.2)
        if self.failure is not None:
            yield "here it went wrong", lambda x, y: _failure_sign(x + 12, y)

    # -- Where things are

    def x(self, time: float) -> float:
        span = self.story.end - self.story.begin
        return self.left + ((self.right - self.left) * (time - self.story.begin) / span if span else 0.0)

    def y(self, node: int) -> float:
        return self.top + self.gap * node

    # -- The whole

    def text(self, cuts: Sequence[str]) -> svg.Svg:
        # What was noted decides, so it gets a place before what is also told by a sign or a color.
        notes, marks, labels = self._notes(), self._marks(), self._message_labels()
        content = [
            *self._network(),
            *self._axis(),
            *self._lifelines(),
            *self._arrows(),
            *marks,
            *notes,
            *labels,
            *self._failure(),
        ]
        style = (
            ".worldline-diagram .message:hover path{stroke-opacity:1;stroke-width:3}"
            ".worldline-diagram .message:hover .target{stroke-opacity:0}"
        )
        return self.sheet.text(
            content,
            [self._caption(), *cuts],
            self.floor + 44,
            kind="diagram",
            untitled="Space-time diagram",
            alarms=[] if self.failure is None else [str(self.failure)],
            definitions=[svg.arrow_head(color, self.lines.head) for color in self._colors()],
            style=style,
        )

    def _caption(self) -> str:
        fates = [message.fate for message in self.story.messages]
        nodes, messages = counted(self.num_nodes, "node"), counted(len(fates), "message")
        return f"{nodes}, {messages}: {counts(_FATES, fates)}" if fates else f"{nodes}, no messages"

    def _colors(self) -> list[str]:
        return list(dict.fromkeys(look.color for look in self.looks.values()))

    # -- Time and lifelines

    def _axis(self) -> list[str]:
        begin, end = self.story.begin, self.story.end
        unit, size = next(((unit, size) for unit, size in _UNITS.items() if end >= 2 * size), ("ns", NS))
        ticks = ticks_between(begin / size, end / size, min((self.right - self.left) / 90, end - begin))
        box = (self.left, self.ceiling, self.right + _BEYOND, self.floor)
        unit = ticks.titled(unit)
        at = (self.left - 8, self.floor + 15)
        return [
            *axes(box, ticks.placed(lambda time: self.x(time * size)), (), ("", "")),
            svg.text_at(*at, unit, size=SMALL, fill=svg.SOFT, text_anchor="end", font_style="italic"),
        ]

    def _lifelines(self) -> list[str]:
        downs: dict[int, list[tuple[float, float]]] = {}
        for span in self.story.downs:
            end = self.right + _BEYOND if span.end is None else self.x(span.end)
            downs.setdefault(span.nodes[0], []).append((self.x(span.start), end))
        drawn = []
        for node in range(self.num_nodes):
            y, at = self.y(node), self.left - 8.0
            parts = []
            for start, end in (*downs.get(node, ()), (self.right + _BEYOND, self.right + _BEYOND)):
                if start > at:
                    parts.append(svg.path(((at, y), (start, y)), stroke=_LIFE))
                if end > start:
                    parts.append(svg.path(((start, y), (end, y)), class_="down", stroke=_DEAD, stroke_dasharray="2 4"))
                at = max(at, end)
            drawn.append(svg.element("g", parts, class_="lifeline", stroke_width=1.3))
        size = min(15.0, self.gap - 1)
        names = [
            svg.text_at(x, self.y(node) + size * 0.36, str(node), size=size, text_anchor=anchor)
            for x, anchor in ((self.left - 14, "end"), (self.right + _BEYOND + 6, "start"))[: 2 if self.is_wide else 1]
            for node in range(self.num_nodes)
        ]
        return [*drawn, svg.element("g", names, class_="names", font_weight=600)]

    # -- Messages

    def _arrows(self) -> Iterator[str]:
        is_target = len(self.story.messages) <= _WIDE_TARGETS_UP_TO
        arrows = (
            Arrow(self._ends(each), self.looks[each.record.what], str(each), each.fate, is_target)
            for each in self.story.messages
        )
        return self.lines.drawn(arrows, "message")

    def _ends(self, message: DrawnMessage) -> tuple[Point, Point]:
        """Return where a message's line begins and how far it gets."""
        start = (self.x(message.sent), self.y(message.sender))
        # Where nothing says when it would have arrived, it is taken to be as fast as messages usually are.
        arrival = start[0] + self.usual_way if message.end is None else self.x(message.end)
        goal = (arrival, self.y(message.receiver))
        if message.fate == "received":
            return start, goal
        if message.fate == "dropped":
            return start, svg.between(start, goal, max(0.0, 1 - 6.0 / svg.distance(start, goal)))
        limit = self.right + _BEYOND - 4
        if message.fate == "under way":
            return start, svg.between(start, goal, min(0.9, (limit - start[0]) / max(arrival - start[0], 1.0)))
        # What didn't get there should cover as little as possible.
        x, y = svg.between(start, goal, min(0.5, max(90.0, self.gap) / svg.distance(start, goal)))
        return start, (min(x, limit), y)

    def _usual_way(self) -> float:
        """Return how far to the right messages go, in the median."""
        ends = [(message.sent, message.end) for message in self.story.messages if message.end is not None]
        ways = sorted(self.x(end) - self.x(sent) for sent, end in ends)
        return max(ways[len(ways) // 2], 16.0) if ways else 60.0

    def _message_labels(self) -> list[str]:
        """Write messages along their arrows, if there are few, wherever that covers no other label."""
        if not self.shows_texts:
            return []
        drawn = []
        self.room.take((*self._ends(message)[1], 5.0) for message in self.story.messages)
        for message in self.story.messages:
            start, end = self._ends(message)
            length = svg.distance(start, end)
            record = message.record
            texts = (svg.shortened(each, 60) for each in (record.text, record.what))
            # A text isn't cut: the kind alone does as well.
            text = next((each for each in texts if svg.text_width(each, _LABEL) <= min(280.0, length - 34)), "")
            if not text:
                continue
            along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
            spot = self._free_spot(start, along, length, svg.text_width(text, _LABEL))
            if spot is not None:
                turn = " ".join(f"{value:.4f}" for value in (*along, -along[1], along[0]))
                turned = f"matrix({turn} {svg.number(spot[0])} {svg.number(spot[1])})"
                color = self.looks[message.record.what].color
                drawn.append(svg.element("text", svg.escaped(text), transform=turned, font_size=_LABEL, fill=color))
        return svg.haloed(drawn, class_="texts", text_anchor="middle")

    def _free_spot(self, start: Point, along: Point, length: float, width: float) -> Point | None:
        """Find a base line for a text just above a line, or below it."""
        for offset in (-4.0, 14.0):
            for share in (0.5, 0.4, 0.6, 0.32, 0.68, 0.25, 0.75):
                if width / 2 + 8 > length * min(share, 1 - share):
                    continue
                x = start[0] + along[0] * length * share - along[1] * offset
                y = start[1] + along[1] * length * share + along[0] * offset
                discs = svg.text_discs((x + along[1] * 4.5, y - along[0] * 4.5), width, _LABEL, along)
                if self.room.is_free(discs):
                    self.room.take(discs)
                    return x, y
        return None

    # -- What else happened to nodes

    def _marks(self) -> list[str]:
        drawn: list[str] = []
        named = [mark for mark in self.story.marks if mark.what != "Start"]
        for mark in self.story.marks:
            assert mark.node is not None
            x, y = self.x(mark.at), self.y(mark.node)
            said = svg.hover(f"{mark.node}: {mark.text}, at {format_time(mark.at)}")
            drawn.append(svg.element("g", (said, _glyph(mark.what, x, y)), class_="mark"))
        # The sign says that it is a timer; which one, needn't be said again and again.
        said_last: dict[int | None, str] = {}
        told = []
        for mark in named:
            text = svg.shortened(mark.text.removeprefix("Timer "), 24)
            if said_last.get(mark.node) != text:
                told.append((mark, text))
            said_last[mark.node] = text
        if len(told) > _MARKS_UP_TO:
            return drawn
        labels = []
        for mark, text in told:
            x, y = self.x(mark.at), self.y(mark.node or 0)
            color = svg.ALARM if mark.what in ("Crash", "LinkDown") else svg.INK
            spots = ((x + 7, y - 7), (x - 7 - svg.text_width(text, _LABEL), y - 7))
            labels.append(self.room.written(text, spots, _LABEL, fill=color, within=(-math.inf, self.sheet.width)))
        return [*drawn, *svg.haloed(labels, class_="mark-texts")]

    def _notes(self) -> list[str]:
        """Draw a dot under the lifeline for what was logged, and write it there if it isn't much."""
        dots, labels = [], []
        radius = 2.2 if self.gap >= 24 else 1.5
        below = min(7.0, self.gap * 0.3)
        writes = len(self.story.notes) if len(self.story.notes) <= _NOTES_UP_TO else _DECIDING if self.failure else 0
        for place, ((at, node), lines) in enumerate(reversed(self.story.notes.items())):
            x, y = self.x(at), self.y(node) + below
            text = "; ".join(lines)
            said = svg.hover(f"{node}, at {format_time(at)}: {text}")
            dots.append(svg.element("circle", said, cx=x, cy=y, r=radius, class_="note"))
            shown = svg.shortened(text, 30)
            before = x - 5 - svg.text_width(shown, _LABEL)
            spots = [(left, y + down) for down in (9, 24) for left in (x + 5, before)]
            if place < writes and self.gap >= 40:
                edges = (self.left, self.sheet.width - 4)
                labels.append(self.room.written(shown, spots, _LABEL, fill="#52606d", within=edges))
        return [svg.element("g", dots[::-1], fill=svg.INK), *svg.haloed(labels, class_="note-texts")]

    def _failure(self) -> list[str]:
        """Draw when something turned out to be wrong, and at which node, if it was at one that is drawn."""
        if self.failure is None or self.failure.at is None:
            return []
        name = (self.failure.participant or "").removeprefix("node ")
        node = int(name) if name.isdecimal() and int(name) < self.num_nodes else None
        x = self.x(self.failure.at)
        parts = [
            svg.hover(str(self.failure)),
            svg.path(((x, self.ceiling), (x, self.floor)), stroke=svg.ALARM, stroke_width=1.6, stroke_dasharray="7 3"),
        ]
        if node is not None:
            parts.append(svg.element("circle", cx=x, cy=self.y(node), r=13, fill=svg.ALARM, fill_opacity=0.18))
        parts.append(_failure_sign(x, self.ceiling if node is None else self.y(node)))
        return [svg.element("g", parts, class_="failure")]

    # -- What happened to the network

    def _lanes(self) -> list[int]:
        """Return the row above the diagram of each label of what happened, so that they don't cover each other."""
        ends = [0.0] * _LANES
        found = []
        for at, text in self.story.happened:
            x = self.x(at)
            found.append(next((lane for lane, end in enumerate(ends) if end <= x), _LANES - 1))
            ends[found[-1]] = x + svg.text_width(svg.shortened(text, _HAPPENED_UP_TO), _LABEL) + 12
        return found

    def _network(self) -> list[str]:
        """Draw partitions as bands, with the group that is cut off standing out, and a line for all that happened."""
        drawn = []
        half = min(9.0, self.gap * 0.4)
        for span in self.story.partitions:
            start, end = self.x(span.start), self.right + _BEYOND if span.end is None else self.x(span.end)
            bands = [(self.ceiling, self.floor - self.ceiling, _BAND)]
            bands += [(self.y(node) - half, 2 * half, _BAND_GROUP) for node in span.nodes if node < self.num_nodes]
            drawn_bands = [
                svg.element("rect", x=start, width=end - start, y=y, height=height, fill=fill)
                for y, height, fill in bands
            ]
            drawn.append(svg.element("g", (svg.hover(span.text), *drawn_bands), class_="partition"))
        for (at, text), lane in zip(self.story.happened, self.lanes, strict=True):
            label = svg.shortened(text, _HAPPENED_UP_TO)
            x, base = self.x(at), self.ceiling - 5 - lane * _LANE
            said = svg.hover(f"{text}, at {format_time(at)}")
            line = svg.path(((x, base + 2), (x, self.floor)), stroke=_BAND_INK, stroke_width=1, stroke_dasharray="5 4")
            written = svg.text_at(
                min(x + 4, self.sheet.width - svg.text_width(label, _LABEL) - 4),
                base,
                label,
                size=_LABEL,
                fill=_BAND_INK,
            )
            drawn.append(svg.element("g", (said, line, written), class_="happened"))
        return drawn


def _glyph(what: str, x: float, y: float) -> str:
    _, color, parts = _SIGNS.get(what, _SIGNS[""])
    return svg.sign(parts, x, y, color)


def _failure_sign(x: float, y: float) -> str:
    """Draw what stands for a property that doesn't hold, or an error."""
    triangle = f"{svg.way(((x, y - 9), (x + 9, y + 7), (x - 9, y + 7)))}z"
    mark = f"{svg.way(((x, y - 3.5), (x, y + 2)))}{svg.way(((x, y + 4), (x, y + 5.4)))}"
    return svg.element("path", d=triangle, fill=svg.ALARM) + svg.element(
        "path", d=mark, stroke=svg.PAPER, stroke_width=1.8
    )


def _lost_sample(x: float, y: float) -> str:
    line = svg.path(((x, y), (x + 20, y)), stroke=svg.SOFT, stroke_width=1.4, stroke_dasharray="4 3")
    return line + svg.element("path", d=svg.cross(x + 20, y, 3.6), stroke=svg.SOFT, stroke_width=1.6)
