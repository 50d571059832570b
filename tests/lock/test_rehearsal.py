"""A participant that is run again: its answers come from the script, and the first difference is told."""

from __future__ import annotations

from typing import Any

import pytest

from worldline.history.replay import RetoldDifference
from worldline.lock import (
    Action,
    Advance,
    Grant,
    Join,
    Leave,
    Ledger,
    Log,
    Next,
    ParticipantEvent,
    Peek,
    Promise,
    Publish,
    Reached,
    StartRun,
    Subscription,
)
from worldline.lock.rehearsal import Rehearsal, _time_after
from worldline.model import FOREVER, Message, NonDeterminism
from worldline.model.payload import to_json

JOIN = Join(subscribes=(Subscription("red"),))
START = StartRun("a", 0, 7, 5, 10)


def message(arrival: int) -> Message:
    return Message(arrival, arrival - 1, "b", arrival, 0, "red", b"%d" % arrival)


def sends(at: int, **fields: Any) -> Publish:
    return Publish("blue", to_json(fields), at)


# What `a` said, and was answered.
SCRIPT: list[ParticipantEvent | Action] = [
    JOIN,
    START,
    sends(0, speed=1.5),
    Next(100),
    Grant("a", 50, [message(20)]),
    Reached(40),
    sends(40, speed=2.5),
    Log("here"),
    Advance(60),
    Grant("a", 80, []),
    sends(70, speed=3.5),
]


def rehearsal(script: list[ParticipantEvent | Action] = SCRIPT, **options: Any) -> Rehearsal:
    made = Rehearsal("a", **options)
    for entry in script:
        if isinstance(entry, Action):
            made.answered(entry)
        else:
            made.said(entry)
    return made


def said(script: list[ParticipantEvent | Action] = SCRIPT) -> list[ParticipantEvent]:
    return [entry for entry in script if not isinstance(entry, Action)]


def difference(made: Rehearsal, *events: ParticipantEvent) -> RetoldDifference:
    *before, last = events
    for event in before:
        made.hear(event)
        made.due()
    with pytest.raises(NonDeterminism) as caught:
        made.hear(last)
    found = caught.value.facts["difference"]
    assert isinstance(found, RetoldDifference)
    return found


def test_answers_are_due_when_all_before_them_was_said_again() -> None:
    made = rehearsal()
    answers: list[list[Action]] = []
    for event in said():
        made.hear(event)
        answers.append(made.due())
    assert [found for found in answers if found] == [[START], [Grant("a", 50, [message(20)])], [Grant("a", 80, [])]]
    assert made.is_used_up
    assert not made.is_beyond
    assert made.repeated == 7


def test_what_was_reached_by_the_clock_is_no_difference() -> None:
    """Whether the pulse was quicker shows in `Reached` alone."""
    made = rehearsal()
    for event in said():
        if not isinstance(event, Reached):
            made.hear(Reached(1))
            made.hear(event)
            made.due()
    assert made.is_used_up


def test_what_is_said_beyond_the_script_is_handed_back() -> None:
    made = rehearsal()
    for event in (*said(), sends(75, speed=4.5), Advance(90)):
        made.hear(event)
        made.due()
    assert made.is_beyond
    assert made.beyond() == [sends(75, speed=4.5), Advance(90)]
    assert not made.is_beyond


def test_a_participant_may_be_ahead_of_the_script() -> None:
    """As a twin is at times: it is compared when the other one says the same, and answered when that one is."""
    made = Rehearsal("a")
    made.hear(JOIN)
    assert made.due() == []
    made.said(JOIN)
    assert made.due() == []
    made.answered(START)
    assert made.due() == [START]
    made.hear(sends(0, speed=1.5))
    made.hear(Next(100))
    made.said(sends(0, speed=1.5))
    with pytest.raises(NonDeterminism, match="until: 99ns → 100ns"):
        made.said(Next(99))


