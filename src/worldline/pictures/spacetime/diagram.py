"""Draws a run as a Minkowski diagram: lab time upwards, space to the right, agents and lambdas as lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from worldline.model.text import counted
from worldline.pictures import svg
from worldline.pictures.sheet import (
    MARGIN,
    Arrow,
    Lines,
    Sample,
    Sheet,
    Ticks,
    axes,
    chosen,
    counts,
    fading_sample,
    label_width,
    left_out,
    line_sample,
    ticks_between,
)
from worldline.pictures.spacetime.frame import (
    LIGHT,
    Frame,
    Projection,
    Wall,
    apexes,
    definitions,
    drawn_light,
    inside,
    projection_of,
    walls_of,
)
from worldline.pictures.spacetime.happenings import (
    Flight,
    Life,
    Looks,
    Moment,
    SpacetimePicture,
    chosen_story,
    described,
    failures_of,
    point,
    thinned,
    told,
)
from worldline.pictures.svg import Disc, LabelSpace, Look, Parts, Point
from worldline.spacetime.boundary import Boundary
from worldline.spacetime.geometry import LambdaField
from worldline.spacetime.outcome import AgentRecord, Coordinates

AGENTS_MAX = 400
LAMBDAS_MAX = 3_000
EVENTS_MAX = 3_000

_NOTE = 12.0  # The size of what was logged,
_PARAGRAPH = 250.0  # and how wide it gets before it goes on below.
_NOTES_UP_TO = 24
_NAME_UP_TO = 26  # Letters.
_WIDE_TARGETS_UP_TO = 100  # Agents whose worldlines are easy to hit with the mouse.
_NARROWEST = 520.0
_HEAD = 6.5
_WALL = "#8a96a3"
_WALL_DASHES = "7 3 2 3"
_WALL_NAMES_UP_TO = 6
_WALL_SHARES = (0.06, 0.94, 0.2, 0.8, 0.35, 0.65, 0.5)  # Of a wall's height, where its name may stand.
_JUMP = "5 4"
_ATTACH = "3 2.5"
_KIND_UP_TO = 26  # Letters.
_LINES_UP_TO = 60  # Worldlines; with more of them, names can't stay off all lines.
_AT_THE_END = 4  # So many of the places for a name are where its line ends.
_FATES = {"absorbed": "absorbed", "vanished": "vanished", "under way": "under way at the end"}

FAILURE, EVENT = "failure", "sent or absorbed"
# What stands for an event, in the order of the legend.
_GLYPHS: dict[str, Parts] = {
    FAILURE: (("ring", 6.5, 2), ("cross", 3, 2)),
    EVENT: (("full ring", 2.1, 0),),
    "birth": (("ring", 3.4, 1.6),),
    "death": (("cross", 4.2, 2.2),),
    "channel attached": (("full rhomb", 4.2, 1.2),),
    "timer": (("rhomb", 3.2, 1.2),),
    "logged": (("ring", 3.6, 1.2), ("full ring", 1.4, 0)),
    "boundary reached": (("full square", 3, 0),),
}
# What an event is drawn as, if several things happened in it: the first of these.
_SIGNS = (
    ("failed", FAILURE),
    ("died", "death"),
    ("crossed", "boundary reached"),
    ("born", "birth"),
    ("attached", "channel attached"),
    ("held", "channel attached"),
    ("log", "logged"),
    ("timer", "timer"),
)


class _Sizes(NamedTuple):
    """How thick the lines of agents are, and how large their signs and their names."""

    stroke: float
    sign: float
    name: float


# Up to so many agents.
_SIZES = (
    (12, _Sizes(2.2, 1.0, 11.5)),
    (40, _Sizes(1.6, 0.8, 10.5)),
    (120, _Sizes(1.2, 0.62, 9.0)),
    (math.inf, _Sizes(0.9, 0.5, 8.0)),
)
# Up to so many lambdas.
_LAMBDAS = (
    (60, Lines(1.1, 0.8, _HEAD)),
    (300, Lines(0.9, 0.6, 5.0)),
    (1_000, Lines(0.7, 0.45, 3.6)),
    (math.inf, Lines(0.5, 0.3, 2.8)),
)


def minkowski_svg(
    records: Sequence[AgentRecord],
    n: int,
    *,
    field: LambdaField | None = None,
    title: str = "",
    axis: int | None = None,
    until: float | None = None,
    cones: bool = True,
    boundaries: Sequence[Boundary] = (),
) -> svg.Svg:
    """Draw the Minkowski diagram of a run that was traced, in a space of `n` dimensions, as far as `until`.

    To the right is the spatial coordinate `axis`, or the direction in which agents are spread most; in a space of one
    dimension they stand side by side. Only so much is drawn as can be looked at, evenly chosen; the picture says so.
    """
    whole = told(records, n, until, field)
    story = chosen_story(whole, AGENTS_MAX, LAMBDAS_MAX)
    projection = projection_of(story, n, axis)
    diagram = _MinkowskiDiagram(story, projection, field, title, walls_of(boundaries, projection), cones, Looks(whole))
    caption = [_caption(whole), *_ways_of_seeing(diagram.frame, projection, n)]
    if len(story.lives) < len(whole.lives):
        caption.append(f"Only {AGENTS_MAX:,} of {len(whole.lives):,} agents are drawn, and lambdas between these.")
    if len(story.flights) == LAMBDAS_MAX < len(whole.flights):
        caption.append(f"Only {LAMBDAS_MAX:,} of {len(whole.flights):,} lambdas are drawn.")
    return diagram.text(caption, failures_of(whole))


def _caption(story: SpacetimePicture) -> str:
    fates = [flight.fate for flight in story.flights]
    if not story.lives:
        return "Nothing happened: there are no records."
    agents = counted(len(story.lives), "agent")
    return f"{agents}, {counted(len(fates), 'lambda')}: {counts(_FATES, fates)}" if fates else f"{agents}, no lambdas"


def _ways_of_seeing(frame: Frame, projection: Projection, n: int) -> list[str]:
    """Say how space is drawn, if not as it is."""
    if not projection.has_space:
        return []
    lines = []
    if not projection.is_exact:
        lines.append(f"Of {n - 1} dimensions of space one is seen: lambdas can look slow.")
    if frame.stretch != 1.0:
        larger = frame.stretch > 1
        times = svg.number(frame.stretch if larger else 1 / frame.stretch)
        lines.append(f"Space is drawn {times} times {'larger' if larger else 'smaller'} than time.")
    return lines


class _MinkowskiDiagram:
    def __init__(
        self,
        story: SpacetimePicture,
        projection: Projection,
        field: LambdaField | None,
        title: str,
        walls: list[Wall],
        cones: bool,
        looks: Looks,
    ) -> None:
        self.story = story
        self.projection = projection
        self.field = field
        self.walls = walls
        self.frame = frame = Frame(story, projection, walls)
        self.sizes = chosen(_SIZES, len(story.lives))
        self.lines = chosen(_LAMBDAS, len(story.flights))
        self.looks = looks
        self.lives = {life.name: life for life in story.lives}
        self.signs, self.cuts = _signs(story)
        before = 46.0 + label_width(self._times().placed(float))
        width = max(before + frame.width + MARGIN, _NARROWEST)
        self.has_cones = cones and projection.has_space and bool(story.flights)
        self.sheet = Sheet(title, width, list(self._entries()) if story.lives else ())
        above = self.sheet.top + 6 + 2 * (self.sizes.name + 2)
        frame.put(before + (width - before - MARGIN - frame.width) / 2, above)
        self.texts = LabelSpace()
        self.taken = LabelSpace()  # By lines, which texts should stay off if they can.

    def _times(self) -> Ticks:
        return ticks_between(self.story.begin, self.story.end, self.frame.height / 60)

    @property
    def edges(self) -> Point:
        """The left and the right edge that texts stay between."""
        return 4.0, self.sheet.width - 4

    @property
    def floor(self) -> float:
        return self.frame.bottom + 16

    def at(self, name: str, coordinates: Coordinates) -> Point:
        return self.frame.x(self.projection.of(name, coordinates)), self.frame.y(coordinates[0])

    # -- The whole

    def text(self, caption: Sequence[str], alarms: Sequence[str]) -> svg.Svg:
        ways = {life.name: self._pieces(life) for life in self.story.lives}
        failures = self._failures()  # First, so that there is room for them.
        names = self._names(ways)
        content = [
            *self._axes(),
            *(self._cones() if self.has_cones else ()),
            *self._walls(),
            *self._arrows(),
            *self._worldlines(ways),
            *self._events(),
            *names,
            *self._notes(),
            *failures,
        ]
        style = (
            ".worldline-minkowski .lambda:hover{stroke-opacity:1;stroke-width:2.6}"
            ".worldline-minkowski .worldline:hover .way{stroke-width:4}"
        )
        return self.sheet.text(
            content,
            [*caption, *self.cuts],
            self.floor + (56 if self.projection.has_space else 30),
            kind="minkowski",
            untitled="Minkowski diagram",
            alarms=alarms,
            definitions=[*self._heads(), *(definitions(self.frame) if self.has_cones else ())],
            style=style,
        )

    def _entries(self) -> Iterator[tuple[str, Sample]]:
        """Yield what the legend explains: only what there is."""
        for text, look in self.looks.kinds:
            yield svg.shortened(text, _KIND_UP_TO), line_sample(look.color, 2.4, look.dashes)
        if not self.looks.kinds:
            yield "worldline", line_sample(svg.INK, 2.0, None)
        if any(life.jumps for life in self.story.lives):
            yield "jump", line_sample(svg.INK, 1.4, _JUMP)
        fates = dict.fromkeys((_dashes_of(flight), flight.fate == "absorbed") for flight in self.story.flights)
        for dashes, name in ((None, "lambda"), (_ATTACH, "end of a channel")):
            if (dashes, True) in fates:
                yield name, line_sample(svg.SOFT, 1.2, dashes, _HEAD)
        if any(not absorbed for _, absorbed in fates):
            yield "never absorbed", fading_sample(1.2)
        if self.has_cones:
            yield "light cone", _cone_sample
        if self.walls:
            yield "boundary", line_sample(_WALL, 1.4, _WALL_DASHES)
        there = {name for _, _, name in self.signs}
        for name, parts in _GLYPHS.items():
            if name in there:
                color = svg.ALARM if name == FAILURE else svg.INK
                yield name, lambda x, y, parts=parts, color=color: svg.sign(parts, x + 12, y, color)  # type: ignore[misc]

    def _heads(self) -> list[str]:
        if not self.story.flights:
            return []
        colors = dict.fromkeys(self._color(flight.source, flight.emitted) for flight in self.story.flights)
        heads = dict.fromkeys([(svg.SOFT, _HEAD), *((color, self.lines.head) for color in colors)])
        return [svg.arrow_head(color, size) for color, size in heads]

    # -- Axes

    def _axes(self) -> list[str]:
        frame = self.frame
        columns: list[tuple[float, str]] = []
        title = ""
        if self.projection.has_space:
            places = ticks_between(frame.place_at(frame.left), frame.place_at(frame.right), frame.width / 70)
            columns, title = places.placed(frame.x), places.titled(self.projection.title)
        box = (frame.left - 8, frame.top, frame.right, self.floor)
        times = self._times()
        return axes(box, columns, times.placed(frame.y), (title, times.titled("lab time")))

    # -- Light

    def _cones(self) -> list[str]:
        emitted = dict.fromkeys(self.at(each.source, each.emitted) for each in self.story.flights)
        return drawn_light(apexes(list(emitted), self.frame), self.frame, self.projection, self.field)

    def _walls(self) -> list[str]:
        """Draw what of walls is inside the frame, and write their names there if they are few."""
        frame = self.frame
        lines, texts = [], []
        for wall in self.walls:
            ends = [(frame.x(wall.at(frame.time_at(y))), y) for y in (frame.bottom, frame.top)]
            seen = inside(ends[0], ends[1], frame.left, frame.right)
            if seen is not None:
                lines.append(svg.element("g", (svg.hover(wall.name), svg.path(seen)), class_="boundary"))
                if len(lines) <= _WALL_NAMES_UP_TO:
                    places = [svg.between(*seen, share) for share in _WALL_SHARES]
                    text = svg.fitted(wall.name, frame.width / 2, 9.5)
                    texts.append(self._note(places, text, 9.5, avoiding=(self.taken,)))
        return [
            svg.element("g", lines, stroke=_WALL, stroke_width=1.4, stroke_dasharray=_WALL_DASHES) if lines else "",
            svg.element("g", texts, class_="boundaries", fill=svg.SOFT) if any(texts) else "",
        ]

    def _arrows(self) -> Iterator[str]:
        arrows = []
        for each in self.story.flights:
            ends = self.at(each.source, each.emitted), self.at(each.target, each.end)
            look = Look(self._color(each.source, each.emitted), _dashes_of(each))
            arrows.append(Arrow(ends, look, str(each), each.fate))
        return self.lines.drawn(arrows, "lambda")

    # -- Worldlines

    def _pieces(self, life: Life) -> list[list[Point]]:
        """Return where a worldline runs; between the pieces it jumps."""
        spots = [self.at(life.name, corner) for corner in life.corners]
        starts = [0, *sorted(life.jumps), len(spots)]
        return [svg.without_near(spots[start:end]) for start, end in pairwise(starts) if start < end]

    def _strokes(self, life: Life) -> list[tuple[Look, list[Point]]]:
        """Return the parts of a worldline that are drawn in one way, without its jumps."""
        changes = [(at[0], self.at(life.name, at), look) for at, look in self.looks.along(life)]
        _, _, look = changes.pop(0)
        strokes: list[tuple[Look, list[Point]]] = [(look, [self.at(life.name, life.corners[0])])]
        for place, corner in enumerate(life.corners[1:], start=1):
            end, is_jump = self.at(life.name, corner), place in life.jumps
            while changes and changes[0][0] <= corner[0]:
                time, spot, look = changes.pop(0)
                if not is_jump:
                    strokes[-1][1].append(end if time == corner[0] else spot)
                    strokes.append((look, [strokes[-1][1][-1]]))
            if is_jump:
                strokes.append((look, [end]))
            else:
                strokes[-1][1].append(end)
        return [(look, svg.without_near(line)) for look, line in strokes if len(line) > 1]

    def _color(self, name: str, at: Coordinates) -> str:
        return self.looks.at(self.lives[name], at[0]).color

    def _worldlines(self, ways: dict[str, list[list[Point]]]) -> list[str]:
        drawn = []
        is_roomy = len(self.story.lives) <= _WIDE_TARGETS_UP_TO
        for life in self.story.lives:
            pieces = ways[life.name]
            line = "".join(svg.way(piece) for piece in pieces if len(piece) > 1)
            jumps = "".join(svg.way((before[-1], after[0])) for before, after in pairwise(pieces))
            parts = [svg.hover(_biography(life))]
            if is_roomy and line:
                parts.append(
                    svg.element(
                        "path", d=line, stroke=svg.PAPER, stroke_width=self.sizes.stroke + 2, stroke_opacity=0.8
                    )
                )
                parts.append(svg.element("path", d=line, stroke_width=10, stroke_opacity=0))
            strokes: dict[Look, str] = {}
            for look, stroke in self._strokes(life):
                strokes[look] = strokes.get(look, "") + svg.way(stroke)
            first = self.looks.along(life)[0][1].color
            parts += [
                svg.element(
                    "path",
                    d=stroke,
                    class_="way",
                    stroke=None if look.color == first else look.color,
                    stroke_dasharray=look.dashes,
                )
                for look, stroke in strokes.items()
            ]
            if jumps:
                parts.append(
                    svg.element(
                        "path", d=jumps, class_="jump", stroke_width=self.sizes.stroke * 0.7, stroke_dasharray=_JUMP
                    )
                )
            drawn.append(svg.element("g", parts, class_="worldline", stroke=first))
        return [svg.element("g", drawn, fill="none", stroke_width=self.sizes.stroke, stroke_linejoin="round")]

    def _names(self, ways: dict[str, list[list[Point]]]) -> list[str]:
        """Write as many names as there is room for: first those that cover no line, then the others."""
        lines = {name: [spot for piece in pieces for spot in piece] for name, pieces in ways.items()}
        left, right = self.frame.left - 8, self.frame.right
        self.texts.take(svg.line_discs(((left, self.frame.top), (left, self.floor), (right, self.floor))))
        is_roomy = len(lines) <= _LINES_UP_TO
        if is_roomy:
            for line in lines.values():
                self.taken.take(svg.line_discs(line))
        written: dict[str, str] = {}
        for other in (self.taken, None):
            for name, line in lines.items():
                if not written.get(name):
                    text = svg.shortened(name, _NAME_UP_TO)
                    spots = islice(_beside(line, text, self.sizes.name), None if is_roomy else _AT_THE_END)
                    fill = None if self.looks.change else self._color(name, (0.0,))
                    written[name] = self.texts.written(
                        text, spots, self.sizes.name, avoiding=(other,), within=self.edges, bold=True, fill=fill
                    )
        texts = [written[name] for name in lines]
        self.cuts += left_out(texts.count(""))
        return svg.haloed(texts, class_="names", font_weight=600)

    def _note(self, places: Sequence[Point], text: str, size: float, avoiding: Sequence[LabelSpace | None] = ()) -> str:
        """Write a text beside one of some points, or nothing if there's no room."""
        width = svg.text_width(text, size)
        spots = [(x + dx, y + dy) for x, y in places for dx in (7.0, -7.0 - width) for dy in (3.5, -6.0, 13.0)]
        return self.texts.written(text, spots, size, avoiding=avoiding or (self.taken, None), within=self.edges)

    def _paragraph(self, at: Point, text: str, size: float = _NOTE) -> str:
        """Write a text beside a point, on as many lines as it takes, or nothing if there's no room."""
        lines = svg.wrapped(text, min(_PARAGRAPH, self.sheet.width / 2 - MARGIN), size)
        width = max(svg.text_width(line, size) for line in lines)
        step, (x, y), (low, high) = size * 1.2, at, self.edges
        lefts = [left for left in (x + 7.0, x - 7.0 - width) if low <= left <= high - width]
        bases = (y + 3.5, y - 6.0 - step * (len(lines) - 1), y + 13.0)
        for other in (self.taken, None):
            for left, base in ((left, base) for left in lefts for base in bases):
                discs = [
                    disc
                    for number, line in enumerate(lines)
                    for disc in _line_discs(line, left, base + step * number, size)
                ]
                if self.texts.is_free(discs) and (other is None or other.is_free(discs)):
                    self.texts.take(discs)
                    return "".join(
                        svg.text_at(left, base + step * number, line, size=size) for number, line in enumerate(lines)
                    )
        return ""

    # -- What happened to agents

    def _events(self) -> list[str]:
        drawn = []
        for life, moment, name in self.signs:
            x, y = self.at(life.name, moment.at)
            said = svg.hover(
                f"{life.name} at {point(moment.at)}, local time {moment.local_time:.6g}: {described(moment)}"
            )
            is_failure = name == FAILURE
            color = svg.ALARM if is_failure else self._color(life.name, moment.at)
            mark = svg.sign(_GLYPHS[name], x, y, color, 1.0 if is_failure else self.sizes.sign)
            drawn.append(svg.element("g", (said, mark), class_="event"))
        return [svg.element("g", drawn, class_="events")] if drawn else []

    def _notes(self) -> list[str]:
        """Write what was logged, if it isn't much."""
        noted = [
            (life, moment, each.what) for life, moment, _ in self.signs for each in moment.records if each.kind == "log"
        ]
        if not noted or len(noted) > _NOTES_UP_TO:
            return []
        texts = [self._paragraph(self.at(life.name, moment.at), text) for life, moment, text in noted if text.split()]
        return svg.haloed(texts, class_="notes", fill=svg.SOFT)

    def _failures(self) -> list[str]:
        """Write why the run has failed, where it did."""
        found = [(life, each) for life in self.story.lives for each in life.failures]
        texts = []
        for life, failure in found:
            texts.append(self._paragraph(self.at(life.name, failure.at), failure.what))
        return svg.haloed(texts, class_="failures", fill=svg.ALARM, font_weight=600)


