"""Every world on every executor gives one history: what executors promise.

All that can be seen of a run is compared: digest, events, chains, records, and the state of every agent; or the error.
`test_mpi` has the part with MPI in it, `test_moves` more of the moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.spacetime.walkers import (
    COLUMNS,
    UNTIL,
    Observation,
    difference,
    make_world,
    observe,
    observed,
)
from worldline.kernel import processes
from worldline.spacetime import Agent, Channel, ForwardSimulation, LambdaField, Minkowski
from worldline.spacetime.causality import check
from worldline.spacetime.examples import find
from worldline.spacetime.placement import Placing

# Two of them fail. More than that, at random, are looked at by `make soak`: see `test_moves`.
SEEDS = (1, 4, 9, 22, 27, 32, 33)
QUICK = (1, 9, 32, 33)  # One of them fails, and each has a dimension of its own.
COVERING = {(QUICK[place % len(QUICK)], column) for place, column in enumerate(COLUMNS)}
"""Every column with one world, and every world with three columns: what `make test` runs of the matrix."""


@cache
def inline(seed: int) -> Observation:
    return observe(make_world(seed), "inline")


def matrix() -> Iterator[Any]:
    for seed in SEEDS:
        for place, column in enumerate(COLUMNS):
            is_long = seed in QUICK and (QUICK.index(seed) + 1) % len(QUICK) == place % len(QUICK)
            marks = () if (seed, column) in COVERING else pytest.mark.long if is_long else pytest.mark.soak
            yield pytest.param(seed, column, marks=marks)


@pytest.mark.parametrize(("seed", "column"), list(matrix()))
def test_a_world_is_the_same_on_every_executor(seed: int, column: str) -> None:
    found = observe(make_world(seed), column)
    assert not difference(inline(seed), found), difference(inline(seed), found)


def test_worlds_do_what_they_are_for() -> None:
    """A world in which nothing happens would agree with itself everywhere."""
    found = [inline(seed) for seed in SEEDS]
    for seed, each in zip(SEEDS, found, strict=True):
        assert check(each.records, Minkowski(make_world(seed).n), make_world(seed).field).is_clean
    assert {make_world(seed).n for seed in SEEDS} == {1, 2, 3, 4}
    assert sum(each.error != "" for each in found) == 2
    for each in found:
        assert each.error or each.events > 50
    assert len({each.digest for each in found if not each.error}) == len(found) - 2
    kinds = {record.kind for each in found for record in each.records}
    assert kinds >= {"born", "sent", "absorbed", "timer", "turned", "jumped", "crossed", "created", "attached", "held"}
    assert kinds >= {"closed", "died", "ended"}
    assert any("+" in name for each in found for name in each.states), "a child was given a name"
    assert any("<lambda>" in record.what for each in found for record in each.records)
    assert any(state["kind"] == "AgentWrapper" for each in found for state in each.states.values())


# -- Builds and hash seeds


# -- The twin that must fail


class Gossip(Agent):
    """Leaks: all of its kind in one process share what they hear, and act on it."""

    heard: list[str] = []  # noqa: RUF012 - That it is shared is the fault.
    other: Channel

    def hear(self) -> None:
        self.heard.append(self.name)
        self.after(1.0 + len(self.heard), "hear")


def gossips(executor: Any) -> ForwardSimulation:
    Gossip.heard.clear()
    simulation = ForwardSimulation(Minkowski(2), LambdaField(R=(1.0, 0.0)), executor=executor, trace=True)
    with simulation:
        for place in range(3):
            agent = Gossip()
            agent.jump_to((0.0, 2.0 * place))
            agent.after(1.0 + place, "hear")
    return simulation


def test_a_leak_between_agents_is_seen() -> None:
    expected = observed(gossips("inline"))
    assert not difference(expected, observed(gossips("inline")))
    assert not difference(expected, observed(gossips("processes(1)")))
    assert "digest" in difference(expected, observed(gossips("processes(2)")))


# -- Odd sizes


@pytest.mark.parametrize("workers", [1, 5])
def test_nobody(workers: int) -> None:
    simulation = ForwardSimulation(Minkowski(3), executor=processes(workers))
    result = simulation.run(until=10.0)
    assert (result.events, result.agents) == (0, 0)
    assert result.digest == ForwardSimulation(Minkowski(3)).run(until=10.0).digest


@pytest.mark.parametrize("until", [0.0, 0.5, 1e3])
def test_ends_at_odd_moments(until: float) -> None:
    """At the beginning, at the first event, and long after all is over."""
    example = find("ping")
    executors = ("inline", "processes(2)")
    assert not difference(*(observed(example.build(distance=0.5, trace=True), until, each) for each in executors))


@pytest.mark.parametrize("by", [None, Placing("channels", 0.0)])
def test_more_workers_than_agents(by: Any) -> None:
    example = find("introduction")
    expected = observed(example.build(trace=True), UNTIL)
    found = observed(example.build(trace=True), UNTIL, processes(7, placement=by))
    assert not difference(expected, found)
