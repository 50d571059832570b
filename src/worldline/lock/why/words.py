"""A situation in words: who holds whom, through which links, and what the holder is doing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import Any

import msgspec
from msgspec import Struct

from worldline.lock.states import Phase, State
from worldline.lock.why.reasons import LONG_S, Cause, Hop, Situation, Standing, Why
from worldline.model.text import counted
from worldline.model.time import FOREVER, format_time

# Who is at the root of a wait: the one that a participant waits for, which may wait for another, and so on to the last.
#
# Why a chain ends: one that waits could act at the earliest at the time that its holder's next send allows, and every
# latency is positive, so next sends fall strictly from each holder to its own holder (A3 of the arbiter).


Chain = tuple[Why, ...]
"""Why a participant waits, all the way: its own reason, then its holder's, and so on.

The last one's holder doesn't wait itself; or there is none, and the last one's cause says what all wait for.
"""


class Hold(Struct, frozen=True):
    """Who or what keeps participants waiting, and whom: `root` is a participant that doesn't wait itself, if it is one.

    `names` are those who aren't there, if it is for them.
    """

    root: str | None
    cause: Cause
    names: tuple[str, ...]
    held: tuple[str, ...]


def chains(whys: Iterable[Why]) -> tuple[Chain, ...]:
    """Follow each participant's reason to the root, in the order of their names."""
    reasons = {why.participant: why for why in whys}
    return tuple(_followed(why, reasons) for why in reasons.values())


def _followed(why: Why, reasons: dict[str, Why]) -> Chain:
    found = {why.participant: why}
    while why.holder in reasons and why.holder not in found:
        why = reasons[why.holder]
        found[why.participant] = why
    return tuple(found.values())


def holds(situation: Situation) -> tuple[Hold, ...]:
    """Say who or what keeps whom waiting: the one first for which one has waited longest, or most of them wait.

    After these come those who could go on and don't, and for which none waits: the run doesn't end without them. If
    none waits at all, those are all who could go on.
    """
    found: dict[tuple[str | None, Cause, tuple[str, ...]], list[str]] = {}
    for chain in chains(situation.whys):
        last = chain[-1]
        found.setdefault((last.holder, last.cause, last.missing), []).append(chain[0].participant)
    if not found and situation.phase is Phase.GATHERING and situation.missing:
        return (Hold(None, Cause.ROSTER, situation.missing, ()),)
    if not found and situation.phase is Phase.RUNNING:
        return tuple(
            Hold(each.name, Cause.SENDER, (), ())
            for each in situation.standings
            if each.state is State.COMPUTING or (each.done and each.state is not State.LEFT)
        )
    waited = {each.name: each.activity.seconds or 0.0 for each in situation.standings}
    ordered = sorted(
        found.items(),
        key=lambda item: (-max(waited.get(name, 0.0) for name in item[1]), -len(item[1]), item[0][0] or ""),
    )
    roots = {root for root, _, _ in found}
    return (
        *(Hold(root, cause, names, tuple(held)) for (root, cause, names), held in ordered),
        *(
            Hold(each.name, Cause.SENDER, (), ())
            for each in situation.standings
            if each.state is State.COMPUTING and each.stands_still and each.name not in roots
        ),
    )


# What a situation shows besides who waits for whom: what could be declared, and what makes time creep.
#
# A hint is only given for what the situation proves: that a topic was never used, that one may publish on any,
# that events bring hardly any time.

_CREEPS_BELOW = 0.001  # Simulated seconds per second.
_EVENTS_PER_HOP = 5  # At most: a message is sent, asked for and granted, and one may say where it is.
_BUSY_FROM = 100.0  # Events per second: something is done.


def hints(situation: Situation) -> list[str]:
    """Return what is worth knowing, a line each."""
    return [*_of_links(situation), *_of_pace(situation)]


def creeps(situation: Situation) -> bool:
    """Whether much happens, and time hardly moves. If it doesn't move at all, a participant stands still."""
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
        found = least_way(start, start, lambda name: [(hop.receiver, hop) for hop in outs.get(name, ())])
        if found and (not best or _total(found) < _total(best)):
            best = found
    return best


