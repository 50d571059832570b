"""The diagrams of tanks.toml: each tank tells the other its level, and nears the level that it hears of."""

from __future__ import annotations

from typing import Any

import numpy as np
from drake import lcmt_drake_signal
from pydrake.common.value import AbstractValue
from pydrake.systems.framework import DiagramBuilder, LeafSystem

from worldline import Participant
from worldline.metasim import MetasimClient

LEVELS = {"left": 3.0, "right": 1.0}
OTHER = {"left": "right", "right": "left"}
STEP = 0.01


class Tank(LeafSystem):
    """A level, which changes in steps."""

    def __init__(self, level: float) -> None:
        super().__init__()
        self.DeclareDiscreteState(np.array([level]))
        self.DeclareAbstractInputPort("other", AbstractValue.Make(lcmt_drake_signal()))
        self.DeclareAbstractOutputPort("level", lambda: AbstractValue.Make(lcmt_drake_signal()), self.tell)
        self.DeclarePeriodicDiscreteUpdateEvent(STEP, 0.0, self.flow)

    def tell(self, context: Any, output: Any) -> None:
        message = lcmt_drake_signal()
        message.dim, message.coord, message.val = 1, ["level"], list(context.get_discrete_state_vector().value())
        output.set_value(message)

    def flow(self, context: Any, state: Any) -> None:
        level = context.get_discrete_state_vector()[0]
        heard: Any = self.get_input_port().Eval(context)
        state.set_value([level + 0.1 * (heard.val[0] - level) if heard.dim else level])


def tank(me: Participant) -> None:
    client = MetasimClient(me)
    builder = DiagramBuilder()
    system = builder.AddSystem(Tank(LEVELS[me.name]))
    publisher = client.add_publisher(builder, me.name.upper(), lcmt_drake_signal, period=STEP)
    subscriber = client.add_subscriber(builder, OTHER[me.name].upper(), lcmt_drake_signal)
    builder.Connect(system.get_output_port(), publisher.get_input_port())
    builder.Connect(subscriber.get_output_port(), system.get_input_port())
    simulator = client.complete(builder.Build())
    client.run()
    level = system.GetMyContextFromRoot(simulator.get_context()).get_discrete_state_vector()[0]
    print(f"{me.name}: {level:.3f}")
