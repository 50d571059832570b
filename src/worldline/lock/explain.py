"""Reads an arbiter's state to say why somebody waits."""

from __future__ import annotations

from typing import Any

from worldline.history.status import THE_RUN, WaitReason
from worldline.lock.bounds import Clock, fixpoint
from worldline.lock.member import Member
from worldline.lock.states import ASKING, STARTED, Phase, State
from worldline.lock.view import View
from worldline.lock.why import Cause, Hop, Why
from worldline.model.plan import Plan

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
