"""A certificate hashes many messages together, and comes to what it would if it hashed them one by one."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from msgspec import msgpack

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
