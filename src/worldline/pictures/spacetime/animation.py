"""Makes an animation of a run: a page that plays agents in a plane, or on a line, and lambdas on their way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from worldline.model.errors import UsageError, shown
from worldline.model.text import counted
from worldline.pictures.player import Page, player_page
from worldline.pictures.spacetime.frame import axis_name, check_axis
from worldline.pictures.spacetime.happenings import (
    Life,
    Looks,
    SpacetimePicture,
    chosen_story,
    failures_of,
    thinned,
    told,
)
from worldline.spacetime.boundary import Boundary
from worldline.spacetime.outcome import AgentRecord, Coordinates

AGENTS_MAX = 2_000
LAMBDAS_MAX = 3_000
CORNERS_MAX = 12_000

_MOMENTS = 10_000  # So many can be told apart,
_PLACES = 4_000  # and so many places along the longer side.
_NEAR = 0.6
_FATES = ("absorbed", "vanished", "under way")


def animation_html(
    records: Sequence[AgentRecord],
    n: int,
    *,
    title: str = "",
    axes: Sequence[int] | None = None,
    until: float | None = None,
    boundaries: Sequence[Boundary] = (),
) -> Page:
    """Make a page that plays a run that was traced, as far as `until`. It needs nothing from elsewhere.

    `axes` are the spatial coordinates to the right and upwards, such as (1, 2), or else the two in which agents are
    spread most. A space of two dimensions has but one: it is a line, with the past below it. Of very many agents and
    lambdas only some are shown, evenly chosen; the page says so.
    """
    story = told(records, n, until, None)
    check_moves(n)
    drawn_axes = _widest(story, n) if axes is None else _checked(axes, n)
    shown_story, cuts = _thinned(story)
    content = _Data(shown_story, drawn_axes, n, Looks(story)).content(boundaries)
    agents, lambdas = counted(len(story.lives), "agent"), counted(len(story.flights), "lambda")
    summary = f"{agents}, {lambdas}. {' '.join(cuts)}" if story.lives else "Nothing happened: there are no records."
    return player_page(
        "spacetime",
        title or "Spacetime",
        summary.strip(),
        content,
        {"trails": "Trails", "circles": "Light"},
        alarms=failures_of(story),
        time_label="lab time",
        is_still=len(drawn_axes) == 1,
    )


def check_moves(n: int) -> None:
    """Refuse a space in which nothing moves."""
    if n == 1:
        raise UsageError(
            "a space of one dimension is time alone, and nothing moves in it", advice="draw its diagram: minkowski_svg"
        )


def _widest(story: SpacetimePicture, n: int) -> tuple[int, ...]:
    """Return the two axes along which agents are farthest from each other, or the only one."""
    points = [at for life in story.lives for at in life.corners]
    extents = {
        axis: max((at[axis] for at in points), default=0.0) - min((at[axis] for at in points), default=0.0)
        for axis in range(1, n)
    }
    return tuple(sorted(sorted(extents, key=lambda axis: (-extents[axis], axis))[:2]))


def _checked(axes: Any, n: int) -> tuple[int, ...]:
    if n == 2 and axes == (1, 2):
        return (1,)
    if not isinstance(axes, tuple | list) or len(axes) not in (1, 2) or (len(axes) == 2 and axes[0] == axes[1]):
        raise UsageError(f"{shown(axes)} aren't two axes", advice="use (1, 2), for instance")
    for axis in axes:
        check_axis(axis, n)
    return tuple(axes)


def _thinned(story: SpacetimePicture) -> tuple[SpacetimePicture, list[str]]:
    shown, cuts = chosen_story(story, AGENTS_MAX, LAMBDAS_MAX), []
    if len(shown.lives) < len(story.lives):
        cuts.append(f"{AGENTS_MAX:,} of the agents are shown.")
    if len(shown.flights) == LAMBDAS_MAX < len(story.flights):
        cuts.append(f"{LAMBDAS_MAX:,} of the lambdas are shown.")
    corners = sum(len(life.corners) for life in shown.lives)
    if corners > CORNERS_MAX:
        cuts.append("Turns are simplified.")
        lives = [_simpler(life, max(2, len(life.corners) * CORNERS_MAX // corners)) for life in shown.lives]
        shown = shown._replace(lives=lives)
    return shown, cuts


def _simpler(life: Life, most: int) -> Life:
    """Leave out corners, but none that a jump begins or ends with."""
    kept = dict.fromkeys(thinned(range(len(life.corners)), most))
    for jump in sorted(life.jumps):
        kept[jump - 1] = kept[jump] = None
    places = sorted(kept)
    jumps = frozenset(now for now, place in enumerate(places) if place in life.jumps)
    return life._replace(corners=[life.corners[place] for place in places], jumps=jumps)


class _Data:
    """Writes what is played as whole numbers: moments of time, and places, which are as large in both directions."""

    def __init__(self, story: SpacetimePicture, axes: Sequence[int], n: int, looks: Looks) -> None:
        self.story = story
        self.looks = looks
        self.axes = axes
        self.n = n
        points = [at for life in story.lives for at in life.corners]
        points += [at for flight in story.flights for at in (flight.emitted, flight.end)]
        self.lows = [min((at[axis] for at in points), default=0.0) for axis in axes]
        self.highs = [max((at[axis] for at in points), default=0.0) for axis in axes]
        extent = max(high - low for low, high in zip(self.lows, self.highs, strict=True))
        self.place = (extent or 1.0) / _PLACES
        self.moment = (story.end - story.begin) / _MOMENTS or 1.0

    def content(self, boundaries: Iterable[Boundary]) -> dict[str, Any]:
        numbers = {life.name: number for number, life in enumerate(self.story.lives)}
        walls = self._walls(boundaries)
        whats = list(dict.fromkeys(flight.what for flight in self.story.flights))
        return {
            "flat": len(self.axes) == 1,
            "axes": [axis_name(axis, self.n) for axis in self.axes],
            "end": self._time(self.story.end),
            "scale": [self.story.begin, self.moment, self.lows[0], self.lows[-1], self.place],
            "box": self._box(walls),
            "names": [life.name for life in self.story.lives],
            "ways": [self._way(life) for life in self.story.lives],
            "jumps": [
                each for life in self.story.lives for jump in sorted(life.jumps) for each in (numbers[life.name], jump)
            ],
            "died": [numbers[life.name] for life in self.story.lives if life.end == "died"],
            "looks": [[kind.text, -1 if kind.place is None else kind.place] for kind in self.looks.kinds],
            "shown": self._shown() if self.looks.kinds else [],
            "failures": [
                each
                for life in self.story.lives
                for failure in life.failures
                for each in (numbers[life.name], failure.what)
            ],
            "whats": whats,
            "flights": self._flights(numbers, {what: number for number, what in enumerate(whats)}),
            "walls": walls,
        }

    # -- Numbers

    def _time(self, time: float) -> int:
        return round((time - self.story.begin) / self.moment)

    def _spot(self, at: Coordinates) -> tuple[int, int]:
        spot = [round((at[axis] - low) / self.place) for axis, low in zip(self.axes, self.lows, strict=True)]
        return spot[0], spot[1] if len(spot) == 2 else 0

    def _way(self, life: Life) -> list[int]:
        """Return the corners of a way, each as the difference to the one before."""
        written: list[int] = []
        last = (0, 0, 0)
        for corner in life.corners:
            here = (self._time(corner[0]), *self._spot(corner))
            written += [new - old for new, old in zip(here, last, strict=True)]
            last = here
        return written

    def _shown(self) -> list[int]:
        """Return how agents are shown, and from when on."""
        places = {kind: place for place, kind in enumerate(self.looks.kinds)}
        return [
            each
            for number, life in enumerate(self.story.lives)
            for at, kind in self.looks.along(life)
            for each in (number, self._time(at[0]), places[kind])
        ]

    # -- Lambdas

    def _flights(self, numbers: dict[str, int], whats: dict[str, int]) -> list[int]:
        written, before = [], 0
        for flight in self.story.flights:
            start, end = self._time(flight.emitted[0]), self._time(flight.end[0])
            agents = (numbers[flight.source], numbers[flight.target])
            written += [start - before, end - start, *agents, whats[flight.what], _FATES.index(flight.fate)]
            written += [*self._spot(flight.emitted), *self._spot(flight.end)]
            before = start
        return written

    # -- What is around

    def _walls(self, boundaries: Iterable[Boundary]) -> list[list[float]]:
        """Return boundaries that are lines here, p x + q y = r + s t, in the page's units."""
        found = []
        for each in boundaries:
            normal = each.normal.coordinates()
            drawn = [normal[axis] for axis in self.axes] if len(normal) == self.n else []
            if not any(drawn) or any(part for axis, part in enumerate(normal) if axis and axis not in self.axes):
                continue
            # The plane is where normal·X + offset = 0, and the product counts space negative.
            p, q = drawn[0], drawn[1] if len(drawn) == 2 else 0.0
            rest = each.offset + normal[0] * self.story.begin - p * self.lows[0] - q * self.lows[-1]
            found.append([_short(part) for part in (p, q, rest / self.place, normal[0] * self.moment / self.place)])
        return found

    def _box(self, walls: Iterable[list[float]]) -> list[int]:
        """Return what is to be seen: all that happens, and walls at rest along an axis that are near."""
        low = [0.0, 0.0]
        high = [(high - low) / self.place for low, high in zip(self.lows, self.highs, strict=True)]
        high += [0.0] * (2 - len(high))
        if not any(high):  # All are in one spot: it is seen from some way off.
            return [-_PLACES, -_PLACES, _PLACES, _PLACES]
        near = _NEAR * max(high)
        for p, q, rest, speed in walls:
            if speed == 0.0 and (p == 0.0) != (q == 0.0):
                side, place = (1, rest / q) if p == 0.0 else (0, rest / p)
                if low[side] - near <= place <= high[side] + near:
                    low[side], high[side] = min(low[side], place), max(high[side], place)
        return [round(each) for each in (*low, *high)]


def _short(number: float) -> float:
    return float(f"{number:.6g}")
