"""The ledger: what it checks by itself, what it serves without asking, what it says and what it lets itself be told."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from enum import StrEnum

import pytest

from worldline.builds import build
from worldline.lock import (
    Abort,
    Crashed,
    Grant,
    Invite,
    Join,
    Leave,
    Ledger,
    Next,
    Over,
    Promise,
    Publish,
    Reached,
    Received,
    RunEnded,
    Sent,
    StartRun,
    State,
    Stop,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from worldline.lock.lifecycle import ledger_of
from worldline.model import (
    FOREVER,
    MAILBOX,
    MS,
    TIME_MAX,
    BrokenPromise,
    Buffer,
    ConfigurationError,
    LossError,
    Message,
    PeerError,
    UsageError,
    newest,
    oldest,
)
from worldline.model.faults import as_faults
from worldline.model.lifecycle import Lifecycle
from worldline.model.links import UNBOUNDED

JOIN = Join(subscribes=(Subscription("red"),), controls=True)


def message(arrival: int, topic: str = "red", sequence: int = 0, sender: str = "b") -> Message:
    return Message(arrival, arrival - 1, sender, sequence, 0, topic, b"%d" % arrival)


def started(join: Join = JOIN, now: int = 0) -> Ledger:
    """A ledger that computes, with nothing in its outbox; its control link takes 5."""
    ledger = Ledger("a", join, keep_journal=True)
    ledger.receive(StartRun("a", now, 7, 5, 10))
    ledger.take_outbox()
    return ledger


def granted(horizon: int, *arrivals: int | Message, join: Join = JOIN, final: bool = False) -> Ledger:
    """A ledger at time 1 that knows what arrives before a horizon."""
    ledger = started(join)
    assert ledger.advance(1) is None
    messages = [message(arrival) if isinstance(arrival, int) else arrival for arrival in arrivals]
    assert ledger.receive(Grant("a", horizon, messages, final)) == []
    ledger.take_outbox()
    return ledger


def arrivals(messages: list[Message] | None) -> list[int]:
    assert messages is not None
    return [message.arrival for message in messages]


def inside(ledger: Ledger) -> bytes:
    """Return all that a ledger knows; of a compiled one what it has heard and said, `make test-plain` sees the rest."""
    state = [] if build == "compiled" else vars(ledger).values()
    return pickle.dumps([ledger.journal.digest(), *(each for each in state if each is not ledger.journal)])


def refuses(ledger: Ledger, act: Callable[[Ledger], object], kind: type[Exception], words: str) -> Exception:
    """Have a call refused; prove that nothing has changed by it."""
    before = inside(ledger)
    with pytest.raises(kind, match=words) as caught:
        act(ledger)
    assert inside(ledger) == before
    return caught.value


# --- What it checks by itself ---


def test_a_send_that_breaks_a_promise_raises_with_all_facts_and_the_participant_can_go_on() -> None:
    ledger = started()
    ledger.promise(50)
    error = refuses(ledger, lambda a: a.publish("red", b"", at=40), BrokenPromise, "40ns .* 50ns")
    assert isinstance(error, BrokenPromise)
    assert (error.participant, error.at, error.facts) == ("a", 0, {"promise": 50, "attempt": 40})
    ledger.publish("red", b"x", at=50)
    assert ledger.take_outbox() == [Promise(50), Publish("red", b"x", 50)]


@pytest.mark.parametrize(
    ("act", "kind", "words"),
    [
        (lambda a: a.promise(9), UsageError, "promises only grow"),
        (lambda a: a.promise(-1), ConfigurationError, "a promise"),
        (lambda a: a.promise(TIME_MAX + 1), ConfigurationError, "a promise"),
        (lambda a: a.promise(1.5), ConfigurationError, "a promise"),
        (lambda a: a.publish("red", b"", at=0), UsageError, "in its past"),
        (lambda a: a.publish("red", b"", at=TIME_MAX + 1), ConfigurationError, "a send time"),
        (lambda a: a.publish("", b"", at=10), ConfigurationError, "topic"),
        (lambda a: a.publish("red", "text", at=10), UsageError, "bytes, not str"),
        (lambda a: a.advance(0), UsageError, "back to 0s"),
        (lambda a: a.next(0), UsageError, "back to 0s"),
        (lambda a: a.peek(0), UsageError, "back to 0s"),
        (lambda a: a.peek(TIME_MAX + 1), ConfigurationError, "time"),
        (lambda a: a.advance(TIME_MAX + 1), ConfigurationError, "time"),
        (lambda a: a.subscribe("red"), UsageError, "it already subscribes to 'red'"),
        (lambda a: a.subscribe(" blue"), ConfigurationError, "topic"),
        (lambda a: a.subscribe("blue", "some"), ConfigurationError, "buffer"),
        (lambda a: a.unsubscribe("blue"), UsageError, "'blue'"),
        (lambda a: a.stop(14), UsageError, "until 15ns"),
        (lambda a: a.invite("guest", 14), UsageError, "until 15ns"),
        (lambda a: a.invite("", 20), ConfigurationError, "''"),
    ],
)
def test_a_wrong_call_raises_and_changes_nothing(
    act: Callable[[Ledger], object], kind: type[Exception], words: str
) -> None:
    ledger = granted(8, 3)
    ledger.promise(10)
    refuses(ledger, act, kind, words)


def test_only_declared_topics_are_published_on() -> None:
    ledger = started(Join(publishes=("red", "blue")))
    refuses(ledger, lambda a: a.publish("green", b""), UsageError, "'green'.*it declared red, blue")
    refuses(started(Join(publishes=())), lambda a: a.publish("green", b""), UsageError, "no topics")
    ledger.publish("blue", b"")
    assert ledger.take_outbox() == [Publish("blue", b"", 0)]


def test_who_didnt_declare_control_has_none() -> None:
    ledger = started(Join())
    refuses(ledger, lambda a: a.stop(50), UsageError, "may not stop")
    refuses(ledger, lambda a: a.invite("guest", 50), UsageError, "may not invite")


def test_the_control_link_starts_at_its_time_or_at_its_promise() -> None:
    ledger = granted(30)
    ledger.advance(10)
    refuses(ledger, lambda a: a.stop(14), UsageError, "until 15ns")
    ledger.promise(20)
    refuses(ledger, lambda a: a.stop(24), UsageError, "until 25ns")
    ledger.stop(25)


@pytest.mark.parametrize(
    "act",
    [
        lambda a: a.publish("red", b""),
        lambda a: a.advance(9),
        lambda a: a.peek(9),
        lambda a: a.promise(9),
        lambda a: a.leave(),
    ],
)
def test_it_acts_only_while_it_computes(act: Callable[[Ledger], object]) -> None:
    refuses(Ledger("a", JOIN), act, UsageError, "the run hasn.t started for it .enter it first: with connect")
    waiting = started()
    waiting.advance(5)
    refuses(waiting, act, UsageError, "while it is advancing")
    sleeping = started()
    sleeping.next(5)
    refuses(sleeping, act, UsageError, "while it is awaiting")


# --- What it says ---


def test_the_outbox_keeps_the_order_of_the_calls() -> None:
    ledger = started()
    ledger.publish("red", b"1")
    ledger.promise(3)
    ledger.subscribe("blue", "mailbox")
    ledger.invite("guest", "1us")
    ledger.publish("red", b"2", at=4)
    ledger.unsubscribe("red")
    ledger.stop(2000)
    assert ledger.next(100) is None
    assert ledger.take_outbox() == [
        Publish("red", b"1", 0),
        Promise(3),
        Subscribe(Subscription("blue", MAILBOX), 0, 0),
        Invite("guest", 1000),
        Publish("red", b"2", 4),
        Unsubscribe("red", 0, 0),
        Stop(2000),
        Next(100, FOREVER),
    ]


def test_waiting_without_a_limit_ends_when_nothing_can_come_any_more() -> None:
    ledger = granted(9)
    ledger.advance(4)
    ledger.take_outbox()
    assert ledger.next() is None
    assert ledger.take_outbox() == [Next(FOREVER, FOREVER)]
    assert ledger.receive(Grant("a", FOREVER, [], final=True)) == []
    assert (ledger.now, ledger.ended) == (4, True)


def test_leaving_says_the_time_and_the_digest_once() -> None:
    ledger = granted(9)
    ledger.advance(4)
    ledger.leave()
    ledger.leave()
    assert ledger.take_outbox() == [Leave(4, ledger.journal.digest())]


def test_the_time_reached_without_asking_is_told_once() -> None:
    ledger = granted(30)
    ledger.tell_time()
    assert ledger.take_outbox() == []  # The arbiter granted that time itself.
    ledger.advance(10)
    ledger.tell_time()
    ledger.tell_time()
    assert ledger.take_outbox() == [Reached(10)]


# --- What it serves without asking ---


def test_what_was_granted_ahead_is_served_without_a_word() -> None:
    ledger = granted(30, 3, 5, 5, 8, 29)
    assert arrivals(ledger.advance(5)) == [3]
    assert ledger.now == 5
    assert arrivals(ledger.next(9)) == [5, 5]
    assert ledger.now == 5
    assert arrivals(ledger.next(9)) == [8]
    assert ledger.now == 8
    assert arrivals(ledger.next(9)) == []
    assert ledger.now == 9
    assert arrivals(ledger.advance(30)) == [29]
    assert ledger.now == 30
    assert ledger.take_outbox() == []
    assert ledger.advance(31) is None


# --- What is taken back ---


def test_a_subscription_takes_the_grant_back_and_the_next_request_says_what_is_held() -> None:
    ledger = granted(30, 8, 12)
    ledger.advance(3)
    ledger.subscribe("blue")
    assert ledger.horizon == 3
    assert ledger.next(20) is None
    assert ledger.take_outbox() == [Subscribe(Subscription("blue"), 3, 3), Next(20, 8)]
    assert arrivals(ledger.receive(Grant("a", 9, [message(8, "blue", sender="c")]))) == [8, 8]


def test_an_invitation_takes_the_grant_back_to_the_newcomers_start() -> None:
    ledger = granted(30, 8, 20)
    ledger.invite("guest", 20)
    assert arrivals(ledger.advance(20)) == [8]
    assert ledger.next() is None
    assert ledger.take_outbox() == [Invite("guest", 20), Next(FOREVER, 20)]


def test_a_stop_within_the_grant_ends_it_there_without_asking() -> None:
    ledger = granted(30, 8, 22)
    ledger.stop(20)
    assert arrivals(ledger.advance(25)) == [8]
    assert (ledger.now, ledger.ended) == (20, True)
    assert ledger.take_outbox() == [Stop(20)]


# --- Subscribing ---


def test_subscribing_again_at_the_same_moment_gives_nothing_twice() -> None:
    ledger = granted(30, 8, 12)
    assert arrivals(ledger.next()) == [8]
    ledger.unsubscribe("red")
    ledger.subscribe("red")
    assert ledger.take_outbox() == [Unsubscribe("red", 8, 9), Subscribe(Subscription("red"), 8, 9)]


def test_a_moment_given_again_for_a_new_topic_is_then_complete_for_it_too() -> None:
    ledger = granted(30, 8)
    ledger.next()
    ledger.subscribe("blue")
    ledger.next()
    assert arrivals(ledger.receive(Grant("a", 9, [message(8, "blue")]))) == [8]
    ledger.unsubscribe("red")
    ledger.unsubscribe("blue")
    ledger.subscribe("blue")
    ledger.subscribe("red")
    assert ledger.take_outbox()[2:] == [
        Unsubscribe("red", 8, 9),
        Unsubscribe("blue", 8, 9),
        Subscribe(Subscription("blue"), 8, 9),
        Subscribe(Subscription("red"), 8, 9),
    ]


def test_a_topic_that_ended_at_this_moment_stays_given_when_the_moment_is_given_again_for_another() -> None:
    ledger = granted(30, 8)
    ledger.next()
    ledger.unsubscribe("red")
    ledger.subscribe("blue")
    ledger.next()
    ledger.receive(Grant("a", 9, [message(8, "blue")]))
    ledger.subscribe("red")
    assert ledger.take_outbox()[-1] == Subscribe(Subscription("red"), 8, 9)


# --- Buffers ---


@pytest.mark.parametrize(
    ("buffer", "kept", "dropped"),
    [(MAILBOX, [5], 3), (newest(2), [4, 5], 2), (oldest(2), [2, 3], 2), (newest(9), [2, 3, 4, 5], 0)],
)
def test_buffers_apply_to_one_sequence_point_and_count_what_they_drop(
    buffer: Buffer, kept: list[int], dropped: int
) -> None:
    ledger = granted(30, 2, 3, 4, 5, 20, 21, join=Join(subscribes=(Subscription("red", buffer),)))
    assert arrivals(ledger.advance(10)) == kept
    assert ledger.topics.dropped.get("red", 0) == dropped
    assert arrivals(ledger.next()) == [20]
    assert arrivals(ledger.next()) == [21]
    assert ledger.topics.dropped.get("red", 0) == dropped  # One message alone fits into every buffer.


# --- The journal ---


def test_the_journal_holds_inputs_and_outputs_in_the_order_of_the_program() -> None:
    ledger = granted(30, 8)
    ledger.publish("blue", b"1")
    ledger.next()
    ledger.publish("blue", b"2", at=9)
    assert ledger.journal.entries == [Sent(0, 1, "blue", b"1"), Received(8, message(8)), Sent(1, 9, "blue", b"2")]


# --- The end ---


def everything(ledger: Ledger) -> list[Callable[[], object]]:
    return [
        lambda: ledger.publish("red", b""),
        lambda: ledger.promise(100),
        lambda: ledger.advance(100),
        lambda: ledger.next(),
        lambda: ledger.peek(),
        lambda: ledger.subscribe("blue"),
        lambda: ledger.unsubscribe("red"),
        lambda: ledger.invite("guest", 100),
        lambda: ledger.stop(100),
    ]


def test_after_the_end_everything_raises_run_ended_except_leaving() -> None:
    ledger = started()
    ledger.advance(50)
    assert arrivals(ledger.receive(Grant("a", 20, [message(9)], final=True))) == [9]
    assert (ledger.now, ledger.ended) == (20, True)
    ledger.take_outbox()
    for act in everything(ledger):
        with pytest.raises(RunEnded, match="a at 20ns"):
            act()
    ledger.leave()
    assert ledger.take_outbox() == [Leave(20, ledger.journal.digest())]


def test_who_is_woken_by_a_message_after_the_last_time_can_still_wait_and_leave() -> None:
    ledger = started()
    late = TIME_MAX + 5
    ledger.next()
    assert arrivals(ledger.receive(Grant("a", late + 1, [message(late)]))) == [late]
    ledger.take_outbox()
    with pytest.raises(ConfigurationError, match="a send time"):
        ledger.publish("red", b"")
    assert ledger.next() is None
    assert ledger.take_outbox() == [Next(FOREVER, FOREVER)]
    ledger.receive(Grant("a", FOREVER, [], final=True))
    ledger.leave()
    assert ledger.take_outbox()[0].now == late  # type: ignore[union-attr]


def test_a_newcomer_whose_start_never_came_is_told_so() -> None:
    guest = Ledger("guest", JOIN)
    assert guest.receive(Grant("guest", 40, [], final=True)) == []
    assert (guest.ended, guest.state, guest.now) == (True, State.LEFT, 40)
    with pytest.raises(RunEnded):
        guest.advance(50)


def test_a_run_that_is_broken_off_names_who_broke_it() -> None:
    ledger = started()
    ledger.advance(10)
    with pytest.raises(LossError, match=r"b at 5ns.*closed") as caught:
        ledger.receive(Abort("a", "closed", "b", 5))
    assert (caught.value.participant, caught.value.at) == ("b", 5)
    assert (ledger.ended, ledger.state) == (True, State.LEFT)


def test_a_run_that_is_called_off_blames_nobody() -> None:
    ledger = started()
    with pytest.raises(LossError, match="enough") as caught:
        ledger.receive(Abort("a", "enough"))
    assert (caught.value.participant, caught.value.at) == (None, None)
    for act in everything(ledger):
        with pytest.raises(RunEnded):
            act()


@pytest.mark.parametrize("action", [StartRun("a", 0, 0, 5), Grant("a", 9, []), Over(b"")])
def test_an_answer_that_nobody_waits_for_is_refused(action: StartRun | Grant | Over) -> None:
    refuses(started(), lambda a: a.receive(action), PeerError, f"a at 0s: {type(action).__name__} .*computing")


@pytest.mark.parametrize("action", [StartRun("a", 0, 0, 5), Over(b"")])
def test_a_wrong_answer_to_a_request_is_refused(action: StartRun | Over) -> None:
    ledger = started()
    ledger.next()
    refuses(ledger, lambda a: a.receive(action), PeerError, "awaiting")


def test_a_grant_that_doesnt_reach_what_was_asked_for_is_refused() -> None:
    ledger = started()
    ledger.advance(10)
    refuses(ledger, lambda a: a.receive(Grant("a", 9, [])), PeerError, "9ns")


# --- Randomness ---


def test_a_stream_is_fixed_by_seed_participant_and_name() -> None:
    def draw(name: str, seed: int, stream: str) -> float:
        ledger = Ledger(name, JOIN)
        ledger.receive(StartRun(name, 0, seed, 5))
        return ledger.stream(stream).random()

    assert draw("a", 7, "wind") == draw("a", 7, "wind")
    assert len({draw("a", 7, "wind"), draw("b", 7, "wind"), draw("a", 8, "wind"), draw("a", 7, "rain")}) == 4


def test_a_participant_needs_a_name() -> None:
    with pytest.raises(ConfigurationError):
        Ledger("", JOIN)


# --- What an interrupted program had not been given ---


def careful(horizon: int, *arrivals: int) -> Ledger:
    """The same, of a program that may be interrupted."""
    ledger = granted(horizon, *arrivals)
    ledger.allow_undo()
    return ledger


def test_a_served_step_that_nobody_was_told_of_is_taken_back_whole() -> None:
    ledger = careful(10)
    assert ledger.advance(5) == []
    ledger.take_back()
    assert ledger.now == 1
    ledger.publish("red", b"x")  # It may do anything now.
    assert ledger.take_outbox() == [Publish("red", b"x", 1)]


def test_once_the_arbiter_knows_of_a_step_only_the_same_call_goes_on() -> None:
    ledger = careful(10)
    assert ledger.advance(5) == []
    ledger.tell_time()
    assert ledger.take_outbox() == [Reached(5)]
    ledger.take_back()
    ledger.tell_time()
    assert (ledger.now, ledger.take_outbox()) == (1, [])
    refuses(ledger, lambda ledger: ledger.publish("red", b"x"), UsageError, "advancing .*call it again first")
    assert ledger.advance(5) == []
    ledger.publish("red", b"x")
    assert ledger.take_outbox() == [Publish("red", b"x", 5)]


def test_the_next_message_that_the_arbiter_knows_of_is_given_by_the_same_call() -> None:
    ledger = careful(10, 4)
    given = ledger.next(None, 2)
    ledger.tell_time()
    assert ledger.take_outbox() == [Promise(2), Reached(4)]
    ledger.take_back()
    assert ledger.next(None, 2) == given == [message(4)]
    assert ledger.take_outbox() == []


def test_what_a_call_gave_stays_when_the_next_one_is_wrong() -> None:
    ledger = careful(10)
    ledger.advance(5)
    ledger.forget_mark()  # As every call does first.
    ledger.take_back()
    assert ledger.now == 5


def test_texts_that_are_more_than_text_are_taken_as_text() -> None:
    class Color(StrEnum):
        RED = "red"

    class Scarce(bytes):
        pass

    ledger = started()
    ledger.publish(Color.RED, Scarce(b"x"))
    (sent,) = ledger.take_outbox()
    assert sent == Publish("red", b"x", 0)
    assert (type(sent.topic), type(sent.payload)) == (str, bytes)  # type: ignore[union-attr]


@pytest.mark.parametrize("is_given", [False, True])
def test_who_was_interrupted_while_it_hung_still_has_messages_to_take(is_given: bool) -> None:
    life = Lifecycle(faults=as_faults(["5ms hang me 15ms"]))
    ledger = ledger_of("me", Join(subscribes=(Subscription("x", UNBOUNDED),)), life)
    ledger.take_outbox()
    ledger.receive(StartRun("me", 0, 1, MS))
    assert ledger.next(6 * MS) is None
    message = Message(5 * MS + 1, 5 * MS, "s", 0, 0, "x", b"a")
    assert ledger.receive(Grant("me", 6 * MS, [message])) is None
    if is_given:
        assert ledger.receive(Grant("me", 20 * MS, [])) == [message]
        ledger.take_back()
    assert ledger.may_give(6 * MS)
    if not is_given:
        assert ledger.next(6 * MS) is None
        ledger.receive(Grant("me", 20 * MS, []))
    else:
        assert ledger.next(6 * MS) == [message]
    assert not ledger.may_give(6 * MS)


def test_a_crash_takes_the_subscriptions_that_the_program_has_made() -> None:
    """It is down with what it declared, and as it declared it: the rest is gone with the program."""
    life = Lifecycle(faults=as_faults(["5ms crash me 15ms"]))
    ledger = ledger_of("me", Join(subscribes=(Subscription("declared"), Subscription("dropped"))), life)
    ledger.receive(StartRun("me", 0, 1, MS))
    ledger.subscribe("added")
    ledger.unsubscribe("dropped")
    ledger.take_outbox()
    assert ledger.advance(6 * MS) is None
    with pytest.raises(Crashed, match="5ms crash me 15ms"):
        ledger.receive(Grant("me", 6 * MS, []))
    assert sorted(ledger.topics.buffers) == ["declared", "dropped"]
    told = [event for event in ledger.take_outbox() if isinstance(event, Subscribe | Unsubscribe)]
    assert told == [Unsubscribe("added", 5 * MS, 5 * MS), Subscribe(Subscription("dropped"), 5 * MS, 5 * MS)]
