"""Draws a run as a Minkowski diagram: lab time upwards, space to the right, agents and lambdas as lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from worldline.model.text import counted
from worldline.pictures.plane import Look, Point, distance, fading
from worldline.pictures.sheet import GRID, MARGIN, Entry, Lines, Sheet, chosen, ticks_between, upright
from worldline.pictures.spacetime.frame import (
    Frame,
    Projection,
    Wall,
    apexes,
    definitions,
    drawn_light,
    drawn_walls,
    projection_of,
    walls_of,
)
from worldline.pictures.spacetime.happenings import (
    Flight,
    Life,
    Moment,
    SpacetimePicture,
    described,
    failures_of,
    point,
    thinned,
    told,
)
from worldline.pictures.spacetime.signs import (
    EVENT,
    FAILURE,
    HEAD,
    JUMP,
    Looks,
    Name,
    Names,
    dashes_of,
    entries_of,
    glyph,
    sign_of,
)
from worldline.pictures.svg import (
    ALARM,
    PAPER,
    SOFT,
    Value,
    arrow_end,
    arrow_head,
    element,
    fitted,
    haloed,
    hover,
    number,
    path,
    shortened,
    text_at,
    text_width,
    way,
    wrapped,
)
from worldline.spacetime.boundary import Boundary
from worldline.spacetime.geometry import LambdaField
from worldline.spacetime.outcome import AgentRecord, Coordinates

AGENTS_MAX = 400
LAMBDAS_MAX = 3_000
EVENTS_MAX = 3_000

_NOTES_UP_TO = 24
_NAME_UP_TO = 26  # Letters.
_WIDE_TARGETS_UP_TO = 100  # Agents whose worldlines are easy to hit with the mouse.
_NEAREST = 0.4  # Corners that are closer to each other than that, in pixels, are one.
_AXIS = "#8a96a3"
_NARROWEST = 520.0
_SMALL = 11.5


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
    (60, Lines(1.1, 0.8, HEAD)),
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
) -> str:
    """Draw the Minkowski diagram of a run that was traced, in a space of `n` dimensions, as far as `until`.

    To the right is the spatial coordinate `axis`, or the direction in which agents are spread most; in a space of one
    dimension they stand side by side. Only so much is drawn as anybody can look at, evenly chosen; the picture says so.
    """
    whole = told(records, n, until, field)
    story, cuts = _thinned(whole)
    projection = projection_of(story, n, axis)
    own_walls = walls_of(boundaries, projection)
    diagram = _MinkowskiDiagram(story, projection, field, title, own_walls, cones, Looks(whole))
    failures = [line for each in failures_of(whole) for line in wrapped(each, diagram.sheet.width - 2 * MARGIN, _SMALL)]
    return diagram.text([*failures, _caption(whole), *_ways_of_seeing(diagram.frame, projection, n), *cuts])


def _thinned(story: SpacetimePicture) -> tuple[SpacetimePicture, list[str]]:
    """Leave out what would only make a picture black, and say so."""
    lives, flights, cuts = story.lives, story.flights, []
    if len(lives) > AGENTS_MAX:
        cuts.append(f"Only {AGENTS_MAX:,} of {len(lives):,} agents are drawn, and lambdas between these.")
        lives = thinned(lives, AGENTS_MAX)
    drawn = {life.name for life in lives}
    flights = [flight for flight in flights if flight.source in drawn and flight.target in drawn]
    if len(flights) > LAMBDAS_MAX:
        cuts.append(f"Only {LAMBDAS_MAX:,} of {len(flights):,} lambdas are drawn.")
        flights = thinned(flights, LAMBDAS_MAX)
    return SpacetimePicture(story.begin, story.end, lives, flights), cuts


def _caption(story: SpacetimePicture) -> str:
    lives, fates = story.lives, [flight.fate for flight in story.flights]
    if not lives:
        return "Nothing happened: there are no records."
    agents = counted(len(lives), "agent")
    if not fates:
        return f"{agents}, no lambdas"
    parts = [f"{fates.count('absorbed'):,} absorbed"]
    parts += [
        f"{fates.count(fate):,} {words}"
        for fate, words in (("vanished", "vanished"), ("under way", "under way at the end"))
        if fate in fates
    ]
    return f"{agents}, {counted(len(fates), 'lambda')}: {', '.join(parts)}"


def _ways_of_seeing(frame: Frame, projection: Projection, n: int) -> list[str]:
    """Say how space is drawn, if not as it is."""
    if not projection.has_space:
        return []
    lines = []
    if not projection.is_exact:
        lines.append(f"Of {n - 1} dimensions of space one is seen: lambdas can look slow.")
    if frame.stretch != 1.0:
        larger = frame.stretch > 1
        times = number(frame.stretch if larger else 1 / frame.stretch)
        lines.append(f"Space is drawn {times} times {'larger' if larger else 'smaller'} than time.")
    return lines


class _Sign(NamedTuple):
    """A moment in an agent's life that is marked."""

    life: Life
    moment: Moment
    sign: str


