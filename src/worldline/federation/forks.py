"""What becomes of connections in a forked process: they stay with the process that made them.

A forked process has a copy of everything, the sockets too. If it spoke, it would speak for its parent; if it only kept
them open, nobody would notice when its parent dies. So right after a fork the copy is let go of, without a word. (A
process that is started, not forked, never gets them: Python's sockets aren't inherited.)
"""

from __future__ import annotations

import os
from typing import NoReturn, Protocol
from weakref import WeakSet

from worldline.model import UsageError


class Connected(Protocol):
    """Whoever has sockets."""

    def disown(self) -> None:
        """Let go of all sockets, in a process that was forked."""


def not_ours(participant: str) -> UsageError:
    """Return what a forked process is told that uses its parent's participant."""
    return UsageError(
        "this process was forked from the participant's own, which alone speaks for it",
        participant=participant,
        advice="let the parent do it, or connect under another name",
    )


class ForkedLock:
    """Stands in a forked process where its parent has a lock: whoever wants in is told why it can't."""

    def __init__(self, participant: str) -> None:
        self._participant = participant

    def __enter__(self) -> NoReturn:
        raise not_ours(self._participant)

    def __exit__(self, *_: object) -> None:
        """Nobody gets as far as this."""


_connected: WeakSet[Connected] = WeakSet()


def remember(connected: Connected) -> None:
    """Have its sockets let go of in processes that are forked from this one."""
    _connected.add(connected)


def _disown_all() -> None:
    for connected in list(_connected):
        connected.disown()


os.register_at_fork(after_in_child=_disown_all)
