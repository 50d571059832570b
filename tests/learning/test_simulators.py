"""Simulators and worlds are participants like any other: a learner's agent meets them in an environment."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from tests.leaks.running import EXAMPLES
from worldline import Federation, Network, Participant, Program, link, payload
from worldline.learning import AgentMoment, FederationEnv, ParallelFederationEnv
from worldline.metasim.driving import drive
from worldline.model import TIME_MAX
from worldline.model.message import Message


def idle(me: Participant) -> None:
    for _ in me.messages():
        pass


BEAT: Any = {"step": "50ms", "start": "100ms"}


def federation(simulator: Program) -> Federation:
    """Return one in which a simulator says `seen`, and the agent `done`."""
    agent = Program(idle, publishes=["done"], subscribes=["seen"])
    return Federation(
        {"agent": agent, "simulator": simulator}, network=Network(default=link("uniform(1ms, 9ms)")), until="1s"
    )


def env(simulator: Program, **changes: Any) -> FederationEnv:
    return FederationEnv(
        federation(simulator),
        "agent",
        **{
            "act": lambda me, action: me.publish("done", payload.to_msgpack(float(action[0]))),
            "reward": lambda moment: float(moment.observation[0]),
            **BEAT,
            "observation_space": spaces.Box(-1e6, 1e6, (1,), np.float64),
            "action_space": spaces.Box(-1.0, 1.0, (1,), np.float64),
            **changes,
        },
    )


def told(moment: AgentMoment) -> Any:
    values = [payload.from_msgpack(message.payload, float) for message in moment.messages]
    return np.array([values[-1]]) if values else moment.before.copy()


def checked(simulator: Program, action: float, **changes: Any) -> list[float]:
    """Have Gymnasium and PettingZoo check it; return what one episode shows, which must be the same each time."""
    made = env(simulator, **changes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the option 'options'")  # PettingZoo gives one.
        check_env(made, skip_render_check=True)
        parallel_api_test(ParallelFederationEnv(federation(simulator), {"agent": made.task}, **BEAT), num_cycles=30)
    episodes = []
    for _ in range(2):
        observation, _ = made.reset(seed=4)
        seen, truncated = [float(observation[0])], False
        while not truncated:
            observation, _, _, truncated, _ = made.step(np.array([action]))
            seen.append(float(observation[0]))
        assert made.outcome is not None
        episodes.append((seen, made.outcome.digest))
    assert episodes[0] == episodes[1]
    return episodes[0][0]


class Integrator:
    """A simulator in steps of 10 ms that adds up what it is told."""

    def __init__(self) -> None:
        self.total, self.slope, self.due_at = 0.0, 0.0, 0

    def begin(self, now: int, send: Any) -> None:
        self.send = send
        self.advance_to(now)

    def due(self) -> int:
        return self.due_at if self.due_at < 10**10 else TIME_MAX

    def advance_to(self, time: int) -> None:
        if time == self.due_at:
            self.total += self.slope
            self.send("seen", payload.to_msgpack(self.total), time)
            self.due_at += 10_000_000

    def receive(self, messages: list[Message]) -> None:
        self.slope = payload.from_msgpack(messages[-1].payload, float)


def test_a_simulator_that_is_driven() -> None:
    simulator = Program(lambda me: drive(me, Integrator()), publishes=["seen"], subscribes=["done"])
    seen = checked(simulator, 0.5, observe=told)
    assert seen[-1] > seen[0] + 20


def test_a_drake_diagram() -> None:
    """The plant is a metasim client: an integrator of Drake's, which publishes every 10 ms."""
    pytest.importorskip("pydrake", reason="Drake isn't installed; it needs Python 3.12 or newer")
    from drake import lcmt_drake_signal
    from pydrake.common.value import Value
    from pydrake.systems.framework import DiagramBuilder, LeafSystem
    from pydrake.systems.primitives import Integrator as DrakeIntegrator

    from worldline.metasim import MetasimClient

    def signal(value: float) -> Any:
        made = lcmt_drake_signal()
        made.dim, made.val, made.coord = 1, [value], [""]
        return made

    class Reading(LeafSystem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.DeclareAbstractInputPort("message", Value(lcmt_drake_signal()))
            self.DeclareVectorOutputPort("value", 1, self.read)

        def read(self, context: Any, output: Any) -> None:
            message = self.get_input_port().Eval(context)
            output.SetAtIndex(0, message.val[0] if message.dim else 0.0)

    class Writing(LeafSystem):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.DeclareVectorInputPort("value", 1)
            self.DeclareAbstractOutputPort("message", lambda: Value(lcmt_drake_signal()), self.write)

        def write(self, context: Any, output: Any) -> None:
            output.set_value(signal(float(self.get_input_port().Eval(context)[0])))

    def plant(me: Participant) -> None:
        client = MetasimClient(me)
        builder = DiagramBuilder()
        reading, integrator, writing = map(builder.AddSystem, (Reading(), DrakeIntegrator(1), Writing()))
        subscriber = client.add_subscriber(builder, "done", lcmt_drake_signal)
        publisher = client.add_publisher(builder, "seen", lcmt_drake_signal, period=0.01)
        builder.Connect(subscriber.get_output_port(), reading.get_input_port())
        builder.Connect(reading.get_output_port(), integrator.get_input_port())
        builder.Connect(integrator.get_output_port(), writing.get_input_port())
        builder.Connect(writing.get_output_port(), publisher.get_input_port())
        client.complete(builder.Build())
        client.run()

    def observe(moment: AgentMoment) -> Any:
        values = [lcmt_drake_signal.decode(message.payload).val[0] for message in moment.messages]
        return np.array([values[-1]]) if values else moment.before.copy()

    seen = checked(
        Program(plant, publishes=["seen"], subscribes=["done"]),
        1.0,
        observe=observe,
        act=lambda me, action: me.publish("done", signal(float(action[0])).encode()),
    )
    assert seen[-1] == pytest.approx(0.88, abs=0.03)


@pytest.mark.long
def test_a_world() -> None:
    """A vehicle in a world of levels, whose speed the agent chooses."""
    from worldline.world.run import World

    def warehouse(me: Participant) -> None:
        world = World(EXAMPLES / "world" / "levels.sdf", engine="kinematic")
        while not me.ended:
            me.publish("seen", payload.to_msgpack(world.positions["vehicle_red"][0]))
            for message in me.advance(by="50ms"):
                world.command("vehicle_red", linear=(payload.from_msgpack(message.payload, float), 0.0, 0.0))
            world.run_to(me.now)

    simulator = Program(warehouse, publishes=["seen"], subscribes=["done"], period="50ms")
    forward, back = checked(simulator, 1.0, observe=told), checked(simulator, -1.0, observe=told)
    assert forward[0] == back[0]
    assert abs(forward[-1] - back[-1]) > 1.0