class _MinkowskiDiagram:
    def __init__(
        self,
        story: SpacetimePicture,
        projection: Projection,
        field: LambdaField | None,
        title: str,
        own_walls: list[Wall],
        cones: bool,
        looks: Looks,
    ) -> None:
        self.story = story
        self.projection = projection
        self.field = field
        self.walls = own_walls
        self.frame = frame = Frame(story, projection, own_walls)
        self.sizes = chosen(_SIZES, len(story.lives))
        self.lines = chosen(_LAMBDAS, len(story.flights))
        self.looks = looks
        self.lives = {life.name: life for life in story.lives}
        self.signs, self.cuts = _signs(story)
        self.times = ticks_between(story.begin, story.end, frame.height / 60)
        before = 46.0 + max(text_width(label, 10.5) for label in self.times.labels)
        width = max(before + frame.width + MARGIN, _NARROWEST)
        self.has_cones = cones and projection.has_space and bool(story.flights)
        self.sheet = Sheet(title, width, self._entries())
        above = self.sheet.top + 6 + 2 * (self.sizes.name + 2)
        frame.put(before + (width - before - MARGIN - frame.width) / 2, above)
        self.names = Names(4.0, width - 4)

    @property
    def floor(self) -> float:
        return self.frame.bottom + 16

    def at(self, name: str, coordinates: Coordinates) -> Point:
        return self.frame.x(self.projection.of(name, coordinates)), self.frame.y(coordinates[0])

    # -- The whole

    def text(self, caption: Sequence[str]) -> str:
        ways = {life.name: self._pieces(life) for life in self.story.lives}
        failures = self._failures()  # First, so that there is room for them.
        names = self._names(ways)
        lines = [*caption, *self.cuts]
        top = self.floor + (56 if self.projection.has_space else 30)
        content = [
            *self._axes(),
            *(self._cones() if self.has_cones else ()),
            *drawn_walls(self.walls, self.frame, self.names),
            *self._arrows(),
            *self._worldlines(ways),
            *self._events(),
            *names,
            *self._notes(),
            *failures,
            *self.sheet.caption(lines, top),
        ]
        style = (
            ".worldline-minkowski .lambda:hover{stroke-opacity:1;stroke-width:2.6}"
            ".worldline-minkowski .worldline:hover .way{stroke-width:4}"
        )
        own_definitions = element("defs", [*self._heads(), *(definitions(self.frame) if self.has_cones else ())])
        return self.sheet.text(
            top + 17 * len(lines),
            content,
            kind="minkowski",
            untitled="Minkowski diagram",
            definitions=own_definitions,
            style=style,
        )

    def _entries(self) -> list[Entry]:
        if not self.story.lives:
            return []
        return entries_of(
            self.looks.kinds,
            [sign.sign for sign in self.signs],
            self.story.flights,
            jumps=any(life.jumps for life in self.story.lives),
            cones=self.has_cones,
            walls=bool(self.walls),
        )

    def _heads(self) -> list[str]:
        if not self.story.flights:
            return []
        colors = dict.fromkeys(self._color(flight.source, flight.emitted) for flight in self.story.flights)
        heads = dict.fromkeys([(SOFT, HEAD), *((color, self.lines.head) for color in colors)])
        return [arrow_head(color, size) for color, size in heads]

    # -- Axes

    def _axes(self) -> list[str]:
        frame, floor = self.frame, self.floor
        left, right, ceiling = frame.left - 8, frame.right, frame.top
        heights = [frame.y(time) for time in self.times.values]
        grid = "".join(way(((left, y), (right, y))) for y in heights)
        labels = [
            text_at(left - 6, y + 3.5, label, size=10.5, text_anchor="end")
            for y, label in zip(heights, self.times.labels, strict=True)
        ]
        widest = max(text_width(label, 10.5) for label in self.times.labels)
        titles = [upright(left - 16 - widest, (ceiling + frame.bottom) / 2, self.times.titled("lab time"))]
        if self.projection.has_space:
            places = ticks_between(frame.place_at(frame.left), frame.place_at(right), frame.width / 70)
            columns = [frame.x(place) for place in places.values]
            grid += "".join(way(((x, ceiling), (x, floor))) for x in columns)
            labels += [
                text_at(x, floor + 15, label, size=10.5, text_anchor="middle")
                for x, label in zip(columns, places.labels, strict=True)
            ]
            title = places.titled(self.projection.title)
            middle = (left + right) / 2
            titles.append(
                text_at(middle, floor + 32, title, size=10.5, text_anchor="middle", font_style="italic"),
            )
        return [
            element("path", d=grid, stroke=GRID, stroke_width=1),
            path(((left, ceiling), (left, floor), (right, floor)), stroke=_AXIS, stroke_width=1, fill="none"),
            element("g", [*labels, *titles], class_="axis", fill=SOFT),
        ]

    # -- Light

    def _cones(self) -> list[str]:
        emitted = dict.fromkeys(self.at(each.source, each.emitted) for each in self.story.flights)
        return drawn_light(apexes(list(emitted), self.frame), self.frame, self.projection, self.field)

    def _arrows(self) -> list[str]:
        drawn: dict[str, list[str]] = {}
        for flight in self.story.flights:
            color = self._color(flight.source, flight.emitted)
            drawn.setdefault(color, []).append(self._arrow(flight, color))
        shades: dict[str, Value | None] = {"stroke_width": self.lines.stroke, "stroke_opacity": self.lines.opacity}
        return [element("g", lines, fill="none", stroke=color, **shades) for color, lines in drawn.items()]

    def _arrow(self, flight: Flight, color: str) -> str:
        start, end = self.at(flight.source, flight.emitted), self.at(flight.target, flight.end)
        parts = [hover(str(flight))]
        if flight.fate == "absorbed":
            head = arrow_end(color, self.lines.head) if distance(start, end) > self.lines.head else None
            parts.append(path((start, end), stroke_dasharray=dashes_of(flight), marker_end=head))
        else:
            parts += fading(start, end)
        return element("g", parts, class_=f"lambda {flight.fate.replace(' ', '-')}")

    # -- Worldlines

    def _pieces(self, life: Life) -> list[list[Point]]:
        """Return where a worldline runs; between the pieces it jumps."""
        pieces: list[list[Point]] = [[]]
        for place, corner in enumerate(life.corners):
            spot = self.at(life.name, corner)
            if place in life.jumps:
                pieces.append([spot])
            elif not pieces[-1] or place == len(life.corners) - 1 or distance(pieces[-1][-1], spot) >= _NEAREST:
                pieces[-1].append(spot)
        return pieces

    def _strokes(self, life: Life) -> list[tuple[Look, list[Point]]]:
        """Return the parts of a worldline that are drawn in one way, without its jumps."""
        changes = [(at[0], self.at(life.name, at), kind.look) for at, kind in self.looks.along(life)]
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
            elif distance(strokes[-1][1][-1], end) >= _NEAREST or place == len(life.corners) - 1:
                strokes[-1][1].append(end)
        return [(look, line) for look, line in strokes if len(line) > 1]

    def _color(self, name: str, at: Coordinates) -> str:
        return self.looks.at(self.lives[name], at[0]).color

    def _worldlines(self, ways: dict[str, list[list[Point]]]) -> list[str]:
        drawn = []
        is_roomy = len(self.story.lives) <= _WIDE_TARGETS_UP_TO
        for life in self.story.lives:
            pieces = ways[life.name]
            line = "".join(way(piece) for piece in pieces if len(piece) > 1)
            jumps = "".join(way((before[-1], after[0])) for before, after in pairwise(pieces))
            parts = [hover(_biography(life))]
            if is_roomy and line:
                parts.append(
                    element("path", d=line, stroke=PAPER, stroke_width=self.sizes.stroke + 2, stroke_opacity=0.8)
                )
                parts.append(element("path", d=line, stroke_width=10, stroke_opacity=0))
            strokes: dict[Look, str] = {}
            for look, stroke in self._strokes(life):
                strokes[look] = strokes.get(look, "") + way(stroke)
            first = self.looks.along(life)[0][1].look.color
            parts += [
                element(
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
                    element("path", d=jumps, class_="jump", stroke_width=self.sizes.stroke * 0.7, stroke_dasharray=JUMP)
                )
            drawn.append(element("g", parts, class_="worldline", stroke=first))
        return [element("g", drawn, fill="none", stroke_width=self.sizes.stroke, stroke_linejoin="round")]

    def _names(self, ways: dict[str, list[list[Point]]]) -> list[str]:
        lines = [[spot for piece in pieces for spot in piece] for pieces in ways.values()]
        frame = self.frame
        self.names.avoid(lines, ((frame.left - 8, frame.top), (frame.left - 8, self.floor), (frame.right, self.floor)))
        wanted = [
            Name(shortened(name, _NAME_UP_TO), "" if self.looks.change else self._color(name, (0.0,)), line)
            for name, line in zip(ways, lines, strict=True)
        ]
        written = self.names.placed(wanted, self.sizes.name)
        if len(written) < len(wanted):
            missing = len(wanted) - len(written)
            self.cuts.append(f"For want of room, {'a name is' if missing == 1 else f'{missing:,} names are'} left out.")
        return haloed(written, class_="names", font_weight=600)

    # -- What happened to agents

    def _events(self) -> list[str]:
        drawn = []
        for life, moment, sign in self.signs:
            x, y = self.at(life.name, moment.at)
            said = hover(f"{life.name} at {point(moment.at)}, local time {moment.local_time:.6g}: {described(moment)}")
            mark = glyph(sign, x, y, self._color(life.name, moment.at), self.sizes.sign)
            drawn.append(element("g", (said, mark), class_="event"))
        return [element("g", drawn, class_="events")] if drawn else []

    def _notes(self) -> list[str]:
        """Write what was logged, if it isn't much."""
        noted = [(sign, each.what) for sign in self.signs for each in sign.moment.records if each.kind == "log"]
        if not noted or len(noted) > _NOTES_UP_TO:
            return []
        texts = [
            self.names.note([self.at(sign.life.name, sign.moment.at)], shortened(text, 44), 9.5) for sign, text in noted
        ]
        return haloed(texts, class_="notes", fill=SOFT)

    def _failures(self) -> list[str]:
        """Write why the run has failed, where it did."""
        found = [(life, each) for life in self.story.lives for each in life.failures]
        texts = []
        for life, failure in found:
            x, y = self.at(life.name, failure.at)
            text = fitted(failure.what, self.sheet.width / 2 - 2 * MARGIN, 10.5)
            texts.append(self.names.note([(x + 4, y), (x - 4, y)], text, 10.5))
        return haloed(texts, class_="failures", fill=ALARM, font_weight=600)


def _signs(story: SpacetimePicture) -> tuple[list[_Sign], list[str]]:
    """Return what is marked: all that is rare, and of what is sent and absorbed as much as can be seen."""
    every = [_Sign(life, moment, sign_of(moment, life.maker)) for life in story.lives for moment in life.moments]
    marked = [each for each in every if each.sign]
    if len(marked) <= EVENTS_MAX:
        return marked, []
    marked.sort(key=lambda each: each.sign != FAILURE)
    usual = [each for each in marked if each.sign == EVENT]
    rare = thinned([each for each in marked if each.sign != EVENT], EVENTS_MAX)
    kept = [*rare, *thinned(usual, EVENTS_MAX - len(rare))]
    return kept, [f"Only {EVENTS_MAX:,} of {len(marked):,} events are marked."]


def _biography(life: Life) -> str:
    start, end = life.corners[0], life.corners[-1]
    made = f", made by {life.maker}" if life.maker else ""
    ended = ", died" if life.end == "died" else ""
    return f"{life.name}: from {point(start)} to {point(end)}{made}{ended}"
