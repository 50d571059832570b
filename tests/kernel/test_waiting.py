"""Any and all of several, failures, stores, containers, priorities and preemption: what processes wait for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernel.actors import Actor, Loner, Steps, error_of
from worldline.kernel import (
    Container,
    Entity,
    Interrupt,
    Preempted,
    Resource,
    Signal,
    Simulation,
    Store,
    all_of,
    any_of,
    receive,
    wait,
)
from worldline.model import MS, NS, ConfigurationError, ModelError, Network, Stuck, UsageError, link

Log = list[Any]


def play(*steps: Callable[[Any], Steps], sends: tuple[tuple[Any, ...], ...] = ()) -> Simulation:
    """Run one entity `a` that has these processes; `sends` are (topic, payload, time)."""
    simulation = Simulation()

    def act(me: Any) -> None:
        for each in steps:
            me.process(each(me))

    simulation.add("a", Loner(act))
    for topic, payload, at in sends:
        simulation.send("a", topic, payload, at=at)
    simulation.run()
    return simulation


# -- Any and all


def fires(signal: Signal, at: int, value: Any) -> Callable[[Any], Steps]:
    def steps(me: Any) -> Steps:
        yield at
        signal.fire(value)

    return steps


@pytest.mark.parametrize(
    ("combine", "at", "happened"),
    [
        (lambda a, b: a | b, 2, "b"),
        (lambda a, b: b | a, 2, "b"),
        (lambda a, b: a & b, 5, "ab"),
        (lambda a, b: b & a, 5, "ba"),
        (lambda a, b: a | 1 * NS, 1, ""),
        (lambda a, b: "1ns" | a, 1, ""),
        (lambda a, b: a & "9ns", 9, "a"),
        (lambda a, b: (a & "9ns") | b, 2, "b"),
        (lambda a, b: (a | "9ns") & (b | "1ns"), 5, "a"),
        (lambda a, b: (a & b) | "7ns", 5, "ab"),
        (lambda a, b: any_of(a, b, "3ns"), 2, "b"),
        (lambda a, b: all_of(a, b, "3ns"), 5, "ab"),
        (lambda a, b: all_of(), 0, ""),
        (lambda a, b: a & a, 5, "a"),
        (lambda a, b: (a & b) | (a & "3ns"), 5, "ab"),
    ],
)
def test_any_and_all_go_on_with_what_has_happened(combine: Callable[[Any, Any], Any], at: int, happened: str) -> None:
    log: Log = []
    a, b = Signal(), Signal()

    def steps(me: Any) -> Steps:
        outcome = yield combine(a, b)
        log.append((me.now, outcome))

    play(steps, fires(a, 5, "a"), fires(b, 2, "b"))
    assert log == [(at, {{"a": a, "b": b}[name]: name for name in happened})]
    assert list(log[0][1].values()) == list(happened), "in the order in which they were written"


def test_messages_and_processes_are_parts_like_others() -> None:
    log: Log = []

    def steps(me: Any) -> Steps:
        order, nap = receive("order"), me.process(sleep())
        for _ in range(3):
            outcome = yield order | nap | "4ns"
            log.append((me.now, [outcome[each].payload if each is order else outcome[each] for each in outcome]))
        message = yield receive()
        log.append(message.payload)

    def sleep() -> Steps:
        yield 7 * NS
        return "slept"

    play(steps, sends=(("order", 1, 3), ("order", 2, 20)))
    # Once the process has ended it is there at once, and the message stays in the inbox.
    assert log == [(3, [1]), (7, ["slept"]), (7, ["slept"]), 2]


def test_what_has_happened_before_is_there_at_once_and_the_rest_is_left_alone() -> None:
    log: Log = []
    signal, store = Signal(), Store()
    signal.fire("early")

    def steps(me: Any) -> Steps:
        get = store.get()
        outcome = yield signal | receive() | get
        log.append((me.now, outcome))
        yield "5ns"
        store.put("thing")
        log.append((store.items, (yield get)))

    play(steps, sends=(("x", 1, 0),))
    assert log == [(0, {signal: "early"}), ([], "thing")]


def test_a_condition_serves_several_processes_and_can_be_begun_again() -> None:
    log: Log = []
    a, b = Signal(), Signal()
    both = a & b

    def steps(me: Any) -> Steps:
        try:
            yield both
        except Interrupt:
            log.append("interrupted")
        happened = yield both
        log.append((me.now, happened))

    def act(me: Any) -> Steps:
        first, _ = me.process(steps(me)), me.process(steps(me))
        yield 1 * NS
        first.interrupt()

    play(act, fires(a, 5, 1), fires(b, 9, 2))
    assert log == ["interrupted", (9, {a: 1, b: 2}), (9, {a: 1, b: 2})]


@pytest.mark.parametrize(
    ("combine", "said"),
    [
        (lambda: Signal() | 0.5, "can't wait for 0.5"),
        (lambda: Signal() & None, "can't wait for None"),
        (lambda: Signal() | "soon", "isn't a delay"),
        (lambda: Signal() | -1, "isn't a delay"),
        (lambda: receive(limit=5) | Signal(), "a limit is a part of its own"),
        (lambda: Signal() | wait(Signal()), "a limit is a part of its own"),
        (any_of, "any of nothing never happens"),
    ],
)
def test_what_cant_be_combined_is_refused(combine: Callable[[], Any], said: str) -> None:
    with pytest.raises((ModelError, ConfigurationError), match=said):
        combine()


# -- Failures


def test_a_signal_that_fails_raises_its_error_in_all_who_wait_and_in_those_who_come_later() -> None:
    log: Log = []
    signal = Signal()

    def steps(me: Any, thing: Any) -> Steps:
        try:
            yield thing
        except ValueError as error:
            log.append((me.now, str(error)))

    def act(me: Any) -> Steps:
        for thing in (signal, wait(signal, limit="1s"), signal | "1s", signal & Signal()):
            me.process(steps(me, thing))
        yield 3 * NS
        signal.fail(ValueError("broken"))
        yield 2 * NS
        yield from steps(me, signal)

    play(act)
    assert log == [(3, "broken")] * 4 + [(5, "broken")]
    assert (signal.fired, signal.value, str(signal.error)) == (True, None, "broken")


def test_the_error_of_a_process_can_be_caught_where_it_is_awaited() -> None:
    log: Log = []

    def steps(me: Any) -> Steps:
        for limit in ("2ns", "9ns"):
            try:
                yield me.process(work()) | limit
                log.append((me.now, "in time"))
            except ValueError as error:
                log.append((me.now, str(error)))

    def work() -> Steps:
        yield 4 * NS
        raise ValueError("work")

    with pytest.raises(ModelError, match="a at 4ns: it raised ValueError: work"):
        play(steps)  # The first is left alone after 2 ns, and then nothing waits for it.
    assert log == [(2, "in time")]


def test_an_error_that_is_caught_nowhere_ends_the_run_with_its_own_line() -> None:
    def work() -> Steps:
        yield 4 * NS
        raise ValueError("work")

    def act(me: Any) -> Steps:
        yield me.process(work())

    error = error_of(act, ModelError)
    line = work.__code__.co_firstlineno + 2
    assert str(error) == f"a at 4ns: it raised ValueError: work, in test_waiting.py, line {line}"


def test_what_the_kernel_refuses_is_not_something_to_catch() -> None:
    def work() -> Steps:
        signal = Signal()
        signal.fire()
        yield signal
        signal.fire()

    def act(me: Any) -> Steps:
        try:
            yield me.process(work())
        except Exception:
            return

    assert "a signal was fired twice" in str(error_of(act, ModelError))


@pytest.mark.parametrize("error", ["text", ValueError, None, KeyboardInterrupt()])
def test_a_signal_fails_with_an_exception(error: Any) -> None:
    with pytest.raises(ModelError, match="a signal can't fail with"):
        Signal().fail(error)


# -- Numbers without a unit


def test_a_number_without_a_unit_is_refused_where_it_is_yielded() -> None:
    def nap() -> Steps:
        yield 5

    def direct(me: Any) -> Steps:
        yield 60 * 60

    def delegating(me: Any) -> Steps:
        yield from nap()

    for steps, number, line in ((direct, 3600, direct), (delegating, 5, nap)):
        where = f"in test_waiting.py, line {line.__code__.co_firstlineno + 1}"
        with pytest.raises(
            ModelError, match=rf'yield {number} would wait for .*, {where} \(say the unit: yield "{number}s"'
        ):
            play(steps)


def test_numbers_that_are_computed_or_zero_or_large_are_nanoseconds() -> None:
    def steps(me: Any) -> Steps:
        five, is_long = 5, False
        yield five
        yield five + 2
        yield 0
        yield 1_000_000
        yield 3 if is_long else five

    assert play(steps).now == 5 + 7 + 1_000_000 + 5


# -- Stores and containers


def test_a_store_hands_things_out_in_order_and_a_put_waits_for_room() -> None:
    log: Log = []
    store = Store(2)

    def produce(me: Any) -> Steps:
        for number in range(4):
            yield store.put(number)
            log.append((me.now, "put", number))

    def consume(me: Any) -> Steps:
        for _ in range(4):
            yield "10ns"
            log.append((me.now, "got", (yield store.get())))

    play(produce, consume)
    assert log == [
        *((0, "put", 0), (0, "put", 1)),
        *((10, "got", 0), (10, "put", 2), (20, "got", 1), (20, "put", 3), (30, "got", 2), (40, "got", 3)),
    ]


def test_gets_can_be_picky_and_a_key_decides_what_comes_first() -> None:
    log: Log = []
    store = Store(key=lambda job: job[0])

    def get(me: Any, name: str, matching: Any) -> Steps:
        log.append((name, (yield store.get(matching))))

    def act(me: Any) -> Steps:
        me.process(get(me, "red", lambda job: job[1] == "red"))
        me.process(get(me, "any", None))
        yield 1 * NS
        for job in ((5, "blue"), (3, "green"), (1, "green"), (9, "red"), (1, "blue"), (0, "red")):
            store.put(job)
        assert store.items == [(0, "red"), (1, "green"), (1, "blue"), (3, "green")]
        log.append((yield store.get(lambda job: job[1] == "blue")))
        log.append((yield store.get()))

    play(act)
    assert log == [(1, "blue"), (0, "red"), ("any", (5, "blue")), ("red", (9, "red"))]


def test_a_get_or_put_that_no_process_waits_for_any_more_is_withdrawn() -> None:
    log: Log = []
    full, empty, tank = Store(1), Store(), Container(10)
    full.put("first")

    def steps(me: Any, claim: Any) -> Steps:
        try:
            log.append((yield wait(claim, limit="5ns", default="late")))
            yield claim | "1ns"
            yield claim
        except Interrupt:
            log.append("interrupted")

    def act(me: Any) -> Steps:
        victims = [me.process(steps(me, each)) for each in (full.put("second"), empty.get(), tank.get(3))]
        yield "9ns"
        for victim in victims:
            victim.interrupt()
        yield 0
        assert (full.waiting, empty.waiting, tank.waiting) == (0, 0, 0)
        empty.put("kept")

    play(act)
    assert log == ["late"] * 3 + ["interrupted"] * 3
    assert (full.items, empty.items, tank.level) == (["first"], ["kept"], 0)


def test_a_container_serves_in_order_and_a_large_claim_holds_up_small_ones_until_it_is_withdrawn() -> None:
    log: Log = []
    tank = Container(100, level=10)

    def get(me: Any, amount: int, limit: str | None = None) -> Steps:
        got = yield wait(tank.get(amount), limit=limit)
        log.append((me.now, got))

    def act(me: Any) -> Steps:
        me.process(get(me, 50, "5ns"))
        me.process(get(me, 7))
        yield "8ns"
        yield tank.put(60)
        me.process(get(me, 60))
        yield tank.put(50)
        log.append((me.now, "put", tank.level))

    play(act)
    assert log == [(5, None), (5, 7), (8, 60), (8, "put", 53)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Store(0),
        lambda: Store(1.5),
        lambda: Store(key=5),
        lambda: Container(0),
        lambda: Container(5, level=6),
        lambda: Container(level=-1),
        lambda: Container().get(0),
        lambda: Container().put(float("nan")),
        lambda: Container().put(True),
        lambda: Container(5).put(6),
        lambda: Container(5).get(6),
        lambda: Store().get("red"),
        lambda: Resource().acquire("first"),
        lambda: Resource().release("turn"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises((ModelError, ConfigurationError)):
        make()


def test_simpys_word_for_acquire_is_answered() -> None:
    with pytest.raises(UsageError, match=r"no request\(\) \(write with resource.acquire\(\) as turn"):
        Resource().request()


def test_a_store_is_not_shared_between_entities() -> None:
    store = Store()

    def use(me: Actor) -> Steps:
        yield store.put(me.name)

    error = str(error_of(use, ModelError, b=use))
    assert "b uses a Store that belongs to a" in error
    assert "an entity of its own, which the others ask by messages" in error


# -- Priorities and preemption


def test_the_least_priority_is_served_first_and_equal_ones_in_order() -> None:
    log: Log = []
    machine = Resource()

    def job(me: Any, name: str, priority: float) -> Steps:
        with machine.acquire(priority) as turn:
            yield turn
            log.append(name)
            yield "1ns"

    def act(me: Any) -> Steps:
        for name, priority in (("a", 9), ("b", 5), ("c", 1.5), ("d", 5), ("e", 9), ("f", 0), ("g", 5)):
            me.process(job(me, name, priority))
        yield 0

    play(act)
    assert log == list("afcbdge")


def test_an_urgent_claim_takes_the_turn_of_the_worst_and_last_holder() -> None:
    log: Log = []
    machines = Resource(2)

    def job(me: Any, name: str, priority: int, preempt: bool) -> Steps:
        with machines.acquire(priority, preempt) as turn:
            yield turn
            begun = me.now
            try:
                yield "10ns"
                log.append((me.now, name))
            except Interrupt as interrupt:
                cause = interrupt.cause
                assert isinstance(cause, Preempted)
                log.append((me.now, name, "lost it to", cause.by.value is cause.by, cause.since == begun))
                assert cause.resource is machines

    def act(me: Any) -> Steps:
        for name, priority, preempt in (
            ("a", 2, False),
            ("b", 2, True),
            ("c", 2, True),
            ("d", 1, True),
            ("e", 0, False),
        ):
            me.process(job(me, name, priority, preempt))
            yield "1ns"

    play(act)
    assert log == [(3, "b", "lost it to", True, True), (10, "a"), (13, "d"), (20, "e"), (23, "c")]
    assert (machines.held, machines.waiting) == (0, 0)


# -- Until something happens


def test_a_run_ends_with_the_event_in_which_its_signal_fires_and_can_go_on() -> None:
    log: Log = []
    closed = Signal()

    def steps(me: Any) -> Steps:
        yield "5ns"
        closed.fire("value")
        log.append("the event is handled to its end")
        yield 0
        log.append("not yet")

    simulation = Simulation()
    simulation.add("a", Loner(steps))
    assert simulation.run(until=closed).now == 5
    assert (log, closed.value) == (["the event is handled to its end"], "value")
    assert simulation.run(until=closed).now == 5
    simulation.run()
    assert log[1:] == ["not yet"]


def test_a_run_until_what_never_happens_or_fails_says_so() -> None:
    def steps(me: Any) -> Steps:
        yield "5ns"
        if me.now > 3:
            failing.fail(ValueError("broken"))

    never, failing = Signal(), Signal()
    simulation = Simulation()
    simulation.add("a", Loner(steps))
    with pytest.raises(ModelError, match="what it runs until has failed: ValueError: broken"):
        simulation.run(until=failing)
    with pytest.raises(Stuck, match=r"nothing is left to happen, and <Signal, 0 waiting>"):
        simulation.run(until=never)
    with pytest.raises(UsageError, match=r"processes\(2\) can't run until a signal"):
        Simulation().run(until=never, executor="processes(2)")


# -- Against a plain oracle: what waits is tried again from the front whenever something has changed


class Oracle:
    """A store or container as its definition reads."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.items, self.puts, self.gets = capacity, [], [], []  # type: ignore[var-annotated]
        self.log: Log = []

    def ask(self, number: int, kind: str, what: int) -> None:
        (self.puts if kind == "put" else self.gets).append((number, what))
        self.settle()

    def withdraw(self, number: int) -> None:
        self.puts = [each for each in self.puts if each[0] != number]
        self.gets = [each for each in self.gets if each[0] != number]
        self.settle()

    def settle(self) -> None:
        while self.step():
            pass

    def step(self) -> bool:
        if self.puts and len(self.items) < self.capacity:
            number, what = self.puts.pop(0)
            self.items.append(what)
            self.log.append((number, None))
            return True
        for place, (number, least) in enumerate(self.gets):
            for item in self.items:
                if item >= least:
                    self.items.remove(item)
                    del self.gets[place]
                    self.log.append((number, item))
                    return True
        return False


