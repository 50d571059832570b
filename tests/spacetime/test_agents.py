"""Agents: where they are, how they move, births, deaths, names, draws, timers, jumps, and objects that are wrapped."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from tests.spacetime.running import Person, failure, run
from worldline.model.errors import ModelError, UsageError
from worldline.spacetime import Agent, AgentWrapper, Channel, ForwardSimulation, LambdaField, Minkowski, current

NEAR = LambdaField(c=1.0)


# -- Names


def test_agents_are_named_by_their_kind_in_the_order_of_their_makers() -> None:
    class Parent(Agent):
        def bear(self) -> None:
            for _ in range(2):
                child = Person()
                assert child.name.startswith(f"{self.name}/Person-")

    def set_up(simulation: ForwardSimulation) -> None:
        names = [Person().name, Parent().name, Person().name]
        assert names == ["Person-1", "Parent-1", "Person-2"]
        simulation["Parent-1"].after(1.0, "bear")

    result, simulation = run(set_up)
    assert list(result.members) == [
        "Parent-1",
        "Parent-1/Person-1",
        "Parent-1/Person-2",
        "Person-1",
        "Person-2",
    ]
    assert simulation["Parent-1/Person-2"].name == "Parent-1/Person-2"
    assert result.agents == 5


def test_an_agent_can_be_named_before_anybody_knows_it() -> None:
    with ForwardSimulation(Minkowski(2)) as simulation:
        person, other = Person(), Person()
        person.name = "alice"
        assert simulation["alice"] is person
        with pytest.raises(UsageError, match="'alice' already"):
            other.name = "alice"
        to = Channel(person, other)
        with pytest.raises(UsageError, match="known already"):
            person.name = "bob"
        for wrong in ("", "a/b\n", 3):
            with pytest.raises(UsageError):
                other.name = wrong
        to.close()


# -- Who acts


def test_agents_are_made_in_simulations() -> None:
    with pytest.raises(UsageError, match="Person is made outside of a simulation"):
        Person()


@pytest.mark.parametrize(
    "act",
    [
        lambda agent: setattr(agent, "velocity", (1, 0)),
        lambda agent: agent.jump_to((10, 0)),
        lambda agent: agent.after(1.0, "hear"),
        lambda agent: agent.die(),
        lambda agent: agent.log("x"),
        lambda agent: agent.reference(),
        lambda agent: setattr(agent, "name", "x"),
    ],
)
def test_only_the_agent_that_acts_can_do_things(act: Any) -> None:
    class Meddler(Agent):
        def meddle(self) -> None:
            with pytest.raises(UsageError, match=r"Person-1 can't .*: Meddler-1 acts now"):
                act(victims[-1])
            self.log("was refused")

    victims: list[Person] = []

    def set_up(simulation: ForwardSimulation) -> None:
        victims.append(Person())
        Meddler().after(1.0, "meddle")

    result, simulation = run(set_up)
    assert [record.what for record in result.records if record.kind == "log"] == ["was refused"]
    with pytest.raises(ModelError, match="the run is over"):
        act(simulation["Person-1"])
    with ForwardSimulation(Minkowski(2)):
        person = Person()
    with pytest.raises(UsageError, match="no agent acts now"):
        act(person)


def test_current_is_the_agent_that_acts() -> None:
    class Thing:
        def __init__(self) -> None:
            self.done: list[Any] = []

        def do(self, what: str) -> None:
            agent = current()
            self.done.append((what, agent.name, tuple(agent.position)))
            if what == "turn":
                agent.velocity = agent.space.velocity(-0.5)

    def set_up(simulation: ForwardSimulation) -> None:
        wrapped, person = AgentWrapper(Thing()), Person()
        assert isinstance(wrapped.object, Thing)
        person.jump_to((0, 3))
        to = person.to = Channel(person, wrapped)
        to.send("do", "turn")
        to.send(Thing.do, "more")
        to.send(lambda thing: thing.do("last"))
        wrapped.after(1.0, "do", "early")

    _, simulation = run(set_up)
    here = ("AgentWrapper-1", (3.0, 0.0))
    assert simulation["AgentWrapper-1"].object.done == [
        ("early", "AgentWrapper-1", (1.0, 0.0)),
        ("turn", *here),
        ("more", *here),
        ("last", *here),
    ]
    with pytest.raises(UsageError, match="no agent acts now"):
        current()


# -- Births


class Founder(Person):
    def found(self) -> None:
        child = Person()
        assert child.position == self.position
        assert child.velocity == (1, 0)
        assert child.local_time == 0
        child.jump_to(self.position + self.space.point(2, 1))
        child.velocity = self.space.velocity(-0.5)
        self.child = Channel(self, child)
        child.other = Channel(child, self)
        self.child.send(Person.tell, "born")


def test_children_begin_where_their_makers_are_and_may_jump_from_there() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        founder = Founder()
        founder.jump_to((1, 5))
        founder.after(2.0, "found")

    result, simulation = run(set_up, field=NEAR)
    child, founder = simulation["Founder-1/Person-1"], simulation["Founder-1"]
    birth = next(record for record in result.records if record.agent == child.name)
    assert (birth.kind, birth.at, birth.peer) == ("born", (3.0, 5.0), "Founder-1")
    assert founder.heard == ["born"]
    assert child.velocity == (2 / 3**0.5, pytest.approx(-1 / 3**0.5))
    # They are where the run ended.
    assert child.position[0] == founder.position[0] == 50.0
    assert founder.local_time == pytest.approx(49)


def test_a_child_is_its_makers_for_one_event_only() -> None:
    class Parent(Agent):
        def bear(self) -> None:
            self.child = Person()
            self.after(1.0, "meddle")

        def meddle(self) -> None:
            self.child.velocity = (1.25, 0.75)

    def set_up(simulation: ForwardSimulation) -> None:
        Parent().after(1.0, "bear")

    assert "Parent-1/Person-1 can't turn: Parent-1 acts now" in str(failure(set_up))


# -- Deaths


def test_what_is_under_way_to_the_dead_vanishes() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Person(), Person()
        bob.jump_to((0, 10))
        alice.other = Channel(alice, bob)
        alice.after(1.0, "tell", "in time")
        alice.after(5.0, "tell", "too late")
        bob.after(12.0, "die")

    _, simulation = run(set_up)
    assert simulation["Person-2"].heard == ["in time"]
    assert simulation["Person-2"].position == (12, 10)


def test_the_dead_do_nothing_more() -> None:
    class Ghost(Person):
        def haunt(self) -> None:
            self.after(1.0, "hear", "after")
            self.die()
            for act in (
                self.die,
                lambda: self.log("boo"),
                lambda: self.after(1.0, "hear"),
                lambda: Channel(self, self),
            ):
                with pytest.raises((ModelError, UsageError)):
                    act()
            with pytest.raises(ModelError, match="closed"):
                self.other.send(Person.hear)
            self.heard.append("done")

    def set_up(simulation: ForwardSimulation) -> None:
        ghost, person = Ghost(), Person()
        person.jump_to((0, 1))
        ghost.other = Channel(ghost, person)
        ghost.after(1.0, "haunt")

    _, simulation = run(set_up)
    assert simulation["Ghost-1"].heard == ["done"]
    assert simulation["Person-1"].heard == []


def test_an_agent_can_die_before_the_run_and_at_its_birth() -> None:
    class Parent(Person):
        def bear(self) -> None:
            child = Person()
            self.child = Channel(self, child)
            child.die()
            self.after(5.0, "look")

        def look(self) -> None:
            self.heard.append(self.child.is_open)

    def set_up(simulation: ForwardSimulation) -> None:
        Person().die()
        Parent().after(1.0, "bear")

    result, simulation = run(set_up, field=NEAR)
    assert simulation["Parent-1"].heard == [False]
    assert [record.agent for record in result.records if record.kind == "died"] == ["Person-1", "Parent-1/Person-1"]


# -- Draws


def test_draws_depend_on_the_agent_alone() -> None:
    class Gambler(Agent):
        def play(self, times: int) -> None:
            self.drawn = [self.random.random() for _ in range(times)]
            self.log(str(self.drawn))

    def drawn(seed: int, *, others: int) -> list[float]:
        def set_up(simulation: ForwardSimulation) -> None:
            gambler = Gambler()
            gambler.name = "me"
            gambler.after(2.0, "play", 3)
            for _ in range(others):
                Gambler().after(1.0, "play", 5)

        _, simulation = run(set_up, seed=seed)
        found: list[float] = simulation["me"].drawn
        return found

    assert drawn(1, others=0) == drawn(1, others=3) != drawn(2, others=0)


# -- Timers


def test_timers_count_local_time() -> None:
    class Runner(Person):
        def go(self) -> None:
            self.velocity = self.space.velocity(0.6)
            self.after(4.0, "hear", self.local_time)

    def set_up(simulation: ForwardSimulation) -> None:
        runner = Runner()
        runner.after(1.0, "go")
        runner.after(2.0, "hear", "on the way")

    _, simulation = run(set_up)
    runner = simulation["Runner-1"]
    assert runner.heard == ["on the way", 1.0]
    assert runner.times == [2.25, 6.0]
    assert runner.position == (50.0, pytest.approx(49 * 0.6))
    assert runner.local_time == pytest.approx(1 + 49 * 0.8)


@pytest.mark.parametrize("delay", [0, -1, nan, inf, "1", None])
def test_one_can_only_wait_for_a_while(delay: Any) -> None:
    with ForwardSimulation(Minkowski(2)), pytest.raises(UsageError, match="can't wait for"):
        Person().after(delay, "hear")


# -- Movement


def test_a_turn_changes_what_comes_later_and_not_what_was() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        still, runner = Person(), Person()
        runner.jump_to((0, 4))
        still.other = Channel(still, runner)
        still.tell("a")  # At rest, this would come at 4.
        still.after(6.0, "tell", "b")
        runner.after(2.0, lambda agent: setattr(agent, "velocity", agent.space.velocity(0.6)))

    _, simulation = run(set_up)
    # 4 + 0.6 (t − 2) = t: t = 7; 4 + 0.6 (t − 2) = t − 6: t = 22.
    assert simulation["Person-2"].times == pytest.approx([7.0, 22.0])


@pytest.mark.parametrize("goal", [(1, 1.0000001), (2, -2.5), (0.5, 0), (1, 5)])
def test_a_jump_out_of_the_future_is_refused_with_both_points(goal: tuple[float, float]) -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        Person().after(1.0, lambda agent: agent.jump_to(goal))

    error = failure(set_up)
    assert isinstance(error, ModelError)
    assert "isn't in the future of (1, 0)" in str(error)
    assert f"{goal[1]:.12g})" in str(error)
    assert "Person-1" in str(error)


def test_a_jump_along_the_light_cone_is_allowed_and_takes_no_local_time() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        person = Person()
        person.after(1.0, lambda agent: agent.jump_to((6, 5)))
        person.after(2.0, "hear", "a second later")
        person.after(1.5, lambda agent: agent.jump_to(agent.position))

    _, simulation = run(set_up)
    person = simulation["Person-1"]
    assert person.times == [7.0]
    assert person.position == (50, 5)
    assert person.local_time == 45.0


def test_what_a_jump_passes_over_is_absorbed_where_it_lands_in_the_order_of_each_channel() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        left, right, jumper = Person(), Person(), Person()
        left.jump_to((0, -3))
        right.jump_to((0, 4))
        for person in (left, right):
            person.other = Channel(person, jumper)
            for what in range(3):
                person.after(1.0 + what, "tell", (person.name, what))
        jumper.after(2.0, lambda agent: agent.jump_to((12, 1)))

    _, simulation = run(set_up)
    jumper = simulation["Person-3"]
    assert jumper.times == [12.0] * 6
    heard: list[Any] = jumper.heard
    for name in ("Person-1", "Person-2"):
        assert [what for who, what in heard if who == name] == [0, 1, 2]
