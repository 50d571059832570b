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


class Restore(Struct, frozen=True, array_like=True, tag="restore", gc=False):
    """I have been started again, and have done nothing yet: what was my last snapshot? The answer is `Restored`."""


class Restored(Struct, frozen=True, array_like=True, tag="restored", gc=False):
    """This was your last snapshot. You had been given so many answers then, and had said so much since the last.

    What you had said to have reached (`Reached`) isn't counted.
    """

    answers: int
    said: int
    state: bytes


class Resume(Struct, frozen=True, array_like=True, tag="resume", gc=False):
    """I stand where I had been given so many answers (`start` and grants), and had said so much since the last.

    The first word on a new connection, in the place of `join`, if only the connection was lost; or, after the start,
    the first word of one that is restored.
    """

    answers: int
    said: int = 0


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
