"""What agents are shown as: noted when it changes, on whatever executes it, and without changing what happens."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spacetime.running import prepared, run
from tests.spacetime.walkers import make_world, simulation_of
from worldline.model.errors import ModelError, UsageError, WorldlineError
from worldline.spacetime import Agent, AgentRecord, AgentWrapper, Channel, ForwardSimulation, Minkowski


class Bulb(Agent):
    """Is switched on and off."""

    shown_as: Any = "off"

    def switch(self, shown_as: Any) -> None:
        self.shown_as = shown_as


def looks(records: list[AgentRecord]) -> list[tuple[str, float, str]]:
    return [(record.agent, record.at[0], record.what) for record in records if record.kind == "shown"]


def classes(records: list[AgentRecord]) -> dict[str, str]:
    return {record.agent: record.what for record in records if record.kind == "born"}


def test_a_change_is_noted_where_it_happens() -> None:
    def set_up(_: ForwardSimulation) -> None:
        bulb = Bulb()
        bulb.after(1.0, Bulb.switch, "on")
        bulb.after(2.0, Bulb.switch, "on")
        bulb.after(3.0, Bulb.switch, "off")

    result, _ = run(set_up)
    assert classes(result.records) == {"Bulb-1": "Bulb"}
    assert looks(result.records) == [("Bulb-1", 0.0, "off"), ("Bulb-1", 1.0, "on"), ("Bulb-1", 3.0, "off")]


class Mother(Agent):
    """Makes somebody who is ill from the beginning, and somebody who dies at once."""

    def bear(self) -> None:
        child = Bulb()
        child.shown_as = "ill"
        child.after(5.0, Bulb.switch, "well")
        child.jump_to((self.position.t + 1, *self.position[1:]))
        Bulb().die()


def test_who_is_made_in_an_event_is_looked_at_too() -> None:
    result, _ = run(lambda _: Mother().after(1.0, Mother.bear))
    assert classes(result.records)["Mother-1/Bulb-1"] == "Bulb"
    assert looks(result.records) == [("Mother-1/Bulb-1", 2.0, "ill"), ("Mother-1/Bulb-1", 7.0, "well")]


class Dog:
    """Isn't an agent."""

    shown_as = "awake"

    def sleep(self) -> None:
        self.shown_as = "asleep"


def test_what_is_wrapped_says_it_itself() -> None:
    def set_up(_: ForwardSimulation) -> None:
        AgentWrapper(Dog()).after(1.0, "sleep")
        AgentWrapper([])

    result, _ = run(set_up)
    assert classes(result.records) == {"AgentWrapper-1": "Dog", "AgentWrapper-2": "list"}
    assert looks(result.records) == [("AgentWrapper-1", 0.0, "awake"), ("AgentWrapper-1", 1.0, "asleep")]


@pytest.mark.parametrize("seed", [1, 4])
def test_whether_it_is_looked_at_changes_nothing(seed: int) -> None:
    traced = simulation_of(make_world(seed), "inline").run(until=12.0)
    assert len(looks(traced.records)) > 5
    assert simulation_of(make_world(seed), "inline", trace=False).run(until=12.0).digest == traced.digest


class Gambler(Agent):
    """Draws when it is looked at."""

    other: Channel
    drawn: tuple[float, ...] = ()

    def shown_as(self) -> str:
        return f"{self.random.random():.3f} at {self.position.t:g}"

    def draw(self) -> None:
        self.drawn = (*self.drawn, self.random.random())


def test_draws_for_a_picture_arent_missing_elsewhere() -> None:
    drawn = []
    for trace in (False, True):
        simulation = ForwardSimulation(Minkowski(1), trace=trace)
        with simulation:
            gambler = Gambler()
            gambler.draw()
            gambler.after(1.0, Gambler.draw)
        simulation.run(until=2.0)
        drawn.append(gambler.drawn)
    assert drawn[0] == drawn[1]


class Talker(Agent):
    """Does something when it is looked at, which it can't."""

    what: Any = None

    def shown_as(self) -> Any:
        return self.what if self.what is None or not callable(self.what) else self.what(self)

    def become(self, what: str) -> None:
        self.what = _DEEDS[what]


def _raise(error: BaseException) -> None:
    raise error


_DEEDS: dict[str, Any] = {
    "number": 4,
    "error": lambda _: 1 / 0,
    "log": lambda agent: agent.log("I am seen"),
    "timer": lambda agent: agent.after(1.0, "become", "number"),
    "child": lambda _: Bulb(),
    "exit": lambda _: exit(3),
    "interrupt": lambda _: _raise(KeyboardInterrupt()),
    "end of a generator": lambda _: _raise(GeneratorExit()),
}


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("number", "it wants to be shown as 4"),
        ("error", "ZeroDivisionError: division by zero"),
        ("log", "Talker-1 can't log: no agent acts now"),
        ("timer", "Talker-1 can't wait: no agent acts now"),
        ("child", "a Bulb is made outside of a simulation"),
        ("exit", "SystemExit: 3"),
        ("interrupt", "KeyboardInterrupt"),
        ("end of a generator", "GeneratorExit"),
    ],
)
def test_who_does_more_than_say_it_has_failed(deed: str, words: str) -> None:
    def set_up(_: ForwardSimulation) -> None:
        talker = Talker()
        talker.what = "quiet"
        talker.after(1.0, Talker.become, deed)

    simulation = prepared(set_up, "inline")
    with pytest.raises(WorldlineError) as caught:
        simulation.run(until=5.0)
    assert caught.value.participant == "Talker-1"
    assert words in str(caught.value)
    assert "in shown_as at (1, 0)" in str(caught.value)
    assert simulation.records_of_failure is not None
    assert [each.kind for each in simulation.records_of_failure][-2:] == ["timer", "failed"]


def test_a_mistake_before_the_first_event_is_told() -> None:
    with pytest.raises(ModelError, match=r"Talker-1 at 0s: it wants to be shown as None, in shown_as at \(0, 0\) \("):
        prepared(lambda _: Talker(), "inline").run(until=1.0)

    def leave(_: ForwardSimulation) -> None:
        Talker().what = _DEEDS["exit"]

    with pytest.raises(ModelError, match=r"Talker-1 at 0s: SystemExit: 3, in shown_as at \(0, 0\)"):
        prepared(leave, "inline").run(until=1.0)

    def break_off(_: ForwardSimulation) -> None:
        Talker()
        raise UsageError("this one is told")

    with pytest.raises(UsageError, match="this one is told"):
        prepared(break_off, "inline")
