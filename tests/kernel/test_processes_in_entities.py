"""Processes inside entities: what they wait for, what wakes them, and how they end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.kernel.actors import Actor, Loner, Steps, burst_max, error_of, payloads, stage
from worldline.kernel import (
    Entity,
    EntityMessage,
    Interrupt,
    Process,
    Resource,
    Signal,
    Simulation,
    receive,
    wait,
)
from worldline.model import (
    MS,
    NS,
    SECOND,
    TIME_MAX,
    ConfigurationError,
    ModelError,
    Stuck,
    UsageError,
    WorldlineError,
)
from worldline.model.time import TimeLike

Log = list[Any]


def play(
    *steps: Callable[[Any], Steps], until: int | None = None, sends: tuple[tuple[Any, ...], ...] = ()
) -> Simulation:
    """Run one entity `a` that has no handlers but these processes; `sends` are (topic, payload, time)."""
    simulation = Simulation()

    def act(me: Any) -> None:
        for each in steps:
            me.process(each(me))

    simulation.add("a", Loner(act))
    for topic, payload, at in sends:
        simulation.send("a", topic, payload, at=at)
    simulation.run(until)
    return simulation


# -- Delays


@pytest.mark.parametrize(
    ("delay", "time"),
    [(0, 3), (1, 4), (5 * MS, 5 * MS + 3), ("5ms", 5 * MS + 3), ("0", 3), ("1.5 s", 3 * SECOND // 2 + 3)],
    ids=repr,
)
def test_a_process_sleeps_as_long_as_it_says_and_is_given_nothing(delay: Any, time: int) -> None:
    log: Log = []

    def sleep(me: Any) -> Steps:
        yield 3 * NS
        given = yield delay
        log.append((me.now, given))

    play(sleep)
    assert log == [(time, None)]


def test_a_process_can_sleep_until_the_last_time_and_no_longer() -> None:
    log: Log = []

    def sleep(me: Any) -> Steps:
        yield 3 * NS
        yield TIME_MAX - 3
        log.append(me.now)
        yield 0
        log.append(me.now)
        yield 1 * NS

    with pytest.raises(ModelError, match="an event would happen after the last time"):
        play(sleep)
    assert log == [TIME_MAX, TIME_MAX]


@pytest.mark.parametrize(
    "thing",
    [
        1.5,
        0.0,
        float("nan"),
        True,
        None,
        -1,
        -(2**63),
        2**62,
        2**63 - 1,
        2**63,
        2**1000,
        "",
        "soon",
        "-1s",
        "0.5ns",
        (1,),
        [5],
        receive,
        Signal,
        Exception(),
        object(),
        wait(5),
        wait(None),
    ],
    ids=lambda thing: type(thing).__name__ if not isinstance(thing, int | float | str) else str(thing)[:20],
)
def test_what_nobody_can_wait_for_is_refused_with_who_and_when(thing: Any) -> None:
    def sleep(me: Any) -> Steps:
        yield 3 * NS
        yield thing

    with pytest.raises(WorldlineError) as caught:
        play(sleep)
    assert (caught.value.participant, caught.value.at) == ("a", 3)
    assert caught.value.__cause__ is None, "refused on purpose, not by accident"
    assert " at 0x" not in str(caught.value), "no two runs would say the same"


def test_the_refusal_of_a_float_says_what_to_write() -> None:
    def sleep(me: Any) -> Steps:
        yield 0.5

    where = f"in test_processes_in_entities.py, line {sleep.__code__.co_firstlineno + 1}"
    with pytest.raises(
        ModelError, match=rf"a process can't wait for 0.5, {where} \(times are whole nanoseconds: yield 5 \* MS"
    ):
        play(sleep)


def test_the_refusal_of_a_limit_says_for_what_there_is_none() -> None:
    def sleep(me: Any) -> Steps:
        yield wait(5 * MS, limit="1ms")

    with pytest.raises(ModelError, match=r"can't wait for 5000000, .* \(wait\(\) is for signals, processes, turns"):
        play(sleep)


def test_the_refusal_of_a_wait_names_the_innermost_line_of_the_process_that_yields() -> None:
    def nap() -> Steps:
        yield -1

    def sleep(me: Any) -> Steps:
        me.process(rest())
        yield from nap()

    def rest() -> Steps:
        yield receive()

    with pytest.raises(ModelError, match=f"in test_processes_in_entities.py, line {nap.__code__.co_firstlineno + 1}"):
        play(sleep)


def test_processes_of_one_entity_start_and_go_on_in_the_order_they_were_made() -> None:
    log: Log = []

    def numbered(number: int) -> Callable[[Any], Steps]:
        def steps(me: Any) -> Steps:
            log.append((me.now, number))
            yield 2 * NS
            log.append((me.now, number))

        return steps

    play(*(numbered(number) for number in range(4)))
    assert log == [(time, number) for time in (0, 2) for number in range(4)]


@pytest.mark.parametrize("thing", [5, None, lambda: (yield 1 * NS), iter([1]), [1], "x", map(str, [1])])
def test_only_generators_are_processes(thing: Any) -> None:
    assert "isn't a generator" in str(error_of(lambda me: me.process(thing) and None, ModelError))


# -- Receiving


def test_messages_wait_in_the_inbox_for_a_process_that_is_busy() -> None:
    log: Log = []

    def steps(me: Any) -> Steps:
        yield 10 * NS
        for _ in range(3):
            message = yield receive()
            log.append((me.now, message.arrival, message.payload))

    play(steps, sends=(("x", "a", 1), ("x", "b", 2), ("x", "c", 20)))
    assert log == [(10, 1, "a"), (10, 2, "b"), (20, 20, "c")]


def test_a_topic_is_picked_and_the_others_wait() -> None:
    log: Log = []

    def steps(me: Any) -> Steps:
        for topic in ("z", "y", None, None, "x"):
            message = yield receive(topic)
            log.append((me.now, message.topic, message.payload))

    play(steps, sends=(("x", 1, 1), ("y", 2, 2), ("x", 3, 3), ("z", 4, 4), ("x", 5, 5)))
    assert log == [(4, "z", 4), (4, "y", 2), (4, "x", 1), (4, "x", 3), (5, "x", 5)]


def test_a_message_goes_to_the_process_that_has_waited_longest_for_such_a_one() -> None:
    log: Log = []

    def waiting(name: str, topic: str | None) -> Callable[[Any], Steps]:
        def steps(me: Any) -> Steps:
            message = yield receive(topic)
            log.append((name, message.payload))

        return steps

    readers = (waiting("y", "y"), waiting("any", None), waiting("x", "x"), waiting("any too", None))
    play(*readers, sends=(("x", 1, 1), ("x", 2, 2), ("x", 3, 3), ("y", 4, 4)))
    assert log == [("any", 1), ("x", 2), ("any too", 3), ("y", 4)]


@pytest.mark.parametrize(("limit", "time"), [(5, 5), ("5ns", 5), (0, 0)], ids=repr)
def test_a_limit_lets_the_process_go_on_without_a_message(limit: Any, time: int) -> None:
    log: Log = []

    def steps(me: Any) -> Steps:
        log.append(((yield receive("x", limit=limit)), me.now))
        message = yield receive("x")
        log.append((message.payload, me.now))

    play(steps, sends=(("y", "not this", 1), ("x", "late", 50)))
    assert log == [(None, time), ("late", 50)]


def test_a_message_at_the_very_limit_counts_if_it_was_sent_before_the_wait_began() -> None:
    log: Log = []

    def steps(me: Any) -> Steps:
        yield 1 * NS
        message = yield receive(limit=4)  # Until 5.
        log.append(message and message.payload)
        message = yield receive(limit=4)  # Until 5 + 4 if the first came at 5.
        log.append((me.now, message))

    play(steps, sends=(("x", "just in time", 5),))
    assert log == ["just in time", (9, None)]


def test_a_limit_that_was_not_needed_wakes_nobody_later() -> None:
    log: Log = []

    def steps(me: Any) -> Steps:
        yield receive(limit=10)
        log.append(me.now)
        yield receive(limit=100)
        log.append(me.now)
        given = yield 7 * NS
        log.append((me.now, given))

    play(steps, sends=(("x", None, 3),))
    assert log == [3, 103, (110, None)]


def test_handlers_come_before_processes() -> None:
    class Both(Entity):
        got: tuple[Any, ...] = ()

        def start(self) -> Steps:
            message = yield receive()
            self.got += ("process", message.topic)

        def on_x(self, payload: Any) -> None:
            self.got += ("handler", payload)

    simulation = Simulation()
    simulation.add("a", Both())
    simulation.send("a", "x", 1, at=1)
    simulation.send("a", "y", 2, at=2)
    simulation.run()
    assert simulation["a"].got == ("handler", 1, "process", "y")


@pytest.mark.parametrize("limit", [-1, True, 1.5, "soon", 2**70, TIME_MAX + 1], ids=repr)
@pytest.mark.parametrize("make", [lambda limit: receive(limit=limit), lambda limit: wait(Signal(), limit=limit)])
def test_a_limit_that_is_none_is_refused_where_it_is_written(make: Callable[[Any], Any], limit: Any) -> None:
    with pytest.raises(ConfigurationError, match="isn't a limit"):
        make(limit)


# -- Generators as handlers


def test_a_handler_that_yields_is_a_process_and_any_number_can_run_at_once() -> None:
    class Shop(Entity):
        def __init__(self) -> None:
            self.served: Log = []

        def on_customer(self, name: str) -> Steps:
            yield 10 * NS
            self.served.append((name, self.now))
            yield 10 * NS
            self.served.append((name, self.now))

        def handle(self, message: EntityMessage) -> Steps:
            yield 3 * NS
            self.served.append((message.topic, self.now))

    simulation = Simulation()
    simulation.add("shop", Shop())
    for name, at in (("ann", 0), ("bob", 5), ("cid", 12)):
        simulation.send("shop", "customer", name, at=at)
    simulation.send("shop", "thief", at=1)
    simulation.run()
    assert simulation["shop"].served == [
        ("thief", 4),
        ("ann", 10),
        ("bob", 15),
        ("ann", 20),
        ("cid", 22),
        ("bob", 25),
        ("cid", 32),
    ]


# -- Signals


def test_a_signal_wakes_all_who_wait_in_the_order_they_came() -> None:
    log: Log = []
    signal = Signal()

    def waiting(number: int) -> Callable[[Any], Steps]:
        def steps(me: Any) -> Steps:
            yield 3 - number
            value = yield (signal if number % 2 else wait(signal))
            log.append((me.now, number, value))

        return steps

    def fire(me: Any) -> Steps:
        yield 10 * NS
        signal.fire({"value": 1})
        log.append("fired")

    play(*(waiting(number) for number in range(3)), fire)
    assert log == ["fired", *((10, number, {"value": 1}) for number in (2, 1, 0))]
    assert (signal.fired, signal.value) == (True, {"value": 1})


def test_who_comes_after_the_signal_does_not_wait() -> None:
    log: Log = []
    signal = Signal()
    signal.fire("early")

    def steps(me: Any) -> Steps:
        for _ in range(3):
            log.append(((yield signal), (yield wait(signal, limit=5)), me.now))

    play(steps)
    assert log == [("early", "early", 0)] * 3


def test_a_signal_fires_once() -> None:
    def steps(me: Any) -> Steps:
        signal = Signal()
        signal.fire()
        yield signal
        signal.fire()

    with pytest.raises(ModelError, match="a signal was fired twice"):
        play(steps)


def test_a_signal_of_another_entity_cannot_be_fired() -> None:
    signal = Signal()

    def waiting(me: Actor) -> Steps:
        yield signal

    def fire(me: Actor) -> Steps:
        yield 1 * NS
        signal.fire()

    error = error_of(waiting, ModelError, b=fire)
    assert "b uses a Signal that belongs to a" in str(error)
    assert "make it an entity of its own, which the others ask by messages" in str(error)
    assert error.at == 1


# -- Waiting for processes


def test_a_process_can_wait_for_another_and_gets_what_it_returns() -> None:
    log: Log = []

    def steps(me: Any) -> Steps:
        def work(result: Any) -> Steps:
            yield 10 * NS
            return result

        first, second = me.process(work("first")), me.process(work(None))
        assert (first.has_ended, first.value) == (False, None)
        log.append(((yield first), me.now))
        log.append(((yield wait(second, limit=5)), me.now))
        log.append(((yield first), (yield wait(first)), me.now))
        assert (first.has_ended, first.value, second.has_ended) == (True, "first", True)

    play(steps)
    assert log == [("first", 10), (None, 10), ("first", "first", 10)]


def test_a_limit_that_has_passed_can_be_told_from_none() -> None:
    log: Log = []
    late = object()

    def steps(me: Any) -> Steps:
        def work() -> Steps:
            yield 10 * NS

        worker, signal = me.process(work()), Signal()
        log.append(((yield wait(worker, limit=4, default=late)), me.now))
        log.append(((yield wait(worker, limit=40, default=late)), me.now))
        log.append(((yield wait(signal, limit=5, default=late)), me.now))
        me.process(fire(signal))
        log.append(((yield wait(signal, limit=5, default=late)), me.now))
        log.append(((yield wait(signal, limit=5, default=late)), me.now))  # It has fired already.
        log.append(((yield wait(Signal(), limit=0, default=late)), me.now))

    def fire(signal: Signal) -> Steps:
        yield 1 * NS
        signal.fire()

    play(steps)
    assert log == [(late, 4), (None, 10), (late, 15), (None, 16), (None, 16), (late, 16)]


def test_a_default_is_given_to_nobody_else() -> None:
    log: Log = []

    def steps(me: Any) -> Steps:
        process = me.process(sleep(me))
        yield 2 * NS
        process.interrupt()
        yield 2 * NS
        log.append((process.value, me.now))

    def sleep(me: Any) -> Steps:
        try:
            yield wait(Signal(), limit=5, default="late")
        except Interrupt:
            log.append(((yield 1 * NS), me.now))
            log.append(((yield wait(Signal(), limit=20)), me.now))

    play(steps)
    assert log == [(None, 3), (None, 4), (None, 23)]


def test_a_default_needs_a_limit() -> None:
    with pytest.raises(UsageError, match=r'a wait without a limit has no use for a default \(give it one: limit="1s"'):
        wait(Signal(), default="late")


class Whole:
    """As NumPy's whole numbers are."""

    def __index__(self) -> int:
        return 5


