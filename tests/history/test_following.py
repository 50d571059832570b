"""A run of a whole model against a recorded one: whoever says something else is named, at once."""

from __future__ import annotations

import pytest

from worldline.history.account import Account, Membership, Sending
from worldline.history.journal import Received, Sent
from worldline.history.outcome import End
from worldline.history.replay import Following, RecordedParts, RetoldDifference, account_of
from worldline.model.message import Message

SENDINGS: list[Sending] = [
    (5, "ann", "ball", b"1", [(9, "bob", 0, None)], 0),
    (6, "ann", "worldline/timer", b"{}", [], 1),
    (7, "ann", "ball", b"2", [(9, "bob", 0, None)], 2),
]


@pytest.fixture
def found() -> list[RetoldDifference]:
    return []


@pytest.fixture
def following(found: list[RetoldDifference]) -> Following:
    stays = {"ann": Membership(0, 10, b"chain".hex()), "bob": Membership(0, 10, "")}
    return Following(RecordedParts(Account(iter(SENDINGS), stays), found.append))


def texts(found: list[RetoldDifference]) -> list[str]:
    return [str(each) for each in found]


def tell(following: Following, first: bytes = b"1", to: str = "bob", timer: int = 6, last: bool = True) -> None:
    following.began("ann", 0)
    following.noted("ann", "worldline/log", 5, b"anything")
    following.sent("ann", 40, "ball", 5, first, 9)
    following.arrives("ann", 40, to, 9, 0, None)
    following.noted("ann", "worldline/timer", timer, b"{}")
    following.noted("ann", "ball", 6, None)  # Told already, in a room's own words.
    if last:
        following.sent("ann", 41, "ball", 7, b"2", 9)
        following.arrives("ann", 41, "bob", 9, 0, None)
    following.passed(9)


def test_the_same(following: Following, found: list[RetoldDifference]) -> None:
    tell(following)
    following.ended("ann", 10, b"chain")
    assert texts(found) == []
    assert following._parts.of("ann").sent == 2


def test_another_payload(following: Following, found: list[RetoldDifference]) -> None:
    tell(following, first=b"7")
    assert texts(found) == ["message 0 on ball: payload: 1 → 7"]
    assert found[0].member == "ann"


def test_somebody_else_is_addressed(following: Following, found: list[RetoldDifference]) -> None:
    tell(following, to="cat")
    assert texts(found) == ['message 0 on ball: to: "bob" → "cat"']


def test_a_timer_at_another_time(following: Following, found: list[RetoldDifference]) -> None:
    tell(following, timer=7)
    assert texts(found) == ["sets a timer: at: 6ns → 7ns"]


def test_less_is_said(following: Following, found: list[RetoldDifference]) -> None:
    tell(following, last=False)
    following.ended("ann", 10, b"chain")
    assert texts(found) == ["before it sends ball at 7ns: 2, and now it says nothing more"]


def test_more_is_said_and_by_somebody_new(following: Following, found: list[RetoldDifference]) -> None:
    tell(following)
    following.sent("ann", 42, "ball", 8, b"3", 9)
    following.began("eve", 8)
    assert texts(found) == [
        "now it sends ball at 8ns: 3, and before it said nothing more",
        "now it begins, and before it said nothing more",
    ]


def test_another_end_and_another_history(following: Following, found: list[RetoldDifference]) -> None:
    tell(following)
    following.ended("bob", 11, b"")
    following.ended("ann", 10, b"other")
    assert texts(found)[0] == "ends: now: 10ns → 11ns"
    assert texts(found)[1].startswith("receives what it is given: digest")


# Journals tell the same of a run as whoever observed it, by the times at which programs were given things.


def test_what_was_sent_is_told_in_one_order_with_who_was_given_it_when() -> None:
    journals: dict[str, list[Sent | Received]] = {
        "bob": [
            Received(7, Message(3, 1, "ann", 0, 0, "x", b"hi")),
            Received(7, Message(4, 1, "ann", 0, 1, "x", b"hi")),
            Sent(0, 7, "y", b"!"),
        ],
        "ann": [Sent(0, 1, "x", b"hi"), Sent(1, 1, "x", b"lost")],
    }
    account = account_of(journals, {"ann": End(9, b"\1"), "bob": End(8, b"\2")})
    assert list(account.sendings) == [
        (1, "ann", "x", b"hi", [(7, "bob", 0, None), (7, "bob", 1, None)], 0),
        (1, "ann", "x", b"lost", [], 1),
        (7, "bob", "y", b"!", [], 0),
    ]
    assert {name: (stay.ended, stay.chain) for name, stay in account.stays.items()} == {
        "ann": (9, "01"),
        "bob": (8, "02"),
    }
