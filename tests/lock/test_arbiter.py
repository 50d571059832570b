"""The arbiter: what it refuses and that refusing changes nothing, how runs end, barriers, newcomers, retention."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import get_args

import pytest

from tests.lock.table import Table
from worldline.builds import build
from worldline.history.journal import run_digest
from worldline.lock import (
    OPERATOR,
    Abort,
    Action,
    Advance,
    Arbiter,
    Barrier,
    CallOff,
    Cause,
    Down,
    Event,
    Grant,
    Invite,
    Join,
    Leave,
    Log,
    Lost,
    Next,
    Over,
    ParticipantEvent,
    Peek,
    Phase,
    Promise,
    Publish,
    Reached,
    StartRun,
    State,
    Stop,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from worldline.lock.events import OperatorEvent
from worldline.lock.states import PHASES, TRANSITIONS
from worldline.model import (
    FOREVER,
    MS,
    TIME_MAX,
    BrokenPromise,
    Buffer,
    ConfigurationError,
    Network,
    PeerError,
    Rule,
    UsageError,
    WorldlineError,
    link,
    plan,
)

NETWORK = Network(default=link(5), control_latency=5)

LISTENS = Join(subscribes=(Subscription("red"),))
CONTROLS = Join(subscribes=(Subscription("red"),), controls=True)


def table(end: int | None = None, **joins: Join) -> Table:
    return Table(*joins, network=NETWORK, joins=joins, end=end)


def snapshot(arbiter: Arbiter) -> bytes:
    """Everything that the arbiter knows, down to the last heap; of a compiled one nothing, `make test-plain` looks."""
    return b"" if build == "compiled" else pickle.dumps(arbiter)


def refused(arbiter: Arbiter, who: str, event: Event) -> WorldlineError:
    """Have an event refused; prove that nothing has changed by it."""
    before = snapshot(arbiter), arbiter.participants(), arbiter.why(), arbiter.router.retained(), arbiter.events
    with pytest.raises(WorldlineError) as caught:
        arbiter.handle(who, event)
    assert (
        snapshot(arbiter),
        arbiter.participants(),
        arbiter.why(),
        arbiter.router.retained(),
        arbiter.events,
    ) == before
    return caught.value


# --- Illegal events ---

SCRIPT: list[tuple[str, Event]] = [
    ("a", CONTROLS),
    ("b", CONTROLS),
    ("a", Publish("red", b"hello", 0)),
    ("a", Advance(20)),
    ("b", Publish("red", b"early", 2)),
    (OPERATOR, Barrier(30)),
    ("b", Advance(16)),
    ("a", Peek(25)),
    ("b", Advance(20)),
    ("a", Subscribe(Subscription("blue"), 20, 20)),
    ("a", Next(40)),
    ("b", Publish("blue", b"late", 20)),
    (OPERATOR, Barrier(FOREVER)),
    ("b", Invite("guest", 30)),
    ("guest", LISTENS),
    ("b", Leave(20, b"b")),
    ("guest", Leave(30, b"guest")),
    ("a", Leave(25, b"a")),
]
"""A run in which a passes through every state; every event is in its place and none is refused."""

PARTICIPANT_EVENTS: dict[type, Event] = {
    Join: LISTENS,
    Publish: Publish("red", b"", 50),
    Promise: Promise(50),
    Reached: Reached(0),
    Subscribe: Subscribe(Subscription("green"), 0, 0),
    Unsubscribe: Unsubscribe("red", 0, 0),
    Down: Down(0, 5, {"red": 0}),
    Invite: Invite("other", 50),
    Stop: Stop(50),
    Log: Log("sees a gull"),
    Advance: Advance(50),
    Next: Next(50),
    Peek: Peek(5),
    Leave: Leave(0),
}
OPERATOR_EVENTS: dict[type, Event] = {
    Barrier: Barrier(9),
    Stop: Stop(50),
    Lost: Lost("a", "gone"),
    CallOff: CallOff("enough"),
}


def arbiter_after(steps: int) -> Arbiter:
    arbiter = Arbiter(plan(["a", "b"], network=NETWORK))
    for who, event in SCRIPT[:steps]:
        arbiter.handle(who, event)
    return arbiter


def what_follows(arbiter: Arbiter, steps: int) -> list[tuple[Action, ...]]:
    return [arbiter.handle(who, event) for who, event in SCRIPT[steps:]]


def state_after(steps: int) -> State:
    return arbiter_after(steps).participants()["a"][0]


def test_every_event_that_a_participant_or_an_operator_can_say_is_tried() -> None:
    assert set(PARTICIPANT_EVENTS) == set(get_args(ParticipantEvent))
    assert set(OPERATOR_EVENTS) == set(get_args(OperatorEvent))


def test_the_script_passes_through_every_state_to_the_end() -> None:
    assert {state_after(steps) for steps in range(len(SCRIPT) + 1)} == set(State)
    assert isinstance(what_follows(arbiter_after(0), 0)[-1][-1], Over)


@pytest.mark.parametrize("steps", range(len(SCRIPT) + 1))
def test_an_event_that_isnt_in_the_table_is_refused_and_the_run_goes_on_as_without_it(steps: int) -> None:
    legal = TRANSITIONS[state_after(steps)] if steps < len(SCRIPT) else {}
    for kind, event in {**PARTICIPANT_EVENTS, **OPERATOR_EVENTS}.items():
        if kind not in legal:
            arbiter = arbiter_after(steps)
            error = refused(arbiter, "a", event)
            assert isinstance(error, PeerError)
            assert error.participant == "a"
            assert kind.__name__ in str(error)
            assert what_follows(arbiter, steps) == what_follows(arbiter_after(steps), steps)


@pytest.mark.parametrize("steps", [0, 4, len(SCRIPT)])
def test_an_operator_says_only_what_the_phase_allows(steps: int) -> None:
    for kind, event in {**PARTICIPANT_EVENTS, **OPERATOR_EVENTS}.items():
        arbiter = arbiter_after(steps)
        if kind in PHASES[arbiter.phase]:
            continue
        assert isinstance(refused(arbiter, OPERATOR, event), UsageError)
        assert what_follows(arbiter, steps) == what_follows(arbiter_after(steps), steps)


def test_a_refusal_says_what_is_possible_instead() -> None:
    assert "Join" in str(refused(arbiter_after(0), "a", Advance(1)))
    assert "possible now: nothing" in str(refused(arbiter_after(len(SCRIPT) - 2), "b", Advance(1)))
    assert "the run is over" in str(refused(arbiter_after(len(SCRIPT)), "a", Advance(1)))


def test_what_only_the_arbiter_says_is_refused_from_a_participant() -> None:
    for steps in range(len(SCRIPT) + 1):
        assert isinstance(refused(arbiter_after(steps), "a", Abort("a", "no")), PeerError)  # type: ignore[arg-type]


@pytest.mark.parametrize(("steps", "answer"), [(0, StartRun("a", 0, 0, 5)), (4, Over(b"")), (4, Abort("a", "no"))])
def test_what_only_the_arbiter_says_is_refused_from_an_operator(steps: int, answer: Action) -> None:
    assert isinstance(refused(arbiter_after(steps), OPERATOR, answer), UsageError)  # type: ignore[arg-type]


# --- Bad contents ---


def gathering() -> Arbiter:
    return Arbiter(plan(["a", "b"], network=NETWORK))


def computing() -> Arbiter:
    """a controls, publishes on red alone, is granted up to 20 and has promised 10; b waits for it."""
    join = Join(publishes=("red",), subscribes=(Subscription("blue"),), controls=True)
    rules = (Rule(sender="b", link=link(20)),)
    network = Network(default=link(5), rules=rules, control_latency=5)
    made = Table("a", "b", network=network, joins={"a": join, "b": LISTENS})
    made.handle("a", Next(1))
    made.handle("a", Promise(10))
    made.handle("b", Advance(100))
    return made.arbiter


def uncontrolled() -> Arbiter:
    return table(a=LISTENS, b=LISTENS).arbiter


def bad(start: Callable[[], Arbiter], event: Event, kind: type[WorldlineError], words: str) -> object:
    return pytest.param(start, event, kind, words, id=f"{type(event).__name__}: {words}")


BAD = [
    bad(gathering, Join(publishes=("",)), ConfigurationError, "topic"),
    bad(gathering, Join(subscribes=(Subscription(" red"),)), ConfigurationError, "' red'"),
    bad(gathering, Join(subscribes=(Subscription("red"),) * 2), ConfigurationError, "'red' twice"),
    bad(gathering, Join(subscribes=(Subscription("red", Buffer(-1)),)), ConfigurationError, "-1"),
    bad(gathering, Join(latency_least=-1), ConfigurationError, "-1"),
    bad(gathering, Join(latency_least=TIME_MAX + 1), ConfigurationError, "latency"),
    bad(computing, Publish("blue", b"", 15), UsageError, "'blue'"),
    bad(computing, Publish("red", b"", 9), BrokenPromise, "9ns breaks its promise until 10ns"),
    bad(computing, Publish("red", b"", -1), BrokenPromise, "-1ns"),
    bad(computing, Publish("red", b"", TIME_MAX + 1), ConfigurationError, "a send time"),
    bad(computing, Promise(9), PeerError, "promises only grow"),
    bad(computing, Promise(TIME_MAX + 1), ConfigurationError, "a promise"),
    bad(computing, Reached(0), PeerError, "can't be at 0s"),
    bad(computing, Reached(21), PeerError, "granted up to 20ns"),
    bad(computing, Subscribe(Subscription(""), 1, 1), ConfigurationError, "topic"),
    bad(computing, Subscribe(Subscription("red", Buffer(-1)), 1, 1), ConfigurationError, "-1"),
    bad(computing, Subscribe(Subscription("blue"), 1, 1), PeerError, "already subscribes to 'blue'"),
    bad(computing, Subscribe(Subscription("red"), 21, 21), PeerError, "can't be at 21ns"),
    bad(computing, Subscribe(Subscription("red"), 0, 0), PeerError, "can't be at 0s"),
    bad(computing, Subscribe(Subscription("red"), 3, 2), PeerError, "begin or end at 2ns"),
    bad(computing, Subscribe(Subscription("red"), 3, 5), PeerError, "begin or end at 5ns"),
    bad(computing, Unsubscribe("red", 1, 1), PeerError, "'red'"),
    bad(computing, Unsubscribe("blue", 21, 21), PeerError, "can't be at 21ns"),
    bad(computing, Unsubscribe("blue", 3, 2), PeerError, "end at 2ns"),
    bad(computing, Unsubscribe("blue", 3, 5), PeerError, "end at 5ns"),
    bad(computing, Down(1, 5, {"red": 1}), PeerError, "'red'"),
    bad(computing, Down(21, 22, {"blue": 21}), PeerError, "can't be at 21ns"),
    bad(computing, Down(3, 2, {"blue": 3}), PeerError, "down until 2ns"),
    bad(computing, Down(3, 9, {"blue": 5}), PeerError, "end at 5ns"),
    bad(computing, Log("gull", "bird"), PeerError, "kind 'bird'"),
    bad(computing, Advance(0), PeerError, "can't ask for 0s"),
    bad(computing, Advance(TIME_MAX + 1), PeerError, "can't ask for"),
    bad(computing, Next(0), PeerError, "can't ask for 0s"),
    bad(computing, Next(TIME_MAX + 1), PeerError, "can't ask for"),
    bad(computing, Next(50, 0), PeerError, "can't ask for"),
    bad(computing, Peek(0), PeerError, "can't ask for 0s"),
    bad(computing, Peek(7), PeerError, "can't ask for 7ns"),
    bad(computing, Peek(6, 0), PeerError, "can't ask for"),
    bad(computing, Leave(0), PeerError, "can't be at 0s"),
    bad(computing, Leave(21), PeerError, "can't be at 21ns"),
    bad(computing, Stop(14), UsageError, "until 15ns"),
    bad(computing, Stop(TIME_MAX + 1), ConfigurationError, "the time to stop"),
    bad(computing, Invite("guest", 14), UsageError, "until 15ns"),
    bad(computing, Invite("guest", TIME_MAX + 1), ConfigurationError, "invite"),
    bad(computing, Invite("", 15), ConfigurationError, "''"),
    bad(computing, Invite("b", 15), UsageError, "'b' is on the roster"),
    bad(uncontrolled, Stop(50), UsageError, "may not stop"),
    bad(uncontrolled, Invite("guest", 50), UsageError, "may not invite"),
]
"""Where a said what, the error, and what its text says; all by a."""


def without_marks(cases: list[object]) -> list[object]:
    return [pytest.param(*case.values, id=case.id) for case in cases]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("start", "event", "kind", "words"), without_marks(BAD))
def test_bad_contents_are_refused_for_what_they_are_and_change_nothing(
    start: Callable[[], Arbiter], event: Event, kind: type[WorldlineError], words: str
) -> None:
    error = refused(start(), "a", event)
    assert type(error) is kind
    assert words in str(error)


def test_a_broken_promise_carries_both_times() -> None:
    error = refused(computing(), "a", Publish("red", b"", 9))
    assert error.facts == {"promise": 10, "attempt": 9}
    assert error.at == 1


@pytest.mark.parametrize(
    "event", [Publish("red", b"", 10), Promise(10), Reached(20), Stop(15), Invite("guest", 15), Peek(6)]
)
def test_the_last_times_before_those_are_taken(event: Event) -> None:
    computing().handle("a", event)


def test_a_topic_that_cant_be_one_isnt_published_on() -> None:
    refused(uncontrolled(), "a", Publish("", b"", 0))


@pytest.mark.parametrize("who", ["nobody", "A", " a"])
def test_a_stranger_is_refused_with_the_names_that_are_expected(who: str) -> None:
    error = refused(gathering(), who, LISTENS)
    assert type(error) is UsageError
    assert error.participant == who
    assert "expected are a, b" in str(error)


def test_a_second_join_of_the_same_name_is_refused() -> None:
    arbiter = gathering()
    arbiter.handle("a", LISTENS)
    error = refused(arbiter, "a", LISTENS)
    assert isinstance(error, PeerError)
    assert error.participant == "a"


@pytest.mark.parametrize(
    ("roster", "words"), [([], "empty"), ([""], "''"), (["a", "b", "a"], "'a'"), ([" a"], "' a'"), (["a\n"], "'a")]
)
def test_a_roster_that_cant_be_is_refused_with_the_name(roster: list[str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Arbiter(plan(roster))


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_a_rule_for_an_unknown_participant_is_refused_with_its_name(end: str) -> None:
    network = Network(rules=(Rule(link=link(1), **{end: "stranger"}),))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="'stranger'"):
        Arbiter(plan(["a"], network=network))


@pytest.mark.parametrize("until", [-1, TIME_MAX + 1])
def test_a_barrier_at_no_time_is_refused(until: int) -> None:
    assert isinstance(refused(computing(), OPERATOR, Barrier(until)), UsageError)


# --- Starting and ending ---


def test_the_run_starts_for_everybody_when_the_last_one_has_joined() -> None:
    arbiter = Arbiter(plan(["b", "a"], network=NETWORK, seed=3))
    assert arbiter.handle("b", LISTENS) == ()
    assert arbiter.phase is Phase.GATHERING
    assert arbiter.handle("a", LISTENS) == (StartRun("a", 0, 3, 5, 5), StartRun("b", 0, 3, 5, 5))
    assert arbiter.phase is Phase.RUNNING


def test_a_lost_participant_breaks_the_run_off_for_everybody_else() -> None:
    losing = table(a=LISTENS, b=LISTENS, c=LISTENS, d=LISTENS)
    losing.say("a", Advance(5))
    losing.say("c", Advance(100))
    losing.leave("d")
    assert losing.handle(OPERATOR, Lost("a", "closed")) == (
        Abort("b", "closed", "a", 5),
        Abort("c", "closed", "a", 5),
    )
    assert losing.arbiter.phase is Phase.OVER


def test_an_end_breaks_the_run_off_for_everybody_and_blames_nobody() -> None:
    ending = table(a=LISTENS, b=LISTENS)
    assert ending.handle(OPERATOR, CallOff("enough")) == (Abort("a", "enough"), Abort("b", "enough"))
    assert ending.arbiter.phase is Phase.OVER


@pytest.mark.parametrize("name", ["a", "nobody"])
def test_the_loss_of_one_who_has_nothing_more_to_say_harms_nobody(name: str) -> None:
    losing = table(a=LISTENS, b=LISTENS)
    losing.leave("a")
    assert losing.handle(OPERATOR, Lost(name, "closed")) == ()
    assert losing.arbiter.phase is Phase.RUNNING


@pytest.mark.parametrize("last", [Lost("a", "closed"), CallOff("enough")])
def test_a_run_that_is_over_refuses_everything(last: Event) -> None:
    broken = table(a=LISTENS, b=LISTENS)
    broken.handle(OPERATOR, last)
    for event in PARTICIPANT_EVENTS.values():
        assert refused(broken.arbiter, "b", event).participant == "b"
    assert "over" in str(refused(broken.arbiter, OPERATOR, Barrier(5)))


@pytest.mark.parametrize("late", [Lost("b", "closed"), CallOff("enough")])
def test_that_somebody_goes_when_the_run_is_over_is_no_news(late: Event) -> None:
    broken = table(a=LISTENS, b=LISTENS)
    broken.handle(OPERATOR, Lost("a", "closed"))
    assert broken.handle(OPERATOR, late) == ()


# --- The barrier ---


def test_a_barrier_that_comes_down_stops_those_who_wait_for_somebody() -> None:
    barred = table(a=LISTENS, b=LISTENS)
    barred.say("a", Advance(20))
    barred.operate(Barrier(10))
    assert barred.say("b", Advance(30)) == {}
    assert barred.why("a").cause is barred.why("b").cause is Cause.BARRIER
    assert barred.operate(Barrier(FOREVER))["a"].horizon == 35


def test_a_barrier_moved_while_gathering_holds_from_the_start() -> None:
    arbiter = gathering()
    arbiter.handle(OPERATOR, Barrier(7))
    arbiter.handle("a", LISTENS)
    arbiter.handle("b", Join(publishes=()))
    assert arbiter.handle("a", Advance(7)) == (Grant("a", 7, []),)


def test_a_batch_at_the_very_time_of_the_barrier_waits_because_it_may_not_be_complete() -> None:
    barred = table(a=LISTENS, b=Join())
    barred.operate(Barrier(15))
    barred.say("b", Publish("red", b"", 10))
    barred.leave("b")
    assert barred.say("a", Next(100)) == {}
    (message,) = barred.operate(Barrier(16))["a"].messages
    assert message.arrival == 15


def test_a_barrier_at_zero_doesnt_hold_one_that_asks_for_where_it_is() -> None:
    barred = table(a=LISTENS)
    barred.operate(Barrier(0))
    assert "a" in barred.say("a", Advance(0))


# --- Newcomers ---


def test_what_was_granted_beyond_a_newcomers_start_is_taken_back_from_who_invites_it() -> None:
    inviting = table(a=CONTROLS)
    assert inviting.say("a", Advance(10))["a"].horizon == FOREVER
    inviting.say("a", Invite("guest", 20))
    assert "granted up to 20ns" in str(refused(inviting.arbiter, "a", Reached(21)))
    inviting.say("a", Reached(20))


def test_a_newcomer_waits_as_long_as_somebody_could_invite_it_for_an_earlier_time() -> None:
    inviting = table(a=CONTROLS, b=CONTROLS)
    inviting.say("a", Invite("guest", 20))
    assert inviting.handle("guest", LISTENS) == ()
    assert inviting.why("guest").holder == "a"
    inviting.say("a", Promise(15))
    assert inviting.why("guest").holder == "b"
    assert inviting.handle("b", Promise(14)) == ()
    assert inviting.handle("b", Promise(15)) == (StartRun("guest", 20, 0, 5, 5),)


def test_inviting_one_that_has_started_or_left_changes_nothing() -> None:
    inviting = table(a=CONTROLS, b=CONTROLS)
    inviting.say("a", Invite("guest", 20))
    inviting.say("a", Promise(30))
    inviting.say("b", Promise(30))
    assert inviting.handle("guest", LISTENS) == (StartRun("guest", 20, 0, 5, 5),)
    assert inviting.handle("a", Invite("guest", 35)) == ()
    inviting.leave("guest")
    assert inviting.handle("a", Invite("guest", 35)) == ()
    assert inviting.arbiter.participants()["guest"] == (State.LEFT, 20)
    assert "a" in inviting.say("a", Advance(35))


@pytest.mark.parametrize("there", [True, False])
def test_one_invited_for_after_the_end_is_no_part_of_the_run(there: bool) -> None:
    def run(*, invited: bool) -> Table:
        inviting = table(end=40, a=CONTROLS, b=LISTENS)
        if invited:
            inviting.say("a", Invite("guest", 41))
            if there:
                assert inviting.handle("guest", LISTENS) == ()
        inviting.say("b", Advance(100))
        inviting.say("a", Advance(100))
        inviting.leave("a")
        actions = inviting.handle("b", Leave(40))
        told = (Grant("guest", 40, [], final=True),) if invited and there else ()
        assert actions == (*told, Over(inviting.digest or b""))
        return inviting

    with_guest, without = run(invited=True), run(invited=False)
    assert with_guest.digest == without.digest
    assert with_guest.arbiter.participants() == without.arbiter.participants()


def test_one_invited_for_the_very_end_is_part_of_the_run() -> None:
    inviting = table(end=40, a=CONTROLS)
    inviting.say("a", Invite("guest", 40))
    inviting.say("a", Advance(40))
    assert inviting.leave("a") == {}
    assert inviting.digest is None
    assert inviting.handle("guest", LISTENS) == (StartRun("guest", 40, 0, 5, 5),)
    inviting.leave("guest")
    assert inviting.digest == run_digest([("a", 40, b""), ("guest", 40, b"")])


def test_who_is_lost_before_its_start_is_expected_again() -> None:
    arbiter = Arbiter(plan(["a", "b"]))
    arbiter.handle("a", Join())
    assert arbiter.handle(OPERATOR, Lost("a", "gone")) == ()
    assert arbiter.missing() == ["a", "b"]
    arbiter.handle("b", Join())
    assert arbiter.phase is Phase.GATHERING
    assert [action.to for action in arbiter.handle("a", LISTENS)] == ["a", "b"]  # type: ignore[union-attr]
    assert set(arbiter.members["a"].subscriptions) == {"red"}  # What it declares now counts, not what it did before.


def test_a_newcomer_that_is_lost_before_its_start_is_expected_again() -> None:
    inviting = table(a=CONTROLS)
    inviting.say("a", Invite("guest", 20))
    inviting.handle("guest", Join())
    assert inviting.handle(OPERATOR, Lost("guest", "gone")) == ()
    assert inviting.say("a", Advance(30)) == {}
    assert inviting.why("a").missing == ("guest",)
    assert inviting.handle("guest", LISTENS) == (StartRun("guest", 20, 0, 5, 5),)
    assert inviting.leave("guest")["a"].horizon == FOREVER


@pytest.mark.parametrize("invited", [True, False])
def test_who_isnt_there_cant_be_lost(invited: bool) -> None:
    inviting = table(a=CONTROLS)
    if invited:
        inviting.say("a", Invite("guest", 20))
    assert inviting.handle(OPERATOR, Lost("guest", "never came")) == ()
    assert inviting.arbiter.phase is Phase.RUNNING


# --- Retention ---


def step(made: Table, name: str, now: int) -> None:
    """Publish, and go on to the next step as soon as that is granted."""
    made.say(name, Publish("red", b"", now))
    assert name in made.say(name, Advance(now + 1))


def test_messages_are_forgotten_when_nobody_can_subscribe_to_them_any_more() -> None:
    publishing = table(a=Join(), b=Join(publishes=()))
    most = 0
    for now in range(1000):
        step(publishing, "a", now)
        publishing.say("b", Advance(now + 1))
        most = max(most, publishing.arbiter.router.retained())
    assert most < 150


def test_a_sleeper_without_messages_doesnt_lag_behind() -> None:
    publishing = table(a=Join(), b=Join(publishes=(), subscribes=(Subscription("blue"),)))
    publishing.say("b", Next(10_000))
    for now in range(500):
        step(publishing, "a", now)
    assert publishing.arbiter.router.retained() < 150


def test_who_was_told_that_nothing_can_come_any_more_can_only_leave() -> None:
    done = table(a=LISTENS, b=LISTENS)
    done.say("b", Next(FOREVER))
    grants = done.say("a", Next(FOREVER))
    assert {name: (grant.horizon, grant.final) for name, grant in grants.items()} == dict.fromkeys(
        "ab", (FOREVER, True)
    )
    for event in (Publish("red", b"", 0), Subscribe(Subscription("x"), 0, 0), Advance(10), Promise(5)):
        assert isinstance(refused(done.arbiter, "a", event), PeerError)
    done.leave("a")
    done.leave("b")
    assert done.digest is not None


def test_waiting_at_a_barrier_again_and_again_leaves_nothing_behind() -> None:
    paced = table(a=Join(publishes=("red",)), b=LISTENS)
    paced.operate(Barrier(TIME_MAX - 1))  # Never reached: whoever waits for its next message for ever stands there.
    for time in range(0, 2000 * MS, 10 * MS):
        paced.say("b", Next(TIME_MAX))
        paced.say("a", Publish("red", b"", time))
        assert paced.say("a", Advance(time + 10 * MS))["b"].messages
    assert len(paced.arbiter._capped) < 20


def test_a_burst_is_forgotten_once_it_has_arrived_and_a_few_more_were_published() -> None:
    burst = table(a=Join(publishes=("red",)), b=LISTENS)
    for _ in range(1000):
        burst.say("a", Publish("red", b"", 0))
    assert burst.arbiter.router.retained() == 1000
    for name in "ab":
        burst.say(name, Advance(1000 * MS))
    for _ in range(64):
        burst.say("a", Publish("red", b"", 1000 * MS))
    assert burst.arbiter.router.retained() <= 64


def test_the_operator_cant_stop_where_somebody_may_have_passed() -> None:
    table = Table("a", "b")
    table.operate(Barrier(20))
    table.say("a", Advance(10))
    table.say("b", Advance(10))
    table.operate(Barrier(1))  # Too late for that.
    with pytest.raises(UsageError, match="a participant has passed 1ns already"):
        table.operate(Stop(1))
    assert table.arbiter.farthest() == 20
    table.operate(Stop(20))
    assert table.arbiter.end == 20


def test_the_operator_cant_stop_before_somebody_has_left() -> None:
    table = Table("a", "b")
    table.operate(Barrier(20))
    table.say("a", Advance(10))
    table.say("a", Leave(10, b""))
    with pytest.raises(UsageError, match="a participant has passed 9ns already"):
        table.operate(Stop(9))
    table.operate(Stop(10))
    assert table.say("b", Advance(15))["b"].horizon == 10


def test_a_participant_may_ask_for_the_largest_time_and_not_for_more() -> None:
    table = Table("a", "b")
    with pytest.raises(PeerError):
        table.arbiter.handle("a", Advance(TIME_MAX + 1))
    assert "a" in table.say("a", Advance(TIME_MAX))
    assert table.arbiter.participants()["a"][1] == TIME_MAX


def test_a_participant_that_may_go_on_forever_is_never_there() -> None:
    table = Table("a")
    table.say("a", Advance(5))
    assert table.arbiter.members["a"].granted == FOREVER
    with pytest.raises(PeerError, match="it can't be at"):
        table.arbiter.handle("a", Reached(FOREVER))
    table.say("a", Reached(7))


def test_a_run_rests_only_once_it_has_begun() -> None:
    arbiter = Arbiter(plan(["a", "b"], network=Network(default=link(10))))
    assert not arbiter.rests()
    arbiter.handle("a", Join())
    assert not arbiter.rests()
    arbiter.handle("b", Join())
    assert not arbiter.rests()  # Both compute,
    arbiter.handle("a", Advance(1_000))
    assert not arbiter.rests()  # then one of them.
