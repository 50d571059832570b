"""What comes of a run, whichever room has made it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from worldline.history.observer import OUTSIDE
from worldline.model.errors import WorldlineError
from worldline.model.text import counted


class End(NamedTuple):
    """When a member ended, and the hash of all that it received and sent."""

    at: int
    chain: bytes


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run has come to: its digest, its time, and who took part.

    `dropped` counts messages by (receiver, topic, reason). `failure` is what ended the run before its time, where that
    is an outcome and not raised; if it `is_cut`, not all of the moment `now` has happened. Rooms add what only they
    know.
    """

    digest: bytes
    now: int
    events: int
    members: dict[str, End] = field(default_factory=dict, repr=False)
    dropped: dict[tuple[str, str, str], int] = field(default_factory=dict)
    failure: WorldlineError | None = None
    is_cut: bool = False

    @property
    def names(self) -> list[str]:
        """Who took part; what a run was sent from outside has a chain among its members, and no name."""
        return [name for name in self.members if name != OUTSIDE]

    @property
    def times(self) -> dict[str, int]:
        """When everybody ended, by name."""
        return {name: end.at for name, end in self.members.items()}

    def remarks(self) -> list[str]:
        """Say what whoever ran it should know, though nothing went wrong."""
        return []

    def __str__(self) -> str:
        return f"{counted(self.events, 'event')}, digest {self.digest.hex()}"
