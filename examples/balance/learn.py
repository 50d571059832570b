"""Learns to balance a pole over a bad link, twice: by luck of the draw, and with common random numbers by name.

    python examples/balance/learn.py [--quick] [--seeds 10] [--workers 2]

The learner is the cross-entropy method: each generation draws candidates around a mean, plays an episode with each, and
moves the mean to the best of them. A candidate is five gains of a linear controller. What an episode brings depends on
the gains, but also on which messages were late or lost, so a poor candidate may be among the best by luck.

First, every episode has draws of its own. Then every episode of a generation has the same network and the same noise:
the table of draws says so, by name, `{"latency": {"seed": 7}, ...}`. The seventh measurement is late for all candidates
or for none, so that the best are the best for what they do.

Each way is tried with ten seeds of the learner. After every generation the mean plays episodes that no candidate has
seen; the picture has the median of what these bring, and the middle half. It goes to `balance.svg`, in the directory
that WORLDLINE_OUTPUT names, or else in the current one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from balance import choose, make
from picture import Curve, picture

from worldline.learning import FederationEnv

GAINS = 5
ALONE, COMMON = "draws of its own", "common random numbers"
TESTS = range(900, 904)  # Seeds of episodes that nothing is learned from.
NAMES = ("latency", "loss", "stream", "random")  # What a generation has in common: the network, the noise, the visitor.


class Budget(NamedTuple):
    """How much is tried."""

    generations: int
    candidates: int
    best: int


FULL, QUICK = Budget(16, 16, 4), Budget(3, 6, 2)


def play(env: FederationEnv, gains: Any, *, seed: int, draws: dict[str, Any] | None = None) -> float:
    """Play one episode; return what it brought."""
    observation, _ = env.reset(seed=seed, options={"draws": draws} if draws else None)
    total, is_over = 0.0, False
    while not is_over:
        observation, gained, terminated, truncated, _ = env.step(choose(gains, observation))
        total += gained
        is_over = terminated or truncated
    return total


def draws_of(seed: int) -> dict[str, Any]:
    """Return a table of draws: what episodes have in common is that of this seed, whatever their own is."""
    return {name: {"seed": seed} for name in NAMES}


def learn(way: str, learner_seed: int, budget: Budget) -> tuple[list[float], list[float]]:
    """Learn once; return what the mean brings in test episodes, before and after each generation, and the mean."""
    random = np.random.default_rng(learner_seed)
    mean, spread = np.zeros(GAINS), np.full(GAINS, 1.0)
    seeds = _seeds_from(1000 * (learner_seed + 1))
    with make() as env:
        brought = [_tested(env, mean)]
        for _ in range(budget.generations):
            candidates = random.normal(mean, spread, (budget.candidates, GAINS))
            draws = draws_of(next(seeds)) if way == COMMON else None
            returns = [play(env, gains, seed=next(seeds), draws=draws) for gains in candidates]
            best = candidates[np.argsort(returns, kind="stable")[-budget.best :]]
            mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
            brought.append(_tested(env, mean))
    return brought, mean.round(3).tolist()


def _seeds_from(first: int) -> Iterator[int]:
    while True:
        yield first
        first += 1


def _tested(env: FederationEnv, gains: Any) -> float:
    return float(np.mean([play(env, gains, seed=seed) for seed in TESTS]))


def _silence() -> None:
    """The plant says in every episode what has become of the pole."""
    sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the worker lives.


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10, help="how many learners of either kind there are")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="a glimpse: few generations of few candidates")
    given = parser.parse_args(arguments)
    budget = QUICK if given.quick else FULL
    tasks = [(way, seed) for way in (ALONE, COMMON) for seed in range(given.seeds)]
    with ProcessPoolExecutor(given.workers, initializer=_silence) as pool:
        learning = {task: pool.submit(learn, *task, budget) for task in tasks}
        results = {task: future.result() for task, future in learning.items()}
    episodes = [generation * budget.candidates for generation in range(budget.generations + 1)]
    curves = []
    for way, color in ((ALONE, "#d9730d"), (COMMON, "#2563c9")):
        low, median, high = np.percentile([results[way, seed][0] for seed in range(given.seeds)], [25, 50, 75], axis=0)
        curves.append(Curve(way, color, episodes, low.tolist(), median.tolist(), high.tolist()))
        print(f"{way}: {' '.join(f'{value:.0f}' for value in median)}")
    path = Path(os.environ.get("WORLDLINE_OUTPUT", ".")) / "balance.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(picture(curves, given.seeds), encoding="utf-8", newline="\n")
    print(f"gains: {', '.join(map(str, results[COMMON, 0][1]))}")
    print(f"the picture is {path}")


if __name__ == "__main__":
    main()
