"""Rewards are measured, and a page shows episodes while a learner plays them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any
from urllib.request import urlopen

import numpy as np
from msgspec import json

from tests.learning.heating import FORMS, act, env, federation, observe, reward, too_hot
from tests.watch.test_tape import told
from worldline import run
from worldline.learning import AgentTask, play

TASK = AgentTask(observe=observe, act=act, reward=reward, done=too_hot, observation_space=FORMS["observation_space"])


def played(made: Any, seed: int) -> tuple[float, bytes]:
    """Play an episode that always heats; return what it has earned, and its digest."""
    made.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        _, earned, terminated, truncated, _ = made.step(np.ones(1))
        total += earned
        over = terminated or truncated
    return total, made.digest


def test_a_policy_measures_its_rewards() -> None:
    made = federation(until="200ms", seed=3)
    program = replace(made.programs["heater"], run=play(TASK, lambda _: np.ones(1), step="20ms", until="200ms"))
    outcome = run(replace(made, programs={**made.programs, "heater": program}))
    with env(until="200ms") as learners:
        total, _ = played(learners, 3)
        assert learners.page is None
        assert learners.outcome is not None
        assert outcome.digest == learners.outcome.digest
    assert np.isclose(sum(outcome.monitors["heater", "reward"].values), total)


def test_a_page_shows_all_episodes_and_changes_none() -> None:
    with env(until="200ms") as made:
        usual = [played(made, seed) for seed in (3, 4)]
    with env(until="200ms", render_mode="human") as made:
        page = made.page
        assert [played(made, seed) for seed in (3, 4)] == usual
        made.reset(seed=5)  # So the second is over for the page, too.
        with urlopen(f"{page}news", timeout=60) as answer:
            head, rows = told(answer.read())
        with urlopen(f"{page}signal?topic=worldline/measure&field=return", timeout=60) as answer:
            (returns,) = json.decode(answer.read())["lines"]
    lines = [json.decode(note[4])["text"] for note in head["notes"] if head["topics"][note[2]] == "worldline/log"]
    assert lines[:2] == ["episode 0, seed 3", "episode 1, seed 4"]
    assert np.allclose(returns["values"], [total for total, _ in usual])
    assert returns["times"] == [200_000_000, 400_000_001]
    assert rows[-1][0] > 200_000_000
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)


def test_one_whose_page_was_asked_for_can_be_copied_and_has_another() -> None:
    with env(render_mode="human") as made:
        address = made.page
        with deepcopy(made) as fresh:
            assert fresh.page not in (None, address)
        assert made.page == address
