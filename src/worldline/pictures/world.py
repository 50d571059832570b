"""Draws a run of a world from above: where performers have been, in the colors of the secondaries that simulated them.

Of what was where, only so much is kept as can be seen. Outlines are made of sums, products and square roots only,
which every machine rounds in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import sqrt
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from worldline.files.saving import save
from worldline.model.text import counted
from worldline.model.time import SECOND, format_time
from worldline.pictures import svg
from worldline.pictures.sheet import (
    MARGIN,
    SMALL,
    Sample,
    Sheet,
    axes,
    label_width,
    left_out,
    line_sample,
    ticks_between,
)
from worldline.pictures.svg import LabelSpace, Point
from worldline.world.description import Level, RigidLink, WorldDescription, WorldModel
from worldline.world.pose import Pose, Vector
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    PlaneShape,
    Shape,
    SphereShape,
    shape_inertia,
)
from worldline.world.spectator import Spectator, position_in

# What models look like from above: a circle where it is one, and otherwise a convex polygon.

_UPRIGHT = 1 - 1e-9  # A column that leans less than this is seen as a circle.
_HALF = sqrt(0.5)
_LONG, _SHORT = sqrt(2 + sqrt(2)) / 2, sqrt(2 - sqrt(2)) / 2
_EIGHTHS = ((1.0, 0.0), (_LONG, _SHORT), (_HALF, _HALF), (_SHORT, _LONG))
_CIRCLE = tuple(
    point for x, y in _EIGHTHS for point in ((x, y), (-y, x), (-x, -y), (y, -x))
)  # Sixteen points of the unit circle.


class Round(NamedTuple):
    center: Point
    radius: float


Outline = Round | tuple[Point, ...]
"""A polygon's corners go around counterclockwise."""


def model_outlines(model: WorldModel, at: Pose) -> list[Outline]:
    """Return what a model looks like whose frame is there, with its links as they were at the start.

    Planes look like nothing: they are everywhere.
    """
    return [outline for link in model.links for outline in _link_outlines(link, at.compose(link.pose))]


def _link_outlines(link: RigidLink, at: Pose) -> Iterator[Outline]:
    for each in link.visuals or link.collisions:
        if not isinstance(each.shape, PlaneShape):
            yield _shape_outline(each.shape, at.compose(each.pose))


def _shape_outline(shape: Shape, at: Pose) -> Outline:
    x, y, _ = at.position
    match shape:
        case SphereShape(radius):
            return Round((x, y), radius)
        case CylinderShape(radius, _) | CapsuleShape(radius, _) if abs(at.rotate((0.0, 0.0, 1.0))[2]) >= _UPRIGHT:
            return Round((x, y), radius)
    return _hull(at.place(point)[:2] for point in _corners(shape))


def _corners(shape: Shape) -> Iterator[Vector]:
    """Yield points whose hull is a shape, or nearly so."""
    match shape:
        case BoxShape((x, y, z)):
            yield from ((i * x / 2, j * y / 2, k * z / 2) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1))
        case CylinderShape(radius, length):
            yield from ((radius * i, radius * j, k * length / 2) for i, j in _CIRCLE for k in (-1, 1))
        case CapsuleShape(radius, length):
            yield from ((x, y, z + k * length / 2) for x, y, z in _ball((radius, radius, radius)) for k in (-1, 1))
        case EllipsoidShape(radii):
            yield from _ball(radii)


def _ball(radii: Vector) -> Iterator[Vector]:
    a, b, c = radii
    for i, j in _CIRCLE:
        for x, y, z in ((i, j, 0.0), (i, 0.0, j), (0.0, i, j), (i * _HALF, i * _HALF, j), (i * _HALF, -i * _HALF, j)):
            yield (a * x, b * y, c * z)


