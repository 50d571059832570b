"""Seeds of episodes: those that are given, and those that follow from them."""

from __future__ import annotations

from operator import index

import numpy as np

from worldline.model import UsageError
from worldline.model.errors import shown

SEED_END = 2**31
"""Seeds that are drawn are below this."""


class SeedSeries:
    """Gives every episode a seed: never from a clock, so that a learner that gives none can be repeated, too."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._following: np.random.Generator | None = None

    def next(self, given: int | None) -> int:
        """Return the seed of the next episode: the one that is given, or one that follows from the last that was."""
        if given is None and self._following is not None:
            return int(self._following.integers(SEED_END))
        seed = self._first if given is None else as_seed(given)
        self._following = np.random.default_rng(abs(seed))
        return seed


def as_seed(given: object) -> int:
    """Return a seed as the whole number that it is, whatever kind of that."""
    try:
        return index(given)  # type: ignore[arg-type] # That is what it finds out.
    except TypeError:
        raise UsageError(f"the seed {shown(given)} isn't a whole number") from None
