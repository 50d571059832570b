"""Agents that are made during a run: their names, however many generations went before, and what stays of the dead."""

from __future__ import annotations

import gc
import re
import tracemalloc
from typing import Any

import pytest

from tests.spacetime.running import Person, prepared, run
from worldline.kernel import processes
from worldline.model.errors import ModelError, UsageError
from worldline.spacetime import Agent, Channel, ForwardSimulation, LambdaField, Minkowski, RemoteReference, Shuffled

NEAR = LambdaField(c=1.0)
EXECUTORS = ("inline", Shuffled(3), processes(2, placement={"m": 0, "s": 1, "t": 1}))


class Heir(Agent):
    """Has an heir, and dies."""

    def follow(self, left: int) -> None:
        self.log(self.name)
        if left:
            heir = Heir()
            if left % 2:
                heir.name = "the next"
            heir.after(0.01, "follow", left - 1)
            self.die()


def dynasties(executor: Any) -> ForwardSimulation:
    simulation = ForwardSimulation(Minkowski(2), NEAR, executor=executor, trace=True)
    with simulation:
        for place, name in enumerate("ms"):
            founder = Heir()
            founder.name = name
            founder.jump_to((0, place))
            founder.after(1.0, "follow", 300 + place)
    return simulation


def test_a_lineage_has_no_end_and_names_stay_short() -> None:
    digests = []
    for executor in EXECUTORS:
        simulation = dynasties(executor)
        result = simulation.run(until=20)
        digests.append(result.digest.hex())
        names = [record.what for record in result.records if record.kind == "log" and record.agent[0] == "m"]
        assert len(set(names)) == 301
        assert names[1:3] == ["m/Heir-1", "m/Heir-1/the next"]
        first = next(place for place, name in enumerate(names) if len(name) > 240)
        assert all(re.fullmatch("m/~[0-9a-f]{32}/(Heir-1|the next)", name) for name in names[first + 2 :])
        assert sorted(simulation.agents) == ["m", names[-1], "s", *(each for each in simulation.agents if "s/" in each)]
        assert result.agents == 603
    assert digests == ["91a12be0d9700906aba2830fe84321dc"] * 3


class Mother(Agent):
    def bear(self, left: int) -> None:
        Channel(self, Person()).send(Person.die)
        if left:
            self.after(0.01, "bear", left - 1)


def test_of_the_dead_little_is_kept() -> None:
    simulation = ForwardSimulation(Minkowski(2), NEAR)
    with simulation:
        mother = Mother()
        mother.name = "m"
        mother.after(1.0, "bear", 1_500)
    core = simulation._core
    core.trace = None  # As in a run that nobody looks at.
    most = 0
    kept = []
    tracemalloc.start()
    try:
        for births in (500, 1_200):
            while len(core.register.graves) < births:
                assert core.run(50)
                most = max(most, len(core.register.bodies) + len(core.lanes))
            gc.collect()
            kept.append(tracemalloc.get_traced_memory()[0] - core.register.graves.__sizeof__())
    finally:
        tracemalloc.stop()
    assert most < 600  # Those who have heard that they die, and haven't yet.
    assert kept[1] - kept[0] < 700 * 300
    assert len(core.register.elsewhere) < 10  # Somebody who has just died may still be referred to.


def test_who_died_is_in_the_result_and_not_among_the_agents() -> None:
    def set_up(_: ForwardSimulation) -> None:
        mother, brief = Mother(), Person()
        mother.after(1.0, "bear", 2)
        brief.after(1.0, "die")

    result, simulation = run(set_up, field=NEAR)
    assert list(result.members) == [
        "Mother-1",
        *(f"Mother-1/Person-{each}" for each in (1, 2, 3)),
        "Person-1",
    ]
    assert list(simulation.agents) == ["Mother-1", "Person-1"]  # One from before the run stays to be looked at.
    with pytest.raises(
        UsageError, match=r"'Mother-1/Person-2' \(one that is made during a run is gone when it has died"
    ):
        simulation["Mother-1/Person-2"]


class Maker(Agent):
    """Makes clients of a server, and notes how much its core has to do with."""

    def go(self, left: int) -> None:
        self.sizes = sizes(self)
        for _ in range(5):
            Channel(self, Client()).send(Client.begin, self.server.target())
        if left:
            self.after(1.0, "go", left - 1)


class Client(Agent):
    def begin(self, server: RemoteReference) -> None:
        self.to_server = Channel(self, server)
        self.to_server.send(Server.hello, self.reference())

    def bye(self) -> None:
        self.die()


class Server(Agent):
    def hello(self, client: RemoteReference) -> None:
        self.sizes = sizes(self)
        Channel(self, client).send(Client.bye)


def sizes(agent: Agent) -> int:
    core = agent._wl_core
    gc.collect(0)  # What has been let go, and refers to itself.
    return len(core.register.bodies) + len(core.register.elsewhere) + len(core.lanes)