@pytest.mark.parametrize(("five", "unit"), [(Whole(), 1), (timedelta(microseconds=5), 1000)])
def test_times_are_taken_in_other_forms(five: TimeLike, unit: int) -> None:
    log: Log = []

    def steps(me: Any) -> Steps:
        yield five
        yield receive(limit=five)
        yield wait(Signal(), limit=five)
        me.send(me.name, "x", delay=five)
        log.append(((yield receive()).arrival, me.schedule("y", delay=five).time))
        yield receive()
        log.append(me.random.exponential(timedelta(hours=1)) > 0)

    play(steps)
    assert log == [(20 * unit, 25 * unit), True]


def test_nobody_waits_for_a_process_of_another_entity() -> None:
    made: list[Process] = []

    def work(me: Any) -> Steps:
        yield 5 * NS

    def start(me: Actor) -> None:
        made.append(me.process(work(me)))

    def waiting(me: Actor) -> Steps:
        yield 1 * NS
        yield made[0]

    assert "b uses a process that belongs to a" in str(error_of(start, ModelError, b=waiting))


# -- Interrupts


def test_an_interrupt_is_raised_where_the_process_waits_with_its_cause() -> None:
    log: Log = []
    things: list[Callable[[], Any]] = [
        lambda: 100,
        lambda: "1s",
        receive,
        lambda: receive("x", limit=100),
        Signal,
        lambda: wait(Signal(), limit=100),
    ]

    def patient(me: Any) -> Steps:
        for number, thing in enumerate(things):
            try:
                yield thing()
            except Interrupt as interrupt:
                log.append((number, me.now, interrupt.cause))

    def steps(me: Any) -> Steps:
        victim = me.process(patient(me))
        for number in range(len(things)):
            yield 5 * NS
            victim.interrupt({"number": number})
            log.append("asked")
        yield 0
        assert victim.has_ended

    play(steps)
    asked = [x for number in range(len(things)) for x in ("asked", (number, 5 * number + 5, {"number": number}))]
    assert log == asked


