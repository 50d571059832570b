"""The pole of `control_loop` as an environment, and the controller that was learned there.

The agent hears of the pole only over a bad link, as the cart does of the agent. It observes the newest measurement that
has come and its own last push, and pushes once in 20 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from worldline import MS, Participant, payload
from worldline.learning import AgentMoment, AgentTask, play

if TYPE_CHECKING:
    from worldline.learning import FederationEnv

FILE = Path(__file__).with_name("balance.toml")
PUSH_MAX = 10.0  # m/s², as in the control loop.
SCALES = np.array([1.0, 1.0, 0.2, 1.0])  # What is much: of place (m), speed, angle (rad) and turning.
FALLEN = 0.5  # rad
BUMP_MAX = 6.0  # m/s²


def observe(moment: AgentMoment) -> Any:
    """The newest measurement that has come, and the last push, which it may not show yet."""
    newest = moment.memory.get("newest", -1)
    seen = np.zeros(5) if moment.before is None else moment.before.copy()
    for message in moment.messages:
        state = payload.from_msgpack(message.payload)
        if state["number"] > newest:  # Else it was overtaken on the way.
            newest = moment.memory["newest"] = state["number"]
            seen[:4] = (state["place"], state["speed"], state["angle"], state["turning"])
            seen[:4] /= SCALES
    if moment.action is not None:
        seen[4] = moment.action[0]
    return seen


def act(me: Participant, action: Any) -> None:
    """Push the cart, until the next command has come."""
    command(me, PUSH_MAX * float(action[0]))


def command(me: Participant, push: float) -> None:
    """Send a command; of those that come, the plant takes the one of the highest number, so of the latest time."""
    me.publish("command", payload.to_msgpack({"number": me.now // MS, "target": 0.0, "push": round(push, 6)}))


def visitor(me: Participant) -> None:
    """Push the cart now and then, without an eye for the pole."""
    while not me.ended:
        me.advance(by=int(me.random.uniform(200 * MS, 1200 * MS)))
        command(me, me.random.uniform(-BUMP_MAX, BUMP_MAX))


def reward(moment: AgentMoment) -> float:
    """1 for a pole that is upright over the middle; 500 steps make an episode."""
    place, _, angle, _, _ = np.abs(moment.observation)
    return float(max(0.0, 1.0 - 0.5 * min(1.0, place) - 0.5 * min(1.0, angle)))


def has_fallen(moment: AgentMoment) -> bool:
    return bool(abs(moment.observation[2]) * SCALES[2] > FALLEN)


TASK = AgentTask(observe=observe, act=act, reward=reward, done=has_fallen)


def choose(gains: Sequence[float], observation: Any) -> Any:
    """Return the action of a linear controller."""
    push = 0.0
    for gain, value in zip(gains, observation.tolist(), strict=True):  # Not `@`: it may round otherwise.
        push += gain * value
    return np.array([max(-1.0, min(1.0, push))])


LEARNED = (0.305, 0.486, 0.588, 1.064, -0.202)  # What `learn.py` prints: common random numbers, its first seed.
controller = play(TASK, lambda observation: choose(LEARNED, observation), step="20ms", until="10s")


def make() -> FederationEnv:
    """Make the environment, in which a learner plays the controller."""
    from gymnasium import spaces

    from worldline.learning import FederationEnv

    return FederationEnv(
        FILE,
        "controller",
        observe=observe,
        act=act,
        reward=reward,
        done=has_fallen,
        observation_space=spaces.Box(-1e3, 1e3, (5,), np.float64),
        action_space=spaces.Box(-1.0, 1.0, (1,), np.float64),
        step="20ms",
    )
