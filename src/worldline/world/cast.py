"""The cast of a world: which models there are, which perform, and what is loaded at present.

It begins as the file has it. Performers come and go by interactions: a performer that is inserted is a copy of
a model of the file, and one that is removed takes its model along. What can't be done raises and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from worldline.model.errors import UsageError, nearest, shown
from worldline.model.message import check_name
from worldline.world.description import WorldDescription, WorldModel
from worldline.world.engines.engine import checked_pose
from worldline.world.interactions import InsertPerformer
from worldline.world.levels import Levels
from worldline.world.orders import with_copies
from worldline.world.pose import Pose, Vector
from worldline.world.shapes import check_size


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
