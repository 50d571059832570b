"""Draws a run as a space-time diagram: a lifeline for each node, time to the right, messages as arrows between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from worldline.model.errors import WorldlineError
from worldline.model.text import counted
from worldline.model.time import format_time
from worldline.nodes.trace import NodeRecord
from worldline.pictures.nodes.happenings import DrawnMessage, NodesPicture, told
from worldline.pictures.plane import Disc, LabelSpace, Look, Point, between, distance, fading, looks_of, text_discs
from worldline.pictures.sheet import (
    GRID,
    Entry,
    Lines,
    Sheet,
    chosen,
    decimal,
    fading_sample,
    line_sample,
    ticks,
)
from worldline.pictures.svg import (
    ALARM,
    INK,
    PAPER,
    SOFT,
    Value,
    arrow_end,
    arrow_head,
    cross,
    element,
    escaped,
    fitted,
    haloed,
    hover,
    number,
    path,
    shortened,
    text_at,
    text_width,
    way,
)

# Chooses how wide a diagram is.

WIDTH_MAX = 6_000
_NARROWEST = 820.0


def width_of(story: NodesPicture, num_nodes: int, for_labels: float) -> float:
    """Choose a width: wide enough for what happens soon after each other, and for labels, but not without end."""
    times = _times(story)
    events = sum(map(len, times))
    gaps = sorted(later - earlier for own in times for earlier, later in pairwise(own))
    # A quarter of them may be closer than this: what happens in bursts can't all be drawn out.
    for_events = 10 * (story.end - story.begin) / gaps[len(gaps) // 4] if gaps else 0.0
    # How many messages go from one lifeline to the next, or past it, on average.
    crossing = sum(abs(each.sender - each.receiver) for each in story.messages) / max(1, num_nodes - 1)
    wanted = max(for_events, 18.0 * crossing, for_labels, _NARROWEST)
    return float(round(min(wanted, _NARROWEST + 6.0 * events, WIDTH_MAX)))


def _times(story: NodesPicture) -> list[list[int]]:
    """Return when something happens to a node, for each to whom something does."""
    times: dict[int, dict[int, None]] = {}
    for message in story.messages:
        times.setdefault(message.sender, {})[message.sent] = None
        if message.end is not None and message.end <= story.end:
            times.setdefault(message.receiver, {})[message.end] = None
    for mark in story.marks:
        if mark.node is not None:
            times.setdefault(mark.node, {})[mark.at] = None
    return [sorted(own) for own in times.values()]


# What stands for what in a space-time diagram, and how the legend explains it.

_KINDS_UP_TO = 14

_MARK_NAMES = {
    "Start": "start",
    "Timer": "timer",
    "Crash": "crash",
    "Recover": "recovery",
    "LinkDown": "link down",
    "LinkUp": "link up",
    "": "other event",
}
_WELL = "#00734f"


def entries_of(story: NodesPicture, looks: Mapping[str, Look], head: float) -> list[Entry]:
    """Return what the legend of a story explains."""
    sent = [message.what for message in story.messages]
    entries = [
        Entry(f"{shortened(kind, 40)} ({sent.count(kind):,})", line_sample(look.color, 1.6, look.dashes, head))
        for kind, look in list(looks.items())[:_KINDS_UP_TO]
    ]
    if len(looks) > _KINDS_UP_TO:
        entries.append(Entry(f"and {len(looks) - _KINDS_UP_TO} other kinds", _no_sample))
    fates = [message.fate for message in story.messages]
    if "lost" in fates or "dropped" in fates:
        entries.append(Entry("lost", _lost_sample))
    if "under way" in fates:
        entries.append(Entry("still under way", fading_sample(1.6)))
    shown = [_mark_name(mark.what) for mark in story.marks]
    entries += [Entry(name, _glyph_sample(what)) for what, name in _MARK_NAMES.items() if name in shown]
    if story.notes:
        entries.append(Entry("logged", _note_sample))
    return entries


def _mark_name(what: str) -> str:
    return _MARK_NAMES.get(what, _MARK_NAMES[""])


def glyph(what: str, x: float, y: float) -> str:
    """Draw what stands for an event that isn't a message."""
    if what == "Start":
        return path(((x, y - 5), (x, y + 5)), stroke=INK, stroke_width=2)
    if what == "Timer":
        return element("path", d=f"{way(((x, y - 4), (x + 4, y), (x, y + 4), (x - 4, y)))}z", fill=PAPER, stroke=INK)
    if what == "Crash":
        return element("path", d=cross(x, y, 5), stroke=ALARM, stroke_width=2.6, fill="none")
    if what == "Recover":
        return element("circle", cx=x, cy=y, r=4.5, fill=PAPER, stroke=_WELL, stroke_width=2)
    if what in ("LinkDown", "LinkUp"):  # A plug that is pulled out, or in.
        is_down = what == "LinkDown"
        color, gap = (ALARM, 2.5) if is_down else (_WELL, 0.0)
        arms = ((x, y - 6), (x, y - gap)), ((x, y + gap), (x, y + 6))
        bars = [way(((x - 3.5, y + side), (x + 3.5, y + side))) for side in ((-gap, gap) if is_down else (0.0,))]
        return element("path", d="".join((*map(way, arms), *bars)), stroke=color, stroke_width=2, fill="none")
    return element("rect", x=x - 3, y=y - 3, width=6, height=6, fill=SOFT)


