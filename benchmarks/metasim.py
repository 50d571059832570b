"""How fast Drake diagrams are that exchange messages, as a share of the same two run by hand in one process.

Each of two diagrams has a step of 10 ms and publishes once in it. By hand means a loop that advances one simulator
after the other and passes the messages on with the same delay: nothing is coordinated, recorded or checked. All
contestants take turns, and every figure is a median.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from drake import lcmt_drake_signal
from pydrake.common.value import AbstractValue
from pydrake.lcm import DrakeLcm
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Diagram, DiagramBuilder, EventStatus, LeafSystem
from pydrake.systems.lcm import LcmPublisherSystem, LcmSubscriberSystem
from pydrake.systems.primitives import LinearSystem
from rich.console import Console
from rich.table import Table

import worldline
from worldline import Federation, Network, Program, link
from worldline.metasim import MetasimClient, MetasimServer

STEP = 0.01
CHANNELS = {"plant": ("STATE", "COMMAND"), "controller": ("COMMAND", "STATE")}  # What each publishes and hears.

console = Console(highlight=False, width=120)


class ToSignal(LeafSystem):
    """A vector as a message."""

    def __init__(self, size: int, busy_s: float) -> None:
        super().__init__()
        self._busy_s = busy_s
        self.DeclareVectorInputPort("vector", size)
        self.DeclareAbstractOutputPort("message", lambda: AbstractValue.Make(lcmt_drake_signal()), self._calc)

    def _calc(self, context: Any, output: Any) -> None:
        values = self.EvalVectorInput(context, 0).value()
        signal = lcmt_drake_signal()
        signal.dim, signal.val, signal.coord = len(values), list(values), [""] * len(values)
        signal.timestamp = int(context.get_time() * 1e6)
        output.set_value(signal)
        if self._busy_s:  # As a plant with much to compute is.
            end = time.perf_counter() + self._busy_s
            while time.perf_counter() < end:
                pass


class FromSignal(LeafSystem):
    """A message as a vector; zeros before the first."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self.DeclareAbstractInputPort("message", AbstractValue.Make(lcmt_drake_signal()))
        self.DeclareVectorOutputPort("vector", size, self._calc)

    def _calc(self, context: Any, output: Any) -> None:
        signal = self.EvalAbstractInput(context, 0).get_value()
        output.SetFromVector(np.array(signal.val) if signal.dim else np.zeros(self._size))


def assemble(builder: DiagramBuilder, publisher: Any, subscriber: Any, busy_s: float) -> Diagram:
    """Build a discrete system that publishes its state and takes what arrives as its input."""
    dynamics = np.array([[0.9, 0.1], [-0.1, 0.9]])
    system = builder.AddSystem(LinearSystem(dynamics, 0.1 * np.eye(2), np.eye(2), np.zeros((2, 2)), STEP))
    outward, inward = builder.AddSystem(ToSignal(2, busy_s)), builder.AddSystem(FromSignal(2))
    builder.Connect(system.get_output_port(), outward.get_input_port())
    builder.Connect(outward.get_output_port(), publisher.get_input_port())
    builder.Connect(subscriber.get_output_port(), inward.get_input_port())
    builder.Connect(inward.get_output_port(), system.get_input_port())
    return builder.Build()


def take_part(client: MetasimClient, name: str, busy_s: float = 0.0) -> None:
    published, heard = CHANNELS[name]
    builder = DiagramBuilder()
    publisher = client.add_publisher(builder, published, lcmt_drake_signal, STEP)
    subscriber = client.add_subscriber(builder, heard, lcmt_drake_signal)
    client.complete(assemble(builder, publisher, subscriber, busy_s))
    client.run()


# --- The contestants: rounds per second ---


