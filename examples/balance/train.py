"""Lets a learner of stable-baselines3 balance the pole: the environment is Gymnasium's, so any learner will do.

    pip install stable-baselines3
    python examples/balance/train.py [--steps 40000] [--seed 0]

PPO, as it comes. The run prints what four episodes bring that it hasn't seen, before and after: the same each time, as
the episodes' seeds are, and the learner's.
"""

from __future__ import annotations

import argparse
import sys

from balance import make
from learn import TESTS

from worldline.learning import FederationEnv

try:
    import torch
    from stable_baselines3 import PPO
except ImportError:
    sys.exit("this needs stable-baselines3: pip install stable-baselines3")


def tested(learner: PPO, env: FederationEnv) -> float:
    """Return what episodes bring on average that nothing is learned from."""
    total = 0.0
    for seed in TESTS:
        observation, _ = env.reset(seed=seed)
        is_over = False
        while not is_over:
            action, _ = learner.predict(observation, deterministic=True)
            observation, gained, terminated, truncated, _ = env.step(action)
            total += float(gained)
            is_over = terminated or truncated
    return total / len(TESTS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)  # Faster for so small a network, and sums always have the same order.
    with make() as env, make() as tests:
        learner = PPO("MlpPolicy", env, n_steps=1024, seed=given.seed, device="cpu")
        print(f"before: {tested(learner, tests):.1f} of 500")
        learner.learn(given.steps)
        print(f"after {given.steps:,} steps: {tested(learner, tests):.1f} of 500")


if __name__ == "__main__":
    main()
