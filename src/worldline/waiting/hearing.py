"""Lets an arbiter hear again what another one heard, in the same order: so every moment of a run can be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from worldline.lock.arbiter import OPERATOR, Arbiter
from worldline.lock.events import Action, CallOff, Join, Lost
from worldline.lock.states import Phase
from worldline.model.errors import UsageError, WorldlineError, shown
from worldline.model.plan import Plan
from worldline.waiting.heard import Heard, restored


class Repeated(NamedTuple):
    """Something that was heard again, and what has followed from it."""

    heard: Heard
    actions: tuple[Action, ...]


class HearingAgain:
    """An arbiter that hears what was noted. `arbiter` is as it was after what was heard last."""

    def __init__(self, plan: Plan) -> None:
        self.arbiter = Arbiter(plan)

    def hear(self, noted: Iterable[Heard]) -> Iterator[Repeated]:
        """Hear it all, one after the other. What was refused then is refused again, and nothing follows from it."""
        for heard in noted:
            if self.arbiter.phase is Phase.OVER:
                return
            yield Repeated(heard, self._hear(heard))

    def _hear(self, heard: Heard) -> tuple[Action, ...]:
        arbiter = self.arbiter
        if any(isinstance(event, Lost | CallOff) for event in heard.events) and heard.who == OPERATOR:
            return ()  # The run was broken off: it is looked at as it was just then.
        events = restored(heard.events)
        is_known = heard.who == OPERATOR or heard.who in arbiter.members
        first = events[0] if events else None
        if not is_known and not isinstance(first, Join):
            raise UsageError(f"what was noted can't be: {shown(heard.who)} says something, and never joined")
        try:
            if not is_known and isinstance(first, Join):
                arbiter.enroll(heard.who, first)
            return tuple(arbiter.hear(heard.who, events))
        except WorldlineError:
            return ()
