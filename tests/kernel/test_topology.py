"""The links between entities: how short they can be, and what they do to messages in a simulation."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from tests.kernel.actors import Actor, Steps, history
from worldline.kernel import Simulation
from worldline.kernel.roster import KernelNetwork
from worldline.model import (
    FOREVER,
    MS,
    NS,
    SECOND,
    TIME_MAX,
    ConfigurationError,
    Link,
    ModelError,
    Network,
    Rule,
    exponential,
    hold,
    link,
    partition,
    uniform,
)
from worldline.model.path import Path, Paths

NAMES = ("a", "b", "c", "d")
TOPICS = ("x", "y")

# -- How short links can be

LATENCIES = st.integers(1, 50).map(lambda least: link(least)) | st.tuples(st.integers(1, 50), st.integers(0, 20)).map(
    lambda drawn: link(uniform(drawn[0], drawn[0] + drawn[1]))
)
RULES = st.lists(
    st.builds(
        Rule,
        link=LATENCIES,
        topic=st.sampled_from([None, None, *TOPICS]),
        sender=st.sampled_from([None, *NAMES]),
        receiver=st.sampled_from([None, *NAMES]),
    ).filter(lambda rule: rule.topic or rule.sender or rule.receiver),
    max_size=8,
    unique_by=lambda rule: (rule.topic, rule.sender, rule.receiver),
).map(tuple)


def least_by_force(network: Network, source: str, goal: str) -> int:
    """Ask for the link of every topic that a rule names, and of one that none does."""
    paths = Paths(network, 0)
    topics = {rule.topic for rule in network.rules if rule.topic} | {"a topic that no rule names"}
    return min(paths.link(topic, source, goal).latency.minimum for topic in topics)


def is_declared(network: Network, source: str, goal: str) -> bool:
    return any((rule.sender, rule.receiver) == (source, goal) for rule in network.rules)


@given(LATENCIES, RULES, st.booleans())
def test_the_least_latency_between_two_is_that_of_the_shortest_topic(
    default: Link, rules: tuple[Rule, ...], declared_only: bool
) -> None:
    network = Network(default=default, rules=rules)
    topology = KernelNetwork(network, 0, declared_only=declared_only)
    for source, goal in product(NAMES, NAMES):
        expected = least_by_force(network, source, goal)
        if declared_only and not is_declared(network, source, goal):
            assert topology.least_between(source, goal) is None
            assert topology.path("x", (source, source), (goal, goal)) is None
        else:
            assert topology.least_between(source, goal) == expected
            assert topology.least_between(source, goal) == expected  # Also when it has been asked before.


@given(LATENCIES, RULES, st.lists(st.integers(0, 2), min_size=4, max_size=4), st.booleans())
def test_no_message_between_workers_is_faster_than_the_lookahead(
    default: Link, rules: tuple[Rule, ...], workers: list[int], declared_only: bool
) -> None:
    network = Network(default=default, rules=rules)
    topology = KernelNetwork(network, 0, declared_only=declared_only)
    lookahead = topology.lookahead(NAMES, workers, 3)
    for here, there in product(range(3), repeat=2):
        sources = [name for name, worker in zip(NAMES, workers, strict=True) if worker == here]
        goals = [name for name, worker in zip(NAMES, workers, strict=True) if worker == there]
        pairs = [
            least_by_force(network, source, goal)
            for source, goal in product(sources, goals)
            if not declared_only or is_declared(network, source, goal)
        ]
        if here == there:
            assert lookahead[here][there] == FOREVER
        elif declared_only:
            assert lookahead[here][there] == min(pairs, default=FOREVER)
        else:
            assert lookahead[here][there] <= min(pairs, default=FOREVER)
            # It may be shorter than need be, but only by links that there are.
            known = {default.latency.minimum, *(rule.link.latency.minimum for rule in rules)}
            assert lookahead[here][there] in known


def test_declared_pairs_are_those_that_rules_name_on_both_sides() -> None:
    rules = (
        Rule(sender="a", receiver="b", link=link(5)),
        Rule(sender="a", link=link(6)),
        Rule(receiver="c", link=link(7)),
        Rule(topic="x", sender="c", receiver="d", link=link(8)),
        Rule(topic="x", link=link(9)),
    )
    topology = KernelNetwork(Network(default=link(1), rules=rules), 0, declared_only=True)
    assert sorted(topology.declared()) == [("a", "b"), ("c", "d")]
    assert topology.least_between("c", "d") == 1  # A topic that no rule names takes the default link.
    assert topology.least_between("a", "c") is None


# -- Links in a simulation


def carried(
    network: Network, sends: list[tuple[int, str, str, Any]], seed: int = 3, names: tuple[str, ...] = NAMES
) -> tuple[dict[str, list[tuple[Any, ...]]], dict[Any, int]]:
    """Let `a` send (time, receiver, topic, payload); return what each gets, as (arrival, copy, topic, payload)."""

    def act(me: Actor) -> Steps:
        for at, to, topic, payload in sends:
            if at > me.now:
                yield at - me.now
            me.send(to, topic, payload)

    simulation = Simulation(network=network, seed=seed)
    for name in names:
        simulation.add(name, Actor(act if name == "a" else None))
    result = simulation.run()
    got = {
        name: [(message.arrival, message.copy, message.topic, message.payload) for message in simulation[name].got]
        for name in names
    }
    return got, result.dropped


def foretold(
    network: Network, sends: list[tuple[int, str, str, Any]], seed: int = 3
) -> tuple[dict[str, list[tuple[Any, ...]]], dict[Any, int]]:
    """Work out the same from the model's paths alone."""
    paths = Paths(network, seed)
    opened: dict[tuple[str, str], Path] = {}
    numbers: dict[str, int] = {}
    got: dict[str, list[Any]] = {name: [] for name in NAMES}
    dropped: dict[Any, int] = {}
    for order, (at, to, topic, payload) in enumerate(sends):
        path = opened.setdefault((to, topic), paths.open(topic, "a", to))
        number = numbers.get(topic, 0)
        numbers[topic] = number + 1
        arrivals, lost = path.carry(at, number, len(msgpack.encode(payload)))
        if lost is not None:
            dropped[to, topic, lost] = dropped.get((to, topic, lost), 0) + 1
            continue
        for copy, arrival in enumerate(arrivals):
            got[to].append((arrival, at, order, copy, topic, payload))
    for name, entries in got.items():
        entries.sort(key=lambda entry: entry[:4])
        got[name] = [(arrival, copy, topic, payload) for arrival, _, _, copy, topic, payload in entries]
    return got, dropped


