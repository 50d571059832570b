"""Why a participant can't go on yet: read from an arbiter's state, as values that every front end renders."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from worldline.history.outcome import ALL_OTHERS, THE_RUN, WaitReason
from worldline.lock.bounds import Clock, fixpoint
from worldline.lock.member import Member
from worldline.lock.states import ASKING, STARTED, WAITING, Phase, State
from worldline.model.plan import Plan
from worldline.model.time import FOREVER, format_time

if TYPE_CHECKING:
    from worldline.lock.arbiter import Arbiter  # It has itself explained here.


class Cause(Enum):
    """What keeps a participant waiting."""

    SENDER = "sender"
    """A participant may still send something that arrives before the time asked for."""
    ROSTER = "roster"
    """The run hasn't started: a participant on the roster isn't there."""
    NEWCOMER = "newcomer"
    """A participant was invited for an earlier time and isn't there."""
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


Exact = dict[str, tuple[int, list[tuple[Clock, int]]]]


def exact_bounds(arbiter: Arbiter, *others: Member) -> Exact:
    """Return the exact bounds of all who have started, and of others; by the plain way, not the incremental one."""
    return fixpoint([*(member for member in arbiter.members.values() if member.state in STARTED), *others])


def explain(arbiter: Arbiter) -> tuple[Why, ...]:
    """Say of all who wait who keeps them waiting, in the order of their names."""
    if arbiter.phase is Phase.OVER:
        return ()
    exact = exact_bounds(arbiter)
    waiting = sorted(name for name, member in arbiter.members.items() if member.state in ASKING)
    hops: dict[tuple[str, str], Hop] = {}  # Many wait for the same.
    return tuple(_explain(arbiter, arbiter.members[name], exact, hops) for name in waiting)


def waits_of(arbiter: Arbiter) -> tuple[WaitReason, ...]:
    """Say who can't go on and who is in its way, for a status: the one that is held back most first."""
    if arbiter.phase is Phase.GATHERING:
        absent = (*arbiter.missing(), *vacant(arbiter.plan))
        return tuple(WaitReason(THE_RUN, name, f"it begins when {name} has joined") for name in absent)
    held = sorted(explain(arbiter), key=lambda why: (why.holder is None, why.bound))
    return tuple(WaitReason(why.participant, why.holder, str(why)) for why in held)


def waits_of_processes(arbiter: Arbiter) -> tuple[WaitReason, ...]:
    """Say the same where participants compute at the same time: if none is held by another, the run waits for one."""
    waits = waits_of(arbiter)
    return waits if waits and waits[0].holder is not None else (*_computing(arbiter), *waits)


def _computing(arbiter: Arbiter) -> tuple[WaitReason, ...]:
    """Say who is furthest behind of those who compute."""
    members = arbiter.members.values()
    computing = [member for member in members if member.state is State.COMPUTING and not member.is_done]
    if not computing:
        return ()
    last = min(computing, key=lambda member: (member.now, member.name))
    return (WaitReason(ALL_OTHERS, last.name, f"{last.name} is computing at {format_time(last.now)}"),)


def vacant(plan: Plan) -> tuple[str, ...]:
    """Say how many are still to come whose names aren't known yet."""
    return (f"{plan.vacancies} more",) if plan.vacancies else ()


def _explain(arbiter: Arbiter, member: Member, exact: Exact, known: dict[tuple[str, str], Hop]) -> Why:
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


# A run at one moment, as a value: where all are, who waits for whom, and why.
#
# It is what an operator is told, so it can travel, and everything that is shown of a run is made from it alone. Times
# of the wall clock are passed in, since the lock has none.

LONG_S = 1.0
"""Less, in seconds of the wall clock, may well be the usual time that something takes."""


class Activity(Struct, frozen=True, kw_only=True):
    """What is known of a participant besides what the lock knows: its process, and what is in its way.

    `seconds` is for how long, in wall-clock time, it has been in its state. `process` is its process, if that is on the
    server's machine, and `condition` what the system says of that: running, sleeping, blocked or stopped. `remark` says
    what else there is to know. `behind` is who runs in its process, so that it can't. `lost` says why it isn't there,
    if it was lost and may come back; it has been away for `seconds`.
    """

    seconds: float | None = None
    process: int | None = None
    condition: str = ""
    remark: str = ""
    behind: str = ""
    lost: str = ""


