"""Simulations as a whole: the seed's ping, ordinary time, liveness, errors, ends, and builds that agree."""

from __future__ import annotations

import gc
from math import inf, nan, sqrt
from pathlib import Path
from typing import Any

import pytest

from tests.spacetime.running import Person, failure, prepared, run
from worldline.model.errors import ConfigurationError, ModelError, Stuck, UsageError
from worldline.spacetime import (
    Agent,
    Channel,
    ForwardSimulation,
    LambdaField,
    Minkowski,
    Shuffled,
    Trajectory,
    below,
)

ROOT = Path(__file__).parents[2]
LOST_AT_MOST_S = 30  # A simulation that hangs is a failure.


class Ping(Agent):
    def ping(self) -> None:
        self.log("ping")
        self.other.send(Ping.ping)


def pair(first: Agent, second: Agent, **options: Any) -> None:
    first.other, second.other = Channel(first, second, **options), Channel(second, first, **options)


# -- Ping


@pytest.mark.parametrize("c", [0.0, 0.25, 3.0])
def test_ping_alternates_at_the_pace_of_the_field(c: float) -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Ping(), Ping()
        alice.jump_to((0, 0, 0, 0))
        bob.jump_to((0, 0, 0, 1))
        pair(alice, bob)
        alice.ping()

    result, _ = run(set_up, until=100, n=4, field=LambdaField(c=c))
    pings = [record for record in result.records if record.kind == "log"]
    step = sqrt(1 + c)  # Δt² − 1 = c
    assert [record.at[0] for record in pings] == pytest.approx([step * number for number in range(len(pings))])
    assert [record.at[3] for record in pings] == [number % 2 for number in range(len(pings))]
    assert len(pings) == -int(-100 // step)
    assert result.events == len(pings) - 1
    assert str(result) == f"{result.events:,} events, digest {result.digest.hex()}"


# -- One dimension


@pytest.mark.parametrize(
    ("field", "latency"), [(LambdaField(R=(2.5,)), 2.5), (LambdaField(c=9), 3.0), (LambdaField(R=(1,), c=4), 3.0)]
)
def test_one_dimension_is_ordinary_time_with_a_latency(field: LambdaField, latency: float) -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Person(), Person()
        pair(alice, bob)
        alice.tell("at 0")
        alice.after(4.0, "tell", "at 4")
        bob.after(1.25, "tell", "back")

    _, simulation = run(set_up, n=1, field=field)
    assert simulation["Person-2"].times == [latency, 4 + latency]
    assert simulation["Person-1"].times == [1.25 + latency]
    assert field.lookahead == latency


# -- Zero lookahead


def named(error: Any) -> set[str]:
    assert isinstance(error, Stuck)
    assert all(name in str(error) for name in error.facts["agents"])
    assert "R or a c" in str(error)
    return set(error.facts["agents"])


def test_agents_at_one_place_are_told_that_they_have_no_lookahead() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob, carol, dave = Ping(), Ping(), Ping(), Ping()
        carol.jump_to((0, 5))
        dave.jump_to((0, 7))
        pair(carol, dave)
        pair(alice, bob)
        carol.ping()

    assert named(failure(set_up)) == {"Ping-1", "Ping-2"}


@pytest.mark.parametrize(("speed", "blind"), [(0.01, False), (0.5, True), (0.9, False), (0.99999, True)])
def test_agents_that_meet_are_told_that_they_have_no_lookahead(speed: float, blind: bool) -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        left, right = Ping(), Ping()
        right.jump_to((0, 0.7))
        left.velocity, right.velocity = simulation.space.velocity(speed), simulation.space.velocity(-speed / 3)
        pair(left, right, blind=blind)

    error = failure(set_up, until=1000)
    assert named(error) == {"Ping-1", "Ping-2"}


def test_who_sends_to_itself_without_lookahead_is_told() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice = Ping()
        alice.other = Channel(alice, alice)
        alice.after(1.0, "ping")

    assert named(failure(set_up)) == {"Ping-1"}


def test_a_channel_that_is_garbage_holds_nobody_up() -> None:
    def forget(person: Agent) -> None:
        circle: list[Any] = [person.other]
        circle.append(circle)
        del person.other

    def set_up(simulation: ForwardSimulation) -> None:
        left, right = Ping(), Ping()
        right.jump_to((0, 2))
        left.velocity = simulation.space.velocity(0.5)
        left.other = Channel(left, right)
        left.after(0.1, forget)

    gc.collect()
    gc.disable()
    try:
        result, _ = run(set_up, until=20)
    finally:
        gc.enable()
    assert result.agents == 2


# -- Liveness


@pytest.mark.parametrize(
    "field",
    [
        LambdaField(R=(1e-3, 0)),
        LambdaField(R=(1e-3, 1e-3)),
        LambdaField(R=(1e-3, -1e-3)),
        LambdaField(c=1e-6),
        LambdaField(R=(1e-3, 5e-4), c=1e-8),
    ],
    ids=str,
)
@pytest.mark.parametrize("speed", [0.0, 0.3, 0.9, 0.9999])
def test_with_any_lookahead_agents_get_through_each_other(field: LambdaField, speed: float) -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        left, right, third = Ping(), Ping(), Ping()
        right.jump_to((0, 0.1 * (speed > 0)))
        third.jump_to((0, 0.05 * (speed > 0)))
        left.velocity, right.velocity = simulation.space.velocity(speed), simulation.space.velocity(-speed)
        pair(left, right)
        third.other = Channel(third, left)
        left.back, right.on = Channel(left, third), Channel(right, third)
        left.ping()

    result, simulation = run(set_up, until=0.5, field=field)
    assert result.events >= 1
    assert simulation["Ping-1"].position == pytest.approx((0.5, 0.5 * speed))
    assert simulation["Ping-2"].position == pytest.approx((0.5, (0.1 - 0.5 * speed) * (speed > 0)))


@pytest.mark.parametrize("place", [0.0, 1e3, 1e6, 1e9, -1e9])
def test_far_from_the_origin_the_same_happens(place: float) -> None:
    field = LambdaField(c=1e-2)

    def begin(simulation: ForwardSimulation, place: float) -> None:
        left, right = Ping(), Ping()
        left.jump_to((abs(place), place))
        right.jump_to((abs(place), place + 2))
        left.velocity = simulation.space.velocity(0.25)
        pair(left, right)
        left.after(0.125, "ping")

    result, _ = run(lambda simulation: begin(simulation, place), until=abs(place) + 10, field=field)
    pings = [record.at[0] - abs(place) for record in result.records if record.kind == "log"]
    nearby, _ = run(lambda simulation: begin(simulation, 0.0), until=10, field=field)
    assert pings == pytest.approx([record.at[0] for record in nearby.records if record.kind == "log"], abs=1e-4)
    assert len(pings) > 10


def test_an_agent_that_nearly_keeps_up_with_light_is_caught() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        alice, bob = Person(), Person()
        bob.jump_to((0, 1))
        bob.velocity = simulation.space.velocity(sqrt(1 - 1e-8))  # γ = 1e4
        alice.other = Channel(alice, bob)
        alice.tell("wait!")

    _, simulation = run(set_up, until=1e9)
    (time,) = simulation["Person-2"].times
    assert time == pytest.approx(2e8, rel=1e-6)


# -- Errors in agents


def test_the_failure_that_is_first_in_the_lab_is_reported() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        early, late, idle = Person(), Person(), Person()
        early.jump_to((0, 1))
        idle.jump_to((0, 2))
        late.other = Channel(late, early, blind=True)
        idle.other = Channel(idle, early, blind=True)
        for second in range(1, 10):
            late.after(second, "hear")
        late.after(10.0, "fail", "late")
        idle.after(30.0, "hear")
        early.after(7.0, "fail", "early")

    error = failure(set_up)
    assert isinstance(error, ModelError)
    assert error.participant == "Person-1"
    assert "ValueError: early, in fail at (7, 1)" in str(error)
    assert isinstance(error.__cause__, ValueError)


def test_what_an_agent_does_wrong_is_the_models_fault_whatever_it_raises() -> None:
    def leave(person: Person) -> None:
        raise SystemExit(3)

    def misuse(person: Person) -> None:
        person.after(-1, "hear")

    def set_up(simulation: ForwardSimulation) -> None:
        Person().after(1.0, function)

    function: Any = leave
    assert isinstance(failure(set_up), ModelError)
    function = misuse
    refused = failure(set_up)
    assert isinstance(refused, ModelError)
    assert f"test_simulation.py, line {misuse.__code__.co_firstlineno + 1}: use a positive number" in str(refused)
    function = "nonsense"
    with pytest.raises(UsageError, match="has no method 'nonsense'"):
        failure(set_up)


# -- Ends and misuse


def test_a_failure_names_the_line_of_its_author() -> None:
    class Reader(Ping):
        def ping(self) -> None:
            int("no number")

    simulation = ForwardSimulation(Minkowski(2))
    with simulation:
        reader = Reader()
        reader.after(1.0, Reader.ping)
    line = Reader.ping.__code__.co_firstlineno + 1
    with pytest.raises(ModelError, match=rf"Reader\.ping at .* \(test_simulation\.py, line {line}\)"):
        simulation.run(until=2)


def test_a_run_has_an_end() -> None:
    for until in (None, nan, inf, "5", True, [1]):
        simulation = prepared(lambda _: None, "inline")
        with pytest.raises(UsageError, match="end"):
            simulation.run(until)


def test_an_end_that_takes_nobody_out_is_found() -> None:
    simulation = prepared(lambda _: Person(), "inline", boundary=below(2, 0, 10, "stop"))
    with pytest.raises(ModelError, match="Person-1"):
        simulation.run()


def test_a_simulation_runs_once() -> None:
    simulation = prepared(lambda _: Person(), "inline")
    simulation.run(until=1)
    with pytest.raises(UsageError, match="over"):
        simulation.run(until=2)
    with pytest.raises(UsageError, match="over"), simulation:
        pass


def test_setting_up_can_go_on_and_simulations_can_be_nested() -> None:
    outer, inner = ForwardSimulation(Minkowski(2)), ForwardSimulation(Minkowski(3))
    with outer:
        first = Person()
        with inner:
            assert Person().name == "Person-1"
            assert len(inner["Person-1"].position) == 3
        assert Person().name == "Person-2"
    with outer:
        first.jump_to((0, -9))
        assert Person().name == "Person-3"
    assert outer.run(until=1).agents == 3
    assert inner.run(until=1).agents == 1


def test_an_event_can_run_a_simulation_of_its_own() -> None:
    class Thinker(Person):
        def think(self) -> None:
            imagined = ForwardSimulation(Minkowski(2))
            with imagined:
                Person().after(1.0, "hear", "in a dream")
            imagined.run(until=2)
            self.heard += imagined["Person-1"].heard
            assert Person().name == f"{self.name}/Person-1"

    _, simulation = run(lambda _: Thinker().after(1.0, "think"))
    assert simulation["Thinker-1"].heard == ["in a dream"]


@pytest.mark.parametrize(
    "options",
    [
        {"space": 4},
        {"field": 3},
        {"field": LambdaField(R=(1, 0, 0))},
        {"seed": "x"},
        {"seed": 2**63},
        {"seed": True},
        {"boundary": below(3, 1, 1)},
        {"executor": "nonsense"},
    ],
)
def test_configurations_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ForwardSimulation(**{"space": Minkowski(2), **options})


def test_the_seed_is_part_of_the_result_where_it_matters() -> None:
    def set_up(simulation: ForwardSimulation) -> None:
        Person().after(1.0, lambda person: person.after(1 + person.random.random(), "hear"))

    digests = [run(set_up, seed=seed)[0].digest for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


def test_what_agents_do_is_in_the_digest() -> None:
    def digest(**changes: Any) -> bytes:
        told = {"what": "a", "at": (0.0, 2.0), "speed": 0.0, "closes": False, "delay": 1.0, **changes}

        def set_up(simulation: ForwardSimulation) -> None:
            alice, bob = Person(), Person()
            bob.jump_to(told["at"])
            bob.velocity = simulation.space.velocity(told["speed"])
            alice.other = Channel(alice, bob)
            alice.after(told["delay"], "tell", told["what"])
            if told["closes"]:
                alice.after(5.0, lambda person: person.other.close())
            else:
                alice.after(5.0, lambda person: None)

        return run(set_up)[0].digest

    digests = [
        digest(),
        digest(what="b"),
        digest(at=(0.0, 2.0000000001)),
        digest(speed=1e-9),
        digest(closes=True),
        digest(delay=1.0000000001),
    ]
    assert len(set(digests)) == len(digests)


def test_agents_that_share_what_is_not_sent_are_caught_by_shuffling() -> None:
    shared: list[str] = []

    class Leaky(Person):
        def look(self) -> None:
            shared.append(self.name)
            self.other.send(Person.hear, len(shared))

    def set_up(simulation: ForwardSimulation) -> None:
        shared.clear()
        for place in range(4):
            leaky, other = Leaky(), Person()
            leaky.jump_to((0, 10 * place))
            other.jump_to((0, 10 * place + 1))
            leaky.other = Channel(leaky, other)
            leaky.after(1.0, "look")

    digests = {prepared(set_up, Shuffled(seed)).run(until=20).digest for seed in range(6)}
    assert len(digests) > 1


def test_an_agent_that_isnt_there_is_refused_with_the_nearest_name() -> None:
    simulation = ForwardSimulation(Minkowski(2))
    with simulation:
        Agent().name = "probe"
    with pytest.raises(UsageError, match=r"there is no agent named 'prob' \(did you mean 'probe'\?\)"):
        simulation["prob"]


def test_a_run_doesnt_end_before_it_begins() -> None:
    with pytest.raises(UsageError, match=r"a run can't end at -1: it begins at 0"):
        ForwardSimulation(Minkowski(2)).run(until=-1)


def test_public_objects_say_what_they_are() -> None:
    simulation = ForwardSimulation(Minkowski(2))
    with simulation:
        person = Person()
    assert repr(simulation) == "<ForwardSimulation of 1 agent in Minkowski(2)>"
    assert repr(person) == "<Person Person-1 at (0, 0)>"
    assert repr(below(2, 1, 5)) == "<Boundary x1 < 5>"
    assert repr(Trajectory(person.position, person.velocity)) == "<Trajectory from (0, 0) with (1, 0)>"