def by_hand(rounds: int, delay: int, busy_s: float = 0.0) -> float:
    """Advance both in a loop of a few lines."""
    sides = []
    for published, heard in CHANNELS.values():
        outward, inward, builder = DrakeLcm("memq://"), DrakeLcm("memq://"), DiagramBuilder()
        publisher = builder.AddSystem(LcmPublisherSystem.Make(published, lcmt_drake_signal, outward, STEP))
        subscriber = builder.AddSystem(LcmSubscriberSystem.Make(heard, lcmt_drake_signal, inward))
        simulator = Simulator(assemble(builder, publisher, subscriber, busy_s))
        sent: deque[tuple[int, bytes]] = deque()
        now = [0]
        outward.SubscribeAllChannels(lambda _, data, sent=sent, now=now: sent.append((now[0], data)))

        def drain(_: Any, outward: DrakeLcm = outward) -> EventStatus:
            outward.HandleSubscriptions(0)
            return EventStatus.DidNothing()

        simulator.set_monitor(drain)
        sides.append((simulator, subscriber, inward, heard, sent, now))
    others = [sides[1], sides[0]]
    for simulator, *_ in sides:
        simulator.Initialize()
    began = time.perf_counter()
    for step in range(1, rounds + 1):
        for simulator, *_, now in sides:
            now[0] = step
            simulator.AdvanceTo(step * STEP)
        for (simulator, subscriber, inward, heard, *_), other in zip(sides, others, strict=True):
            sent = other[4]
            if sent and sent[0][0] + delay <= step:
                inward.Publish(heard, sent.popleft()[1])
                inward.HandleSubscriptions(0)
                context = simulator.get_mutable_context()
                subscriber.ExecuteInitializationEvents(subscriber.GetMyMutableContextFromRoot(context))
    return rounds / (time.perf_counter() - began)


def in_process(rounds: int, delay: int) -> float:
    """Both as participants of a federation in this process; without the time to build the diagrams."""
    began = []

    def program(name: str) -> Program:
        published, heard = CHANNELS[name]

        def run(me: Any) -> None:
            began.append(time.perf_counter())
            take_part(MetasimClient(me), name)

        return Program(run, publishes=[published], subscribes=[heard])

    federation = Federation(
        {name: program(name) for name in CHANNELS}, network=Network(default=link(f"{10 * delay}ms"))
    )
    worldline.run(federation, until=f"{10 * rounds}ms")
    return rounds / (time.perf_counter() - max(began))


def in_processes(rounds: int, delay: int, busy_s: float = 0.0, **server_options: Any) -> float:
    """Each in a process of its own, over TCP."""
    with MetasimServer(list(CHANNELS), f"{10 * delay}ms", **server_options) as server:
        children = [
            subprocess.Popen([sys.executable, __file__, "--take-part", name, str(server.address), str(busy_s)])
            for name in CHANNELS
        ]
        server.initialize(patience_s=60)
        began = time.perf_counter()
        server.advance_to(rounds * STEP)
        seconds = time.perf_counter() - began
    for child in children:
        child.wait()
    return rounds / seconds


def logged(rounds: int) -> float:
    """With all messages in an LCM log."""
    with TemporaryDirectory() as folder:
        return in_processes(rounds, 1, public=f"{folder}/run.lcmlog")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--take-part", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.take_part:
        name, address, busy_s = arguments.take_part
        take_part(MetasimClient(address, name), name, float(busy_s))
        return
    rounds, busy_s = arguments.rounds, 200e-6
    contestants: dict[str, Callable[[], float]] = {
        "by hand, one step of delay": lambda: by_hand(rounds, 1),
        "in-process": lambda: in_process(rounds, 1),
        "two processes, one step of delay": lambda: in_processes(rounds, 1),
        "two processes, ten steps of delay": lambda: in_processes(rounds, 10),
        "two processes, one step, with a public log": lambda: logged(rounds),
        "two processes, one step, with a public broker": lambda: in_processes(rounds, 1, serve_lcm="127.0.0.1:0"),
        "by hand, 200 µs each": lambda: by_hand(rounds // 2, 1, busy_s),
        "two processes, 200 µs each": lambda: in_processes(rounds // 2, 1, busy_s),
    }
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(arguments.repeat):
        for name, run in contestants.items():
            found[name].append(run())
    medians = {name: statistics.median(figures) for name, figures in found.items()}
    table = Table(title=f"Two Drake diagrams, a message each per step of 10 ms, medians of {arguments.repeat}")
    for column in ("", "rounds/s", "share of by hand"):
        table.add_column(column, justify="right" if column else "left")
    for name, figure in medians.items():
        base = "by hand, 200 µs each" if "200" in name else "by hand, one step of delay"
        table.add_row(name, f"{figure:,.0f}", f"{figure / medians[base]:.0%}")
    console.print(table)


if __name__ == "__main__":
    main()
