"""A small federation for the tests of environments: a room, and a heater whose power the agent chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from worldline import Federation, Network, Participant, Program, link, payload
from worldline.learning import AgentMoment, FederationEnv

FORMS: dict[str, Any] = {
    "observation_space": spaces.Box(-100.0, 100.0, (2,), np.float64),
    "action_space": spaces.Box(-1.0, 1.0, (1,), np.float64),
}


def room(me: Participant) -> None:
    """Measures itself every 20 ms, and takes the power that has come last."""
    noise = me.stream("noise")
    degrees, power = 15.0, 0.0
    while not me.ended:
        me.publish("degrees", payload.to_msgpack(round(degrees + noise.uniform(-0.1, 0.1), 6)))
        for message in me.advance(by="20ms"):
            power = payload.from_msgpack(message.payload, float)
        degrees += 0.1 * (10.0 * power - 0.05 * (degrees - 15.0))


def idle(me: Participant) -> None:
    """What the heater does where nobody plays it."""
    for _ in me.messages():
        pass


def federation(**changes: Any) -> Federation:
    return Federation(
        **{
            "programs": {
                "room": Program(room, publishes=["degrees"], subscribes=["power"], period="20ms"),
                "heater": Program(idle, publishes=["power"], subscribes=["degrees"]),
            },
            "network": Network(default=link("uniform(2ms, 30ms)", loss=0.1)),
            "until": "1s",
            **changes,
        }
    )


def observe(moment: AgentMoment) -> Any:
    """The last measurement, and how many came in the step."""
    degrees = 15.0 if moment.before is None else moment.before[0]
    for message in moment.messages:
        degrees = payload.from_msgpack(message.payload, float)
    return np.array([degrees, len(moment.messages)])


def act(me: Participant, action: Any) -> None:
    me.publish("power", payload.to_msgpack(float(action[0])))


def doubled(me: Participant, action: Any) -> None:
    """An `act` that changes the action that it is given."""
    action *= 2.0
    act(me, action)


def reward(moment: AgentMoment) -> float:
    return -abs(moment.observation[0] - 20.0)


def too_hot(moment: AgentMoment) -> bool:
    return bool(moment.observation[0] > 25.0)


def env(source: Any = None, **changes: Any) -> FederationEnv:
    functions = {"observe": observe, "act": act, "reward": reward, "done": too_hot, "step": "20ms"}
    return FederationEnv(source or federation(), "heater", **{**functions, **FORMS, **changes})


def warming(observation: Any) -> Any:
    """A policy."""
    return np.array([1.0 if observation[0] < 20.0 else -0.2])
