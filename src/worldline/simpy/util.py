"""SimPy's module of this name."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from worldline.simpy.engine import Environment, Event, Process, ProcessGenerator, SimTime


def start_delayed(env: Environment, generator: ProcessGenerator, delay: SimTime) -> Process:
    """Return a process that starts another one after a delay, and returns it."""
    if delay <= 0:
        raise ValueError(f"delay(={delay}) must be > 0.")

    def starter() -> Generator[Event, Any, Process]:
        yield env.timeout(delay)
        return env.process(generator)

    return env.process(starter())


def subscribe_at(event: Event) -> None:
    """Have the running process interrupted when an event happens: the cause is (event, its value)."""
    env = event.env
    assert env.active_process is not None
    receiver = env.active_process

    def signaller() -> ProcessGenerator:
        result = yield event
        if receiver.is_alive:
            receiver.interrupt((event, result))

    if event.callbacks is None:
        raise RuntimeError(f"{event} has already terminated.")
    env.process(signaller())
