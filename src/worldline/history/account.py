"""A run as it is told after it is over: all that was sent, in one order, and who took part from when to when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from worldline.model.time import FOREVER

Fate = tuple[int, str, int, str | None]
"""Arrival, receiver, copy, and the reason if it got lost."""

Sending = tuple[int, str, str, bytes | None, list[Fate], int]
"""When it was sent, by whom, topic, payload, what became of it, and its sender's number for it.

A plain tuple, since there are millions of them. A note is one that concerns nobody. Without a payload it is the rest of
one whose beginning wasn't read.
"""


class Membership(NamedTuple):
    """From when to when a member took part, and the hash of all that it received and sent."""

    began: int
    ended: int | None = None
    chain: str | None = None


@dataclass
class Account:
    """What is told of a run, ordered by the times of sending, the senders' names and their numbers.

    `until` counts once everything is told: what was sent from then on may be missing. If the account isn't complete,
    others than those in `stays` may have come later, but of those who were `planned` all are there.
    """

    sendings: Iterable[Sending]
    stays: Mapping[str, Membership] = field(default_factory=dict)
    planned: Collection[str] = ()
    until: int = FOREVER
    is_complete: bool = True

    def lacks(self, name: str, other: Account) -> bool:
        """Whether a member of another run takes no part in this one, as far as that can be known."""
        if name in self.stays or name in self.planned:
            return False
        return self.is_complete or name in other.planned

    @property
    def ended(self) -> int:
        """When the last one ended; FOREVER, if that isn't known."""
        ends = [stay.ended for stay in self.stays.values() if stay.ended is not None]
        return max(ends) if ends and self.is_complete else FOREVER
