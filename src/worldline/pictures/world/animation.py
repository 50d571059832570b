"""Makes an animation of a run: a page that plays what happens in a world, seen from above."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import atan2, pi
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from worldline.files.saving import save
from worldline.model.text import counted
from worldline.model.time import SECOND, format_time
from worldline.pictures.player import player_page
from worldline.pictures.world.outlines import Outline, Round, Whereabouts, model_outlines
from worldline.world.description import Level, WorldDescription, WorldModel
from worldline.world.levels import Levels
from worldline.world.pose import ORIGIN, Pose, Vector
from worldline.world.spectator import Sighting, Spectator

# The frames of an animation: what was where at some moments, in whole numbers, and never too many of them.

NUMBERS_MAX = 900_000
"""How many numbers the frames may have in all: with 2 to 4 letters each, a page has some megabytes."""

TURN = 7_200
"""A whole turn: so directions add up exactly."""

Spot = tuple[int, int, int]
"""Millimeters to the right and upwards, and a direction."""


class FilmFrame(NamedTuple):
    """A moment. Movers, statics, levels and secondaries are known by numbers. `epoch` counts resets."""

    iteration: int
    step: int
    epoch: int
    spots: Mapping[int, Spot]
    owners: Mapping[int, int]
    statics: frozenset[int]
    active: frozenset[int]


class Film:
    """Keeps frames at multiples of a number of iterations, which doubles when there are too many.

    What is kept follows from what was shown alone, and the last frame is always among it.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._frames: list[FilmFrame] = []
        self._latest: FilmFrame | None = None
        self._numbers = 0

    def add(self, frame: FilmFrame) -> None:
        self._latest = None
        if frame.iteration % self._every:
            self._latest = frame
            return
        if self._frames and self._frames[-1].iteration == frame.iteration:  # A reset may end an iteration again.
            self._numbers -= _numbers_of(self._frames.pop())
        self._frames.append(frame)
        self._numbers += _numbers_of(frame)
        while self._numbers > NUMBERS_MAX and len(self._frames) > 2:
            self._every *= 2
            self._frames = [each for each in self._frames if each.iteration % self._every == 0]
            self._numbers = sum(map(_numbers_of, self._frames))
            if not self._frames or self._frames[-1] is not frame:
                self._latest = frame

    def frames(self) -> list[FilmFrame]:
        return self._frames if self._latest is None else [*self._frames, self._latest]


def _numbers_of(frame: FilmFrame) -> int:
    return 3 * len(frame.spots) + 4


FRAMES_PER_SECOND = 50

_Drawn = tuple[str, tuple[tuple[int, ...], ...]]
"""A name, and outlines in millimeters: a circle as x, y and radius, a polygon as the coordinates of its corners."""


