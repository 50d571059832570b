"""Observations: what `observe` returns is checked, and made to be of its space's type where that loses nothing.

Numbers become the array that the space wants, and floats are rounded to its precision. Nothing else changes: whoever
returns a float where a whole number is wanted, or an array of another shape, is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from worldline.learning.spaces import bounds_check
from worldline.model import ModelError
from worldline.model.errors import shown

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
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return _fit_for_whole_numbers(space)
    if isinstance(space, spaces.Dict):
        return _fit_for_dict(space)
    if isinstance(space, spaces.Tuple):
        return _fit_for_tuple(space)

    def fit(value: Any) -> Any:
        if not space.contains(value):
            raise _MisfitError("which isn't in its space")
        return value

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


def _fit_for_whole_numbers(space: spaces.MultiDiscrete | spaces.MultiBinary) -> Fit:
    def fit(value: Any) -> Any:
        array = _cast(value, space)
        if not space.contains(array):
            raise _MisfitError("which isn't in its space")
        return array

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
