"""Why a participant can't go on yet, as a value that every front end renders."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from worldline.lock.states import State
from worldline.model.time import FOREVER, format_time


class Cause(Enum):
    """What keeps a participant waiting."""

    SENDER = "sender"
    """A participant may still send something that arrives before the time asked for."""
    ROSTER = "roster"
    """The run hasn't started: somebody on the roster isn't there."""
    NEWCOMER = "newcomer"
    """Somebody was invited for an earlier time and isn't there."""
    BARRIER = "barrier"
    """The operator's barrier."""
    END = "end"
    """It was invited for a time after the end of the run, and will be told so when the run is over."""


class Hop(Struct, frozen=True):
    """One step from the holder to the waiting participant; a topic of None is the control link of invite and stop."""

    sender: str
    receiver: str
    topic: str | None
    latency: int

    def __str__(self) -> str:
        return f"{self.sender} → {self.receiver} ({self.topic or 'control'}, {format_time(self.latency)})"


def _has(names: tuple[str, ...]) -> str:
    return "has" if len(names) == 1 else "have"


class Why(Struct, frozen=True):
    """Why `participant`, at `now`, isn't at `awaits`.

    `bound` is how far it could go; `holder` is who keeps it there, `holder_time` the earliest time at which the
    holder may still send, and `path` the links from the holder to the participant. `since` is the number of the event
    that the waiting began with: the lock has no clock.
    """

    participant: str
    state: State
    now: int
    awaits: int
    cause: Cause
    bound: int
    since: int
    holder: str | None = None
    holder_state: State | None = None
    holder_time: int = FOREVER
    path: tuple[Hop, ...] = ()
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        asked = "its next message until" if self.state is State.AWAITING else "time"
        waits = "wants to know all before" if self.state is State.PEEKING else f"waits for {asked}"
        text = f"{self.participant} at {format_time(self.now)} {waits} {format_time(self.awaits)}: "
        if self.cause is Cause.ROSTER:
            return text + f"the run starts when {', '.join(self.missing)} {_has(self.missing)} joined"
        if self.cause is Cause.NEWCOMER:
            invited = f"{', '.join(self.missing)}, invited for {format_time(self.bound)},"
            return text + f"{invited} {_has(self.missing)}n't joined yet"
        if self.cause is Cause.END:
            return text + f"the run ends at {format_time(self.bound)}, before its start"
        if self.cause is Cause.BARRIER:
            return text + f"the barrier is at {format_time(self.bound)}"
        state = self.holder_state.value if self.holder_state else "unknown"
        hops = ", ".join(str(hop) for hop in self.path)
        return text + (
            f"{self.holder} ({state}) may still send from {format_time(self.holder_time)} on, "
            f"so everything is known only before {format_time(self.bound)}; via {hops}"
        )
