"""Chooses how large a diagram is and where points are in it: time upwards, and light at 45 degrees if that can be."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from worldline.spacetime.pictures.happenings import SpacetimePicture
from worldline.spacetime.pictures.projection import Projection

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
            gap = next(gap for most, gap in _COLUMNS if len(story.lives) <= most)
            self.across = min(gap, _WIDTH_MOST * 2 / max(1.0, space))
            self.up = wanted_height / time if time > _TINY else 0.0
            self.spare = gap / 2 + 10
        elif not (time > _TINY or space > _TINY):
            self.across = self.up = 0.0
            self.spare = _WIDTH_LEAST / 2
        elif not space > _TINY:
            self.up = self.across = wanted_height / time
            self.spare = _WIDTH_LEAST / 2
        elif not time > _TINY:
            self.across = self.up = wanted_width / space
            self.spare = 24.0
        else:
            least = max(_WIDTH_READABLE, _PER_AGENT_LEAST * len(story.lives))
            self.up, self.stretch = _chosen_scale(time, space, wanted_height, wanted_width, min(least, wanted_width))
            self.across = self.up * self.stretch
            self.spare = 24.0 if space * self.across > 200 else 60.0
        self.width = space * self.across + 2 * self.spare
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
        return self.left + self.spare + (place - self._low) * self.across

    def y(self, time: float) -> float:
        return self.bottom - (time - self._begin) * self.up

    def place_at(self, x: float) -> float:
        """Return which place is drawn at x."""
        return self._low + (x - self.left - self.spare) / self.across if self.across else self._low

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

    That is once if the picture can be as wide as the least, and as high, without being larger than anybody likes.
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
