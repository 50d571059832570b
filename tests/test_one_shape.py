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


class DrawingNode(Node):
    drawn: tuple[float, ...] = ()

    def execute(self, event: Event) -> None:
        self.drawn = (*self.drawn, *drawn_by(self))


def test_nodes_do_on_every_executor() -> None:
    drawn = []
    for executor in ("inline", "processes(2)"):
        scheduler = Scheduler(2, [(0, 1)], DrawingNode, seed=SEED)
        scheduler.start_all_nodes()
        run(scheduler, executor=executor)
        drawn.append([node.drawn for node in scheduler.nodes])
    assert drawn[0] == drawn[1]
    assert len({number for numbers in drawn[0] for number in numbers}) == 8


class DrawingAgent(Agent):
    def draw(self) -> None:
        self.drawn = drawn_by(self)


def test_agents_do_on_every_executor() -> None:
    for executor in ("inline", "processes(2)"):
        simulation = ForwardSimulation(Minkowski(2), executor=executor, seed=SEED)
        with simulation:
            DrawingAgent().after(1.0, DrawingAgent.draw)
            DrawingAgent().after(1.0, DrawingAgent.draw)
        simulation.run(until=2.0)
        for name, agent in simulation.agents.items():
            assert isinstance(agent, DrawingAgent)
            assert agent.drawn == expected("agent", name)


LINE = "sees a gull"


class Listener(Observer):
    """Keeps the lines that members log."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if topic == LOG:
            assert payload is not None
            self.heard.append((who, json.loads(payload).get("text", detail and detail.what)))


class LoggingEntity(Entity):
    def start(self) -> None:
        self.log(LINE)


class LoggingNode(Node):
    def execute(self, event: Event) -> None:
        self.log(LINE)


class LoggingAgent(Agent):
    def look(self) -> None:
        self.log(LINE)


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_all_have_a_log(executor: str) -> None:
    listener = Listener()
    simulation = Simulation()
    simulation.add("member", LoggingEntity())
    simulation.run(executor=executor, observer=listener)
    scheduler = Scheduler(1, [], LoggingNode)
    scheduler.start_all_nodes()
    scheduler.run(executor=executor, observer=listener)
    agents = ForwardSimulation(Minkowski(2), executor=executor)
    with agents:
        LoggingAgent().after(1.0, LoggingAgent.look)
    agents.run(until=2.0, observer=listener)
    assert [text for _, text in listener.heard] == 3 * [LINE]


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
