"""SimPy models as entities of the kernel: one digest on every executor, times rounded at the border only."""

from __future__ import annotations

from typing import Any

import pytest

from worldline.errors import ModelError, UsageError
from worldline.kernel import Entity, Simulation
from worldline.simpy.entity import EnvironmentEntity


class Workshop(EnvironmentEntity):
    """Hands jobs on after a while."""

    unit = "1ms"

    def __init__(self, next_one: str) -> None:
        self.next_one = next_one
        self.done: list[tuple[Any, int]] = []

    def set_up(self, env: Any) -> Any:
        while True:
            job = yield self.inbox.get(lambda message: message.topic == "job")
            yield env.timeout(env.rng.expovariate(0.1))
            self.done.append((env.now, self.now))
            self.send(self.next_one, "job", job.payload + 1)


def ring(seed: int = 3) -> Simulation:
    simulation = Simulation(seed=seed)
    for number in range(3):
        simulation.add(f"shop{number}", Workshop(f"shop{(number + 1) % 3}"))
        simulation.connect(f"shop{number}", f"shop{(number + 1) % 3}", "20ms", both=False)
        simulation.send(f"shop{number}", "job", 0)
    return simulation


def test_one_digest_on_every_executor() -> None:
    inline = ring().run(until="1s")
    assert inline.digest == ring().run(until="1s", executor="processes(2)").digest
    assert inline.digest != ring(seed=4).run(until="1s").digest
    assert inline.events > 100


def test_the_entity_acts_at_the_nearest_nanosecond() -> None:
    simulation = Simulation()
    shop = Workshop("sink")
    simulation.add("shop", shop)
    simulation.add("sink", Sink())
    simulation.send("shop", "job", 0, at="7ms")
    simulation.run()
    (at, now), *rest = shop.done
    assert not rest
    assert at > 7.0
    assert now == round(at * 1_000_000)


class Sink(Entity):
    def handle(self, message: Any) -> None:
        assert message.payload == 1


class Clock(EnvironmentEntity):
    """Ticks in its own units, whatever arrives."""

    def __init__(self) -> None:
        self.ticks: list[Any] = []

    def set_up(self, env: Any) -> None:
        env.process(self.tick(env))

    def tick(self, env: Any) -> Any:
        for _ in range(3):
            yield env.timeout(1)
            self.ticks.append(env.now)


def test_messages_move_the_models_clock_but_none_of_its_events() -> None:
    simulation = Simulation()
    clock = Clock()
    simulation.add("clock", clock)
    for at in ("500ms", "1s", "1500000001ns"):
        simulation.send("clock", "knock", at=at)
    assert simulation.run().now == 3_000_000_000
    assert repr(clock.ticks) == "[1, 2, 3]"
    assert len(clock.inbox.items) == 3


class Broken(EnvironmentEntity):
    def set_up(self, env: Any) -> Any:
        yield env.timeout(2)
        raise KeyError("oops")


class Odd(EnvironmentEntity):
    def set_up(self, env: Any) -> Any:
        return 5


def test_failures_are_the_entitys() -> None:
    for entity, kind, text in (
        (
            Broken(),
            ModelError,
            r"shop at 2s: its process set_up has failed: KeyError: 'oops', in test_entity.py, line \d+",
        ),
        (Odd(), UsageError, r"set_up\(\) returns something"),
    ):
        simulation = Simulation()
        simulation.add("shop", entity)
        with pytest.raises((kind, ModelError), match=text):
            simulation.run()
