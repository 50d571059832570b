"""Collects what happens in a world, seen from above: what was where at some moments, and never too many of these."""

from __future__ import annotations

from collections.abc import Mapping
from math import atan2, pi
from typing import Any, NamedTuple

from worldline.model.time import SECOND
from worldline.pictures.world.outlines import Outline, Round, model_outlines
from worldline.world.description import WorldDescription, WorldModel
from worldline.world.levels import Levels
from worldline.world.pose import ORIGIN, Pose, Vector
from worldline.world.spectator import ModelTracker, Sighting, Spectator

NUMBERS_MAX = 900_000
"""How many numbers the frames may have in all: with 2 to 4 letters each, a page has some megabytes."""

FRAMES_PER_SECOND = 50

TURN = 7_200
"""A whole turn: so directions add up exactly."""

Spot = tuple[int, int, int]
"""Millimeters to the right and upwards, and a direction."""

Drawn = tuple[str, tuple[tuple[int, ...], ...]]
"""A name, and outlines in millimeters: a circle as x, y and radius, a polygon as the coordinates of its corners."""


class FilmFrame(NamedTuple):
    """A moment. Movers, statics, levels and secondaries are known by numbers.

    `epoch` counts resets, and `absences` how often a mover has been removed: then a path doesn't go on.
    """

    iteration: int
    step: int
    epoch: int
    spots: Mapping[int, Spot]
    owners: Mapping[int, int]
    absences: Mapping[int, int]
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


class WorldFilm(Spectator):
    """Collects frames. Movers, statics and secondaries are numbered as they come.

    Models are shown with their links as they were at the start: what joints do isn't seen.
    """

    def __init__(self, *, title: str = "") -> None:
        self.title = title
        self.world = WorldDescription(name="world", models={})
        self.movers: dict[Drawn, int] = {}
        self.statics: dict[Drawn, int] = {}
        self.secondaries: dict[str, int] = {}
        self._trackers: dict[str, tuple[WorldModel, ModelTracker]] = {}  # Of the movers that are loaded, by name,
        self._numbers: dict[str, int] = {}  # and their numbers.
        self._owners: dict[int, int] = {}
        self._absences: dict[int, int] = {}
        self._standing: frozenset[int] = frozenset()  # The statics that are loaded.
        self._levels = Levels((), ())
        self._film = Film(1)
        self._step = -1
        self._epoch = 0

    def began(self, description: WorldDescription) -> None:
        self.every = -(-SECOND // (FRAMES_PER_SECOND * description.step))
        self.world = description
        self._film = Film(self.every)
        self._levels = self._fresh_levels()

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        movers = {name: model for name, model in sorted(models.items()) if not model.static}
        removed = [number for name, number in self._numbers.items() if name not in movers]
        self._absences = {**self._absences, **{number: self._absences.get(number, 0) + 1 for number in removed}}
        known = self._trackers
        self._trackers = {
            name: known[name] if name in known and known[name][0] is model else (model, ModelTracker(model))
            for name, model in movers.items()
        }
        self._numbers = {name: _numbered(self.movers, _drawn(model, ORIGIN)) for name, model in movers.items()}
        self._owners = {self._numbers[name]: _numbered(self.secondaries, affinities.get(name, "")) for name in movers}
        statics = (model for _, model in sorted(models.items()) if model.static)
        self._standing = frozenset(_numbered(self.statics, _drawn(model, model.pose)) for model in statics)

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        if step < self._step:
            self._epoch += 1
            self._levels = self._fresh_levels()
        self._step = step
        if iteration % self.every:
            return
        found = {name: each.sighting(poses[name]) for name, (_, each) in self._trackers.items() if name in poses}
        spots = {self._numbers[name]: _spot(seen) for name, seen in found.items()}
        active = self._active_levels({name: seen.position for name, seen in found.items()})
        self._film.add(
            FilmFrame(iteration, step, self._epoch, spots, self._owners, self._absences, self._standing, active)
        )

    def frames(self) -> list[FilmFrame]:
        return self._film.frames()

    def performers(self) -> dict[str, str]:
        """Return the names of performers, by model."""
        return {performer.model: performer.name for performer in self.world.performers}

    def _fresh_levels(self) -> Levels:
        performers = {performer.model for performer in self.world.performers}
        return Levels(self.world.levels, (name for name in self.world.models if name not in performers))

    def _active_levels(self, positions: Mapping[str, Vector]) -> frozenset[int]:
        """Follow performers through levels, by the rules of `levels`; return the numbers of those that are active.

        Entities that are loaded don't tell: a level may have none, two may share them, and they may be removed.
        """
        sizes = {each.model: each.size for each in self.world.performers if each.model in positions}
        known = dict.fromkeys(self._levels.performers())
        self._levels.update(
            {model: positions[model] for model in sizes if model in known},
            added={model: (size, positions[model]) for model, size in sizes.items() if model not in known},
            removed=[model for model in known if model not in sizes],
        )
        active = self._levels.active()
        return frozenset(number for number, level in enumerate(self.world.levels) if level.name in active)


def _numbered(numbers: dict[Any, int], key: Any) -> int:
    return numbers.setdefault(key, len(numbers))


def _drawn(model: WorldModel, at: Pose) -> Drawn:
    return model.name, tuple(map(_whole, model_outlines(model, at)))


def _whole(outline: Outline) -> tuple[int, ...]:
    if isinstance(outline, Round):
        return millimeters(outline.center[0]), millimeters(outline.center[1]), millimeters(outline.radius)
    return tuple(millimeters(coordinate) for corner in outline for coordinate in corner)


def _spot(seen: Sighting) -> Spot:
    (x, y, _), (ahead_x, ahead_y, _) = seen
    return millimeters(x), millimeters(y), round(atan2(ahead_y, ahead_x) / (2 * pi) * TURN)


def millimeters(meters: float) -> int:
    return round(meters * 1000)