@pytest.mark.once
@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_the_dead_are_forgotten_by_those_who_had_to_do_with_them(executor: Any) -> None:
    simulation = ForwardSimulation(Minkowski(2), NEAR, executor=executor)
    with simulation:
        maker, server = Maker(), Server()
        maker.name, server.name = "m", "s"
        server.jump_to((0, 1))
        maker.server = Channel(maker, server)
        maker.after(1.0, "go", 100)
    result = simulation.run(until=150)
    assert result.agents == 2 + 505
    assert max(maker.sizes, server.sizes) < 300
    assert result.digest.hex() == "899b7bc97f584342dd2182da62a2b564"


class Keeper(Agent):
    """Keeps references to those who may be dead when it uses them."""

    def __init__(self) -> None:
        self.kept: list[RemoteReference] = []
        self.seen: list[tuple[float, bool]] = []

    def keep(self, reference: RemoteReference) -> None:
        self.kept.append(reference)

    def use(self) -> None:
        self.channels = [Channel(self, each) for each in self.kept]
        for each in self.channels:
            each.send(Person.hear, "is anybody there?")
        self.look()

    def look(self) -> None:
        self.seen += [(self.position.t, each.is_open) for each in self.channels]
        if self.position.t < 40:
            self.after(2.0, "look")

    def pass_on(self) -> None:
        for each in self.kept:
            self.other.send(Keeper.keep, each)


class Parent(Agent):
    def bear(self) -> None:
        child = Person()
        self.to_keeper.send(Keeper.keep, Channel(self, child).target())
        Channel(self, child).send(Person.die)


@pytest.mark.once
@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_who_asks_for_one_who_is_long_dead_learns_of_its_death(executor: Any) -> None:
    simulation = ForwardSimulation(Minkowski(2), NEAR, executor=executor)
    with simulation:
        parent, keeper, other = Parent(), Keeper(), Keeper()
        parent.name, keeper.name, other.name = "m", "s", "t"
        keeper.jump_to((0, 3))
        other.jump_to((0, 5))
        parent.to_keeper, keeper.other = Channel(parent, keeper), Channel(keeper, other)
        parent.after(1.0, "bear")
        keeper.after(20.0, "use")
        keeper.after(15.0, "pass_on")
        other.after(30.0, "use")
    simulation.run(until=60)
    assert keeper.seen == [(20.0, True), *((time, False) for time in range(22, 42, 2))]
    assert other.seen == [(30.0, True), *((time, False) for time in range(32, 42, 2))]


# -- Names that somebody gives


def test_what_stands_for_a_makers_name_can_not_be_given() -> None:
    with ForwardSimulation(Minkowski(2)):
        person = Person()
        with pytest.raises(UsageError, match="~ and a hash stand for a maker's name"):
            person.name = "~" + "0a" * 16
        person.name = "~"


def test_the_name_of_one_who_is_dead_is_not_given_again() -> None:
    class Careless(Agent):
        def bear(self) -> None:
            child = Person()
            child.name = "kim"
            Channel(self, child).send(Person.die)

    simulation = ForwardSimulation(Minkowski(2), NEAR)
    with simulation:
        careless = Careless()
        careless.after(1.0, "bear")
        careless.after(9.0, "bear")
    with pytest.raises(ModelError, match="there is an agent named 'kim' already"):
        simulation.run(until=20)


def test_a_class_whose_name_looks_like_a_lineage_is_refused() -> None:
    with ForwardSimulation(Minkowski(2)), pytest.raises(UsageError, match="a class named 'a/b' can't name agents"):
        type("a/b", (Agent,), {})()


# -- Names that agents have


@pytest.mark.parametrize("name", ["position", "local_time", "random", "space"])
def test_what_an_agent_is_given_is_not_its_own_to_set(name: str) -> None:
    with ForwardSimulation(Minkowski(2)):
        person = Person()
        with pytest.raises(
            UsageError, match=f"an agent's {name} can't be set .*call your own attribute something else"
        ):
            setattr(person, name, 1)


@pytest.mark.parametrize("own", [{"position": 1}, {"__slots__": ("random",)}, {"log": []}, {"name": property()}])
def test_a_class_that_hides_what_every_agent_has_is_refused(own: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"Car has an attribute .* of its own, which hides that of every agent"):
        type("Car", (Agent,), own)


def test_an_attribute_that_hides_a_method_is_named_when_that_goes_wrong() -> None:
    def set_up(_: ForwardSimulation) -> None:
        person: Any = Person()
        person.log = []
        person.after(1.0, lambda me: me.log("hello"))

    with pytest.raises(ModelError, match="its attribute log hides the method of that name"):
        prepared(set_up, "inline").run(until=3)


def test_a_number_that_was_given_is_used_once() -> None:
    with ForwardSimulation(Minkowski(2)):
        person, other = Person(), Person()
        for name in ("Person-1", "Person-2"):
            with pytest.raises(UsageError, match=f"there is an agent named '{name}' already"):
                other.name = name
        other.name = "Person-4"
        assert [Person().name for _ in range(2)] == ["Person-3", "Person-5"]
        person.name = "Person-06"
