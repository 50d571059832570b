"""The router: who can reach whom how fast, and what reaches whom, however late it subscribes."""

from __future__ import annotations

import pytest

from worldline.lock import Arbiter, Join, Subscribe, Subscription, Unsubscribe
from worldline.lock.bounds import Bounds
from worldline.lock.member import Member
from worldline.lock.router import Router
from worldline.model import (
    DISCARD,
    FOREVER,
    MAILBOX,
    SECOND,
    UNBOUNDED,
    Buffer,
    Link,
    Message,
    Network,
    Rule,
    exponential,
    link,
    plan,
    uniform,
)
from worldline.model.latency import Uniform
from worldline.model.path import Paths

FOUR_BY_TOPIC = tuple(
    Rule(topic=topic, link=link(latency)) for topic, latency in {"red": 4, "green": 6, "blue": 8}.items()
)


def subscriptions(*topics: str, buffer: Buffer = UNBOUNDED) -> tuple[Subscription, ...]:
    return tuple(Subscription(topic, buffer) for topic in topics)


class Net:
    """A router and its members."""

    def __init__(self, default: Link | None = None, *rules: Rule, **joins: Join) -> None:
        network = Network(default=default or link(5), rules=rules, control_latency=7)
        self.bounds = Bounds()
        self.router = Router(plan(joins, network=network), self.bounds)
        self.members: dict[str, Member] = {}
        for name, join in joins.items():
            self.admit(name, join, 0)

    def admit(self, name: str, join: Join, start: int) -> Member:
        member = self.members[name] = Member(name, start)
        member.introduce(join)
        self.bounds.add(member)
        self.router.admit(member)
        return member

    def edges_into(self, name: str) -> dict[str, int]:
        return {clock.name: latency for clock, latency in self.router.edges.into(self.members[name])}

    def edge(self, sender: str, receiver: str) -> tuple[int, str | None]:
        return self.router.edges.named(self.members[sender], self.members[receiver])

    def publish(self, sender: str, sent: int, topic: str = "red", payload: bytes = b"") -> list[str]:
        return [member.name for member in self.router.publish(self.members[sender], topic, payload, sent)]

    def subscribe(self, name: str, topic: str, since: int, buffer: Buffer = UNBOUNDED) -> None:
        self.router.subscribe(self.members[name], Subscription(topic, buffer), since)

    def unsubscribe(self, name: str, topic: str, until: int) -> None:
        self.router.unsubscribe(self.members[name], topic, until)

    def take(self, name: str, horizon: int = FOREVER) -> list[Message]:
        return self.members[name].inbox.take(horizon)

    def arrivals(self, name: str, horizon: int = FOREVER) -> list[int]:
        return [message.arrival for message in self.take(name, horizon)]


# --- Edges ---


def test_an_edge_has_the_least_latency_of_all_topics_between_two() -> None:
    net = Net(None, *FOUR_BY_TOPIC, a=Join(), b=Join(subscribes=subscriptions("blue", "green")))
    assert net.edges_into("b") == {"a": 6}
    assert net.edge("a", "b") == (6, "green")
    assert net.edges_into("a") == {}
    assert net.edge("b", "a") == (FOREVER, None)


def test_only_declared_publications_make_an_edge() -> None:
    listens = Join(subscribes=subscriptions("red", "blue"))
    net = Net(None, *FOUR_BY_TOPIC, a=Join(publishes=("blue",)), b=Join(publishes=("green",)), c=Join(), d=listens)
    assert net.edges_into("d") == {"a": 8, "c": 4}
    assert net.edge("b", "d") == (FOREVER, None)


def test_what_is_discarded_makes_no_edge() -> None:
    discards = Join(subscribes=(Subscription("red", DISCARD), Subscription("blue", MAILBOX)))
    net = Net(None, *FOUR_BY_TOPIC, a=Join(), b=discards)
    assert net.edges_into("b") == {"a": 8}
    assert net.edge("a", "b") == (8, "blue")


