"""Makes an animation of a run: a page that plays what happens in a world, seen from above."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import atan2, pi
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec import json

from worldline.drawing.svg import PALETTE
from worldline.model.time import SECOND, format_time
from worldline.saving.destination import save
from worldline.world.description import Level, WorldDescription, WorldModel
from worldline.world.packed_poses import Sighting
from worldline.world.pictures.active_levels import ActiveLevels
from worldline.world.pictures.film import TURN, Film, FilmFrame, Spot
from worldline.world.pictures.outlines import Outline, Round, model_outlines
from worldline.world.pictures.page import page
from worldline.world.pictures.whereabouts import Whereabouts
from worldline.world.pose import ORIGIN, Pose
from worldline.world.spectator import Spectator

FRAMES_PER_SECOND = 50

# The colors of PALETTE for dark surroundings: those that couldn't be seen there are lighter.
_NIGHT = ("#4aa3df", "#ff8a3d", "#2fc79b", "#e39cc3", "#f0b429", "#8fd0f5", "#c9a94a", "#c5ccd3")

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
        self._levels = ActiveLevels(self._world)
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
        self._levels = ActiveLevels(description)

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
            self._levels.reset()
        if iteration % self.every:
            return
        found = dict(self._whereabouts.sightings(poses))
        spots = {self._numbers[name]: _spot(seen) for name, seen in found.items()}
        active = self._levels.update({name: seen.position for name, seen in found.items()})
        self._film.add(FilmFrame(iteration, step, self._epoch, spots, self._owners, self._loaded, active))

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
            "day": PALETTE,
            "night": _NIGHT,
        }
        # A script ends at the first thing that looks like its end, even in a text; so there must be none.
        data = json.encode(content).decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
        return page(self._title or world.name, self._summary(frames), data)

    def write(self, target: str | PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        save(Path(target), self.html().encode())

    def _summary(self, frames: Sequence[FilmFrame]) -> str:
        if not frames:
            return "Nothing happened."
        took = (frames[-1].iteration - frames[0].iteration) * self._world.step
        movers = "1 mover" if len(self._movers) == 1 else f"{len(self._movers):,} movers"
        return f"{movers}, {format_time(took)}, seen from above."

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