@pytest.mark.parametrize("fires_first", [False, True])
def test_a_value_that_an_interrupt_has_overtaken_is_not_given_to_the_next_wait(fires_first: bool) -> None:
    log: Log = []
    signal = Signal()

    def patient(me: Any) -> Steps:
        with pytest.raises(Interrupt):
            yield signal
        log.append((yield 5 * NS))

    def steps(me: Any) -> Steps:
        victim = me.process(patient(me))
        yield 1 * NS
        if fires_first:
            signal.fire("stale")
        victim.interrupt()
        if not fires_first:
            signal.fire("stale")

    play(steps)
    assert log == [None]


def test_several_interrupts_at_one_moment_all_arrive() -> None:
    log: Log = []

    def patient(me: Any) -> Steps:
        while len(log) < 3:
            try:
                yield 100 * NS
            except Interrupt as interrupt:
                log.append((me.now, interrupt.cause))

    def steps(me: Any) -> Steps:
        victim = me.process(patient(me))
        yield 1 * NS
        for number in range(5):  # The last two come when it has ended, which is nobody's fault.
            victim.interrupt(number)

    play(steps)
    assert log == [(1, 0), (1, 1), (1, 2)]


def test_a_process_that_is_interrupted_before_its_first_step_takes_that_one_first() -> None:
    def steps(me: Any) -> Steps:
        def hurried() -> Steps:
            met.append("first step")
            try:
                yield 5 * NS
            except Interrupt as interrupt:
                met.append(interrupt.cause)

        me.process(hurried()).interrupt("early")
        yield 1 * NS

    met: list[Any] = []
    play(steps)
    assert met == ["first step", "early"]


