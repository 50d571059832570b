"""What ends a run from outside isn't the model's failure; what its code raises is, whatever it is."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from worldline.kernel import Entity, Simulation, process
from worldline.model import ModelError
from worldline.processes.failures import BreakOff


class Acts(Entity):
    """Does something at the start, and something with what comes of it."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    def start(self) -> None:
        self.tidy = False
        try:
            self.act()
        except BaseException:
            self.tidy = True
            raise


def run(act: Callable[[], Any]) -> None:
    simulation = Simulation()
    simulation.add("a", Acts(act))
    simulation.run()


def raised(error: BaseException) -> Callable[[], Any]:
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(0), GeneratorExit(), BaseException("odd")])
def test_what_the_code_raises_names_who_and_when(error: BaseException) -> None:
    with pytest.raises(ModelError, match=f"a at 0s: it raised {type(error).__name__}"):
        run(raised(error))


def test_control_c_interrupts() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(lambda: signal.raise_signal(signal.SIGINT))


def test_control_c_interrupts_a_process() -> None:
    def waits(_: Entity) -> Iterator[str]:
        yield "5ns"
        signal.raise_signal(signal.SIGINT)

    simulation = Simulation()
    simulation.add("a", process(waits))
    with pytest.raises(KeyboardInterrupt):
        simulation.run()


class Leaves:
    """A handler of a signal that is an object."""

    def __call__(self, *_: object) -> None:
        sys.exit(7)

    def leave(self, *_: object) -> None:
        self()


def leaves(*_: object) -> None:
    sys.exit(7)


@pytest.mark.parametrize("handler", [leaves, lambda *_: sys.exit(7), Leaves(), Leaves().leave, partial(leaves, 1)])
def test_a_program_may_leave_when_it_is_asked_to_terminate(
    handler: Callable[..., Any],
) -> None:
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(SystemExit) as exit_:
            run(lambda: signal.raise_signal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert exit_.value.code == 7


def test_an_alarm_of_ours_passes() -> None:
    with pytest.raises(BreakOff):
        run(raised(BreakOff()))
