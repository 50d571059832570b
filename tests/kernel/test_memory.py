"""Nothing stays behind when a simulation is gone, and the queue doesn't fill up with what won't happen."""

from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.kernel.actors import Actor, Steps, pending
from worldline.kernel import Entity, EntityMessage, Interrupt, Resource, Signal, Simulation, process, receive, wait
from worldline.model import HOUR, MS, NS, ModelError, Network, link


def lazy(me: Any) -> Steps:
    with contextlib.suppress(Interrupt):
        yield HOUR


# -- Nothing stays behind


class Tracked:
    """Something that can be sent, and whose life can be followed."""


@dataclass
class Node:
    """A payload that is part of a cycle with others."""

    others: list[Any]


class Cyclic(Entity):
    """Holds on to itself in every way that there is, and leaves things unfinished."""

    def __init__(self) -> None:
        self.own = [self]
        self.signal = Signal()
        self.machine = Resource(1)
        self.kept: list[Any] = [Tracked()]

    def start(self) -> Steps:
        self.kept.append(self.process(self.forever(self.signal)))
        self.kept.append(self.process(self.forever(receive("never"))))
        self.kept.append(self.process(self.forever(wait(self.signal, limit=HOUR))))
        self.kept.append(self.process(self.hold()))
        self.kept.append(self.schedule("x", self.kept, delay=HOUR))
        self.kept.append(self.stream("wind"))
        self.random.random()
        self.record("x", 1)
        self.create(Actor(lambda child: self.kept.append(child)), "kim")
        self.create(process(lazy))
        self.send(self.name, "later", self, delay=HOUR)
        yield HOUR

    def forever(self, thing: Any) -> Steps:
        me = [self]
        yield thing
        me.clear()

    def hold(self) -> Steps:
        with self.machine.acquire() as turn:
            yield turn
            yield HOUR

    def handle(self, message: EntityMessage) -> None:
        self.kept.append(message)


def test_a_simulation_that_is_gone_leaves_nothing_even_if_it_wasnt_finished() -> None:
    simulation = Simulation()
    entities: list[Any] = [Cyclic() for _ in range(3)]
    for number, entity in enumerate(entities):
        simulation.add(f"c{number}", entity)
        simulation.send(f"c{number}", "x", [1, 2], at=5)
    simulation.run(until=10)
    traces = [weakref.ref(each) for each in (simulation, *entities, *(entity.kept[0] for entity in entities))]
    traces.append(weakref.ref(simulation["c0/kim"]))
    del simulation, entities, entity
    gc.collect()
    assert [trace() for trace in traces] == [None] * len(traces)


def test_a_simulation_that_wasnt_finished_goes_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    # The usual end of a model with queues: run(until=...), and the program is over.
    class Bank(Entity):
        def start(self) -> None:
            self.counter = Resource(1)
            for _ in range(3):
                self.process(self.customer())

        def customer(self) -> Steps:
            with self.counter.acquire() as turn:
                yield turn
                yield 100 * NS

    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda complaint: complaints.append(str(complaint.exc_value)))
    simulation = Simulation()
    simulation.add("bank", Bank())
    simulation.run(until=50)
    del simulation
    gc.collect()
    assert complaints == []


def test_a_simulation_that_failed_leaves_nothing() -> None:
    class Failing(Cyclic):
        def on_fail(self, _: None) -> None:
            raise ValueError(self)

    simulation = Simulation()
    simulation.add("c", Failing())
    simulation.send("c", "fail", at=5)
    with pytest.raises(ModelError, match="it raised ValueError"):
        simulation.run()
    traces = [weakref.ref(simulation), weakref.ref(simulation["c"])]
    del simulation
    gc.collect()
    assert [trace() for trace in traces] == [None, None]


@pytest.mark.parametrize("leaves_timers", [False, True])
def test_whoever_was_created_and_has_ended_is_forgotten_while_the_simulation_goes_on(leaves_timers: bool) -> None:
    traces: list[Any] = []

    class Brief(Entity):
        def start(self) -> Steps:
            traces.append(weakref.ref(self))
            self.send("a", "x", delay=50)  # Still under way when it has ended.
            self.own = [self, self.process(self.other())]
            if leaves_timers:
                self.schedule("x", self.own, delay=HOUR)
            self.random.random()
            yield 5 * NS
            self.end()

        def other(self) -> Steps:
            yield HOUR if leaves_timers else 4 * NS

    def act(me: Actor) -> Steps:
        for _ in range(300):
            me.create(Brief())
            yield 1 * NS

    simulation = Simulation()
    simulation.add("a", Actor(act))
    simulation.run(until=MS)
    assert len(traces) == len(simulation["a"].got) == 300
    if leaves_timers:  # They keep their owners, until they are cleared away or their time has come.
        simulation.run()
    gc.collect()
    assert sum(trace() is not None for trace in traces) <= 1  # The one that the last event was about.


