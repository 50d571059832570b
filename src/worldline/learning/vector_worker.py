"""A worker's share of a vector of environments: Gymnasium's own vector, in a process of its own."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from worldline.files.loading import load_module
from worldline.model.blame import said_of
from worldline.model.errors import ConfigurationError, ModelError, UsageError, WorldlineError
from worldline.processes.failures import raised_outside
from worldline.processes.supervision import Pipe

DONE, RAISED = "done", "raised"
STEP, CALL = "step", "call"


class NumberedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment of a vector: what goes wrong in it says in which."""

    def __init__(self, make: Callable[[], gymnasium.Env[Any, Any]], number: int) -> None:
        self.number = number
        try:
            super().__init__(made_by(make))
        except WorldlineError as error:
            raise self._blamed(error) from error

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        try:
            return self.env.reset(seed=seed, options=options)
        except Exception as error:
            raise self._blamed(error) from error

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        try:
            return self.env.step(action)
        except Exception as error:
            raise self._blamed(error) from error

    def called(self, name: str, *arguments: Any, **keywords: Any) -> Any:
        """Return an attribute, or what a method of that name returns."""
        try:
            found = self.env.get_wrapper_attr(name)
        except AttributeError:
            raise UsageError(f"it has no attribute {name!r}", participant=f"environment {self.number}") from None
        try:
            return found(*arguments, **keywords) if callable(found) else found
        except Exception as error:
            raise self._blamed(error) from error

    def _blamed(self, error: Exception) -> WorldlineError:
        """Return what was raised as an error that names the environment: that may be made of anybody's wrappers."""
        where = f"environment {self.number}"
        if not isinstance(error, WorldlineError):
            return ModelError(f"it raised {said_of(error)}", participant=where)
        error.participant = where if error.participant is None else f"{error.participant} of {where}"
        error.args = (error.text(),)
        return error


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


def host(pipe: Pipe, files: Sequence[Path], pickled: bytes, numbers: range, mode: str) -> None:
    """Do what the program says to the environments of these numbers, until it has had enough."""
    for file in files:
        load_module(file)
    make = pickle.loads(pickled)
    # No copies: what is said is pickled at once.
    makers = [partial(NumberedEnv, make, number) for number in numbers]
    envs = SyncVectorEnv(makers, copy=False, autoreset_mode=AutoresetMode(mode))
    said: tuple[str, Any]
    try:
        while True:
            method, arguments, keywords = pipe.recv()
            try:
                if method == STEP:
                    *results, infos = envs.step(unpacked(arguments[0], envs.action_space))
                    said = DONE, (*map(packed, results), infos)
                elif method == CALL:
                    said = DONE, [env.called(*arguments, **keywords) for env in envs.envs]  # type: ignore[attr-defined]
                else:
                    said = DONE, getattr(envs, method)(*arguments, **keywords)
            except WorldlineError as error:
                said = RAISED, raised_outside(error).error
            except Exception as error:  # What they return doesn't go together.
                where = f"environments {numbers.start} to {numbers.stop - 1}"
                said = RAISED, ModelError(f"the vector raised {said_of(error)}", participant=where)
            _send(pipe, said)
    finally:
        envs.close()


def _send(pipe: Pipe, said: tuple[str, Any]) -> None:
    try:
        pipe.send(said)
    except (pickle.PicklingError, AttributeError, TypeError) as error:  # Nothing of it has been sent.
        problem = f"what an environment answers can't be sent to the program: {error}"
        pipe.send((RAISED, UsageError(problem)))
