"""What an observer does wrong is said to be its own doing, in every room that tells it in the middle of a run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from inspect import signature
from typing import Any

import pytest

from worldline import Federation, Participant, Program, run
from worldline.history import Observer, Status
from worldline.history.guarding import GuardedObserver
from worldline.history.observer import TOLD
from worldline.kernel import Entity, Simulation
from worldline.model import UsageError
from worldline.model.errors import ObserverFailure
from worldline.nodes import Event, Node, Protocol, Scheduler
from worldline.spacetime import Agent, ForwardSimulation, Minkowski

LINE = "in test_guarding.py, line "


class Clumsy(Observer):
    """Fails at the first message that somebody has sent."""

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        if who:
            raise KeyError(topic)


class Pinger(Entity):
    def start(self) -> None:
        self.schedule("go", delay="2s")

    def on_go(self, _: None) -> None:
        self.send("echo", "ping", delay="1s")


class Stubborn(Pinger):
    def on_go(self, _: None) -> None:
        with suppress(Exception):
            super().on_go(_)


class Echo(Entity):
    def on_ping(self, _: None) -> None:
        pass


class Greeter(Node):
    def execute(self, event: Event) -> None:
        if not isinstance(event, Protocol):
            self.send("hello", 0)


class Sender(Agent):
    def greet(self) -> None:
        self.after(1.0, "rest")

    def rest(self) -> None:
        pass


def run_kernel(observer: Any, executor: str = "inline", kind: type[Entity] = Pinger) -> None:
    simulation = Simulation()
    simulation.add("ping", kind())
    simulation.add("echo", Echo())
    simulation.run(executor=executor, observer=observer)


def run_nodes(observer: Any, executor: str = "inline") -> None:
    scheduler = Scheduler(2, [(0, 1)], Greeter)
    scheduler.start(0, at="2s")
    scheduler.run(executor=executor, observer=observer)


def run_spacetime(observer: Any) -> None:
    simulation = ForwardSimulation(Minkowski(2))
    with simulation:
        Sender().after(1.0, "greet")
    simulation.run(until=3.0, observer=observer)


def run_federation(observer: Any) -> None:
    def program(me: Participant) -> None:
        me.publish("ball", b"serve")

    run(Federation({"ann": Program(program)}), observer=observer)


ROOMS = [run_kernel, run_nodes, run_spacetime, run_federation]


@pytest.mark.parametrize("room", [run_kernel, run_nodes])
@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_the_observer_is_blamed_and_not_who_was_acting(room: Callable[..., None], executor: str) -> None:
    with pytest.raises(ObserverFailure) as failed:
        room(Clumsy(), executor)
    assert str(failed.value).startswith("the observer at 2s: it raised KeyError: '")
    assert str(failed.value).endswith(f"{LINE}{Clumsy.sent.__code__.co_firstlineno + 2}")
    assert isinstance(failed.value.__cause__, KeyError)


def test_what_the_model_catches_still_ends_the_run() -> None:
    with pytest.raises(ObserverFailure, match="the observer at 2s: it raised KeyError: 'ping'"):
        run_kernel(Clumsy(), kind=Stubborn)


def test_one_that_is_told_at_the_end_is_blamed_as_well() -> None:
    class Late(Observer):
        def ended(self, who: str, at: int, chain: bytes) -> None:
            raise ValueError(who)

    for room in ROOMS:
        with pytest.raises(ObserverFailure, match="it raised ValueError"):
            room(Late())


class Duck:
    def sent(self, *_: Any) -> None: ...


@pytest.mark.parametrize("room", ROOMS)
def test_one_without_the_methods_is_refused_before_anything_happens(room: Callable[..., None]) -> None:
    with pytest.raises(UsageError, match=r"Duck object.* has no method began \(derive its class from worldline"):
        room(Duck())
    with pytest.raises(UsageError, match=r"the observer is the class Clumsy \(give Clumsy\(\.\.\.\)\)"):
        room(Clumsy)


def test_every_method_of_an_observer_is_guarded() -> None:
    told = [name for name in vars(Observer) if not name.startswith("_")]
    assert list(TOLD) == told
    for name in told:
        assert signature(getattr(GuardedObserver, name)) == signature(getattr(Observer, name)), name


def test_a_function_that_takes_a_trace_is_an_observer() -> None:
    def take(record: object) -> None:
        raise LookupError("full")

    scheduler = Scheduler(1, [], Greeter, trace=take)
    scheduler.start_all_nodes()
    with pytest.raises(ObserverFailure, match=f"the observer at 0s: it raised LookupError: full, {LINE}"):
        scheduler.run()


def test_a_misspelled_method_is_refused() -> None:
    class Misspelled(Observer):
        def send(self, *_: object) -> None:
            pass

    with pytest.raises(UsageError, match=r"Misspelled.send would never be called.*did you mean sent\?"):
        GuardedObserver(Misspelled())


def test_an_observers_own_methods_are_its_own() -> None:
    class WithAFile(Observer):
        def close(self) -> None:
            """Takes nothing, so it isn't meant to be `closed`."""

        def sent(self, *_: Any) -> None:
            self.send()

        def send(self, *_: Any) -> None:
            """Isn't meant to be `sent`, which is there too."""

    GuardedObserver(WithAFile())


# How far a run is, as somebody who prints it sees it.


def test_a_status_shows_how_far_it_is_and_nothing_of_how_it_is_made() -> None:
    assert repr(Status(5, 10, 3)) == "Status(time=5, end=10, events=3)"
