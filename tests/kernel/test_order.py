"""The order of events at equal times, against a simulator that is too simple to be wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.actors import Actor, Steps, payloads
from tests.kernel.actors import history as history_of
from worldline.kernel import Entity, EntityMessage, Simulation, process
from worldline.model import NS, Network, link, uniform

# An event as both simulators log it: when it happens, to whom, and its place in the order of arrivals.
Event = tuple[int, str, int, str, int, Any]

# -- A table of small cases


def heard(names: tuple[str, ...], send: Callable[[Actor], None]) -> list[str]:
    """Let these entities, added in this order, all send to `r`; return in whose order it hears them."""
    simulation = Simulation()
    simulation.add("r", Actor())
    for name in names:
        simulation.add(name, Actor(send))
    simulation.run()
    return [message.sender for message in simulation["r"].got]


def test_at_equal_times_the_senders_name_decides_whoever_was_added_first() -> None:
    for names in permutations(("a", "Z", "a/x", "é", "a!")):
        assert heard(names, lambda me: me.send("r", "x", delay=5)) == sorted(names)


def test_an_event_without_delay_comes_after_all_that_has_arrived_at_the_moment() -> None:
    def act(me: Actor) -> Steps:
        me.schedule("first", delay=5)
        yield 5 * NS
        me.schedule("last", delay=0)
        yield 0
        me.schedule("very last", delay=0)

    simulation = Simulation()
    simulation.add("a", Actor(act))
    for name in ("A", "z"):
        simulation.add(name, Actor(lambda me: me.send("a", me.name, delay=5)))
    simulation.run()
    topics = [message.topic for message in simulation["a"].got]
    assert topics == ["A", "first", "z", "last", "very last"]


@pytest.mark.parametrize("added", list(permutations(("a", "b", "b0", "c"))), ids="-".join)
def test_those_created_during_the_run_stand_between_the_others_by_name(added: tuple[str, ...]) -> None:
    # `b/x` sorts between `b` and `b0`, its siblings beside it: all of those have one place between two others.
    def create(me: Actor) -> None:
        me.send("r", "x", me.name, delay=9)
        if me.name == "b":
            for name in ("z", "x", "y", None, None):
                me.create(Actor(lambda child: child.send("r", "x", child.name, delay=9)), name)

    assert heard(added, create) == ["a", "b", "b/1", "b/2", "b/x", "b/y", "b/z", "b0", "c"]


@pytest.mark.parametrize("own", ["timer", "process", "message", "start"])
def test_events_of_every_kind_obey_names_among_those_created_during_the_run(own: str) -> None:
    order: list[str] = []

    class Child(Entity):
        def start(self) -> Any:
            if own == "start":
                order.append(self.name)
            elif own == "timer":
                self.schedule("tick", delay=5)
            elif own == "message":
                self.send("a", "x", self.name, delay=5)
            else:
                return self.sleep()
            return None

        def sleep(self) -> Steps:
            yield 5 * NS
            order.append(self.name)

        def on_tick(self, _: None) -> None:
            order.append(self.name)

    class Parent(Entity):
        def start(self) -> None:
            for name in ("q", "d", "m", "p", "b"):
                self.create(Child(), name)

        def on_x(self, name: str) -> None:
            order.append(name)

    simulation = Simulation()
    simulation.add("a", Parent())
    simulation.run()
    assert order == ["a/b", "a/d", "a/m", "a/p", "a/q"]


def test_a_message_outlives_its_sender_and_keeps_its_place() -> None:
    def brief(me: Any) -> Steps:
        me.send("r", "x", me.name, delay=50)
        yield 1 * NS

    def create(me: Actor) -> Steps:
        for name in ("y", "x", "z"):
            me.create(process(brief), name)
        yield 10 * NS
        for name in ("x2", "w"):  # These may be kept where the others were.
            me.create(process(brief), name)
        yield 10 * NS
        me.send("r", "x", "a", delay=30)

    simulation = Simulation()
    simulation.add("a", Actor(create))
    simulation.add("r", Actor())
    simulation.run()
    assert payloads(simulation["r"]) == ["a/x", "a/y", "a/z", "a", "a/w", "a/x2"]
    assert [message.sender for message in simulation["r"].got] == payloads(simulation["r"])


# -- Random models, beside a simulator that sorts tuples

NAMES = ("a", "a!", "a/k", "a0", "b", "Z", "é")
DELAYS = st.sampled_from([1, 1, 2, 3, 5])
ACTIONS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(NAMES), DELAYS),
    st.tuples(st.just("reply"), st.just(""), DELAYS),
    st.tuples(st.just("child"), st.just(""), DELAYS),
    st.tuples(st.just("schedule"), st.just(""), st.sampled_from([0, 0, 1, 2, 4])),
    st.tuples(st.just("create"), st.sampled_from(["", "k", "b", "!"]), st.just(0)),
    st.tuples(st.just("cancel"), st.just(""), st.just(0)),
    st.tuples(st.just("end"), st.just(""), st.just(0)),
)
SCRIPTS = st.lists(st.lists(ACTIONS, max_size=4), min_size=1, max_size=9)
EVENTS_MAX = 6  # After so many an entity only listens, so every script comes to an end.
DEPTH_MAX = 2
AFTER_ALL_NAMES = chr(sys.maxunicode)  # Where those stand in the order who are outside, and have no name.

Action = tuple[str, str, int]
Script = list[list[Action]]


def actions(script: Script, name: str, number: int) -> list[Action]:
    """Return what an entity does on its event of that number: the same for both simulators."""
    return script[(sum(name.encode()) + 7 * number) % len(script)] if number < EVENTS_MAX else []


class Scripted(Entity):
    """An entity of the kernel that follows a script."""

    def __init__(self, script: Script, log: list[Event]) -> None:
        self.script = script
        self.log = log
        self.number = 0
        self.children: list[str] = []
        self.timers: list[Any] = []

    def start(self) -> None:
        self.act("")

    def handle(self, message: EntityMessage) -> None:
        assert (message.arrival, message.sender, message.sent) == (self.now, self.sender, self.sent_at)
        self.log.append((self.now, self.name, message.sent, message.sender, message.sequence, message.payload))
        self.act(message.sender)

    def act(self, sender: str) -> None:
        for verb, name, delay in actions(self.script, self.name, self.number):
            if verb == "send" or (verb == "reply" and sender) or (verb == "child" and self.children):
                to = name or (sender if verb == "reply" else self.children[-1])
                self.send(to, "x", f"{verb} {self.number}", delay=delay)
            elif verb == "schedule":
                self.timers.append(self.schedule("x", f"{verb} {self.number}", delay=delay))
            elif verb == "cancel" and self.timers:
                self.cancel(self.timers.pop())
            elif verb == "create" and self.name.count("/") < DEPTH_MAX:
                if name and (f"{self.name}/{name}" in NAMES or f"{self.name}/{name}" in self.children):
                    continue
                self.children.append(self.create(Scripted(self.script, self.log), name or None))
            elif verb == "end":
                self.end()
                return
        self.number += 1


class Naive:
    """The oracle: a list of all events, sorted anew for each. Slow, short, and without a heap, ranks or slots."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.log: list[Event] = []
        self.now = 0
        self.events: list[tuple[int, int, str, int, str, Any]] = []
        self.number: dict[str, int] = {}
        self.sequence: dict[str, int] = {}
        self.children: dict[str, list[str]] = {}
        self.unnamed: dict[str, int] = {}
        self.timers: dict[str, list[Any]] = {}
        self.ended: set[str] = set()
        self.dropped = 0

    def enter(self, name: str) -> None:
        self.number[name] = self.sequence[name] = self.unnamed[name] = 0
        self.children[name], self.timers[name] = [], []
        self.push(name, 0, name, None)

    def begin(self, sendings: list[tuple[str, int]]) -> None:
        """Those who are there from the beginning start before anything else; what is sent for time 0 comes after."""
        for name in NAMES:
            self.enter(name)
        self.events = [(at, -1, *rest) for at, _, *rest in self.events]  # type: ignore[misc]
        self.events += [(at, min(0, at - 1), "", number, to, "outside") for number, (to, at) in enumerate(sendings)]

    def push(self, sender: str, delay: int, target: str, payload: Any) -> Any:
        self.sequence[sender] += 1
        event = (self.now + delay, self.now, sender, self.sequence[sender], target, payload)
        self.events.append(event)
        return event

    def run(self) -> None:
        while self.events:
            self.events.sort(key=lambda event: (*event[:2], event[2] or AFTER_ALL_NAMES, event[3]))
            self.now, sent, sender, sequence, name, payload = self.events.pop(0)
            if name in self.ended:
                self.dropped += sender != name
            elif payload is None:  # A start.
                self.act(name, "")
            else:
                self.log.append((self.now, name, max(sent, 0), sender, sequence, payload))
                self.act(name, sender)

    def act(self, me: str, sender: str) -> None:
        for verb, name, delay in actions(self.script, me, self.number[me]):
            payload = f"{verb} {self.number[me]}"
            if verb == "send" or (verb == "reply" and sender) or (verb == "child" and self.children[me]):
                to = name or (sender if verb == "reply" else self.children[me][-1])
                # To itself it's a timer: but one that can't be canceled.
                self.push(me, delay, to, payload)
            elif verb == "schedule":
                self.timers[me].append(self.push(me, delay, me, payload))
            elif verb == "cancel" and self.timers[me]:
                timer = self.timers[me].pop()
                self.events = [event for event in self.events if event is not timer]
            elif verb == "create" and me.count("/") < DEPTH_MAX:
                full = f"{me}/{name}"
                if name and (full in NAMES or full in self.children[me]):
                    continue
                if not name:
                    self.unnamed[me] += 1
                    full = f"{me}/{self.unnamed[me]}"
                self.children[me].append(full)
                self.enter(full)
            elif verb == "end":
                self.ended.add(me)
                return
        self.number[me] += 1


