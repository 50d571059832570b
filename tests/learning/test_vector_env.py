"""Many environments in worker processes."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from tests.learning.heating import doubled, env, federation, observe
from tests.liveness import is_running
from worldline.learning import AgentMoment, FederationEnv, FederationVectorEnv
from worldline.model import LossError, ModelError, UsageError
from worldline.model.errors import ConfigurationError

pytestmark = pytest.mark.once


def make(until: str = "200ms", **changes: Any) -> FederationEnv:
    made = env(federation(until=until), **changes)
    made.fail_when_warm = _fail_when_warm  # type: ignore[attr-defined] # To be called from outside, as the next.
    made.unsendable = lambda: Lock()  # type: ignore[attr-defined]
    return made


def make_doubling() -> FederationEnv:
    return make(act=doubled)


def make_crashing() -> FederationEnv:
    return env(federation(faults=["50ms crash heater"]))


class Misshapen(gymnasium.Wrapper[Any, Any, Any, Any]):
    def step(self, action: Any) -> Any:
        _, *rest = self.env.step(action)
        return np.zeros(7), *rest


def make_misshapen() -> Misshapen:
    return Misshapen(make())


def make_broken() -> FederationEnv:
    return make(reward=_fail_when_warm)


def _fail_when_warm(moment: AgentMoment) -> float:
    if moment.action[0] > 0.5:
        raise ValueError("too warm")
    return 0.0


def make_tree() -> FederationEnv:
    """Its observations and actions aren't plain arrays."""
    observed = spaces.Dict({"degrees": spaces.Box(-100, 100, (1,), np.float64), "count": spaces.Discrete(50)})
    return make(
        observe=lambda moment: _tree(observe(AgentMoment(0, 0, moment.messages, None, None, {}))),
        reward=lambda moment: 0.0,
        done=None,
        observation_space=observed,
        action_space=spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2)]),
        act=lambda me, action: me.publish("power", bytes([202, 0, 0, 0, 0])),
    )


def _tree(seen: Any) -> Any:
    return {"degrees": seen[:1], "count": np.int64(seen[1])}


def kill_itself() -> FederationEnv:
    made = make()
    made.kill = lambda: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[attr-defined]
    return made


@pytest.fixture(scope="module")
def vector() -> Iterator[FederationVectorEnv]:
    with_workers = FederationVectorEnv(make, 5, workers=2)
    yield with_workers
    with_workers.close()


def played(envs: Any, steps: int = 15) -> list[Any]:
    """Play with fixed actions over the end of the first episodes."""
    actions = np.linspace(-1.0, 1.0, envs.num_envs).reshape(-1, 1)
    seen: list[Any] = [*map(plain, envs.reset(seed=4))]
    seen += [[*map(plain, envs.step(actions))] for _ in range(steps)]
    seen.append(envs.call("digest"))
    return seen


def plain(value: Any) -> Any:
    return {name: plain(each) for name, each in value.items()} if isinstance(value, dict) else value.tolist()


def test_workers_change_nothing(vector: FederationVectorEnv) -> None:
    expected = played(SyncVectorEnv([make] * 5))
    assert played(vector) == expected
    assert played(vector) == expected


def test_autoreset_in_the_same_step() -> None:
    envs = FederationVectorEnv(make_crashing, 3, workers=2, autoreset_mode="SameStep")
    try:
        assert repr(played(envs)) == repr(played(SyncVectorEnv([make_crashing] * 3, autoreset_mode="SameStep")))
    finally:
        envs.close()


def test_what_befell_an_agent_is_in_the_infos() -> None:
    envs = FederationVectorEnv(make_crashing, 3, workers=1)
    try:
        envs.reset(seed=1)
        for _ in range(3):
            *_, terminated, _, infos = envs.step(np.zeros((3, 1)))
        assert terminated.all()
        assert infos["befell"].tolist() == ["heater at 50ms: 50ms crash heater"] * 3
    finally:
        envs.close()


def test_a_task_may_change_its_action_in_any_worker() -> None:
    envs = FederationVectorEnv(make_doubling, 3, workers=2, autoreset_mode="SameStep")
    try:
        assert repr(played(envs)) == repr(played(SyncVectorEnv([make_doubling] * 3, autoreset_mode="SameStep")))
    finally:
        envs.close()


def test_spaces(vector: FederationVectorEnv) -> None:
    alone = make()
    assert vector.single_action_space == alone.action_space
    assert vector.action_space.shape == (5, 1)
    assert vector.observation_space.shape == (5, 2)


def test_seeds_and_masks(vector: FederationVectorEnv) -> None:
    _, infos = vector.reset(seed=[9, 8, 7, 6, 5])
    assert infos["seed"].tolist() == [9, 8, 7, 6, 5]
    before = vector.step(np.zeros((5, 1)))[0]
    again, infos = vector.reset(seed=1, options={"reset_mask": np.array([False, False, False, False, True])})
    assert infos["_seed"].tolist() == [False, False, False, False, True]
    assert again[:4].tolist() == before[:4].tolist()