def test_a_process_that_waits_for_what_has_happened_again_and_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(me: Any) -> Steps:
        over = Signal()
        over.fire()
        while True:
            yield over

    most = burst_max(monkeypatch)
    with pytest.raises(Stuck, match=f"gone on {most:,} times"):
        play(steps)


def test_a_process_does_not_interrupt_itself() -> None:
    def steps(me: Any) -> None:
        def selfish() -> Steps:
            yield 1 * NS
            mine[0].interrupt()

        mine = [me.process(selfish())]

    simulation = Simulation()
    simulation.add("a", Loner(steps))
    with pytest.raises(ModelError, match="a at 1ns: a process can't interrupt itself"):
        simulation.run()


def test_from_the_moment_of_its_interruption_nothing_else_wakes_a_process() -> None:
    log: Log = []
    signal = Signal()

    def patient(me: Any, thing: Any) -> Steps:
        try:
            log.append((yield thing))
        except Interrupt as interrupt:
            log.append(interrupt.cause)

    def steps(me: Any) -> Steps:
        things = (3, "5ns", receive("x"), receive(limit=3), signal, wait(signal, limit=3))
        victims = [me.process(patient(me, thing)) for thing in things]
        yield 2 * NS
        for number, victim in enumerate(victims):
            victim.interrupt(number)
        me.send("a", "x", "too late", delay=0)
        signal.fire("too late")
        yield 5 * NS

    play(steps)
    assert log == list(range(6))


