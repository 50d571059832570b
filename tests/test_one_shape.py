"""What all kinds of members have in common: the same words for the same things."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.federation.test_log import LogReader
from worldline import Federation, Participant, Program, run
from worldline.history.observer import LOG, Observer
from worldline.kernel import Entity, Simulation
from worldline.model import UsageError
from worldline.model.randomness import Stream
from worldline.nodes import Event, Node, Scheduler
from worldline.spacetime import Agent, ForwardSimulation, Minkowski

SEED = 7


def drawn_by(member: Any) -> list[float]:
    """Draw from both sources in turn; the second time each goes on where it was."""
    return [source.random() for _ in range(2) for source in (member.random, member.stream("wind"))]


def expected(*names: str) -> list[float]:
    own, wind = Stream(SEED, *names), Stream(SEED, *names, "wind")
    return [own.random(), wind.random(), own.random(), wind.random()]


def test_participants_draw_from_random_and_from_streams() -> None:
    drawn: list[float] = []

    def program(me: Participant) -> None:
        drawn.extend(drawn_by(me))

    run(Federation({"a": Program(program)}, seed=SEED))
    assert drawn == expected("a")


def test_entities_do() -> None:
    class Drawing(Entity):
        def start(self) -> None:
            self.drawn = drawn_by(self)

    simulation = Simulation(seed=SEED)
    drawing = Drawing()
    simulation.add("a", drawing)
    run(simulation)
    assert drawing.drawn == expected("a")


class Watching(Node):
    """Draws, and logs that it has."""

    drawn: tuple[float, ...] = ()

    def execute(self, event: Event) -> None:
        self.drawn = (*self.drawn, *drawn_by(self))
        self.log(LINE)


class WatchingAgent(Agent):
    def look(self) -> None:
        self.drawn = drawn_by(self)
        self.log(LINE)


class LoggingEntity(Entity):
    def start(self) -> None:
        self.log(LINE)


LINE = "sees a gull"


class Listener(Observer):
    """Keeps the lines that members log."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if topic == LOG:
            assert payload is not None
            self.heard.append((who, json.loads(payload).get("text", detail and detail.what)))


def watched(executor: str) -> list[tuple[float, ...]]:
    """See that all kinds of members draw and log; return what nodes have drawn."""
    listener = Listener()
    simulation = Simulation()
    simulation.add("member", LoggingEntity())
    simulation.run(executor=executor, observer=listener)
    scheduler = Scheduler(2, [(0, 1)], Watching, seed=SEED)
    scheduler.start_all_nodes()
    scheduler.run(executor=executor, observer=listener)
    agents = ForwardSimulation(Minkowski(2), executor=executor, seed=SEED)
    with agents:
        WatchingAgent().after(1.0, WatchingAgent.look)
        WatchingAgent().after(1.0, WatchingAgent.look)
    agents.run(until=2.0, observer=listener)
    assert [agent.drawn for agent in agents.agents.values()] == [expected("agent", name) for name in agents.agents]  # type: ignore[attr-defined]
    assert [text for _, text in listener.heard] == 5 * [LINE]
    return [node.drawn for node in scheduler.nodes]


def test_nodes_and_agents_do_and_all_have_a_log() -> None:
    drawn = watched("inline")
    assert len({number for numbers in drawn for number in numbers}) == 8
    assert watched("processes(2)") == drawn


def test_the_log_of_an_entity_is_in_no_digest_and_needs_nobody_who_looks_on() -> None:
    class Quiet(Entity):
        def start(self) -> None:
            self.log("not told")

    class Silent(Entity):
        def start(self) -> None:
            pass

    digests = set()
    for kind in (Quiet, Silent):
        simulation = Simulation()
        simulation.add("a", kind())
        digests.add(simulation.run().digest)
    assert len(digests) == 1


def test_nobody_logs_for_somebody_else() -> None:
    simulation = Simulation()
    entity = LoggingEntity()
    simulation.add("a", entity)
    with pytest.raises(UsageError, match="isn't part of a simulation yet"):
        entity.log("too early")


def test_participants_log_as_all_members_do() -> None:
    reader = LogReader()
    run(Federation({"a": Program(lambda me: me.log("sees a gull"))}), observer=reader)
    assert reader.told == [("a", 0, "sees a gull")]
