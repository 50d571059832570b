"""Why a participant can't go on yet: read from an arbiter's state, as values that every front end renders."""

from __future__ import annotations

from enum import Enum
from typing import Any, Protocol

from msgspec import Struct

from worldline.history.status import THE_RUN, WaitReason
from worldline.lock.bounds import Clock, fixpoint
from worldline.lock.member import Member
from worldline.lock.router import Router
from worldline.lock.states import ASKING, STARTED, Phase, State
from worldline.model.plan import Plan
from worldline.model.time import FOREVER, format_time

# Why a participant can't go on yet, as a value that every front end renders.


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


# What may be read of an arbiter by those who explain, check and show it: they change nothing.


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


Exact = dict[str, tuple[int, list[tuple[Clock, int]]]]


def exact_bounds(arbiter: View, *others: Member) -> Exact:
    """Return the exact bounds of all who have started, and of others; by the plain way, not the incremental one."""
    return fixpoint([*(member for member in arbiter.members.values() if member.state in STARTED), *others])


def explain(arbiter: View) -> tuple[Why, ...]:
    """Say of everybody who waits who keeps it waiting, in the order of their names."""
    if arbiter.phase is Phase.OVER:
        return ()
    exact = exact_bounds(arbiter)
    waiting = sorted(name for name, member in arbiter.members.items() if member.state in ASKING)
    hops: dict[tuple[str, str], Hop] = {}  # Many wait for the same.
    return tuple(_explain(arbiter, arbiter.members[name], exact, hops) for name in waiting)


def waits_of(arbiter: View) -> tuple[WaitReason, ...]:
    """Say who can't go on and who is in its way, for a status: the one that is held back most first."""
    if arbiter.phase is Phase.GATHERING:
        absent = (*arbiter.missing(), *vacant(arbiter.plan))
        return tuple(WaitReason(THE_RUN, name, f"it begins when {name} has joined") for name in absent)
    held = sorted(explain(arbiter), key=lambda why: (why.holder is None, why.bound))
    return tuple(WaitReason(why.participant, why.holder, str(why)) for why in held)


def vacant(plan: Plan) -> tuple[str, ...]:
    """Say how many are still to come whose names nobody knows yet."""
    return (f"{plan.vacancies} more",) if plan.vacancies else ()


def _explain(arbiter: View, member: Member, exact: Exact, known: dict[tuple[str, str], Hop]) -> Why:
    def because(cause: Cause, bound: int, **more: Any) -> Why:
        return Why(member.name, member.state, member.now, member.awaits, cause, bound, member.since, **more)

    if arbiter.phase is Phase.GATHERING:
        return because(Cause.ROSTER, 0, missing=(*arbiter.missing(), *vacant(arbiter.plan)))
    if member.state is State.JOINED and member.start > arbiter.end:
        return because(Cause.END, arbiter.end)
    if arbiter.goal(member) > arbiter.ceiling:
        if arbiter.ceiling == arbiter.barrier:
            return because(Cause.BARRIER, arbiter.ceiling)
        late = sorted(newcomer.name for newcomer in arbiter.newcomers.values() if newcomer.start == arbiter.ceiling)
        return because(Cause.NEWCOMER, arbiter.ceiling, missing=tuple(late))
    if member.name not in exact:
        exact = exact_bounds(arbiter, member)
    bound, chain = exact[member.name]
    hops, receiver = [], member
    for clock, latency in chain:
        sender = arbiter.members[clock.name]
        hop = known.get((sender.name, receiver.name))
        if hop is None:
            # Before a newcomer's start only an earlier invitation or the end concern it, whatever it will listen to.
            topic = None if receiver.state is State.JOINED else arbiter.router.edges.named(sender, receiver)[1]
            hop = known[sender.name, receiver.name] = Hop(sender.name, receiver.name, topic, latency)
        hops.append(hop)
        receiver = sender
    return because(
        Cause.SENDER,
        bound,
        holder=receiver.name,
        holder_state=receiver.state,
        holder_time=receiver.send(exact[receiver.name][0]),
        path=tuple(reversed(hops)),
    )