@settings(max_examples=60, deadline=None)
@given(
    capacity=st.integers(1, 3),
    deeds=st.lists(
        st.tuples(st.sampled_from(["put", "put", "get", "get", "withdraw"]), st.integers(0, 3)), min_size=1, max_size=30
    ),
)
def test_a_store_does_what_its_definition_says(capacity: int, deeds: list[tuple[str, int]]) -> None:
    oracle, store, log, claims = Oracle(capacity), Store(capacity), [], {}  # type: ignore[var-annotated]

    def waiting(me: Any, number: int, claim: Any) -> Steps:
        with suppress(Interrupt):
            log.append((number, (yield claim)))

    def act(me: Any) -> Steps:
        for number, (deed, what) in enumerate(deeds):
            if deed == "withdraw":
                living = [each for each in claims if not claims[each].has_ended]
                if living:
                    victim = living[what % len(living)]
                    oracle.withdraw(victim)
                    claims[victim].interrupt()
            else:
                oracle.ask(number, deed, what)
                claim = store.put(what) if deed == "put" else store.get(lambda item, least=what: item >= least)
                claims[number] = me.process(waiting(me, number, claim))
            yield "1ns"

    play(act)
    assert sorted(log, key=repr) == sorted(oracle.log, key=repr)
    assert store.items == oracle.items


