"""What happens to nodes and links: crashes, links that go down, timers, losses, and nodes that do what they may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.nodes.chatter import Chatter, Eager, Listener, Plain, Ticker, pair, ran, ran_pair, started
from worldline.history.account import kind_of_note
from worldline.history.observer import STATE, Observer
from worldline.model.errors import ConfigurationError, ModelError, Stuck, UsageError, WorldlineError
from worldline.model.links import link
from worldline.model.time import MS, SECOND
from worldline.nodes import LinkUp, NeighborAdded, Node, Protocol, Recover, Scheduler, Start, Timer
from worldline.nodes.node import Event, Send

HERE = Path(__file__).name


def texts(node: Any) -> list[str]:
    return [text for _, text in node.seen]


def line_of(text: str) -> int:
    """Return the number of the line of this file that has a comment."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {text}"))


# -- Delivery


def test_messages_arrive_within_a_second_and_in_any_order() -> None:
    class Counter(Listener):
        def execute(self, event: Event) -> None:
            if isinstance(event, Start) and self.id == 0:
                for number in range(200):
                    self.send(number, 0)
            elif isinstance(event, Protocol):
                self.seen.append((self.now, event.message))

    run = ran("line:2", Counter)
    seen = run.node(1).seen
    assert sorted(number for _, number in seen) == list(range(200))
    assert [number for _, number in seen] != list(range(200))
    assert all(1 <= time <= SECOND for time, _ in seen)
    assert 0.4 * SECOND < sum(time for time, _ in seen) / 200 < 0.6 * SECOND


def burst(**options: Any) -> list[tuple[int, Any]]:
    """Let a node send 0 to 99 at once, and return what arrives, with its times."""

    class Burst(Listener):
        def execute(self, event: Event) -> None:
            if isinstance(event, Start) and self.id == 0:
                for number in range(100):
                    self.send(number, 0)
            elif isinstance(event, Protocol):
                self.seen.append((self.now, event.message))

    run = ran("line:2", Burst, **options)
    seen: list[tuple[int, Any]] = run.node(1).seen
    return seen


def test_fifo_links_keep_the_order() -> None:
    seen = burst(link=link("uniform(1ns, 1s)", fifo=True))
    assert [number for _, number in seen] == list(range(100))


def test_lossy_links_lose_their_share() -> None:
    assert 60 < len(burst(link=link("1ms", loss=0.2))) < 95
    assert burst(link=link("1ms", loss=1.0)) == []


def test_links_that_duplicate_do() -> None:
    seen = [number for _, number in burst(link=link("1ms", duplication=0.5))]
    assert 120 < len(seen) < 180
    assert set(seen) == set(range(100))


def test_a_narrow_link_sends_one_after_the_other() -> None:
    times = [time for time, _ in burst(link=link("1ms", bandwidth=1000))]
    assert times == sorted(times)
    assert times[0] > 1 * MS
    assert len(set(times)) == 100


def test_single_edges_have_links_of_their_own() -> None:
    run = ran("star:3", Listener, link="1s", links={(2, 0): "5ms"})
    assert run.node(2).seen[1] == (5 * MS, "hello by 0")
    assert run.node(1).seen[1] == (SECOND, "hello by 0")


