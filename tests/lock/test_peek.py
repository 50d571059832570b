"""Peeking, at both ends of the lock: a participant learns what comes, stays where it is, and may still send."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from tests.lock.table import Table
from tests.lock.test_ledger import arrivals, message, refuses
from worldline.lock import (
    Advance,
    Barrier,
    Cause,
    Grant,
    Invite,
    Join,
    Ledger,
    Next,
    Peek,
    Promise,
    Publish,
    Reached,
    RunEnded,
    StartRun,
    State,
    Stop,
    Subscribe,
    Subscription,
)
from worldline.model import FOREVER, TIME_MAX, Network, PeerError, Rule, UsageError, link

# --- The ledger ---

JOIN = Join(subscribes=(Subscription("red"),), controls=True)


def started(reach: int = 10, *, period: int = 0) -> Ledger:
    """A ledger that computes, with nothing in its outbox."""
    ledger = Ledger("a", JOIN, period=period, keep_journal=True)
    ledger.receive(StartRun("a", 0, 7, 5, reach))
    ledger.take_outbox()
    return ledger


def granted(horizon: int, *messages: int, reach: int = 10, final: bool = False) -> Ledger:
    """A ledger at time 1 that knows what arrives before a horizon."""
    ledger = started(reach)
    ledger.advance(1)
    ledger.receive(Grant("a", horizon, [message(arrival) for arrival in messages], final))
    ledger.take_outbox()
    return ledger


@pytest.mark.parametrize(("until", "asked"), [(None, 10), (7, 7), (10, 10), (11, 10), (TIME_MAX, 10)])
def test_it_asks_for_no_more_than_its_reach(until: int | None, asked: int) -> None:
    ledger = started()
    assert ledger.peek(until) is None
    assert ledger.take_outbox() == [Peek(asked, FOREVER)]
    assert ledger.state is State.PEEKING
    assert ledger.receive(Grant("a", 12, [])) == []
    assert ledger.peek(until) == asked
    assert (ledger.now, ledger.state, ledger.take_outbox()) == (0, State.COMPUTING, [])


def test_a_promise_lets_it_look_no_further() -> None:
    ledger = started()
    ledger.promise(6)
    assert ledger.peek() is None
    assert ledger.take_outbox() == [Promise(6), Peek(10, FOREVER)]


def test_a_message_is_seen_and_stays_where_it_is() -> None:
    ledger = started()
    assert ledger.peek() is None
    assert ledger.receive(Grant("a", 5, [message(4)])) == []  # Less than it has asked for, but all before its answer.
    assert ledger.peek() == ledger.peek(until=5) == 4
    assert ledger.peek(until=4) == 4
    assert ledger.peek(until=3) == 3
    assert ledger.now == 0
    ledger.publish("blue", b"on the way", at=3)
    assert arrivals(ledger.next()) == [4]
    assert ledger.now == 4


def test_a_request_says_where_it_is_and_what_is_held() -> None:
    ledger = granted(30, 8)
    ledger.advance(2)
    ledger.invite("guest", 7)  # What is known is taken back to the newcomer's start; what is held stays held.
    assert ledger.peek() is None
    assert ledger.take_outbox() == [Invite("guest", 7), Reached(2), Peek(12, 8)]
    assert ledger.receive(Grant("a", 9, [])) == []
    assert ledger.peek() == 8


def test_the_end_is_seen_and_ends_it_only_when_it_is_there() -> None:
    ledger = granted(20, reach=50, final=True)
    assert ledger.peek() == 20
    assert not ledger.ended
    ledger.publish("red", b"", at=19)
    assert ledger.advance(20) == []
    assert ledger.peek(until=20) == 20
    assert not ledger.ended
    ledger.publish("red", b"")
    assert ledger.peek() == 20
    assert ledger.ended
    with pytest.raises(RunEnded):
        ledger.peek()


def test_an_interrupted_peek_is_taken_up_by_the_same_call_alone() -> None:
    ledger = started()
    assert ledger.peek(until=50) is None
    ledger.take_outbox()
    assert ledger.peek(until=50) is ledger.peek(until=60) is ledger.peek() is None  # All look as far as they can.
    assert ledger.take_outbox() == []
    words = r"while it is peeking \(peek\(until='10ns'\) was interrupted, and is still asked for: call it again first"
    for until in (0, 9):
        refuses(ledger, lambda a, until=until: a.peek(until), UsageError, words)  # type: ignore[misc]
    refuses(ledger, lambda a: a.next(10), UsageError, words)
    refuses(ledger, lambda a: a.publish("red", b""), UsageError, words)
    ledger.receive(Grant("a", 10, []))
    assert ledger.peek(until=50) == 10


def test_another_peek_that_would_look_further_isnt_the_same() -> None:
    ledger = started()
    assert ledger.peek(until=5) is None
    refuses(ledger, lambda a: a.peek(until=7), UsageError, "'5ns'. was interrupted")
    refuses(ledger, lambda a: a.peek(), UsageError, "'5ns'. was interrupted")


def test_an_answer_that_was_interrupted_is_taken_again() -> None:
    ledger = started()
    ledger.allow_undo()
    ledger.peek()
    answer = Grant("a", 5, [message(4)])
    ledger.receive(answer)
    ledger.take_back()
    assert ledger.state is State.PEEKING
    ledger.receive(answer)
    assert ledger.peek() == 4


def test_after_a_later_subscription_nobody_knows_how_far_it_may_peek() -> None:
    ledger = granted(30, 8)
    ledger.subscribe("blue")
    refuses(
        ledger,
        lambda a: a.peek(),
        UsageError,
        "subscribed to a topic after joining, or the server is too old.*declare all topics on joining",
    )
    ledger.unsubscribe("blue")
    refuses(ledger, lambda a: a.peek(), UsageError, "it isn.t known how far it may peek")
    assert ledger.next() is None


def test_nothing_is_seen_after_the_last_time() -> None:
    ledger = started()
    late = TIME_MAX + 5
    ledger.next()
    ledger.receive(Grant("a", late + 1, [message(late)]))
    assert ledger.peek() == late


def test_a_period_promises_by_itself() -> None:
    ledger = started(period=4)
    ledger.next()
    ledger.receive(Grant("a", 6, [message(5)]))
    ledger.take_outbox()
    assert ledger.peek() is None
    assert ledger.take_outbox() == [Promise(8), Peek(15, FOREVER)]
    assert ledger.peek() is None


# --- The arbiter ---

LISTENS = Join(subscribes=(Subscription("red"),))
CONTROLS = Join(subscribes=(Subscription("red"),), controls=True)


def table(end: int | None = None, **joins: Join) -> Table:
    return Table(*joins, network=Network(default=link(5), control_latency=5), joins=joins, end=end)


def peeking(**others: Join) -> Table:
    """a is at 3 and wants to know all before 8; the others are at 0."""
    made = table(a=LISTENS, **others)
    made.say("a", Advance(3))
    assert made.say("a", Peek(8)) == {}
    return made


def test_who_peeks_stays_where_it_is_and_may_still_publish_there() -> None:
    made = table(a=LISTENS, b=LISTENS)
    assert made.say("a", Peek(5)) == {"a": Grant("a", 5, [])}
    assert made.arbiter.participants()["a"] == (State.COMPUTING, 0)
    made.say("a", Publish("red", b"", 0))
    assert made.say("b", Next(100)) == {}
    assert arrivals(made.say("a", Reached(1))["b"].messages) == [5]


def test_it_waits_until_nobody_can_reach_it_before_then() -> None:
    made = peeking(b=LISTENS)
    assert made.arbiter.participants()["a"] == (State.PEEKING, 3)
    assert sorted(made.say("b", Advance(2))) == ["b"]
    assert made.say("b", Advance(3))["a"] == Grant("a", 8, [])
    assert made.arbiter.participants()["a"] == (State.COMPUTING, 3)


def test_others_go_as_far_as_it_lets_them_while_it_peeks_and_after() -> None:
    made = peeking(b=LISTENS)
    granted = made.say("b", Advance(9))
    assert sorted(granted) == ["a"]
    assert granted["a"].horizon == 14
    assert (made.why("b").holder, made.why("b").holder_time, made.why("b").bound) == ("a", 3, 8)
    assert sorted(made.say("a", Reached(4))) == ["b"]


@pytest.mark.parametrize("published_first", [True, False])
def test_a_message_makes_it_wait_for_no_more_than_its_own_moment(published_first: bool) -> None:
    made = table(a=LISTENS, b=LISTENS)
    made.say("a", Advance(3))
    if published_first:
        made.say("b", Publish("red", b"", 0))
    assert made.say("a", Peek(8)) == {}
    if not published_first:
        made.say("b", Publish("red", b"", 0))
    grant = made.say("b", Promise(1))["a"]
    assert (grant.horizon, arrivals(grant.messages)) == (6, [5])


def test_it_may_ask_for_its_reach_ahead_of_its_time_and_no_more() -> None:
    made = table(a=LISTENS, b=LISTENS)
    made.say("a", Advance(3))
    made.say("a", Promise(7))
    with pytest.raises(PeerError, match="can't ask for 9ns"):
        made.handle("a", Peek(9))
    made.say("a", Subscribe(Subscription("blue"), 3, 3))
    with pytest.raises(PeerError, match="can't ask for 4ns"):
        made.handle("a", Peek(4))


def test_nobody_peeks_beyond_the_last_time() -> None:
    made = table(a=Join())
    with pytest.raises(PeerError, match="can't ask for"):
        made.handle("a", Peek(TIME_MAX + 1))
    assert made.say("a", Peek(TIME_MAX))["a"].horizon == FOREVER


def test_nobody_peeks_beyond_the_barrier() -> None:
    made = table(a=LISTENS, b=LISTENS)
    made.operate(Barrier(4))
    assert made.say("a", Peek(5)) == {}
    assert made.why("a").cause is Cause.BARRIER
    assert made.operate(Barrier(5))["a"].horizon == 5


def test_what_arrives_from_its_time_on_is_kept_for_one_that_peeks_whatever_it_has_promised() -> None:
    made = table(a=LISTENS, b=LISTENS)
    made.operate(Barrier(5))
    made.say("b", Publish("blue", b"", 1))
    made.say("a", Advance(3))
    made.say("a", Promise(50))
    made.leave("b")
    assert made.say("a", Peek(8)) == {}
    assert made.arbiter.floor() == 3
    made.operate(Barrier(FOREVER))
    made.say("a", Subscribe(Subscription("blue"), 3, 3))
    assert arrivals(made.say("a", Advance(9))["a"].messages) == [6]


def test_a_stop_is_what_it_sees_and_it_may_act_until_then() -> None:
    made = table(a=LISTENS, b=CONTROLS)
    made.say("a", Advance(5))
    assert made.say("a", Peek(10)) == {}
    made.say("b", Stop(8))
    assert sorted(made.say("b", Advance(2))) == ["b"]
    assert made.say("b", Advance(3))["a"] == Grant("a", 8, [], final=True)
    assert made.arbiter.participants()["a"] == (State.COMPUTING, 5)
    made.say("a", Publish("red", b"", 5))
    made.say("a", Reached(8))
    made.say("a", Publish("red", b"", 8))
    assert made.say("a", Peek(13))["a"] == Grant("a", 8, [], final=True)
    assert made.leave("a") == {}


def test_a_newcomer_is_waited_for_and_may_reach_it() -> None:
    made = table(a=LISTENS, b=CONTROLS)
    made.say("b", Invite("guest", 8))
    made.say("b", Promise(100))
    made.say("a", Advance(5))
    assert made.say("a", Peek(10)) == {}
    assert made.why("a").cause is Cause.NEWCOMER
    *started, granted = made.handle("guest", LISTENS)
    assert (started, granted) == ([StartRun("guest", 8, 0, 5, 5)], Grant("a", 13, []))
    made.say("a", Reached(9))
    assert made.say("a", Peek(14)) == {}
    assert (made.why("a").holder, made.why("a").bound) == ("guest", 13)
    assert sorted(made.say("guest", Advance(9))) == ["a", "guest"]
    assert made.arbiter.participants()["a"] == (State.COMPUTING, 9)


def test_how_far_it_may_peek_doesnt_depend_on_who_has_left() -> None:
    made = table(a=LISTENS, b=LISTENS)
    made.leave("b")
    with pytest.raises(PeerError, match="can't ask for 6ns"):
        made.handle("a", Peek(6))
    assert made.say("a", Peek(5))["a"].horizon == FOREVER


LATENCIES = (
    Rule(sender="a", receiver="b", link=link(2)),
    Rule(sender="b", receiver="c", link=link(3)),
    Rule(sender="c", receiver="b", link=link(9)),
)


@pytest.mark.parametrize("times", list(product((0, 1, 2), repeat=3)))
def test_those_who_peek_at_each_other_never_wait_for_each_other_alone(times: tuple[int, ...]) -> None:
    for order in permutations("abc"):
        network = Network(default=link(5), rules=LATENCIES)
        made = Table(*"abc", network=network, joins=dict.fromkeys("abc", LISTENS))
        reach = {name: member.reach for name, member in made.arbiter.members.items()}
        assert reach == {"a": 5, "b": 2, "c": 3}
        now = dict(zip("abc", times, strict=True))
        for name in "abc":
            made.say(name, Advance(now[name]))
        granted: list[str] = []
        for name in order:  # The table checks after every event that somebody can go on.
            granted += made.say(name, Peek(now[name] + reach[name]))
        assert {name for name in "abc" if now[name] == min(times)} <= set(granted)


def test_the_one_that_peeks_is_told_why_it_waits_and_so_are_others_whom_it_holds() -> None:
    hears_both = Join(subscribes=(Subscription("red"), Subscription("blue")))
    made = table(a=hears_both, b=LISTENS, c=Join(publishes=("blue",)))
    made.say("a", Advance(3))
    made.say("a", Peek(8))
    made.say("b", Advance(9))
    assert [str(why) for why in made.arbiter.why()] == [
        (
            "a at 3ns wants to know all before 8ns: c (computing) may still send from 0s on, so everything is known "
            "only before 5ns; via c → a (blue, 5ns)"
        ),
        (
            "b at 0s waits for time 9ns: a (peeking) may still send from 3ns on, so everything is known only "
            "before 8ns; via a → b (red, 5ns)"
        ),
    ]
