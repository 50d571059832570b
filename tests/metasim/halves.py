"""Halves of simulations: diagrams with one input and one output, to be joined by messages, or by hand, or by wires."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from drake import lcmt_drake_signal
from pydrake.common.value import AbstractValue
from pydrake.examples import PendulumPlant
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import RevoluteJoint, SpatialInertia, UnitInertia
from pydrake.systems.framework import Context, Diagram, DiagramBuilder, InputPort, LeafSystem, OutputPort, System
from pydrake.systems.lcm import LcmPublisherSystem, LcmSubscriberSystem
from pydrake.systems.primitives import LinearSystem

from worldline.metasim import MetasimClient
from worldline.model import Network, link
from worldline.model.links import Rule

State = tuple[float, tuple[float, ...]]
"""A time in seconds and the state at it."""


@dataclass(frozen=True)
class Half:
    """One system, how often its output is published, and how often it makes a step, if it is discrete."""

    make: Callable[[DiagramBuilder], tuple[System, InputPort, OutputPort]]
    start: tuple[float, ...]
    period: float
    step: float | None = None


def discrete(step: float = 0.01, period: float = 0.01, turn: float = 0.1) -> Half:
    """Return a vector that turns and shrinks."""

    def make(builder: DiagramBuilder) -> tuple[System, InputPort, OutputPort]:
        a = np.array([[0.9, turn], [-turn, 0.9]])
        system = builder.AddSystem(LinearSystem(a, np.eye(2) * 0.1, np.eye(2), np.zeros((2, 2)), step))
        return system, system.get_input_port(), system.get_output_port()

    return Half(make, (1.0, 2.0), period, step)


def continuous(period: float = 0.01) -> Half:
    """Return a pendulum that an error-controlled integrator moves: each stop shows in its last digits."""

    def make(builder: DiagramBuilder) -> tuple[System, InputPort, OutputPort]:
        system = builder.AddSystem(PendulumPlant())
        return system, system.get_input_port(), system.get_output_port()

    return Half(make, (0.5, 0.0), period)


def multibody(period: float = 0.01, step: float = 0.001, *, sampled: bool = True) -> Half:
    """Return a pendulum of rigid bodies; `sampled`, as by default, its output is that of its last step."""

    def make(builder: DiagramBuilder) -> tuple[System, InputPort, OutputPort]:
        plant = builder.AddSystem(MultibodyPlant(step))
        plant.SetUseSampledOutputPorts(sampled)
        rod = plant.AddRigidBody("rod", SpatialInertia(1.0, [0.0, 0.0, -0.5], UnitInertia(0.3, 0.3, 0.01)))
        joint = plant.AddJoint(RevoluteJoint("pivot", plant.world_frame(), rod.body_frame(), [0.0, 1.0, 0.0], 0.1))
        plant.AddJointActuator("motor", joint)
        plant.Finalize()
        return plant, plant.get_actuation_input_port(), plant.get_state_output_port()

    return Half(make, (0.5, 0.0), period, step)


def controller(period: float = 0.01) -> Half:
    """Return a filter of an angle and its speed that says a torque."""

    def make(builder: DiagramBuilder) -> tuple[System, InputPort, OutputPort]:
        a, b, c = np.array([[0.6]]), np.array([[-0.7, -0.3]]), np.array([[1.0]])
        system = builder.AddSystem(LinearSystem(a, b, c, np.zeros((1, 2)), 0.01))
        return system, system.get_input_port(), system.get_output_port()

    return Half(make, (0.0,), period, 0.01)


def state_of(context: Context) -> tuple[float, ...]:
    moving = context.get_continuous_state_vector().CopyToVector()
    groups = [context.get_discrete_state(group).value() for group in range(context.num_discrete_state_groups())]
    return tuple(float(value) for part in (moving, *groups) for value in part)


def set_start(half: Half, context: Context) -> None:
    if context.num_continuous_states():
        context.SetContinuousState(np.array(half.start))
    else:
        context.SetDiscreteState(np.array(half.start))


# --- Vectors as messages ---


class ToSignal(LeafSystem):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.DeclareVectorInputPort("vector", size)
        this = weakref.proxy(self)  # Drake never lets go of a system that it is to call back.
        self.DeclareAbstractOutputPort(
            "message", lambda: AbstractValue.Make(lcmt_drake_signal()), lambda *given: this._calculate(*given)
        )

    def _calculate(self, context: Context, output: AbstractValue) -> None:
        values = self.EvalVectorInput(context, 0).value()
        message = lcmt_drake_signal()
        message.dim, message.val, message.coord = len(values), list(values), [""] * len(values)
        output.set_value(message)


class FromSignal(LeafSystem):
    """Zeros, until the first message is there."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self.DeclareAbstractInputPort("message", AbstractValue.Make(lcmt_drake_signal()))
        this = weakref.proxy(self)
        self.DeclareVectorOutputPort("vector", size, lambda *given: this._calculate(*given))

    def _calculate(self, context: Context, output: Any) -> None:
        message = self.EvalAbstractInput(context, 0).get_value()
        output.SetFromVector(np.array(message.val) if message.dim else np.zeros(self._size))


