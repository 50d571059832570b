"""Chooses how large a diagram is and where points are in it: time upwards, and light at 45 degrees if that can be."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from worldline.model.errors import UsageError, shown
from worldline.pictures.sheet import chosen
from worldline.pictures.spacetime.happenings import SpacetimePicture, shift_of, thinned
from worldline.pictures.svg import Point, distance, element, number, path, way
from worldline.spacetime.boundary import Boundary
from worldline.spacetime.geometry import LambdaField
from worldline.spacetime.outcome import Coordinates

# Chooses what is drawn of space: a coordinate, the direction in which agents are spread most, or columns side by side.
#
# Only sums, products and square roots are used here, which every machine rounds in the same way.

_POINTS_UP_TO = 2_000
_ROUNDS = 48
_NEARLY = 0.995  # If agents are spread so much along a coordinate, as a share of the most, that is drawn.


class Projection:
    """Says where an agent's point is, to the right: along `direction`, or if there is none in the agent's column."""

    def __init__(self, direction: Sequence[float], title: str, columns: dict[str, int]) -> None:
        self.direction = direction
        self.title = title
        self._columns = columns

    @property
    def has_space(self) -> bool:
        return bool(self.direction)

    @property
    def is_exact(self) -> bool:
        """Whether nothing of space is lost, so that light is seen as fast as it is."""
        return len(self.direction) == 1

    def of(self, name: str, at: Coordinates) -> float:
        if not self.direction:
            return float(self._columns[name])
        return self.along(at[1:])

    def along(self, vector: Sequence[float]) -> float:
        """Return the component of a vector in space."""
        return _product(vector, self.direction)


def projection_of(story: SpacetimePicture, n: int, axis: int | None) -> Projection:
    """Choose what is drawn: the axis that is asked for, or where there are several, the most telling direction."""
    if axis is not None:
        check_axis(axis, n)
    if n == 1:
        return Projection((), "", {life.name: place for place, life in enumerate(story.lives)})
    if axis is None:
        direction = [1.0] if n == 2 else _principal([at[1:] for life in story.lives for at in life.corners], n - 1)
    else:
        direction = [1.0 if place == axis else 0.0 for place in range(1, n)]
    return Projection(direction, _title(direction, n), {})


def check_axis(axis: object, n: int) -> None:
    if n == 1:
        raise UsageError("a space of one dimension is time alone, and has no axis to draw", advice="leave it out")
    if type(axis) is not int or not 1 <= axis < n:
        raise UsageError(
            f"there is no axis {shown(axis)} in a space of {n} dimensions",
            advice="use 1" if n == 2 else f"use 1 to {n - 1}; lab time, 0, is drawn anyway",
        )


def axis_name(axis: int, n: int) -> str:
    return "x" if n == 2 else f"x{axis}"


def _title(direction: Sequence[float], n: int) -> str:
    terms = []
    for axis, share in enumerate(direction, 1):
        name = axis_name(axis, n)
        if share == 1.0:
            return name
        if abs(share) >= 0.005:
            terms.append((abs(share), f"{'−' if share < 0 else '+'} {abs(share):.2f} {name}"))
    terms.sort(key=lambda term: -term[0])
    written = " ".join(text for _, text in terms[:4]).removeprefix("+ ")
    return written + (" …" if len(terms) > 4 else "")


def _principal(points: Sequence[Sequence[float]], size: int) -> list[float]:
    """Return the direction in which points are spread most, of length 1; its largest component is positive."""
    some = thinned(points, _POINTS_UP_TO)
    if not some:
        return _unit(0, size)
    means = [_total(each[i] / len(some) for each in some) for i in range(size)]
    extent = max(abs(each[i] - means[i]) for each in some for i in range(size))
    if not extent > 0:
        return _unit(0, size)
    columns = [[(each[i] - means[i]) / extent for each in some] for i in range(size)]
    half = [[_product(columns[i], columns[j]) for j in range(i + 1)] for i in range(size)]
    table = [[half[max(i, j)][min(i, j)] for j in range(size)] for i in range(size)]
    best = max(range(size), key=lambda i: (table[i][i], -i))
    # Not exactly an axis: that might be across the direction that is looked for, and would stay so.
    direction = [1.0 if i == best else 1e-3 for i in range(size)]
    for _ in range(_ROUNDS):
        turned = [_product(row, direction) for row in table]
        length = math.sqrt(_product(turned, turned))
        if not length > 0:
            break
        direction = [each / length for each in turned]
    if table[best][best] >= _NEARLY * _product(direction, [_product(row, direction) for row in table]):
        return _unit(best, size)
    largest = max(range(size), key=lambda i: (abs(direction[i]), -i))
    return [each if direction[largest] > 0 else -each for each in direction]


def _unit(axis: int, size: int) -> list[float]:
    return [1.0 if i == axis else 0.0 for i in range(size)]


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return _total(a * b for a, b in zip(one, other, strict=True))


def _total(numbers: Iterable[float]) -> float:
    """Add numbers, one after the other: what `sum` does with floats depends on the version of Python."""
    total = 0.0
    for each in numbers:
        total += each
    return total


_HEIGHT_READABLE, _HEIGHT_LEAST, _HEIGHT_LIKED, _HEIGHT_MOST = 200.0, 450.0, 900.0, 1_700.0
_WIDTH_READABLE, _WIDTH_LEAST, _WIDTH_MOST = 80.0, 260.0, 1_500.0
_PER_EVENT = 9.0  # So much higher is the picture for each event that an agent usually has.
_PER_AGENT, _PER_AGENT_LEAST = 44.0, 16.0
_NEAR = 0.6
_TINY = 1e-200
_COLUMNS = ((6, 110.0), (12, 80.0), (25, 50.0), (60, 26.0), (120, 14.0), (10**9, 8.0))


class Wall(NamedTuple):
    """A boundary that is at this place at lab time 0, and moves with this speed."""

    name: str
    place: float
    speed: float

    def at(self, time: float) -> float:
        return self.place + self.speed * time


class Frame:
    """The rectangle in which a run is drawn. `stretch` says how many times larger space is drawn than time."""

    def __init__(self, story: SpacetimePicture, projection: Projection, walls: Iterable[Wall] = ()) -> None:
        places = _places(story, projection)
        low, high = _with_walls(min(places, default=0.0), max(places, default=0.0), story, walls)
        self._low, self._begin = low, story.begin
        space, time = high - low, story.end - story.begin
        wanted_height = min(max(_HEIGHT_LEAST, _PER_EVENT * _usual_count(story)), _HEIGHT_MOST)
        wanted_width = min(max(_WIDTH_LEAST, _PER_AGENT * len(story.lives)), _WIDTH_MOST)
        self.stretch = 1.0
        if not projection.has_space:
            gap = chosen(_COLUMNS, len(story.lives))
            self.across = min(gap, _WIDTH_MOST * 2 / max(1.0, space))
            self.up = wanted_height / time if time > _TINY else 0.0
            self.margin = gap / 2 + 10
        elif not (time > _TINY or space > _TINY):
            self.across = self.up = 0.0
            self.margin = _WIDTH_LEAST / 2
        elif not space > _TINY:
            self.up = self.across = wanted_height / time
            self.margin = _WIDTH_LEAST / 2
        elif not time > _TINY:
            self.across = self.up = wanted_width / space
            self.margin = 24.0
        else:
            least = max(_WIDTH_READABLE, _PER_AGENT_LEAST * len(story.lives))
            self.up, self.stretch = _chosen_scale(time, space, wanted_height, wanted_width, min(least, wanted_width))
            self.across = self.up * self.stretch
            self.margin = 24.0 if space * self.across > 200 else 60.0
        self.width = space * self.across + 2 * self.margin
        self.height = max(time * self.up, 60.0)
        self.left = self.top = 0.0

    def put(self, left: float, top: float) -> None:
        self.left, self.top = left, top

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, place: float) -> float:
        return self.left + self.margin + (place - self._low) * self.across

    def y(self, time: float) -> float:
        return self.bottom - (time - self._begin) * self.up

    def place_at(self, x: float) -> float:
        """Return which place is drawn at x."""
        return self._low + (x - self.left - self.margin) / self.across if self.across else self._low

    def time_at(self, y: float) -> float:
        return self._begin + (self.bottom - y) / self.up if self.up else self._begin


def _with_walls(low: float, high: float, story: SpacetimePicture, walls: Iterable[Wall]) -> tuple[float, float]:
    """Make room for walls that aren't far from what happens."""
    near = (high - low) * _NEAR
    for wall in walls:
        for place in (wall.at(story.begin), wall.at(story.end)):
            if low - near <= place <= high + near:
                low, high = min(low, place), max(high, place)
    return low, high


