"""The certificate of a recording: a hash over everything that it says, in canonical form.

Pure. The writer hashes what it writes, a reader what it finds; both must come to the same. The canonical form is a
sequence of MessagePack arrays:

    [header: names and texts]
    [send time, sender, sequence number, topic, payload, [[arrival, receiver, copy, reason or nil], ...]]   each message
    [outcome: names and texts, without the certificate]

It knows nothing of chunks, compression or channel numbers, so a file that a tool has packed anew still fits its
certificate.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from msgspec import msgpack

from worldline.history.diff.account import Fate

_SIZE = 32
SEQUENCES = 2**32
"""MCAP has 32 bits for a sequence number; what is recorded, and hashed, is the remainder."""

_encode = msgpack.Encoder().encode
_HASH_EVERY = 2**16  # Bytes: hashing many messages together costs much less than one by one.
_WEIGHT_OF_A_MESSAGE = 64  # Besides its payload, at the least.


class Certificate:
    """A running hash over header, messages and outcome."""

    def __init__(self, header: Mapping[str, str]) -> None:
        self._hash = blake2b(digest_size=_SIZE)
        self._hash.update(_encode(sorted(header.items())))
        self._unhashed: list[tuple[int, str, int, str, bytes, list[Fate]]] = []
        self._weight = 0

    def add(self, sent: int, sender: str, sequence: int, topic: str, payload: bytes, fates: list[Fate]) -> None:
        """Go on with the next message; the fates are in their order, and stay as they are."""
        self._unhashed.append((sent, sender, sequence, topic, payload, fates))
        self._weight += len(payload) + _WEIGHT_OF_A_MESSAGE
        if self._weight >= _HASH_EVERY:
            self._catch_up()

    def seal(self, outcome: Mapping[str, str]) -> str:
        """Return the certificate, in hex, for a recording that ends like this."""
        self._catch_up()
        sealed = self._hash.copy()
        sealed.update(_encode(sorted([item for item in outcome.items() if item[0] != "certificate"])))
        return sealed.hexdigest()

    def _catch_up(self) -> None:
        # Encoded together they are a list: what its items are encoded to, behind its head. They are less than 2**16.
        head = 1 if len(self._unhashed) < 16 else 3
        self._hash.update(memoryview(_encode(self._unhashed))[head:])
        self._unhashed.clear()
        self._weight = 0