Transport = Callable[[DiagramBuilder], tuple[LcmPublisherSystem, LcmSubscriberSystem]]


def assemble(half: Half, transport: Transport, *, nested: bool = False) -> tuple[Diagram, System]:
    """Build a half's diagram, with publisher and subscriber; `nested` puts all of it into another one."""
    builder = DiagramBuilder()
    system, taken, given = half.make(builder)
    encode, decode = builder.AddSystem(ToSignal(given.size())), builder.AddSystem(FromSignal(taken.size()))
    publisher, subscriber = transport(builder)
    builder.Connect(given, encode.get_input_port())
    builder.Connect(encode.get_output_port(), publisher.get_input_port())
    builder.Connect(subscriber.get_output_port(), decode.get_input_port())
    builder.Connect(decode.get_output_port(), taken)
    diagram = builder.Build()
    if nested:
        outer = DiagramBuilder()
        outer.AddSystem(diagram)
        diagram = outer.Build()
    return diagram, system


WAYS = ("known", "every step", "own", "own, known")
"""How a half publishes: with the client's systems or with its own on `client.lcm`, its period known or not."""


def take_part(
    client: MetasimClient,
    half: Half,
    publishes: str,
    subscribes: str,
    *,
    way: str = "known",
    nested: bool = False,
    dawdle: Callable[[], object] = lambda: None,
) -> list[State]:
    """Take part in a run with a half, and return its states after each step."""

    def transport(builder: DiagramBuilder) -> tuple[LcmPublisherSystem, LcmSubscriberSystem]:
        if way.startswith("own"):
            return (
                builder.AddSystem(
                    LcmPublisherSystem.Make(publishes, lcmt_drake_signal, client.lcm, publish_period=half.period)
                ),
                builder.AddSystem(LcmSubscriberSystem.Make(subscribes, lcmt_drake_signal, client.lcm)),
            )
        period = half.period if way == "known" else None
        return (
            client.add_publisher(builder, publishes, lcmt_drake_signal, period),
            client.add_subscriber(builder, subscribes, lcmt_drake_signal),
        )

    diagram, system = assemble(half, transport, nested=nested)
    simulator = client.complete(diagram, period=half.period if way == "own, known" else None)
    set_start(half, system.GetMyMutableContextFromRoot(simulator.get_mutable_context()))
    states: list[State] = []

    def note(context: Context) -> None:
        dawdle()
        states.append((context.get_time(), state_of(system.GetMyContextFromRoot(context))))

    client.set_monitor(note)
    client.run()
    return states


CHANNELS = {"plant": ("STATE", "COMMAND"), "controller": ("COMMAND", "STATE")}
"""What each publishes, and what it subscribes to."""


@dataclass(frozen=True)
class Pair:
    """Two halves and the network between them."""

    plant: Half
    controller: Half
    forth: str = "10ms"  # From the plant to the controller.
    back: str = "10ms"

    def half(self, name: str) -> Half:
        return self.plant if name == "plant" else self.controller

    def network(self, **quality: Any) -> Network:
        back = Rule(link=link(self.back, **quality), sender="controller", receiver="plant")
        return Network(default=link(self.forth, **quality), rules=(back,))
