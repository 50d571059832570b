"""Federations by Gymnasium's registry, which this module enters when it is imported:

    gymnasium.make("worldline.learning.gym:worldline/Federation-v0", file="heating.py:make")

What stands before the colon is imported by Gymnasium, which no longer looks for entry points of packages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium

from worldline.files.loading import forget_changed, load_module, sources_of
from worldline.model.errors import ConfigurationError, shown

ID = "worldline/Federation-v0"
_MAKE = "make"


def made(file: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return the environment that a function of a file makes: `make`, or that of FILE.py:NAME; it gets the options."""
    before, colon, name = file.rpartition(".py:")
    path = Path(f"{before}.py" if colon else file)
    forget_changed()
    module = load_module(path)
    sources_of([path], path.parent)  # So that the next one is made of what has changed by then.
    function = getattr(module, name if colon else _MAKE, None)
    if not callable(function):
        raise ConfigurationError(
            f"{path} has no function {shown(name if colon else _MAKE)}",
            advice="write def make(), which returns an environment, or name another: FILE.py:NAME",
        )
    env = function(**options)
    if not isinstance(env, gymnasium.Env):
        raise ConfigurationError(f"{file} makes {shown(env)}, and not an environment", advice="return a FederationEnv")
    return env


gymnasium.register(ID, entry_point=f"{__name__}:made")
