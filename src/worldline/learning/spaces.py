"""What goes in and out of an environment, checked where a learner would otherwise go astray without a word."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np

from worldline.model import ModelError, UsageError
from worldline.model.errors import ConfigurationError, shown
from worldline.model.nearest import nearest

OPTIONS = ("draws",)


def check_spaces(agent: str, **spaces: object) -> None:
    """Refuse what isn't a space."""
    for name, space in spaces.items():
        if not isinstance(space, gymnasium.Space):
            raise ConfigurationError(
                f"{agent}: {name} is {shown(space)}, and not a space",
                advice="write gymnasium.spaces.Box(-1, 1, (4,)), for instance",
            )


def check_action(action: Any, space: gymnasium.Space[Any], agent: str) -> None:
    """Refuse an action that isn't one."""
    is_box = isinstance(space, gymnasium.spaces.Box)
    if isinstance(action, np.ndarray) or not is_box:  # A box would take a list, and warn at every step.
        if space.contains(action):
            return
        problem = f"the action {shown(action)} isn't in its space"
    else:
        problem = f"the action {shown(action)} isn't an array"
    if is_box and isinstance(action, np.ndarray) and action.shape != space.shape:
        problem = f"the action has the shape {action.shape}, and its space {space.shape}"
    raise UsageError(problem, participant=agent, advice=f"actions are in {space}")


def check_observation(observation: Any, space: gymnasium.Space[Any], agent: str, now: int) -> Any:
    """Return the first observation of an episode, unless it isn't one: the others will be like it."""
    if space.contains(observation):
        return observation
    raise ModelError(
        f"its function `observe` returned {_described(observation)}, which isn't in its space",
        participant=agent,
        at=now,
        advice=f"observations are in {space}",
    )


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}: {shown(value.tolist())}"
    return shown(value)


def fresh(observation: Any, before: Any) -> Any:
    """Return an observation that nobody else has: where nothing has arrived, `observe` may return the one before."""
    return deepcopy(observation) if observation is before else observation


def take_options(options: Mapping[str, Any] | None) -> Any:
    """Return the draws that the options of a reset replace; other options are somebody else's, or a mistake."""
    if not options:
        return None
    for name in options:
        if name not in OPTIONS:
            advice = nearest(name, OPTIONS) or f"options are {', '.join(OPTIONS)}"
            warnings.warn(f"the option {name!r} is nothing to this environment ({advice})", stacklevel=3)
    return options.get("draws")
