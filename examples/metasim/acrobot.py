"""An acrobot, an estimator and a controller: three Drake diagrams in three processes.

The acrobot is a double pendulum with a motor at its elbow alone. Its encoders tell its angles and not its speeds, and
no finer than 0.1°; from them and from the torques the estimator works out the whole state, and from that the controller
works out the torque. All of them know the acrobot near its upright position.
"""

from __future__ import annotations

import math

import numpy as np
from pydrake.examples import AcrobotPlant
from pydrake.systems.controllers import LinearQuadraticRegulator
from pydrake.systems.estimators import SteadyStateKalmanFilter
from pydrake.systems.framework import BasicVector, Context, DiagramBuilder, LeafSystem
from pydrake.systems.primitives import Linearize, LinearSystem, MatrixGain, Multiplexer
from signals import publish, subscribe

from worldline import Participant
from worldline.metasim import MetasimClient

PERIOD = 0.005
UPRIGHT = np.array([math.pi, 0.0, 0.0, 0.0])  # Angles and speeds of shoulder and elbow.
FIRST = UPRIGHT + np.radians([2.0, -1.0, 0.0, 0.0])
NOTCH = math.radians(0.1)


class Encoders(LeafSystem):
    """Tell how far the angles are from upright, in whole notches."""

    def __init__(self) -> None:
        super().__init__()
        self.DeclareVectorInputPort("state", 4)
        self.DeclareVectorOutputPort("angles", 2, self._measure)

    def _measure(self, context: Context, output: BasicVector) -> None:
        angles = (self.EvalVectorInput(context, 0).value() - UPRIGHT)[:2]
        output.SetFromVector(np.round(angles / NOTCH) * NOTCH)


def linear_acrobot() -> LinearSystem:
    """Return what the acrobot is near its upright position."""
    plant = AcrobotPlant()
    context = plant.CreateDefaultContext()
    plant.get_input_port().FixValue(context, [0.0])
    context.SetContinuousState(UPRIGHT)
    return Linearize(plant, context)


def plant(me: Participant) -> None:
    """The acrobot's process: its diagram has continuous state, and a solver that adapts its steps."""
    client = MetasimClient(me)
    builder = DiagramBuilder()
    acrobot = builder.AddSystem(AcrobotPlant())
    encoders = builder.AddSystem(Encoders())
    builder.Connect(acrobot.get_output_port(), encoders.get_input_port())
    publish(client, builder, "angles", encoders.get_output_port(), PERIOD)
    builder.Connect(subscribe(client, builder, "torque", 1), acrobot.get_input_port())
    simulator = client.complete(builder.Build())
    state = acrobot.GetMyMutableContextFromRoot(simulator.get_mutable_context()).get_mutable_continuous_state_vector()
    state.SetFromVector(FIRST)
    client.run()
    shoulder, elbow = np.degrees(state.CopyToVector() - UPRIGHT)[:2]
    print(f"{shoulder:+.1f}° at the shoulder, {elbow:+.1f}° at the elbow")


def estimator(me: Participant) -> None:
    """The estimator's process: a Kalman filter in discrete steps."""
    model = linear_acrobot()
    measured = np.eye(2, 4)  # The angles, of the whole state.
    gain = SteadyStateKalmanFilter(model.A(), measured, np.diag([0.01, 0.01, 1.0, 1.0]), 1e-6 * np.eye(2))
    change = model.A() - gain @ measured
    kalman = LinearSystem(
        np.eye(4) + PERIOD * change, PERIOD * np.hstack([model.B(), gain]), np.eye(4), np.zeros((4, 3)), PERIOD
    )
    client = MetasimClient(me)
    builder = DiagramBuilder()
    builder.AddSystem(kalman)
    known = builder.AddSystem(Multiplexer([1, 2]))
    builder.Connect(subscribe(client, builder, "torque", 1), known.get_input_port(0))
    builder.Connect(subscribe(client, builder, "angles", 2), known.get_input_port(1))
    builder.Connect(known.get_output_port(), kalman.get_input_port())
    publish(client, builder, "estimate", kalman.get_output_port(), PERIOD)
    client.complete(builder.Build())
    client.run()


def controller(me: Participant) -> None:
    """The controller's process."""
    model = linear_acrobot()
    gain, _ = LinearQuadraticRegulator(model.A(), model.B(), Q=np.diag([10.0, 10.0, 1.0, 1.0]), R=np.eye(1))
    client = MetasimClient(me)
    builder = DiagramBuilder()
    regulator = builder.AddSystem(MatrixGain(-gain))
    builder.Connect(subscribe(client, builder, "estimate", 4), regulator.get_input_port())
    publish(client, builder, "torque", regulator.get_output_port(), PERIOD)
    client.complete(builder.Build())
    client.run()
