"""Agents that move from worker to worker in mid-run: nothing of it can be seen, whatever is under way meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.spacetime.walkers import (
    Observation,
    Restless,
    difference,
    make_world,
    observe,
    observed,
    restless,
    simulation_of,
)
from worldline.kernel import processes
from worldline.model import ConfigurationError, WorldlineError
from worldline.spacetime import Agent, AgentWrapper, Channel, ForwardSimulation, LambdaField, Minkowski, RemoteReference
from worldline.spacetime.placement import Placing, Resident


@cache
def inline(seed: int) -> Observation:
    return observe(make_world(seed), "inline")


def test_agents_really_move(tmp_path: Path) -> None:
    """A test of moves in which nobody moves would always pass."""
    executor = processes(2, placement=restless(7, 4, tmp_path))
    assert not difference(inline(32), observed(simulation_of(make_world(32), executor)))
    asked = [int(note.read_text()) for note in tmp_path.iterdir()]
    assert len(asked) > 5
    assert sum(asked) > 30


@pytest.mark.long
@pytest.mark.parametrize("workers", [2, 3, 4])
def test_moves_between_any_two_events(workers: int) -> None:
    for seed in (4, 38):
        executor = processes(workers, placement=restless(workers, 4))
        found = observed(simulation_of(make_world(seed), executor))
        assert not difference(inline(seed), found), difference(inline(seed), found)


# -- What goes along

PERIOD = 0.25


class Nomad(Agent):
    """Has everything that an agent can have, and looks at each event whether it still has it."""

    to_other: Channel
    closed: Channel
    known: RemoteReference

    def __init__(self) -> None:
        self.pids: list[int] = []
        self.met: list[str] = []
        self.ticks = 0

    def tick(self, stranger: RemoteReference) -> None:
        """Come again with the same reference, until its time is up."""
        self.ticks += 1
        self.pids = sorted({*self.pids, os.getpid()})
        self.random.random()
        assert not self.closed.is_open
        self.to_other.send("meet", self.known)
        self.to_other.send(lambda other: other.count(stranger.name))
        if self.ticks < 40:
            self.after(PERIOD, Nomad.tick, stranger)

    def meet(self, stranger: RemoteReference) -> None:
        self.met.append(stranger.name)
        if len(self.met) == 5:
            self.known = stranger

    def count(self, name: str) -> None:
        self.met.append(f"{name} by the way")


class Log:
    """Something that is wrapped, and knows who sent it something only by what is in it."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def count(self, name: str) -> None:
        self.names.append(name)

    def meet(self, stranger: RemoteReference) -> None:
        self.names.append(stranger.name)


def nomads(executor: Any) -> ForwardSimulation:
    simulation = ForwardSimulation(Minkowski(3), LambdaField(R=(0.1, 0.0, 0.0)), executor=executor, trace=True)
    with simulation:
        row = [Nomad() for _ in range(5)]
        log = AgentWrapper(Log())
        for place, nomad in enumerate(row):
            nomad.jump_to((0.0, 0.3 * place, 0.1))
            nomad.velocity = simulation.space.velocity(0.05 * place, 0.0)
        for nomad, other in zip(row, [*row[1:], log], strict=True):
            nomad.to_other = Channel(nomad, other)
            nomad.closed = Channel(nomad, other)
            nomad.closed.close()
            nomad.known = nomad.to_other.target()
            nomad.after(PERIOD, Nomad.tick, nomad.reference())
    return simulation


def test_all_that_an_agent_has_goes_along() -> None:
    here, there = nomads("inline"), nomads(processes(3, placement=restless(1, 2)))
    expected, found = here.run(until=20.0), there.run(until=20.0)
    assert found.records == expected.records
    assert found.digest == expected.digest
    everywhere = [agent.pids for agent in there.agents.values() if isinstance(agent, Nomad)]
    assert max(map(len, everywhere)) > 1, "nobody has moved"
    for name, agent in here.agents.items():
        other = there[name]
        if isinstance(agent, Nomad) and isinstance(other, Nomad):
            assert other.met == agent.met
            assert (other.ticks, agent.ticks) == (40, 40)
            assert other.known.name == agent.known.name
            assert other.random.random() == agent.random.random()
            assert repr(other.to_other) == repr(agent.to_other)
        elif isinstance(agent, AgentWrapper) and isinstance(other, AgentWrapper):
            assert other.object.names == agent.object.names
            assert len(agent.object.names) == 80


class Snail(Agent):
    """Stays; another one is far away, so that what is sent is under way for long, and moves with who gets it."""

    other: Channel

    def send_all(self) -> None:
        for number in range(50):
            self.other.send("hear", number)

    def hear(self, number: int) -> None:
        self.heard = [*getattr(self, "heard", []), number]

    def idle(self) -> None:
        self.after(0.5, "idle")


