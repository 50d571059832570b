"""The lock's behaviors that users may rely on, one test each, in the words of a user."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.lock.table import Table
from worldline import Federation, Message, Network, Participant, Program, Rule, WorldlineError, check, link, run
from worldline.federation.inprocess.checker import check_every_schedule
from worldline.lock import OPERATOR, Advance, Barrier, Join, Next, Publish, Subscribe, Subscription
from worldline.model import FOREVER, MS, NS, BrokenPromise, ConfigurationError


def network(latency: str, **named: str) -> Network:
    return Network(default=link(latency), rules=tuple(Rule(topic=t, link=link(at)) for t, at in named.items()))


def arrivals(messages: list[Message]) -> list[int]:
    return [message.arrival // MS for message in messages]


def test_case_1_nobody_is_granted_more_than_the_other_may_still_send() -> None:
    table = Table("A", "B", network=network("5ms"), subscribes=["talk"])
    assert table.say("A", Advance(20 * MS)) == {}
    waiting = table.why("A")
    assert (waiting.bound, waiting.holder) == (5 * MS, "B")

    assert table.say("B", Advance(10 * MS))["B"].horizon == 25 * MS  # A can't send before 20 ms.

    assert table.say("B", Advance(30 * MS))["A"].horizon == 35 * MS
    waiting = table.why("B")
    assert (waiting.bound, waiting.holder) == (25 * MS, "A")


def test_case_2_ping_pong_takes_one_hop_per_latency_and_ends_on_time() -> None:
    received: list[int] = []

    def player(self: Participant) -> None:
        if self.name == "A":
            self.publish("ball", b"")
        while batch := self.next(until="100ms"):
            received.extend(arrivals(batch))
            for _ in batch:
                self.publish("ball", b"")

    game = {name: Program(run=player, subscribes=["ball"]) for name in "AB"}
    outcome = run(Federation(game, network=network("5ms")))
    assert received == list(range(5, 100, 5))
    assert len(received) == 19
    assert outcome.times == {"A": 100 * MS, "B": 100 * MS}
    assert outcome.events < 60  # Nobody creeps: about two events per hop and participant.


@pytest.mark.parametrize("order", list(permutations(["a", "b", "c"])))
def test_case_3_equal_arrivals_are_ordered_by_send_time_then_name_then_sequence(order: tuple[str, ...]) -> None:
    latencies = {"a": "4ms", "b": "4ms", "c": "3ms"}
    rules = tuple(Rule(sender=name, link=link(latency)) for name, latency in latencies.items())
    table = Table("a", "b", "c", "r", network=Network(rules=rules), subscribes={"r": ["news"]})
    for name in order:
        sent = 1 * MS if name == "c" else 0
        for number in (1, 2):
            table.say(name, Publish("news", f"{name}{number}".encode(), sent))
        table.leave(name)
    (messages,) = (grant.messages for grant in table.say("r", Next(10 * MS)).values())
    assert [message.payload for message in messages] == [b"a1", b"a2", b"b1", b"b2", b"c1", b"c2"]
    assert {message.arrival for message in messages} == {4 * MS}


@pytest.mark.parametrize(("at", "received"), [(5 * MS, True), (10 * MS, True), (10 * MS + NS, False)])
@pytest.mark.parametrize("publish_first", [True, False])
def test_case_4_a_subscription_covers_arrivals_from_its_time_on(at: int, received: bool, publish_first: bool) -> None:
    table = Table("R", "S", network=network("10ms"))
    table.say("R", Advance(at))

    def publish() -> None:
        table.say("S", Publish("news", b"x", 0))
        table.leave("S")

    if publish_first:
        publish()
    table.say("R", Subscribe(Subscription("news"), at, at))
    grants = table.say("R", Next(20 * MS))
    if not publish_first:
        grants = table.leaving("S", Publish("news", b"x", 0))
    assert [message.arrival for message in grants["R"].messages] == [10 * MS] * received


@pytest.mark.parametrize(
    ("buffer", "kept"),
    [
        ("mailbox", [5]),
        ("newest(2)", [4, 5]),
        ("oldest(2)", [1, 2]),
        ("discard", []),
        ("unbounded", [1, 2, 3, 4, 5]),
    ],
)
def test_case_5_buffers_keep_what_their_names_say(buffer: str, kept: list[int]) -> None:
    found: list[int] = []

    def sender(self: Participant) -> None:
        for time in range(5):
            self.publish("news", b"", at=time * MS)

    def reader(self: Participant) -> None:
        found.extend(arrivals(self.advance(to="6ms")))

    run(
        Federation(
            {"S": Program(run=sender), "R": Program(run=reader, publishes=[], subscribes={"news": buffer})},
            network=network("1ms"),
        )
    )
    assert found == kept


def lossy(*extra: str, other_topic: bool = False) -> list[bytes]:
    """Return what R receives of 100 messages over a link that loses 30 %, with more listeners or another topic."""
    received: list[bytes] = []

    def sender(self: Participant) -> None:
        for number in range(100):
            if other_topic:
                self.publish("gossip", b"")
            self.publish("news", b"%d" % number)
            self.advance(to=self.now + MS)

    def reader(self: Participant) -> None:
        messages = self.advance(to="200ms")
        if self.name == "R":
            received.extend(message.payload for message in messages if message.topic == "news")

    readers = {name: Program(run=reader, publishes=[], subscribes=["news", "gossip"]) for name in ("R", *extra)}
    run(Federation({"S": Program(run=sender), **readers}, network=Network(default=link("1ms", loss=0.3)), seed=7))
    return received


def test_case_6_the_same_messages_are_lost_whoever_else_listens_and_whatever_else_is_sent() -> None:
    alone = lossy()
    assert 55 < len(alone) < 85
    assert lossy() == alone
    assert lossy("Q", "T") == alone
    assert lossy(other_topic=True) == alone


def test_case_7_a_send_that_breaks_a_promise_raises_at_its_sender_and_reaches_nobody() -> None:
    caught: list[BrokenPromise] = []
    received: list[bytes] = []

    def sender(self: Participant) -> None:
        self.promise(until="50ms")
        with pytest.raises(BrokenPromise) as info:
            self.publish("news", b"early", at="40ms")
        caught.append(info.value)
        self.publish("news", b"in time", at="50ms")

    def reader(self: Participant) -> None:
        received.extend(message.payload for message in self.advance(to="100ms"))

    run(Federation({"A": Program(run=sender), "B": Program(run=reader, subscribes=["news"])}))
    assert received == [b"in time"]
    (error,) = caught
    assert (error.participant, error.facts) == ("A", {"promise": 50 * MS, "attempt": 40 * MS})
    assert "A" in str(error)
    assert "50ms" in str(error)
    assert "40ms" in str(error)


def test_case_8_when_everybody_waits_and_nothing_is_under_way_everybody_is_granted_its_time() -> None:
    def waiter(self: Participant) -> None:
        until = {"A": "1s", "B": "2s", "C": "1h"}[self.name]
        assert self.next(until=until) == []

    programs = {name: Program(run=waiter, subscribes=["news"]) for name in "ABC"}
    outcome = run(Federation(programs, network=network("1ns")))
    assert outcome.times == {"A": 1000 * MS, "B": 2000 * MS, "C": 3_600_000 * MS}
    assert outcome.events == 9  # Join, wait and leave, each once: no creeping by nanoseconds.


def test_case_9_a_stop_ends_everybody_at_its_time_in_every_schedule() -> None:
    def chief(self: Participant) -> None:
        self.advance(to="3ms")
        self.stop(at="10ms")
        self.advance(to="1s")

    def worker(self: Participant) -> None:
        while not self.ended:
            self.advance(to=self.now + 4 * MS)

    programs = {
        "chief": Program(run=chief, publishes=[], controls=True),
        "one": Program(run=worker),
        "two": Program(run=lambda self: self.next(), subscribes=["news"]),
    }
    federation = Federation(programs, network=network("2ms"))
    assert run(federation).times == {"chief": 10 * MS, "one": 10 * MS, "two": 10 * MS}
    verdict = check(federation, schedules=300)
    verdict.demand_same()


@pytest.mark.parametrize("latency", [0, -5])
def test_case_10_a_latency_below_one_nanosecond_is_refused_with_the_name_of_the_link(latency: int) -> None:
    from worldline.model.latency import Fixed
    from worldline.model.links import Link

    bad = Rule(sender="A", receiver="B", link=Link(latency=Fixed(latency)))
    federation = Federation({n: Program(run=lambda self: None) for n in "AB"}, network=Network(rules=(bad,)))
    with pytest.raises(ConfigurationError, match="link A → B"):
        run(federation)


def test_case_11_a_barrier_holds_until_it_is_moved() -> None:
    table = Table("A", "B")
    second = 1000 * MS
    table.operate(Barrier(2 * second))
    assert table.say("A", Advance(19 * second // 10))["A"].horizon == 2 * second
    assert table.say("A", Advance(3 * second)) == {}
    assert "barrier is at 2s" in str(table.why("A"))
    assert table.operate(Barrier(4 * second))["A"].horizon == 4 * second


def test_case_11_a_barrier_leaves_the_digest_alone() -> None:
    digests = []
    for barriers in ([], [1, 3, 7, FOREVER]):
        table = Table("A", "B", network=network("2ms"), subscribes=["news"])
        for until in barriers[:1]:
            table.operate(Barrier(until * MS))
        for name in "AB":
            table.say(name, Publish("news", name.encode(), 0))
            table.say(name, Advance(5 * MS))
        for until in barriers[1:]:
            table.operate(Barrier(until if until == FOREVER else until * MS))
        for name in "AB":
            table.leave(name)
        digests.append(table.digest)
    assert digests[0] == digests[1] is not None


def test_case_12_every_schedule_of_three_participants_with_three_operations_gives_one_history() -> None:
    def talker(self: Participant) -> None:
        self.publish("news", self.name.encode())
        for message in self.advance(to="2ms"):
            self.publish("echo", message.payload)

    def sleeper(self: Participant) -> None:
        for message in self.next(until="5ms"):
            self.publish("news", message.payload + b"!")

    def late(self: Participant) -> None:
        self.subscribe("echo", "mailbox")
        self.advance(to="4ms")

    federation = Federation(
        {
            "a": Program(run=talker, subscribes=["news"]),
            "b": Program(run=sleeper, subscribes=["news", "echo"]),
            "c": Program(run=late, publishes=[], subscribes=["news"]),
        },
        network=Network(default=link("1ms")),
    )
    verdict = check_every_schedule(federation, split=False)
    verdict.demand_same()
    assert verdict.complete
    assert verdict.schedules > 200


def test_case_13_who_publishes_only_on_other_topics_never_holds_anybody() -> None:
    table = Table("A", "R", joins={"A": Join(publishes=("other",)), "R": Join(subscribes=(Subscription("news"),))})
    assert table.say("R", Advance(1000 * MS))["R"].horizon == FOREVER


def test_case_14_lookahead_is_granted_in_one_go() -> None:
    requests: list[int] = []

    def stepper(self: Participant) -> None:
        for _ in range(100):
            self.publish("news", b"")
            self.advance(to=self.now + MS)

    def follower(self: Participant) -> None:
        for _ in range(100):
            self.advance(to=self.now + MS)
        requests.append(self.now)

    table = Table("A", "B", network=network("100ms"), joins={"A": Join(), "B": Join((), (Subscription("news"),))})
    assert table.say("B", Advance(1 * MS))["B"].horizon == 100 * MS
    assert table.say("A", Advance(1 * MS))["A"].horizon == FOREVER

    outcome = run(
        Federation(
            {"A": Program(run=stepper, subscribes=[]), "B": Program(run=follower, publishes=[], subscribes=["news"])},
            network=network("100ms"),
        )
    )
    assert requests == [100 * MS]
    # B joins, asks once and leaves; A joins, asks once, sends a hundred messages and leaves.
    assert outcome.events == 3 + 103


def test_an_operator_cannot_be_impersonated() -> None:
    with pytest.raises(WorldlineError):
        Table(OPERATOR)