# -- Everything together: one history, whatever the build and the number of workers


def weight(parcel: tuple[int, int]) -> int:
    return -parcel[0]


class Depot(Entity):
    """Uses all of it, and asks another depot by messages."""

    def __init__(self, other: str) -> None:
        self.other = other
        self.shelf = Store(3, key=weight)
        self.fuel = Container(50, level=20)
        self.ramp = Resource(1)
        self.served = 0

    def start(self) -> Steps:
        crew = [self.process(self.load(number)) for number in range(3)]
        self.process(self.refuel())
        yield all_of(*crew) | "60ms"
        self.record("served", self.served)
        yield "1s"  # Notes that are still under way need a process that could receive them.

    def load(self, number: int) -> Steps:
        for trip in range(6):
            yield self.random.exponential(2 * MS)
            self.send(self.other, "parcel", (self.random.randrange(5), number))
            with self.ramp.acquire(number, preempt=number == 0) as turn:
                try:
                    if turn not in (yield turn | self.random.exponential(4 * MS)):
                        continue
                    got = yield self.shelf.get(lambda parcel: parcel[1] <= number) | receive("note") | "3ms"
                    self.record("got", len(got))
                    yield wait(self.fuel.get(5), limit="2ms")
                    self.served += trip
                except Interrupt as interrupt:
                    self.record("lost at", self.now - interrupt.cause.since)

    def refuel(self) -> Steps:
        for _ in range(12):
            yield self.random.exponential(2 * MS)
            yield self.fuel.put(8) | "1ms"

    def on_parcel(self, parcel: tuple[int, int]) -> Steps:
        try:
            yield self.process(self.checked(parcel))
        except ValueError as error:
            self.send(self.other, "note", str(error))

    def checked(self, parcel: tuple[int, int]) -> Steps:
        yield self.random.exponential(MS)
        if parcel[0] == 4:
            raise ValueError(f"too heavy: {parcel}")
        yield self.shelf.put(tuple(parcel))


def depots() -> Simulation:
    simulation = Simulation(network=Network(default=link("5ms")), seed=4)
    for number in range(4):
        simulation.add(f"depot{number}", Depot(f"depot{(number + 1) % 4}"))
    return simulation


DIGEST = "28934f40804e9da820f074ff08fe0c4e"


@pytest.mark.parametrize("executor", ["inline", "processes(2)"])
def test_all_of_it_gives_one_digest(executor: str) -> None:
    assert depots().run(executor=executor).digest.hex() == DIGEST
