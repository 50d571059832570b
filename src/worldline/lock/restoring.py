"""Snapshots: how a participant that comes back needn't begin at the beginning.

The words are between a ledger and a server that keeps a journal; the arbiter doesn't know them, and nothing that
happens in a run depends on them. A snapshot is the program's own state and the ledger's, at a place between two
answers. Who is restored from it stands at that place again, and all that it does from there on is the same.
"""

from __future__ import annotations

from msgspec import Struct

from worldline.history.resumable_hash import HashState
from worldline.model.buffer import Buffer
from worldline.model.message import Message


class Snapshot(Struct, frozen=True, array_like=True, tag="snapshot", gc=False):
    """I can be restored from this, to where I am now."""

    state: bytes


class Recall(Struct, frozen=True, array_like=True, tag="recall", gc=False):
    """I have been started again, and have done nothing yet: what was my last snapshot?"""


class Recalled(Struct, frozen=True, array_like=True, tag="recalled", gc=False):
    """This was your last snapshot. You had been given so many answers then, and had said so much since the last.

    What you had said to have reached (`Reached`) isn't counted.
    """

    answers: int
    said: int
    state: bytes


class Restore(Struct, frozen=True, array_like=True, tag="restore", gc=False):
    """I go on from my last snapshot, of which you have told me this. The first word after the start.

    Or on a new connection, if the one before was lost before the next answer.
    """

    answers: int
    said: int


class LedgerState(Struct, frozen=True, array_like=True):
    """A ledger at the place of a snapshot, and the program's own state."""

    program: bytes
    now: int
    horizon: int
    final: bool
    promised: int
    told: int
    complete_at: int
    incomplete: list[str]
    finished: list[str]
    buffers: dict[str, Buffer]
    dropped: dict[str, int]
    reach: int
    held: list[Message]
    streams: list[tuple[tuple[str, ...], tuple[int, int, float | None]]]
    sent: int
    received: int
    digest: HashState
