"""One series of seeds for all kinds of environments: the same seed gives the same episodes in each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.learning.heating import env, federation
from worldline.learning import FederationEnv, FederationVectorEnv, ParallelFederationEnv

ACTION = np.array([0.5])
SEEDS: list[dict[str, Any]] = [{}, {}, {"seed": 5}, {}, {}, {"seed": 9}, {}]
STEPS = 4


def make() -> FederationEnv:
    return env(federation(seed=3))


def alone() -> list[Any]:
    made = make()
    seen = []
    for how in SEEDS:
        observation, info = made.reset(**how)
        seen.append([info["seed"], observation.tolist(), *(made.step(ACTION)[0].tolist() for _ in range(STEPS))])
    return seen


def in_parallel() -> list[Any]:
    made = ParallelFederationEnv(federation(seed=3), {"heater": make().task}, step="20ms")
    seen = []
    for how in SEEDS:
        observations, infos = made.reset(**how)
        steps = [made.step({"heater": ACTION})[0]["heater"].tolist() for _ in range(STEPS)]
        seen.append([infos["heater"]["seed"], observations["heater"].tolist(), *steps])
    return seen


def first_of_a_vector() -> list[Any]:
    envs = FederationVectorEnv(make, 3, workers=2)
    try:
        seen = []
        for how in SEEDS:
            observations, infos = envs.reset(**how)
            steps = [envs.step(np.tile(ACTION, (3, 1)))[0][0].tolist() for _ in range(STEPS)]
            seen.append([infos["seed"][0], observations[0].tolist(), *steps])
        return seen
    finally:
        envs.close()


@pytest.mark.once
@pytest.mark.parametrize("other", [in_parallel, first_of_a_vector])
def test_same_seed_same_episodes(other: Callable[[], list[Any]]) -> None:
    seen = alone()
    assert other() == seen
    seeds = [each[0] for each in seen]
    assert (seeds[0], seeds[2], seeds[5]) == (3, 5, 9)
    assert len(set(seeds)) == len(seeds)