def test_the_senders_own_least_latency_counts_if_it_is_more() -> None:
    joins = {"a": Join(latency_least=6), "b": Join(latency_least=3), "c": Join(subscribes=subscriptions("red"))}
    assert Net(**joins).edges_into("c") == {"a": 6, "b": 5}


def test_a_drawn_latency_counts_with_its_minimum() -> None:
    net = Net(link(uniform(3, 50)), a=Join(), b=Join(subscribes=subscriptions("red")))
    assert net.edges_into("b") == {"a": 3}


def test_who_controls_reaches_everybody_by_the_control_link() -> None:
    net = Net(None, *FOUR_BY_TOPIC, a=Join(controls=True), b=Join(), c=Join(subscribes=subscriptions("red")))
    assert net.edges_into("b") == {"a": 7}
    assert net.edge("a", "b") == (7, None)
    assert net.edges_into("c") == {"a": 4, "b": 4}
    assert net.edge("a", "c") == (4, "red")


def test_the_control_link_counts_where_it_is_faster_than_the_topics() -> None:
    net = Net(link(9), a=Join(controls=True), b=Join(subscribes=subscriptions("red")))
    assert net.edges_into("b") == {"a": 7}
    assert net.edge("a", "b") == (7, None)


def test_only_controllers_concern_a_newcomer_before_its_start() -> None:
    net = Net(a=Join(controls=True), b=Join(), c=Join(subscribes=subscriptions("red")))
    edges = net.router.edges.controls_into(net.members["c"])
    assert [(clock.name, latency) for clock, latency in edges] == [("a", 7)]


def test_edges_follow_subscriptions() -> None:
    net = Net(a=Join(), b=Join())
    assert net.edges_into("b") == {}
    net.subscribe("b", "red", 0)
    assert net.edges_into("b") == {"a": 5}
    net.unsubscribe("b", "red", 0)
    assert net.edges_into("b") == {}


# --- How soon anybody can reach one, ever ---


def reach(net: Net, name: str) -> int:
    return net.router.edges.reach(net.members[name])


def test_the_reach_is_the_least_latency_over_all_publishers_and_topics() -> None:
    listens = Join(subscribes=subscriptions("green", "blue"), publishes=())
    net = Net(None, *FOUR_BY_TOPIC, a=Join(publishes=("blue",)), b=Join(publishes=("red", "green")), c=listens)
    assert reach(net, "c") == 6
    assert reach(Net(None, *FOUR_BY_TOPIC, a=Join(publishes=("blue",)), c=listens), "c") == 8
    assert reach(Net(None, *FOUR_BY_TOPIC, a=Join(), c=Join(subscribes=subscriptions("red", "blue"))), "c") == 4


def test_whom_nobody_can_reach_has_no_end_to_its_reach() -> None:
    listens = Join(subscribes=subscriptions("red"))
    assert reach(Net(a=Join(), b=Join()), "b") == FOREVER
    assert reach(Net(a=Join(publishes=("blue",)), b=listens), "b") == FOREVER
    assert reach(Net(b=listens), "b") == FOREVER  # It doesn't receive what it publishes itself.
    assert reach(Net(a=Join(), b=Join(subscribes=subscriptions("red", buffer=DISCARD))), "b") == FOREVER


def test_what_is_discarded_doesnt_count_for_the_reach() -> None:
    discards = Join(subscribes=(Subscription("red", DISCARD), Subscription("blue", MAILBOX)))
    assert reach(Net(None, *FOUR_BY_TOPIC, a=Join(), b=discards), "b") == 8


def test_the_senders_own_least_latency_and_the_minimum_of_a_draw_count_for_the_reach() -> None:
    listens = Join(subscribes=subscriptions("red"), publishes=())
    assert reach(Net(link(uniform(3, 50)), a=Join(), b=listens), "b") == 3
    assert reach(Net(link(uniform(3, 50)), a=Join(latency_least=9), b=listens), "b") == 9