def failure_glyph(x: float, y: float) -> str:
    """Draw what stands for a property that doesn't hold, or an error."""
    triangle = f"{way(((x, y - 9), (x + 9, y + 7), (x - 9, y + 7)))}z"
    sign = f"{way(((x, y - 3.5), (x, y + 2)))}{way(((x, y + 4), (x, y + 5.4)))}"
    return element("path", d=triangle, fill=ALARM) + element("path", d=sign, stroke=PAPER, stroke_width=1.8)


def failure_entry() -> Entry:
    return Entry("here it went wrong", lambda x, y: failure_glyph(x + 12, y))


def _glyph_sample(what: str) -> Callable[[float, float], str]:
    return lambda x, y: glyph(what, x + 12, y)


def _no_sample(_x: float, _y: float) -> str:
    return ""


def _note_sample(x: float, y: float) -> str:
    return element("circle", cx=x + 12, cy=y, r=2.2)


def _lost_sample(x: float, y: float) -> str:
    line = path(((x, y), (x + 20, y)), stroke=SOFT, stroke_width=1.4, stroke_dasharray="4 3")
    return line + element("path", d=cross(x + 20, y, 3.6), stroke=SOFT, stroke_width=1.6)


RECORDS_MAX = 5_000
NODES_MAX = 300

_LABELS_UP_TO = 25  # Messages; with more of them, texts would cover everything.
_NOTES_UP_TO = 20
_MARKS_UP_TO = 16
_WIDE_TARGETS_UP_TO = 1_000  # Messages that are easy to hit with the mouse.
_LANES = 3
_HAPPENED_UP_TO = 36  # Letters.
_LANE = 15.0
_BEYOND = 34.0  # How far the picture goes on after the end: there messages fade that are still under way.
_NAMES_AGAIN_FROM = 1_300.0  # A picture as wide as that has the lifelines' names on both sides.

_LIFE = "#8a96a3"
_DEAD = "#a3adb8"
_BAND = "#fdf3d8"
_BAND_GROUP = "#f7dfa2"
_BAND_INK = "#8a6100"


