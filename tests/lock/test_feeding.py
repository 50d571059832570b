"""The arbiter's stand-in for one participant: it is given what a recording says, and what it says otherwise is told."""

from __future__ import annotations

from typing import Any

import pytest

from worldline.history.account import Account, Membership
from worldline.history.replay import RecordedParts, RetoldDifference
from worldline.lock import Advance, Grant, Invite, Join, Leave, Log, Next, Reached, StartRun, Stop, Subscribe
from worldline.lock.events import Peek, Publish, Subscription, Unsubscribe
from worldline.lock.feeding import Feeding, FeedingOver
from worldline.model import FOREVER, UsageError
from worldline.model.lifecycle import MEASURE_LINE
from worldline.model.plan import plan

STAYS = {"a": Membership(0, 100), "b": Membership(0, 100)}
TO_A = [(0, "b", "red", 10), (10, "b", "blue", 20), (20, "b", "red", 30), (60, "b", "red", 70)]


class Fed:
    """Participant a, fed from a recording in which b sends to it, and the differences that were told."""

    def __init__(
        self,
        said: tuple[tuple[int, str, bytes], ...] = (),
        stays: dict[str, Membership] | None = None,
        *,
        until: int = FOREVER,
        is_complete: bool = True,
        topics: tuple[str, ...] = ("red", "blue"),
        end: int = 100,
        **more: Any,
    ) -> None:
        sendings = [
            (sent, sender, topic, b"%d" % arrival, [(arrival, "a", 0, None)], number)
            for number, (sent, sender, topic, arrival) in enumerate(TO_A)
            if sent < until
        ]
        sendings += [(at, "a", topic, payload, [], number) for number, (at, topic, payload) in enumerate(said)]
        account = Account(sorted(sendings), stays or STAYS, until=until, is_complete=is_complete)
        self.differences: list[RetoldDifference] = []
        parts = RecordedParts(account, self.differences.append, {"a"})
        self.feeding = Feeding("a", parts, plan(["a", "b"], until=end), **more)
        started = self.ask(Join(subscribes=tuple(map(Subscription, topics))))
        assert isinstance(started, StartRun)
        assert started.now == 0

    def ask(self, *events: Any) -> Any:
        return self.feeding.ask(list(events))

    def granted(self, *events: Any) -> tuple[list[int], bool]:
        """The arrivals that a request is answered with, and whether it is the last grant."""
        grant = self.ask(*events)
        assert isinstance(grant, Grant)
        return [message.arrival for message in grant.messages], grant.final

    def told(self) -> list[str]:
        return [str(difference) for difference in self.differences]


def test_a_grant_carries_all_that_arrived_before_its_horizon() -> None:
    fed = Fed()
    grant = fed.ask(Advance(15))
    assert [message.arrival for message in grant.messages] == [10, 20, 30, 70]  # Far ahead: it has all of it.
    assert (grant.horizon, grant.final) == (100, False)
    assert fed.feeding.now == 15
    assert fed.granted(Next(FOREVER, held=20)) == ([], False)
    assert fed.feeding.now == 20
    assert fed.told() == []


def test_what_isnt_subscribed_to_is_kept_until_its_time_has_passed() -> None:
    fed = Fed(topics=("red",))
    assert fed.granted(Advance(15)) == ([10, 30, 70], False)
    assert fed.granted(Subscribe(Subscription("blue"), 15, 15), Advance(18)) == ([20], False)
    assert fed.told() == []


def test_what_was_given_then_and_is_passed_now_is_a_difference() -> None:
    fed = Fed(topics=("red",))
    fed.granted(Advance(20))
    assert fed.told() == []  # At 20 it may still subscribe, and get what arrives at 20.
    fed.granted(Advance(21))
    assert fed.told() == ["before it receives blue from b, and now it doesn't subscribe to blue"]


def test_a_subscription_covers_what_arrives_from_its_time_on() -> None:
    fed = Fed(topics=("red",))
    fed.granted(Advance(20))
    assert fed.granted(Subscribe(Subscription("blue"), 20, 21), Advance(20)) == ([], False)
    assert fed.granted(Subscribe(Subscription("blue"), 20, 20), Advance(20)) == ([20], False)


def test_what_an_unsubscription_takes_back_is_given_again() -> None:
    fed = Fed()
    assert fed.granted(Advance(25)) == ([10, 20, 30, 70], False)
    events = Unsubscribe("red", 25, 25), Subscribe(Subscription("red"), 27, 27), Advance(28)
    assert fed.granted(*events) == ([30, 70], False)
    assert fed.granted(Unsubscribe("red", 30, 31), Subscribe(Subscription("red"), 30, 30), Advance(40)) == ([70], False)
    assert fed.told() == []


def test_the_run_ends_when_it_did() -> None:
    fed = Fed()
    fed.granted(Advance(99))
    grant = fed.ask(Advance(150))
    assert (grant.horizon, grant.final) == (100, True)
    assert fed.feeding.now == 100
    assert fed.told() == []


def test_to_go_on_where_it_left_by_itself_is_a_difference() -> None:
    left = {"a": Membership(0, 50), "b": Membership(0, 100)}
    fed = Fed(stays=left)
    assert fed.ask(Advance(80)).final
    assert fed.told() == ["before it leaves now 50ns, and now it goes on until 80ns"]


def test_it_may_peek_beyond_where_it_left() -> None:
    left = {"a": Membership(0, 50), "b": Membership(0, 100)}
    fed = Fed(stays=left)
    fed.granted(Advance(50))
    grant = fed.ask(Peek(80))
    assert (grant.horizon, grant.final, fed.feeding.now) == (80, False, 50)
    assert fed.told() == []