class Animation(Spectator):
    """Collects frames; `html` and `write` make a page of what there is so far.

    Models are shown with their links as they were at the start: what joints do isn't seen.
    """

    def __init__(self, *, title: str = "") -> None:
        self._title = title
        self._world = WorldDescription(name="world", models={})
        self._whereabouts = Whereabouts()
        self._levels = Levels((), ())
        self._film = Film(1)
        self._epoch = 0
        self._movers: dict[_Drawn, int] = {}
        self._statics: dict[_Drawn, int] = {}
        self._secondaries: dict[str, int] = {}  # Numbered as they come; the page has them by name.
        self._numbers: dict[str, int] = {}  # Of the movers that are loaded, by name.
        self._owners: dict[int, int] = {}
        self._loaded: frozenset[int] = frozenset()

    def began(self, description: WorldDescription) -> None:
        self.every = -(-SECOND // (FRAMES_PER_SECOND * description.step))
        self._world = description
        self._film = Film(self.every)
        self._levels = self._fresh_levels()

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        self._whereabouts.change(models, affinities)
        movers, statics = self._whereabouts.movers, self._whereabouts.statics
        self._numbers = {name: _numbered(self._movers, _drawn(model, ORIGIN)) for name, model in movers.items()}
        self._loaded = frozenset(_numbered(self._statics, _drawn(model, model.pose)) for model in statics.values())
        self._owners = {
            self._numbers[name]: _numbered(self._secondaries, secondary)
            for name, secondary in self._whereabouts.secondaries.items()
        }

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        if self._whereabouts.is_reset(step):
            self._epoch += 1
            self._levels = self._fresh_levels()
        if iteration % self.every:
            return
        found = dict(self._whereabouts.sightings(poses))
        spots = {self._numbers[name]: _spot(seen) for name, seen in found.items()}
        active = self._active_levels({name: seen.position for name, seen in found.items()})
        self._film.add(FilmFrame(iteration, step, self._epoch, spots, self._owners, self._loaded, active))

    def _fresh_levels(self) -> Levels:
        performers = {performer.model for performer in self._world.performers}
        return Levels(self._world.levels, (name for name in self._world.models if name not in performers))

    def _active_levels(self, positions: Mapping[str, Vector]) -> frozenset[int]:
        """Follow performers through levels, by the rules of `levels`; return the numbers of those that are active.

        Entities that are loaded don't tell: a level may have none, two may share them, and they may be removed.
        """
        sizes = {each.model: each.size for each in self._world.performers if each.model in positions}
        known = dict.fromkeys(self._levels.performers())
        self._levels.update(
            {model: positions[model] for model in sizes if model in known},
            added={model: (size, positions[model]) for model, size in sizes.items() if model not in known},
            removed=[model for model in known if model not in sizes],
        )
        active = self._levels.active()
        return frozenset(number for number, level in enumerate(self._world.levels) if level.name in active)

    def html(self) -> str:
        """Return the page. It needs nothing from elsewhere, and nothing in it depends on the machine."""
        frames = self._film.frames()
        world = self._world
        content = {
            "step": world.step / SECOND,
            "iterations": _differences([frame.iteration for frame in frames]),
            "steps": _differences([frame.step for frame in frames]),
            "cuts": [place for place, (a, b) in enumerate(pairwise(frames), 1) if a.epoch != b.epoch],
            "secondaries": sorted(self._secondaries),
            "movers": list(self._told_movers(frames)),
            "statics": [
                {"outlines": outlines, "spans": _spans([number in frame.statics for frame in frames])}
                for number, (_, outlines) in enumerate(self._statics)
            ],
            "levels": [
                {
                    "name": level.name,
                    "box": _level_box(level),
                    "buffer": _mm(level.buffer),
                    "spans": _spans([number in frame.active for frame in frames]),
                }
                for number, level in enumerate(world.levels)
            ],
            "turn": TURN,
        }
        switches = {"trails": "Trails", "names": "Names"}
        return player_page("world", self._title or world.name, self._summary(frames), content, switches)

    def write(self, target: str | PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        save(Path(target), self.html().encode())

    def _summary(self, frames: Sequence[FilmFrame]) -> str:
        if not frames:
            return "Nothing happened."
        took = (frames[-1].iteration - frames[0].iteration) * self._world.step
        return f"{counted(len(self._movers), 'mover')}, {format_time(took)}, seen from above."

    def _told_movers(self, frames: Sequence[FilmFrame]) -> Iterator[dict[str, Any]]:
        performers = {performer.model: performer.name for performer in self._world.performers}
        colors = {self._secondaries[name]: color for color, name in enumerate(sorted(self._secondaries))}
        for number, (name, outlines) in enumerate(self._movers):
            yield {
                "name": performers.get(name, name),
                "model": name,
                "performs": name in performers,
                "outlines": outlines,
                "runs": _runs(number, frames),
                "owners": _changes([colors.get(frame.owners.get(number, -1)) for frame in frames]),
            }


def _numbered(numbers: dict[Any, int], key: Any) -> int:
    return numbers.setdefault(key, len(numbers))


def _drawn(model: WorldModel, at: Pose) -> _Drawn:
    return model.name, tuple(map(_whole, model_outlines(model, at)))


def _whole(outline: Outline) -> tuple[int, ...]:
    if isinstance(outline, Round):
        return _mm(outline.center[0]), _mm(outline.center[1]), _mm(outline.radius)
    return tuple(_mm(coordinate) for corner in outline for coordinate in corner)


def _spot(seen: Sighting) -> Spot:
    (x, y, _), (ahead_x, ahead_y, _) = seen
    return _mm(x), _mm(y), round(atan2(ahead_y, ahead_x) / (2 * pi) * TURN)


def _level_box(level: Level) -> list[int]:
    (x, y, _), (width, depth, _) = level.center, level.size
    return [_mm(each) for each in (x - width / 2, y - depth / 2, x + width / 2, y + depth / 2)]


def _mm(meters: float) -> int:
    return round(meters * 1000)


def _differences(numbers: Sequence[int]) -> list[int]:
    return [*numbers[:1], *(b - a for a, b in pairwise(numbers))]


def _spans(flags: Sequence[bool]) -> list[int]:
    """Return where each row of trues starts, and where it stops."""
    padded = [False, *flags, False]
    return [place for place, (a, b) in enumerate(pairwise(padded)) if a != b]


def _changes(values: Sequence[int | None]) -> list[int]:
    """Return the places at which a value isn't the one before, each with the value; what is None doesn't count."""
    found: list[int] = []
    for place, value in enumerate(values):
        if value is not None and (not found or found[-1] != value):
            found += [place, value]
    return found


def _runs(number: int, frames: Sequence[FilmFrame]) -> list[list[int]]:
    """Return where a mover was while it was there without a break: the first frame, then differences of spots."""
    runs: list[list[int]] = []
    last: Spot | None = None
    for place, frame in enumerate(frames):
        spot = frame.spots.get(number)
        if spot is not None:
            if last is None:
                runs.append([place, *spot])
            else:
                turned = (spot[2] - last[2] + TURN // 2) % TURN - TURN // 2  # The short way round.
                runs[-1] += [spot[0] - last[0], spot[1] - last[1], turned]
        last = spot
    return runs
