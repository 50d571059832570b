"""A controller in Drake for the arm in MuJoCo: it computes the torques from its own model of the arm."""

from __future__ import annotations

import numpy as np
from arm_mujoco import MODEL
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.controllers import InverseDynamicsController
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.primitives import TrajectorySource
from pydrake.trajectories import PiecewisePolynomial
from signals import publish, subscribe

from worldline import Participant
from worldline.metasim import MetasimClient

PERIOD = 0.004
# Shoulder and elbow, in degrees: hang, reach out, reach up.
SECONDS = [0.0, 0.5, 1.0]
POSES = np.radians([[0.0, 0.0], [-60.0, -60.0], [-120.0, -30.0]])


def controller(me: Participant) -> None:
    """The controller's process."""
    client = MetasimClient(me)
    builder = DiagramBuilder()
    model = MultibodyPlant(0.0)
    Parser(model).AddModels(str(MODEL))
    model.Finalize()
    inverse = builder.AddSystem(
        InverseDynamicsController(model, kp=[400, 400], ki=[0, 0], kd=[40, 40], has_reference_acceleration=False)
    )
    way = PiecewisePolynomial.CubicShapePreserving(SECONDS, POSES.T, zero_end_point_derivatives=True)
    desired = builder.AddSystem(TrajectorySource(way, output_derivative_order=1))
    builder.Connect(subscribe(client, builder, "arm", 4), inverse.get_input_port_estimated_state())
    builder.Connect(desired.get_output_port(), inverse.get_input_port_desired_state())
    publish(client, builder, "torques", inverse.get_output_port_control(), PERIOD)
    client.complete(builder.Build())
    client.run()