def test_mistakes_leave_it_usable(vector: FederationVectorEnv) -> None:
    vector.reset(seed=1)
    first = vector.step(np.zeros((5, 1)))[0].tolist()
    vector.reset(seed=1)
    with pytest.raises(UsageError, match="there are 4 actions for 5 environments"):
        vector.step(np.zeros((4, 1)))
    with pytest.raises(UsageError, match=r"an action has the shape \(2,\), and its space \(1,\)"):
        vector.step(np.zeros((5, 2)))
    with pytest.raises(
        UsageError, match=r"environment 3: the action array\(\[5\.\]\) isn't in its space \(actions are in"
    ):
        vector.step(np.array([[0.0], [0.0], [0.0], [5.0], [np.nan]]))
    with pytest.raises(UsageError, match="an action has the type complex128, and its space float64"):
        vector.step(np.zeros((5, 1), np.complex128))
    with pytest.raises(UsageError, match="there are no actions for 5 environments"):
        vector.step(np.array(0.5))
    with pytest.raises(UsageError, match="there are 1 actions for 5 environments"):
        vector.step([[0.5]])
    with pytest.raises(UsageError, match="aren't actions of 5 environments"):
        vector.step([[0.5], []])
    with pytest.raises(UsageError, match="None aren't actions of 5 environments"):
        vector.step(None)
    with pytest.raises(UsageError, match="there are 2 seeds for 5 environments"):
        vector.reset(seed=[1, 2])
    with pytest.raises(UsageError, match=r"the seed 0\.5 isn't a whole number"):
        vector.reset(seed=0.5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the reset_mask has the shape"):
        vector.reset(options={"reset_mask": np.ones(3, dtype=np.bool_)})
    assert vector.step([[0.0]] * 5)[0].tolist() == first  # Nobody has been told anything.


def test_what_cant_be_called_leaves_it_usable(vector: FederationVectorEnv) -> None:
    vector.reset(seed=1)
    with pytest.raises(UsageError, match="environment 0: it has no attribute 'color'"):
        vector.call("color")
    with pytest.raises(ModelError, match=r"environment 0: it raised TypeError: .*fail_when_warm"):
        vector.call("fail_when_warm")
    with pytest.raises(UsageError, match="what an environment answers can't be sent to the program"):
        vector.call("unsendable")
    vector.step(np.zeros((5, 1)))


def make_marked(mark: Path) -> FederationEnv:
    """It can't begin as long as there is the mark."""

    def observe_unmarked(moment: AgentMoment) -> Any:
        if mark.exists():
            raise ValueError("marked")
        return observe(moment)

    return make(observe=observe_unmarked)


def test_those_without_a_seed_begin_with_seeds_of_their_own(tmp_path: Path) -> None:
    """However often it takes until all have begun: none begins with the seed that environment 0 has."""
    mark = tmp_path / "mark"
    mark.touch()
    envs = FederationVectorEnv(partial(make_marked, mark), 4, workers=2)
    try:
        for seed in (None, 7):
            with pytest.raises(ModelError, match="raised ValueError: marked"):
                envs.reset(seed=seed)
        mark.unlink()
        for _ in range(2):
            with pytest.raises(
                UsageError,
                match=r"environment 1: it has had no episode yet, .* leaves it out \(reset all of them first",
            ):
                envs.reset(options={"reset_mask": np.array([True, False, True, False])})
        assert envs.reset(seed=[5, None, 5, None])[1]["seed"].tolist() == [5, 1, 5, 3]
        envs.reset(options={"reset_mask": np.array([True, False, True, False])})
    finally:
        envs.close()


def test_other_kinds_of_spaces() -> None:
    envs, expected = FederationVectorEnv(make_tree, 3, workers=1), SyncVectorEnv([make_tree] * 3)
    try:
        actions = (np.array([0, 1, 1]), np.array([1, 0, 1]))
        for each in zip(envs.reset(seed=2)[0].items(), expected.reset(seed=2)[0].items(), strict=True):
            assert str(each[0]) == str(each[1])
        seen, wanted = envs.step(actions)[0], expected.step(actions)[0]
        assert {name: each.tolist() for name, each in seen.items()} == {
            name: each.tolist() for name, each in wanted.items()
        }
    finally:
        envs.close()


def test_errors_in_workers() -> None:
    envs = FederationVectorEnv(make_broken, 2, workers=1, autoreset_mode="SameStep")
    try:
        envs.reset(seed=1)
        said = r"heater of environment 1 at 20ms: its function `reward` raised ValueError: too warm"
        with pytest.raises(ModelError, match=said):
            envs.step(np.array([[0.0], [1.0]]))
        envs.reset(seed=1)
        for _ in range(12):
            envs.step(np.zeros((2, 1)))
    finally:
        envs.close()
    with pytest.raises(UsageError, match="the environments are closed"):
        envs.reset()


def test_observations_of_wrappers_that_dont_go_together() -> None:
    envs = FederationVectorEnv(make_misshapen, 2, workers=1)
    try:
        envs.reset(seed=1)
        with pytest.raises(ModelError, match=r"environments 0 to 1: the vector raised ValueError: .*shape"):
            envs.step(np.zeros((2, 1)))
        envs.reset(seed=1)
    finally:
        envs.close()


def test_a_worker_that_is_killed() -> None:
    envs = FederationVectorEnv(kill_itself, 2, workers=1)
    with pytest.raises(LossError, match=r"worker 0, with environments 0 to 1, was killed by SIGKILL"):
        envs.call("kill")
    assert envs.closed
    envs.close()


def test_a_worker_that_is_killed_from_outside() -> None:
    envs = FederationVectorEnv(make, 4, workers=2)
    pids = [process.pid or 0 for process in envs._workers.processes]
    envs.reset(seed=1)
    os.kill(pids[1], signal.SIGKILL)
    with pytest.raises(LossError, match=r"worker 1, with environments 2 to 3, was killed by SIGKILL"):
        envs.step(np.zeros((4, 1)))
    assert not any(map(is_running, pids))
    with pytest.raises(UsageError, match="the environments are closed, since a call was broken off by LossError"):
        envs.step(np.zeros((4, 1)))
    envs.close()


def test_a_call_that_is_interrupted_ends_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """So no answer to it can be taken for one to a later call."""
    envs = FederationVectorEnv(make, 2, workers=1)
    pids = [process.pid or 0 for process in envs._workers.processes]
    envs.reset(seed=1)

    def interrupted() -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(envs._workers, "hear", interrupted)
    with pytest.raises(KeyboardInterrupt):
        envs.step(np.zeros((2, 1)))
    assert not any(map(is_running, pids))
    with pytest.raises(UsageError, match=r"closed, since a call was broken off by KeyboardInterrupt \(make others\)"):
        envs.step(np.zeros((2, 1)))


def test_one_may_be_closed_from_another_thread_while_a_call_is_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    envs = FederationVectorEnv(make, 2, workers=1)
    envs.reset(seed=1)
    hear = envs._workers.hear

    def hear_when_closed() -> Any:
        other = Thread(target=envs.close)
        other.start()
        other.join()
        return hear()

    monkeypatch.setattr(envs._workers, "hear", hear_when_closed)
    with pytest.raises(UsageError, match=r"the environments were closed while a call was pending \(make others\)"):
        envs.step(np.zeros((2, 1)))
    with pytest.raises(UsageError, match=r"the environments are closed \(make others\)"):
        envs.step(np.zeros((2, 1)))
    envs.close()


@pytest.mark.parametrize("copied", [copy, deepcopy, pickle.dumps])
def test_one_cant_be_copied(vector: FederationVectorEnv, copied: Callable[[Any], object]) -> None:
    with pytest.raises(UsageError, match=r"can't be copied or pickled: it has worker processes \(make another one"):
        copied(vector)
    vector.reset(seed=1)
    vector.step(np.zeros((5, 1)))


@pytest.mark.parametrize("call", ["step", "reset", "call"])
def test_a_call_while_another_is_pending_is_refused(
    vector: FederationVectorEnv, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    arguments = {"step": [np.zeros((5, 1))], "reset": [], "call": ["digest"]}[call]
    vector.reset(seed=1)
    before = vector.step(np.zeros((5, 1)))[0].tolist()
    vector.reset(seed=1)
    tried: list[Thread] = []
    refused: list[UsageError] = []
    hear = vector._workers.hear

    def interfere() -> None:
        with pytest.raises(UsageError, match=r"another call of these environments .* \(wait for it, or give") as error:
            getattr(vector, call)(*arguments)
        refused.append(error.value)

    def hear_meanwhile() -> Any:
        if not tried:
            tried.append(Thread(target=interfere))
            tried[0].start()
            tried[0].join()
        assert refused, "both wait for answers"
        return hear()

    with monkeypatch.context() as patch:
        patch.setattr(vector._workers, "hear", hear_meanwhile)
        assert vector.step(np.zeros((5, 1)))[0].tolist() == before
    vector.step(np.zeros((5, 1)))


def test_what_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"can't be sent to workers: .* \(define it in a module"):
        FederationVectorEnv(lambda: make(), 2)
    with pytest.raises(ConfigurationError, match="3 isn't a function"):
        FederationVectorEnv(3, 2)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="there can't be 0 environments"):
        FederationVectorEnv(make, 0)
    with pytest.raises(ConfigurationError, match="there can't be 0 workers"):
        FederationVectorEnv(make, 1, workers=0)
    with pytest.raises(ConfigurationError, match="the function returns a int, and not an environment"):
        FederationVectorEnv(partial(int, 3), 2)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="the environment can't be made: ValueError"):
        FederationVectorEnv(partial(int, "x"), 2)  # type: ignore[arg-type]
