"""What goes in and out of an environment, checked where a learner would otherwise go astray without a word."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from worldline.model import ModelError, UsageError
from worldline.model.errors import ConfigurationError, nearest, shown


def as_seed(given: object) -> int:
    """Return a seed as the whole number that it is, whatever kind of that."""
    try:
        return index(given)  # type: ignore[arg-type] # That is what it finds out.
    except TypeError:
        raise UsageError(f"the seed {shown(given)} isn't a whole number") from None


OPTIONS = ("draws",)

_FEW = 16  # Up to so many numbers are looked at one by one: NumPy takes longer to begin than that.


def check_spaces(agent: str, **given: object) -> None:
    """Refuse what isn't a space."""
    for name, space in given.items():
        if not isinstance(space, gymnasium.Space):
            raise ConfigurationError(
                f"{agent}: {name} is {shown(space)}, and not a space",
                advice="write gymnasium.spaces.Box(-1, 1, (4,)), for instance",
            )


def action_check(space: gymnasium.Space[Any], agent: str) -> Callable[[Any], None]:
    """Return what refuses actions that aren't in a space.

    For arrays it does itself what a box does: that takes `contains` longer than many a step takes altogether.
    """
    if not isinstance(space, spaces.Box):

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


def bounds_check(space: spaces.Box) -> Callable[[Any], bool]:
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
    """Return the draws that the options of a reset replace; other options are for a wrapper, or a mistake."""
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


# Observations: what `observe` returns is checked, and made to be of its space's type where that loses nothing.
#
# Numbers become the array that the space wants, and floats are rounded to its precision. Nothing else changes: a
# float where a whole number is wanted, or an array of another shape, is refused.

_NUMBERS = "biuf"

Fit = Callable[[Any], Any]


class _MisfitError(Exception):
    """A value isn't in its space; the text says why."""


def fitting(space: gymnasium.Space[Any], agent: str) -> Callable[[Any, int], Any]:
    """Return what makes of a value that an agent observes at a time one that is in the space."""
    fit = _fit_for(space)

    def fitted(value: Any, now: int) -> Any:
        try:
            return fit(value)
        except _MisfitError as misfit:
            raise ModelError(
                f"its function `observe` returned {_described(value)}, {misfit}",
                participant=agent,
                at=now,
                advice=f"observations are in {space}",
            ) from None

    return fitted


def _fit_for(space: gymnasium.Space[Any]) -> Fit:
    if isinstance(space, spaces.Box):
        return _fit_for_box(space)
    if isinstance(space, spaces.Discrete):
        return _fit_for_discrete(space)
    if isinstance(space, spaces.Dict):
        return _fit_for_dict(space)
    if isinstance(space, spaces.Tuple):
        return _fit_for_tuple(space)
    has_whole_numbers = isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary)

    def fit(value: Any) -> Any:
        found = _cast(value, space) if has_whole_numbers else value
        if not space.contains(found):
            raise _MisfitError("which isn't in its space")
        return found

    return fit


def _fit_for_box(space: spaces.Box) -> Fit:
    shape, dtype, is_within = space.shape, space.dtype, bounds_check(space)

    def fit(value: Any) -> Any:
        if not (value.__class__ is np.ndarray and value.dtype is dtype and value.shape == shape):
            value = _cast(value, space)
        if not is_within(value):
            raise _MisfitError("which isn't in its space")
        return value

    return fit


def _fit_for_discrete(space: spaces.Discrete) -> Fit:
    def fit(value: Any) -> Any:
        try:
            number = index(value)
        except TypeError:
            raise _MisfitError("which isn't a whole number") from None
        if not space.start <= number < space.start + space.n:
            raise _MisfitError("which isn't in its space")
        return space.dtype.type(number)

    return fit


def _fit_for_dict(space: spaces.Dict) -> Fit:
    fits = {name: _fit_for(each) for name, each in space.spaces.items()}

    def fit(value: Any) -> Any:
        if not isinstance(value, Mapping) or value.keys() != fits.keys():
            raise _MisfitError(f"which isn't a dict of {', '.join(fits)}")
        return {name: _fit_part(each, value[name], name) for name, each in fits.items()}

    return fit


def _fit_for_tuple(space: spaces.Tuple[Any]) -> Fit:
    fits = [_fit_for(each) for each in space.spaces]

    def fit(value: Any) -> Any:
        if not isinstance(value, Sequence) or len(value) != len(fits):
            raise _MisfitError(f"which isn't a tuple of {len(fits)}")
        return tuple(_fit_part(each, value[place], place) for place, each in enumerate(fits))

    return fit


def _fit_part(fit: Fit, value: Any, place: object) -> Any:
    try:
        return fit(value)
    except _MisfitError as misfit:
        raise _MisfitError(f"of which {place!r} is {_described(value)}, {misfit}") from None


def _cast(value: Any, space: gymnasium.Space[Any]) -> Any:
    """Return a value as an array of the space's shape and type."""
    assert space.dtype is not None
    try:
        array = np.asarray(value)
    except ValueError:  # A list of lists of different lengths.
        raise _MisfitError("which isn't an array") from None
    if array.dtype.kind not in _NUMBERS:
        raise _MisfitError("which isn't an array of numbers")
    if array.shape != space.shape:
        raise _MisfitError(f"which has the shape {array.shape}, and its space {space.shape}")
    if space.dtype.kind == "f":
        try:
            with np.errstate(over="raise"):
                return array.astype(space.dtype)
        except FloatingPointError:
            raise _MisfitError(f"which is too large for {space.dtype}") from None
    if array.dtype.kind == "f":
        raise _MisfitError(f"which has the type {array.dtype}, and its space {space.dtype}")
    cast = array.astype(space.dtype)
    if not np.array_equal(cast, array):
        raise _MisfitError(f"which is too large for {space.dtype}")
    return cast


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}: {shown(value.tolist())}"
    return shown(value)