def _chosen_scale(time: float, space: float, height: float, width: float, least: float) -> tuple[float, float]:
    """Return the pixels of a unit of time, and how many times larger a unit of space is drawn.

    That is once if the picture can be as wide as the least, and as high, without being larger than is liked.
    """
    scale = max(height / time, width / space)
    scale = min(scale, max(height, _HEIGHT_LIKED) / time, _WIDTH_MOST / space)
    if time * scale >= _HEIGHT_READABLE and space * scale >= least:
        return scale, 1.0
    wanted = (width / space) / (height / time)
    stretch = _rounded(wanted) if wanted >= 1 else 1 / _rounded(1 / wanted)
    up = min(height / time, _WIDTH_MOST / (space * stretch))
    return up, stretch


def _rounded(number: float) -> float:
    """Return the greatest of 1, 2, 5 times a power of ten that isn't above a number."""
    mantissa, power = f"{number:.15e}".split("e")
    digit = max(digit for digit in (1, 2, 5) if digit <= float(mantissa))
    return float(f"{digit}e{power}")


def _places(story: SpacetimePicture, projection: Projection) -> list[float]:
    lives = [projection.of(life.name, at) for life in story.lives for at in life.corners]
    if not projection.has_space:
        return lives
    ends: Iterable[float] = (projection.of("", at) for each in story.flights for at in (each.emitted, each.end))
    return [*lives, *ends]


