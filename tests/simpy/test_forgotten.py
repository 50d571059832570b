"""A class that doesn't call `super().__init__()` gets an AttributeError, as in SimPy, and nothing worse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import simpy as original

import worldline.simpy as ours


class Forgetful:
    """Comes first among the bases, so that theirs isn't called."""

    def __init__(self, *_: Any) -> None:
        pass


def forgotten(base: type, *arguments: Any) -> Any:
    return type(f"Own{base.__name__}", (Forgetful, base), {})(*arguments)


def waiting(env: Any, event: Any) -> Any:
    yield event


DEEDS: dict[str, Callable[[Any, Any], Any]] = {
    "run an environment": lambda simpy, _: forgotten(simpy.Environment).run(until=3),
    "its timeout": lambda simpy, _: forgotten(simpy.Environment).timeout(1),
    "its event": lambda simpy, _: forgotten(simpy.Environment).event().succeed(),
    "its process": lambda simpy, env: forgotten(simpy.Environment).process(waiting(env, env.timeout(1))),
    "an event succeeds": lambda simpy, env: forgotten(simpy.Event, env).succeed(),
    "an event fails": lambda simpy, env: forgotten(simpy.Event, env).fail(ValueError()),
    "a timeout succeeds": lambda simpy, env: forgotten(simpy.Timeout, env, 1).succeed(),
    "a condition succeeds": lambda simpy, env: forgotten(simpy.AllOf, env, []).succeed(),
    "a process is interrupted": lambda simpy, env: forgotten(simpy.Process, env).interrupt(),
    "a resource": lambda simpy, env: forgotten(simpy.Resource, env).request(),
    "a store's put": lambda simpy, env: forgotten(simpy.Store, env).put(1),
    "a store's get": lambda simpy, env: forgotten(simpy.FilterStore, env).get(),
    "a container": lambda simpy, env: forgotten(simpy.Container, env).get(1),
    "a request": lambda simpy, env: forgotten(request_of(simpy), simpy.Resource(env)).cancel(),
}


def request_of(simpy: Any) -> type:
    kind: type = simpy.resources.resource.Request
    return kind


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("simpy", [original, ours], ids=["SimPy", "Worldline"])
def test_what_was_forgotten_is_an_attribute_error(simpy: Any, deed: str) -> None:
    with pytest.raises(AttributeError):
        DEEDS[deed](simpy, simpy.Environment())


@pytest.mark.parametrize("simpy", [original, ours], ids=["SimPy", "Worldline"])
def test_anything_can_be_released(simpy: Any) -> None:
    env = simpy.Environment()
    env.run(until=simpy.Resource(env).release("what it never gave"))


@pytest.mark.parametrize("simpy", [original, ours], ids=["SimPy", "Worldline"])
def test_a_timeout_needs_a_delay(simpy: Any) -> None:
    with pytest.raises(TypeError, match="argument"):
        simpy.Environment().timeout()
