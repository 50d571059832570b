"""Whoever looks on at a world: a recorder, a picture, an animation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from worldline.world.description import WorldDescription, WorldModel


class Spectator:
    """Is told what happens in a world; none of it depends on how many processes simulate it, except affinities.

    Derive from it, and write the methods for what you want to know; the others do nothing. An *iteration* is a step of
    the run and never goes back; a *step* is the world's, and goes back to 0 at a reset.
    """

    every: int = 1
    """Poses are wanted at iterations that are multiples of it; 0 means never. It is final once `began` has returned."""

    def began(self, world: WorldDescription) -> None:
        """The run begins."""

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        """These models are loaded, statics and movers, and each mover is simulated by this secondary.

        Told at the start and whenever either has changed, before that iteration's `stepped`.
        """

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        """A step was made. Poses are by mover, those of all links as `pack_poses` writes them; empty unless wanted."""

    def interacted(self, iteration: int, step: int, interaction: Any) -> None:
        """Somebody has interfered."""

    def ended(self, iteration: int, step: int) -> None:
        """The run is over."""