def diagram_svg(
    records: Sequence[NodeRecord],
    num_nodes: int,
    *,
    title: str = "",
    until: int | None = None,
    failure: WorldlineError | None = None,
) -> str:
    """Draw the space-time diagram of a run. `until` is when it ended, if that was after the last record.

    `failure` is what it ended with, if it did: when and where stands out. Only so much is drawn as anybody can look at:
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
    return _NodesDiagram(told(drawn, until), shown, title, _flaw(failure, shown)).text(cuts)


class _Flaw(NamedTuple):
    """What went wrong, when, and at which node, if it was at one that is drawn."""

    at: int
    node: int | None
    text: str


def _flaw(failure: WorldlineError | None, num_nodes: int) -> _Flaw | None:
    if failure is None or failure.at is None:
        return None
    name = (failure.participant or "").removeprefix("node ")
    node = int(name) if name.isdecimal() and int(name) < num_nodes else None
    return _Flaw(failure.at, node, str(failure))


class _Happened(NamedTuple):
    """Something that happened in the network; `lane` is the row of its label above the diagram."""

    at: int
    text: str
    lane: int


class _NodesDiagram:
    def __init__(self, story: NodesPicture, num_nodes: int, title: str, flaw: _Flaw | None) -> None:
        self.story = story
        self.flaw = flaw
        self.num_nodes = num_nodes
        self.room = LabelSpace()
        self.looks = looks_of(story.kinds)
        self.lines = chosen(_LINES, len(story.messages))
        self.gap = chosen(_GAPS, num_nodes)
        self.left = 34.0 + text_width(str(num_nodes - 1), 12)
        self.plot_width = width_of(story, num_nodes, 46.0 * len(story.messages) if self.shows_texts else 0.0)
        self.usual_way = self._usual_way()
        width = self.right + _BEYOND + (self.left - 12 if self.is_wide else 14)
        entries = entries_of(story, self.looks, self.lines.head)
        entries += [failure_entry()] if flaw is not None else []
        self.happened = self._laid_out(_happened(story))
        # From above: the title, the legend, what happened in the network, the lifelines, and the time axis.
        self.sheet = Sheet(title, width, entries, heading=26.0, untitled=20.0)
        over = self.sheet.top + _LANE * (max((each.lane for each in self.happened), default=-1) + 1)
        self.ceiling = over + max(2.0, self.gap * 0.15)
        self.top = self.ceiling + max(14.0, self.gap * 0.3)
        self.floor = self.y(num_nodes - 1) + max(18.0, self.gap * 0.4)

    @property
    def shows_texts(self) -> bool:
        return len(self.story.messages) <= _LABELS_UP_TO

    @property
    def is_wide(self) -> bool:
        return self.plot_width >= _NAMES_AGAIN_FROM

    @property
    def right(self) -> float:
        return self.left + self.plot_width

    @property
    def width(self) -> float:
        return self.sheet.width

    # -- Where things are

    def x(self, time: int) -> float:
        span = self.story.end - self.story.begin
        return self.left + (self.plot_width * (time - self.story.begin) / span if span else 0.0)

    def y(self, node: int) -> float:
        return self.top + self.gap * node

    # -- The whole

    def text(self, cuts: Sequence[str]) -> str:
        caption = [self._caption(), *cuts]
        height = self.floor + 36 + 17 * (len(caption) + (self.flaw is not None))
        labels = self._message_labels()
        heads = [arrow_head(color, self.lines.head) for color in self._colors()]
        content = [
            *self._network(),
            *self._axis(),
            *self._lifelines(),
            *self._arrows(),
            *self._marks(),
            *self._notes(),
            *labels,
            *self._failure(self.floor + 44 + 17 * len(caption)),
            *self.sheet.caption(caption, self.floor + 44),
        ]
        style = (
            ".worldline-diagram .message:hover path{stroke-opacity:1;stroke-width:3}"
            ".worldline-diagram .message:hover .target{stroke-opacity:0}"
        )
        definitions = element("defs", heads) if self.looks else ""
        return self.sheet.text(
            height, content, kind="diagram", untitled="Space-time diagram", definitions=definitions, style=style
        )

    def _caption(self) -> str:
        fates = [message.fate for message in self.story.messages]
        parts = [f"{fates.count('received'):,} received"]
        parts += [
            f"{fates.count(fate):,} {words}"
            for fate, words in (("lost", "lost"), ("dropped", "dropped"), ("under way", "under way at the end"))
            if fate in fates
        ]
        nodes, messages = counted(self.num_nodes, "node"), counted(len(fates), "message")
        return f"{nodes}, {messages}: {', '.join(parts)}" if fates else f"{nodes}, no messages"

    def _colors(self) -> list[str]:
        return list(dict.fromkeys(look.color for look in self.looks.values()))

    # -- Time and lifelines

    def _axis(self) -> list[str]:
        floor = self.floor
        unit, size, step = ticks(self.story.begin, self.story.end, self.plot_width / 90)
        first = -(-self.story.begin // step) * step
        times = range(first, self.story.end + 1, step)
        lines = "".join(way(((self.x(time), self.ceiling), (self.x(time), floor))) for time in times)
        labels = [
            text_at(self.x(time), floor + 16, decimal(time, size), size=10.5, text_anchor="middle") for time in times
        ]
        return [
            element("path", d=lines, stroke=GRID, stroke_width=1),
            path(((self.left, floor), (self.right + _BEYOND, floor)), stroke=_LIFE, stroke_width=1),
            element("g", labels, class_="axis", fill=SOFT),
            text_at(self.left - 8, floor + 16, unit, size=10.5, fill=SOFT, text_anchor="end", font_style="italic"),
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
                    parts.append(path(((at, y), (start, y)), stroke=_LIFE))
                if end > start:
                    parts.append(path(((start, y), (end, y)), class_="down", stroke=_DEAD, stroke_dasharray="2 4"))
                at = max(at, end)
            drawn.append(element("g", parts, class_="lifeline", stroke_width=1.3))
        size = min(12.0, self.gap - 1)
        names = [
            text_at(x, self.y(node) + size * 0.36, str(node), size=size, text_anchor=anchor)
            for x, anchor in ((self.left - 14, "end"), (self.right + _BEYOND + 6, "start"))[: 2 if self.is_wide else 1]
            for node in range(self.num_nodes)
        ]
        return [*drawn, element("g", names, class_="names", font_weight=600)]

    # -- Messages

    def _arrows(self) -> list[str]:
        drawn = []
        for kind, look in self.looks.items():
            messages = [self._arrow(each, look) for each in self.story.messages if each.what == kind]
            shades: dict[str, Value | None] = {"stroke_width": self.lines.stroke, "stroke_opacity": self.lines.opacity}
            drawn.append(element("g", messages, fill="none", stroke=look.color, **shades))
        return drawn

    def _arrow(self, message: DrawnMessage, look: Look) -> str:
        start, end = self._ends(message)
        parts = [hover(str(message))]
        if len(self.story.messages) <= _WIDE_TARGETS_UP_TO:
            parts.append(path((start, end), class_="target", stroke_opacity=0, stroke_width=9))
        if message.fate == "received":
            parts.append(
                path((start, end), stroke_dasharray=look.dashes, marker_end=arrow_end(look.color, self.lines.head))
            )
        elif message.fate == "under way":
            parts += fading(start, end)
        else:
            arm = self.lines.head * 0.48
            parts.append(path((start, end), stroke_dasharray="4 3"))
            parts.append(
                element("path", d=cross(*end, arm), stroke_width=max(1.4, self.lines.stroke), stroke_opacity=1)
            )
        return element("g", parts, class_=f"message {message.fate.replace(' ', '-')}")

    def _ends(self, message: DrawnMessage) -> tuple[Point, Point]:
        """Return where a message's line begins and how far it gets."""
        start = (self.x(message.sent), self.y(message.sender))
        # Where nothing says when it would have arrived, it is taken to be as fast as messages usually are.
        arrival = start[0] + self.usual_way if message.end is None else self.x(message.end)
        goal = (arrival, self.y(message.receiver))
        if message.fate == "received":
            return start, goal
        if message.fate == "dropped":
            return start, between(start, goal, max(0.0, 1 - 6.0 / distance(start, goal)))
        limit = self.right + _BEYOND - 4
        if message.fate == "under way":
            return start, between(start, goal, min(0.9, (limit - start[0]) / max(arrival - start[0], 1.0)))
        # What didn't get there should cover as little as possible.
        x, y = between(start, goal, min(0.5, max(90.0, self.gap) / distance(start, goal)))
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
        self.room.take(Disc(*self._ends(message)[1], 5.0) for message in self.story.messages)
        for message in self.story.messages:
            start, end = self._ends(message)
            length = distance(start, end)
            text = fitted(message.text, min(190.0, length - 34), 10) if length > 60 else ""
            if not text or (len(text) < 3 and text != message.text):
                continue
            along = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
            spot = self._free_spot(start, along, length, text_width(text, 10))
            if spot is not None:
                turn = " ".join(f"{value:.4f}" for value in (*along, -along[1], along[0]))
                turned = f"matrix({turn} {number(spot[0])} {number(spot[1])})"
                color = self.looks[message.what].color
                drawn.append(element("text", escaped(text), transform=turned, font_size=10, fill=color))
        return haloed(drawn, class_="texts", text_anchor="middle")

    def _free_spot(self, start: Point, along: Point, length: float, width: float) -> Point | None:
        """Find a base line for a text just above a line, or below it."""
        for aside in (-4.0, 11.0):
            for share in (0.5, 0.4, 0.6, 0.32, 0.68, 0.25, 0.75):
                if width / 2 + 8 > length * min(share, 1 - share):
                    continue
                x = start[0] + along[0] * length * share - along[1] * aside
                y = start[1] + along[1] * length * share + along[0] * aside
                discs = text_discs((x + along[1] * 3.5, y - along[0] * 3.5), width, 10, along)
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
            said = hover(f"{mark.node}: {mark.text}, at {format_time(mark.at)}")
            drawn.append(element("g", (said, glyph(mark.what, x, y)), class_="mark"))
        if len(named) > _MARKS_UP_TO:
            return drawn
        labels = []
        for mark in named:
            text = shortened(mark.text, 24)
            width = text_width(text, 9)
            x, y = self.x(mark.at), self.y(mark.node or 0)
            color = ALARM if mark.what in ("Crash", "LinkDown") else INK
            labels.append(
                self._written(text, ((x + 6, y - 6), (x - 6 - width, y - 6)), 9, color, (-math.inf, self.width))
            )
        return [*drawn, *haloed(labels, class_="mark-texts")]

    def _notes(self) -> list[str]:
        """Draw a dot under the lifeline for what was logged, and write it there if it isn't much."""
        dots, labels = [], []
        radius = 2.2 if self.gap >= 24 else 1.5
        below = min(7.0, self.gap * 0.3)
        writes = len(self.story.notes) <= _NOTES_UP_TO and self.gap >= 40
        for note in self.story.notes:
            x, y = self.x(note.at), self.y(note.node) + below
            text = "; ".join(note.lines)
            said = hover(f"{note.node}, at {format_time(note.at)}: {text}")
            dots.append(element("circle", said, cx=x, cy=y, r=radius, class_="note"))
            shown = shortened(text, 30)
            spots = ((x + 5, y + 4), (x + 5, y + 15), (x - 5 - text_width(shown, 9.5), y + 4))
            if writes:
                labels.append(self._written(shown, spots, 9.5, "#52606d", (self.left, self.width - 4)))
        return [element("g", dots, fill=INK), *haloed(labels, class_="note-texts")]

    def _written(self, text: str, spots: Iterable[Point], size: float, color: str, within: tuple[float, float]) -> str:
        """Write a text at the first of these spots where it has room, or nowhere."""
        width = text_width(text, size)
        for left, base in spots:
            discs = text_discs((left + width / 2, base - 3), width, size)
            if within[0] < left and left + width < within[1] and self.room.is_free(discs):
                self.room.take(discs)
                return text_at(left, base, text, size=size, fill=color)
        return ""

    def _failure(self, base: float) -> list[str]:
        """Draw when something turned out to be wrong, and at which node; what it was stands below the picture."""
        if self.flaw is None:
            return []
        at, node, text = self.flaw
        x = self.x(at)
        parts = [
            hover(text),
            path(((x, self.ceiling), (x, self.floor)), stroke=ALARM, stroke_width=1.6, stroke_dasharray="7 3"),
            failure_glyph(x, self.ceiling if node is None else self.y(node)),
        ]
        if node is not None:
            parts.insert(2, element("circle", cx=x, cy=self.y(node), r=13, fill=ALARM, fill_opacity=0.18))
        shown = fitted(text, self.width - 40, 11.5)
        return [
            element("g", parts, class_="failure"),
            text_at(20, base, shown, size=11.5, fill=ALARM, class_="failure-text"),
        ]

    # -- What happened to the network

    def _laid_out(self, happened: Iterable[tuple[int, str]]) -> list[_Happened]:
        """Put the labels above the diagram into rows, so that they don't cover each other."""
        ends = [0.0] * _LANES
        found = []
        for at, text in happened:
            x = self.x(at)
            lane = next((lane for lane, end in enumerate(ends) if end <= x), _LANES - 1)
            ends[lane] = x + text_width(shortened(text, _HAPPENED_UP_TO), 10) + 12
            found.append(_Happened(at, text, lane))
        return found

    def _network(self) -> list[str]:
        """Draw partitions as bands, with the group that is cut off standing out, and a line for all that happened."""
        drawn = []
        half = min(9.0, self.gap * 0.4)
        for span in self.story.partitions:
            start, end = self.x(span.start), self.right + _BEYOND if span.end is None else self.x(span.end)
            band: dict[str, Value | None] = {"x": start, "width": end - start}
            whole = element("rect", y=self.ceiling, height=self.floor - self.ceiling, fill=_BAND, **band)
            group = [
                element("rect", y=self.y(node) - half, height=2 * half, fill=_BAND_GROUP, **band)
                for node in span.nodes
                if node < self.num_nodes
            ]
            drawn.append(element("g", (hover(span.text), whole, *group), class_="partition"))
        for at, text, lane in self.happened:
            label = shortened(text, _HAPPENED_UP_TO)
            x, base = self.x(at), self.ceiling - 5 - lane * _LANE
            said = hover(f"{text}, at {format_time(at)}")
            line = path(((x, base + 2), (x, self.floor)), stroke=_BAND_INK, stroke_width=1, stroke_dasharray="5 4")
            written = text_at(min(x + 4, self.width - text_width(label, 10) - 4), base, label, size=10, fill=_BAND_INK)
            drawn.append(element("g", (said, line, written), class_="happened"))
        return drawn


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


def _happened(story: NodesPicture) -> list[tuple[int, str]]:
    """Return what happened in the network, and when."""
    found = [(span.start, span.text) for span in story.partitions]
    ends = dict.fromkeys(span.end for span in story.partitions if span.end is not None)
    found += [(end, "Repair") for end in ends]
    found += [(record.at, record.text) for record in story.others]
    return sorted(found)