@pytest.mark.parametrize("is_dying", [False, True])
def test_what_is_under_way_goes_along(is_dying: bool) -> None:
    """Also when its sender is dead long since, or its target dies before it is there."""

    def build(executor: Any) -> ForwardSimulation:
        simulation = ForwardSimulation(Minkowski(2), LambdaField(), executor=executor, trace=True)
        with simulation:
            near, far = Snail(), Snail()
            far.jump_to((0.0, 100.0))
            near.other = Channel(near, far)
            far.other = Channel(far, near)
            near.after(0.25, "send_all")
            near.after(0.5, "die")
            far.after(0.5, "idle")
            if is_dying:
                far.after(100.0, "die")
            near.idle()
        return simulation

    expected, found = observed(build("inline"), 200.0), observed(build(processes(2, placement=restless(0, 2))), 200.0)
    assert not difference(expected, found)
    assert len(expected.states["Snail-2"].get("heard", [])) == (0 if is_dying else 50)


# -- What goes wrong


class Collector(Agent):
    """Gets hold of something that can't leave the process."""

    other: Channel
    back: Channel
    heard = 0

    def begin(self) -> None:
        self.lock = threading.Lock()
        self.hear()

    def hear(self) -> None:
        self.heard += 1
        self.other.send("hear")


def collectors(executor: Any) -> ForwardSimulation:
    simulation = ForwardSimulation(Minkowski(2), executor=executor)
    with simulation:
        row = [Collector() for _ in range(4)]
        for place, agent in enumerate(row):
            agent.jump_to((0.0, float(place)))
            agent.after(1.0, "begin")
            agent.other = Channel(agent, row[place - 1])
            row[place - 1].back = Channel(row[place - 1], agent)
    return simulation


def test_who_cannot_be_moved_stays() -> None:
    found = collectors(processes(2, placement=restless(0, 2))).run(until=40.0)
    assert found.digest == collectors("inline").run(until=40.0).digest


class Late(Restless):
    """A rule that goes wrong after a while."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        super().__init__(seed=0, slice_=2)
        self.answer = answer

    def __call__(self, residents: Sequence[Resident], count: int) -> Any:
        return super().__call__(residents, count) if self.calls < 3 else self.answer()


def divide() -> Any:
    return 1 // 0


@pytest.mark.parametrize(
    "answer",
    [
        dict,
        divide,
        object,
    ],
)
def test_a_rule_that_goes_wrong_in_mid_run_is_a_clear_error(answer: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError, match="place") as raised:
        nomads(processes(2, placement=Placing(Late(answer), 0.0))).run(until=20.0)
    assert "Traceback" not in str(raised.value)


def test_the_first_error_is_told_wherever_its_agent_has_moved() -> None:
    assert inline(22).error
    found = observed(simulation_of(make_world(22), processes(3, placement=restless(22))))
    assert found.error == inline(22).error


class Crowd(Agent):
    def fail(self) -> None:
        raise ValueError("somebody has stumbled")


def test_moves_do_not_go_on_when_nothing_happens_any_more() -> None:
    """There are more agents than are asked at one go, so that nobody is ever idle between two moves."""
    executor = processes(2, placement=restless(0, 8))
    simulation = ForwardSimulation(Minkowski(2), LambdaField(R=(1.0, 0.0)), executor=executor)
    with simulation:
        for place in range(100):
            agent = Crowd()
            agent.jump_to((0.0, float(place)))
        agent.after(1.0, "fail")
    with pytest.raises(WorldlineError, match="somebody has stumbled"):
        simulation.run(until=10.0)


# -- For a long time


@contextmanager
def busy_machine(count: int) -> Iterator[None]:
    """Keep processors busy, so that workers are held up where they otherwise never are."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in spinning:
            each.kill()
            each.wait()


SOAK_S = 600.0
RUN_S_MAX = 60.0


@pytest.mark.soak
@pytest.mark.timeout(SOAK_S + 3 * RUN_S_MAX)
@pytest.mark.parametrize("part", range(2))
def test_soak_many_worlds_that_move_all_the_time(part: int, record_property: Callable[[str, object], None]) -> None:
    random, met = Random(f"moves {part}"), dict.fromkeys(("worlds moved about", "their events", "that fail"), 0)
    until = time.monotonic() + SOAK_S
    with busy_machine(1):
        while time.monotonic() < until:
            seed, workers, slice_ = random.randrange(2**40), random.choice((2, 2, 3, 4)), random.choice((4, 16, 64))
            world = make_world(seed)
            expected = observed(simulation_of(world, "inline"))
            begun = time.monotonic()
            found = observed(simulation_of(world, processes(workers, placement=restless(seed, slice_))))
            what = f"world {seed} on {workers} workers, slices of {slice_}"
            assert not difference(expected, found), f"{what}: {difference(expected, found)}"
            assert time.monotonic() - begun < RUN_S_MAX, what
            met["worlds moved about"] += 1
            met["their events"] += expected.events
            met["that fail"] += expected.error != ""
    record_property("summary", met)
