"""What is pending comes out in the order of its content, once it is final, however it went in."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from worldline.history.account import Fate
from worldline.history.observer import OUTSIDE, UNDER_WAY
from worldline.model import InternalError
from worldline.model.time import FOREVER
from worldline.recording.pending import Contents, Pending, Publication


def names(publications: list[Publication]) -> list[str]:
    return [f"{each.sender}{each.sequence}" for each in publications]


def test_notes_are_numbered_with_messages_and_final_when_their_time_has_passed() -> None:
    pending = Pending()
    pending.sent("a", 7, "x", 1, b"", 20)
    pending.noted("a", "worldline/log", 1, b"hello")
    pending.sent("a", 9, "x", 1, b"", 1)
    pending.noted("b", "worldline/log", 0, b"")
    pending.advance(1)
    assert names(pending.take()) == ["b0"]
    pending.advance(21)
    assert [(each.sequence, each.number) for each in pending.take()] == [(0, 7), (1, None), (2, 9)]


def test_what_the_end_overtakes_is_under_way() -> None:
    pending = Pending()
    pending.sent("a", 0, "x", 1, b"", 20)
    pending.arrives("a", 0, "b", 9, 0, None)
    pending.arrives("a", 0, "c", 10, 0, None)
    pending.arrives("a", 0, "d", 11, 0, "lost")
    (only,) = pending.finish(10)
    assert only.fates() == [(9, "b", 0, None), (10, "c", 0, UNDER_WAY), (11, "d", 0, "lost")]


def test_what_is_final_has_arrived_though_it_is_rounded_to_the_end() -> None:
    pending = Pending()
    pending.sent("a", 0, "x", 1, b"", 10)
    pending.arrives("a", 0, "b", 10, 0, None)
    pending.advance(11)
    (only,) = pending.finish(10)
    assert only.fates() == [(10, "b", 0, None)]


def test_a_publication_may_turn_out_to_last_longer_while_it_isnt_final() -> None:
    pending = Pending()
    pending.sent("a", 0, "x", 0, b"", 10)
    pending.lasts("a", 0, 30)
    pending.lasts("a", 0, 5)
    pending.arrives("a", 0, "r", 30, 0, None)
    pending.advance(30)
    assert pending.take() == []
    pending.advance(31)
    assert names(pending.take()) == ["a0"]
    pending.lasts("a", 0, 30)  # Nothing new.
    with pytest.raises(InternalError, match="message 0 lasts until 31ns though it is final"):
        pending.lasts("a", 0, 31)


def test_what_is_held_for_nobody_knows_how_long_is_final_once_that_is_known() -> None:
    pending = Pending()
    pending.sent("a", 0, "x", 0, b"", 20)
    pending.lasts("a", 0, FOREVER)
    pending.arrives("a", 0, "r", 5, 0, "held")
    pending.advance(50)
    assert pending.take() == []
    pending.arrives("a", 0, "r", 5, 0, None)
    pending.lasts("a", 0, 60)
    pending.advance(60)
    assert pending.take() == []
    pending.advance(61)
    assert [each.fates() for each in pending.take()] == [[(5, "r", 0, None)]]


def test_a_copy_that_is_held_no_more_leaves_time_for_the_others() -> None:
    pending = Pending()
    pending.sent("a", 0, "x", 0, b"", 20)
    pending.lasts("a", 0, FOREVER)
    pending.lasts("a", 0, 10)
    pending.advance(11)
    assert pending.take() == []
    pending.arrives("a", 0, "r", 20, 1, None)
    pending.advance(21)
    assert names(pending.take()) == ["a0"]


def test_only_what_comes_from_outside_may_arrive_at_once() -> None:
    pending = Pending()
    pending.sent(OUTSIDE, 0, "x", 5, b"", 5)
    pending.arrives(OUTSIDE, 0, "r", 5, 0, None)
    pending.sent("a", 0, "x", 5, b"", 5)
    with pytest.raises(InternalError):
        pending.arrives("a", 0, "r", 5, 0, None)


def test_looking_waits_until_it_is_worth_it_and_what_is_kept_stays_small() -> None:
    pending = Pending()
    taken, kept = 0, 0
    for sequence in range(5_000):
        pending.sent("a", sequence, "x", sequence, bytes(1000), sequence + 5)
        taken += len(pending.advance(sequence))
        kept = max(kept, len(pending))
    assert taken > 4_900
    assert 5 < kept < 100


def test_what_is_said_anew_after_closing_holds_and_the_earliest_closing_counts() -> None:
    pending = Pending()
    pending.sent("a", 0, "x", 0, b"", 20)
    pending.arrives("a", 0, "r", 6, 0, None)
    pending.arrives("a", 0, "r", 9, 1, None)
    pending.closed("r", "x", 5)
    pending.closed("r", "x", 7)  # It had subscribed again at 5 or later, and nothing was said since.
    pending.arrives("a", 0, "r", 9, 1, None)
    assert pending.finish(FOREVER)[0].fates() == [(9, "r", 1, None)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda pending: pending.sent("a", 1, "x", 49, b"", 60), "none acts before 50ns any more"),
        (lambda pending: pending.sent("a", 0, "x", 50, b"", 60), "message 0 was recorded twice"),
        (lambda pending: pending.arrives("a", 7, "r", 50, 0, None), "final or was never sent"),
        (lambda pending: pending.arrives("a", 0, "r", 101, 0, None), "if it expires at 100ns"),
        (lambda pending: pending.arrives("a", 0, "r", 50, 0, None), "sent at 50ns, can't reach it then"),
    ],
)
def test_calls_that_would_let_luck_show_are_bugs(call, words) -> None:  # type: ignore[no-untyped-def]
    pending = Pending()
    pending.sent("a", 0, "x", 50, b"", 100)
    pending.advance(50)
    with pytest.raises(InternalError, match=words):
        call(pending)


def test_after_the_end_nothing_is_taken_in() -> None:
    pending = Pending()
    pending.finish(FOREVER)
    with pytest.raises(InternalError, match="before forever"):
        pending.sent("a", 0, "x", 50, b"", 100)


# A certificate hashes many messages together, and comes to what it would if it hashed them one by one.


SIZES = ([], [3], [0] * 15, [0] * 16, [100] * 5_000, [10, 70_000, 10, 2**16, 2**16 - 64])


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{len(sizes)} of {sum(sizes)} bytes")
def test_messages_are_hashed_as_if_one_by_one(sizes: list[int]) -> None:
    contents = Contents({"b": "2", "a": "1"})
    one_by_one = blake2b(msgpack.encode([("a", "1"), ("b", "2")]), digest_size=32)
    for number, size in enumerate(sizes):
        fates = [(number + 1, "r", 0, None), (number + 2, "s", 1, "lost")][: number % 3]
        contents.add(number, "me", number, "x", bytes(size), fates)
        one_by_one.update(msgpack.encode((number, "me", number, "x", bytes(size), fates)))
    one_by_one.update(msgpack.encode([("status", "complete")]))
    assert contents.certificate({"status": "complete", "certificate": "?"}) == one_by_one.hexdigest()


# Where numbers, texts and lists get longer heads; and below zero, where the compiled build leaves it all to msgspec.
EDGES = (0, 0x7F, 0x80, 0xFF, 0x100, 0xFFFF, 0x10000, 2**32 - 1, 2**32, 2**62, 2**63 - 1, -1, -(2**40))
NUMBERS = st.sampled_from(EDGES)
TEXTS = st.text(max_size=4) | st.sampled_from([letter * size for letter in "xü" for size in (31, 32, 255, 256, 70_000)])
PAYLOADS = st.sampled_from([0, 1, 255, 256, 16_000, 16_384, 65_535, 65_536]).map(bytes)
FATES = st.lists(st.tuples(NUMBERS, TEXTS, NUMBERS, st.none() | TEXTS), max_size=17)


@given(st.lists(st.tuples(NUMBERS, TEXTS, NUMBERS, TEXTS, PAYLOADS, FATES), max_size=5))
def test_what_is_hashed_is_what_msgspec_writes(messages: list[tuple[int, str, int, str, bytes, list[Fate]]]) -> None:
    contents = Contents({})
    one_by_one = blake2b(msgpack.encode([]), digest_size=32)
    for message in messages:
        contents.add(*message)
        one_by_one.update(msgpack.encode(message))
    one_by_one.update(msgpack.encode([]))
    assert contents.certificate({}) == one_by_one.hexdigest()
