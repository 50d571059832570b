"""How far a run is, for whoever shows it: a bar, a line, a page."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from worldline.model.time import FOREVER


class Wait(Struct, frozen=True):
    """Somebody can't go on: who, for whom (None: not for a member), and why, in words."""

    who: str
    holder: str | None
    why: str


class Status(Struct, frozen=True):
    """How far a run is: nothing before `time` will happen any more; `end` is FOREVER if nobody has said one.

    `waits` are those who can't go on, the one that is held back most first. What it takes long to find out is only
    there where somebody has asked for it.
    """

    time: int
    end: int = FOREVER
    events: int = 0
    waits: tuple[Wait, ...] = ()


Watch = Callable[[Status], None]
"""Told now and then how far a run is. What it raises breaks the run off."""
