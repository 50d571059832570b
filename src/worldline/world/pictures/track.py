"""A path in the plane that takes a bounded amount of memory, however long it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from worldline.drawing.plane import Point, distance

TRACK_POINTS_MAX = 4_000
_NEAREST = 0.001  # Meters.


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
        self._apart = _NEAREST
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
        if self._points and distance(self._points[-1].at, point.at) < self._apart:
            self._left_out = point
        else:
            self._points.append(point)
            self._left_out = None
