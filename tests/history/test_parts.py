"""What single members said and were given, from one walk over a recorded run."""

from __future__ import annotations

from worldline.history.account import Account, Membership, Sending
from worldline.history.replay import RecordedParts
from worldline.model.time import FOREVER

STAYS = {"ann": Membership(0, 100), "bob": Membership(0, 100)}
SENDINGS: list[Sending] = [
    (0, "ann", "worldline/log", b"begins", [], 0),
    (5, "ann", "ball", b"early", [(9, "bob", 0, None), (9, "cat", 0, None)], 2),
    (5, "bob", "ball", b"back", [(30, "ann", 0, None)], 0),
    (20, "ann", "ball", b"for later, but said first", [(21, "bob", 0, "lost"), (22, "bob", 1, None)], 1),
    (20, "bob", "ball", b"faster", [(25, "ann", 0, None)], 1),
    (50, "ann", "ball", b"last", [(51, "bob", 0, None)], 3),
]


def account(sendings: list[Sending] = SENDINGS, **known: object) -> Account:
    return Account(iter(sendings), STAYS, **known)  # type: ignore[arg-type]


def test_a_member_says_things_in_its_own_order_and_lines_of_its_log_dont_count() -> None:
    parts = RecordedParts(account(), print, ["ann"])
    said = []
    while parts.of("ann").says_more():
        found = parts.of("ann").next_said()
        assert found is not None
        said.append((found.utterance.number, found.utterance.at, found.utterance.payload, sorted(found.to)))
    assert said == [
        (0, 20, b"for later, but said first", ["bob"]),
        (1, 5, b"early", ["bob", "cat"]),
        (2, 50, b"last", ["bob"]),
    ]
    assert parts.of("ann").next_said() is None


def test_messages_come_by_arrival_with_the_numbers_that_their_receivers_saw() -> None:
    parts = RecordedParts(account(), print, ["bob", "ann"])
    messages, known = parts.of("bob").arrivals(2)
    assert [(each.arrival, each.sender, each.sequence, each.copy) for each in messages] == [
        (9, "ann", 1, 0),
        (22, "ann", 0, 1),
    ]
    assert known == 51
    messages, known = parts.of("bob").arrivals(2)
    assert [each.payload for each in messages] == [b"last"]
    assert known == FOREVER
    assert [each.payload for each in parts.of("ann").arrivals(9)[0]] == [b"faster", b"back"]


def test_where_a_run_was_broken_off_nothing_is_known_beyond() -> None:
    parts = RecordedParts(account(SENDINGS[:5], until=25, is_complete=False), print, ["ann"])
    messages, known = parts.of("ann").arrivals(9)
    assert [each.arrival for each in messages] == [25]  # What arrives at 30 may not be all that does.
    assert known == 26
    assert parts.of("ann").arrivals(9) == ([], 26)


def test_nothing_is_kept_of_others() -> None:
    parts = RecordedParts(account(), print, ["ann"])
    parts.of("ann").arrivals(9)
    assert not parts.of("bob")._said
    assert not parts.of("bob")._arrivals
