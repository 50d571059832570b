"""Where the movers of a world are, and who simulates them, as a spectator is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from worldline.world.description import WorldModel
from worldline.world.packed_poses import ModelTracker, Sighting


class Whereabouts:
    """Works out where models are from the poses of their links, and notices resets: then a path doesn't go on."""

    def __init__(self) -> None:
        self.movers: dict[str, WorldModel] = {}
        self.statics: dict[str, WorldModel] = {}
        self.secondaries: dict[str, str] = {}
        self._trackers: dict[str, ModelTracker] = {}
        self._step = -1

    def change(self, models: Mapping[str, WorldModel], affinities: Mapping[str, str]) -> None:
        movers = {name: model for name, model in sorted(models.items()) if not model.static}
        self._trackers = {
            name: self._trackers[name] if self.movers.get(name) is model else ModelTracker(model)
            for name, model in movers.items()
        }
        self.movers = movers
        self.statics = {name: model for name, model in sorted(models.items()) if model.static}
        self.secondaries = {name: affinities.get(name, "") for name in movers}

    def is_reset(self, step: int) -> bool:
        """Return whether the world has gone back since it was last asked."""
        before, self._step = self._step, step
        return step < before

    def sightings(self, poses: Mapping[str, bytes]) -> Iterator[tuple[str, Sighting]]:
        for name, tracker in self._trackers.items():
            if name in poses:
                yield name, tracker.sighting(poses[name])
