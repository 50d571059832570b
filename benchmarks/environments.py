"""What environments of a learner cost, compared with the federation that they run.

The federation is the control loop without its plotter, for 100 simulated seconds, which are 5,000 steps of 20 ms. On
its own, its controller is a program. In the environment the same controller is outside: it is given observations, and
its actions go through `step`. Compared is the processor time of a step, the median of several runs in turn; at least
60 % of the federation's own speed is the goal. With threads in place of greenlets each step takes several changes of
threads; that is shown, too.

A vector of environments on two workers is compared with the same environments one after another in one process, by the
wall clock: at least 1.7 times as fast is the goal, on two cores that have nothing else to do.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from msgspec.structs import replace as replace_fields
from rich.console import Console
from rich.table import Table

from worldline import Federation, Participant, Program, payload, run
from worldline.federation.inprocess.strand import THREADS
from worldline.launch.file.setup import read_setup
from worldline.launch.launcher import federation_of
from worldline.learning import AgentMoment, FederationEnv, FederationVectorEnv

FILE = Path(__file__).resolve().parent.parent / "examples" / "control_loop" / "control_loop.toml"
STEP_MS = 20
STEPS_OF_VECTOR = 50
GAINS = (6.1, 6.6, 43.0, 9.8)
ENV_GOAL, VECTOR_GOAL = 0.6, 1.7


def control_loop(seconds: int) -> Federation:
    """Return the federation of the example, without its plotter and its outage."""
    whole = federation_of(read_setup(FILE, changes=[f"until={seconds}s", "faults=[]"]))
    programs = {name: program for name, program in whole.programs.items() if name != "plotter"}
    rules = tuple(rule for rule in whole.network.rules if rule.receiver != "plotter")
    return replace(whole, programs=programs, network=replace_fields(whole.network, rules=rules))


def controller_in_steps(me: Participant) -> None:
    """Do what the agent of the environment does, as an ordinary program."""
    seen = (0, 0.0, 0.0, 0.0, 0.0)
    while not me.ended:
        me.publish("command", command(me.now, push_for(seen[1:])))
        for message in me.advance(by=STEP_MS * 1_000_000):
            seen = newer(seen, message.payload)


def newer(seen: Any, said: bytes) -> Any:
    state = payload.from_msgpack(said)
    if state["number"] < seen[0]:
        return seen
    return state["number"], state["place"], state["speed"], state["angle"], state["turning"]


def push_for(errors: Any) -> float:
    push = 0.0
    for gain, error in zip(GAINS, errors, strict=True):
        push += gain * error
    return max(-10.0, min(10.0, push))


def command(now: int, push: float) -> bytes:
    return payload.to_msgpack({"number": now // 1_000_000, "target": 0.0, "push": round(push, 6)})


def observe(moment: AgentMoment) -> Any:
    seen = moment.memory.get("seen", (0, 0.0, 0.0, 0.0, 0.0))
    for message in moment.messages:
        seen = newer(seen, message.payload)
    moment.memory["seen"] = seen
    return np.array(seen[1:])


def act(me: Participant, action: Any) -> None:
    me.publish("command", command(me.now, float(action[0])))


def reward(moment: AgentMoment) -> float:
    return 1.0 - abs(float(moment.observation[2]))


def make(seconds: int) -> FederationEnv:
    return FederationEnv(
        control_loop(seconds),
        "controller",
        observe=observe,
        act=act,
        reward=reward,
        step=f"{STEP_MS}ms",
        observation_space=spaces.Box(-1e3, 1e3, (4,), np.float64),
        action_space=spaces.Box(-10.0, 10.0, (1,), np.float64),
    )


def own_speed(seconds: int, program: Callable[[Participant], object] | None) -> float:
    """Return the federation's own steps per second of processor time."""
    federation = control_loop(seconds)
    if program is not None:
        changed: Program = replace(federation.programs["controller"], run=program)
        federation = replace(federation, programs={**federation.programs, "controller": changed})
    begun = time.process_time()
    run(federation)
    return seconds * 1000 / STEP_MS / (time.process_time() - begun)


def env_speed(seconds: int) -> float:
    """Return the environment's steps per second of processor time."""
    with make(seconds) as env:
        begun = time.process_time()
        observation, _ = env.reset(seed=5)
        truncated, steps = False, 0
        while not truncated:
            observation, _, _, truncated, _ = env.step(np.array([push_for(observation.tolist())]))
            steps += 1
        return steps / (time.process_time() - begun)


def with_threads(measured: Callable[[], float]) -> float:
    os.environ[THREADS] = "1"
    try:
        return measured()
    finally:
        del os.environ[THREADS]


def vector_speed(envs: Any) -> float:
    """Return the steps per second, by the wall clock, of all environments of a vector."""
    envs.reset(seed=1)
    actions = np.zeros((envs.num_envs, 1))
    envs.step(actions)
    begun = time.perf_counter()
    for _ in range(STEPS_OF_VECTOR):
        envs.step(actions)
    return STEPS_OF_VECTOR * envs.num_envs / (time.perf_counter() - begun)


def learners_environments(console: Console, repeats: int, seconds: int) -> None:
    """Compare an environment with its federation's own speed."""
    ways: dict[str, Callable[[], float]] = {
        "the federation, its controller waiting for messages": partial(own_speed, seconds, None),
        "the federation, its controller in steps of 20 ms": partial(own_speed, seconds, controller_in_steps),
        "the environment": partial(env_speed, seconds),
        "the environment, on threads": partial(with_threads, partial(env_speed, seconds)),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            with redirect_stdout(StringIO()):
                found[name].append(way())
    table = Table("", "steps/s", "of the federation's own", title="the control loop, in one process")
    own = statistics.median(next(iter(found.values())))
    for name, speeds in found.items():
        median = statistics.median(speeds)
        goal = f" (goal: {ENV_GOAL:.0%})" if name == "the environment" else ""
        table.add_row(name, f"{median:,.0f}", f"{median / own:.0%}{goal}")
    console.print(table)


def vectors(console: Console, repeats: int, count: int) -> None:
    """Compare a vector on two workers with one process."""
    found: dict[str, list[float]] = {"one process": [], "two workers": []}
    made = partial(make, 60)
    with redirect_stdout(StringIO()):
        alone, shared = SyncVectorEnv([made] * count), FederationVectorEnv(made, count, workers=2)
    try:
        for _ in range(repeats):
            found["one process"].append(vector_speed(alone))
            found["two workers"].append(vector_speed(shared))
    finally:
        alone.close()
        shared.close()
    table = Table("", "steps/s", "", title=f"{count} environments at once")
    base = statistics.median(found["one process"])
    for name, speeds in found.items():
        median = statistics.median(speeds)
        table.add_row(
            name, f"{median:,.0f}", f"{median / base:.2f} × (goal: {VECTOR_GOAL} ×)" if median != base else ""
        )
    console.print(table)
