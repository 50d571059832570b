"""Spectators: observers of a world while it runs, such as a recording, a picture or an animation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import gcd
from struct import Struct

from worldline.world.description import WorldDescription, WorldModel
from worldline.world.interactions import Interaction
from worldline.world.pose import Vector, cross

WORLD_MEMBER = "world"
"""The member that a world is to observers of its history."""


class Spectator:
    """Sees a world from its beginning to its end. Derive from it; what isn't overridden does nothing.

    *Iteration* counts the steps of the run and never goes back. *Step* is the world's own: its time is step × step
    size, and a reset takes it back to 0.
    """

    every: int = 1
    """At which iterations poses are wanted: multiples of this; 0: never. It is final once `began` has returned."""

    def began(self, description: WorldDescription) -> None:
        """The run begins, of what the world's file says."""

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        """From here on these models are loaded, and each mover is on that secondary; told at the start, too."""

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        """A step is done.

        `poses` has 7 little-endian doubles for each link of each mover (x, y, z, and the quaternion's w, x, y, z),
        relative to the world, in the order of the model's links. It is empty if no poses of this iteration are wanted.
        """

    def interacted(self, iteration: int, step: int, interaction: Interaction) -> None:
        """An interaction has taken effect, before the next step."""

    def ended(self, iteration: int, step: int) -> None:
        """The run is over."""


class SeveralSpectators(Spectator):
    """Tells several what it is told."""

    def __init__(self, spectators: Iterable[Spectator]) -> None:
        self._spectators = tuple(spectators)
        self.every = 0

    def began(self, description: WorldDescription) -> None:
        for each in self._spectators:
            each.began(description)
        self.every = gcd(*(each.every for each in self._spectators))  # Of none, or of those that want none, 0.

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        for each in self._spectators:
            each.changed(iteration, step, models, affinities)

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        for each in self._spectators:
            wanted = each.every and iteration % each.every == 0
            each.stepped(iteration, step, poses if wanted else {}, state_hash)

    def interacted(self, iteration: int, step: int, interaction: Interaction) -> None:
        for each in self._spectators:
            each.interacted(iteration, step, interaction)

    def ended(self, iteration: int, step: int) -> None:
        for each in self._spectators:
            each.ended(iteration, step)


# Poses of a model's links as bytes: 7 little-endian doubles for each link, x y z and qw qx qy qz.

POSE_NUMBERS = 7
_ONE = Struct(f"<{POSE_NUMBERS}d")


def position_in(model: WorldModel) -> Callable[[bytes], Vector]:
    """Return what finds a model by the poses of its links: its frame is fixed to its canonical link.

    It is asked for every mover again and again, so it does without a `Pose` and its checks.
    """
    names = [link.name for link in model.links]
    place = names.index(model.canonical_link)
    start, origin = place * _ONE.size, model.links[place].pose.inverse().position  # The model's, as seen from the link.

    def position(poses: bytes) -> Vector:
        x, y, z, w, *axis = _ONE.unpack_from(poses, start)
        a, b, c = cross((axis[0], axis[1], axis[2]), origin)
        d, e, f = cross((axis[0], axis[1], axis[2]), (a, b, c))
        return (
            x + (origin[0] + 2 * (w * a + d)),
            y + (origin[1] + 2 * (w * b + e)),
            z + (origin[2] + 2 * (w * c + f)),
        )

    return position