def _line_discs(line: str, left: float, base: float, size: float) -> list[Disc]:
    width = svg.text_width(line, size)
    return svg.text_discs((left + width / 2, base - size * 0.36), width, size)


def _sign_of(moment: Moment, maker: str) -> str:
    """Return what an event is drawn as; as nothing, if it can be seen anyway."""
    kinds = moment.kinds
    for kind, name in _SIGNS:
        if kind not in kinds or (kind == "crossed" and "ended" in kinds) or (kind == "born" and not maker):
            continue
        return name
    return EVENT if "absorbed" in kinds or "sent" in kinds else ""


_Sign = tuple[Life, Moment, str]
"""A moment in an agent's life that is marked, and as what."""


def _signs(story: SpacetimePicture) -> tuple[list[_Sign], list[str]]:
    """Return what is marked: all that is rare, and of what is sent and absorbed as much as can be seen."""
    every = [(life, moment, _sign_of(moment, life.maker)) for life in story.lives for moment in life.moments]
    marked = [each for each in every if each[2]]
    if len(marked) <= EVENTS_MAX:
        return marked, []
    marked.sort(key=lambda each: each[2] != FAILURE)
    rare = thinned([each for each in marked if each[2] != EVENT], EVENTS_MAX)
    kept = [*rare, *thinned([each for each in marked if each[2] == EVENT], EVENTS_MAX - len(rare))]
    return kept, [f"Only {EVENTS_MAX:,} of {len(marked):,} events are marked."]