def test_a_process_that_has_ended_cannot_be_interrupted() -> None:
    def steps(me: Any) -> Steps:
        def brief() -> Steps:
            yield 1 * NS

        victim = me.process(brief())
        yield victim
        victim.interrupt()

    with pytest.raises(ModelError, match="a process that has ended can't be interrupted"):
        play(steps)


def test_another_entity_interrupts_the_main_process_by_a_message() -> None:
    log: Log = []

    def act(me: Actor) -> Steps:
        me.process(other(me))
        while True:
            try:
                yield 100 * NS
            except Interrupt as interrupt:
                log.append((me.now, interrupt.cause))
            else:
                log.append(("woken", me.now))
                return

    def other(me: Actor) -> Steps:
        yield 50 * NS
        log.append(("other", me.now))

    def bother(me: Actor) -> Steps:
        causes = ["soon", [1, 2]]
        me.interrupt("a", causes[0])
        me.interrupt("a", causes[1], delay=10)
        causes[1].append(3)  # type: ignore[attr-defined]
        yield 20 * NS
        me.interrupt("a")

    simulation = stage(act, b=bother)
    simulation.send("a", "x", at=200)
    simulation.run()
    assert log == [(1, "soon"), (10, [1, 2]), (21, None), ("other", 50), ("woken", 121)]
    assert [message.topic for message in simulation["a"].got] == ["x"]  # No handler sees interruptions.