@pytest.mark.parametrize(
    ("links", "says"),
    [
        ({(1, 2): "1s"}, r"there is no edge \(1, 2\)"),
        ({(0, 1): 0}, "at least 1ns"),
        ({(0, 1): 0.5}, "0.5"),
        ({"0-1": "1s"}, "there is no edge"),
    ],
)
def test_links_of_edges_are_checked(links: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        started("star:3", Listener, links=links)


# -- Crashes


def test_a_node_that_is_down_gets_nothing_until_it_recovers() -> None:
    run = ran_pair(Ticker, link="10ms", faults=["250ms crash 1", "550ms recover 1"], trace=True, until="800ms")
    assert [event for event in run.records if event.node == 1 and 250 * MS < event.at < 550 * MS] == [
        event for event in run.records if event.node == 1 and event.kind == "dropped"
    ]
    assert run.node(1).seen == [(610 * MS, "tick 6 by 0"), (710 * MS, "tick 7 by 0")]
    dropped = [str(record) for record in run.records if record.kind == "dropped"]
    assert dropped == [f"1 <- 0: tick {n} (the node is down)" for n in (3, 4, 5)]


def test_a_crash_takes_all_but_what_is_stable() -> None:
    class Clerk(Node):
        stable = ("book", "page")

        def __init__(self, *given: Any, start: int = 5) -> None:
            super().__init__(*given)
            self.book: list[str] = []
            self.page = self.memory = start

        def execute(self, event: Event) -> None:
            self.book.append(str(event))
            self.page += 1
            self.memory += 1

    run = ran("line:1", Clerk, parameters={"start": 10}, faults=["1s crash 0", "2s recover 0"], until="1500ms")
    before = run.node(0)
    assert not run.is_up(0)
    assert run.up == []
    run.run()
    after = run.node(0)
    assert after is not before
    assert (after.book, after.page, after.memory) == (["Start", "Recover"], 12, 11)
    assert run.is_up(0)


def test_a_crash_clears_timers() -> None:
    class Alarm(Listener):
        def execute(self, event: Event) -> None:
            super().execute(event)
            if isinstance(event, Start):
                self.set_timer("2s", "old")
            if isinstance(event, Recover):
                assert not self.cancel_timer("old")
                self.set_timer("2s", "new")

    run = ran("line:1", Alarm, faults=["1s crash 0", "1500ms recover 0"])
    assert run.node(0).seen == [(1500 * MS, "Recover"), (3500 * MS, "Timer new")]


def test_a_crash_at_the_time_of_a_message() -> None:
    """What was decided first happens first: a message of time 0 before a crash, one that is sent later after it."""
    run = ran_pair(Listener, faults=["1s crash 1"])
    assert texts(run.node(1)) == ["Start", "hello by 0"]
    run = ran_pair(Ticker, faults=["1100ms crash 1"], trace=True, until="1200ms")
    assert "1 <- 0: tick 1 (the node is down)" in map(str, run.records)


def test_looking_at_a_node_that_is_down_does_not_wake_it() -> None:
    run = pair(Listener, faults=["0s crash 1"])
    run.schedule()
    assert not run.is_up(1)
    run.node(1)
    run.run()
    assert run.node(1).seen == []


@pytest.mark.parametrize("stable", ["log", ("lgo",)])
def test_stable_attributes_that_there_are_not(stable: Any) -> None:
    class Clerk(Listener):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.logged = 0

    Clerk.stable = stable
    run = started("line:1", Clerk, faults=["1s crash 0", "2s recover 0"])
    with pytest.raises(ModelError, match=r"node 0 at 2s: .*stable"):
        run.run()


# -- Links that go down


def down_and_up(on_link_down: str, **options: Any) -> Scheduler:
    """Send at 0 over a link that takes a second and is down from 0.5 s to 2 s; speak again when it is up."""
    return ran_pair(Eager, on_link_down=on_link_down, faults=["500ms down 0 1", "2s up 0 1"], **options)


def test_a_link_that_goes_down_drops_what_is_under_way() -> None:
    run = down_and_up("drop", trace=True)
    for node in run.nodes:
        peer = 1 - node.id
        assert node.seen == [
            (0, "Start"),
            (500 * MS, "Link down 0"),
            (2 * SECOND, "Link up 0"),
            (3 * SECOND, f"{peer} after Link up 0 by 0"),
        ]
    assert "1 <- 0: hello (the link went down on the way)" in run.text()
    assert "1 -> 0: 1 after Link down 0 (the link is down)" in run.text()


def test_a_link_that_goes_down_keeps_what_is_under_way() -> None:
    run = down_and_up("keep")
    for node in run.nodes:
        peer = 1 - node.id
        assert node.seen == [
            (0, "Start"),
            (500 * MS, "Link down 0"),
            (2 * SECOND, "Link up 0"),
            (2 * SECOND, "hello by 0"),
            (3 * SECOND, f"{peer} after Link up 0 by 0"),
        ]


@pytest.mark.parametrize("given_", ["lose", None, True])
def test_on_link_down_is_drop_or_keep(given_: Any) -> None:
    with pytest.raises(ConfigurationError, match='"drop" or "keep"'):
        pair(Listener, on_link_down=given_)


def test_a_link_that_is_up_at_the_same_moment_carries_again() -> None:
    class Hopeful(Listener):
        def execute(self, event: Event) -> None:
            super().execute(event)
            if isinstance(event, LinkUp):
                self.broadcast("again")

    run = ran_pair(Hopeful, faults=["5s down 0 1", "5s up 0 1"])
    assert run.node(0).seen[-1] == (6 * SECOND, "again by 0")


# -- Neighbors that come and go


def test_neighbors_are_added_with_the_next_number() -> None:
    class Greeter(Listener):
        def execute(self, event: Event) -> None:
            super().execute(event)
            if isinstance(event, NeighborAdded):
                assert self.links == [0, event.link]
                assert self.num_neighbors == 2
                assert self.weight(event.link) == 1
                self.send("welcome", event.link)

    run = ran("line:3", Greeter, link="1s", faults=["2s add 0 2"])
    assert run.node(0).seen[-1] == (3 * SECOND, "welcome by 1")
    assert run.node(2).seen[-1] == (3 * SECOND, "welcome by 1")
    run = ran("ring:4", Eager, link="1s", faults=["2s add 2 0"])
    assert run.node(0).seen[-2:] == [(2 * SECOND, "Neighbor added 2"), (3 * SECOND, "2 after Neighbor added 2 by 2")]
    assert run.node(2).links == [0, 1, 2]


def test_a_link_that_comes_back_draws_anew() -> None:
    run = started("line:2", Eager, link="uniform(1ns, 100ms)", trace=True)
    for second in range(1, 6):
        run.remove_link(0, 1, at=f"{second}s")
        run.add_link(0, 1, at=f"{second}.5s")
    run.run()
    delays = {record.arrivals[0] - record.at for record in run.records if record.kind == "sent" and record.node == 0}
    assert len(delays) > 2


def test_what_was_kept_on_a_link_that_is_removed_is_reported() -> None:
    run = ran_pair(Listener, on_link_down="keep", faults=["500ms down 0 1", "2s remove 0 1"], trace=True)
    assert "1 <- 0: hello (the link is gone)" in run.text()


# -- Partitions


def test_a_partition_is_silent_and_lasts_until_its_repair() -> None:
    faults = ["250ms partition 0 1", "450ms repair"]
    run = ran("clique:3", Ticker, link="10ms", faults=faults, trace=True, until="650ms")
    assert texts(run.node(1)) == [f"tick {n} by {link}" for n, link in ticks(1)]
    assert texts(run.node(2)) == [f"tick {n} by {link}" for n, link in ticks(2)]
    assert [record.text for record in run.records if record.kind == "happened"] == ["Partition 0 1", "Repair"]
    assert "0 -> 2: tick 3 (sent into a partition)" in run.text()


def ticks(node: int) -> list[tuple[int, int]]:
    cut = {(0, 2), (1, 2), (2, 0), (2, 1)}
    others = [other for other in range(3) if other != node]
    return [
        (n, link)
        for n in range(1, 7)
        for link, other in enumerate(others)
        if not (n in (3, 4) and (other, node) in cut)
    ]


def test_a_link_that_is_added_during_a_partition_is_cut_too() -> None:
    run = Scheduler(2, [], Eager, faults=["1s partition 0", "2s add 0 1"])
    run.start_all_nodes()
    run.run()
    assert [texts(node) for node in run.nodes] == [["Start", "Neighbor added 0"]] * 2


# -- Timers


class Timed(Node):
    """Does on Start what it is told, and remembers when timers ring."""

    def __init__(self, *given: Any, acts: Any) -> None:
        super().__init__(*given)
        self.acts = acts
        self.rung: list[tuple[int, str]] = []
        self.told: Any = None

    def execute(self, event: Event) -> None:
        if isinstance(event, Timer):
            self.rung.append((self.now, event.name))
        else:
            self.told = self.acts(self)


def rung(acts: Any) -> Any:
    run = ran("line:1", Timed, parameters={"acts": acts})
    return run.node(0)


def test_a_timer_of_the_same_name_replaces_the_one_before() -> None:
    def acts(node: Node) -> None:
        node.set_timer(50, "a")
        node.set_timer(20, "b")
        node.set_timer(70, "a")
        node.set_timer("10ns")

    assert rung(acts).rung == [(10, ""), (20, "b"), (70, "a")]


def test_a_timer_can_be_canceled_once() -> None:
    def acts(node: Node) -> tuple[bool, ...]:
        node.set_timer(5, "a")
        return node.cancel_timer("a"), node.cancel_timer("a"), node.cancel_timer("never")

    node = rung(acts)
    assert node.rung == []
    assert node.told == (True, False, False)


def test_a_timer_that_has_rung_is_over() -> None:
    class Once(Timed):
        def execute(self, event: Event) -> None:
            if isinstance(event, Timer):
                self.told = self.cancel_timer(event.name)
            else:
                self.set_timer(5, "a")

    run = ran("line:1", Once, parameters={"acts": None})
    assert run.node(0).told is False


@pytest.mark.parametrize("delay", [-1, 1.5, "soon", "-5ms", None, True, 10**30, "0.1ns"])
def test_delays_that_are_none_are_refused(delay: Any) -> None:
    with pytest.raises(ModelError, match=r"node 0 at 0s: .*isn't a delay"):
        rung(lambda node: node.set_timer(delay))


@pytest.mark.parametrize("name", [5, None, b"a"])
def test_names_of_timers_are_texts(name: Any) -> None:
    with pytest.raises(ModelError, match=r"node 0 at 0s: .*use text, such as"):
        rung(lambda node: node.set_timer(5, name))


def test_a_timer_that_is_refused_leaves_the_old_one() -> None:
    def acts(node: Node) -> None:
        node.set_timer(5, "a")
        with pytest.raises(WorldlineError):
            node.set_timer(-1, "a")

    assert rung(acts).rung == [(5, "a")]


def test_a_timer_after_the_last_time_is_refused() -> None:
    class Late(Timed):
        def execute(self, event: Event) -> None:
            self.set_timer(2**60 - 1)

    run = started("line:1", Late, parameters={"acts": None})
    with pytest.raises(ModelError, match="after the last time"):
        run.run()


# -- Sending


class Lost(Node):
    """Sends over a link that it is told of, once."""

    def __init__(self, *given: Any, number: Any) -> None:
        super().__init__(*given)
        self.number = number

    def execute(self, event: Event) -> None:
        if isinstance(event, Start):
            self.send("x", self.number)


def lost(number: Any) -> None:
    with pytest.raises(
        ModelError,
        match=r"node 0 at 0s: on Start: it has no link with the number .*, in test_host\.py, line \d+ "
        r"\(its links have the numbers 0\)",
    ):
        pair(Lost, parameters={"number": number}).run()


@pytest.mark.parametrize("number", [1, -1, True, False, 0.0, "0", None, 10**30, (0,), [0]])
def test_links_that_there_are_not_are_refused(number: Any) -> None:
    lost(number)


def test_a_node_without_links_is_told_so() -> None:
    with pytest.raises(ModelError, match="it has no links"):
        started("line:1", Lost, parameters={"number": 0}).run()


def test_a_link_that_was_removed_is_none() -> None:
    class Insistent(Node):
        def execute(self, event: Event) -> None:
            if not isinstance(event, Start):
                self.send("x", 0)

    with pytest.raises(
        ModelError,
        match=r"node 0 at 2s: on Neighbor removed 0: it has no link with the number 0, in test_host\.py, line \d+ "
        r"\(it has no links\)",
    ):
        pair(Insistent, faults=["2s remove 0 1"]).run()


def test_broadcasts_leave_one_out() -> None:
    class Relay(Listener):
        def execute(self, event: Event) -> None:
            super().execute(event)
            if isinstance(event, Protocol) and event.message == "hello" and self.id == 0:
                self.broadcast("on", but=event.link)

    run = ran("star:3", Relay, link="1s")
    assert texts(run.node(1)).count("on by 0") == 1


class Bag(Struct):
    """A message that can change."""

    things: list[str]


def test_mutable_messages_are_copied_when_they_are_sent() -> None:
    class Packer(Listener):
        def execute(self, event: Event) -> None:
            if isinstance(event, Start):
                self.bag = Bag([f"from {self.id}"])
                self.broadcast(self.bag)
                self.bag.things.append("later")
            else:
                assert isinstance(event, Protocol)
                event.message.things.append(f"seen by {self.id}")
                self.seen.append((self.now, event.message))

    for trace in (False, True):
        run = ran("clique:3", Packer, link=link("1s", duplication=1.0), trace=trace)
        for node in run.nodes:
            assert node.bag.things == [f"from {node.id}", "later"]
            assert len(node.seen) == 4
            assert all(len(bag.things) == 2 for _, bag in node.seen)


@pytest.mark.parametrize("message", [object(), lambda: None, {"a": open}, 1j])
def test_what_cannot_be_sent_is_refused_by_name(message: Any) -> None:
    class Sender(Node):
        def execute(self, event: Event) -> None:
            self.send(message, 0)

    with pytest.raises(ModelError, match=r"node 0 at 0s: on Start: a message can't carry .*send numbers, text"):
        pair(Sender).run()


@pytest.mark.parametrize("message", [None, 0, "", (), b"", 2**80, {"a": {1}}, [1, [2]], 1.5, True, Bag([])])
def test_all_plain_values_can_be_sent(message: Any) -> None:
    class Sender(Listener):
        def execute(self, event: Event) -> None:
            if isinstance(event, Start):
                self.send(message, 0)
            else:
                assert isinstance(event, Protocol)
                self.seen.append((self.now, event.message))

    for trace in (False, True):
        run = ran_pair(Sender, trace=trace)
        assert run.node(0).seen == run.node(1).seen == [(SECOND, message)]


def test_sending_from_the_constructor_is_refused() -> None:
    class Hasty(Listener):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.send("first", 0)

    with pytest.raises(WorldlineError, match="while it is being created"):
        pair(Hasty).run()


@pytest.mark.parametrize("what", ["links", "now", "random", "log", "set_timer", "broadcast", "weight"])
def test_a_constructor_has_no_surroundings(what: str) -> None:
    class Hasty(Listener):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            used = getattr(self, what)
            if callable(used):
                used(0)

    with pytest.raises(ModelError, match=r"while it is being created, in .*from its Start on"):
        pair(Hasty).run()


def test_a_node_acts_only_in_its_turn() -> None:
    run = ran_pair(Listener)
    with pytest.raises(UsageError, match="while nothing happens"):
        run.node(0).send("x", 0)
    with pytest.raises(UsageError):
        run.node(0).set_timer(5)


def test_draws_are_the_nodes_own() -> None:
    class Gambler(Node):
        def execute(self, event: Event) -> None:
            self.drawn = [self.random.random() for _ in range(3)]

    def draws(seed: int) -> list[Any]:
        run = ran("line:2", Gambler, seed=seed)
        return [node.drawn for node in run.nodes]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)
    assert draws(1)[0] != draws(1)[1]


