"""Another small federation for the tests of environments: several agents put weights on a scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces

from tests.learning.heating import idle
from worldline import Federation, Network, Participant, Program, link, payload
from worldline.learning import AgentMoment, AgentTask, ParallelFederationEnv


def scale(me: Participant) -> None:
    """Tells everybody every 5 ms what has come to it in all."""
    total = 0
    while not me.ended:
        me.publish("total", payload.to_msgpack(total))
        for message in me.advance(by="5ms"):
            total += payload.from_msgpack(message.payload, int)


def federation(**changes: Any) -> Federation:
    player = Program(idle, publishes=["weight"], subscribes=["total"])
    programs = {"ann": player, "bob": player, "cid": player, "scale": Program(scale, subscribes=["weight"])}
    network = Network(default=link("uniform(1ms, 12ms)", loss=0.2))
    return Federation(**{"programs": programs, "network": network, "until": "200ms", **changes})


def observe(moment: AgentMoment) -> Any:
    totals = [payload.from_msgpack(message.payload, int) for message in moment.messages]
    before = [0, 0] if moment.before is None else moment.before
    return np.array([totals[-1] if totals else before[0], len(totals)], dtype=np.int64)


def act(me: Participant, action: Any) -> None:
    me.publish("weight", payload.to_msgpack(int(action)))


def done_at(limit: int) -> Callable[[AgentMoment], bool]:
    return lambda moment: bool(moment.observation[0] >= limit)


def task(limit: int, **changes: Any) -> AgentTask:
    return AgentTask(
        **{
            "observe": observe,
            "act": act,
            "reward": lambda moment: float(moment.observation[0]),
            "done": done_at(limit),
            "observation_space": spaces.Box(0, 10**6, (2,), np.int64),
            "action_space": spaces.Discrete(3),
            **changes,
        }
    )


def env(**changes: Any) -> ParallelFederationEnv:
    tasks = {"ann": task(10), "bob": task(10**6), "cid": task(20)}
    given = {"federation": federation(), "tasks": tasks, "step": "10ms", **changes}
    return ParallelFederationEnv(given.pop("federation"), given.pop("tasks"), **given)


def twos(made: ParallelFederationEnv) -> dict[str, int]:
    return dict.fromkeys(made.agents, 2)