LINKS = st.builds(
    link,
    st.one_of(
        st.integers(1, 9),
        st.tuples(st.integers(1, 9), st.integers(0, 30)).map(lambda drawn: uniform(drawn[0], drawn[0] + drawn[1])),
        st.integers(1, 9).map(lambda least: exponential(least, 10)),
    ),
    loss=st.sampled_from([0.0, 0.3]),
    loss_at_sender=st.sampled_from([0.0, 0.3]),
    duplication=st.sampled_from([0.0, 0.4]),
    fifo=st.booleans(),
    bandwidth=st.sampled_from([None, None, SECOND // 2]),
)
OUTAGES = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 20), st.integers(1, 20)).map(
            lambda span: partition(["a"], ["b"], span[0], span[0] + span[1])
        ),
        st.tuples(st.integers(0, 20), st.integers(1, 20)).map(
            lambda span: hold(["a"], ["b", "c"], span[0], span[0] + span[1])
        ),
    ),
    max_size=2,
).map(lambda outages: tuple(outage for each in outages for outage in each))
SENDS = st.lists(
    st.tuples(
        st.integers(0, 40), st.sampled_from("bcd"), st.sampled_from(TOPICS), st.sampled_from([None, 5, "text", [1, 2]])
    ),
    min_size=1,
    max_size=15,
).map(lambda sends: sorted(sends, key=lambda send: send[0]))


@given(LINKS, OUTAGES, st.lists(LINKS, max_size=1), SENDS)
def test_links_do_to_messages_what_the_models_paths_say(
    default: Link, outages: Any, special: list[Link], sends: list[tuple[int, str, str, Any]]
) -> None:
    rules = tuple(Rule(topic="y", receiver="c", link=each) for each in special)
    network = Network(default=default, rules=rules, outages=outages)
    got, dropped = carried(network, sends)
    expected, expected_drops = foretold(network, sends)
    assert got == expected
    assert dropped == expected_drops