# -- Nodes that are wrong


class Raises(Node):
    def execute(self, event: Event) -> None:
        self.broadcast("bad")
        if self.now:
            raise RuntimeError("not like this")  # here it raises


@pytest.mark.parametrize("trace", [False, True])
def test_an_error_says_who_when_on_what_and_where(trace: bool) -> None:
    with pytest.raises(ModelError) as raised:
        pair(Raises, trace=trace).run()
    line = line_of("here it raises")
    assert str(raised.value) == (
        f"node 1 at 1s: on the message 'bad' it raised RuntimeError: not like this, in {HERE}, line {line}"
    )
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_the_line_is_one_of_the_users() -> None:
    class Chooses(Node):
        def execute(self, event: Event) -> None:
            self.random.choice([])  # here it chooses

    with pytest.raises(ModelError, match=f"in {HERE}, line {line_of('here it chooses')}"):
        pair(Chooses).run()


def test_a_node_without_execute() -> None:
    class Idle(Node):
        pass

    with pytest.raises(ModelError, match=r"node 0 at 0s: .*Idle has no execute"):
        pair(Idle).run()


def test_a_constructor_that_raises() -> None:
    class Fragile(Node):
        def __init__(self, *given: Any) -> None:
            raise RuntimeError("no")  # here it breaks

    with pytest.raises(
        ModelError, match=f"node 0 at 0s: .*RuntimeError: no, in {HERE}, line {line_of('here it breaks')}"
    ):
        pair(Fragile).run()


