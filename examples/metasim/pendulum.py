"""An inverted pendulum in one process and its controller in another, as two Drake diagrams.

The pendulum is a `MultibodyPlant` with steps of 1 ms. It publishes its state every 5 ms; the controller, a regulator
that was designed for a pendulum without any delay, publishes a torque every 5 ms. Either message takes the time that
`pendulum.toml` gives links. How long may that be? `angle_over_delay.py` finds out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.analysis import Simulator
from pydrake.systems.controllers import LinearQuadraticRegulator
from pydrake.systems.framework import Context, DiagramBuilder
from pydrake.systems.primitives import Linearize, MatrixGain, Saturation, ZeroOrderHold
from signals import publish, subscribe

from worldline import Participant
from worldline.metasim import MetasimClient

STEP = 0.001
PERIOD = 0.005
TORQUE_MAX = 1.5  # In N·m: enough to hold the pendulum at 18°, no more.
ANGLE_FIRST = math.radians(10)

# A kilogram at the end of half a meter, on a motor. Its angle is 0 when it stands upright.
PENDULUM = """
<robot name="pendulum">
  <link name="rod">
    <inertial>
      <origin xyz="0 0 0.5"/>
      <mass value="1"/>
      <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.001"/>
    </inertial>
  </link>
  <joint name="pin" type="continuous">
    <parent link="world"/>
    <child link="rod"/>
    <axis xyz="0 1 0"/>
  </joint>
  <transmission>
    <type>transmission_interface/SimpleTransmission</type>
    <joint name="pin"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
    <actuator name="motor"/>
  </transmission>
</robot>
"""


def make_plant(step: float) -> MultibodyPlant:
    plant = MultibodyPlant(step)
    Parser(plant).AddModelsFromString(PENDULUM, "urdf")
    plant.Finalize()
    return plant


def make_regulator() -> MatrixGain:
    """Design a linear regulator for the pendulum near its upright position."""
    plant = make_plant(0.0)
    context = plant.CreateDefaultContext()
    actuation = plant.get_actuation_input_port()
    actuation.FixValue(context, [0.0])
    linear = Linearize(plant, context, actuation.get_index(), plant.get_state_output_port().get_index())
    gain, _ = LinearQuadraticRegulator(linear.A(), linear.B(), Q=np.diag([10.0, 1.0]), R=np.eye(1))
    return MatrixGain(-gain)


Watch = Callable[[float, float], object]
"""Is told a time in seconds, and the angle at that time in radians."""


def plant(me: Participant) -> None:
    """The pendulum's process."""
    angles: list[tuple[float, float]] = []
    swing(me, lambda time, angle: angles.append((time, angle)))
    fell = fell_at(angles)
    print("it stands" if fell is None else f"it fell at {fell:.2f} s")


def swing(me: Participant, watch: Watch) -> None:
    """Let the pendulum swing, driven by the torque that arrives."""
    client = MetasimClient(me)
    builder = DiagramBuilder()
    pendulum = builder.AddSystem(make_plant(STEP))
    publish(client, builder, "state", pendulum.get_state_output_port(), PERIOD)
    builder.Connect(subscribe(client, builder, "torque", 1), pendulum.get_actuation_input_port())
    simulator = client.complete(builder.Build())
    client.set_monitor(leaning(simulator, pendulum, watch))
    client.run()


def controller(me: Participant) -> None:
    """The controller's process."""
    client = MetasimClient(me)
    builder = DiagramBuilder()
    regulator = builder.AddSystem(make_regulator())
    motor = builder.AddSystem(Saturation([-TORQUE_MAX], [TORQUE_MAX]))
    builder.Connect(subscribe(client, builder, "state", 2), regulator.get_input_port())
    builder.Connect(regulator.get_output_port(), motor.get_input_port())
    publish(client, builder, "torque", motor.get_output_port(), PERIOD)
    client.complete(builder.Build())
    client.run()


def swing_in_one_process(seconds: float, watch: Watch) -> None:
    """The same loop as one diagram of plain Drake, in which nothing takes time."""
    builder = DiagramBuilder()
    pendulum = builder.AddSystem(make_plant(STEP))
    regulator = builder.AddSystem(make_regulator())
    motor = builder.AddSystem(Saturation([-TORQUE_MAX], [TORQUE_MAX]))
    hold = builder.AddSystem(ZeroOrderHold(PERIOD, 1))
    builder.Connect(pendulum.get_state_output_port(), regulator.get_input_port())
    builder.Connect(regulator.get_output_port(), motor.get_input_port())
    builder.Connect(motor.get_output_port(), hold.get_input_port())
    builder.Connect(hold.get_output_port(), pendulum.get_actuation_input_port())
    simulator = Simulator(builder.Build())
    simulator.set_monitor(leaning(simulator, pendulum, watch))
    simulator.AdvanceTo(seconds)


def leaning(simulator: Simulator, pendulum: MultibodyPlant, watch: Watch) -> Callable[[Context], None]:
    """Let the pendulum begin a little off, and return a monitor that says how far it leans."""
    context = pendulum.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    pendulum.SetPositions(context, [ANGLE_FIRST])

    def monitor(root: Context) -> None:
        watch(root.get_time(), pendulum.GetPositions(context)[0])

    return monitor


def fell_at(angles: Iterable[tuple[float, float]]) -> float | None:
    """Return when the pendulum lay level, in seconds; None if it never did."""
    return next((time for time, angle in angles if abs(angle) > math.pi / 2), None)