def test_who_may_invite_makes_the_reach_that_of_anybody() -> None:
    listens = Join(subscribes=subscriptions("red"), publishes=())
    slow = Rule(sender="a", link=link(20))
    assert reach(Net(link(30), slow, a=Join(), b=listens), "b") == 20
    assert reach(Net(link(30), slow, a=Join(controls=True), b=listens), "b") == 7  # By the control link.
    assert reach(Net(link(6), slow, a=Join(controls=True), b=listens), "b") == 6  # By whom it may invite.
    assert reach(Net(link(6), slow, a=Join(controls=True), b=Join(publishes=())), "b") == 7
    assert reach(Net(link(6), slow, a=Join(), b=Join(subscribes=subscriptions("red"), controls=True)), "b") == 6


def test_who_could_invite_counts_for_the_reach_of_a_newcomer_also_when_it_has_left() -> None:
    listens = Join(subscribes=subscriptions("red"))
    net = Net(link(9), Rule(topic="red", sender="b", link=link(2)), a=Join(controls=True), b=Join(publishes=()))
    net.router.dismiss(net.members["a"], 0)
    net.admit("guest", listens, 5)
    assert net.edges_into("guest") == {}
    assert reach(net, "guest") == 2  # The rules alone count, whoever is there.


# --- Messages ---


def test_publishing_tells_who_expects_a_message_and_has_none_before_it() -> None:
    listens = Join(subscribes=subscriptions("red"))
    net = Net(a=Join(), b=listens, c=listens)
    net.members["b"].expects = True
    assert net.publish("a", 10) == ["b"]
    assert net.publish("a", 11) == []
    assert net.publish("a", 9) == ["b"]


# --- Subscribing late ---


@pytest.mark.parametrize(
    "default", [link(5), link(uniform(2, 40)), link(5, loss=0.5, fifo=True), link(uniform(2, 40), fifo=True)]
)
@pytest.mark.parametrize("since", [0, 14, 15, 16, 40, 60])
def test_a_late_subscriber_gets_what_an_early_one_gets_from_its_time_on(default: Link, since: int) -> None:
    early = Net(default, a=Join(), b=Join(subscribes=subscriptions("red")))
    late = Net(default, a=Join(), b=Join())
    for net in (early, late):
        for sent in range(0, 60, 3):
            net.publish("a", sent)
    late.subscribe("b", "red", since)
    expected = [message for message in early.take("b") if message.arrival >= since]
    assert expected
    assert late.take("b") == expected


def test_what_cant_arrive_any_more_costs_a_late_subscriber_no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net(link(uniform(2, 10)), a=Join(), b=Join())
    for sent in range(50):
        net.publish("a", sent)
    drawn: list[int] = []
    draw = Uniform.draw
    monkeypatch.setattr(Uniform, "draw", lambda self, bits: drawn.append(bits) or draw(self, bits))
    net.subscribe("b", "red", 55)
    assert len(drawn) == 5  # Of those sent at 45 and later.


# --- Paths that queue ---

SLOW = link(5, bandwidth=SECOND)
"""A byte takes a nanosecond."""


@pytest.mark.parametrize("since", [0, 50, 106, 107])
def test_a_late_subscriber_sees_the_queue_that_was_there_before_it(since: int) -> None:
    net = Net(SLOW, a=Join(), b=Join())
    net.publish("a", 0, payload=b"." * 100)
    net.publish("a", 10, payload=b".")
    net.subscribe("b", "red", since)
    net.publish("a", 20, payload=b"..")
    assert net.arrivals("b") == [arrival for arrival in (105, 106, 108) if arrival >= since]


def test_the_queue_outlives_the_messages_that_are_forgotten() -> None:
    net = Net(SLOW, a=Join(), b=Join())
    net.publish("a", 0, payload=b"." * 100_000)
    for member in net.members.values():
        net.bounds.change(member, 50_000, 50_000)
    for sent in range(50_000, 50_200):
        net.publish("a", sent, payload=b".")
    assert net.router.retained() < 250
    net.subscribe("b", "red", 50_000)
    assert net.arrivals("b") == [100_005 + number for number in range(201)]


