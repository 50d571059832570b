"""The lock: who may act when, so that the history depends on the inputs alone."""

from worldline.lock.arbiter import OPERATOR, Arbiter
from worldline.lock.events import (
    Abort, Action, Advance, Barrier, End, Event, Grant, Invite, Join, Leave, Lost, Next, Over, ParticipantEvent, Promise, Publish, Reached, Start,
    Stop, Subscribe, Subscription, Unsubscribe,
)  # fmt: skip
from worldline.lock.journal import Journal, Received, Sent
from worldline.lock.ledger import Ledger, RunEnded
from worldline.lock.states import Phase, State
from worldline.lock.why import Cause, Hop, Why

__all__ = [
    "OPERATOR", "Abort", "Action", "Advance", "Arbiter", "Barrier", "Cause", "End", "Event", "Grant", "Hop", "Invite", "Join", "Journal", "Leave",
    "Ledger", "Lost", "Next", "Over", "ParticipantEvent", "Phase", "Promise", "Publish", "Reached", "Received", "RunEnded", "Sent", "Start", "State", "Stop",
    "Subscribe", "Subscription", "Unsubscribe", "Why",
]  # fmt: skip
