"""The scheduler: running in pieces, looking on without changing anything, and a model that is too simple to err."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.nodes.chatter import Chatter, Listener, Ticker, legal, pair, ran, ran_pair, started
from worldline.model.errors import ConfigurationError, ModelError, Stuck, UsageError
from worldline.model.links import link
from worldline.model.time import MS, SECOND
from worldline.nodes import (
    Fault,
    LinkDown,
    LinkUp,
    NeighborAdded,
    NeighborRemoved,
    Node,
    Protocol,
    Recover,
    Scheduler,
    Start,
    Timer,
    Topology,
    always,
    as_topology,
)
from worldline.nodes.faults import VERBS
from worldline.nodes.node import Event

# -- The clique of three


# -- In pieces


def test_a_run_can_go_on() -> None:
    whole = pair(Ticker, trace=True)
    whole.run("2s")
    pieces = pair(Ticker, trace=True)
    for time in ("1ns", "500ms", "500ms", "1500ms", "2s"):
        pieces.run(time)
        assert pieces.now == max(1, [1, 500 * MS, 1500 * MS, 2 * SECOND][["1ns", "500ms", "1500ms", "2s"].index(time)])
    assert pieces.digest == whole.digest
    assert pieces.records == whole.records


def test_until_is_not_part_of_the_run() -> None:
    run = ran_pair(Ticker, until="1100ms")
    assert run.node(0).seen == []  # The first tick arrives at 1.1 s.
    run.run(1100 * MS + 1)
    assert run.node(0).seen == [(1100 * MS, "tick 1 by 0")]


def test_a_run_into_the_past_is_refused() -> None:
    run = ran_pair(Ticker, until="2s")
    with pytest.raises(UsageError):
        run.run("1s")


def test_nodes_can_be_started_one_by_one_and_later() -> None:
    run = Scheduler(2, [(0, 1)], Listener, link="1s")
    run.start(1)
    run.start(0, at="5s")
    run.run()
    assert run.node(0).seen == [(SECOND, "hello by 0"), (5 * SECOND, "Start")]
    assert run.node(1).seen == [(0, "Start"), (6 * SECOND, "hello by 0")]


def test_a_run_that_nobody_has_started_is_empty() -> None:
    run = Scheduler(2, [(0, 1)], Listener)
    assert not run.schedule()
    with pytest.raises(UsageError, match="no node was started"):
        run.run()


@pytest.mark.parametrize("node", [-1, 2, True, "0", None, 1.0])
def test_nodes_that_there_are_not_cannot_be_started(node: Any) -> None:
    with pytest.raises(UsageError, match="the nodes are 0 to 1"):
        pair(Listener).start(node)


def test_nobody_starts_in_the_past() -> None:
    run = ran_pair(Listener, until="2s")
    with pytest.raises(UsageError, match="it is 2s already"):
        run.start(0, at="1s")


@pytest.mark.parametrize("until", [-1, "soon", 1.5])
def test_until_is_a_time(until: Any) -> None:
    with pytest.raises(ConfigurationError, match="isn't the end"):
        pair(Listener).run(until)


def test_one_event_too_many_is_too_many() -> None:
    events = pair(Listener).run().events
    with pytest.raises(Stuck, match="after 3 events"):
        pair(Listener).run(events_max=events - 1)
    assert pair(Listener).run(events_max=events).events == events


def test_it_can_go_on_after_the_limit() -> None:
    run = pair(Ticker)
    with pytest.raises(Stuck):
        run.run(events_max=10)
    run.run("3s")
    other = pair(Ticker)
    other.run("3s")
    assert run.digest == other.digest


def test_it_cannot_be_run_from_inside() -> None:
    class Recursive(Node):
        def execute(self, event: Event) -> None:
            run.run()

    run = pair(Recursive)
    with pytest.raises(ModelError, match="running already"):
        run.run()


# -- What it is made of


@pytest.mark.parametrize("seed", ["1", 1.5, None, 2**70, True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(ConfigurationError, match="seed"):
        Scheduler(2, [(0, 1)], Listener, seed=seed)


@pytest.mark.parametrize("wrong", [0, -1, 0.5, "fast", None, "uniform(2s, 1s)"])
def test_a_link_is_one(wrong: Any) -> None:
    with pytest.raises(ConfigurationError):
        pair(Listener, link=wrong)


def test_the_number_of_nodes_is_that_of_the_topology() -> None:
    with pytest.raises(ConfigurationError):
        Scheduler(5, as_topology("clique:3"), Listener)


# -- Faults while it runs


def test_faults_can_be_inflicted_at_any_time() -> None:
    run = ran_pair(Listener, trace=True, until="500ms")
    run.crash(1)
    run.recover(1, at="600ms")
    run.partition([0])
    run.repair()
    run.link_down(0, 1)
    run.link_up(0, 1)
    run.remove_link(0, 1, at="2s")
    run.add_link(0, 1, at="3s")
    run.run()
    happened = [record.text for record in run.records if record.kind != "sent" and record.node in (1, None)]
    assert happened[1:4] == ["Crash", "Partition 0", "Repair"]
    assert "Recover" in happened
    assert run.node(1).seen[-2:] == [(2 * SECOND, "Neighbor removed 0"), (3 * SECOND, "Neighbor added 1")]


def test_faults_in_the_past_are_refused() -> None:
    run = ran_pair(Listener, until="2s")
    with pytest.raises(UsageError, match="it is 2s already"):
        run.crash(1, at="1s")


def test_a_fault_that_was_refused_has_no_effect() -> None:
    run = ran_pair(Listener, until="2s")
    with pytest.raises(UsageError):
        run.remove_link(0, 1, at="1s")
    run.link_down(0, 1)


def test_faults_are_also_texts() -> None:
    run = pair(Listener)
    run.inflict("1s crash 1")  # type: ignore[arg-type]
    run.run()
    assert not run.is_up(1)


def test_a_link_can_be_removed_and_added_at_the_same_time() -> None:
    run = pair(Listener)
    run.remove_link(0, 1, at="2s")
    run.add_link(0, 1, at="2s")
    run.run()
    assert run.node(0).links == [1]


# -- Looking on changes nothing


@st.composite
def scenarios(draw: st.DrawFn, verbs: tuple[str, ...] = VERBS, earliest: int = 1) -> dict[str, Any]:
    """Draw a small network and what is done to it."""
    nodes = draw(st.integers(2, 5))
    pairs = [(a, b) for a in range(nodes) for b in range(a)]
    topology = Topology.of_edges(nodes, draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1)))
    faults = []
    for _ in range(draw(st.integers(0, 10))):
        verb = draw(st.sampled_from(verbs))
        named: tuple[int, ...] = ()
        if verb in ("crash", "recover"):
            named = (draw(st.integers(0, nodes - 1)),)
        elif verb == "partition":
            named = tuple(draw(st.lists(st.integers(0, nodes - 1), min_size=1, unique=True)))
        elif verb != "repair":
            named = draw(st.sampled_from(pairs))
        faults.append(Fault(draw(st.integers(earliest, 15)) * 100 * MS, verb, named))  # type: ignore[arg-type]
    return {
        "topology": topology,
        "faults": legal(faults, topology),
        "on_link_down": draw(st.sampled_from(("drop", "keep"))),
        "seed": draw(st.integers(0, 2**32)),
    }


LINKS = (
    "uniform(1ns, 1s)",
    "300ms",
    link("uniform(1ms, 1s)", loss=0.2, duplication=0.2),
    link("uniform(1ms, 1s)", fifo=True),
    link("exponential(1ms, 200ms)", bandwidth=1000),
)


@settings(max_examples=30)
@given(scenarios(earliest=0), st.sampled_from(LINKS))
def test_a_run_is_the_same_however_one_looks_at_it(scenario: dict[str, Any], over: Any) -> None:
    def chatters(**options: Any) -> Scheduler:
        return started(node=Chatter, link=over, **scenario, **options)

    plain = chatters()
    result = plain.run()
    checked = always("looks at everything")(lambda run: bool([node.id for node in run.nodes]))
    stepwise, traced, judged, streamed = (
        chatters(trace=True),
        chatters(trace=True),
        chatters(properties=[checked]),
        chatters(trace=(records := []).append),
    )
    while stepwise.schedule():
        pass
    for time in range(0, 2000, 200):
        traced.run(time * MS)
    for run in (traced, judged, streamed):
        run.run()
    for run in (stepwise, traced, judged, streamed):
        assert run.digest == result.digest
        assert run.result().events == result.events
        assert [node.seen for node in run.nodes] == [node.seen for node in plain.nodes]
    assert stepwise.records == traced.records == records
    again = chatters()
    assert again.run().digest == result.digest


def test_a_log_is_no_part_of_the_history() -> None:
    class Silent(Chatter):
        def log(self, text: object) -> None:
            pass

    loud, silent = (started("clique:4", kind, trace=True) for kind in (Chatter, Silent))
    assert loud.run().digest == silent.run().digest
    assert len(loud.records) > len(silent.records)


# -- A model of it


class Talker(Node):
    """Reacts to everything in a way that needs no luck."""

    stable = ("lives",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.left = 6
        self.lives = 0

    def execute(self, event: Event) -> None:
        match event:
            case Start():
                self.broadcast(("start", self.id))
                self.set_timer(2, "a")
            case Recover():
                self.lives += 1
                self.broadcast(("back", self.id, self.lives))
            case LinkUp(link) | NeighborAdded(link):
                self.send(("up", self.id), link)
            case LinkDown(link):
                self.send(("down", self.id), link)
                self.set_timer(3, "b")
            case NeighborRemoved():
                self.cancel_timer("a")
            case Timer(name):
                self.broadcast((name, self.id))
            case Protocol(message, link) if self.left:
                self.left -= 1
                self.broadcast(("on", *message[:2]), but=link if self.left % 2 else None)
                if self.left == 3:
                    self.set_timer(0, "now")


class Wire:
    """One direction of a link, as its sender and its receiver have it; they can differ within one moment."""

    def __init__(self, neighbor: int, number: int, latency: int, incarnation: int) -> None:
        self.neighbor = neighbor
        self.number = number
        self.latency = latency
        self.incarnation = incarnation
        self.is_up = True
        self.is_cut = False
        self.downs = 0
        self.held: list[tuple[Any, int]] = []


class Place:
    """A node, its wires and its timers."""

    def __init__(self, model: Model, id: int) -> None:  # noqa: A002
        self.model, self.id = model, id
        self.is_up = True
        self.wires: dict[int, Wire] = {}
        self.made = self.order = 0
        self.incarnations: dict[int, int] = {}
        self.timers: dict[str, int] = {}
        self.node: Any = None

    # What a node may ask for.

    @property
    def links(self) -> list[int]:
        return list(self.wires)

    def send(self, message: Any, link: int) -> None:
        wire = self.wires[link]
        why = "the link is down" if not wire.is_up else "sent into a partition" if wire.is_cut else ""
        arrivals = () if why else (self.model.now + wire.latency,)
        self.model.history.append(("sent", self.model.now, self.id, wire.neighbor, str(message), arrivals, why))
        if not why:
            stamp = (wire.incarnation, wire.downs)
            self.order += 1
            self.model.put(arrivals[0], self.id, self.order, wire.neighbor, "message", (message, self.id, stamp))

    def set_timer(self, delay: int, name: str) -> None:
        self.order += 1
        self.timers[name] = self.order
        self.model.put(self.model.now + delay, self.id, self.order, self.id, "timer", (name, self.order))

    def cancel_timer(self, name: str) -> bool:
        return self.timers.pop(name, None) is not None

    # What happens.

    def act(self, event: Event, text: str = "", peer: int | None = None) -> None:
        self.model.history.append(("received", self.model.now, self.id, peer, text or str(event), (), ""))
        if self.node is None:
            self.node = self.new()
        self.node.execute(event)

    def new(self) -> Any:
        node = Talker(self.model.nodes, self.id, self.made, self.send)
        node._host = self  # type: ignore[assignment]
        return node

    def wire_to(self, neighbor: int) -> Wire | None:
        return next((wire for wire in self.wires.values() if wire.neighbor == neighbor), None)

    def drop(self, message: Any, peer: int, why: str) -> None:
        self.model.history.append(("dropped", self.model.now, self.id, peer, str(message), (), why))

    def receive(self, message: Any, peer: int, stamp: tuple[int, int]) -> None:
        wire = self.wire_to(peer)
        if not self.is_up:
            self.drop(message, peer, "the node is down")
        elif wire is None or wire.incarnation != stamp[0]:
            self.drop(message, peer, "the link is gone")
        elif not self.model.keeps and wire.downs > stamp[1]:
            self.drop(message, peer, "the link went down on the way")
        elif not wire.is_up:
            wire.held.append((message, stamp[0]))
        else:
            self.act(Protocol(message, wire.number), str(message), peer)

    def tell(self, event: Event) -> None:
        if self.is_up:
            self.act(event)

    def handle(self, verb: str, what: Any) -> None:
        wire = self.wire_to(what) if verb in ("down", "up", "remove") else None
        if verb == "message":
            self.receive(*what)
        elif verb == "timer":
            if self.timers.get(what[0]) == what[1]:
                del self.timers[what[0]]
                self.act(Timer(what[0]))
        elif verb == "start":
            self.tell(Start())
        elif verb == "crash" and self.is_up:
            self.is_up = False
            self.timers.clear()
            self.model.history.append(("received", self.model.now, self.id, None, "Crash", (), ""))
        elif verb == "recover" and not self.is_up:
            self.is_up = True
            lost, self.node = self.node, self.new()
            if lost is not None:
                self.node.lives = lost.lives
            self.act(Recover())
            for each in list(self.wires.values()):
                if not each.is_up:
                    self.act(LinkDown(each.number))
        elif verb == "down" and wire is not None and wire.is_up:
            wire.is_up = False
            wire.downs += 1
            self.tell(LinkDown(wire.number))
        elif verb == "up" and wire is not None and not wire.is_up:
            wire.is_up = True
            self.tell(LinkUp(wire.number))
            held, wire.held = wire.held, []
            for message, incarnation in held:
                self.receive(message, wire.neighbor, (incarnation, wire.downs))
        elif verb == "add":
            self.connect(what)
            if self.node is not None:
                self.node.num_neighbors = self.made
            self.tell(NeighborAdded(self.made - 1))
        elif verb == "remove" and wire is not None:
            del self.wires[wire.number]
            self.tell(NeighborRemoved(wire.number))
        elif verb == "partition":
            for each in self.wires.values():
                each.is_cut = each.is_cut or (each.neighbor in what) != (self.id in what)
        elif verb == "repair":
            for each in self.wires.values():
                each.is_cut = False

    def connect(self, neighbor: int) -> None:
        before = self.incarnations.get(neighbor, 0)
        self.wires[self.made] = Wire(neighbor, self.made, self.model.latency(self.id, neighbor), before)
        self.incarnations[neighbor] = before + 1
        self.made += 1


class Model:
    """Hosts, wires and one list of events that is sorted before each of them: naive, and that is the point."""

    def __init__(
        self,
        topology: Topology,
        latencies: dict[tuple[int, int], int],
        added: int,
        faults: tuple[Fault, ...],
        *,
        keeps: bool,
    ) -> None:
        self.nodes = topology.num_nodes
        self.keeps = keeps
        self.latencies = latencies
        self.added = added
        self.now = 0
        self.history: list[tuple[Any, ...]] = []
        self.queue: list[tuple[Any, ...]] = []
        self.places = [Place(self, id) for id in range(self.nodes)]  # noqa: A001
        for place in self.places:
            for neighbor in topology.neighbors[place.id]:
                place.connect(neighbor)
        number = 0
        for fault in faults:
            of_link = fault.verb in ("down", "up", "add", "remove")
            for node in range(self.nodes) if fault.verb in ("partition", "repair") else fault.nodes:
                number += 1
                what = sum(fault.nodes) - node if of_link else fault.nodes
                self.put_outside(fault.at, number, node, fault.verb, what)
        for place in self.places:
            number += 1
            self.put_outside(0, number, place.id, "start", None)

    def latency(self, a: int, b: int) -> int:
        """Return the latency between two nodes; a link that comes back has the one that it had."""
        return self.latencies.get((min(a, b), max(a, b)), self.added)

    def put(self, at: int, sender: int, order: int, target: int, verb: str, what: Any) -> None:
        self.queue.append((at, self.now, sender, order, target, verb, what))

    def put_outside(self, at: int, number: int, target: int, verb: str, what: Any) -> None:
        self.queue.append((at, min(0, at - 1), self.nodes, number, target, verb, what))

    def run(self) -> None:
        while self.queue:
            self.queue.sort(key=lambda event: event[:4])
            self.now, _, _, _, target, verb, what = self.queue.pop(0)
            self.places[target].handle(verb, what)


def history_of(run: Scheduler) -> list[tuple[Any, ...]]:
    """Return what a run has recorded, as the model writes it."""
    return [
        (record.kind, record.at, record.node, record.peer, record.text, record.arrivals, record.reason)
        for record in run.records
        if record.kind != "happened"
    ]


@st.composite
def small_networks(draw: st.DrawFn) -> dict[str, Any]:
    """Draw networks where much happens at the same time."""
    on_link_down = draw(st.sampled_from(("drop", "keep")))
    more = draw(st.sampled_from((("partition", "repair"), ("add", "remove") if on_link_down == "drop" else ("add",))))
    scenario = draw(scenarios(verbs=("crash", "recover", "down", "up", *more), earliest=0))
    topology = scenario["topology"]
    faults = [Fault(each.at // (100 * MS), each.verb, each.nodes) for each in scenario["faults"]]
    ups = {(each.at, frozenset(each.nodes)) for each in faults if each.verb == "up"}
    faults = [  # What a link does at the moment at which it goes down and up is tested elsewhere.
        each for each in faults if each.verb != "down" or (each.at, frozenset(each.nodes)) not in ups
    ]
    return {
        "topology": topology,
        "faults": tuple(sorted(faults)),
        "on_link_down": on_link_down,
        "latencies": {edge: draw(st.integers(1, 6)) for edge in topology.edges},
        "added": draw(st.integers(1, 6)),
    }


@settings(max_examples=30)
@given(small_networks())
def test_it_does_what_a_naive_model_does(network: dict[str, Any]) -> None:
    topology, latencies = network["topology"], network["latencies"]
    model = Model(topology, latencies, network["added"], network["faults"], keeps=network["on_link_down"] == "keep")
    model.run()
    run = ran(
        topology,
        Talker,
        link=network["added"],
        links=latencies,
        faults=network["faults"],
        on_link_down=network["on_link_down"],
        trace=True,
    )
    assert history_of(run) == model.history


@pytest.mark.soak
@settings(max_examples=1_500)
@given(small_networks())
def test_soak_it_does_what_a_naive_model_does(network: dict[str, Any]) -> None:
    test_it_does_what_a_naive_model_does.hypothesis.inner_test(network)