def test_what_queues_and_arrives_at_the_time_of_the_last_one_can_still_be_subscribed_to() -> None:
    net = Net(SLOW, a=Join(), b=Join())
    for sent in range(0, 1000, 2):
        net.publish("a", sent, payload=b".")
    for member in net.members.values():
        net.bounds.change(member, 500, 500)
    for sent in range(1000, 2100, 2):
        net.publish("a", sent, payload=b".")
    net.subscribe("b", "red", 500)
    assert net.arrivals("b") == list(range(500, 2106, 2))


def test_the_queue_goes_on_while_nobody_listens() -> None:
    net = Net(SLOW, a=Join(), b=Join(subscribes=subscriptions("red")))
    net.publish("a", 0, payload=b"." * 100)
    net.unsubscribe("b", "red", 1)
    net.publish("a", 2, payload=b"." * 100)
    net.subscribe("b", "red", 150)
    net.publish("a", 3, payload=b".")
    assert net.arrivals("b") == [205, 206]


def test_what_was_sent_before_a_newcomers_start_is_under_way_to_it_but_in_nobodys_way() -> None:
    net = Net(SLOW, a=Join())
    net.publish("a", 0, payload=b"." * 100)
    net.publish("a", 10, payload=b".")
    net.admit("guest", Join(subscribes=subscriptions("red")), 16)
    net.publish("a", 20, payload=b".")
    assert net.arrivals("guest") == [16, 26, 105]


# --- Forgetting ---


def test_what_nobody_can_subscribe_to_in_time_is_forgotten() -> None:
    net = Net(a=Join(), b=Join())
    for now in range(1000):
        for member in net.members.values():
            net.bounds.change(member, now, now)
        net.publish("a", now)
        assert net.router.retained() < 150


def test_what_arrives_at_the_time_of_the_last_one_can_still_be_subscribed_to() -> None:
    net = Net(a=Join(), b=Join())
    for now in range(1000):
        net.publish("a", now)
    for member in net.members.values():
        net.bounds.change(member, 500, 500)
    for now in range(1000, 2100):
        net.publish("a", now)
    net.subscribe("b", "red", 500)
    assert net.arrivals("b") == list(range(500, 2105))


def test_a_topic_that_is_out_of_use_is_forgotten_but_not_how_many_messages_there_were() -> None:
    """The draws of later messages go by that: they must not depend on when it was forgotten."""
    drawn = link(uniform(1, 50))
    kept, swept = (Net(drawn, a=Join(), b=Join(subscribes=subscriptions("red"))) for _ in range(2))
    for net in (kept, swept):
        for sent in range(5):
            net.publish("a", sent)
        net.take("b")
        for member in net.members.values():
            net.bounds.change(member, 1000, 1000)
            member.granted = 1000
    for number in range(300):
        swept.publish("a", 1000, topic=f"topic {number}")
    assert "red" in kept.members["a"].publications
    assert "red" not in swept.members["a"].publications
    for net in (kept, swept):
        net.publish("a", 1000)
    assert kept.arrivals("b") == swept.arrivals("b")


def test_topics_that_are_used_once_leave_hardly_anything_behind() -> None:
    net = Net(a=Join(), b=Join())
    for now in range(2000):
        for member in net.members.values():
            net.bounds.change(member, now, now)
            member.granted = now
        net.subscribe("b", f"topic {now}", now)
        net.publish("a", now, topic=f"topic {now}")
        net.unsubscribe("b", f"topic {now}", now)
        net.take("b")
    router = net.router
    assert len(router._publications) == len(net.members["a"].publications) < 200
    assert len(router._by_topic) < 200
    assert not router._subscribers
    assert not router.edges._listeners
    assert net.members["a"].topics == 2000
    for member in net.members.values():
        net.bounds.change(member, 3000, 3000)
    router.dismiss(net.members["a"], 3000)
    assert not router._publications
    assert not net.members["a"].spent


