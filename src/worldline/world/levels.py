"""Levels: which of them each performer is in, and so which entities are loaded; and the cast that is there at present.

Theory of operation
-------------------
A sans-IO state machine: `update` takes the positions after a step and which performers came and went, and returns what
follows. An update that isn't legal raises and leaves everything as it was. The levels themselves are checked already.

A level is a box along the world's axes, with a buffer around it, and names entities. A performer is a box around a
position. Rotations are ignored, for both. All boxes are closed: touching counts.

L1. A performer enters a level when its box touches the level's box, and leaves it when its box no longer touches the
    level's box grown by the buffer on every side. In between it is in the level if it was before.
L2. A level is active while a performer is in it.
L3. An entity is loaded while a level that names it is active. Those that no level names are the *default level*,
    which is always active.
L4. Only positions after steps count. A performer that passes through a level within one step was never in it: nothing
    was ever computed while it was there.
L5. An update is one moment: an entity of two levels stays loaded when one becomes active as the other becomes inactive,
    and a level stays active when one performer takes over from another. So the order in which performers are looked at
    can't show.

By L1 a performer's levels follow from its own path alone. Gazebo differs: there, a buffer counts for every performer
once the level is active, so what a performer is in depends on where others were, and a level can stay active for
performers of which none ever entered it. Where levels decide what is simulated together, that is action at a distance.

Exact at the edges
------------------
A performer of half size h at p touches a box from lo to hi if lo - h ≤ p ≤ hi + h, on every axis. So for performers of
one size, a level is a box for *points*. Its bounds are computed once, as fractions, and then rounded to the least
double at or above the lower one and the least double above the upper one. For a double p, start ≤ p < stop is then
exactly the question asked, without any rounding.

Cells
-----
On each axis, the bounds of all levels cut the line into intervals within which no answer changes. Three of them are a
*cell*. L1 is idempotent: asking again in the same cell gives the same levels. So a performer that hasn't left its cell
costs six comparisons, whatever the number of levels, and only one that has is compared with all of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import inf, isfinite, nextafter
from typing import NamedTuple

from worldline.model.errors import ModelError, UsageError, nearest, shown
from worldline.model.message import check_name
from worldline.world.description import Level, WorldDescription, WorldModel
from worldline.world.engines.engine import checked_pose
from worldline.world.interactions import InsertPerformer
from worldline.world.orders import with_copies
from worldline.world.pose import Pose, Vector
from worldline.world.shapes import check_size

_LEAST = nextafter(-inf, 0.0)  # Of all finite doubles.


class Levels:
    """The levels of a world, and the performers in them. There are none until an update adds them.

    `entities` are all that levels may name: the world's models except its performers.
    """

    def __init__(self, levels: Iterable[Level], entities: Iterable[str] = ()) -> None:
        self._levels = sorted(levels, key=lambda level: level.name)
        self._entities = {level.name: level.entities for level in self._levels}
        named = {entity for entities in self._entities.values() for entity in entities}
        self.default = tuple(sorted(set(entities).difference(named)))
        self._grids: dict[Vector, _Grid] = {}  # By the size of performers.
        self._tracks: dict[str, _Track] = {}

    # --- What is ---

    def performers(self) -> tuple[str, ...]:
        return tuple(sorted(self._tracks))

    def of(self, performer: str) -> tuple[str, ...]:
        """Return the levels that a performer is in."""
        return self._track(performer).levels

    def active(self) -> tuple[str, ...]:
        """Return the levels that are active, the default level apart."""
        return tuple(sorted({level for track in self._tracks.values() for level in track.levels}))

    def loaded(self) -> tuple[str, ...]:
        """Return the entities that are loaded, those of the default level among them."""
        parts = [self.default, *(self._entities[level] for level in self.active())]
        return tuple(sorted({entity for part in parts for entity in part}))

    # --- What happens ---

    def update(
        self,
        positions: Mapping[str, Vector],
        *,
        added: Mapping[str, tuple[Vector, Vector]] | None = None,
        removed: Iterable[str] = (),
    ) -> tuple[str, ...]:
        """Take the new positions, and return whose levels that changes; performers that aren't named haven't moved.

        `added` are new performers with their sizes and positions, and may have the names of those `removed`. A position
        that is given for one of either doesn't count.
        """
        tracks: dict[str, _Track | None] = {}  # Of those about which something may have changed.
        for name in sorted(set(removed)):
            self._track(name)
            tracks[name] = None
        for name, (size, position) in sorted((added or {}).items()):
            tracks[name] = self._grid(size).track(name, position, ())
        for name in self._strayed(positions):
            if name not in tracks:
                track = self._track(name)
                tracks[name] = track.grid.track(name, positions[name], track.levels)
        return self._commit(tracks) if tracks else ()

    def _strayed(self, positions: Mapping[str, Vector]) -> list[str]:
        """Return those that aren't in their cells any more, and those that aren't known."""
        strayed = []
        for name, position in positions.items():
            track = self._tracks.get(name)
            if track is None or not _holds(track.cell, position):
                strayed.append(name)
        return sorted(strayed)

    def _commit(self, tracks: Mapping[str, _Track | None]) -> tuple[str, ...]:
        """Replace performers' tracks, all at once (L5), and return those whose levels aren't what they were."""
        changed = []
        for name, track in sorted(tracks.items()):
            old = self._tracks.pop(name, None)
            if (old.levels if old is not None else ()) != (track.levels if track is not None else ()):
                changed.append(name)
            if track is not None:
                self._tracks[name] = track
        if None in tracks.values():  # Grids of sizes that no performer has any more would add up over a long run.
            self._grids = {track.grid.size: track.grid for track in self._tracks.values()}
        return tuple(changed)

    def _track(self, name: str) -> _Track:
        try:
            return self._tracks[name]
        except KeyError:
            raise UsageError(f"there is no performer {shown(name)}", advice="add it first") from None

    def _grid(self, size: Vector) -> _Grid:
        if size not in self._grids:
            self._grids[size] = _Grid(self._levels, size)
        return self._grids[size]


_Bounds = tuple[float, float, float, float, float, float]
"""Where a box for points starts and stops: x, x, y, y, z, z. What stops at a point doesn't hold it."""