class Standing(Struct, frozen=True, kw_only=True):
    """One participant at that moment.

    `promise` is a time before which it sends nothing. `sent` counts its messages. One that is `open` may publish on any
    topic, and one that is `done` has been told that the run has ended for it. Unless `exact`, it has gone on by itself
    since `now`, as far as it was allowed to, and only it knows where it is.
    """

    name: str
    state: State
    now: int
    promise: int
    sent: int
    open: bool
    done: bool
    exact: bool = True
    activity: Activity = Activity()

    @property
    def stands_still(self) -> bool:
        """Whether it could go on and doesn't: it is stopped or lost, can't run, or has computed for long."""
        activity = self.activity
        if activity.lost or activity.behind or activity.condition == "stopped":
            return True
        return self.state is State.COMPUTING and (activity.seconds or 0.0) >= LONG_S


class Situation(Struct, frozen=True, kw_only=True):
    """A run at one moment. `name` is the run's.

    Before `time` nothing will happen any more. `paused` is where an operator holds all. `speed` is how many
    simulated seconds pass in a second, and `rate` how many events there are in one, both lately. `unused` are topics
    among those that are waited for on which nothing was ever sent: (sender, topic). `links` are all ways from
    one to another, if the operator wants to know them.
    """

    name: str
    phase: Phase
    time: int
    end: int
    barrier: int
    paused: int | None
    events: int
    missing: tuple[str, ...]
    standings: tuple[Standing, ...]
    whys: tuple[Why, ...]
    unused: tuple[tuple[str, str], ...]
    speed: float | None = None
    rate: float | None = None
    links: tuple[Hop, ...] = ()

    def standing(self, name: str) -> Standing | None:
        return next((each for each in self.standings if each.name == name), None)


def situation_of(
    arbiter: Arbiter,
    name: str,
    activities: Mapping[str, Activity],
    *,
    events: int,
    time: int,
    paused: int | None = None,
    speed: float | None = None,
    rate: float | None = None,
    with_links: bool = False,
) -> Situation:
    """Look at an arbiter, which stays as it is. `time` and `events` are its status."""
    whys = explain(arbiter)
    return Situation(
        name=name,
        phase=arbiter.phase,
        time=time,
        end=arbiter.end,
        barrier=arbiter.barrier,
        paused=paused,
        events=events,
        missing=(*arbiter.missing(), *vacant(arbiter.plan)),
        standings=tuple(
            _standing(arbiter, member, activities.get(each)) for each, member in sorted(arbiter.members.items())
        ),
        whys=whys,
        unused=_unused(arbiter, whys),
        speed=speed,
        rate=rate,
        links=all_links(arbiter) if with_links else (),
    )


def all_links(arbiter: Arbiter) -> tuple[Hop, ...]:
    """Return the edges of the calculus between all who have started, each with the topic that sets its latency."""
    return tuple(
        Hop(sender.name, receiver.name, arbiter.router.edges.named(sender, receiver)[1], latency)
        for _, receiver in sorted(arbiter.members.items())
        for sender, latency in sorted(receiver.ins, key=lambda edge: edge[0].name)
        if isinstance(sender, Member) and latency < FOREVER and sender.state is not State.LEFT
    )


def _standing(arbiter: Arbiter, member: Member, activity: Activity | None) -> Standing:
    is_at_end = member.state is State.COMPUTING and member.now == member.granted == arbiter.end
    return Standing(
        name=member.name,
        state=member.state,
        now=member.now,
        promise=member.promise,
        sent=member.sequence,
        open=member.publishes is None,
        done=member.is_done or is_at_end,
        exact=member.state not in WAITING or member.granted <= member.now,
        activity=activity or Activity(),
    )


def _unused(arbiter: Arbiter, whys: tuple[Why, ...]) -> tuple[tuple[str, str], ...]:
    ways = {(hop.sender, hop.topic): None for why in whys for hop in why.path if hop.topic is not None}
    return tuple(
        sorted((sender, topic) for sender, topic in ways if topic and not _has_sent(arbiter.members[sender], topic))
    )


def _has_sent(sender: Member, topic: str) -> bool:
    return topic in sender.publications or topic in sender.spent
