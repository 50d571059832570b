"""Programs that wait in callbacks of Drake, in the middle of C++: each on its own stack, whichever way that is made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("pydrake")

from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, DiagramBuilder, EventStatus, LeafSystem

from worldline import Federation, Network, Participant, Program, link, run
from worldline.federation.inprocess.strand import THREADS
from worldline.model import ModelError

STEPS = {"a": "3ms", "b": "7ms", "c": "2ms"}


class Calling(LeafSystem):
    """Calls a function every 10 ms."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self._call = call
        self.DeclarePeriodicPublishEvent(0.01, 0.0, self._tick)

    def _tick(self, context: Context) -> EventStatus:
        self._call()
        return EventStatus.Succeeded()


def within(depth: int, act: Callable[[], object]) -> Callable[[], object]:
    """Return what does it in callbacks of simulators that run in each other's callbacks."""

    def advance() -> None:
        builder = DiagramBuilder()
        builder.AddSystem(Calling(within(depth - 1, act)))
        simulator = Simulator(builder.Build())
        for number in range(1, 3):
            simulator.AdvanceTo(0.013 * number)

    return advance if depth else act


def program(me: Participant) -> None:
    def talk() -> None:
        me.publish("t", me.name.encode())
        me.advance(by=STEPS[me.name])
        if me.now > fails_after[me.name]:
            raise ZeroDivisionError

    for number in range(4):
        within(1 + (ord(me.name) + number) % 3, talk)()  # So that the stacks are never the same.
        talk()


fails_after: dict[str, float] = {}


@pytest.mark.parametrize("failing", ["", "b"])
def test_it_goes_on_where_it_waited(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_after.update(dict.fromkeys(STEPS, float("inf")))
    if failing:
        fails_after[failing] = 50_000_000
    programs = {name: Program(program, publishes=["t"], subscribes=["t"]) for name in STEPS}
    federation = Federation(programs, network=Network(default=link("1ms")))
    told = []
    for threads in ("0", "1"):
        monkeypatch.setenv(THREADS, threads)
        try:
            told.append(run(federation).digest.hex())
        except ModelError as error:
            told.append(str(error))
    assert told[0] == told[1]
    assert ("b at 56ms: its program raised ZeroDivisionError" in told[0]) is bool(failing)