def _dashes_of(flight: Flight) -> str | None:
    return _ATTACH if flight.what == "attach" else None


def _cone_sample(x: float, y: float) -> str:
    edge = ((x + 3, y - 5), (x + 12, y + 4), (x + 21, y - 5))
    return svg.path(edge, fill=LIGHT, fill_opacity=0.3, stroke=LIGHT, stroke_width=1)


def _biography(life: Life) -> str:
    start, end = life.corners[0], life.corners[-1]
    made = f", made by {life.maker}" if life.maker else ""
    ended = ", died" if life.end == "died" else ""
    return f"{life.name}: from {point(start)} to {point(end)}{made}{ended}"


def _beside(line: Sequence[Point], text: str, size: float) -> Iterator[Point]:
    """Yield where a bold text might begin: over the line's end, beside it, along it, under its start."""
    width = svg.text_width(text, size, bold=True)
    x, y = line[-1]
    yield x - width / 2, y - 7
    yield x - width / 2, y - 9 - size
    yield x + 7, y + size * 0.4
    yield x - 7 - width, y + size * 0.4
    for share in (0.85, 0.6, 0.4, 0.2):
        x, y = _along(line, share)
        yield x + 8, y + size * 0.36
        yield x - 8 - width, y + size * 0.36
    x, y = line[0]
    yield x - width / 2, y + size + 6


def _along(line: Sequence[Point], share: float) -> Point:
    """Return the point of a line that is at this share of its height."""
    height = line[0][1] + (line[-1][1] - line[0][1]) * share
    for place in range(1, len(line)):
        start, end = line[place - 1], line[place]
        if end[1] <= height < start[1]:
            return svg.between(start, end, (height - start[1]) / (end[1] - start[1]))
    return line[-1]