def test_a_constructor_that_does_not_know_a_parameter() -> None:
    with pytest.raises(ModelError, match=r"node 0 at 0s: .*unexpected keyword argument 'color'"):
        pair(Chatter, parameters={"color": "red"}).run()


def test_a_constructor_that_raises_when_somebody_looks() -> None:
    run = pair(Chatter, parameters={"color": "red"})
    with pytest.raises(WorldlineError, match="node 0"):
        _ = run.nodes


def test_a_constructor_that_raises_the_second_time() -> None:
    class Fragile(Listener):
        made = 0

        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            type(self).made += 1
            if type(self).made > 1:
                raise RuntimeError("not again")

    run = started("line:1", Fragile, faults=["1s crash 0", "2s recover 0"])
    with pytest.raises(
        ModelError, match="node 0 at 2s: while it was created it raised RuntimeError: not again, in test_host"
    ):
        run.run()


def test_an_execute_that_waits_is_refused() -> None:
    class Waits(Node):
        def execute(self, event: Event) -> Any:
            yield 5

    with pytest.raises(ModelError, match="node 0"):
        pair(Waits).run()


@pytest.mark.parametrize("node", [Listener(1, 0, 0, lambda *_: None), "Listener", None, 5])
def test_what_is_no_class_is_refused(node: Any) -> None:
    with pytest.raises(ConfigurationError, match="give the class"):
        pair(node)


