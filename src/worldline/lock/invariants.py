"""Checks an arbiter's state against what the heads of `arbiter` and `bounds` promise.

The whole of it is slow, for tests. What can be seen at a grant is checked in every run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worldline.lock.bounds import Clock
from worldline.lock.member import Member
from worldline.lock.states import WAITING, Phase, State
from worldline.lock.why.reasons import exact_bounds
from worldline.model.errors import InternalError
from worldline.model.message import Message
from worldline.model.time import FOREVER, format_time

if TYPE_CHECKING:
    from worldline.lock.arbiter import Arbiter


def check_invariants(arbiter: Arbiter) -> None:
    """Raise if an invariant doesn't hold in the present state; the error names it."""
    running = arbiter.phase is Phase.RUNNING
    exact = exact_bounds(arbiter)
    for name, (bound, _) in exact.items():
        member = arbiter.members[name]
        _demand(member.granted <= bound or member.granted == member.now, "A1: granted beyond its bound", member)
        _demand(member.inbox.first >= member.granted, "A1: a message in its known past", member)
        _demand(member.now <= member.promise, "A4: a promise in the past", member)
        _demand(member.now <= max(member.granted, member.start), "A4: beyond its horizon", member)
        if running and member.state in WAITING:
            goal = arbiter.goal(member)
            if goal <= arbiter.ceiling:
                _demand(bound < goal, "A2: it could go on", member)
                _demand(member.rides_on is not None, "B3: it rides on no other", member)
        if member.rides_on is not None:
            _demand(bound < member.subgoal, "B1: what it rides for is reached", member)
            _demand(_rides_end(member), "B3: its rides don't end", member)
    if running and not any(arbiter.members[name].state is State.COMPUTING for name in exact):
        _demand(arbiter.ceiling < FOREVER, "A3: all wait", None)


def broken_grant(member: Member, now: int, messages: list[Message]) -> InternalError:
    """Return the error for a grant that leads into what a participant takes for its known past."""
    first = format_time(messages[0].arrival) if messages else "none"
    return InternalError(
        f"a grant to {format_time(now)} breaks A1 or A4: first message {first}, "
        f"granted {format_time(member.granted)}, promised {format_time(member.promise)}, {member.state.value}",
        participant=member.name,
        at=member.now,
    )


def _rides_end(member: Clock) -> bool:
    """Whether following the rides ends, at one that doesn't wait for the calculus."""
    seen: list[Clock] = []
    clock = member
    while clock.rides_on is not None:
        if clock in seen:
            return False
        seen.append(clock)
        clock = clock.rides_on
    return not clock.goal


def _demand(holds: bool, invariant: str, member: Member | None) -> None:
    if not holds:
        name, now = (None, None) if member is None else (member.name, member.now)
        raise InternalError(f"invariant broken: {invariant}", participant=name, at=now)
