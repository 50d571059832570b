"""A table at which participants speak to an arbiter one after the other, for tests that spell an order out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from worldline.lock import (
    OPERATOR,
    Action,
    Arbiter,
    Event,
    Grant,
    Join,
    Leave,
    Over,
    ParticipantEvent,
    Subscription,
    Why,
)
from worldline.lock.events import OperatorEvent
from worldline.model import Network, plan


class Table:
    """An arbiter whose participants have joined; invariants are checked after every event."""

    def __init__(
        self,
        *names: str,
        network: Network | None = None,
        subscribes: Sequence[str] | Mapping[str, Sequence[str]] = (),
        joins: Mapping[str, Join] | None = None,
        end: int | None = None,
    ) -> None:
        self.arbiter = Arbiter(plan(names, network=network, until=end))
        self.digest: bytes | None = None
        for name in names:
            topics = subscribes.get(name, ()) if isinstance(subscribes, Mapping) else subscribes
            join = Join(subscribes=tuple(Subscription(topic) for topic in topics))
            self.handle(name, join if joins is None else joins[name])

    def say(self, name: str, event: ParticipantEvent) -> dict[str, Grant]:
        """Let a participant speak; return who is granted what by it."""
        return {action.to: action for action in self.handle(name, event) if isinstance(action, Grant)}

    def operate(self, event: OperatorEvent) -> dict[str, Grant]:
        return {action.to: action for action in self.handle(OPERATOR, event) if isinstance(action, Grant)}

    def leaving(self, name: str, last: ParticipantEvent) -> dict[str, Grant]:
        """Let a participant say one last thing and leave; return who is granted what by either."""
        return {**self.say(name, last), **self.leave(name)}

    def leave(self, name: str) -> dict[str, Grant]:
        return self.say(name, Leave(self.arbiter.participants()[name][1]))

    def why(self, name: str) -> Why:
        return next(why for why in self.arbiter.why() if why.participant == name)

    def handle(self, who: str, event: Event) -> tuple[Action, ...]:
        actions = self.arbiter.handle(who, event)
        self.arbiter.check_invariants()
        for action in actions:
            if isinstance(action, Over):
                self.digest = action.digest
        return actions
