"""A participant as the arbiter sees it."""

from __future__ import annotations

from typing import Any

from worldline.lock.bounds import Clock
from worldline.lock.events import Join
from worldline.lock.inbox import Inbox
from worldline.lock.states import RETIRED, ROWS, State, StateRow
from worldline.model.links import Buffer
from worldline.model.time import FOREVER


class Member(Clock):
    """One participant: its clock in the calculus, its place in the table of states, and what it has declared."""

    __slots__ = (
        "_moves",
        "awaits",
        "controls",
        "declared",
        "declared_reach",
        "digest",
        "downtimes",
        "expects",
        "granted",
        "held",
        "inbox",
        "latency_least",
        "legal",
        "logged",
        "logged_at",
        "now",
        "outstanding",
        "publications",
        "publishes",
        "reach",
        "sequence",
        "since",
        "spent",
        "start",
        "state",
        "subscriptions",
        "sweep_at",
        "undeclared",
    )

    def __init__(self, name: str, start: int) -> None:
        super().__init__(name, start)
        self.begin_at(start)
        self.reach = 0  # How far it may peek; see `StartRun`.
        self.declared_reach = 0  # That, as long as it hears nothing but what it has declared at joining,
        self.declared: dict[str, None] = {}  # which is this;
        self.undeclared: dict[str, None] = {}  # and what it hears besides.
        self.expects = False  # Whether it waits to know its next message, whatever it does then.
        self.held = FOREVER  # The first arrival that it holds itself from an earlier grant, while it expects one.
        self.since = 0  # The number of the event with which its waiting began.
        self.sequence = 0
        self.outstanding = 0  # Bytes of what it has sent that somebody may still have to be given; about.
        self.logged = 0  # Bytes that it has logged at one time of its own,
        self.logged_at = 0  # and when.
        self.digest = b""
        self.inbox = Inbox()
        self.publications: dict[str, Any] = {}  # By topic; the router's.
        self.spent: dict[str, int] = {}  # Topics that it has published on and that are out of use: how many messages.
        self.sweep_at = 0  # How many publications there must be before the router looks for spent ones.
        self.publishes: dict[str, None] | None = {}
        self.subscriptions: dict[str, Buffer] = {}
        self.downtimes: dict[str, tuple[int, int]] = {}  # Topic → from when to when what arrives is lost, last time.
        self.latency_least = 0
        self.controls = False
        self._enter(ROWS[State.EXPECTED])

    def begin_at(self, start: int) -> None:
        self.start = start
        self.now = start
        self.awaits = start  # The time that it has asked for.
        self.granted = start  # Up to where it has been told everything.

    def _enter(self, row: StateRow) -> None:
        self._moves = row.moves
        self.state = row.state
        self.legal = row.legal

    def move(self, kind: type) -> None:
        """Go where the table says that this event or action leads."""
        row = self._moves[kind]
        self._moves = row.moves
        self.state = row.state
        self.legal = row.legal

    def retire(self) -> None:
        """It has been told that the run has ended for it."""
        self._enter(RETIRED)

    @property
    def is_done(self) -> bool:
        """Whether it acts no more: it has left, or has been told that the run has ended for it."""
        return self.state is State.LEFT or self.legal is RETIRED.legal

    def introduce(self, join: Join) -> None:
        self.publishes = None if join.publishes is None else dict.fromkeys(join.publishes)
        self.subscriptions = {subscription.topic: subscription.buffer for subscription in join.subscribes}
        self.declared = {topic: None for topic, buffer in self.subscriptions.items() if buffer.limit != 0}
        self.latency_least = join.latency_least
        self.controls = join.controls

    def may_publish(self, topic: str) -> bool:
        return self.publishes is None or topic in self.publishes

    def hears(self, topic: str, is_heard: bool) -> None:
        """Change how far it may peek: another topic may reach it sooner than those that it has joined with."""
        if is_heard and topic not in self.declared:
            self.undeclared[topic] = None
        else:
            self.undeclared.pop(topic, None)
        self.reach = 0 if self.undeclared else self.declared_reach

    @property
    def topics(self) -> int:
        """How many topics the arbiter keeps something of on this participant's behalf."""
        return max(len(self.publications) + len(self.spent), len(self.publishes or ())) + len(self.subscriptions)
