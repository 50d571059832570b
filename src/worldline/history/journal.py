"""The journal of a participant, and the digests of participants and runs.

Every input and output of a participant, in the order in which its program met them, is encoded canonically
(MessagePack arrays) and fed to one running blake2b hash: the participant's digest. It depends on what the program saw
and did, never on how requests were batched or how far ahead it was granted. The run's digest combines the
participants' by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from msgspec import Struct, msgpack

from worldline.history.resumable_hash import HashState, ResumableHash
from worldline.model.message import Message

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # Otherwise `journal.pxd` imports those that do in C what most entries take.

    def _left_to_msgspec(*_: object) -> Any:
        return None

    packed_sent = packed_received = _left_to_msgspec

DIGEST_SIZE = 16

_encode = msgpack.Encoder().encode
_SENT, _RECEIVED, _BEFELL = 0, 1, 2
_HASH_EVERY = 64
_HEAVY = 2**16  # As much isn't kept for long, nor copied to be hashed.
_HEAVY_HEAD = b"\xc6"  # Before the length of so many bytes, in four.


class Sent(Struct, frozen=True, array_like=True):
    """The participant published this."""

    sequence: int
    at: int
    topic: str
    payload: bytes


class Received(Struct, frozen=True, array_like=True):
    """The participant was given this at its time `now`."""

    now: int
    message: Message


class Befell(Struct, frozen=True, array_like=True):
    """This happened to the participant."""

    at: int
    what: str


class Noted(Struct, frozen=True, array_like=True):
    """The participant wrote this line to its log."""

    at: int
    text: str


Entry = Sent | Received | Befell
Aside = Noted | Befell
"""What is told of a participant, and isn't part of its history: no program acts on it."""


class Journal:
    """The inputs and outputs of one participant. With `keep`, its entries stay readable; the digest needs none.

    `asides` are kept with the number of entries before each.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self._hash: Any = blake2b(digest_size=DIGEST_SIZE)
        self._unhashed: list[bytes] = []  # Hashing many together costs much less than one by one.
        self._weight = 0  # How long their payloads are, together.
        self.entries: list[Entry] | None = [] if keep else None
        self.asides: list[tuple[int, Aside]] = []
        self.sent = 0
        self.received = 0
        self._marked = 0
        self._marked_received = 0

    def mark(self) -> None:
        """Remember this place, so that what is received from here on can be taken back."""
        if len(self._unhashed) >= _HASH_EVERY or self._weight >= _HEAVY:
            self._catch_up()
        self._marked = len(self._unhashed)
        self._marked_received = self.received

    def take_back(self) -> None:
        """Forget all since `mark`; nothing has been sent since."""
        del self._unhashed[self._marked :]
        if self.entries is not None and self.received > self._marked_received:
            del self.entries[self._marked_received - self.received :]
        self.received = self._marked_received

    def note_sent(self, at: int, topic: str, payload: bytes) -> None:
        packed: bytes | None = packed_sent(self.sent, at, topic, payload)
        if packed is not None:
            self._unhashed.append(packed)
        else:
            self._put((_SENT, self.sent, at, topic, payload))
        if self.entries is not None:
            self.entries.append(Sent(self.sent, at, topic, payload))
        self.sent += 1
        self._weight += len(payload)
        if len(self._unhashed) >= _HASH_EVERY or self._weight >= _HEAVY:
            self._catch_up()

    def note_received(self, now: int, messages: list[Message]) -> None:
        # Before and not after: it may be taken back.
        if len(self._unhashed) >= _HASH_EVERY or self._weight >= _HEAVY:
            self._catch_up()
        for message in messages:
            packed: bytes | None = packed_received(now, message)
            if packed is not None:
                self._unhashed.append(packed)
            else:
                self._put((_RECEIVED, now, *message))
            self._weight += len(message.payload)
        if self.entries is not None:
            self.entries += [Received(now, message) for message in messages]
        self.received += len(messages)

    def note_fate(self, at: int, what: str) -> None:
        """Note what has happened to the participant: a crash, a hang, an emergency stop."""
        self._put((_BEFELL, at, what.encode()))
        if self.entries is not None:
            self.entries.append(Befell(at, what))

    def note_aside(self, aside: Aside) -> None:
        """Keep what is in no digest, if anything is kept."""
        if self.entries is not None:
            self.asides.append((len(self.entries), aside))

    def told(self) -> list[Entry | Aside]:
        """Return the entries and asides that are kept, in the order in which the program met them."""
        entries = self.entries or []
        found: list[Entry | Aside] = []
        told = 0
        for place, aside in self.asides:
            found += entries[told:place]
            found.append(aside)
            told = place
        found += entries[told:]
        return found

    def make_resumable(self) -> None:
        """Hash in a way that can be taken up elsewhere; before anything is noted."""
        self._hash = ResumableHash(DIGEST_SIZE)

    def put_away(self) -> tuple[int, int, HashState]:
        """Return all that another one needs to go on from here, if this one was made resumable."""
        self._catch_up()
        return self.sent, self.received, self._hash.state()

    def take_up(self, sent: int, received: int, state: HashState) -> None:
        """Go on from where another one was put away."""
        self.sent, self.received = sent, received
        self._hash = ResumableHash(DIGEST_SIZE, state)

    def digest(self) -> bytes:
        self._catch_up()
        digest: bytes = self._hash.digest()
        return digest

    def _put(self, entry: tuple[Any, ...]) -> None:
        """Encode an entry, of which the last is a payload."""
        payload: bytes = entry[-1]
        if len(payload) < _HEAVY:
            self._unhashed.append(_encode(entry))
        else:
            without = _encode((*entry[:-1], b""))[:-2]
            self._unhashed += (without + _HEAVY_HEAD + len(payload).to_bytes(4, "big"), payload)

    def _catch_up(self) -> None:
        if self._weight < _HEAVY:
            self._hash.update(b"".join(self._unhashed))
        else:
            for part in self._unhashed:
                self._hash.update(part)
        self._unhashed.clear()
        self._weight = 0


def run_digest(participants: Iterable[tuple[str, int, bytes]]) -> bytes:
    """Combine (name, time of leaving, digest) of all participants, in the order of their names."""
    combined = blake2b(digest_size=DIGEST_SIZE)
    for participant in sorted(participants):
        combined.update(_encode(participant))
    return combined.digest()
