"""Which of two controllers is better? Asked with draws of their own in every episode, and with common random numbers.

    python examples/balance/compare.py [--episodes 20]

The second controller is the learned one with gains that are a tenth larger, so the two hardly differ. What an episode
brings varies much more, since messages get lost and a visitor bumps into the cart. With common random numbers by name,
both get the same faults in every pair of episodes, and what is left is the difference between the two.
"""

from __future__ import annotations

import argparse
import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from balance import LEARNED, make
from learn import ALONE, COMMON, draws_of, play

STRONGER = tuple(1.1 * gain for gain in LEARNED)
ELSEWHERE = 1_000_000  # Seeds from here on are used nowhere else.


def differences(episodes: int) -> dict[str, Any]:
    """Return how much more the stronger one brings, in each pair of episodes, either way."""
    with make() as env, Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        learned = np.array([play(env, LEARNED, seed=seed) for seed in range(episodes)])
        alone, common = [], []
        for seed in range(episodes):
            alone.append(play(env, STRONGER, seed=ELSEWHERE + seed))
            common.append(play(env, STRONGER, seed=ELSEWHERE + seed, draws=draws_of(seed)))
    return {ALONE: np.array(alone) - learned, COMMON: np.array(common) - learned}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=20, help="how many pairs of episodes are played")
    episodes = parser.parse_args(arguments).episodes
    if episodes < 2:
        parser.error("it takes two episodes at least to see how much they vary")
    found = differences(episodes)
    for way, more in found.items():
        error = more.std(ddof=1) / np.sqrt(episodes)
        print(f"{way}: the stronger one brings {more.mean():+.2f} ± {error:.2f} in {episodes} episodes")
    ratio = found[ALONE].var() / found[COMMON].var()
    print(f"with draws of its own, it takes {ratio:.0f} times as many episodes to know it as well")


if __name__ == "__main__":
    main()
