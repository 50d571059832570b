"""What diagrams need to exchange vectors as LCM messages."""

from __future__ import annotations

import numpy as np
from drake import lcmt_drake_signal
from messages import signal_of
from pydrake.common.value import AbstractValue
from pydrake.systems.framework import BasicVector, Context, DiagramBuilder, LeafSystem, OutputPort

from worldline.metasim import MetasimClient


class SignalEncoder(LeafSystem):
    """Makes a message of a vector."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.DeclareVectorInputPort("vector", size)
        self.DeclareAbstractOutputPort("message", lambda: AbstractValue.Make(lcmt_drake_signal()), self._encode)

    def _encode(self, context: Context, output: AbstractValue) -> None:
        vector = self.EvalVectorInput(context, 0).value()
        output.set_value(signal_of(vector, context.get_time()))


class SignalDecoder(LeafSystem):
    """Makes a vector of a message: zeros, as long as none has arrived."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self.DeclareAbstractInputPort("message", AbstractValue.Make(lcmt_drake_signal()))
        self.DeclareVectorOutputPort("vector", size, self._decode)

    def _decode(self, context: Context, output: BasicVector) -> None:
        message = self.EvalAbstractInput(context, 0).get_value()
        output.SetFromVector(np.array(message.val) if message.dim else np.zeros(self._size))


def publish(client: MetasimClient, builder: DiagramBuilder, channel: str, port: OutputPort, period: float) -> None:
    """Publish a vector on a channel, once in a period."""
    encoder = builder.AddSystem(SignalEncoder(port.size()))
    publisher = client.add_publisher(builder, channel, lcmt_drake_signal, period)
    builder.Connect(port, encoder.get_input_port())
    builder.Connect(encoder.get_output_port(), publisher.get_input_port())


def subscribe(client: MetasimClient, builder: DiagramBuilder, channel: str, size: int) -> OutputPort:
    """Return the last vector that has arrived on a channel."""
    subscriber = client.add_subscriber(builder, channel, lcmt_drake_signal)
    decoder = builder.AddSystem(SignalDecoder(size))
    builder.Connect(subscriber.get_output_port(), decoder.get_input_port())
    return decoder.get_output_port()
