"""How much a server tolerates, and what becomes of a run when a participant is lost.

Both are set in a federation's file, or by the caller that makes a `Server`.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from worldline.model.errors import ConfigurationError, shown
from worldline.model.payload import PAYLOAD_MAX
from worldline.wire.codec import FRAME_MAX, SAID_MAX

FRAME_LEAST = 2 * SAID_MAX
"""The least that the longest frame may be: more than has to be said about a payload."""

PAYLOAD_MOST = 2**30
"""The most that the largest payload may be: more doesn't fit into a recording."""

LossPolicy = Literal["abort", "rejoin"]
"""What a server does when a participant is lost: end the run, or wait for it to come back."""

POLICIES: tuple[str, ...] = get_args(LossPolicy)


def check_policy(policy: str) -> LossPolicy:
    """Return a policy, if it is one."""
    if policy in POLICIES:
        return policy  # type: ignore[return-value] # It is one of them.
    raise ConfigurationError(f"{shown(policy)} isn't a policy for losses", advice=f"use {' or '.join(POLICIES)}")


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds of the wall clock, which isn't simulated time.

    `unreachable_s`   how long a participant's machine may give no sign of life before it counts as lost.
    `silence_s`       how long a participant itself may say nothing, not even a heartbeat; None: forever, since it may
                      be computing, or stopped.
    `handshake_s`     how long a connection may take to say who it is.
    `join_s`          how long the run waits for a participant that hasn't joined; None: forever.
    `rejoin_s`        how long it waits for one that was lost to come back, where it may; None: forever.
    `memory_max`      for what all participants together have sent and others may still receive: a participant that has
                      more than its share, and is ahead of others, isn't read until they have caught up.
    `under_way_max`   for the same, where none can be held back: the one that all others wait for sent it.
    `flood_max`       how much of that a participant may send without advancing itself, and how much it may log.
    `unread_max`      how much may be queued for a participant that doesn't read it.
    `frame_max`       the longest frame; what is longer goes into several.
    `payload_max`     the largest payload of a message.
    `topics_max`      how many topics a participant may publish on and subscribe to.
    `events_max`      how many events a frame may hold.
    `frames_max`      how many frames a participant may send per second; beyond that it isn't read until the next.
    `strangers_max`   how many connections may be waiting to be admitted.
    """

    unreachable_s: float = 10.0
    silence_s: float | None = None
    handshake_s: float = 10.0
    join_s: float | None = None
    rejoin_s: float | None = 60.0
    memory_max: int = 2**28
    under_way_max: int = 2**31
    flood_max: int = 2**28
    unread_max: int = 2**26
    frame_max: int = FRAME_MAX
    payload_max: int = PAYLOAD_MAX
    topics_max: int = 2**16
    events_max: int = 2**17
    frames_max: int = 50_000
    strangers_max: int = 256

    @property
    def heartbeat_s(self) -> float:
        """How often each end should say something, if only a heartbeat."""
        return (self.unreachable_s if self.silence_s is None else self.silence_s) / 4


# How many files this process may have open: every connection is one, and so is every process that is listened to.

_SPARE = 8  # For what is opened now and then besides: recordings, journals, modules that are loaded late.
_UNLIMITED = 2**62


def files_max() -> int:
    """Return how many files this process may have open."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNLIMITED if limit == resource.RLIM_INFINITY else limit


def files_left() -> int:
    """Return how many files this process may open besides those that it has."""
    return files_max() - _files_open()


def too_few_files(more: int, what: str) -> str | None:
    """Say so if this needs more files than this process may have open."""
    limit, needed = files_max(), _files_open() + more + _SPARE
    if limit >= needed:
        return None
    return f"{what} need about {needed:,} open files, and this process may have {limit:,}: {_raised_to(needed)}"


def no_file_left(more: int) -> str:
    """Say that there is no file left for those who aren't connected yet, and how many would be enough."""
    limit = files_max()
    return (
        f"no file is left for a connection, and this process may have {limit:,} open: "
        f"{_raised_to(_files_open() + more + _SPARE)}"
    )


def _files_open() -> int:
    try:
        return sum(1 for _ in Path("/dev/fd").iterdir())
    except OSError:  # None is left for looking.
        return files_max()


def _raised_to(needed: int) -> str:
    return f"raise the limit with `ulimit -n {needed}`, and start it again"
