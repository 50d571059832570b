"""Runs of small simulations, each in several orders: one digest, one error, and nothing that isn't causal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from worldline.model.errors import WorldlineError
from worldline.spacetime import Agent, Boundary, ForwardSimulation, LambdaField, Minkowski, Shuffled, SpacetimeOutcome
from worldline.spacetime.causality import check

SHUFFLES = 4


class Person(Agent):
    """Keeps what it is told, with where and when, and does what it is asked to."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.times: list[float] = []

    def hear(self, what: Any = "") -> None:
        self.heard.append(what)
        self.times.append(self.position[0])

    def tell(self, what: Any) -> None:
        """Send it on to the other one."""
        self.other.send(Person.hear, what)

    def fail(self, why: str = "no") -> None:
        raise ValueError(why)


SetUp = Callable[[ForwardSimulation], None]


def prepared(
    set_up: SetUp,
    executor: Any,
    *,
    n: int = 2,
    field: LambdaField | None = None,
    boundary: Boundary | Iterable[Boundary] = (),
    seed: int = 0,
) -> ForwardSimulation:
    simulation = ForwardSimulation(Minkowski(n), field, boundary, executor, seed=seed, trace=True)
    with simulation:
        set_up(simulation)
    return simulation


def run(set_up: SetUp, until: float | None = 50.0, **options: Any) -> tuple[SpacetimeOutcome, ForwardSimulation]:
    """Run a simulation in several orders, and check that it was the same each time; return the first."""
    simulation = prepared(set_up, "inline", **options)
    result = simulation.run(until=until)
    verdict = check(result.records, simulation.space, simulation.field)
    assert verdict.is_clean, str(verdict)
    for seed in range(SHUFFLES):
        again = prepared(set_up, Shuffled(seed), **options).run(until=until)
        assert again.digest == result.digest, f"shuffled({seed})"
        assert again.records == result.records, f"shuffled({seed})"
    return result, simulation


def failure(set_up: SetUp, until: float = 50.0, **options: Any) -> WorldlineError:
    """Run a simulation that fails, in several orders; return the one error."""
    found = []
    for executor in ("inline", *map(Shuffled, range(SHUFFLES))):
        simulation = prepared(set_up, executor, **options)
        with pytest.raises(WorldlineError) as caught:
            simulation.run(until=until)
        found.append(caught.value)
    assert {(type(error), str(error)) for error in found} == {(type(found[0]), str(found[0]))}
    return found[0]
