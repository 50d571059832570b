"""A worker's share of a vector of environments: Gymnasium's own vector, in a process of its own."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from worldline.loading.python_file import load_module
from worldline.model.blame import said_of
from worldline.model.errors import ConfigurationError, WorldlineError
from worldline.workers.failures import raised_outside
from worldline.workers.supervision import Pipe

DONE, RAISED = "done", "raised"
STEP = "step"


def packed(value: Any) -> Any:
    """Return an array as its bytes, which are pickled several times as fast; other values as they are."""
    return value.tobytes() if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" else value


def unpacked(value: Any, like: Any) -> Any:
    """Return an array of that shape and type, from its bytes; other values as they are."""
    return np.frombuffer(value, like.dtype).reshape(like.shape) if isinstance(value, bytes) else value


def made_by(make: Callable[[], gymnasium.Env[Any, Any]]) -> gymnasium.Env[Any, Any]:
    """Return an environment that the user's function makes."""
    try:
        made = make()
    except WorldlineError:
        raise
    except Exception as error:  # It is the user's code, and can raise anything.
        raise ConfigurationError(f"the environment can't be made: {said_of(error)}") from error
    if not isinstance(made, gymnasium.Env):
        raise ConfigurationError(f"the function returns a {type(made).__name__}, and not an environment")
    return made


def host(pipe: Pipe, files: Sequence[Path], pickled: bytes, count: int, mode: str) -> None:
    """Do what the program says to so many environments, until it has had enough."""
    for file in files:
        load_module(file)
    make = pickle.loads(pickled)
    # No copies: what is said is pickled at once.
    envs = SyncVectorEnv([lambda: made_by(make)] * count, copy=False, autoreset_mode=AutoresetMode(mode))
    said: tuple[str, Any]
    try:
        while True:
            method, arguments, keywords = pipe.recv()
            try:
                if method == STEP:
                    *results, infos = envs.step(unpacked(arguments[0], envs.action_space))
                    said = DONE, (*map(packed, results), infos)
                else:
                    said = DONE, getattr(envs, method)(*arguments, **keywords)
            except WorldlineError as error:
                said = RAISED, raised_outside(error).error
            pipe.send(said)
    finally:
        envs.close()
