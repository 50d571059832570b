"""What comes of a run, whichever room has made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct

from worldline.history.monitor import Monitors
from worldline.history.observer import OUTSIDE
from worldline.model.errors import WorldlineError
from worldline.model.text import counted, facts_html
from worldline.model.time import FOREVER, format_time

# How far a run is, for those who show it: a bar, a line, a page.

THE_RUN = "the run"
"""Who waits as long as none can go on: the run hasn't begun, because a participant isn't there."""

ALL_OTHERS = "all others"
"""Who waits while one member computes: only one can at a time, or no other is in the way of any."""


class WaitReason(Struct, frozen=True):
    """A member can't go on: who, for whom (None: not for a member), and why, in words."""

    who: str
    holder: str | None
    why: str


class Status(Struct, frozen=True):
    """How far a run is: nothing before `time` will happen any more; `end` is FOREVER if there is none.

    `waits` are those who can't go on, the one that is held back most first. It may take long to find that out, so it
    isn't done before it is asked for: then, and only while it is told how far the run is, as it is then.
    """

    time: int
    end: int = FOREVER
    events: int = 0
    ask: Callable[[], tuple[WaitReason, ...]] = tuple

    def __repr__(self) -> str:
        return f"Status(time={self.time}, end={self.end}, events={self.events})"

    @property
    def waits(self) -> tuple[WaitReason, ...]:
        return self.ask()


Watch = Callable[[Status], None]
"""Told now and then how far a run is. What it raises breaks the run off."""


class End(NamedTuple):
    """When a member ended, and the hash of all that it received and sent."""

    at: int
    chain: bytes


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run has come to: its digest, its time, and who took part.

    `dropped` counts messages by (receiver, topic, reason). `failure` is what ended the run before its time, where that
    is an outcome and not raised; if it `is_cut`, not all of the moment `now` has happened. Rooms add what only they
    know. `monitors` are what members have measured, by (member, name).
    """

    digest: bytes
    now: int
    events: int
    members: dict[str, End] = field(default_factory=dict, repr=False)
    dropped: dict[tuple[str, str, str], int] = field(default_factory=dict)
    failure: WorldlineError | None = None
    is_cut: bool = False
    monitors: Monitors = field(default_factory=Monitors, repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether the run has come to its end."""
        return self.failure is None

    @property
    def names(self) -> list[str]:
        """Who took part; what a run was sent from outside has a chain among its members, and no name."""
        return [name for name in self.members if name != OUTSIDE]

    @property
    def times(self) -> dict[str, int]:
        """When each ended, by name."""
        return {name: end.at for name, end in self.members.items()}

    def remarks(self) -> list[str]:
        """Say what its caller should know, though nothing went wrong."""
        return []

    def __str__(self) -> str:
        return f"{counted(self.events, 'event')}, digest {self.digest.hex()}"

    def _repr_html_(self) -> str:
        """Show it in a notebook: what it has come to, what its caller should know, and what was measured."""
        lost = sum(self.dropped.values())
        facts: list[tuple[str, object]] = [("digest", self.digest.hex()), ("time", format_time(self.now))]
        facts += [("members", f"{len(self.names):,}"), ("events", f"{self.events:,}")]
        facts += [("messages not received", f"{lost:,}")] if lost else []
        facts += [("failure", self.failure)] if self.failure is not None else []
        facts += [("remark", remark) for remark in self.remarks()]
        return facts_html(type(self).__name__, facts) + self.monitors._repr_html_()
