"""One test body, run against plain Drake, with both halves in one diagram, and against the two in a run."""

from __future__ import annotations

import pytest

pytest.importorskip("pydrake", reason="Drake isn't installed; it needs Python 3.12 or newer")

from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, DiagramBuilder, InputPort, OutputPort
from pydrake.systems.primitives import DiscreteTimeDelay

from tests.metasim.executors import in_one_process
from tests.metasim.halves import Half, Pair, State, continuous, controller, discrete, multibody, set_start, state_of

STEP = 0.01
Trajectories = dict[str, dict[float, tuple[float, ...]]]


def plain_drake(plant: Half, other: Half, latency: int, until: float) -> Trajectories:
    """Run both in one diagram, and nothing of Worldline."""
    builder = DiagramBuilder()
    systems = {}
    ports = {}
    for name, half in (("plant", plant), ("controller", other)):
        systems[name], *ports[name] = half.make(builder)

    def delayed(given: OutputPort, taken: InputPort, reader: Half) -> None:
        # An update sees what a delay held before its own, so one step is in it already.
        steps = latency if reader.step is None else latency - 1
        delay = builder.AddSystem(DiscreteTimeDelay(STEP, steps, given.size()))
        builder.Connect(given, delay.get_input_port())
        builder.Connect(delay.get_output_port(), taken)

    delayed(ports["plant"][1], ports["controller"][0], other)
    delayed(ports["controller"][1], ports["plant"][0], plant)
    simulator = Simulator(builder.Build())
    for name, half in (("plant", plant), ("controller", other)):
        set_start(half, systems[name].GetMyMutableContextFromRoot(simulator.get_mutable_context()))
    states: dict[str, list[State]] = {name: [] for name in systems}

    def note(context: Context) -> None:
        for name, system in systems.items():
            states[name].append((context.get_time(), state_of(system.GetMyContextFromRoot(context))))

    simulator.set_monitor(note)
    simulator.AdvanceTo(until)
    return {name: dict(each) for name, each in states.items()}


def metasim(plant: Half, other: Half, latency: int, until: float) -> Trajectories:
    pair = Pair(plant, other, f"{latency * 10}ms", f"{latency * 10}ms")
    states, _ = in_one_process(pair, f"{round(until * 1000)}ms")
    return {name: dict(each) for name, each in states.items()}


PLANTS = {
    "discrete": (discrete(), discrete(turn=0.2)),
    "continuous": (continuous(), controller()),
    "multibody": (multibody(step=STEP, sampled=False), controller()),
}


@pytest.mark.parametrize("latency", [1, 5])
@pytest.mark.parametrize("plant", PLANTS)
def test_both_worlds_are_one(plant: str, latency: int) -> None:
    """At each step of 10 ms, up to 1 s, all states are the same, to the last bit."""
    theirs, ours = (world(*PLANTS[plant], latency, 1.0) for world in (plain_drake, metasim))
    for name, expected in theirs.items():
        steps = [number * STEP for number in range(101)]
        assert [ours[name][at] for at in steps] == [expected[at] for at in steps]
