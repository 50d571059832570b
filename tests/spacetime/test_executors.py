"""Every world on every executor gives one history: what executors promise.

All that can be seen of a run is compared: digest, events, chains, records, and the state of every agent; or the error.
`test_mpi` has the part with MPI in it, `test_moves` more of the moves.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.federation.transports import PATIENCE_S
from tests.spacetime.walkers import (
    COLUMNS,
    EXAMPLES,
    UNTIL,
    Observation,
    difference,
    make_world,
    observe,
    observed,
    prints_of,
)
from worldline.kernel import processes
from worldline.spacetime import Agent, Channel, ForwardSimulation, LambdaField, Minkowski, build
from worldline.spacetime.causality import check
from worldline.spacetime.examples import NAMES, find
from worldline.spacetime.placement import Placing

ROOT = Path(__file__).parents[2]

# Two of them fail. More than that, at random, are looked at by `make soak`: see `test_moves`.
SEEDS = (1, 4, 9, 22, 27, 32, 33)
QUICK = (1, 9, 32, 33)  # One of them fails, and each has a dimension of its own.
REST = tuple(seed for seed in SEEDS if seed not in QUICK)


@cache
def seen(seed: int, column: str) -> Observation:
    return observe(make_world(seed), column)


def inline(seed: int) -> Observation:
    return seen(seed, "inline")


COLUMNS_OF_A_KIND = ("shuffled(2)", "by a dict", "eager positions", "restless(1)", "restless(2)")
"""Each is much like another, which `make test` tries."""


@pytest.mark.parametrize(
    "column",
    [pytest.param(name, marks=pytest.mark.soak) if name in COLUMNS_OF_A_KIND else name for name in COLUMNS],
)
@pytest.mark.parametrize("seeds", [QUICK, pytest.param(REST, marks=pytest.mark.soak)], ids=str)
def test_a_world_is_the_same_on_every_executor(column: str, seeds: tuple[int, ...]) -> None:
    for seed in seeds:
        assert not difference(inline(seed), seen(seed, column)), (
            f"{seed}: {difference(inline(seed), seen(seed, column))}"
        )


@pytest.mark.long
@pytest.mark.parametrize("column", ["processes(2)", "restless(2)"])
def test_what_happens_elsewhere_keeps_the_laws(column: str) -> None:
    for seed in QUICK:
        world = make_world(seed)
        verdict = check(seen(seed, column).records, Minkowski(world.n), world.field)
        assert verdict.violations == []
        assert verdict.absorbed > 0 or inline(seed).error


def test_worlds_do_what_they_are_for() -> None:
    """A world in which nothing happens would agree with itself everywhere."""
    found = [inline(seed) for seed in SEEDS]
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


def test_no_example_is_left_out() -> None:
    assert tuple(EXAMPLES) == NAMES


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_the_same_on_every_executor(name: str) -> None:
    example = find(name)
    options = {"trace": True, **EXAMPLES[name]}
    expected = observed(example.build(**options), example.until)
    assert expected.events > 0
    executors = [
        processes(1),
        processes(3, placement="channels"),
        processes(2, placement=Placing(_alternate, moves_every_s=0.0)),
    ]
    for executor in executors:
        found = observed(example.build(**options), example.until, executor)
        assert not difference(expected, found), f"{executor}: {difference(expected, found)}"


def _alternate(residents: Any, count: int) -> dict[str, int]:
    """Place everybody elsewhere the more events there were."""
    return {each.name: (each.load + place) % count for place, each in enumerate(residents)}


# -- Builds and hash seeds

REPORTER = """
import json, sys
from tests.spacetime.walkers import make_world, observations, prints_of
from worldline.spacetime import build
if __name__ == "__main__":
    seeds, columns = json.loads(sys.argv[1])
    found = [(seed, column, prints_of(seen)) for seed, column, seen in observations(seeds, columns)]
    print(json.dumps([build, found]))
"""


@pytest.mark.long
def test_another_build_under_another_hash_seed() -> None:
    """Within one build and under one hash seed, the other tests compare; this one compares them with each other."""
    is_compiled = build == "compiled"
    asked = json.dumps([QUICK, ["inline", "restless(2)"]])
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "WORLDLINE_UNCOMPILED": "1" if is_compiled else "0"}
    command = [sys.executable, "-c", REPORTER, asked]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=3 * PATIENCE_S)
    assert ended.returncode == 0, ended.stderr
    other, found = json.loads(ended.stdout)
    assert other != build or not is_compiled, "both are plain"
    assert len(found) == 2 * len(QUICK)
    for seed, column, prints in found:
        assert prints == prints_of(inline(seed)), f"world {seed}, {column}, {other}"


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

TWICE = """
import worldline.kernel as kernel
print(kernel.processes(2), kernel.processes(3))
"""


def test_an_executor_can_be_made_twice() -> None:
    """What makes it has the name of a module, which comes into being with the first one."""
    command = [sys.executable, "-c", TWICE]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.stdout == "processes(2) processes(3)\n", ended.stderr


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_nobody(workers: int) -> None:
    simulation = ForwardSimulation(Minkowski(3), executor=processes(workers))
    result = simulation.run(until=10.0)
    assert (result.events, result.agents) == (0, 0)
    assert result.digest == ForwardSimulation(Minkowski(3)).run(until=10.0).digest


@pytest.mark.parametrize("until", [-1.0, 0.0, 0.4, 0.5, 1e3])
def test_ends_at_odd_moments(until: float) -> None:
    """Before anything, at the beginning, at the first event or around it, and long after all is over."""
    example = find("ping")
    executors = ("inline", "processes(2)")
    assert not difference(*(observed(example.build(distance=0.5, trace=True), until, each) for each in executors))


@pytest.mark.parametrize("by", [None, "channels", Placing("channels", 0.0)])
def test_more_workers_than_agents(by: Any) -> None:
    example = find("introduction")
    expected = observed(example.build(trace=True), UNTIL)
    found = observed(example.build(trace=True), UNTIL, processes(7, placement=by))
    assert not difference(expected, found)