def test_a_node_that_never_ends_is_stopped() -> None:
    with pytest.raises(Stuck, match=r"hasn't ended after 1,000 events .*events_max"):
        pair(Ticker).run(events_max=1000)


def test_nodes_that_derive_from_nothing() -> None:
    run = ran("clique:3", Plain, parameters={"first": 10}, faults=["2s crash 0", "3s recover 0"])
    assert [node.total for node in run.nodes] == [10 + 2 + 3, 10 + 1 + 3, 10 + 1 + 2]


def test_a_function_can_make_nodes() -> None:
    def make(num_nodes: int, id: int, num_neighbors: int, send: Send) -> Node:  # noqa: A002
        return (Ticker if id else Listener)(num_nodes, id, num_neighbors, send)

    run = ran_pair(make, until="500ms")
    assert [type(node) for node in run.nodes] == [Listener, Ticker]


# -- What observers are told


class Noting(Observer):
    """Keeps the notes of a run."""

    def __init__(self) -> None:
        self.notes: list[tuple[int, str, str, bytes]] = []

    def noted(self, who: str, topic: str, at: int, payload: bytes | None, detail: Any = None) -> None:
        if payload is not None:
            self.notes.append((at, who, topic, payload))


def test_what_a_node_shows_is_told_when_it_changes_and_faults_have_a_kind() -> None:
    class Counting(Node):
        shows = ("ticks", "half")

        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            self.ticks = self.half = 0

        def execute(self, event: Event) -> None:
            if isinstance(event, Timer):
                self.ticks += 1
                self.half = self.ticks // 2
            if self.ticks < 3 and isinstance(event, Start | Recover | Timer):
                self.set_timer("1s")

    run = Scheduler.over("line:2", Counting, faults=["1500ms crash 1", "2500ms recover 1", "2600ms down 0 1"])
    run.start_all_nodes()
    told = Noting()
    run.run(observer=told)
    states = [(at // MS, payload) for at, who, topic, payload in told.notes if (who, topic) == ("1", STATE)]
    assert states == [
        (0, b'{"ticks":0,"half":0}'),
        (1000, b'{"ticks":1,"half":0}'),
        (2500, b'{"ticks":0,"half":0}'),  # It is another node.
        (3500, b'{"ticks":1,"half":0}'),
        (4500, b'{"ticks":2,"half":1}'),
        (5500, b'{"ticks":3,"half":1}'),
    ]
    kinds = [(at // MS, who, kind_of_note(topic, payload)) for at, who, topic, payload in told.notes]
    assert [each for each in kinds if each[2]] == [
        (1500, "1", "down"),
        (2500, "1", "up"),
        (2600, "0", "fault"),
        (2600, "1", "fault"),
    ]
