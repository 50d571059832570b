"""The frames of an animation: what was where at some moments, in whole numbers, and never too many of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

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