def _of_links(situation: Situation) -> list[str]:
    open_ = {each.name for each in situation.standings if each.open}
    found: dict[str, None] = {}
    for chain in chains(situation.whys):
        for hop in chain[-1].path[:1]:
            if hop.topic is None or (hop.sender, hop.topic) not in situation.unused:
                continue
            if hop.sender in open_:
                found[
                    f"{hop.sender} has sent nothing on {hop.topic} so far, and doesn't declare what it publishes: "
                    "every listener waits for it (declare `publishes`)"
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
    standings = [None if hold.root is None else situation.standing(hold.root) for hold in holds(situation)]
    return next((each.name for each in standings if each is not None and not each.stands_still), None)


def _total(loop: tuple[Hop, ...]) -> int:
    return sum(hop.latency for hop in loop)


def least_way(start: str, end: str, onward: Callable[[str], Iterable[tuple[str, Hop]]]) -> tuple[Hop, ...]:
    """Return the links with the least lookahead in all from one participant to another, or around to itself.

    `onward` says which links lead on from a participant, and to whom.
    """
    queue: list[tuple[int, int, str, tuple[Hop, ...]]] = [(0, 0, start, ())]
    met: set[str] = set()
    serial = 0
    while queue:
        distance, _, name, path = heappop(queue)
        if path:  # The start isn't met where it begins, but where the way comes back to it.
            if name == end:
                return path
            if name in met:
                continue
            met.add(name)
        for following, hop in onward(name):
            serial += 1
            heappush(queue, (distance + hop.latency, serial, following, (*path, hop)))
    return ()


def in_words(situation: Situation) -> list[str]:
    """Say everything about a situation, in lines."""
    lines = [headline(situation)]
    for hold in holds(situation):
        lines += ["", *_of_hold(hold, situation)]
    found = chains(situation.whys)
    if found and situation.phase is Phase.RUNNING:
        width = max(len(chain[0].participant) for chain in found)
        lines.append("")
        for chain in sorted(found, key=lambda chain: -_waited_s(chain, situation)):
            lines += _of_chain(chain, situation, width)
    if told := hints(situation):
        lines += ["", *told]
    return lines


def headline(situation: Situation) -> str:
    """Say where a run is, and how fast it goes."""
    if situation.phase is Phase.GATHERING:
        return f"{situation.name or 'the run'}: not started"
    held = situation.paused is not None and situation.paused <= situation.time
    at = f"paused at {format_time(situation.paused or 0)}" if held else f"at {format_time(situation.time)}"
    text = f"{situation.name or 'the run'}: {at}"
    if situation.end < FOREVER:
        text += f" of {format_time(situation.end)}"
    if situation.speed is not None and situation.rate is not None and not held:
        text += f", {situation.speed:.3g}× real time, {situation.rate:,.0f} events/s"
    return text


def holder_in_words(hold: Hold, situation: Situation) -> str:
    """Say in one line who or what keeps whom waiting."""
    return _of_hold(hold, situation)[0]


def seconds(wall_s: float) -> str:
    """Write a time of the wall clock, which is never exact."""
    if wall_s < 60:
        return f"{wall_s:.1f} s"
    minutes, rest = divmod(int(wall_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def way(hops: tuple[Hop, ...]) -> str:
    """Write links, one after the other: the names, then each link's topic and lookahead."""
    names = " → ".join([hops[0].sender, *(hop.receiver for hop in hops)])
    parts = [f"{hop.topic or 'control'} {format_time(hop.latency)}" for hop in hops]
    total = f" = {format_time(sum(hop.latency for hop in hops))}" if len(hops) > 1 else ""
    return f"{names}  ({' + '.join(parts)}{total})"


# --- Who holds whom ---


def _of_hold(hold: Hold, situation: Situation) -> list[str]:
    if hold.root is not None:
        standing = situation.standing(hold.root)
        doing = [] if standing is None else [f"  {line}" for line in doing_in_words(standing)]
        return [f"{hold.root} {_whom(hold, situation)}", *doing]
    names = ", ".join(hold.names)
    if hold.cause is Cause.ROSTER:
        there = [each.name for each in situation.standings if each.state is not State.EXPECTED]
        paused = "; an operator has paused it, too: `worldline resume`" if situation.paused is not None else ""
        begins = f"the run begins when {names} {_has(hold)} joined{paused}"
        awaited = [each for each in situation.standings if each.name in hold.names and each.activity.remark]
        known = [f"  {each.name}: {each.activity.remark}" for each in awaited]
        return [begins, f"  here: {', '.join(there) or 'none'}", *known]
    if hold.cause is Cause.NEWCOMER:
        starts = format_time(next(why.bound for why in situation.whys if why.missing == hold.names))
        return [f"{names} {_has(hold)}n't joined, and {_was(hold)} invited for {starts}: none passes that without it"]
    if hold.cause is Cause.BARRIER:
        if situation.paused is not None and situation.paused <= situation.barrier:
            at = format_time(situation.paused)
            return [f"an operator holds {_all_or_names(hold, situation)} at {at}: `worldline resume` lets them go on"]
        at = format_time(situation.barrier)
        whose = "the run keeps to real time, or its owner decides when it goes on"
        return [f"the barrier at {at} holds {_all_or_names(hold, situation)}: {whose}"]
    return [f"{', '.join(hold.held)} will be told that the run is over, when it is: its start lies beyond the end"]


def _whom(hold: Hold, situation: Situation) -> str:
    if not hold.held:
        return "keeps none waiting, but the run doesn't end without it"
    longest = max((each.activity.seconds or 0.0 for each in situation.standings if each.name in hold.held), default=0.0)
    them = f"{counted(len(hold.held), 'participant')} {'waits' if len(hold.held) == 1 else 'wait'} for it"
    standing = None if hold.root is None else situation.standing(hold.root)
    behind = "" if standing is None else standing.activity.behind
    since = f", since {behind} runs in its process" if behind else ""
    was_lost = "was lost, and " if standing is not None and standing.activity.lost else ""
    return f"{was_lost}holds {_all_or_names(hold, situation)}{since}: {them}, the longest for {seconds(longest)}"


def _all_or_names(hold: Hold, situation: Situation) -> str:
    others = [each for each in situation.standings if each.state is not State.LEFT and each.name != hold.root]
    if len(hold.held) == len([each for each in others if each.state is not State.EXPECTED]):
        everyone = "all participants" if hold.root is None else "all others"
        return everyone if len(hold.held) > 1 else hold.held[0]
    return ", ".join(hold.held)


def doing_in_words(standing: Standing) -> list[str]:
    """Say what a participant is doing that doesn't wait."""
    activity = standing.activity
    since = "" if activity.seconds is None else f" for {seconds(activity.seconds)}"
    if activity.lost:
        at = format_time(standing.now)
        return [f"it was lost at {at} ({activity.lost}), and the run has waited{since} for it to come back"]
    if standing.done:
        lines = [f"it has been told that the run is over, and hasn't left{since}"]
    elif standing.state is State.COMPUTING:
        lines = [f"it is at {format_time(standing.now)}, and has been computing{since}"]
    else:
        lines = [f"it is at {format_time(standing.now)}, {standing.state.value}{since}"]
    if activity.condition == "stopped":
        lines.append(f"its process {activity.process} is stopped: kill -CONT {activity.process} lets it go on")
    elif activity.condition == "sleeping" and (activity.seconds or 0.0) >= LONG_S:
        lines.append(f"its process {activity.process} is asleep: its program waits for something outside of the run")
    elif activity.process is not None:
        lines.append(f"its process is {activity.process}")
    if activity.remark:
        lines.append(activity.remark)
    return lines


def _has(hold: Hold) -> str:
    return "has" if len(hold.names) == 1 else "have"


def _was(hold: Hold) -> str:
    return "was" if len(hold.names) == 1 else "were"


# --- Who waits ---


def _waited_s(chain: Chain, situation: Situation) -> float:
    standing = situation.standing(chain[0].participant)
    return 0.0 if standing is None else standing.activity.seconds or 0.0


def _of_chain(chain: Chain, situation: Situation, width: int) -> Iterator[str]:
    first = chain[0]
    standing = situation.standing(chain[0].participant)
    waited = None if standing is None else standing.activity.seconds
    doing = "lost" if standing is not None and standing.activity.lost else "waiting"
    since = "" if waited is None else f", {doing} for {seconds(waited)}"
    now = format_time(first.now) if standing is None or standing.exact else f"{format_time(first.now)} or later"
    yield f"{first.participant:<{width}}  at {now}{since}: {_wants(first)}"
    for why in chain:
        if why.path:
            yield f"{'':<{width}}    {way(why.path)}{_sends(why, chain)}"


def _wants(why: Why) -> str:
    if why.state is State.JOINED:
        return f"it starts at {format_time(why.awaits)}"
    known = "" if why.cause is not Cause.SENDER else f", and knows everything before {format_time(why.bound)}"
    if why.state is State.AWAITING:
        until = "" if why.awaits >= FOREVER else f", until {format_time(why.awaits)} at most"
        return f"wants its next message{until}{known}"
    if why.state is State.PEEKING:
        return f"wants to know what arrives before {format_time(why.awaits)}{known}"
    return f"wants to go to {format_time(why.awaits)}{known}"


def _sends(why: Why, chain: Chain) -> str:
    """Say when the holder may send, and if it waits itself, that it does."""
    waits = ", waits itself" if why is not chain[-1] else ""
    return f"; {why.holder} may send from {format_time(why.holder_time)} on{waits}"


# A situation as plain values, for JSON: times in nanoseconds, null for never; with who is at the root of what.


def as_plain(situation: Situation) -> dict[str, Any]:
    """Return all that a situation says, and all that follows from it."""
    plain: dict[str, Any] = _without_forever(msgspec.to_builtins(situation))
    plain["whys"] = [
        {**why, "root": chain[-1].holder} for why, chain in zip(plain["whys"], chains(situation.whys), strict=True)
    ]
    plain["holds"] = _without_forever(msgspec.to_builtins(holds(situation)))
    plain["hints"] = hints(situation)
    return plain


def _without_forever(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_forever(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_forever(each) for each in value]
    return None if type(value) is int and value >= FOREVER else value
