"""The hash that can be put away is that of `hashlib`, wherever it was put away."""

from __future__ import annotations

from hashlib import blake2b
from random import Random

import msgspec
import pytest

from worldline.history.journal import Journal
from worldline.history.resumable_hash import HashState, ResumableHash


@pytest.mark.parametrize("size", [16, 64])
def test_it_comes_to_the_same_as_hashlib(size: int) -> None:
    random = Random(size)
    for _ in range(20):
        mine, theirs = ResumableHash(size), blake2b(digest_size=size)
        for _ in range(random.randrange(4)):
            data = random.randbytes(random.choice((0, 1, 127, 128, 129, 256, 700)))
            mine.update(data)
            theirs.update(data)
            if random.random() < 0.5:
                stored = msgspec.msgpack.encode(mine.state())
                mine = ResumableHash(size, msgspec.msgpack.decode(stored, type=HashState))
            assert mine.digest() == theirs.digest()


def test_a_journal_that_is_taken_up_has_the_digest_of_one_that_never_stopped() -> None:
    whole, first = Journal(), Journal()
    first.make_resumable()
    for number in range(100):
        for journal in (whole, first):
            journal.note_sent(number, "topic", bytes(number))
        if number % 7 == 0:
            second = Journal()
            second.take_up(*first.put_away())
            first = second
    assert first.digest() == whole.digest()
    assert first.sent == 100
