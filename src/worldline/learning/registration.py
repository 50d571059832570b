"""Federations by Gymnasium's registry: ``gymnasium.make("worldline/Federation-v0", file="heating.py:make")``.

Gymnasium calls `register` itself where Worldline is installed, whenever it is imported. So nothing is loaded here that
can wait until an environment is made.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gymnasium

ID = "worldline/Federation-v0"
_MAKE = "make"


def register() -> None:
    """Say to Gymnasium which environments there are."""
    from gymnasium.envs.registration import register, registry

    if ID not in registry:
        register(ID, entry_point=f"{__name__}:made")


def made(file: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return the environment that a function of a file makes: `make`, or that of FILE.py:NAME; it gets the options."""
    import gymnasium

    from worldline.files.loading import load_module
    from worldline.model.errors import ConfigurationError, shown

    before, colon, name = file.rpartition(".py:")
    path = Path(f"{before}.py" if colon else file)
    function = getattr(load_module(path), name if colon else _MAKE, None)
    if not callable(function):
        raise ConfigurationError(
            f"{path} has no function {shown(name if colon else _MAKE)}",
            advice="write def make(), which returns an environment, or name another: FILE.py:NAME",
        )
    env = function(**options)
    if not isinstance(env, gymnasium.Env):
        raise ConfigurationError(f"{file} makes {shown(env)}, and not an environment", advice="return a FederationEnv")
    return env