def test_messages_are_compared_with_those_of_then() -> None:
    fed = Fed(said=((5, "answer", b"1"), (15, "answer", b"2")))
    fed.granted(Publish("answer", b"1", 5), Publish("answer", b"3", 15), Advance(20))
    assert fed.told() == ["message 1 on answer: payload: 2 → 3"]
    fed.granted(Publish("answer", b"4", 20), Advance(25))
    assert fed.told()[1:] == ["now it sends answer at 20ns: 4, and before it said nothing more"]


@pytest.mark.parametrize(
    ("leave", "told"),
    [
        (Leave(100, b"\x00\xff"), []),
        (Leave(90, b"\x00\xff"), ["leaves: now: 100ns → 90ns"]),
        (Leave(100, b"\x01"), ['receives what it is given: digest: "00ff" → "01"']),
    ],
)
def test_leaving_at_another_time_or_with_another_history_is_a_difference(leave: Leave, told: list[str]) -> None:
    fed = Fed(stays={"a": Membership(0, 100, "00ff"), "b": Membership(0, 100)})
    fed.granted(Advance(90))
    fed.feeding.tell([leave])
    assert fed.told() == told


def test_what_it_said_then_and_not_before_it_leaves_is_a_difference() -> None:
    fed = Fed(said=((5, "answer", b"1"),))
    fed.granted(Advance(100))
    fed.feeding.tell([Leave(100)])
    assert fed.told() == ["before it sends answer at 5ns: 1, and now it says nothing more"]


def test_where_a_recording_ends_before_its_run_did_it_is_stopped() -> None:
    fed = Fed(stays={"a": Membership(0), "b": Membership(0)}, until=25, is_complete=False)
    assert fed.granted(Advance(25)) == ([10, 20], False)
    for _ in range(2):  # And a program that catches everything doesn't get any further.
        with pytest.raises(FeedingOver):
            fed.ask(Advance(40))
    assert fed.told() == []


def test_invitations_are_compared_with_those_who_came() -> None:
    came = {**STAYS, "c": Membership(40, 100)}
    for invited, told in (
        (40, []),
        (50, ["invites: at: 40ns → 50ns"]),
        (30, ["invites: at: 40ns → 30ns", "invites: at: 40ns → 30ns"]),
    ):
        fed = Fed(stays=came, rules_alone=True)
        fed.granted(Invite("c", invited), Invite("c", 60), Advance(100))
        fed.feeding.tell([Leave(100)])
        assert fed.told() == told, invited
    fed = Fed(stays=came, rules_alone=True)
    fed.granted(Advance(100))
    fed.feeding.tell([Leave(100)])
    assert fed.told() == ["before it invites newcomer c, at 40ns, and now it says nothing more"]
    fed = Fed(rules_alone=True)
    fed.granted(Invite("c", 40), Advance(100))
    assert fed.told() == ["now it invites newcomer c, at 40ns, and before it said nothing more"]
    fed = Fed(stays=came)  # Another may have invited it.
    fed.granted(Advance(100))
    fed.feeding.tell([Leave(100)])
    assert fed.told() == []


def test_a_stop_before_the_run_ended_is_a_difference() -> None:
    fed = Fed()
    fed.granted(Stop(100), Advance(10))
    assert fed.told() == []
    fed.granted(Stop(60), Advance(20))
    assert fed.told() == ["before it goes on until 100ns, and now it stops the run at 60ns"]


def test_an_end_before_its_time_must_have_been_asked_for_if_no_other_may() -> None:
    for events, told in (
        ((Stop(100),), []),
        ((), ["before it ends at 100ns, and now it goes on until 150ns"]),
        ((Stop(120),), ["before it ends at 100ns, and now it stops the run at 120ns"]),
    ):
        fed = Fed(rules_alone=True, end=200)
        assert fed.ask(*events, Advance(150)).final
        assert fed.told() == told
    fed = Fed(end=200)  # An operator or another participant may have ended it.
    assert fed.ask(Advance(150)).final
    assert fed.told() == []


def test_lines_of_the_log_are_told_with_their_time_and_measures_arent() -> None:
    lines: list[tuple[int, str]] = []
    fed = Fed(logged=lambda at, text: lines.append((at, text)))
    fed.granted(Reached(5), Log("here"), Log("wait 2", MEASURE_LINE), Advance(8))
    assert lines == [(5, "here")]


def test_its_time_is_told_before_it_goes_on() -> None:
    times: list[int] = []
    fed = Fed(paced=times.append)
    fed.granted(Advance(8))
    fed.granted(Reached(9), Reached(9), Next(FOREVER, held=10))
    assert times == [8, 9, 10]
    assert fed.feeding.now == 10


def test_a_failure_is_a_difference_if_it_is_known_what_it_did_then() -> None:
    fed = Fed()
    fed.granted(Advance(8))
    assert str(fed.feeding.failure("ValueError")) == "before it goes on, and now it raises ValueError"
    broken_off = Fed(stays={"a": Membership(0), "b": Membership(0)}, until=25, is_complete=False)
    assert broken_off.feeding.failure("ValueError") is None


def test_one_that_took_no_part_cant_be_fed() -> None:
    parts = RecordedParts(Account([], STAYS), lambda _: None, {"z"})
    with pytest.raises(UsageError, match="z doesn't take part in the recorded run"):
        Feeding("z", parts, plan(["a", "b"]))