MANY = [(number, "b", "x", number) for number in range(400)]


def test_the_same_messages_are_lost_whoever_else_is_there() -> None:
    network = Network(default=link(5, loss=0.3))
    alone, _ = carried(network, MANY, names=("a", "b"))
    among, _ = carried(network, MANY, names=("A", "a", "ab", "b", "bb", "c"))
    assert alone["b"] == among["b"]
    other, _ = carried(network, MANY, seed=4)
    assert other["b"] != alone["b"]


def test_a_message_that_is_lost_is_part_of_its_senders_history() -> None:
    def lossy(loss: float) -> Any:
        simulation = Simulation(network=Network(default=link(5, loss=loss)))
        simulation.add("a", Actor(lambda me: me.send("b", "x")))
        simulation.add("b", Actor())
        simulation.run()
        return history(simulation["a"])

    assert lossy(1.0) != lossy(0.0)


def test_a_link_that_queues_beyond_the_last_time_is_an_error_of_the_model() -> None:
    network = Network(default=link(5, bandwidth=1))  # A byte a second.
    with pytest.raises(ModelError, match="a message to b would arrive after the last time") as caught:
        carried(network, [(TIME_MAX - 5 * SECOND, "b", "x", b"1234")])
    assert (caught.value.participant, caught.value.at) == ("a", TIME_MAX - 5 * SECOND)


# -- Explicit delays, and links that there aren't


@pytest.mark.parametrize("uses_rules", [False, True])
def test_an_explicit_delay_must_not_be_shorter_than_the_link(uses_rules: bool) -> None:
    def simulation(delay: int) -> Simulation:
        if uses_rules:
            network = Network(default=link(1), rules=(Rule(sender="a", receiver="b", link=link("uniform(5ms, 9ms)")),))
        else:
            network = Network(default=link("uniform(5ms, 9ms)", loss=1.0))
        made = Simulation(network=network)
        made.add("a", Actor(lambda me: me.send("b", "x", delay=delay)))
        made.add("b", Actor())
        return made

    fine = simulation(5 * MS)
    fine.run()
    assert [message.arrival for message in fine["b"].got] == [5 * MS]  # Exactly, and never lost.
    with pytest.raises(
        ModelError, match=r"a message to b can't arrive after 4.999999ms: the link .* at least 5ms"
    ) as caught:
        simulation(5 * MS - 1).run()
    assert (caught.value.participant, caught.value.at, caught.value.facts["receiver"]) == ("a", 0, "b")


def test_only_declared_links_can_be_used_if_that_is_asked_for() -> None:
    def simulation(to: str, delay: int | None) -> Simulation:
        made = Simulation(declared_only=True)
        made.add("a", Actor(lambda me: me.send(to, "x", delay=delay)))
        made.add("b", Actor())
        made.add("c", Actor())
        made.connect("a", "b", "5ms")
        made.connect("c", "a", "7ms", both=False)
        return made

    fine = simulation("b", None)
    fine.run()
    assert [message.arrival for message in fine["b"].got] == [5 * MS]
    for delay in (None, SECOND):
        with pytest.raises(
            ModelError, match=r"a at 0s: there is no link from a to c, in .* \(declare it: connect\('a', 'c'"
        ):
            simulation("c", delay).run()


@pytest.mark.parametrize(("both", "reached"), [(True, True), (False, False)])
def test_connect_links_both_ways_unless_told_otherwise(both: bool, reached: bool) -> None:
    simulation = Simulation()
    simulation.add("a", Actor())
    simulation.add("b", Actor(lambda me: me.send("a", "x")))
    simulation.connect("a", "b", link("5ms"), both=both)
    simulation.run()
    assert [message.arrival for message in simulation["a"].got] == [5 * MS if reached else 1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("a", "b", 0), "at least 1ns"),
        (("a", "b", -5), "isn't a latency"),
        (("a", "b", 1.5), "isn't a latency"),
        (("a", "b", "soon"), "isn't a latency"),
        (("a", "b", None), "isn't a latency"),
        (("a", "nobody", 5), "there is no participant 'nobody'"),
        ((5, "b", 5), "there is no participant 5"),
        (("a", "a", 5), "a and a are connected already"),
    ],
)
def test_links_that_cannot_be_are_refused_before_anything_happens(arguments: Any, problem: str) -> None:
    simulation = Simulation()
    started: list[str] = []
    for name in ("a", "b"):
        simulation.add(name, Actor(lambda me: started.append(me.name)))

    def connect_and_run() -> None:
        simulation.connect(*arguments)
        simulation.run()

    with pytest.raises(ConfigurationError, match=problem):
        connect_and_run()
    assert started == []


