"""Many environments at once, dealt out to worker processes, as Gymnasium's vector.

Every worker has a share of them, and goes through it step by step; in each step, the program tells every worker the
actions of its share, and waits for all. That costs some tens of microseconds, so each should have a dozen environments
or more. What an episode is depends on its seed and its actions alone, and so not on the number of workers.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn, SupportsIndex

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from worldline.files.loading import load_module, loaded_files
from worldline.learning.spaces import as_seed, bounds_check
from worldline.model.blame import described, said_of
from worldline.model.errors import ConfigurationError, ModelError, UsageError, WorldlineError, shown
from worldline.processes.executor import cores
from worldline.processes.failures import raised_outside
from worldline.processes.forking import check_guarded
from worldline.processes.supervision import FAILED, GONE, LAST_WORDS_S, Pipe, Said, Supervision

# -- In a worker: its share is Gymnasium's own vector

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
        """Return what was raised as an error that names the environment: that may be made of wrappers of any kind."""
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


Told = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of a worker's share, and its arguments."""


class FederationVectorEnv(VectorEnv[Any, Any, Any]):
    """`count` environments in `workers` processes, by default one for each core.

    `make` is a function of a module that returns an environment, and is called in the workers. With a seed, each gets
    its own, as Gymnasium has it: seed, seed + 1 and so on, or those of a list. If none is given at first, it is the
    federation's own.

    Whatever breaks off a call, such as Ctrl-C or the loss of a worker, ends all workers: some would have
    done what they were told, and others not.
    """

    def __init__(
        self,
        make: Callable[[], gymnasium.Env[Any, Any]],
        count: int,
        *,
        workers: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> None:
        check_guarded()
        for what, number in (("environments", count), ("workers", 1 if workers is None else workers)):
            if type(number) is not int or number < 1:
                raise ConfigurationError(
                    f"there can't be {shown(number)} {what}", advice="give a whole number from 1 on"
                )
        pickled = _pickled(make)
        self.num_envs = count
        self._describe_with(make, AutoresetMode(autoreset_mode))
        shares = min(count, cores() if workers is None else workers)
        sizes = [count // shares + (number < count % shares) for number in range(shares)]
        self._shares = [slice(begin, end) for begin, end in pairwise([0, *accumulate(sizes)])]
        self._seen: list[Any] = [None] * shares  # What was last observed, by share.
        self._has_begun = False  # Whether all of them have had an episode.
        self._closed_by = ""
        self._pending = Lock()  # Held during a call: answers don't say to which call they are.
        self._workers = Supervision(self._described)
        mode = AutoresetMode(autoreset_mode).value
        numbers = [range(share.start, share.stop) for share in self._shares]
        self._workers.start(host, [(loaded_files(), pickled, each, mode) for each in numbers], host.__module__)

    def _describe_with(self, make: Callable[[], gymnasium.Env[Any, Any]], mode: AutoresetMode) -> None:
        """Take from one environment, made here, what all of them are like."""
        example = made_by(make)
        self.metadata = {**example.metadata, "autoreset_mode": mode}
        self.single_observation_space, self.single_action_space = example.observation_space, example.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        batch = self.action_space
        self._is_within = bounds_check(batch) if isinstance(batch, gymnasium.spaces.Box) else None
        self._first_seed: int | None = getattr(example.unwrapped, "first_seed", None)
        example.close()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in each environment, or in those for which `options` has a true `reset_mask`."""
        seeds = self._seeds(seed)
        given = dict(options or {})
        mask = given.pop("reset_mask", np.ones(self.num_envs, dtype=np.bool_))
        if np.shape(mask) != (self.num_envs,):
            raise UsageError(f"the reset_mask has the shape {np.shape(mask)}, and there are {self.num_envs}")
        mask = np.asarray(mask, dtype=np.bool_)
        if not (self._has_begun or mask.all()):
            raise UsageError(
                "it has had no episode yet, and the reset_mask leaves it out",
                participant=f"environment {mask.tolist().index(False)}",
                advice="reset all of them first, without a reset_mask",
            )
        told: dict[int, Told] = {}
        for worker, share in enumerate(self._shares):
            if mask[share].any():
                masked = {} if mask[share].all() else {"reset_mask": mask[share]}
                told[worker] = "reset", (), {"seed": seeds[share], "options": {**given, **masked}}
        infos: list[dict[str, Any]] = [{}] * len(self._shares)
        with self._call():
            for worker, (observations, info) in self._ask(told).items():
                self._seen[worker], infos[worker] = observations, info
            self._has_begun = True
            return self._observations(), self._merged(infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Let every agent act."""
        told: dict[int, Told] = {
            worker: (STEP, (packed(share),), {}) for worker, share in enumerate(self._dealt_out(actions))
        }
        rewards, terminations, truncations = np.empty(self.num_envs), *np.empty((2, self.num_envs), dtype=np.bool_)
        infos: list[dict[str, Any]] = [{}] * len(self._shares)
        with self._call():
            for worker, said in self._ask(told).items():
                share = self._shares[worker]
                observations, reward, terminated, truncated, infos[worker] = said
                self._seen[worker] = unpacked(observations, self._seen[worker])
                rewards[share] = np.frombuffer(reward)
                terminations[share] = np.frombuffer(terminated, np.bool_)
                truncations[share] = np.frombuffer(truncated, np.bool_)
            return self._observations(), rewards, terminations, truncations, self._merged(infos)

    def call(self, name: str, *arguments: Any, **keywords: Any) -> tuple[Any, ...]:
        """Return an attribute of each environment, or what a method of each returns."""
        told = dict.fromkeys(range(len(self._shares)), (CALL, (name, *arguments), keywords))
        with self._call():
            return tuple(each for _, said in sorted(self._ask(told).items()) for each in said)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of each environment."""
        return self.call(name)

    def close_extras(self, **_: Any) -> None:
        """End the workers, from any thread."""
        self.closed = True  # Before a pending call notices that they are gone.
        self._workers.end()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UsageError(
            "a vector of environments can't be copied or pickled: it has worker processes", advice="make another one"
        )

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        """Return each environment's seed, or None for the one that follows from its last."""
        numbers = range(self.num_envs)
        # On its own, each would begin with the same one.
        first = None if self._has_begun else self._first_seed
        following = [None if first is None else first + number for number in numbers]
        if seed is None:
            return following
        if not isinstance(seed, Sequence | np.ndarray):
            return [as_seed(seed) + number for number in numbers]
        if len(seed) != self.num_envs:
            raise UsageError(f"there are {len(seed)} seeds for {self.num_envs} environments")
        return [following[number] if each is None else as_seed(each) for number, each in enumerate(seed)]

    def _dealt_out(self, actions: Any) -> list[Any]:
        """Return the actions of each share, once all of them have been found good."""
        if self.action_space.dtype is not None and isinstance(actions, np.ndarray | list | tuple):
            array = self._as_array(actions, self.action_space.dtype)
            self._check_actions(array)
            return [array[share] for share in self._shares]
        try:
            single = list(iterate(self.action_space, actions))
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise self._no_actions(actions) from error
        if len(single) != self.num_envs:
            raise UsageError(f"there are {len(single)} actions for {self.num_envs} environments")
        self._check_actions(single)
        return [
            concatenate(
                self.single_action_space,
                single[share],
                create_empty_array(self.single_action_space, share.stop - share.start),  # type: ignore[arg-type]
            )
            for share in self._shares
        ]

    def _as_array(self, actions: Any, dtype: np.dtype[Any]) -> Any:
        """Return actions as the array that all of them are."""
        try:
            array = np.asarray(actions)
        except ValueError as error:  # A list of lists of different lengths.
            raise self._no_actions(actions) from error
        count = array.shape[0] if array.shape else "no"
        if count != self.num_envs:
            raise UsageError(f"there are {count} actions for {self.num_envs} environments")
        if array.shape != self.action_space.shape:
            wanted = f"its space {self.single_action_space.shape}"
            raise UsageError(f"an action has the shape {array.shape[1:]}, and {wanted}")
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise UsageError(f"an action has the type {array.dtype}, and its space {dtype}")
        return array.astype(dtype, copy=False)

    def _check_actions(self, actions: Any) -> None:
        """Refuse actions that aren't in their space, before any of them is taken."""
        if self._is_within is not None and self._is_within(actions):
            return
        for number, action in enumerate(actions):
            if not self.single_action_space.contains(action):
                raise UsageError(
                    f"the action {shown(action)} isn't in its space",
                    participant=f"environment {number}",
                    advice=f"actions are in {self.single_action_space}",
                )

    def _no_actions(self, actions: Any) -> UsageError:
        return UsageError(
            f"{shown(actions)} aren't actions of {self.num_envs} environments",
            advice=f"actions are in {self.action_space}",
        )

    def _observations(self) -> Any:
        if isinstance(self._seen[0], np.ndarray):
            return np.concatenate(self._seen)
        out: Any = create_empty_array(self.single_observation_space, self.num_envs)
        single = [
            each
            for seen, share in zip(self._seen, self._shares, strict=True)
            for each in iterate(batch_space(self.single_observation_space, share.stop - share.start), seen)
        ]
        return concatenate(self.single_observation_space, single, out)

    def _merged(self, infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the shares' infos as those of all: arrays, of which `_name` says for whom `name` is there."""
        merged: dict[str, Any] = {}
        for share, info in zip(self._shares, infos, strict=True):
            if info:
                for place in range(share.stop - share.start):
                    merged = self._add_info(merged, _info_of(info, place), share.start + place)
        return merged

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Refuse a call while another is pending, whose answers it would take."""
        if not self._pending.acquire(blocking=False):
            raise UsageError(
                "another call of these environments hasn't returned yet",
                advice="wait for it, or give each thread environments of its own",
            )
        try:
            yield
        finally:
            self._pending.release()

    def _ask(self, told: dict[int, Told]) -> dict[int, Any]:
        """Have workers do something, all at once; return what each says."""
        if self.closed:
            raise UsageError(f"the environments are closed{self._closed_by}", advice="make others")
        try:
            answers = self._answers(told)
        except BaseException as error:
            if self.closed and isinstance(error, Exception):
                raise UsageError(
                    "the environments were closed while a call was pending", advice="make others"
                ) from error
            self._closed_by = f", since a call was broken off by {described(error)}"
            self.close()
            raise
        raised = [said for _, (kind, said) in sorted(answers.items()) if kind == RAISED]
        if raised:
            raise raised[0]
        return {worker: said for worker, (_, said) in answers.items()}

    def _answers(self, told: dict[int, Told]) -> dict[int, Said]:
        for worker, what in told.items():
            self._workers.tell(worker, what)
        answers: dict[int, Said] = {}
        while len(answers) < len(told):
            for worker, (kind, said) in self._workers.hear():
                if kind in (GONE, FAILED):
                    self._workers.processes[worker].join(LAST_WORDS_S)
                    raise said.error if kind == FAILED else self._workers.loss(worker, "the others are ended")
                answers[worker] = kind, said
        return answers

    def _described(self, worker: int) -> str:
        share = self._shares[worker]
        return f"environments {share.start} to {share.stop - 1}"


def _info_of(infos: dict[str, Any], place: int) -> dict[str, Any]:
    """Return one environment's info out of a share's."""
    return {
        name: _info_of(value, place) if isinstance(value, dict) else value[place]
        for name, value in infos.items()
        if not name.startswith("_") and infos[f"_{name}"][place]
    }


def _pickled(make: object) -> bytes:
    if not callable(make):
        raise ConfigurationError(f"{shown(make)} isn't a function that makes an environment")
    try:
        return pickle.dumps(make)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ConfigurationError(
            f"the function that makes an environment can't be sent to workers: {error}",
            advice="define it in a module, by `def`; functools.partial may give it arguments",
        ) from error