@pytest.mark.parametrize("kind", ["constant", "copied", "own", "canceled", "outside", "undelivered", "lost"])
def test_payloads_are_let_go_after_they_were_delivered_or_not(kind: str) -> None:
    payload: Any = ("a tuple of its own", kind) if kind not in ("copied", "lost") else ["a list", kind]
    network = Network(default=link(1, loss=1.0 if kind == "lost" else 0.0))

    class Quiet(Entity):
        def on_x(self, _: Any) -> None: ...

        def start(self) -> None:
            for _ in range(100):
                if kind in ("own", "canceled"):
                    timer = self.schedule("x", payload, delay=5)
                    if kind == "canceled":
                        self.cancel(timer)
                elif kind != "outside":
                    self.send("b" if self.name == "a" else "a", "x", payload)

    def run() -> None:
        simulation = Simulation(network=network)
        simulation.add("a", Quiet())
        simulation.add("b", Quiet())
        if kind == "outside":
            for number in range(100):
                simulation.send("a", "x", payload, at=number)
        simulation.run(until=1 if kind == "undelivered" else None)

    run()
    gc.collect()
    before = sys.getrefcount(payload)
    run()
    gc.collect()
    assert sys.getrefcount(payload) == before


def busy() -> None:
    """Build and run a model that creates, cancels, ends, interrupts and fails."""

    class Worker(Entity):
        def start(self) -> Steps:
            for number in range(8):
                timers = [self.schedule("x", [number], delay=HOUR) for _ in range(10)]
                for timer in timers:
                    self.cancel(timer)
                victim = self.process(self.sleep())
                self.send("boss", "report", {"number": number, "self": [self.name]})
                yield 3 * NS
                victim.interrupt([number])
                yield wait(victim, limit=5)
            if "/" not in self.name:
                for _ in range(5):
                    self.create(Worker())
            else:
                self.end()

        def sleep(self) -> Steps:
            cycle: list[Any] = [self]
            cycle.append(cycle)
            try:
                yield HOUR
            except Interrupt as interrupt:
                cycle.append(interrupt)
            yield 1 * NS

    class Boss(Entity):
        def on_report(self, report: Any) -> None:
            report["cycle"] = Node([report])
            self.last = report

        def on_fail(self, _: None) -> None:
            raise ValueError(self)

    simulation = Simulation()
    simulation.add("boss", Boss())
    for name in ("a", "b"):
        simulation.add(name, Worker())
    simulation.send("boss", "fail", at=10)
    try:
        simulation.run()
    except ModelError:
        simulation.run()
    for name in "abcde":
        simulation.send("boss", "report", {"name": name}, at=simulation.now + 1)
    simulation.run()


def test_repeated_runs_make_no_more_objects() -> None:
    def count() -> int:
        busy()
        gc.collect()
        return len(gc.get_objects())

    for _ in range(3):
        count()
    counts = [count() for _ in range(5)]
    assert counts[-1] - counts[0] <= 5, counts


# -- The queue doesn't fill up with what won't happen


def most_pending(act: Callable[[Any], Steps], until: int = HOUR // 2) -> int:
    """Run something that yields often, and return how many events have waited at the most."""
    most = [0]

    def watched(me: Any) -> Steps:
        steps, given = act(me), None
        while True:
            most[0] = max(most[0], pending(simulation))
            try:
                given = yield steps.send(given)
            except StopIteration:
                return

    simulation = Simulation()
    simulation.add("a", process(watched))
    simulation.run(until=until)
    return most[0]


def test_timers_that_are_always_canceled_do_not_pile_up() -> None:
    def act(me: Any) -> Steps:
        for _ in range(20_000):
            timer = me.schedule("x", delay=HOUR)
            yield 1 * NS
            me.cancel(timer)

    assert most_pending(act) < 5_000


def test_limits_that_are_never_reached_do_not_pile_up() -> None:
    def act(me: Any) -> Steps:
        for _ in range(20_000):
            me.send("a", "x")
            assert (yield receive(limit=HOUR)) is not None

    assert most_pending(act) < 5_000


def test_those_who_end_with_many_timers_do_not_pile_up() -> None:
    def child(me: Any) -> Steps:
        for _ in range(4):
            me.schedule("x", delay=HOUR)
        yield 1 * NS

    def act(me: Any) -> Steps:
        for _ in range(5_000):
            me.create(process(child))
            yield 1 * NS

    assert most_pending(act) < 10_000


def test_sleeps_that_are_always_interrupted_do_not_pile_up() -> None:
    def sleeper() -> Steps:
        while True:
            with contextlib.suppress(Interrupt):
                yield HOUR

    def act(me: Any) -> Steps:
        victim = me.process(sleeper())
        for _ in range(20_000):
            yield 1 * NS
            victim.interrupt()

    assert most_pending(act) < 5_000


def test_clearing_the_queue_keeps_what_is_alive_in_order() -> None:
    rung: list[int] = []

    class Owner(Entity):
        def start(self) -> None:
            kept = [self.schedule("keep", number, delay=1_000 + number % 7) for number in range(500)]
            doomed = [self.schedule("keep", -1, delay=1_000 + number % 7) for number in range(6_000)]
            for timer in doomed:
                self.cancel(timer)
            self.cancel(kept[13])

        def on_keep(self, number: int) -> None:
            rung.append(number)

    simulation = Simulation()
    simulation.add("a", Owner())
    simulation.run(until=500)
    assert pending(simulation) < 1_000
    simulation.run()
    expected = [number for number in range(500) if number != 13]
    assert rung == sorted(expected, key=lambda number: (number % 7, number))