@given(SCRIPTS, st.permutations(NAMES), st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 6)), max_size=4))
def test_any_model_happens_as_in_the_naive_simulator_whatever_order_it_was_built_in(
    script: Script, added: list[str], sendings: list[tuple[str, int]]
) -> None:
    oracle = Naive(script)
    oracle.begin(sendings)
    oracle.run()
    log: list[Event] = []
    simulation = Simulation()
    for name in added:
        simulation.add(name, Scripted(script, log))
    for to, at in sendings:
        simulation.send(to, "x", "outside", at=at)
    result = simulation.run()
    assert log == oracle.log
    assert sum(result.dropped.values()) == oracle.dropped


@given(SCRIPTS)
def test_stepping_and_running_piecewise_give_the_same_as_running_at_once(script: Script) -> None:
    def build() -> tuple[Simulation, list[Event]]:
        log: list[Event] = []
        simulation = Simulation()
        for name in NAMES:
            simulation.add(name, Scripted(script, log))
        return simulation, log

    at_once, expected = build()
    digest = at_once.run().digest
    by_steps, stepped = build()
    while by_steps.step():
        pass
    piecewise, in_pieces = build()
    for until in range(0, 40, 3):
        piecewise.run(until=until)
    assert stepped == in_pieces == expected
    assert by_steps.result().digest == piecewise.run().digest == digest