class _Track(NamedTuple):
    """A performer: its grid, the cell it is in, and its levels."""

    grid: _Grid
    cell: _Bounds
    levels: tuple[str, ...]


class _Grid:
    """What the levels are for performers of one size: boxes for points, and the cells that these form."""

    def __init__(self, levels: Iterable[Level], size: Vector) -> None:
        self.size = size
        self._boxes = [
            (level.name, _box_for_points(level, size, 0.0), _box_for_points(level, size, level.buffer))
            for level in levels
        ]
        bounds = [bounds for _, *both in self._boxes for bounds in both]
        # The first edge is finite and no position is below it, so positions that aren't finite are in no cell.
        self._edges = [
            sorted({_LEAST, inf, *(edge for box in bounds for edge in box[axis : axis + 2])}) for axis in (0, 2, 4)
        ]

    def track(self, name: str, position: Vector, before: tuple[str, ...]) -> _Track:
        """Return the track of a performer that has got there, and was in these levels before (L1)."""
        if not all(isfinite(coordinate) for coordinate in position):
            raise ModelError(f"performer {shown(name)} is at {shown(position)}", advice="positions must be finite")
        x_now = position[0]
        levels = tuple(
            level
            for level, inner, outer in self._boxes
            # The first comparison is only for speed: it rules most of them out.
            if outer[0] <= x_now < outer[1] and _holds(outer, position) and (level in before or _holds(inner, position))
        )
        x, y, z = (
            edges[above - 1 : above + 1]
            for edges, above in ((each, bisect_right(each, at)) for each, at in zip(self._edges, position, strict=True))
        )
        return _Track(self, (x[0], x[1], y[0], y[1], z[0], z[1]), levels)


def _box_for_points(level: Level, size: Vector, buffer: float) -> _Bounds:
    """Return where the positions are at which performers of a size touch a level's box grown by a buffer."""
    x, y, z = (
        _interval(Fraction(center), (Fraction(length) + Fraction(performer)) / 2 + Fraction(buffer))
        for center, length, performer in zip(level.center, level.size, size, strict=True)
    )
    return (*x, *y, *z)


def _interval(center: Fraction, half: Fraction) -> tuple[float, float]:
    """Return the least double that is in a closed interval or above it, and the least one above it."""
    end = center + half
    stop = _least_double_from(end)
    return _least_double_from(center - half), nextafter(stop, inf) if stop == end else stop