def test_what_is_kept_has_its_number_however_much_before_it_is_forgotten() -> None:
    net = Net(link(5), a=Join(), b=Join(), c=Join())
    for sent in range(10):
        net.publish("a", sent, payload=bytes([sent]))
    (publication,) = net.members["a"].publications.values()
    for kept in (10, 8, 7, 3, 3, 1):
        publication.forget(5 + 10 - kept)
        found = publication.kept()
        assert [(number, message.payload) for number, message in found] == [
            (n, bytes([n])) for n in range(10 - kept, 10)
        ]
        assert publication.count() == kept
        assert publication.last() == 14
    net.publish("a", 20)
    assert [number for number, _ in publication.kept()] == [9, 10]
    publication.judge(
        [(when, number, message) for (number, message), when in zip(publication.kept(), (30, 22), strict=True)]
    )
    assert [number for number, _ in publication.kept()] == [9, 10]
    publication.forget(23)
    assert [number for number, _ in publication.kept()] == [9]
    publication.forget(31)
    assert (publication.count(), publication.last()) == (0, -1)


@pytest.mark.parametrize("known", [True, False], ids=["nobody can come", "somebody may come"])
def test_under_pressure_messages_are_judged_by_when_they_really_arrive(known: bool) -> None:
    net = Net(link(exponential(1, 500)), a=Join(), b=Join(), c=Join(controls=not known))
    arrivals = []
    for sent in range(0, 5000, 10):
        net.publish("a", sent, payload=b".")
    probe = Net(link(exponential(1, 500)), a=Join(), b=Join(subscribes=subscriptions("red")), c=Join())
    for sent in range(0, 5000, 10):
        probe.publish("a", sent, payload=b".")
    arrivals = probe.arrivals("b")
    for member in net.members.values():
        net.bounds.change(member, 5000, 5000)
    net.router.relieve(net.members["a"])
    assert (net.router.retained() < 150) == known
    net.subscribe("b", "red", 5000)  # And nothing is missing that it has to be given.
    assert net.arrivals("b") == [arrival for arrival in arrivals if arrival >= 5000]


def test_a_sender_that_is_behind_keeps_nothing_for_itself() -> None:
    net = Net(link(1000), a=Join(), b=Join(subscribes=subscriptions("red")))
    for sent in range(100):
        net.publish("a", sent)
    net.take("b")
    net.bounds.change(net.members["b"], 1100, 1100)
    net.members["b"].granted = 1100
    assert net.router.relieve(net.members["a"]) == 0


def test_a_sleeper_that_the_sender_may_wake_has_everything_kept_for_it() -> None:
    net = Net(link(1000), Rule(topic="bell", link=link(5)), a=Join(), b=Join(subscribes=subscriptions("bell")))
    for sent in range(100):
        net.publish("a", sent)
    net.bounds.change(net.members["a"], 100, 100)
    net.bounds.change(net.members["b"], FOREVER, 0, FOREVER, sleeping=True)
    net.router.relieve(net.members["a"])
    net.subscribe("b", "red", 105)
    assert len(net.arrivals("b")) == 100


def test_the_next_subscription_costs_no_more_than_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    find = Paths.link

    def counted(self: Paths, topic: str, sender: str, receiver: str) -> Link:
        nonlocal looked
        looked += 1
        return find(self, topic, sender, receiver)

    monkeypatch.setattr(Paths, "link", counted)
    arbiter = Arbiter(plan(["a", "b", "c"]))
    for name in "abc":
        arbiter.handle(name, Join())
    costs = []
    for start in range(0, 300, 100):
        before = looked
        for number in range(start, start + 100):
            arbiter.handle("a", Subscribe(Subscription(f"topic {number}"), 0, 0))
        costs.append(looked - before)
    assert costs[0] == costs[1] == costs[2] <= 300
    before = looked
    for number in range(300):
        arbiter.handle("a", Unsubscribe(f"topic {number}", 0, 0))
    assert looked - before <= 900
    assert arbiter.members["a"].ins == []