# -- Strangers


class Gossip(Entity):
    """Draws, sends, creates and records, as its own draws say."""

    def __init__(self, peers: list[str], left: int = 30) -> None:
        self.peers = peers
        self.left = left
        self.drawn: list[float] = []

    def start(self) -> None:
        self.schedule("tick", delay=self.random.randrange(4))

    def on_tick(self, _: None) -> None:
        self.left -= 1
        if self.left > 0:
            self.drawn.append(self.random.random())
            self.send(self.random.choice(self.peers), "news", self.drawn[-1])
            self.schedule("tick", delay=self.random.randrange(4))
            if self.left % 10 == 0:
                self.create(Gossip(self.peers, self.left // 2))

    def on_news(self, news: float) -> None:
        self.record("heard", news)


class Stranger(Entity):
    """Talks to nobody but itself and its children, and draws a lot."""

    def start(self) -> Steps:
        for number in range(50):
            self.random.random()
            self.schedule("x", delay=0)
            if number % 10 == 0:
                self.create(Actor(lambda me: me.random.random()))
            yield 1 * NS

    def on_x(self, _: None) -> None:
        self.random.gauss(0, 1)


@pytest.mark.parametrize("strangers", [("0",), ("bb",), ("zz",), ("b/x",), ("0", "ab", "b!", "c", "é")])
def test_entities_that_talk_to_nobody_change_no_other_history(strangers: tuple[str, ...]) -> None:
    def history(*more: str) -> dict[str, Any]:
        peers = ["a", "b", "d"]
        network = Network(default=link(uniform(1, 9), loss=0.1, duplication=0.1))
        simulation = Simulation(seed=5, network=network)
        for name in more:
            simulation.add(name, Stranger())
        for name in peers:
            simulation.add(name, Gossip(peers))
        result = simulation.run()
        kept = {}
        for name in [*peers, *(f"{peer}/{number}" for peer in peers for number in (1, 2))]:
            entity: Any = simulation[name]
            kept[name] = (entity.drawn, history_of(entity), result.monitors.get((name, "heard")))
        return kept

    assert history(*strangers) == history()


def test_the_history_of_another_model_is_another_one() -> None:
    # The twin of the test above: that would pass with histories that never change.
    def history(words: list[str]) -> bytes:
        simulation = Simulation()
        simulation.add("a", Actor(lambda me: [me.send("b", "x", word) for word in words] and None))
        simulation.add("b", Actor())
        simulation.run()
        return history_of(simulation["a"])

    assert history(["one", "two"]) == history(["one", "two"])
    assert len({history(words) for words in (["one", "two"], ["two", "one"], ["one"], ["one", "two", "three"])}) == 4