def _least_double_from(exact: Fraction) -> float:
    """Return the least double that isn't below a number."""
    try:
        near = float(exact)
    except OverflowError:
        return inf if exact > 0 else _LEAST
    return near if near >= exact else nextafter(near, inf)


def _holds(bounds: _Bounds, position: Vector) -> bool:
    x_start, x_stop, y_start, y_stop, z_start, z_stop = bounds
    x, y, z = position
    return x_start <= x < x_stop and y_start <= y < y_stop and z_start <= z < z_stop


# The cast of a world: which models there are, which perform, and what is loaded at present.
#
# It begins as the file has it. Performers come and go by interactions: a performer that is inserted is a copy of
# a model of the file, and one that is removed takes its model along. What can't be done raises and changes nothing.


class Cast:
    """`world` is the file's, with the `copies` that were inserted; `levels` has performers by their models' names."""

    def __init__(self, file: WorldDescription) -> None:
        self._file = self.world = file
        self.copies: list[InsertPerformer] = []
        self._removed: set[str] = set()
        performing = {performer.model: performer.size for performer in file.performers}
        self.levels = Levels(file.levels, (name for name in file.models if name not in performing))
        self._naming: dict[str, list[str]] = {}  # The levels that name an entity.
        for level in file.levels:
            for entity in level.entities:
                self._naming.setdefault(entity, []).append(level.name)
        self.levels.update(
            {}, added={name: (size, file.models[name].pose.position) for name, size in performing.items()}
        )

    # --- What is ---

    def levels_naming(self, entity: str) -> tuple[str, ...]:
        """Return the levels, active or not, that name an entity."""
        return tuple(self._naming.get(entity, ()))

    def loaded(self) -> dict[str, WorldModel]:
        """Return the models that are loaded, by name, in the order of their names."""
        names = {*self.levels.loaded(), *self.levels.performers()} - self._removed
        return {name: self.world.models[name] for name in sorted(names)}

    def mover(self, name: str) -> WorldModel:
        """Return a model that is loaded and can move, or raise why there is none of that name."""
        model = self.loaded().get(name)
        if model is None:
            if name in self.world.models:
                raise UsageError(f"model {shown(name)} isn't loaded at present")
            advice = nearest(name, list(self.world.models)) or "use the name of a model in the world's file"
            raise UsageError(f"there is no model {shown(name)}", advice=advice)
        if model.static:
            raise UsageError(f"model {shown(name)} is static")
        return model

    # --- What happens ---

    def move(self, positions: Mapping[str, Vector]) -> tuple[str, ...]:
        """Take the positions of performers after a step; return those whose levels that changes."""
        return self.levels.update(positions)

    def insert(self, change: InsertPerformer) -> None:
        check_name(change.name, "a performer")
        if change.name in self._removed:
            raise UsageError(
                f"model {shown(change.name)} of the file was removed, and its name stays taken",
                advice="use another name, or reset",
            )
        if change.name in self.world.models:
            raise UsageError(f"there is a model {shown(change.name)} already", advice="use another name")
        like = self._file.models.get(change.like)
        if like is None:
            advice = nearest(change.like, list(self._file.models)) or "use the name of one in the world's file"
            raise UsageError(f"there is no model {shown(change.like)} to make another of", advice=advice)
        if like.static or like.motion is not None:
            raise UsageError(f"model {shown(change.like)} is static or scripted, so a copy of it can't perform")
        size = change.size or self._size_like(change.like)
        check_size("performer", "size", *size)
        pose = checked_pose(Pose(change.position, change.quaternion))
        copies = [*self.copies, change]
        world = with_copies(self._file, copies)
        self.levels.update({}, added={change.name: (size, pose.position)})
        self.copies, self.world = copies, world

    def remove(self, name: str) -> None:
        performers = self.levels.performers()
        if name not in performers:
            advice = nearest(name, performers) or "use the name of a performer's model"
            raise UsageError(f"there is no performer {shown(name)}", advice=advice)
        self.levels.update({}, removed=[name])
        if name in self._file.models:
            self._removed.add(name)
        self.copies = [copy for copy in self.copies if copy.name != name]
        self.world = with_copies(self._file, self.copies)

    def _size_like(self, model: str) -> Vector:
        for performer in self._file.performers:
            if performer.model == model:
                return performer.size
        raise UsageError(f"model {shown(model)} doesn't perform, so a copy of it needs a size", advice="give one")
