"""Journals and digests: fixed bytes, sensitive to what was seen and done and to nothing else."""

from __future__ import annotations

import sys
from hashlib import blake2b
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from tests.wire.strategies import messages, numbers, payloads, texts
from worldline.history.journal import DIGEST_SIZE, Journal, Noted, Received, Sent, run_digest
from worldline.model import Message

FIRST = Message(9, 4, "b", 0, 0, "red", b"hi")
SECOND = Message(9, 4, "b", 1, 0, "red", b"yo")

# MessagePack by hand: an array of 5 or 9, small integers, "red" and "b" as texts, payloads as binaries.
SENT = b"\x95\x00\x00\x05\xa3red\xc4\x02ok"
RECEIVED = b"\x99\x01\x0a\x09\x04\xa1b\x00\x00\xa3red\xc4\x02hi"


def tiny() -> Journal:
    journal = Journal(keep=True)
    journal.note_sent(5, "red", b"ok")
    journal.note_received(10, [FIRST])
    return journal


def test_the_digest_is_the_hash_of_what_is_written_down_here() -> None:
    assert tiny().digest() == blake2b(SENT + RECEIVED, digest_size=DIGEST_SIZE).digest()


def test_asides_are_told_in_their_places_and_are_in_no_digest() -> None:
    journal = Journal(keep=True)
    journal.note_sent(5, "red", b"ok")
    journal.note_aside(Noted(5, "sent"))
    journal.note_received(10, [FIRST])
    journal.note_aside(Noted(10, "received"))
    assert journal.digest() == tiny().digest()
    assert journal.entries == tiny().entries
    assert journal.told() == [
        *(Sent(0, 5, "red", b"ok"), Noted(5, "sent")),
        *(Received(10, FIRST), Noted(10, "received")),
    ]
    forgetful = Journal()
    forgetful.note_aside(Noted(5, "sent"))
    assert forgetful.told() == []


def test_the_digest_of_a_tiny_journal_never_changes() -> None:
    # Recordings carry digests: another value here makes them worthless.
    assert tiny().digest().hex() == "d2c2cc222dd17a79a969fb2b72203111"


def test_the_digest_of_a_tiny_run_never_changes() -> None:
    assert run_digest([("b", 7, b"bb"), ("a", 10, tiny().digest())]).hex() == "4904bcff5a754ee9ac868aef183228dc"


def test_entries_are_kept_only_if_asked_for_and_dont_change_the_digest() -> None:
    kept, bare = tiny(), Journal()
    bare.note_sent(5, "red", b"ok")
    bare.note_received(10, [FIRST])
    assert kept.entries == [Sent(0, 5, "red", b"ok"), Received(10, FIRST)]
    assert bare.entries is None
    assert kept.digest() == bare.digest()
    assert (bare.sent, bare.received) == (kept.sent, kept.received) == (1, 1)


def test_the_digest_doesnt_depend_on_batches() -> None:
    together, apart = Journal(), Journal()
    together.note_received(10, [FIRST, SECOND])
    apart.note_received(10, [FIRST])
    apart.note_received(10, [SECOND])
    apart.note_received(10, [])
    assert together.digest() == apart.digest()
    assert together.received == apart.received == 2


@pytest.mark.parametrize(
    "other",
    [
        FIRST._replace(arrival=8),
        FIRST._replace(sent=3),
        FIRST._replace(sender="c"),
        FIRST._replace(sequence=1),
        FIRST._replace(copy=1),
        FIRST._replace(topic="blue"),
        FIRST._replace(payload=b"ho"),
    ],
)
def test_every_field_of_a_message_counts(other: Message) -> None:
    journal, changed = Journal(), Journal()
    journal.note_received(10, [FIRST])
    changed.note_received(10, [other])
    assert journal.digest() != changed.digest()


def test_the_time_at_which_it_was_received_counts() -> None:
    early, late = Journal(), Journal()
    early.note_received(10, [FIRST])
    late.note_received(11, [FIRST])
    assert early.digest() != late.digest()


@pytest.mark.parametrize("sent", [(6, "red", b"ok"), (5, "blue", b"ok"), (5, "red", b"no")])
def test_every_field_of_a_send_counts(sent: tuple[int, str, bytes]) -> None:
    journal, changed = Journal(), Journal()
    journal.note_sent(5, "red", b"ok")
    changed.note_sent(*sent)
    assert journal.digest() != changed.digest()


# --- Of a run ---

PARTICIPANTS = [("a", 1, b"x"), ("b", 2, b"y"), ("c", 3, b"z")]


def test_a_runs_digest_doesnt_depend_on_the_order_of_its_participants() -> None:
    assert len({run_digest(order) for order in permutations(PARTICIPANTS)}) == 1


@pytest.mark.parametrize("other", [("d", 1, b"x"), ("a", 2, b"x"), ("a", 1, b"y")])
def test_a_runs_digest_depends_on_every_name_time_and_digest(other: tuple[str, int, bytes]) -> None:
    assert run_digest([other, *PARTICIPANTS[1:]]) != run_digest(PARTICIPANTS)


@pytest.mark.parametrize("size", [0, 255, 2**16 - 1, 2**16, 2**16 + 1, 2**20])
def test_a_payload_is_hashed_the_same_however_long_it_is(size: int) -> None:
    payload = bytes(size)
    journal = Journal()
    journal.note_sent(5, "red", b"before")
    journal.note_sent(6, "red", payload)
    journal.note_received(10, [FIRST._replace(payload=payload), SECOND])
    notes = [(0, 0, 5, "red", b"before"), (0, 1, 6, "red", payload)]
    heard = [(1, 10, *FIRST._replace(payload=payload)), (1, 10, *SECOND)]
    expected = blake2b(b"".join(map(msgpack.encode, notes + heard)), digest_size=DIGEST_SIZE)
    assert journal.digest() == expected.digest()


@given(st.lists(messages, max_size=70), numbers, texts, payloads)
def test_what_is_written_in_c_is_what_msgspec_writes(heard: list[Message], at: int, topic: str, payload: bytes) -> None:
    journal = Journal()
    journal.note_sent(at, topic, payload)
    journal.note_received(at, heard)
    journal.note_fate(at, topic)
    notes = [(0, 0, at, topic, payload), *[(1, at, *message) for message in heard], (2, at, topic.encode())]
    expected = blake2b(b"".join(map(msgpack.encode, notes)), digest_size=DIGEST_SIZE)
    assert journal.digest() == expected.digest()


def test_what_is_taken_back_is_in_no_digest() -> None:
    journal = Journal()
    journal.note_sent(5, "red", b"ok")
    journal.mark()
    journal.note_received(10, [FIRST, SECOND._replace(payload=bytes(2**17))])
    journal.take_back()
    journal.note_received(10, [FIRST])
    assert journal.digest() == tiny().digest()


def test_what_is_long_isnt_kept_in_order_to_be_hashed() -> None:
    journal = Journal()
    payload = bytes(2**20)
    before = sys.getrefcount(payload)
    journal.note_sent(5, "red", payload)
    assert sys.getrefcount(payload) == before
