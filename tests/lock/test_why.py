"""Why somebody waits: the cause, the holder, the way from it, and the text that says so."""

from __future__ import annotations

from tests.lock.table import Table
from worldline.lock import (
    OPERATOR,
    Advance,
    Arbiter,
    Barrier,
    CallOff,
    Cause,
    Hop,
    Invite,
    Join,
    Leave,
    Next,
    Promise,
    Publish,
    State,
    Stop,
    Subscription,
    Why,
)
from worldline.model import FOREVER, MS, Network, Rule, link, plan

TALK = (Subscription("talk"),)
NETWORK = Network(default=link("5ms"), control_latency=3 * MS)


def table(**joins: Join) -> Table:
    return Table(*joins, network=NETWORK, joins=joins)


def listens_to(*topics: str, publishes: str) -> Join:
    return Join(publishes=(publishes,), subscribes=tuple(Subscription(topic) for topic in topics))


def three_in_a_row() -> Table:
    """c can reach b alone, and b can reach a alone."""
    return table(
        a=listens_to("of b", publishes="of a"),
        b=listens_to("of c", publishes="of b"),
        c=listens_to(publishes="of c"),
    )


def test_nobody_who_computes_or_has_left_waits() -> None:
    made = table(a=Join(subscribes=TALK), b=Join(subscribes=TALK))
    made.leave("a")
    assert made.arbiter.why() == ()


def test_the_holder_of_case_1() -> None:
    made = table(A=Join(subscribes=TALK), B=Join(subscribes=TALK))
    made.say("A", Advance(20 * MS))
    assert made.arbiter.why() == (
        Why(
            participant="A",
            state=State.ADVANCING,
            now=0,
            awaits=20 * MS,
            cause=Cause.SENDER,
            bound=5 * MS,
            since=2,
            holder="B",
            holder_state=State.COMPUTING,
            holder_time=0,
            path=(Hop("B", "A", "talk", 5 * MS),),
        ),
    )
    made.say("B", Advance(10 * MS))
    made.say("B", Advance(30 * MS))
    (waiting,) = made.arbiter.why()
    assert (waiting.participant, waiting.holder, waiting.bound, waiting.holder_time) == ("B", "A", 25 * MS, 20 * MS)


def test_the_text_of_case_1() -> None:
    made = table(A=Join(subscribes=TALK), B=Join(subscribes=TALK))
    made.say("A", Advance(20 * MS))
    assert str(made.why("A")) == (
        "A at 0s waits for time 20ms: B (computing) may still send from 0s on, so everything is known only before 5ms; "
        "via B → A (talk, 5ms)"
    )


def test_the_holder_is_the_one_with_the_earliest_possible_arrival() -> None:
    network = Network(default=link("5ms"), rules=(Rule(sender="near", link=link("1ms")),))
    made = Table("a", "far", "near", network=network, subscribes={"a": ["talk"]})
    made.say("a", Advance(20 * MS))
    assert made.why("a").holder == "near"
    made.say("near", Promise(5 * MS))
    assert made.why("a").holder == "far"


def test_a_chain_of_sleepers_leads_to_the_one_that_could_wake_them() -> None:
    made = table(
        a=listens_to("of b", publishes="of a"),
        b=listens_to("of c", publishes="of b"),
        c=listens_to("of d", publishes="of c"),
        d=listens_to(publishes="of d"),
    )
    for name in "abc":
        made.say(name, Next(100 * MS))
    waiting = made.why("a")
    assert (waiting.holder, waiting.holder_state, waiting.bound) == ("d", State.COMPUTING, 15 * MS)
    assert waiting.path == (
        Hop("d", "c", "of d", 5 * MS),
        Hop("c", "b", "of c", 5 * MS),
        Hop("b", "a", "of b", 5 * MS),
    )
    assert str(waiting).startswith("a at 0s waits for its next message until 100ms: d (computing) may still send")
    assert str(waiting).endswith("via d → c (of d, 5ms), c → b (of c, 5ms), b → a (of b, 5ms)")


def test_a_chain_ends_at_a_sleeper_that_acts_by_itself() -> None:
    made = three_in_a_row()
    made.say("c", Promise(50 * MS))
    made.say("a", Next(100 * MS))
    made.say("b", Next(60 * MS))
    waiting = made.why("a")
    assert (waiting.holder, waiting.bound) == ("c", 60 * MS)
    made.say("c", Promise(56 * MS))
    made.say("b", Next(60 * MS))
    waiting = made.why("a")
    assert (waiting.holder, waiting.holder_state, waiting.bound) == ("b", State.COMPUTING, 65 * MS)


def test_a_chain_ends_at_a_sleeper_that_has_promised_more_than_could_wake_it() -> None:
    made = three_in_a_row()
    made.say("b", Promise(40 * MS))
    made.say("b", Next(100 * MS))
    made.say("a", Advance(100 * MS))
    waiting = made.why("a")
    assert (waiting.holder, waiting.holder_state, waiting.bound) == ("b", State.AWAITING, 45 * MS)


