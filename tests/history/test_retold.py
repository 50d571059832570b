"""Journals tell the same of a run as whoever observed it, by the times at which programs were given things."""

from __future__ import annotations

from worldline.history.journal import Received, Sent
from worldline.history.outcome import End
from worldline.history.replay import account_of
from worldline.model.message import Message


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