def _hull(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return the corners of the least convex polygon around some points."""
    ordered = sorted(set(points))
    if len(ordered) < 3:
        return tuple(ordered)
    return (*_half_hull(ordered), *_half_hull(ordered[::-1]))


def _half_hull(ordered: Iterable[Point]) -> list[Point]:
    chain: list[Point] = []
    for point in ordered:
        while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    return chain[:-1]


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


# What was where, and never too many moments of it.

NUMBERS_MAX = 900_000
"""How many numbers may be kept in all: with 2 to 4 letters each, a picture has some megabytes."""

_FRAMES_PER_SECOND = 50

Spot = tuple[Point, str, tuple[int, int]]
"""Where a mover is, in meters; the secondary that has it; and how often there was a reset, or it was removed, before:
then a path doesn't go on."""

Frame = tuple[int, dict[str, Spot]]
"""An iteration, and the spots of all movers."""


class Film:
    """Keeps frames at multiples of a number of iterations, which doubles when there are too many.

    What is kept follows from what was shown alone, and the last frame is always among it.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._frames: list[Frame] = []
        self._latest: Frame | None = None
        self._numbers = 0

    def add(self, frame: Frame) -> None:
        self._latest = None
        if frame[0] % self._every:
            self._latest = frame
            return
        if self._frames and self._frames[-1][0] == frame[0]:  # A reset may end an iteration again.
            self._numbers -= _numbers_of(self._frames.pop())
        self._frames.append(frame)
        self._numbers += _numbers_of(frame)
        while self._numbers > NUMBERS_MAX and len(self._frames) > 2:
            self._every *= 2
            self._frames = [each for each in self._frames if each[0] % self._every == 0]
            self._numbers = sum(map(_numbers_of, self._frames))
            if not self._frames or self._frames[-1] is not frame:
                self._latest = frame

    def frames(self) -> list[Frame]:
        return self._frames if self._latest is None else [*self._frames, self._latest]


def _numbers_of(frame: Frame) -> int:
    return 3 * len(frame[1]) + 4


def _seen(meters: float) -> float:
    """Return a coordinate to the millimeter."""
    return round(meters * 1000) / 1000


TrackPoint = tuple[Point, str, bool]
"""A point of a path, the secondary that had the way that leads here, and whether there is none, after a jump."""

_SIDE = 720.0  # Pixels, of the longer one.
_MARK = 6.0
_LEVEL = "#56b4e9"
_BUFFER = "5 4"


class PathsPicture(Spectator):
    """Collects frames; `svg` and `write` draw the paths so far. A world without performers shows all movers.

    Statics are shown with their links as they were at the start: what joints do isn't seen.
    """

    def __init__(self, *, title: str = "") -> None:
        self.title = title
        self.world = WorldDescription(name="world", models={})
        self._movers: dict[str, tuple[WorldModel, Callable[[bytes], Vector]]] = {}  # Those that are loaded,
        self._owners: dict[str, str] = {}  # and their secondaries.
        self._absences: dict[str, int] = {}
        self._statics: dict[str, list[Outline]] = {}
        self._film = Film(1)
        self._step = -1
        self._epoch = 0

    def began(self, description: WorldDescription) -> None:
        self.every = -(-SECOND // (_FRAMES_PER_SECOND * description.step))
        self.world = description
        self._film = Film(self.every)

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        known, self._movers = self._movers, {}
        for name, (model, _) in known.items():
            if models.get(name) != model:
                self._absences[name] = self._absences.get(name, 0) + 1
        for name, model in models.items():
            if model.static:
                self._statics.setdefault(name, model_outlines(model, model.pose))
            else:
                self._movers[name] = (
                    known[name]
                    if name in known and known[name][0] is model
                    else (
                        model,
                        position_in(model),
                    )
                )
                self._owners[name] = affinities.get(name, "")

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        if step < self._step:
            self._epoch += 1
        self._step = step
        if iteration % self.every:
            return
        spots: dict[str, Spot] = {}
        for name, (_, position) in self._movers.items():
            if name in poses:
                x, y, _ = position(poses[name])
                spots[name] = ((_seen(x), _seen(y)), self._owners[name], (self._epoch, self._absences.get(name, 0)))
        self._film.add((iteration, spots))

    def svg(self) -> str:
        """Draw the paths. Nothing that is drawn depends on the machine."""
        frames = self._film.frames()
        statics = [outline for _, outlines in sorted(self._statics.items()) for outline in outlines]
        took = frames[-1][0] * self.world.step if frames else 0
        drawing = _PathsDrawing(
            self.title or self.world.name, self.world.levels, statics, self._tracks(frames), self._colors()
        )
        return drawing.text(took)

    _repr_svg_ = svg

    def _performers(self) -> dict[str, str]:
        """Return the names of performers, by model."""
        return {performer.model: performer.name for performer in self.world.performers}

    def _colors(self) -> dict[str, str]:
        """Return the color of each model, or of the performer in it: that of its largest visual, if it has one."""
        performers, colors = self._performers(), {}
        for name, model in self.world.models.items():
            visuals = [visual for link in model.links for visual in link.visuals if not model.static]
            if visuals:
                largest = max(visuals, key=lambda visual: shape_inertia(visual.shape, 1.0).mass)
                red, green, blue = (round(255 * part) for part in largest.color[:3])
                colors[performers.get(name, name)] = f"#{red:02x}{green:02x}{blue:02x}"
        return colors

    def _tracks(self, frames: Sequence[Frame]) -> dict[str, list[TrackPoint]]:
        performers = self._performers()
        tracks: dict[str, list[TrackPoint]] = {}
        for model in sorted({model for _, spots in frames for model in spots}):
            if performers and model not in performers:
                continue
            last = None
            for _, spots in frames:
                here = None
                if model in spots:
                    at, owner, here = spots[model]
                    tracks.setdefault(performers.get(model, model), []).append((at, owner, here != last))
                last = here
        return tracks

    def write(self, target: str | PathLike[str]) -> None:
        """Write the picture, whole or not at all."""
        save(Path(target), self.svg().encode())


class _PathsDrawing:
    def __init__(
        self,
        title: str,
        levels: Sequence[Level],
        statics: Sequence[Outline],
        tracks: Mapping[str, Sequence[TrackPoint]],
        colors: Mapping[str, str],
    ) -> None:
        self.levels = levels
        self.colors = colors
        self.statics = statics
        self.tracks = tracks
        owners = sorted({owner for points in tracks.values() for _, owner, _ in points})
        self.looks = svg.looks_of(owners)
        low, high = _view(levels, statics, tracks)
        self.low = low
        self.zoom = _SIDE / max(high[0] - low[0], high[1] - low[1])
        width, height = (high[0] - low[0]) * self.zoom, (high[1] - low[1]) * self.zoom
        self.columns = ticks_between(low[0], high[0], width / 70)
        self.rows = ticks_between(low[1], high[1], height / 50)
        before = 34.0 + label_width(self.rows.placed(float))
        self.sheet = Sheet(title, max(before + width + MARGIN, 420.0), list(self._entries()))
        self.left, self.top = before, self.sheet.top + 4
        self.right, self.bottom = before + width, self.top + height
        self.space = LabelSpace()

    def at(self, point: Point) -> Point:
        return self.left + (point[0] - self.low[0]) * self.zoom, self.bottom - (point[1] - self.low[1]) * self.zoom

    def text(self, took: int) -> str:
        # In the order of their importance: each takes room from those after it.
        marks, level_names, names = list(self._marks()), list(self._level_names()), list(self._names())
        at_x, at_y = (lambda x: self.at((x, 0.0))[0]), (lambda y: self.at((0.0, y))[1])
        box = (self.left, self.top, self.right, self.bottom)
        titles = self.columns.titled("x, in meters"), self.rows.titled("y, in meters")
        content = [
            *axes(box, self.columns.placed(at_x), self.rows.placed(at_y), titles),
            svg.element(
                "g",
                [*self._levels(), *self._statics(), *self._paths()],
                clip_path="url(#worldline-paths-area)",
            ),
            *marks,
            *svg.haloed(level_names, class_="levels", fill=svg.SOFT),
            *svg.haloed(names, class_="names", font_weight=600),
        ]
        area = svg.element("rect", x=self.left, y=self.top, width=self.right - self.left, height=self.bottom - self.top)
        caption = f"{counted(len(self.tracks), 'path')} over {format_time(took)}, seen from above."
        return self.sheet.text(
            content,
            [" ".join([caption, *left_out(names.count(""))])],
            self.bottom + 62,
            kind="paths",
            untitled="Paths",
            definitions=[svg.element("clipPath", area, id="worldline-paths-area")],
            style=".worldline-paths .path:hover{stroke-width:4}",
        )

    def _entries(self) -> Iterator[tuple[str, Sample]]:
        if list(self.looks) != [""]:
            for owner, look in self.looks.items():
                yield svg.shortened(owner or "alone", 24), line_sample(look.color, 2, look.dashes)
        if self.tracks:
            yield "start", lambda x, y: _mark(x + 12, y, svg.SOFT, svg.PAPER)
            yield "end", lambda x, y: _mark(x + 12, y, svg.SOFT, svg.SOFT)
        if self.levels:
            yield "level", lambda x, y: _box(x, y - 5, 24, 10)
            yield "its buffer", lambda x, y: _box(x, y - 5, 24, 10, is_buffer=True)
        if self.statics:
            yield "static", lambda x, y: svg.element("rect", x=x, y=y - 5, width=24, height=10, **_FAINTLY)

    def _levels(self) -> Iterator[str]:
        for level in self.levels:
            box, grown = _level_box(level, 0.0), _level_box(level, level.buffer)
            parts = [svg.hover(f"level {level.name}, buffer {level.buffer:g} m"), self._rect(box)]
            if level.buffer:
                parts.append(self._rect(grown, is_buffer=True))
            yield svg.element("g", parts, class_="level")

    def _rect(self, box: tuple[Point, Point], *, is_buffer: bool = False) -> str:
        (left, bottom), (right, top) = self.at(box[0]), self.at(box[1])
        return _box(left, top, right - left, bottom - top, is_buffer=is_buffer)

    def _level_names(self) -> Iterator[str]:
        for level in self.levels:
            (left, bottom), (right, top) = _level_box(level, 0.0)
            (x, y), (end, _) = self.at((left, top)), self.at((right, bottom))
            text = svg.fitted(level.name, max(24.0, end - x - 8), SMALL)
            width = svg.text_width(text, SMALL)
            self.space.take(svg.text_discs((x + 5 + width / 2, y + 10), width, SMALL))
            yield svg.text_at(x + 5, y + 14, text, size=SMALL)

    def _statics(self) -> Iterator[str]:
        drawn = []
        for outline in self.statics:
            if isinstance(outline, Round):
                x, y = self.at(outline.center)
                drawn.append(svg.element("circle", cx=x, cy=y, r=max(0.5, outline.radius * self.zoom)))
            elif len(outline) > 1:
                drawn.append(svg.element("path", d=f"{svg.way(map(self.at, outline))}z"))
        if drawn:
            yield svg.element("g", drawn, class_="statics", **_FAINTLY)

    # -- Paths

    def _paths(self) -> Iterator[str]:
        for name, points in self.tracks.items():
            parts = [svg.hover(_told(name, points))]
            for owner, line in self._strokes(points):
                look = self.looks[owner]
                parts.append(svg.path(line, stroke=look.color, stroke_dasharray=look.dashes))
            yield svg.element("g", parts, class_="path", fill="none", stroke_width=1.8, stroke_linejoin="round")

    def _strokes(self, points: Sequence[TrackPoint]) -> Iterator[tuple[str, list[Point]]]:
        """Yield the parts of a path that one secondary had, without jumps."""
        line: list[Point] = []
        owner = ""
        for at, point_owner, jumped in points:
            spot = self.at(at)
            if line and not jumped and point_owner == owner:
                line.append(spot)
                continue
            if len(line) > 1:
                yield owner, svg.without_near(line)
            line = [line[-1], spot] if line and not jumped else [spot]
            owner = point_owner
        if len(line) > 1:
            yield owner, svg.without_near(line)

    def _marks(self) -> Iterator[str]:
        for is_end in (False, True):
            drawn = []
            for name, points in self.tracks.items():
                at, owner, _ = points[-1 if is_end else 0]
                x, y = self.at(at)
                look = self.looks[owner].color
                drawn.append(_mark(x, y, look, self.colors.get(name, look) if is_end else svg.PAPER))
                self.space.take([(x, y, _MARK)])
            if drawn:
                yield svg.element("g", drawn, class_="ends" if is_end else "starts")

    def _names(self) -> Iterator[str]:
        """Write names next to where paths end, or else where they start; off all paths if that can be."""
        lines = LabelSpace()
        for points in self.tracks.values():
            for _, line in self._strokes(points):
                lines.take(svg.line_discs(line))
        for name, points in self.tracks.items():
            text = svg.shortened(name, 24)
            width = svg.text_width(text, SMALL, bold=True)
            spots = [
                spot
                for x, y in (self.at(points[-1][0]), self.at(points[0][0]))
                for spot in ((x + 8, y + 4), (x - 8 - width, y + 4), (x - width / 2, y - 9), (x - width / 2, y + 17))
            ]
            edges = (self.left, self.sheet.width - 2)
            yield self.space.written(
                text, spots, SMALL, avoiding=(lines, None), within=edges, bold=True, fill=self._ink(name)
            )

    def _ink(self, name: str) -> str:
        """Return the color of a name: its model's own, unless that is too light to be read."""
        color = self.colors.get(name, svg.INK)
        red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
        return color if 2 * red + 5 * green + blue < 8 * 170 else svg.INK


_FAINTLY: dict[str, str | float] = {"fill": svg.FAINT, "fill_opacity": 0.25, "stroke": svg.FAINT, "stroke_width": 1}


def _view(
    levels: Sequence[Level], statics: Sequence[Outline], tracks: Mapping[str, Sequence[TrackPoint]]
) -> tuple[Point, Point]:
    """Return the corners of what is shown: paths and levels. Of statics, which may be huge, only what is there."""
    points = [at for track in tracks.values() for at, _, _ in track]
    points += [corner for level in levels for corner in _level_box(level, level.buffer)]
    points = points or [corner for outline in statics for corner in _corners_of(outline)] or [(0.0, 0.0)]
    (left, right), (low, high) = ((min(each), max(each)) for each in zip(*points, strict=True))
    margin = 0.04 * max(right - left, high - low) + 0.5
    return (left - margin, low - margin), (right + margin, high + margin)


def _corners_of(outline: Outline) -> Sequence[Point]:
    if not isinstance(outline, Round):
        return outline
    (x, y), radius = outline
    return [(x - radius, y - radius), (x + radius, y + radius)]


def _level_box(level: Level, buffer: float) -> tuple[Point, Point]:
    x, y = level.center[0], level.center[1]
    a, b = level.size[0] / 2 + buffer, level.size[1] / 2 + buffer
    return (x - a, y - b), (x + a, y + b)


def _box(x: float, y: float, width: float, height: float, *, is_buffer: bool = False) -> str:
    if is_buffer:
        return svg.element(
            "rect", x=x, y=y, width=width, height=height, fill="none", stroke=_LEVEL, stroke_dasharray=_BUFFER
        )
    return svg.element("rect", x=x, y=y, width=width, height=height, fill=_LEVEL, fill_opacity=0.1, stroke=_LEVEL)


def _mark(x: float, y: float, color: str, fill: str) -> str:
    """Mark an end of a path, in the color of its secondary; where it ends, it is filled with its model's own color."""
    return svg.element("circle", cx=x, cy=y, r=_MARK - 0.8, fill=fill, stroke=color, stroke_width=1.8)


def _told(name: str, points: Sequence[TrackPoint]) -> str:
    (a, b), (c, d) = points[0][0], points[-1][0]
    owners = [owner for owner, _ in groupby(owner for _, owner, _ in points)]
    by = f", simulated by {', '.join(owners[:8])}" if any(owners) else ""
    return f"{name}: from ({a:.2f}, {b:.2f}) to ({c:.2f}, {d:.2f}){by}{' …' if len(owners) > 8 else ''}"