def test_a_sleeper_that_holds_by_its_promise_may_send_from_then_on() -> None:
    made = three_in_a_row()
    made.say("b", Promise(40 * MS))
    made.say("b", Next(100 * MS))
    made.say("a", Advance(100 * MS))
    assert made.why("a").holder_time == 40 * MS


def test_the_control_link_is_named_as_such() -> None:
    made = table(a=Join(publishes=()), b=Join(controls=True))
    made.say("a", Advance(20 * MS))
    assert made.why("a").path == (Hop("b", "a", None, 3 * MS),)
    assert str(made.why("a")).endswith("via b → a (control, 3ms)")


def test_the_roster_is_the_cause_before_the_start() -> None:
    arbiter = Arbiter(plan(["a", "b", "c"]))
    arbiter.handle("b", Join())
    (waiting,) = arbiter.why()
    assert (waiting.cause, waiting.missing, waiting.holder) == (Cause.ROSTER, ("a", "c"), None)
    assert str(waiting) == "b at 0s waits for time 0s: the run starts when a, c have joined"


def test_the_barrier_is_the_cause_of_what_lies_beyond_it() -> None:
    made = table(a=Join(), b=Join())
    made.operate(Barrier(20 * MS))
    made.say("a", Advance(21 * MS))
    waiting = made.why("a")
    assert (waiting.cause, waiting.bound, waiting.holder) == (Cause.BARRIER, 20 * MS, None)
    assert str(waiting) == "a at 0s waits for time 21ms: the barrier is at 20ms"


def test_a_sender_is_the_cause_of_what_lies_before_the_barrier() -> None:
    made = table(a=Join(subscribes=TALK), b=Join())
    made.operate(Barrier(20 * MS))
    made.say("a", Advance(19 * MS))
    assert made.why("a").cause is Cause.SENDER


def test_a_newcomer_is_the_cause_until_it_is_there() -> None:
    made = table(a=Join(controls=True), b=Join())
    made.say("a", Invite("late", 20 * MS))
    made.say("a", Invite("guest", 20 * MS))
    made.say("a", Invite("third", 30 * MS))
    made.say("b", Advance(21 * MS))
    waiting = made.why("b")
    assert (waiting.cause, waiting.bound, waiting.missing) == (Cause.NEWCOMER, 20 * MS, ("guest", "late"))
    assert str(waiting) == "b at 0s waits for time 21ms: guest, late, invited for 20ms, haven't joined yet"


def test_a_newcomer_that_is_there_waits_for_those_who_could_invite_it_earlier() -> None:
    made = table(a=Join(controls=True), b=Join(subscribes=TALK))
    made.say("a", Invite("guest", 20 * MS))
    made.handle("guest", Join(subscribes=TALK))
    waiting = made.why("guest")
    assert (waiting.cause, waiting.holder, waiting.bound) == (Cause.SENDER, "a", 3 * MS)
    assert (waiting.state, waiting.awaits, waiting.path) == (State.JOINED, 20 * MS, (Hop("a", "guest", None, 3 * MS),))


def test_since_is_the_number_of_the_event_with_which_the_waiting_began() -> None:
    made = table(a=Join(subscribes=TALK), b=Join(subscribes=TALK))
    made.say("b", Publish("talk", b"", 0))
    made.say("a", Advance(20 * MS))
    made.say("b", Promise(1))
    made.say("b", Advance(15 * MS))
    made.say("b", Advance(100 * MS))
    assert {why.participant: why.since for why in made.arbiter.why()} == {"b": 6}
    made.say("a", Advance(200 * MS))
    assert {why.participant: why.since for why in made.arbiter.why()} == {"a": 7}


def test_nobody_holds_anybody_in_a_run_that_was_called_off_before_it_started() -> None:
    arbiter = Arbiter(plan(["a", "b"]))
    arbiter.handle("a", Join())
    arbiter.handle(OPERATOR, CallOff("enough"))
    assert all(why.holder != why.participant for why in arbiter.why())


def test_a_newcomer_beyond_the_end_isnt_its_own_holder() -> None:
    made = table(a=Join(controls=True), b=Join())
    made.say("a", Invite("guest", 50 * MS))
    made.say("a", Stop(40 * MS))
    made.handle("guest", Join())
    made.handle("a", Leave(0))
    waiting = made.why("guest")
    assert waiting.holder != "guest"
    assert waiting.bound < FOREVER


def test_a_cause_without_a_known_holder_can_be_said_too() -> None:
    bare = Why("a", State.ADVANCING, 0, 9, Cause.SENDER, 5, 0)
    assert "(unknown)" in str(bare)
