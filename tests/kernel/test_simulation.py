"""Simulations: built, run, stepped, added to, and used in ways that they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.kernel.actors import Actor, Loner, Steps, payloads, pending, stage
from worldline.history.outcome import Status
from worldline.kernel import Entity, Interrupt, KernelOutcome, Resource, Signal, Simulation, inline, receive
from worldline.model import (
    FOREVER,
    NS,
    SECOND,
    TIME_MAX,
    ConfigurationError,
    Interrupted,
    ModelError,
    Network,
    Rule,
    UsageError,
    WorldlineError,
    link,
)
from worldline.processes.failures import BreakOff


class Ticker(Entity):
    """Ticks every so often, for so long."""

    def __init__(self, every: int = 10, ticks: int = 10**9) -> None:
        self.every = every
        self.left = ticks
        self.ticks: list[int] = []

    def start(self) -> None:
        self.schedule("tick", delay=self.every)

    def on_tick(self, _: None) -> None:
        self.ticks.append(self.now)
        self.left -= 1
        if self.left:
            self.schedule("tick", delay=self.every)


def ticking(*, seed: int = 0, every: int = 10, ticks: int = 10**9) -> Simulation:
    simulation = Simulation(seed=seed)
    simulation.add("t", Ticker(every, ticks))
    return simulation


# -- Running


def test_a_run_handles_what_happens_before_its_end() -> None:
    simulation = ticking()
    result = simulation.run(until=30)
    assert simulation["t"].ticks == [10, 20]
    assert simulation.now == result.now == 30
    assert result.events == 3
    assert simulation.run(until="0.03us").events == 3  # The same time again: nothing more happens.
    simulation.run(until=31)
    assert simulation["t"].ticks == [10, 20, 30]
    assert simulation.now == 31


def test_a_run_without_an_end_goes_on_until_nothing_happens_any_more() -> None:
    simulation = ticking(ticks=5)
    result = simulation.run()
    assert (result.now, result.events) == (50, 6)
    assert simulation.run() == result


def test_an_empty_simulation_can_be_run() -> None:
    simulation = Simulation()
    assert not simulation.step()
    assert simulation.run().events == 0
    assert simulation.run(until="1h").now == 3600 * SECOND
    assert simulation.run().now == 3600 * SECOND


def test_the_last_time_is_a_time_like_others() -> None:
    simulation = stage(lambda me: me.schedule("x", at=TIME_MAX) and None)
    simulation.run(until=TIME_MAX)
    assert simulation["a"].got == []
    simulation.run()
    assert [message.arrival for message in simulation["a"].got] == [TIME_MAX]
    assert simulation.now == TIME_MAX


def test_a_step_is_one_event() -> None:
    simulation = ticking(ticks=2)
    assert simulation.now == 0
    assert simulation.step()
    assert (simulation.now, simulation["t"].ticks) == (0, [])
    assert simulation.step()
    assert (simulation.now, simulation["t"].ticks) == (10, [10])
    assert simulation.step()
    assert not simulation.step()
    assert not simulation.step()
    assert (simulation.now, simulation.result().events) == (20, 3)


def test_a_result_can_be_had_at_any_time() -> None:
    simulation = ticking()
    before = simulation.result()
    assert (before.now, before.events, before.dropped, before.monitors) == (0, 0, {}, {})
    after = simulation.run(until=55)
    assert simulation.result() == after
    assert before.digest != after.digest
    assert isinstance(after, KernelOutcome)
    assert str(after) == f"6 events, digest {after.digest.hex()}"
    assert re.fullmatch("[0-9a-f]{32}", after.digest.hex())


# -- From outside


def test_messages_from_outside_arrive_when_they_should_in_the_order_they_were_sent() -> None:
    simulation = stage()
    simulation.send("b", "x", 3, at="10ns")
    simulation.send("b", "x", 1, at=5)
    simulation.send("b", "x", 2, at=5)
    simulation.send("b", "x", 0)
    simulation.run()
    assert [(message.arrival, message.payload) for message in simulation["b"].got] == [(0, 0), (5, 1), (5, 2), (10, 3)]
    assert {(message.sender, message.sent) for message in simulation["b"].got} == {("", 0)}


def test_messages_from_outside_can_be_sent_between_runs() -> None:
    simulation = stage()
    simulation.run(until=100)
    simulation.send("b", "x", "now", at=100)
    simulation.send("b", "x", "later", at=150)
    simulation.run()
    assert [(message.arrival, message.sent) for message in simulation["b"].got] == [(100, 99), (150, 100)]


def test_nothing_is_sent_into_the_past_from_outside() -> None:
    simulation = stage()
    simulation.run(until=100)
    with pytest.raises(UsageError, match="'x' can't arrive at 99ns: it is 100ns already"):
        simulation.send("b", "x", at=99)
    simulation.run()
    assert simulation.now == 100
    assert simulation["b"].got == []


@pytest.mark.parametrize(
    ("arguments", "at", "kind", "problem"),
    [
        (("b", "x"), -1, ConfigurationError, "isn't a time"),
        (("b", "x"), 1.5, ConfigurationError, "isn't a time"),
        (("b", "x"), True, ConfigurationError, "isn't a time"),
        (("b", "x"), TIME_MAX + 1, ConfigurationError, "isn't a time"),
        (("b", ""), 0, ConfigurationError, "can't name a topic"),
        (("b", 5), 0, ConfigurationError, "can't name a topic"),
        (("bb", "x"), 0, WorldlineError, "no entity named 'bb' .did you mean 'b'|sent to 'bb', and there is no such"),
        ((None, "x"), 0, WorldlineError, "no entity named None|sent to None, and there is no such"),
        (("b", "x", object()), 0, ModelError, "a message can't carry"),
    ],
)
@pytest.mark.parametrize("is_running", [False, True])
def test_messages_from_outside_that_cannot_be_are_refused(
    arguments: Any, at: Any, kind: type[WorldlineError], problem: str, is_running: bool
) -> None:
    simulation = stage()
    if is_running:
        simulation.run()

    def send_and_run() -> None:
        simulation.send(*arguments, at=at)
        simulation.run()

    with pytest.raises(kind, match=problem):
        send_and_run()


def test_what_comes_from_outside_is_part_of_the_history() -> None:
    def digest(topic: str, payload: Any) -> bytes:
        simulation = stage()
        simulation.send("b", topic, payload)
        return simulation.run().digest

    assert digest("x", 1) == digest("x", 1)
    assert len({digest("x", 1), digest("x", 2), digest("y", 1)}) == 3


def test_a_mistake_that_is_found_when_the_run_begins_can_be_put_right() -> None:
    simulation = stage()
    simulation.send("c", "x")
    with pytest.raises(ConfigurationError, match="'x' is sent to 'c', and there is no such entity"):
        simulation.run()
    simulation.add("c", Actor())
    simulation.run()
    assert len(simulation["c"].got) == 1


# -- Building


@pytest.mark.parametrize("name", ["a", "A", "a b", "a/b", "/", "a//b", "1", "ünï", "x" * 255, "'\"", "..", "a/1/2"])
def test_entities_have_names_that_people_can_read(name: str) -> None:
    simulation = Simulation()
    assert simulation.add(name, Actor()) == name
    simulation.send(name, "x")
    simulation.run()
    assert simulation[name].name == name
    assert len(simulation[name].got) == 1
    assert name in simulation
    assert repr(simulation[name]) == f"<Actor {name}>"


@pytest.mark.parametrize("name", ["", " ", "a ", "a\n", "a\tb", "x" * 256, None, 5, b"a", "\ud800", "\x00", ("a",)])
def test_other_names_are_refused(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="can't name an entity"):
        Simulation().add(name, Actor())


@pytest.mark.parametrize("thing", [None, 5, "entity", object(), lambda: 1, Interrupt(), Simulation()])
def test_only_entities_take_part(thing: Any) -> None:
    simulation = Simulation()
    with pytest.raises(ConfigurationError, match=r"x: .* isn't an Entity .make one, or a process\(...\)"):
        simulation.add("x", thing)
    assert "x" not in simulation


def test_a_class_is_no_entity() -> None:
    with pytest.raises(ConfigurationError, match=r"^x: the class Actor isn't an Entity .make one: Actor\(...\)"):
        Simulation().add("x", Actor)  # type: ignore[arg-type]


@pytest.mark.parametrize("is_running", [False, True])
def test_a_name_is_used_once(is_running: bool) -> None:
    simulation = stage()
    if is_running:
        simulation.run()
    with pytest.raises(ConfigurationError, match="there is an entity named 'a' already"):
        simulation.add("a", Actor())


@pytest.mark.parametrize("is_running", [False, True])
def test_an_entity_has_one_name(is_running: bool) -> None:
    simulation = stage()
    if is_running:
        simulation.run()
    with pytest.raises(ConfigurationError, match="this entity takes part already"):
        simulation.add("c", simulation["a"])


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 1.0, True, None, "1"])
def test_a_seed_is_a_whole_number_of_64_bits(seed: Any) -> None:
    with pytest.raises(ConfigurationError, match="the seed isn't a whole number"):
        Simulation(seed=seed)


@pytest.mark.parametrize("network", [None, 5, link("1ms"), (), "1ms"])
@pytest.mark.parametrize("connects", [False, True])
def test_a_network_is_a_network(network: Any, connects: bool) -> None:

    def build_and_run() -> None:
        simulation = Simulation(network=network)
        simulation.add("a", Actor())
        simulation.add("b", Actor())
        if connects:
            simulation.connect("a", "b", 5)
        simulation.run()

    with pytest.raises(ConfigurationError, match="isn't a network"):
        build_and_run()


def test_a_network_that_names_nobody_is_refused() -> None:
    simulation = Simulation(network=Network(rules=(Rule(sender="nobody", link=link(5)),)))
    with pytest.raises(ConfigurationError, match="there is no participant 'nobody'"):
        simulation.run()


def test_entities_can_be_looked_at() -> None:
    simulation = stage(lambda me: me.create(Actor(), "kim") and None)
    assert "a" in simulation
    assert "a/kim" not in simulation
    for name in ("a/kim", "nobody", "", None, 5):
        with pytest.raises(UsageError, match="there is no entity named"):
            simulation[name]  # type: ignore[index]
        assert name not in simulation
    simulation.run()
    assert isinstance(simulation["a/kim"], Actor)
    assert "a/kim" in simulation


# -- Adding during a run


def test_an_entity_that_is_added_between_runs_starts_then() -> None:
    started: list[tuple[str, int]] = []
    simulation = stage(lambda me: started.append((me.name, me.now)))
    simulation.run(until=50)
    simulation.add("0", Actor(lambda me: started.append((me.name, me.now))))
    simulation.send("0", "x", at=60)
    simulation.run()
    assert started == [("a", 0), ("0", 50)]
    assert len(simulation["0"].got) == 1


def test_those_who_are_added_between_runs_are_ordered_by_name_like_all_others() -> None:
    simulation = Simulation()
    for name in ("b", "d", "r"):
        simulation.add(name, Loner())
    simulation.run(until=10)

    def send(me: Actor) -> None:
        me.send("R", "x", me.name, delay=5)
        if me.name == "c":
            me.create(Actor(send), "kim")

    simulation.add("R", Actor())
    for name in ("e", "c", "a", "c!"):
        simulation.add(name, Actor(send))
    simulation.run()
    assert payloads(simulation["R"]) == ["a", "c", "c!", "c/kim", "e"]


@pytest.mark.parametrize("name", ["a/1", "a/kim"])
def test_nobody_is_added_under_the_name_of_somebody_who_was_created(name: str) -> None:
    simulation = stage(lambda me: [me.create(Actor(), given) for given in (None, "kim")])
    simulation.run()
    with pytest.raises(WorldlineError, match=f"there is an entity named '{name}' already"):
        simulation.add(name, Actor())


def test_links_are_declared_before_the_run() -> None:
    simulation = stage()
    simulation.run()
    with pytest.raises(UsageError, match="links are declared before the run"):
        simulation.connect("a", "b", 5)


# -- Misuse


@pytest.mark.parametrize("until", [-1, 1.5, True, "soon", TIME_MAX + 1, FOREVER, b"1s", [1]])
def test_an_end_that_is_no_time_is_refused(until: Any) -> None:
    with pytest.raises(ConfigurationError, match="isn't the end"):
        ticking().run(until=until)


def test_a_run_does_not_go_back() -> None:
    simulation = ticking()
    simulation.run(until=100)
    with pytest.raises(UsageError, match=r"it is 100ns already \(run it until a later time\)"):
        simulation.run(until=99)
    assert simulation.run(until=100).now == 100


@pytest.mark.parametrize(
    ("executor", "problem"), [("outline", "isn't an executor"), ("processes", "can't be used here"), (None, "isn't an")]
)
def test_what_the_kernel_cannot_run_on_is_refused(executor: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=rf'{problem}.* \(use "inline", "processes\(4\)" or "mpi"\)'):
        ticking().run(until=10, executor=executor)


@pytest.mark.parametrize("executor", ["inline", " inline ", "inline()", inline, inline()])
def test_a_simulation_can_be_told_to_run_here(executor: Any) -> None:
    assert ticking().run(until=25, executor=executor).digest == ticking().run(until=25).digest


def test_a_simulation_that_has_begun_here_does_not_go_on_elsewhere() -> None:
    simulation = ticking()
    simulation.run(until=10)
    with pytest.raises(UsageError, match=r"processes\(2\) runs a simulation from its start"):
        simulation.run(until=20, executor="processes(2)")


@pytest.mark.parametrize("verb", ["run", "step", "run until"])
def test_a_simulation_is_not_run_by_those_in_it(verb: str) -> None:
    caught: list[str] = []

    def act(me: Actor) -> Steps:
        yield 5 * NS
        run: dict[str, Callable[[], Any]] = {
            "run": simulation.run,
            "step": simulation.step,
            "run until": lambda: simulation.run(until=50),
        }
        try:
            run[verb]()
        except UsageError as error:
            caught.append(str(error))
        me.schedule("x", delay=5)
        yield 3 * NS
        me.send("b", "x")

    simulation = stage(act)
    simulation.send("a", "x", at=6)
    result = simulation.run()
    assert caught == ["the simulation is running already (don't run it from inside a handler)"]
    assert [message.arrival for message in simulation["a"].got] == [6, 10]
    assert [message.arrival for message in simulation["b"].got] == [9]
    assert (result.now, result.events) == (10, 7)


def test_a_handler_can_run_another_simulation() -> None:
    digests: list[bytes] = []

    def act(me: Actor) -> Steps:
        for _ in range(3):
            yield 5 * NS
            inner = ticking(ticks=4)
            digests.append(inner.run().digest)
            assert me.now == simulation.now

    simulation = stage(act)
    simulation.run()
    assert digests == [ticking(ticks=4).run().digest] * 3
    assert simulation.now == 15


# -- After an error


def failing(at: int, error: BaseException) -> Simulation:
    """Two tickers and somebody who raises at a time."""

    def act(me: Actor) -> Steps:
        yield at
        me.send("b", "x", "not lost", delay=1)
        raise error

    simulation = Simulation()
    simulation.add("a", Actor(act))
    simulation.add("b", Actor())
    simulation.add("t", Ticker(10, 5))
    return simulation


def test_what_breaks_a_run_off_passes_as_it_is() -> None:
    error = BreakOff("somebody's alarm")
    simulation = failing(25, error)
    with pytest.raises(BreakOff) as caught:
        simulation.run()
    assert caught.value is error
    check_goes_on(simulation)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), BaseException("odd")])
def test_what_is_no_exception_is_the_model_s_failure_too(error: BaseException) -> None:
    simulation = failing(25, error)
    with pytest.raises(ModelError, match=f"a at 25ns: it raised {type(error).__name__}") as caught:
        simulation.run()
    assert caught.value.__cause__ is error
    check_goes_on(simulation)


def check_goes_on(simulation: Simulation) -> None:
    assert simulation.now == 25
    simulation.run()
    assert simulation["t"].ticks == [10, 20, 30, 40, 50]
    assert payloads(simulation["b"]) == ["not lost"]


@pytest.mark.parametrize("by_steps", [False, True])
def test_a_simulation_can_go_on_after_an_error_without_the_event_that_failed(by_steps: bool) -> None:
    simulation = failing(30, ValueError("oops"))

    def go_on() -> KernelOutcome:
        while by_steps and simulation.step():
            pass
        return simulation.run()

    with pytest.raises(ModelError, match="a at 30ns: it raised ValueError: oops"):
        go_on()
    assert simulation.now == 30
    assert simulation["t"].ticks == [10, 20]
    result = go_on()
    assert simulation["t"].ticks == [10, 20, 30, 40, 50]
    assert payloads(simulation["b"]) == ["not lost"]
    assert (result.now, result.events) == (50, 10)


def test_many_errors_one_after_the_other_do_no_harm() -> None:
    class Fragile(Entity):
        def __init__(self) -> None:
            self.got = 0

        def on_x(self, number: int) -> Any:
            self.got += 1
            self.schedule("y", delay=0)
            self.create(Actor())
            if number % 3 == 0:
                raise ValueError(number)
            if number % 3 == 1:
                return self.fail()
            return None

        def fail(self) -> Steps:
            yield receive(limit=0)
            raise KeyError("late")

        def on_y(self, _: None) -> None:
            self.got += 100

    simulation = Simulation()
    simulation.add("a", Fragile())
    for number in range(300):
        simulation.send("a", "x", number, at=number)
    errors = 0
    while True:
        try:
            simulation.run()
            break
        except ModelError:
            errors += 1
    assert errors == 200
    assert simulation["a"].got == 300 * 101
    assert pending(simulation) == 0


# -- Large


# -- Who watches


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
@pytest.mark.parametrize("until", [None, 20_000])
def test_whoever_watches_is_told_how_far_a_run_is(executor: str, until: int | None) -> None:
    told: list[Status] = []
    result = ticking(ticks=2_500).run(until=until, executor=executor, watch=told.append)
    assert told
    assert all(status.end == (until or FOREVER) for status in told)
    assert [status.time for status in told] == sorted(status.time for status in told)
    assert 0 < told[0].events <= told[-1].events <= result.events


def test_watching_changes_nothing() -> None:
    assert ticking(ticks=2_500).run(watch=lambda _: None) == ticking(ticks=2_500).run()


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_whoever_watches_can_break_a_run_off(executor: str) -> None:
    def enough(status: Status) -> None:
        raise Interrupted("enough", at=status.time)

    with pytest.raises(Interrupted, match="enough"):
        ticking(ticks=2_500).run(executor=executor, watch=enough)


# -- Processes in a simulation


def test_an_entity_that_isnt_there_is_refused_with_the_nearest_name() -> None:
    simulation = Simulation()
    simulation.add("bank", Entity())
    for _ in range(2):  # Before the run and after.
        with pytest.raises(UsageError, match=r"there is no entity named 'bnk' \(did you mean 'bank'\?\)"):
            simulation["bnk"]
        with pytest.raises(UsageError, match=r"there is no entity named 7$"):
            simulation[7]  # type: ignore[index]
        simulation.run()


def test_public_objects_say_what_they_are() -> None:
    said: list[str] = []

    def act(me: Actor) -> Steps:
        signal, machine, turns = Signal(), Resource(2), []
        turns += [machine.acquire() for _ in range(3)]
        things = (me, me.process(receive() for _ in ()), me.schedule("x", delay=5), signal, turns[0], machine)
        said.extend(map(repr, things))
        yield 1 * NS
        said.append(repr(things[1]))

    simulation = stage(act)
    simulation.run()
    assert said == [
        "<Actor a>",
        f"<process {said[1].split()[1]} of a>",
        "<event x of a, at 5ns>",
        "<Signal, 0 waiting>",
        "<Claim, fired>",
        "<Resource, 2 of 2 held, 1 waiting>",
        "<process that has ended, of a>",
    ]
    assert repr(simulation) == "<Simulation of 2 entities at 5ns>"