def test_an_interruption_from_another_is_lost_if_there_is_no_main_process() -> None:
    simulation = stage(lambda me: me.interrupt("b"))
    assert simulation.run().dropped == {("b", "interrupt!", "had nothing to interrupt"): 1}
    assert simulation["b"].got == []


# -- Ending


def test_an_entity_that_ends_closes_its_processes_and_their_finally_blocks_run() -> None:
    log: Log = []

    def patient(name: str, thing: Any) -> Callable[[Any], Steps]:
        def steps(me: Any) -> Steps:
            try:
                yield thing
            finally:
                log.append((name, me.now, me.has_ended))

        return steps

    def end(me: Any) -> Steps:
        yield 5 * NS
        me.end()
        log.append("goes on until it waits")
        try:
            yield 1 * NS
        finally:
            log.append("closed")

    waits = (("sleeps", 100), ("receives", receive()), ("waits", wait(Signal(), limit=50)), ("done", 1))
    play(*(patient(*each) for each in waits), end)
    assert log == [
        ("done", 1, False),
        ("sleeps", 5, False),
        ("receives", 5, False),
        ("waits", 5, False),
        "goes on until it waits",
        "closed",
    ]


def test_an_error_in_a_finally_block_names_the_entity() -> None:
    def patient(me: Any) -> Steps:
        try:
            yield 100 * NS
        finally:
            raise ValueError("in the end")

    def act(me: Actor) -> Steps:
        me.process(patient(me))
        yield 1 * NS
        me.end()

    error = error_of(act, ModelError)
    line = patient.__code__.co_firstlineno + 4
    assert str(error) == f"a at 1ns: it raised ValueError: in the end, in test_processes_in_entities.py, line {line}"


def test_a_finally_block_can_still_act() -> None:
    def patient(me: Any) -> Steps:
        try:
            yield 100 * NS
        finally:
            me.send("b", "farewell", "from a process", delay=5)
            me.schedule("x", delay=0)  # Void, like all timers of those who have ended.

    def act(me: Actor) -> Steps:
        me.process(patient(me))
        yield 1 * NS
        me.end()

    simulation = stage(act)
    simulation.run()
    assert payloads(simulation["b"]) == ["from a process"]
    assert simulation["a"].got == []


