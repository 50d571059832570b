"""Draws where performers have been, from above, in the colors of the secondaries that simulated them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from worldline.files.saving import save
from worldline.model.text import counted
from worldline.model.time import MS, format_time
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
from worldline.pictures.world.outlines import Outline, Round, Whereabouts, model_outlines
from worldline.world.description import Level, WorldDescription, WorldModel
from worldline.world.spectator import Spectator

# A path in the plane that takes a bounded amount of memory, however long it is.

TRACK_POINTS_MAX = 4_000
_NEAREST_POINT = 0.001  # Meters.


class TrackPoint(NamedTuple):
    """A point of a path. `owner` had the way that leads here; after a jump there is none."""

    at: Point
    owner: str
    jumped: bool


class Track:
    """Keeps points that are some distance apart, and a larger one whenever there are too many of them.

    What is kept follows from the path alone. Where the path ends is always known.
    """

    def __init__(self) -> None:
        self._points: list[TrackPoint] = []
        self._apart = _NEAREST_POINT
        self._left_out: TrackPoint | None = None

    def add(self, at: Point, owner: str, *, jumped: bool = False) -> None:
        self._take(TrackPoint(at, owner, jumped))
        while len(self._points) > TRACK_POINTS_MAX:
            self._thin()

    def points(self) -> list[TrackPoint]:
        return self._points if self._left_out is None else [*self._points, self._left_out]

    def _thin(self) -> None:
        self._apart *= 2
        points: Iterable[TrackPoint] = self.points()
        self._points, self._left_out = [], None
        for point in points:
            self._take(point)

    def _take(self, point: TrackPoint) -> None:
        if self._left_out is not None and self._left_out.jumped:
            point = point._replace(jumped=True)
        if self._points and svg.distance(self._points[-1].at, point.at) < self._apart:
            self._left_out = point
        else:
            self._points.append(point)
            self._left_out = None


_OFTEN = 10 * MS  # A fast vehicle has moved by some centimeters since.
_SIDE = 720.0  # Pixels, of the longer one.
_MARK = 4.5
_LEVEL = "#56b4e9"
_BUFFER = "5 4"


class PathsPicture(Spectator):
    """Collects paths; `svg` and `write` draw what there is so far. A world without performers shows all movers."""

    def __init__(self, *, title: str = "") -> None:
        self._title = title
        self._world: WorldDescription | None = None
        self._whereabouts = Whereabouts()
        self._names: dict[str, str] = {}  # Of what is drawn, by model.
        self._tracks: dict[str, Track] = {}
        self._statics: dict[str, WorldModel] = {}
        self._broken: set[str] = set()  # Those whose next point isn't reached on any way.
        self._iterations = 0

    def began(self, description: WorldDescription) -> None:
        self.every = max(1, _OFTEN // description.step)
        self._world = description
        self._names = {performer.model: performer.name for performer in description.performers}

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        self._whereabouts.change(models, affinities)
        self._statics |= self._whereabouts.statics
        self._broken |= self._tracks.keys() - self._whereabouts.movers.keys()

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        self._iterations = iteration
        if self._whereabouts.is_reset(step):
            self._broken |= self._tracks.keys()
        drawn = {model: poses[model] for model in self._names if model in poses} if self._names else poses
        for model, seen in self._whereabouts.sightings(drawn):
            x, y, _ = seen.position
            track = self._tracks.setdefault(model, Track())
            track.add((x, y), self._whereabouts.secondaries[model], jumped=model in self._broken)
            self._broken.discard(model)

    def svg(self) -> str:
        """Draw the paths. Nothing that is drawn depends on the machine."""
        world = self._world
        tracks = {self._names.get(model, model): track.points() for model, track in sorted(self._tracks.items())}
        statics = [
            outline for _, model in sorted(self._statics.items()) for outline in model_outlines(model, model.pose)
        ]
        levels = world.levels if world is not None else ()
        title = self._title or (world.name if world is not None else "")
        took = self._iterations * world.step if world is not None else 0
        return _PathsDrawing(title, levels, statics, tracks).text(took)

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
    ) -> None:
        self.levels = levels
        self.statics = statics
        self.tracks = tracks
        owners = sorted({point.owner for points in tracks.values() for point in points})
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
            yield "start", lambda x, y: _mark(x + 12, y, svg.SOFT, is_end=False)
            yield "end", lambda x, y: _mark(x + 12, y, svg.SOFT, is_end=True)
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
        for point in points:
            spot = self.at(point.at)
            if line and not point.jumped and point.owner == owner:
                line.append(spot)
                continue
            if len(line) > 1:
                yield owner, svg.without_near(line)
            line = [line[-1], spot] if line and not point.jumped else [spot]
            owner = point.owner
        if len(line) > 1:
            yield owner, svg.without_near(line)

    def _marks(self) -> Iterator[str]:
        for is_end in (False, True):
            drawn = []
            for points in self.tracks.values():
                point = points[-1 if is_end else 0]
                x, y = self.at(point.at)
                drawn.append(_mark(x, y, self.looks[point.owner].color, is_end=is_end))
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
                for x, y in (self.at(points[-1].at), self.at(points[0].at))
                for spot in ((x + 8, y + 4), (x - 8 - width, y + 4), (x - width / 2, y - 9), (x - width / 2, y + 17))
            ]
            color = self.looks[points[-1].owner].color
            edges = (self.left, self.sheet.width - 2)
            yield self.space.written(text, spots, SMALL, avoiding=(lines, None), within=edges, bold=True, fill=color)


_FAINTLY: dict[str, str | float] = {"fill": svg.FAINT, "fill_opacity": 0.25, "stroke": svg.FAINT, "stroke_width": 1}


def _view(
    levels: Sequence[Level], statics: Sequence[Outline], tracks: Mapping[str, Sequence[TrackPoint]]
) -> tuple[Point, Point]:
    """Return the corners of what is shown: paths and levels. Of statics, which may be huge, only what is there."""
    points = [point.at for track in tracks.values() for point in track]
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


def _mark(x: float, y: float, color: str, *, is_end: bool) -> str:
    if is_end:
        return svg.element("circle", cx=x, cy=y, r=_MARK, fill=color, stroke=svg.PAPER, stroke_width=1)
    return svg.element("circle", cx=x, cy=y, r=_MARK - 0.8, fill=svg.PAPER, stroke=color, stroke_width=1.8)


def _told(name: str, points: Sequence[TrackPoint]) -> str:
    (a, b), (c, d) = points[0].at, points[-1].at
    owners = [owner for owner, _ in groupby(point.owner for point in points)]
    by = f", simulated by {', '.join(owners[:8])}" if any(owners) else ""
    return f"{name}: from ({a:.2f}, {b:.2f}) to ({c:.2f}, {d:.2f}){by}{' …' if len(owners) > 8 else ''}"
