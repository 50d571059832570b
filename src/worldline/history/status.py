"""How far a run is, for whoever shows it: a bar, a line, a page."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from worldline.model.time import FOREVER

THE_RUN = "the run"
"""Who waits as long as nobody can go on: the run hasn't begun, because somebody isn't there."""

EVERYBODY_ELSE = "everybody else"
"""Who waits while one member computes, where only one can at a time."""


class WaitReason(Struct, frozen=True):
    """Somebody can't go on: who, for whom (None: not for a member), and why, in words."""

    who: str
    holder: str | None
    why: str


class Status(Struct, frozen=True):
    """How far a run is: nothing before `time` will happen any more; `end` is FOREVER if nobody has said one.

    `waits` are those who can't go on, the one that is held back most first. It may take long to find that out, so it
    isn't done before somebody wants to know: then, and only while it is told how far the run is, as it is then.
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
