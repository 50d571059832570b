"""What goes in and out of an environment, checked where a learner would otherwise go astray without a word."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from operator import index
from typing import Any

import gymnasium
import numpy as np

from worldline.model import UsageError
from worldline.model.errors import ConfigurationError, nearest, shown

# Seeds of episodes: those that are given, and those that follow from them.

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


OPTIONS = ("draws",)

_FEW = 16  # Up to so many numbers are looked at one by one: NumPy takes longer to begin than that.


def check_spaces(agent: str, **spaces: object) -> None:
    """Refuse what isn't a space."""
    for name, space in spaces.items():
        if not isinstance(space, gymnasium.Space):
            raise ConfigurationError(
                f"{agent}: {name} is {shown(space)}, and not a space",
                advice="write gymnasium.spaces.Box(-1, 1, (4,)), for instance",
            )


def action_check(space: gymnasium.Space[Any], agent: str) -> Callable[[Any], None]:
    """Return what refuses actions that aren't in a space.

    For arrays it does itself what a box does: that takes `contains` longer than many a step takes altogether.
    """
    if not isinstance(space, gymnasium.spaces.Box):

        def check(action: Any) -> None:
            if not space.contains(action):
                raise _refused(f"the action {shown(action)} isn't in its space", space, agent)

        return check

    shape, dtype, is_within = space.shape, space.dtype, bounds_check(space)

    def check_array(action: Any) -> None:
        if not isinstance(action, np.ndarray):  # A box would take a list, and warn at every step.
            raise _refused(f"the action {shown(action)} isn't an array", space, agent)
        if action.shape != shape:
            raise _refused(f"the action has the shape {action.shape}, and its space {shape}", space, agent)
        is_typed = action.dtype is dtype or np.can_cast(action.dtype, dtype)
        if not (is_typed and is_within(action)):
            raise _refused(f"the action {shown(action)} isn't in its space", space, agent)

    return check_array


def bounds_check(space: gymnasium.spaces.Box) -> Callable[[Any], bool]:
    """Return what says whether an array of a box's shape is within its bounds, at every step of every environment."""
    low, high = space.low, space.high
    if len(space.shape) == 1 and low.size <= _FEW:
        return _few_check(low.tolist(), high.tolist())
    both = np.empty((2, *space.shape), np.bool_)  # To allocate them, and to ask for all(), would take longer.
    above, below = both[0, ...], both[1, ...]
    less_equal, count_nonzero, count = np.less_equal, np.count_nonzero, both.size

    def is_within(array: Any) -> bool:
        less_equal(low, array, above)
        less_equal(array, high, below)
        return bool(count_nonzero(both) == count)

    return is_within


def _few_check(lows: list[Any], highs: list[Any]) -> Callable[[Any], bool]:
    def is_within(array: Any) -> bool:
        for low, value, high in zip(lows, array.tolist(), highs, strict=True):  # noqa: SIM110 - a generator is slower.
            if not low <= value <= high:
                return False
        return True

    return is_within


def _refused(problem: str, space: gymnasium.Space[Any], agent: str) -> UsageError:
    return UsageError(problem, participant=agent, advice=f"actions are in {space}")


def take_options(options: Mapping[str, Any] | None) -> Any:
    """Return the draws that the options of a reset replace; other options are somebody else's, or a mistake."""
    if options is None:
        return None
    if not isinstance(options, Mapping):
        raise UsageError(
            f"the options of a reset are {shown(options)}, and not a dict",
            advice='write options={"draws": {"latency": "antithetic"}}, or leave them out',
        )
    for name in options:
        if name not in OPTIONS:
            advice = nearest(name, OPTIONS) or f"options are {', '.join(OPTIONS)}"
            warnings.warn(f"the option {name!r} is nothing to this environment ({advice})", stacklevel=3)
    return options.get("draws")