def _usual_count(story: SpacetimePicture) -> float:
    """Return how many events an agent would have, were they all as close to each other as they often are."""
    gaps = sorted(
        later.at[0] - earlier.at[0]
        for life in story.lives
        for earlier, later in pairwise(life.moments)
        if later.at[0] > earlier.at[0]
    )
    if not gaps:
        return 0.0
    ratio = (story.end - story.begin) / gaps[len(gaps) // 3]
    return ratio if math.isfinite(ratio) else 0.0


# Draws light cones: where a lambda can be absorbed that is emitted at a point.

LIGHT = "#f0b429"
_MOST = 6
_AMONG = 600  # Emissions; of more, so many are looked at.
_HIGH = 150.0
_SHADE = "worldline-light"
_BENT = 20  # Straight pieces of a hyperbola, on either side.


def apexes(emissions: Sequence[Point], frame: Frame) -> list[Point]:
    """Choose a few emissions for cones: far from each other, and with room above them."""
    high = _height(frame)
    some = thinned(emissions, _AMONG)
    roomy = [each for each in some if each[1] - high > frame.top] or some
    if not roomy:
        return []
    found = [roomy[0]]
    gaps = [_gap(each, found[0], frame) for each in roomy]
    while len(found) < _MOST:
        best = max(range(len(roomy)), key=lambda place: (gaps[place], -place))
        if gaps[best] < 1.5 * high:
            break
        found.append(roomy[best])
        gaps = [min(gap, _gap(each, roomy[best], frame)) for gap, each in zip(gaps, roomy, strict=True)]
    return found


def definitions(frame: Frame) -> list[str]:
    """Define how cones fade, and where the picture ends for them."""
    stops = [
        element("stop", offset=place, stop_color=LIGHT, stop_opacity=shade) for place, shade in ((0, 0), (1, 0.38))
    ]
    rectangle = element("rect", x=frame.left, y=frame.top, width=frame.width, height=frame.height)
    return [
        element("linearGradient", stops, id=_SHADE, x1=0, y1=0, x2=0, y2=1),
        element("clipPath", rectangle, id=_clip_name(frame)),
    ]


def drawn_light(places: Sequence[Point], frame: Frame, projection: Projection, field: LambdaField | None) -> list[str]:
    """Draw cones from these points on: of light, or where the field is another one, of what lambdas do."""
    shift = shift_of(field, len(projection.direction) + 1)
    right, up = projection.along(shift[1:]) * frame.across, shift[0] * frame.up
    delay = 0.0 if field is None else math.sqrt(field.c) * frame.up
    cones = []
    for x, y in places:
        edge = _edge((x + right, y - up), delay, _height(frame), frame.stretch)
        lead = path(((x, y), (x + right, y - up)), stroke_dasharray="2 2") if right or up else ""
        fill = element("path", d=f"{way(edge)}z", fill=f"url(#{_SHADE})", stroke="none")
        cones.append(element("g", (lead, fill, path(edge, fill="none")), class_="cone"))
    clip = f"url(#{_clip_name(frame)})"
    return [element("g", cones, stroke=LIGHT, stroke_width=0.8, stroke_opacity=0.8, clip_path=clip)] if cones else []


def _edge(apex: Point, delay: float, high: float, stretch: float) -> list[Point]:
    """Return the edge of a cone, from the left to the right; with a delay it is a hyperbola."""
    x, y = apex
    count = _BENT if delay else 1
    # Close to the apex it is bent most, so there the pieces are short.
    ways = [high * (place / count) * abs(place / count) for place in range(-count, count + 1)]
    return [(x + way_ * stretch, y - math.sqrt(way_ * way_ + delay * delay)) for way_ in ways]


def _gap(one: Point, other: Point, frame: Frame) -> float:
    """Return how far points are from each other, as seen by light."""
    return distance((one[0] / frame.stretch, one[1]), (other[0] / frame.stretch, other[1]))


def _height(frame: Frame) -> float:
    return min(0.2 * frame.height, _HIGH)


def _clip_name(frame: Frame) -> str:
    # The name says what it looks like: pictures on one page may have the same names for the same things only.
    sides = (frame.left, frame.top, frame.width, frame.height)
    return "clip-" + "-".join(number(side).replace(".", "_") for side in sides)


# Boundaries: those that are lines in a Minkowski diagram, since they run across what is drawn of space.

_ACROSS = 1e-9  # So much of a plane's normal may point elsewhere than where the picture goes.


def walls_of(boundaries: Iterable[Boundary], projection: Projection) -> list[Wall]:
    """Return the boundaries in space that are seen from the side."""
    found = []
    for each in boundaries:
        normal = each.normal.coordinates()
        if not projection.has_space or len(normal) != len(projection.direction) + 1:
            continue
        share = projection.along(normal[1:])
        rest = max(abs(one - share * other) for one, other in zip(normal[1:], projection.direction, strict=True))
        if share and rest <= _ACROSS * abs(share):
            # The plane is where normal·X + offset = 0, and the product counts space negative.
            found.append(Wall(each.name, each.offset / share, normal[0] / share))
    return [wall for wall in found if math.isfinite(wall.place) and math.isfinite(wall.speed)]


def inside(start: Point, end: Point, left: float, right: float) -> tuple[Point, Point] | None:
    """Return the part of a line that isn't beside the frame."""
    first, last = 0.0, 1.0
    x, width = start[0], end[0] - start[0]
    if width == 0:
        return (start, end) if left <= x <= right else None
    for edge in (left, right):
        share = (edge - x) / width
        if (edge == left) == (width > 0):
            first = max(first, share)
        else:
            last = min(last, share)
    if first >= last:
        return None
    along = end[1] - start[1]
    return (x + width * first, start[1] + along * first), (x + width * last, start[1] + along * last)