@pytest.mark.parametrize("is_created", [False, True])
def test_a_finally_block_may_end_the_entity_too(is_created: bool) -> None:
    log: Log = []

    def patient(me: Any, number: int) -> Steps:
        try:
            yield 100 * NS
        finally:
            log.append(number)
            if number == 1:
                me.end()

    def act(me: Actor) -> Steps:
        for number in range(3):
            me.process(patient(me, number))
        yield 1 * NS
        me.end()

    simulation = stage(lambda me: me.create(Actor(act)) and None) if is_created else stage(act)
    simulation.run()
    assert sorted(log) == [0, 1, 2]


def test_a_process_that_is_started_while_its_entity_ends_does_not_outlive_it() -> None:
    log: Log = []

    def late(me: Any) -> Steps:
        log.append("not reached")
        yield 1 * NS

    def patient(me: Any) -> Steps:
        try:
            yield 100 * NS
        finally:
            me.process(late(me))

    def act(me: Actor) -> Steps:
        me.process(patient(me))
        yield 1 * NS
        me.end()

    stage(act).run()
    assert log == []


# -- Errors


# -- Resources


class Bank(Entity):
    """Serves customers at so many counters; each takes ten nanoseconds."""

    def __init__(self, counters: int, patience: int | None = None) -> None:
        self.counters = Resource(counters)
        self.patience = patience
        self.log: Log = []
        self.customers: dict[Any, Process] = {}

    def on_customer(self, name: Any) -> None:
        self.customers[name] = self.process(self.serve(name))

    def on_call_away(self, name: Any) -> None:
        self.customers[name].interrupt("a call")

    def on_end(self, _: None) -> None:
        self.end()

    def serve(self, name: Any) -> Steps:
        try:
            with self.counters.acquire() as turn:
                if (yield wait(turn, limit=self.patience)) is None:
                    self.log.append((self.now, name, "leaves"))
                    return
                self.log.append((self.now, name, "served"))
                yield 10 * NS
            self.log.append((self.now, name, "done"))
        except Interrupt as interrupt:
            self.log.append((self.now, name, interrupt.cause))


def visit(bank: Bank, *happenings: tuple[int, str, Any]) -> Log:
    simulation = Simulation()
    simulation.add("bank", bank)
    for at, topic, payload in happenings:
        simulation.send("bank", topic, payload, at=at)
    simulation.run()
    return bank.log


def test_a_resource_is_granted_in_the_order_in_which_it_was_claimed() -> None:
    log = visit(Bank(2), *((number, "customer", number) for number in range(5)))
    served = [(at, number) for at, number, what in log if what == "served"]
    assert served == [(0, 0), (1, 1), (10, 2), (11, 3), (20, 4)]


def test_a_customer_that_is_called_away_while_waiting_gives_up_the_claim() -> None:
    bank = Bank(1)
    log = visit(bank, (0, "customer", "ann"), (1, "customer", "bob"), (2, "customer", "cid"), (5, "call_away", "bob"))
    assert log == [
        (0, "ann", "served"),
        (5, "bob", "a call"),
        (10, "ann", "done"),
        (10, "cid", "served"),
        (20, "cid", "done"),
    ]
    assert (bank.counters.held, bank.counters.waiting) == (0, 0)


def test_a_customer_that_is_called_away_at_the_moment_of_the_grant_loses_nothing_for_others() -> None:
    bank = Bank(1)
    log = visit(bank, (0, "customer", "ann"), (1, "customer", "bob"), (2, "customer", "cid"), (10, "call_away", "bob"))
    assert [entry for entry in log if entry[1] == "cid"] == [(10, "cid", "served"), (20, "cid", "done")]
    assert (bank.counters.held, bank.counters.waiting) == (0, 0)


