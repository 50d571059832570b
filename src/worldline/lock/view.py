"""What may be read of an arbiter by those who explain, check and show it: they change nothing."""

from __future__ import annotations

from typing import Protocol

from worldline.lock.member import Member
from worldline.lock.router import Router
from worldline.lock.states import Phase
from worldline.model.plan import Plan


class View(Protocol):
    """An arbiter, for reading. It isn't imported here: it has itself explained, and that would be a circle."""

    plan: Plan
    phase: Phase
    end: int
    barrier: int
    ceiling: int
    members: dict[str, Member]
    newcomers: dict[str, Member]
    router: Router

    def goal(self, member: Member) -> int:
        """Return the bound that a waiting member needs to go on."""

    def missing(self) -> list[str]:
        """Return who of the roster isn't there yet."""