def test_two_links_between_the_same_are_refused() -> None:
    simulation = Simulation()
    simulation.add("a", Actor())
    simulation.add("b", Actor())
    simulation.connect("a", "b", 5)
    with pytest.raises(ConfigurationError, match=r"b and a are connected already \(connect\(\) links both ways"):
        simulation.connect("b", "a", 6)


def test_a_link_that_the_network_names_already_is_refused() -> None:
    simulation = Simulation(network=Network(rules=(Rule(sender="a", receiver="b", link=link(5)),)))
    simulation.add("a", Actor())
    simulation.add("b", Actor())
    simulation.connect("a", "b", 6)
    with pytest.raises(ConfigurationError, match="two rules name the same"):
        simulation.run()


# -- Those who were created during the run


def test_created_entities_use_their_creators_links_with_draws_of_their_own() -> None:
    network = Network(default=link(7), rules=(Rule(sender="a", receiver="b", link=link(uniform(100, 900))),))
    simulation = Simulation(network=network, seed=3)

    def child(me: Actor) -> None:
        me.send("b", "x", me.name)
        me.send("c", "x", me.name)
        me.send("a", "x", me.name)
        me.send("a/kim", "x", me.name)

    def act(me: Actor) -> None:
        me.create(Actor(child), "kim")
        me.create(Actor(child), "lee")
        me.send("b", "x", "a")

    simulation.add("a", Actor(act))
    simulation.add("b", Actor())
    simulation.add("c", Actor())
    simulation.run()
    between = network.rules[0].link
    for name in ("a", "a/kim", "a/lee"):
        (arrival,), _ = Path(between, 3, ("x", name, "b")).carry(0, 0, 0)
        assert [message.arrival for message in simulation["b"].got if message.payload == name] == [arrival]
    assert len({message.arrival for message in simulation["b"].got}) == 3
    assert [(message.arrival, message.payload) for message in simulation["c"].got] == [(7, "a/kim"), (7, "a/lee")]
    # At one place it's a nanosecond, whatever the network.
    assert [(message.arrival, message.payload) for message in simulation["a"].got] == [(1, "a/kim"), (1, "a/lee")]
    assert [(message.arrival, message.payload) for message in simulation["a/kim"].got] == [(1, "a/kim"), (1, "a/lee")]


def test_created_entities_are_reached_over_their_creators_links() -> None:
    simulation = Simulation(declared_only=True)
    simulation.add("a", Actor(lambda me: me.create(Actor(), "kim") and None))
    simulation.add("b", Actor(lambda me: me.send("a/kim", "x", "hello")))
    simulation.connect("b", "a", "5ms", both=False)
    simulation.run()
    assert [(message.arrival, message.payload) for message in simulation["a/kim"].got] == [(5 * MS, "hello")]

    def answer(me: Actor) -> Steps:
        yield 1 * NS
        me.send("b", "x")

    refused = Simulation(declared_only=True)
    refused.add("a", Actor(lambda me: me.create(Actor(answer), "kim") and None))
    refused.add("b", Actor())
    refused.connect("b", "a", "5ms", both=False)
    with pytest.raises(ModelError, match="a/kim at 1ns: there is no link from a to b"):
        refused.run()


def test_an_entity_that_is_added_during_a_run_has_the_default_link() -> None:
    simulation = Simulation(network=Network(default=link(9), rules=(Rule(sender="a", link=link(5)),)))
    simulation.add("a", Actor(lambda me: None))
    simulation.run(until=100)
    simulation.add("late", Actor(lambda me: me.send("a", "x", me.name)))
    simulation.run()
    assert [(message.arrival, message.payload) for message in simulation["a"].got] == [(109, "late")]
