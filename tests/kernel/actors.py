"""The small entities that the kernel's tests are made of."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from worldline.kernel import Entity, EntityMessage, Simulation, build, engine
from worldline.model import WorldlineError

Steps = Generator[Any, Any, Any]
Does = Callable[[Any], Any]


class Actor(Entity):
    """Does one thing when it starts, and keeps every message that it is given."""

    def __init__(self, does: Does | None = None) -> None:
        self.does = does
        self.got: list[EntityMessage] = []

    def start(self) -> Any:
        return None if self.does is None else self.does(self)

    def handle(self, message: EntityMessage) -> Any:
        self.got.append(message)


class Loner(Entity):
    """Does one thing when it starts; whatever comes later is for its processes."""

    def __init__(self, does: Does | None = None) -> None:
        self.does = does

    def start(self) -> Any:
        return None if self.does is None else self.does(self)


def stage(does: Does | None = None, /, **others: Does | None) -> Simulation:
    """Make a simulation of `a`, which does this, `b`, which only listens, and others by name."""
    simulation = Simulation()
    for name, act in {"a": does, "b": None, **others}.items():
        simulation.add(name, Actor(act))
    return simulation


def error_of(does: Does, kind: type[WorldlineError] = WorldlineError, **others: Does | None) -> WorldlineError:
    """Let `a` do this, and return the error that it makes."""
    simulation = stage(does, **others)
    with pytest.raises(kind) as caught:
        simulation.run()
    return caught.value


def payloads(entity: Any) -> list[Any]:
    return [message.payload for message in entity.got]


def pending(simulation: Simulation) -> int:
    """Return how many events wait in the queue, dead ones included."""
    assert simulation._worker is not None
    return len(simulation._worker.engine.queue)


def burst_max(monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many events an entity may let happen without a delay; uncompiled, make it fewer, to save time."""
    if build == "compiled":
        return 1_000_000
    monkeypatch.setattr(engine, "_BURST_MAX", 20_000)
    return 20_000


def history(entity: Any) -> Any:
    """Return what an entity adds to the digest: the hash of all that it was given and did."""
    return entity._wl_history