@pytest.mark.parametrize(
    ("asked", "grant", "reached"),
    [
        (Advance(30), Grant("a", 50, []), 30),
        (Advance(30), Grant("a", 20, [], True), 20),
        (Next(30), Grant("a", 50, []), 30),
        (Next(30), Grant("a", 20, [], True), 20),
        (Next(30), Grant("a", 50, [message(20)]), 20),
        (Next(30, held=15), Grant("a", 50, [message(20)]), 15),
        (Next(FOREVER), Grant("a", FOREVER, []), 5),
    ],
)
def test_a_grant_takes_a_participant_no_further_than_it_asked_for(asked: Any, grant: Grant, reached: int) -> None:
    assert _time_after(5, asked, grant) == reached


def test_the_first_field_that_differs_is_named() -> None:
    made = rehearsal()
    found = difference(made, JOIN, sends(0, speed=1.5), Next(100), sends(40, speed=2.25))
    assert (found.member, found.first.at, found.first.number) == ("a", 40, 1)
    assert found.field is not None
    assert (found.field.path, found.field.a, found.field.b) == ("speed", 2.5, 2.25)
    assert str(found).startswith("message 1 on blue: speed: 2.5 → 2.25")
    assert found.lines()[:3] == [
        "a at 40ns, message 1: sends blue",
        '  before: {"speed":2.5}',
        '  now:    {"speed":2.25}',
    ]
    assert found.as_json()["fields"][0]["path"] == "speed"


@pytest.mark.parametrize(
    ("event", "field", "text"),
    [
        (Publish("green", to_json({"speed": 2.5}), 40), "topic", "blue"),
        (sends(41, speed=2.5), "at", "at: 40ns → 41ns"),
        (Advance(60), None, "before it sends blue at 40ns"),
        (Leave(40), None, "now it leaves"),
    ],
)
def test_whatever_differs_is_said(event: ParticipantEvent, field: str | None, text: str) -> None:
    found = difference(rehearsal(), JOIN, sends(0, speed=1.5), Next(100), event)
    assert (found.field and found.field.path) == field
    assert text in str(found)


@pytest.mark.parametrize(
    ("request_now", "at", "text"),
    [(Advance(61), 20, "to: 60ns → 61ns"), (Peek(60), 20, "now it peeks"), (Promise(60), 20, "now it promises")],
)
def test_a_request_differs_at_the_participants_own_time(request_now: ParticipantEvent, at: int, text: str) -> None:
    """That of the message that it was last woken by."""
    found = difference(
        rehearsal(), JOIN, sends(0, speed=1.5), Next(100), sends(40, speed=2.5), Log("here"), request_now
    )
    assert found.first.at == at
    assert found.first.number == 2
    assert text in str(found)


def test_one_that_leaves_early_has_less_to_say() -> None:
    made = rehearsal()
    for event in said()[:-1]:
        made.hear(event)
        made.due()
    with pytest.raises(NonDeterminism, match=r"before it sends blue at 70ns.*now it says nothing more"):
        made.finish()


def test_answers_may_be_kept_in_any_form() -> None:
    kept: dict[bytes, Action] = {b"start": START, b"grant": Grant("a", 50, [message(20)])}
    made = rehearsal([], open_answer=kept.__getitem__)
    for event, answer in ((JOIN, b"start"), (Next(100), b"grant")):
        made.said(event)
        made.answered(answer)
        made.hear(event)
        assert made.due() == [answer]
    made.said(Advance(60))
    assert difference(made, Advance(61)).first.at == 20


def test_a_ledger_that_is_given_the_same_says_the_same() -> None:
    """R1, of a program that is served from what was granted ahead, whatever the pulse tells in between."""

    def run(pulse: bool) -> list[ParticipantEvent | Action]:
        ledger = Ledger("a", JOIN)
        told: list[ParticipantEvent | Action] = [*ledger.take_outbox(), START]
        ledger.receive(START)
        for asked, grant in ((30, Grant("a", 100, [message(20), message(60)])), (120, Grant("a", 200, []))):
            assert ledger.advance(asked) is None
            told += [*ledger.take_outbox(), grant]
            ledger.receive(grant)
            for step in range(asked + 10, min(asked + 60, grant.horizon), 10):
                ledger.advance(step)
                if pulse:
                    ledger.tell_time()
                ledger.publish("blue", b"%d" % step)
        return [*told, *ledger.take_outbox()]

    then, now = run(pulse=False), run(pulse=True)
    assert then != now
    made = rehearsal(then)
    for event in said(now):
        made.hear(event)
        made.due()
    assert made.is_used_up