def test_a_customer_without_patience_leaves() -> None:
    bank = Bank(1, patience=4)
    log = visit(bank, *((number, "customer", number) for number in (0, 1, 7)))
    assert log == [(0, 0, "served"), (5, 1, "leaves"), (10, 0, "done"), (10, 7, "served"), (20, 7, "done")]
    assert (bank.counters.held, bank.counters.waiting) == (0, 0)


def test_a_block_that_is_left_before_its_turn_without_having_waited_is_refused() -> None:
    machine = Resource(1)

    def hold(me: Any) -> Steps:
        with machine.acquire() as turn:
            yield turn
            yield 9 * NS

    def forget(me: Any) -> Steps:
        with machine.acquire():
            yield 5 * NS

    with pytest.raises(ModelError, match=r"left before its turn.*write yield turn at its beginning") as caught:
        play(hold, forget)
    assert caught.value.at == 5


def test_a_resource_says_how_many_hold_it_and_wait() -> None:
    counts: Log = []

    def steps(me: Any) -> Steps:
        machine = Resource(2)
        turns = [machine.acquire() for _ in range(5)]
        counts.append((machine.capacity, machine.held, machine.waiting, [turn.fired for turn in turns]))
        machine.release(turns[3])  # Never granted: the claim is given up.
        machine.release(turns[0])
        counts.append((machine.held, machine.waiting, [turn.fired for turn in turns]))
        for turn in turns * 2:
            machine.release(turn)  # A second time does nothing.
        counts.append((machine.held, machine.waiting))
        yield 0

    play(steps)
    assert counts == [
        (2, 2, 3, [True, True, False, False, False]),
        (2, 1, [True, True, True, False, False]),
        (0, 0),
    ]


@pytest.mark.parametrize("capacity", [0, -1, 1.0, True, None, "2"])
def test_a_resource_of_nothing_is_refused(capacity: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"a resource can't have a capacity of"):
        Resource(capacity)


def test_a_resource_is_not_shared_between_entities() -> None:
    machine = Resource(1)

    def use(me: Actor) -> Steps:
        with machine.acquire() as turn:
            yield turn
            yield 5 * NS

    error = error_of(use, ModelError, b=use)
    assert "b uses a Resource that belongs to a" in str(error)


def test_an_entity_can_end_while_its_resource_is_held_and_waited_for() -> None:
    bank = Bank(1)
    visit(bank, (0, "customer", "ann"), (1, "customer", "bob"), (5, "end", None))
    assert bank.has_ended
    assert bank.counters.held == 0


def test_messages_keep_coming_while_processes_wait() -> None:
    # A reader that is interrupted must not swallow a message that comes at the same moment.
    log: Log = []

    def steps(me: Any) -> Steps:
        while len(log) < 4:
            try:
                message = yield receive("x", limit=50)
                log.append(message and message.payload)
            except Interrupt:
                log.append("interrupted")

    simulation = Simulation()
    simulation.add("a", Loner(steps))
    simulation.add("b", Actor(lambda me: me.interrupt("a", delay=5)))
    for number, at in enumerate((5, 5, 7)):
        simulation.send("a", "x", number, at=at)
    simulation.run()
    assert log == ["interrupted", 0, 1, 2]


def test_a_signal_that_is_fired_between_runs_is_heard_in_the_next() -> None:
    log: Log = []
    signal = Signal()

    def waiting(me: Actor) -> Steps:
        log.append(((yield signal), me.now))

    simulation = stage(waiting)
    simulation.run(until=10)
    signal.fire("value")
    assert log == []
    simulation.run()
    assert log == [("value", 10)]


def test_a_claim_may_be_given_up_without_having_waited() -> None:
    machine = Resource(1)

    def hold(me: Any) -> Steps:
        with machine.acquire() as turn:
            yield turn
            yield 5 * NS

    def balk(me: Any) -> Steps:
        with machine.acquire() as turn:
            machine.release(turn)
        yield 0

    play(hold, balk)
    assert (machine.held, machine.waiting) == (0, 0)
