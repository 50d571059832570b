"""Which levels of a world are active, as far as the poses show that a spectator was given."""

from __future__ import annotations

from collections.abc import Mapping

from worldline.world.description import WorldDescription
from worldline.world.levels import Levels
from worldline.world.pose import Vector


class ActiveLevels:
    """Follows performers through levels, by the rules of `levels`.

    Entities that are loaded don't tell: a level may have none, two may share them, and somebody may remove them.
    """

    def __init__(self, world: WorldDescription) -> None:
        self._world = world
        self._sizes = {performer.model: performer.size for performer in world.performers}
        self._numbers = {level.name: number for number, level in enumerate(world.levels)}
        self._levels = self._fresh()

    def reset(self) -> None:
        """Forget who was where: the world begins anew."""
        self._levels = self._fresh()

    def update(self, positions: Mapping[str, Vector]) -> frozenset[int]:
        """Take the positions of models, and return the numbers of the levels that are active then."""
        here = {model: at for model, at in positions.items() if model in self._sizes}
        known = dict.fromkeys(self._levels.performers())
        self._levels.update(
            {model: at for model, at in here.items() if model in known},
            added={model: (self._sizes[model], at) for model, at in here.items() if model not in known},
            removed=[model for model in known if model not in here],
        )
        return frozenset(self._numbers[name] for name in self._levels.active())

    def _fresh(self) -> Levels:
        return Levels(self._world.levels, (name for name in self._world.models if name not in self._sizes))
