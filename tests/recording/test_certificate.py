"""A certificate hashes many messages together, and comes to what it would if it hashed them one by one."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from worldline.history.account import Fate
from worldline.recording.pending import Contents

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
