"""What a situation shows besides who waits for whom: what could be declared, and what makes time creep.

A hint is only given for what the situation proves: that a topic was never used, that somebody may publish on any, that
events bring hardly any time.
"""

from __future__ import annotations

from heapq import heappop, heappush

from worldline.lock.states import Phase
from worldline.lock.why.chains import chains, holds
from worldline.lock.why.reasons import Hop
from worldline.lock.why.situation import Situation
from worldline.model.time import format_time

_CREEPS_BELOW = 0.001  # Simulated seconds per second.
_EVENTS_PER_HOP = 5  # At most: a message is sent, asked for and granted, and somebody may say where it is.
_BUSY_FROM = 100.0  # Events per second: somebody does something.


def hints(situation: Situation) -> list[str]:
    """Return what is worth knowing, a line each."""
    return [*_of_links(situation), *_of_pace(situation)]


def creeps(situation: Situation) -> bool:
    """Whether much happens, and time hardly moves. If it doesn't move at all, somebody stands still."""
    return (
        situation.phase is Phase.RUNNING
        and situation.rate is not None
        and situation.speed is not None
        and situation.rate > _BUSY_FROM
        and 0.0 < situation.speed < _CREEPS_BELOW
    )


def tightest_loop(links: tuple[Hop, ...]) -> tuple[Hop, ...]:
    """Return the links of the loop with the least lookahead in all; empty if there is no loop."""
    outs: dict[str, list[Hop]] = {}
    for hop in links:
        outs.setdefault(hop.sender, []).append(hop)
    best: tuple[Hop, ...] = ()
    for start in sorted(outs):
        found = _loop_from(start, outs)
        if found and (not best or _total(found) < _total(best)):
            best = found
    return best


def _of_links(situation: Situation) -> list[str]:
    open_ = {each.name for each in situation.standings if each.open}
    found: dict[str, None] = {}
    for chain in chains(situation.whys):
        for hop in chain.whys[-1].path[:1]:
            if hop.topic is None or (hop.sender, hop.topic) not in situation.unused:
                continue
            if hop.sender in open_:
                found[
                    f"{hop.sender} has sent nothing on {hop.topic} so far, and doesn't declare what it publishes: "
                    "whoever listens to anything waits for it (declare `publishes`)"
                ] = None
            else:
                found[
                    f"{hop.sender} has sent nothing on {hop.topic} so far, and {hop.receiver} waits for it all the "
                    f"same, since it might: a `period`, a promise or a latency above {format_time(hop.latency)} "
                    "would say more"
                ] = None
    return list(found)


def _of_pace(situation: Situation) -> list[str]:
    if not creeps(situation) or not situation.rate or situation.speed is None:
        return []
    each = max(0.0, situation.speed * 1e9 / situation.rate)
    step = format_time(round(each)) if each >= 1 else "less than 1ns"
    text = f"time creeps: {situation.rate:,.0f} events/s move it on by {step} each"
    loop = tightest_loop(situation.links)
    if loop and each <= _total(loop) <= _EVENTS_PER_HOP * len(loop) * each:
        names = " → ".join([loop[0].sender, *(hop.receiver for hop in loop)])
        text += f"; messages can go around {names} in {format_time(_total(loop))}"
    elif mover := _mover(situation):
        text += f"; {mover} is the one that goes on in such small steps"
    else:
        return []  # All that could go on stand still, so it creeps no longer.
    return [text]


def _mover(situation: Situation) -> str | None:
    """Return the one that others wait for, if it does go on; the first of them, if there are several."""
    roots = [None if hold.root is None else situation.standing(hold.root) for hold in holds(situation)]
    return next((each.name for each in roots if each is not None and not each.stands_still), None)


def _total(loop: tuple[Hop, ...]) -> int:
    return sum(hop.latency for hop in loop)


def _loop_from(start: str, outs: dict[str, list[Hop]]) -> tuple[Hop, ...]:
    """Return the shortest way from a participant back to itself."""
    queue: list[tuple[int, int, str, tuple[Hop, ...]]] = [(0, 0, start, ())]
    met: set[str] = set()
    serial = 0
    while queue:
        distance, _, name, path = heappop(queue)
        if path:  # The start isn't met where it begins, but where the way comes back to it.
            if name == start:
                return path
            if name in met:
                continue
            met.add(name)
        for hop in outs.get(name, ()):
            serial += 1
            heappush(queue, (distance + hop.latency, serial, hop.receiver, (*path, hop)))
    return ()
