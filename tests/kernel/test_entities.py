"""Entities: their handlers, timers and messages, how they come and go, and what they may not do."""

from __future__ import annotations

import copy
import enum
import gc
import pickle
import re
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from tests.kernel.actors import Actor, Steps, burst_max, error_of, payloads, stage
from worldline.kernel import Entity, EntityMessage, ScheduledEvent, Simulation, build, process, receive
from worldline.model import (
    MS,
    NS,
    TIME_MAX,
    ConfigurationError,
    ModelError,
    Network,
    Stream,
    Stuck,
    UsageError,
    WorldlineError,
    link,
)

TOO_LATE = "arrived after its receiver had ended"
IS_COMPILED = build == "compiled"

# -- Handlers


class Clerk(Entity):
    """Notes which of its methods was called with what."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def start(self) -> None:
        self.calls.append(("start", self.now))

    def on_order(self, payload: Any) -> None:
        self.calls.append(("on_order", payload))

    def handle(self, message: EntityMessage) -> None:
        self.calls.append(("handle", message))


def test_a_topic_has_its_own_handler_and_handle_takes_the_others() -> None:
    simulation = Simulation()
    simulation.add("clerk", Clerk())
    simulation.send("clerk", "order", {"of": 3}, at=5)
    simulation.send("clerk", "order", at=6)
    simulation.send("clerk", "complaint", "late", at=7)
    simulation.run()
    clerk: Any = simulation["clerk"]
    message = EntityMessage(arrival=7, sent=0, sender="", sequence=2, copy=0, topic="complaint", payload="late")
    assert clerk.calls == [("start", 0), ("on_order", {"of": 3}), ("on_order", None), ("handle", message)]


def test_a_message_named_start_does_not_start_anything_again() -> None:
    simulation = Simulation()
    simulation.add("clerk", Clerk())
    simulation.send("clerk", "start", at=3)
    simulation.run()
    assert [name for name, _ in simulation["clerk"].calls] == ["start", "handle"]


def test_a_message_that_nothing_takes_is_refused_with_both_ends() -> None:
    class Deaf(Entity):
        def on_y(self, _: None) -> None: ...

    simulation = Simulation()
    simulation.add("a", Actor(lambda me: me.send("deaf", "x", delay=4)))
    simulation.add("deaf", Deaf())
    with pytest.raises(ModelError, match=r"deaf at 4ns: it can't take 'x' from a: Deaf has no on_x") as caught:
        simulation.run()
    assert caught.value.facts == {"receiver": "deaf", "sender": "a"}


def test_a_handler_that_is_nearly_right_is_named() -> None:
    class Doctor(Entity):
        def on_patiant(self, _: None) -> None: ...

    simulation = Simulation()
    simulation.add("doctor", Doctor())
    simulation.send("doctor", "patient")
    with pytest.raises(ModelError, match=r"has no on_patient, .* \(did you mean 'on_patiant'\?\)"):
        simulation.run()


@pytest.mark.parametrize("returned", [5, "5ms", [1], True, 0.5, iter([1]), lambda: 1])
def test_what_a_handler_returns_is_nobodys_business_unless_it_is_a_generator(returned: Any) -> None:
    simulation = stage(lambda me: returned)
    assert simulation.run().events == 2


def test_a_coroutine_is_refused() -> None:
    async def act(me: Actor) -> None: ...

    error = error_of(act, ModelError)
    assert "a handler is asynchronous" in str(error)
    assert (error.participant, error.at) == ("a", 0)


def test_who_sent_it_and_when_is_known_while_it_is_handled() -> None:
    class Curious(Entity):
        def __init__(self) -> None:
            self.seen: list[tuple[str, int, int]] = []

        def start(self) -> None:
            self.see(None)
            self.schedule("tick", delay=2)

        def see(self, _: None) -> None:
            self.seen.append((self.sender, self.sent_at, self.now))

        on_x = on_tick = see

    def act(me: Actor) -> Steps:
        yield 3 * NS
        me.send("curious", "x", delay=4)

    simulation = Simulation()
    simulation.add("curious", Curious())
    simulation.add("a", Actor(act))
    simulation.send("curious", "x", at=5)
    simulation.run()
    assert simulation["curious"].seen == [("curious", 0, 0), ("curious", 0, 2), ("", 0, 5), ("a", 3, 7)]


# -- Timers


def test_a_timer_says_what_it_is_and_whether_it_will_ring() -> None:
    timers: list[ScheduledEvent] = []

    def act(me: Actor) -> Steps:
        yield 10 * NS
        timers.append(me.schedule("ring", {"a": 1}, delay=5))
        timers.append(me.schedule("ring", at="20ns"))
        assert [timer.is_live for timer in timers] == [True, True]

    simulation = stage(act)
    simulation.run(until=16)
    assert [(timer.topic, timer.payload, timer.time) for timer in timers] == [
        ("ring", {"a": 1}, 15),
        ("ring", None, 20),
    ]
    assert [timer.is_live for timer in timers] == [False, True]
    simulation.run()
    assert [(message.arrival, message.payload) for message in simulation["a"].got] == [(15, {"a": 1}), (20, None)]


def test_a_canceled_timer_does_not_ring_and_can_be_canceled_once() -> None:
    told: list[bool] = []

    def act(me: Actor) -> Steps:
        first, second = me.schedule("x", 1, delay=5), me.schedule("x", 2, delay=5)
        told.append(me.cancel(first))
        told.append(me.cancel(first))
        yield 10 * NS
        told.append(me.cancel(second))

    simulation = stage(act)
    simulation.run()
    assert told == [True, False, False]
    assert payloads(simulation["a"]) == [2]


def test_a_timer_is_the_entitys_own_so_its_payload_is_not_copied() -> None:
    own: list[Any] = [1, lambda: 1]

    def act(me: Actor) -> None:
        me.schedule("x", own, delay=1)
        me.send("a", "x", own)  # To itself: the same thing.

    simulation = stage(act)
    simulation.run()
    first, second = simulation["a"].got
    assert first.payload is second.payload is own
    assert (first.arrival, second.arrival) == (1, 1)


@pytest.mark.parametrize(
    ("when", "time"),
    [
        ({"delay": 0}, 7),
        ({"delay": 3}, 10),
        ({"delay": "3us"}, 3_007),
        ({"delay": "0"}, 7),
        ({"at": 7}, 7),
        ({"at": "1ms"}, MS),
        ({"at": TIME_MAX}, TIME_MAX),
        ({"delay": TIME_MAX - 7}, TIME_MAX),
    ],
)
def test_times_are_delays_or_points_in_time(when: dict[str, Any], time: int) -> None:
    def act(me: Actor) -> Steps:
        yield 7 * NS
        me.schedule("x", **when)

    simulation = stage(act)
    simulation.run()
    assert [message.arrival for message in simulation["a"].got] == [time]
    assert simulation.now == time


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ({"delay": -1}, "which is past"),
        ({"delay": -(2**63)}, "which is past|isn't a delay"),
        ({"delay": -(2**200)}, "isn't a delay"),
        ({"at": 6}, "scheduled for 6ns, which is past"),
        ({"at": -5}, "which is past|isn't a"),
        ({"at": -(2**63)}, "which is past|isn't a"),
        ({"delay": 1.5}, "1.5 isn't a delay"),
        ({"delay": True}, "True isn't a delay"),
        ({"at": False}, "False isn't a"),
        ({"delay": "soon"}, "'soon' isn't a delay"),
        ({"delay": "-5ms"}, "isn't a delay"),
        ({"delay": "0.5ns"}, "isn't a delay"),
        ({"delay": b"5ms"}, "isn't a delay"),
        ({"delay": TIME_MAX - 6}, "after the last time"),
        ({"delay": 2**62}, "after the last time|isn't a delay"),
        ({"delay": 2**63 - 1}, "after the last time|isn't a delay"),
        ({"delay": 2**63}, "isn't a delay"),
        ({"delay": 2**64 + 5}, "isn't a delay"),
        ({"at": TIME_MAX + 1}, "after the last time|isn't a"),
        ({}, "give one of the two"),
        ({"delay": 1, "at": 5}, "give one of the two"),
    ],
)
def test_a_time_that_is_none_is_refused_with_who_and_when(when: dict[str, Any], problem: str) -> None:
    def act(me: Actor) -> Steps:
        yield 7 * NS
        me.schedule("x", **when)

    simulation = stage(act)
    with pytest.raises(WorldlineError, match=problem) as caught:
        simulation.run()
    assert (caught.value.participant, caught.value.at) == ("a", 7)


@pytest.mark.parametrize("topic", ["", " x", "x\n", "x" * 256, None, 5, ("x",), ["x"]])
@pytest.mark.parametrize("verb", ["schedule", "send", "send to itself"])
def test_a_topic_that_is_none_is_refused(topic: Any, verb: str) -> None:
    def act(me: Actor) -> None:
        if verb == "schedule":
            me.schedule(topic, delay=1)
        else:
            me.send("b" if verb == "send" else "a", topic)

    assert "can't name a topic" in str(error_of(act, ModelError))


class Burst(Entity):
    """Lets one event follow the other without a delay, so many times."""

    def __init__(self, left: int) -> None:
        self.left = left

    def start(self) -> None:
        self.on_x(None)

    def on_x(self, _: None) -> None:
        if self.left:
            self.left -= 1
            self.schedule("x", delay=0)


def test_a_burst_without_end_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    most = burst_max(monkeypatch)
    simulation = Simulation()
    simulation.add("a", Burst(most + 1))
    with pytest.raises(Stuck, match=f"a at 0s: it has gone on {most:,} times without a delay"):
        simulation.run()
    assert simulation["a"].left == 0


# -- Messages


@pytest.mark.parametrize(
    ("delay", "arrival"), [(None, 8), (1, 8), (3, 10), ("2us", 2_007), (TIME_MAX - 7, TIME_MAX)], ids=repr
)
def test_a_message_takes_a_nanosecond_or_as_long_as_it_is_told(delay: Any, arrival: int) -> None:
    def act(me: Actor) -> Steps:
        yield 7 * NS
        me.send("b", "x", "hello", delay=delay)

    simulation = stage(act)
    simulation.run()
    assert simulation["b"].got == [EntityMessage(arrival, 7, "a", 3, 0, "x", "hello")]


@pytest.mark.parametrize(
    ("delay", "problem"),
    [
        (0, "a message to b can't arrive after 0s: the link between them takes at least 1ns"),
        (-1, "a message to b can't arrive after -1ns"),
        ("0", "can't arrive after 0s"),
        (True, "True isn't a delay"),
        (1.0, "1.0 isn't a delay"),
        (2**62, "would arrive after the last time|isn't a delay"),
        (2**63 - 1, "would arrive after the last time|isn't a delay"),
        (2**100, "would arrive after the last time|isn't a delay"),
        (TIME_MAX - 6, "would arrive after the last time"),
    ],
    ids=repr,
)
def test_a_message_into_the_past_or_beyond_all_times_is_refused(delay: Any, problem: str) -> None:
    def act(me: Actor) -> Steps:
        yield 7 * NS
        me.send("b", "x", delay=delay)

    simulation = stage(act)
    with pytest.raises(WorldlineError, match=problem) as caught:
        simulation.run()
    assert (caught.value.participant, caught.value.at) == ("a", 7)


@pytest.mark.parametrize(
    ("to", "advice"),
    [
        ("bb", "did you mean 'b'"),
        ("", None),
        ("A", None),
        ("c/1", None),
        (5, "sent to names"),
        (None, "sent to names"),
    ],
)
def test_a_message_to_a_name_that_nobody_can_have_is_refused_at_once(to: Any, advice: str | None) -> None:
    error = error_of(lambda me: me.send(to, "x"), ModelError)
    assert f"there is no entity named {to!r}" in str(error)
    assert (error.participant, error.at, error.facts["receiver"]) == ("a", 0, str(to))
    assert advice is None or advice in str(error)


# -- Creating


def test_created_entities_have_their_creators_name_in_front_and_start_at_once() -> None:
    started: list[tuple[str, int]] = []

    def child(me: Actor) -> None:
        started.append((me.name, me.now))
        if me.name.count("/") < 3:
            me.create(Actor(child))

    def act(me: Actor) -> Steps:
        yield 5 * NS
        names = [me.create(Actor(child)), me.create(Actor(child), "kim"), me.create(Actor(child))]
        assert names == ["a/1", "a/kim", "a/2"]

    simulation = stage(act)
    simulation.run()
    names = [f"a/{name}{more}" for name in ("1", "2", "kim") for more in ("", "/1", "/1/1")]
    assert sorted(started) == [(name, 5) for name in names]
    assert all(name in simulation for name in names)
    assert repr(simulation["a/kim"]) == "<Actor a/kim>"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("x/y", "must not have a /"),
        ("7", "be a number"),
        ("", "can't name an entity"),
        (" x", "can't name an entity"),
        (5, "can't name an entity"),
        ("x" * 256, "can't name an entity"),
        ("~" + "0a" * 16, "~ and a hash stand for a creator's name"),
        ("taken", "has created a 'taken' before"),
        ("gone", "has created a 'gone' before"),
        ("listed", "there is an entity named 'a/listed' already"),
    ],
)
def test_a_created_entity_gets_a_name_of_its_own_or_none(name: Any, problem: str) -> None:
    def act(me: Actor) -> Steps:
        me.create(Actor(), "taken")
        me.create(Actor(lambda child: child.end()), "gone")
        yield 1 * NS
        me.create(Actor(), name)

    simulation = stage(act)
    simulation.add("a/listed", Actor())
    with pytest.raises(WorldlineError, match=problem) as caught:
        simulation.run()
    assert (caught.value.participant, caught.value.at) == ("a", 1)


@pytest.mark.parametrize("name", ["~" + "0a" * 16, "a/~" + "0a" * 16, "a/~" + "0a" * 16 + "/x"])
def test_nobody_is_added_where_later_generations_stand(name: str) -> None:
    """Before the run and later: who has such a name would be taken for the place of those that begin with it."""
    simulation = stage(lambda me: me.create(Actor()))
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="~ and a hash stand for a creator's name"):
            simulation.add(name, Actor())
        simulation.run()


@pytest.mark.parametrize("thing", [Actor, 5, None, "b", lambda: 1, process])
def test_only_entities_can_be_created(thing: Any) -> None:
    error = error_of(lambda me: me.create(thing), ModelError)
    assert "isn't an Entity" in str(error)
    assert (error.participant, error.at) == ("a", 0)


def test_an_entity_takes_part_once() -> None:
    child = Actor()

    def act(me: Actor) -> None:
        me.create(child, "x")
        me.create(child, "y")

    assert "a/x is part of a simulation already, and can't be a/y too" in str(error_of(act, ModelError))
    other = Simulation()
    with pytest.raises(ConfigurationError, match="z: this entity takes part already, as a/x"):
        other.add("z", child)


class Generation(Entity):
    """Creates its successor, and ends."""

    def __init__(self, left: int, names: list[str]) -> None:
        self.left = left
        self.names = names

    def start(self) -> None:
        self.names.append(self.name)
        if self.left:
            self.create(Generation(self.left - 1, self.names))
        self.end()


def test_a_lineage_has_no_end_and_names_stay_short() -> None:
    names: list[str] = []
    simulation = Simulation()
    simulation.add("a", Generation(1_000, names))
    result = simulation.run()
    assert result.events == len(set(names)) == 1_001
    assert names[127] == "a" + 127 * "/1"  # As long as names may be, all of it can be read.
    assert all(re.fullmatch("a/~[0-9a-f]{32}/1", name) for name in names[128:])
    assert result.digest.hex() == "373901a6d8e0f83e07c23c44a3c36194"


class Mother(Entity):
    """Creates one child after the other."""

    def __init__(self, children: int) -> None:
        self.children = children

    def start(self) -> Steps:
        for _ in range(self.children):
            self.create(process(brief))
            yield 20 * NS


def brief(me: Entity) -> Steps:
    me.send("b", "hello")
    yield receive()


class Answerer(Entity):
    def on_hello(self, _: None) -> None:
        self.send(self.sender, "well")


def families(children: int, generations: int) -> Simulation:
    simulation = Simulation(network=Network(default=link("uniform(1ns, 9ns)", fifo=True)), seed=1)
    simulation.add("a", Mother(children))
    simulation.add("b", Answerer())
    simulation.add("c", process(heir, generations))
    return simulation


def heir(me: Entity, left: int) -> Steps:
    yield 20 * NS
    if left:
        me.create(process(heir, left - 1))


def test_of_those_who_were_created_and_have_ended_nothing_is_kept() -> None:
    simulation = families(children=2_500, generations=2_500)
    tracemalloc.start()
    try:
        kept = [kept_at(simulation, time) for time in (30_000, 50_000)]
    finally:
        tracemalloc.stop()
    assert kept[1] - kept[0] < 50_000  # For 2,000 of them.


def kept_at(simulation: Simulation, time: int) -> int:
    simulation.run(until=time)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    return kept


# -- Ending, and messages to those who aren't there


def test_what_an_ended_entity_had_in_mind_does_not_happen() -> None:
    def act(me: Actor) -> Steps:
        me.schedule("x", delay=5)
        me.schedule("x", delay=0)
        me.process(sleep(me))
        yield 3 * NS
        me.end()

    def sleep(me: Actor) -> Steps:
        yield 5 * NS
        raise AssertionError("it has ended")

    simulation = stage(act)
    simulation.run()
    entity: Any = simulation["a"]
    assert entity.has_ended
    assert [message.arrival for message in entity.got] == [0]
    assert "a" in simulation  # Whoever was there from the start can still be looked at.


def test_an_entity_can_end_before_it_has_started_anything() -> None:
    simulation = stage(lambda me: me.end())
    simulation.send("a", "x", at=0)
    simulation.send("a", "x", at=1)
    result = simulation.run()
    assert simulation["a"].got == []  # What comes from outside at 0 comes after the start.
    assert result.dropped == {("a", "x", TOO_LATE): 2}


@pytest.mark.parametrize(
    "verb", ["send", "schedule", "create", "record", "end", "process", "stream", "random", "cancel"]
)
def test_an_ended_entity_does_nothing_more(verb: str) -> None:
    def act(me: Actor) -> None:
        timer = me.schedule("x", delay=1)
        me.end()
        assert me.has_ended
        VERBS[verb](me, timer)

    error = error_of(act, ModelError)
    assert "it has ended, and can't act any more" in str(error)
    assert (error.participant, error.at) == ("a", 0)


VERBS: dict[str, Callable[[Any, ScheduledEvent], Any]] = {
    "send": lambda me, _: me.send("b", "x"),
    "schedule": lambda me, _: me.schedule("x", delay=1),
    "create": lambda me, _: me.create(Actor()),
    "record": lambda me, _: me.record("x", 1),
    "end": lambda me, _: me.end(),
    "process": lambda me, _: me.process(_ for _ in ()),
    "stream": lambda me, _: me.stream("x"),
    "random": lambda me, _: me.random,
    "cancel": lambda me, timer: me.cancel(timer),
    "interrupt": lambda me, _: me.interrupt("b"),
    "sender": lambda me, _: me.sender,
    "sent_at": lambda me, _: me.sent_at,
}


def test_messages_to_those_who_have_ended_vanish_and_are_counted() -> None:
    def act(me: Actor) -> Steps:
        me.create(Actor(lambda child: child.end()), "brief")
        me.send("b", "early", delay=4)
        me.send("b", "late", delay=6)
        yield 10 * NS
        for _ in range(3):
            me.send("b", "very late")
            me.send("a/brief", "very late")
            me.interrupt("a/brief")

    def end(me: Actor) -> Steps:
        yield 5 * NS
        me.end()

    simulation = stage(act, b=end)
    result = simulation.run()
    assert [message.topic for message in simulation["b"].got] == ["early"]
    assert result.dropped == {
        ("a/brief", "interrupt!", TOO_LATE): 3,
        ("a/brief", "very late", TOO_LATE): 3,
        ("b", "late", TOO_LATE): 1,
        ("b", "very late", TOO_LATE): 3,
    }
    assert "a/brief" not in simulation


def test_a_message_finds_an_entity_that_was_created_after_it_was_sent() -> None:
    def act(me: Actor) -> Steps:
        me.send("a/kim", "x", "sent before there was one", delay=6)
        yield 5 * NS
        me.create(Actor(), "kim")

    simulation = stage(act)
    simulation.run()
    assert payloads(simulation["a/kim"]) == ["sent before there was one"]


@pytest.mark.parametrize("name", ["a/9", "a/kim", "b/1", "a/1/1", "a/01", "a/0", "a/", "a/1/", "a//1", "a/²"])
def test_a_message_to_somebody_who_never_was_there_is_an_error_when_it_arrives(name: str) -> None:
    def act(me: Actor) -> None:
        me.create(Actor())
        me.send(name, "x", delay=9)

    error = error_of(act, ModelError)
    assert f"a message to {name} arrives at 9ns, and there never was such an entity" in str(error)
    assert (error.participant, error.at) == ("a", 9)


def test_descendants_of_those_who_are_gone_are_known_to_have_been() -> None:
    def parent(me: Any) -> Steps:
        me.create(process(brief))
        yield 1 * NS

    def brief(me: Any) -> Steps:
        yield 1 * NS

    def act(me: Actor) -> Steps:
        me.create(process(parent))
        yield 5 * NS
        me.send("a/1", "x")
        me.send("a/1/1", "x")

    result = stage(act).run()
    assert result.dropped == {("a/1", "x", TOO_LATE): 1, ("a/1/1", "x", TOO_LATE): 1}


def test_an_entity_made_of_a_process_ends_with_it() -> None:
    def steps(me: Any) -> Steps:
        yield 5 * NS

    simulation = Simulation()
    simulation.add("p", process(steps))
    simulation.send("p", "x", at=4)  # It could still receive that.
    simulation.send("p", "x", at=6)
    result = simulation.run()
    assert simulation["p"].has_ended
    assert result.dropped == {("p", "x", TOO_LATE): 1}


@pytest.mark.parametrize("function", [lambda me: None, print, 5, None, Actor])
def test_a_process_is_made_of_a_generator_function(function: Any) -> None:
    with pytest.raises(UsageError, match="isn't a generator function"):
        process(function)


# -- Acting for another, or when nothing happens


@pytest.mark.parametrize("verb", VERBS)
def test_nobody_acts_for_another(verb: str) -> None:
    simulation = Simulation()
    victim = Actor(lambda me: setattr(me, "timer", me.schedule("x", delay=9)))

    def act(me: Actor) -> Steps:
        yield 1 * NS
        VERBS[verb](victim, victim.timer)  # type: ignore[attr-defined]

    simulation.add("a", Actor(act))
    simulation.add("b", victim)
    with pytest.raises(ModelError, match="a at 1ns: a acted for b") as caught:
        simulation.run()
    assert (caught.value.participant, caught.value.at) == ("a", 1)
    assert "by messages only" in str(caught.value)


def test_nobody_cancels_anothers_timer() -> None:
    simulation = Simulation()
    victim = Actor(lambda me: setattr(me, "timer", me.schedule("x", delay=9)))

    def act(me: Actor) -> Steps:
        yield 1 * NS
        me.cancel(victim.timer)  # type: ignore[attr-defined]

    simulation.add("a", Actor(act))
    simulation.add("b", victim)
    with pytest.raises(ModelError, match="a at 1ns: the timer is b's"):
        simulation.run()


@pytest.mark.parametrize("verb", VERBS)
def test_nobody_acts_before_it_takes_part_or_while_nothing_happens(verb: str) -> None:
    timers: list[ScheduledEvent] = []
    simulation = Simulation()
    entity = Actor(lambda me: timers.append(me.schedule("x", delay=9)))
    stage(lambda me: timers.append(me.schedule("x", delay=9))).run()  # Some timer, since there is none yet.
    with pytest.raises(UsageError, match="isn't part of a simulation yet"):
        VERBS[verb](entity, timers[0])
    simulation.add("a", entity)
    with pytest.raises(UsageError, match="isn't part of a simulation yet"):
        VERBS[verb](entity, timers[0])
    simulation.run(until=5)
    with pytest.raises(UsageError, match=r"a can't act while nothing happens \(use the simulation's own send\(\)\)"):
        VERBS[verb](entity, timers[1])
    simulation.run()
    assert len(entity.got) == 1


def test_an_entity_can_be_looked_at_before_it_takes_part() -> None:
    entity = Entity()
    assert (entity.now, entity.name, entity.has_ended, repr(entity)) == (0, None, False, "<Entity>")


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_entities_are_not_copied(copying: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="others know it by its name"):
        copying(Actor())


@pytest.mark.parametrize("name", ["name", "now", "sender", "sent_at", "random", "has_ended"])
def test_what_the_kernel_keeps_in_an_entity_is_not_the_models_to_set(name: str) -> None:
    with pytest.raises(UsageError, match=f"an entity's {name} can't be set .*call your own attribute something else"):
        setattr(Actor(), name, "mine")


class Named:
    name = "a mixin's"


@pytest.mark.parametrize(
    ("bases", "own", "hidden"),
    [
        ((Entity,), {"name": "x"}, "name"),
        ((Entity,), {"__slots__": ("now",)}, "now"),
        ((Entity,), {"random": property(lambda _: 4)}, "random"),
        ((Named, Entity), {}, "name"),
        ((Entity,), {"send": None}, "send"),
        ((Entity,), {"__slots__": ("record",)}, "record"),
    ],
)
def test_a_class_that_hides_what_every_entity_has_is_refused(
    bases: tuple[type, ...], own: dict[str, Any], hidden: str
) -> None:
    problem = f"Car has an attribute {hidden} of its own, which hides that of every entity"
    with pytest.raises(UsageError, match=problem):
        type("Car", bases, own)


def test_a_method_can_be_replaced_by_another() -> None:
    class Loud(Entity):
        def send(self, to: str, topic: str, payload: Any = None, **options: Any) -> None:
            super().send(to, topic.upper(), payload, **options)

        def start(self) -> None:
            self.send("b", "x")

    simulation = Simulation()
    simulation.add("a", Loud())
    simulation.add("b", Actor())
    simulation.run()
    assert [message.topic for message in simulation["b"].got] == ["X"]


def test_an_attribute_that_hides_a_method_is_named_when_that_goes_wrong() -> None:
    def act(me: Any) -> None:
        me.record = []
        me.record("level", 3)

    assert "its attribute record hides the method of that name: call it something else" in str(
        error_of(act, ModelError)
    )
    error = error_of(lambda _: [] + (), ModelError)  # type: ignore[operator]
    assert error.advice is None


def test_names_that_start_with_an_underscore_are_the_models_too() -> None:
    # Uncompiled, a model's self._order would even change the order of events without anybody noticing.
    names = [
        *(
            "_state",
            "_order",
            "_key",
            "_random",
            "_chain",
            "_rank",
            "_place",
            "_extras",
            "_roster",
            "_history",
            "_note",
        ),
        *("_engine", "_handlers", "_inbox", "_main", "_others", "_number", "_pins", "_burst", "_call", "_is_here"),
    ]
    clashes = []
    for name in names:

        class Modest(Entity):
            def __init__(self, name: str) -> None:
                setattr(self, name, ["mine"])

            def start(self) -> Steps:
                self.record("x", self.random.random())
                self.send("b", "x")
                yield 5 * NS

        try:
            simulation = Simulation()
            simulation.add("a", Modest(name))
            simulation.add("b", Actor())
            simulation.run()
            if getattr(simulation["a"], name) != ["mine"]:
                clashes.append(name)
        except Exception:
            clashes.append(name)
    assert clashes == []


# -- Draws


def test_draws_are_fixed_by_seed_and_name() -> None:
    def drawn(seed: int) -> list[list[float]]:
        simulation = Simulation(seed=seed)
        kept: list[list[float]] = []

        def act(me: Actor) -> Steps:
            me.random.random()
            yield 1 * NS
            kept.append([me.random.random(), me.stream("wind").random(), me.stream("waves").random()])

        for name in ("b", "a"):
            simulation.add(name, Actor(act))
        simulation.run()
        return kept

    expected = []
    for name in ("a", "b"):
        own = Stream(7, name)
        own.random()
        expected.append([own.random(), Stream(7, name, "wind").random(), Stream(7, name, "waves").random()])
    assert drawn(7) == expected
    assert drawn(8) != expected


# -- Errors


class UnusualError(Exception):
    """Nobody else raises this one."""


def fail(*_: Any) -> None:
    raise UnusualError("no reason")


LINE_OF_FAIL = f"test_entities.py, line {fail.__code__.co_firstlineno + 1}"


def failing(me: Any) -> Steps:
    yield 3 * NS
    fail()


class Failing(Entity):
    """Fails in its handler for x, in handle, or in a process."""

    on_x = fail
    handle = fail

    def on_process(self, _: None) -> Steps:
        return failing(self)

    def on_timer(self, _: None) -> None:
        self.schedule("x", delay=3)


@pytest.mark.parametrize(
    ("topic", "at", "doing"),
    [("x", 4, "on 'x' "), ("y", 4, "on 'y' "), ("process", 7, ""), ("timer", 7, "on 'x' ")],
)
def test_an_error_says_who_when_and_why(topic: str, at: int, doing: str) -> None:
    simulation = Simulation()
    simulation.add("f", Failing())
    simulation.send("f", topic, at=4)
    with pytest.raises(ModelError) as caught:
        simulation.run()
    error = caught.value
    assert str(error) == f"f at {at}ns: {doing}it raised UnusualError: no reason, in {LINE_OF_FAIL}"
    assert (error.participant, error.at) == ("f", at)
    assert type(error.__cause__) is UnusualError
    assert error.exit_code == 1


@pytest.mark.parametrize("does", [fail, failing])
def test_an_error_in_the_start_says_so_too(does: Callable[[Any], Any]) -> None:
    error = error_of(does, ModelError)
    at = "0s" if does is fail else "3ns"
    assert str(error) == f"a at {at}: it raised UnusualError: no reason, in {LINE_OF_FAIL}"
    assert type(error.__cause__) is UnusualError


@pytest.mark.parametrize("raised", [StopIteration(5), StopAsyncIteration(), LookupError("x"), RecursionError()])
def test_exceptions_that_python_uses_itself_are_errors_like_others(raised: Exception) -> None:
    def act(me: Actor) -> None:
        raise raised

    error = error_of(act, ModelError)
    assert error.__cause__ is raised


def test_a_models_own_worldline_errors_keep_their_class_and_get_a_place() -> None:
    def act(me: Actor) -> Steps:
        yield 2 * NS
        raise Stuck("nothing left to do", advice="give it something", task=5)

    error = error_of(act, Stuck)
    line = act.__code__.co_firstlineno + 2
    assert str(error) == f"a at 2ns: nothing left to do, in test_entities.py, line {line} (give it something)"
    assert error.facts == {"task": 5}


def test_an_error_that_names_somebody_already_goes_on_naming_him() -> None:
    def act(me: Actor) -> None:
        raise ModelError("wrong", participant="somebody", at=77)

    assert str(error_of(act)).startswith("somebody at 77ns: wrong, in ")


def test_a_models_own_worldline_error_keeps_its_cause() -> None:
    def act(me: Actor) -> None:
        try:
            fail()
        except UnusualError as error:
            raise ModelError("wrong") from error

    assert type(error_of(act).__cause__) is UnusualError


def test_a_payload_that_cannot_be_opened_is_the_receivers_error() -> None:
    simulation = stage(lambda me: me.send("b", "x", Grenade(5)))
    with pytest.raises(ModelError, match=r"b at 1ns: on 'x' it raised UnusualError: boom"):
        simulation.run()


class Grenade(dict[str, int]):
    """Can be sent, but not received."""

    def __init__(self, number: int) -> None:
        super().__init__(number=number)

    def __reduce__(self) -> Any:
        return explode, ()


def explode() -> None:
    raise UnusualError("boom")


def test_a_topic_that_is_a_member_of_an_enum_arrives_as_text() -> None:
    class Word(enum.StrEnum):
        HELLO = "hello"

    class Listener(Entity):
        def start(self) -> None:
            self.schedule(Word.HELLO, delay=1)

        def handle(self, message: EntityMessage) -> None:
            heard.append(message.topic)

    heard: list[str] = []
    simulation = Simulation()
    simulation.add("a", Actor(lambda me: [me.send("b", topic) for topic in (Word.HELLO, "hello", Word.HELLO)]))
    simulation.add("b", Listener())
    simulation.run()
    assert heard == ["hello"] * 4
    assert {type(topic) for topic in heard} == {str}
