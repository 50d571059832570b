"""Draws a run as a space-time diagram: a lifeline for each node, time to the right, messages as arrows between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from worldline.model.time import DAY, HOUR, MINUTE, MS, NS, SECOND, US, format_time
from worldline.nodes.pictures.happenings import Message, Story, told
from worldline.nodes.pictures.labels import Disc, Room, text_discs
from worldline.nodes.pictures.svg import (
    ALARM,
    INK,
    PALETTE,
    PAPER,
    SOFT,
    Value,
    arrow_end,
    arrow_head,
    cross,
    document,
    element,
    escaped,
    fitted,
    hover,
    number,
    path,
    shortened,
    text_at,
    text_width,
    way,
)
from worldline.nodes.trace import Record

RECORDS_MAX = 5_000
NODES_MAX = 300
WIDTH_MAX = 6_000

_LABELS_UP_TO = 25  # Messages; with more of them, texts would cover everything.
_NOTES_UP_TO = 20
_MARKS_UP_TO = 16
_WIDE_TARGETS_UP_TO = 1_000  # Messages that are easy to hit with the mouse.
_KINDS_UP_TO = 14  # In the legend.
_LANES = 3
_LANE = 15.0
_ROW_LEGEND = 18.0
_BEYOND = 34.0  # How far the picture goes on after the end: there messages fade that are still under way.
_ENDS_AGAIN_FROM = 1_300.0  # A picture as wide as that has the lifelines' names on both sides.

_LIFE = "#8a96a3"
_DEAD = "#c3cad1"
_GRID = "#eef1f4"
_BAND = "#fdf3d8"
_BAND_GROUP = "#f7dfa2"
_BAND_INK = "#8a6100"

_UNITS = (("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", SECOND), ("ms", MS), ("µs", US), ("ns", NS))


def diagram_svg(records: Sequence[Record], num_nodes: int, *, title: str = "", until: int | None = None) -> str:
    """Draw the space-time diagram of a run. `until` is when it ended, if that was after the last record.

    Only so much is drawn as anybody can look at: the first records, of the first nodes; the picture says so.
    """
    first = records[:RECORDS_MAX]
    drawn = [record for record in first if max(record.node or 0, record.peer or 0) < NODES_MAX]
    cuts = []
    if len(first) < len(records):
        cuts.append(f"Only the first {RECORDS_MAX:,} of {len(records):,} records are drawn.")
        until = None
    if num_nodes > NODES_MAX:
        cuts.append(f"Only the first {NODES_MAX:,} of {num_nodes:,} nodes are drawn, and messages between these.")
    return _Diagram(told(drawn, until), min(num_nodes, NODES_MAX), title, cuts).text()


class Look(NamedTuple):
    """How messages of one kind are drawn."""

    colour: str
    dashes: str | None


class _Diagram:
    def __init__(self, story: Story, num_nodes: int, title: str, cuts: Sequence[str]) -> None:
        self.story = story
        self.num_nodes = num_nodes
        self.title = title
        self.cuts = cuts
        self.looks = _looks(story.messages)
        self.room = Room()
        self.lines = _happened(story)
        count = len(story.messages)
        self.stroke, self.opacity, self.head = next(
            look for most, look in _WEIGHTS_OF_LINES if most is None or count <= most
        )
        self.gap = next(gap for most, gap in _GAPS if most is None or num_nodes <= most)
        self.left = 34.0 + text_width(str(num_nodes - 1), 12)
        self.plot_width = _width(story)
        self.right = self.left + self.plot_width
        self.usual_way = self._usual_way()
        self.is_wide = self.plot_width >= _ENDS_AGAIN_FROM
        self.width = self.right + _BEYOND + (self.left - 12 if self.is_wide else 14)
        self.legend_entries = self._legend_entries()
        legend_rows = _flow([each.width for each in self.legend_entries], self.width - 40)
        self.legend_rows = legend_rows
        rows = (max(legend_rows) + 1) if legend_rows else 0
        lanes = self._lanes()
        self.lanes = lanes
        used = max(lanes, default=-1) + 1
        self.top = (40.0 if title else 16.0) + rows * _ROW_LEGEND + used * _LANE + max(26.0, self.gap * 0.45)
        self.bottom = self.top + self.gap * (num_nodes - 1)

    # -- Where things are

    def x(self, time: int) -> float:
        span = self.story.end - self.story.begin
        return self.left + (self.plot_width * (time - self.story.begin) / span if span else 0.0)

    def y(self, node: int) -> float:
        return self.top + self.gap * node

    # -- The whole

    def text(self) -> str:
        caption = [self._caption(), *self.cuts]
        floor = self.bottom + max(18.0, self.gap * 0.4)
        height = floor + 36 + 17 * len(caption)
        labels = self._message_labels()
        content = [
            element("defs", [arrow_head(colour, self.head) for colour in self._colours()]) if self.looks else "",
            text_at(20, 26, fitted(self.title, self.width - 40, 15), size=15, font_weight=600) if self.title else "",
            *self._legend(),
            *self._bands(floor),
            *self._axis(floor),
            *self._lifelines(),
            *self._arrows(),
            *self._marks(),
            *self._notes(),
            *labels,
            *(
                text_at(20, floor + 44 + 17 * place, fitted(line, self.width - 40, 11.5), size=11.5, fill=SOFT)
                for place, line in enumerate(caption)
            ),
        ]
        style = (
            ".worldline-diagram .message:hover path{stroke-opacity:1;stroke-width:3}"
            ".worldline-diagram .message:hover .target{stroke-opacity:0}"
        )
        return document(
            self.width, height, content, kind="diagram", title=self.title or "Space-time diagram", style=style
        )

    def _caption(self) -> str:
        fates = [message.fate for message in self.story.messages]
        parts = [f"{fates.count('received'):,} received"]
        parts += [
            f"{fates.count(fate):,} {words}"
            for fate, words in (("lost", "lost"), ("dropped", "dropped"), ("under way", "under way at the end"))
            if fate in fates
        ]
        nodes = "1 node" if self.num_nodes == 1 else f"{self.num_nodes:,} nodes"
        messages = "1 message" if len(fates) == 1 else f"{len(fates):,} messages"
        return f"{nodes}, {messages}: {', '.join(parts)}" if fates else f"{nodes}, no messages"

    def _colours(self) -> list[str]:
        return list(dict.fromkeys(look.colour for look in self.looks.values()))

    # -- Time and lifelines

    def _axis(self, floor: float) -> list[str]:
        unit, size, step = _ticks(self.story.begin, self.story.end, self.plot_width / 90)
        first = -(-self.story.begin // step) * step
        times = range(first, self.story.end + 1, step)
        over = self.top - max(14.0, self.gap * 0.3)
        lines = path_of(((self.x(time), over), (self.x(time), floor)) for time in times)
        labels = [
            text_at(self.x(time), floor + 16, _decimal(time, size), size=10.5, text_anchor="middle") for time in times
        ]
        return [
            element("path", d=lines, stroke=_GRID, stroke_width=1),
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
                    parts.append(path(((start, y), (end, y)), class_="down", stroke=_DEAD, stroke_dasharray="2 5"))
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
            shades: dict[str, Value | None] = {"stroke_width": self.stroke, "stroke_opacity": self.opacity}
            drawn.append(element("g", messages, fill="none", stroke=look.colour, **shades))
        return drawn

    def _arrow(self, message: Message, look: Look) -> str:
        start, end = self._ends(message)
        parts = [hover(str(message))]
        if len(self.story.messages) <= _WIDE_TARGETS_UP_TO:
            parts.append(path((start, end), class_="target", stroke_opacity=0, stroke_width=9))
        if message.fate == "received":
            parts.append(path((start, end), stroke_dasharray=look.dashes, marker_end=arrow_end(look.colour, self.head)))
        elif message.fate == "under way":
            parts += _fading(start, end)
        else:
            arm = self.head * 0.48
            parts.append(path((start, end), stroke_dasharray="4 3"))
            parts.append(element("path", d=cross(*end, arm), stroke_width=max(1.4, self.stroke), stroke_opacity=1))
        return element("g", parts, class_=f"message {message.fate.replace(' ', '-')}")

    def _ends(self, message: Message) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return where a message's line begins and how far it gets."""
        start = (self.x(message.sent), self.y(message.sender))
        across = self.y(message.receiver) - start[1]
        limit = self.right + _BEYOND - 4
        if message.end is None:
            # Nothing says when it would have arrived: it is taken to be as fast as messages usually are, and to be
            # lost soon, so that what didn't get there covers as little as possible.
            along = self.usual_way
            length = math.sqrt(along * along + across * across)
            share = min(0.5, max(90.0, self.gap) / length)
            along = min(along, max(0.0, limit - start[0]) / share)
            return start, (start[0] + along * share, start[1] + across * share)
        along = self.x(message.end) - start[0]
        if message.fate == "received":
            return start, (start[0] + along, start[1] + across)
        if message.fate == "dropped":
            length = math.sqrt(along * along + across * across) or 1.0
            share = max(0.0, 1 - 6.0 / length)
        else:
            share = min(0.9, max(0.0, limit - start[0]) / along if along > 0 else 0.9)
        return start, (start[0] + along * share, start[1] + across * share)

    def _usual_way(self) -> float:
        """Return how far to the right messages go, in the median."""
        ends = [(message.sent, message.end) for message in self.story.messages if message.end is not None]
        ways = sorted(self.x(end) - self.x(sent) for sent, end in ends)
        return max(ways[len(ways) // 2], 16.0) if ways else 60.0

    def _message_labels(self) -> list[str]:
        """Write messages along their arrows, if there are few, wherever that covers no other label."""
        if len(self.story.messages) > _LABELS_UP_TO:
            return []
        drawn = []
        self.room.take(Disc(*self._ends(message)[1], 5.0) for message in self.story.messages)
        for message in self.story.messages:
            start, end = self._ends(message)
            x, y = end[0] - start[0], end[1] - start[1]
            length = math.sqrt(x * x + y * y)
            text = fitted(message.text, min(190.0, length - 34), 10) if length > 60 else ""
            if len(text) < 3 and text != message.text:
                continue
            along = (x / length, y / length)
            spot = self._free_spot(start, along, length, text_width(text, 10))
            if spot is not None:
                turn = " ".join(f"{value:.4f}" for value in (*along, -along[1], along[0]))
                turned = f"matrix({turn} {number(spot[0])} {number(spot[1])})"
                colour = self.looks[message.what].colour
                drawn.append(element("text", escaped(text), transform=turned, font_size=10, fill=colour))
        return [element("g", drawn, class_="texts", text_anchor="middle", **_HALO)] if drawn else []

    def _free_spot(
        self, start: tuple[float, float], along: tuple[float, float], length: float, width: float
    ) -> tuple[float, float] | None:
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
            drawn.append(element("g", (said, _glyph(mark.what, x, y)), class_="mark"))
        if len(named) > _MARKS_UP_TO:
            return drawn
        labels = []
        for mark in named:
            text = shortened(mark.text, 24)
            width = text_width(text, 9)
            x, y = self.x(mark.at), self.y(mark.node or 0)
            for left, base in ((x + 6, y - 6), (x - 6 - width, y - 6)):
                discs = text_discs((left + width / 2, base - 3), width, 9)
                if left + width < self.width and self.room.is_free(discs):
                    self.room.take(discs)
                    colour = ALARM if mark.what == "Crash" else INK
                    labels.append(text_at(left, base, text, size=9, fill=colour))
                    break
        return [*drawn, element("g", labels, class_="mark-texts", **_HALO)] if labels else drawn

    def _notes(self) -> list[str]:
        """Draw a dot under the lifeline for what was logged, and write it there if it isn't much."""
        dots, labels = [], []
        radius = 2.2 if self.gap >= 24 else 1.5
        below = min(7.0, self.gap * 0.3)
        for note in self.story.notes:
            x, y = self.x(note.at), self.y(note.node) + below
            text = "; ".join(note.lines)
            said = hover(f"{note.node}, at {format_time(note.at)}: {text}")
            dots.append(element("circle", said, cx=x, cy=y, r=radius, class_="note"))
            shown = shortened(text, 30)
            width = text_width(shown, 9.5)
            for left, base in ((x + 5, y + 4), (x + 5, y + 15), (x - 5 - width, y + 4)):
                discs = text_discs((left + width / 2, base - 3), width, 9.5)
                is_inside = left > self.left and left + width < self.width - 4
                if len(self.story.notes) <= _NOTES_UP_TO and self.gap >= 40 and is_inside and self.room.is_free(discs):
                    self.room.take(discs)
                    labels.append(text_at(left, base, shown, size=9.5, fill="#52606d"))
                    break
        return [
            element("g", dots, fill=INK),
            element("g", labels, class_="note-texts", **_HALO) if labels else "",
        ]

    # -- What happened to the network

    def _lanes(self) -> list[int]:
        """Return for the labels above the diagram the rows in which they don't cover each other."""
        ends: list[float] = []
        lanes = []
        for at, _, label in self.lines:
            x = self.x(at)
            lane = next((lane for lane, end in enumerate(ends) if end < x), len(ends))
            end = x + text_width(label, 10) + 12
            if lane < len(ends):
                ends[lane] = end
            else:
                ends.append(end)
            lanes.append(min(lane, _LANES))
        return [min(lane, _LANES - 1) for lane in lanes]

    def _bands(self, floor: float) -> list[str]:
        over = self.top - max(14.0, self.gap * 0.3)
        drawn = []
        for span in self.story.partitions:
            start, end = self.x(span.start), self.right + _BEYOND if span.end is None else self.x(span.end)
            half = min(9.0, self.gap * 0.4)
            cut_off = [
                element("rect", x=start, y=self.y(node) - half, width=end - start, height=2 * half, fill=_BAND_GROUP)
                for node in span.nodes
                if node < self.num_nodes
            ]
            band = element("rect", x=start, y=over, width=end - start, height=floor - over, fill=_BAND)
            drawn.append(element("g", (hover(span.text), band, *cut_off), class_="partition"))
        labels = []
        for (at, text, label), lane in zip(self.lines, self.lanes, strict=True):
            x, base = self.x(at), over - 5 - lane * _LANE
            said = hover(f"{text}, at {format_time(at)}")
            line = path(((x, base + 2), (x, floor)), stroke=_BAND_INK, stroke_width=1, stroke_dasharray="5 4")
            written = text_at(min(x + 4, self.width - text_width(label, 10) - 4), base, label, size=10, fill=_BAND_INK)
            labels.append(element("g", (said, line, written), class_="happened"))
        return [*drawn, *labels]

    # -- The legend

    def _legend_entries(self) -> list[Entry]:
        counts: dict[str, int] = {}
        for message in self.story.messages:
            counts[message.what] = counts.get(message.what, 0) + 1
        entries = [
            Entry(f"{shortened(kind, 40)} ({counts[kind]:,})", _line_sample(look, self.head))
            for kind, look in list(self.looks.items())[:_KINDS_UP_TO]
        ]
        if len(self.looks) > _KINDS_UP_TO:
            entries.append(Entry(f"and {len(self.looks) - _KINDS_UP_TO} other kinds", _no_sample))
        fates = [message.fate for message in self.story.messages]
        if "lost" in fates or "dropped" in fates:
            entries.append(Entry("lost", _lost_sample))
        if "under way" in fates:
            entries.append(Entry("still under way", _fading_sample))
        shown = dict.fromkeys(_mark_name(mark.what) for mark in self.story.marks)
        entries += [Entry(name, _glyph_sample(what)) for what, name in _MARK_NAMES.items() if name in shown]
        if self.story.notes:
            entries.append(Entry("logged", lambda x, y: element("circle", cx=x + 12, cy=y, r=2.2)))
        return entries

    def _legend(self) -> list[str]:
        drawn = []
        start, top = 20.0, (50.0 if self.title else 20.0)
        x, row = start, 0
        for entry, in_row in zip(self.legend_entries, self.legend_rows, strict=True):
            if in_row != row:
                x, row = start, in_row
            y = top + row * _ROW_LEGEND
            drawn.append(element("g", (entry.sample(x, y - 4), text_at(x + 30, y, entry.text, size=11))))
            x += entry.width
        return [element("g", drawn, class_="legend")] if drawn else []


class Entry(NamedTuple):
    """One thing that the legend explains."""

    text: str
    sample: Callable[[float, float], str]

    @property
    def width(self) -> float:
        return 30 + text_width(self.text, 11) + 16


_HALO: dict[str, Value | None] = {"stroke": PAPER, "stroke_width": 3, "stroke_opacity": 0.85, "paint_order": "stroke"}

# Up to so many messages: how wide lines are, how opaque, and how long their heads.
_WEIGHTS_OF_LINES: tuple[tuple[int | None, tuple[float, float, float]], ...] = (
    (_LABELS_UP_TO, (1.6, 0.95, 9.0)),
    (100, (1.3, 0.85, 8.0)),
    (400, (1.1, 0.7, 7.0)),
    (1_000, (0.9, 0.55, 6.0)),
    (None, (0.8, 0.4, 5.0)),
)
# Up to so many nodes: how far lifelines are from each other.
_GAPS: tuple[tuple[int | None, float], ...] = ((3, 110), (5, 88), (10, 64), (20, 42), (40, 28), (100, 18), (None, 12))

_MARK_NAMES = {"Start": "start", "Timer": "timer", "Crash": "crash", "Recover": "recovery", "": "other event"}


def _looks(messages: Iterable[Message]) -> dict[str, Look]:
    """Give kinds of messages colours, in the order in which they were sent first; later ones have dashes too."""
    ordered = sorted(messages, key=lambda message: message.sent)
    kinds = list(dict.fromkeys(message.what for message in ordered))
    patterns = (None, "9 3", "9 2 2 2", "3 2")
    return {
        kind: Look(PALETTE[place % len(PALETTE)], patterns[place // len(PALETTE) % len(patterns)])
        for place, kind in enumerate(kinds)
    }


def _happened(story: Story) -> list[tuple[int, str, str]]:
    """Return what happened in the network: when, what, and that as a label."""
    found = [(span.start, span.text) for span in story.partitions]
    ends = dict.fromkeys(span.end for span in story.partitions if span.end is not None)
    found += [(end, "Repair") for end in ends]
    found += [(record.at, record.text) for record in story.others]
    return [(at, text, shortened(text, 36)) for at, text in sorted(found)]


def _width(story: Story) -> float:
    """Choose a width: wide enough for what happens soon after each other, but not without end."""
    times: dict[int, dict[int, None]] = {}
    for message in story.messages:
        times.setdefault(message.sender, {})[message.sent] = None
        if message.end is not None and message.end <= story.end:
            times.setdefault(message.receiver, {})[message.end] = None
    for mark in story.marks:
        times.setdefault(mark.node or 0, {})[mark.at] = None
    gaps = sorted(
        later - earlier for own in times.values() for earlier, later in zip(sorted(own), sorted(own)[1:], strict=False)
    )
    events = sum(len(own) for own in times.values())
    # A quarter of them may be closer than this: what happens in bursts can't all be drawn out.
    wanted = 10 * (story.end - story.begin) / gaps[len(gaps) // 4] if gaps else 0.0
    count = len(story.messages)
    wanted = max(wanted, 46.0 * count if count <= _LABELS_UP_TO else 6.0 * count, 820.0)
    return float(round(min(wanted, 820.0 + 6.0 * events, WIDTH_MAX)))


def _ticks(begin: int, end: int, most: float) -> tuple[str, int, int]:
    """Return the unit of a time axis, its size, and how far its ticks are apart: 1, 2 or 5 of some power of ten."""
    unit, size = next(((unit, size) for unit, size in _UNITS if end >= 2 * size), _UNITS[-1])
    least = max(1.0, (end - begin) / max(1.0, most))
    step = size
    while step > least and step % 10 == 0:
        step //= 10
    while step < least:
        step *= 10
    for part in (5, 2):
        if step % part == 0 and step // part >= least:
            return unit, size, step // part
    return unit, size, step


def _decimal(time: int, size: int) -> str:
    """Write a time in a unit, exactly, if it has up to nine digits behind the point."""
    return f"{time / size:.9f}".rstrip("0").rstrip(".")


def _flow(widths: Iterable[float], room: float) -> list[int]:
    """Return for each of some things the row in which it has room."""
    rows, row, used = [], 0, 0.0
    for width in widths:
        if used and used + width > room:
            row, used = row + 1, 0.0
        rows.append(row)
        used += width
    return rows


def path_of(lines: Iterable[Sequence[tuple[float, float]]]) -> str:
    return "".join(map(way, lines))


def _fading(start: tuple[float, float], end: tuple[float, float]) -> list[str]:
    """Draw a line that gets fainter and fainter."""
    shades = (0.9, 0.65, 0.42, 0.25, 0.1)
    points = [
        tuple(start[axis] + (end[axis] - start[axis]) * place / len(shades) for axis in (0, 1))
        for place in range(len(shades) + 1)
    ]
    return [
        path(((ax, ay), (bx, by)), stroke_opacity=shade)
        for (ax, ay), (bx, by), shade in zip(points, points[1:], shades, strict=False)
    ]


def _mark_name(what: str) -> str:
    return _MARK_NAMES.get(what, _MARK_NAMES[""])


def _glyph(what: str, x: float, y: float) -> str:
    """Draw what stands for an event that isn't a message."""
    if what == "Start":
        return path(((x, y - 5), (x, y + 5)), stroke=INK, stroke_width=2)
    if what == "Timer":
        return element("path", d=f"{way(((x, y - 4), (x + 4, y), (x, y + 4), (x - 4, y)))}z", fill=PAPER, stroke=INK)
    if what == "Crash":
        return element("path", d=cross(x, y, 5), stroke=ALARM, stroke_width=2.6, fill="none")
    if what == "Recover":
        return element("circle", cx=x, cy=y, r=4.5, fill=PAPER, stroke="#00734f", stroke_width=2)
    return element("rect", x=x - 3, y=y - 3, width=6, height=6, fill=SOFT)


def _glyph_sample(what: str) -> Callable[[float, float], str]:
    return lambda x, y: _glyph(what, x + 12, y)


def _line_sample(look: Look, head: float) -> Callable[[float, float], str]:
    return lambda x, y: path(
        ((x, y), (x + 24, y)),
        stroke=look.colour,
        stroke_width=1.6,
        stroke_dasharray=look.dashes,
        marker_end=arrow_end(look.colour, head),
    )


def _no_sample(_x: float, _y: float) -> str:
    return ""


def _lost_sample(x: float, y: float) -> str:
    line = path(((x, y), (x + 20, y)), stroke=SOFT, stroke_width=1.4, stroke_dasharray="4 3")
    return line + element("path", d=cross(x + 20, y, 3.6), stroke=SOFT, stroke_width=1.6)


def _fading_sample(x: float, y: float) -> str:
    return element("g", _fading((x, y), (x + 24, y)), stroke=SOFT, stroke_width=1.6)
