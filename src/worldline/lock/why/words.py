"""A situation in words: who holds whom, through which links, and what the holder is doing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from worldline.lock.states import Phase, State
from worldline.lock.why.chains import Hold, HoldingChain, chains, holds
from worldline.lock.why.hints import hints
from worldline.lock.why.reasons import Cause, Hop, Why
from worldline.lock.why.situation import LONG_S, Situation, Standing
from worldline.model.text import counted
from worldline.model.time import FOREVER, format_time


def in_words(situation: Situation) -> list[str]:
    """Say everything about a situation, in lines."""
    lines = [headline(situation)]
    for hold in holds(situation):
        lines += ["", *_of_hold(hold, situation)]
    found = chains(situation.whys)
    if found and situation.phase is Phase.RUNNING:
        width = max(len(chain.who) for chain in found)
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
    text = f"{situation.name or 'the run'}: at {format_time(situation.time)}"
    if situation.end < FOREVER:
        text += f" of {format_time(situation.end)}"
    if situation.speed is not None and situation.rate is not None:
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
        return [begins, f"  here: {', '.join(there) or 'nobody'}", *known]
    if hold.cause is Cause.NEWCOMER:
        starts = format_time(next(why.bound for why in situation.whys if why.missing == hold.names))
        return [f"{names} {_has(hold)}n't joined, and {_was(hold)} invited for {starts}: nobody passes that without it"]
    if hold.cause is Cause.BARRIER:
        if situation.paused is not None and situation.paused <= situation.barrier:
            at = format_time(situation.paused)
            return [f"an operator holds {_everybody(hold, situation)} at {at}: `worldline resume` lets them go on"]
        at = format_time(situation.barrier)
        whose = "the run keeps to real time, or whoever started it decides when it goes on"
        return [f"the barrier at {at} holds {_everybody(hold, situation)}: {whose}"]
    return [f"{', '.join(hold.held)} will be told that the run is over, when it is: its start lies beyond the end"]


def _whom(hold: Hold, situation: Situation) -> str:
    if not hold.held:
        return "keeps nobody waiting, but the run doesn't end without it"
    longest = max((each.activity.seconds or 0.0 for each in situation.standings if each.name in hold.held), default=0.0)
    them = f"{counted(len(hold.held), 'participant')} {'waits' if len(hold.held) == 1 else 'wait'} for it"
    standing = None if hold.root is None else situation.standing(hold.root)
    behind = "" if standing is None else standing.activity.behind
    since = f", since {behind} runs in its process" if behind else ""
    was_lost = "was lost, and " if standing is not None and standing.activity.lost else ""
    return f"{was_lost}holds {_everybody(hold, situation)}{since}: {them}, the longest for {seconds(longest)}"


def _everybody(hold: Hold, situation: Situation) -> str:
    others = [each for each in situation.standings if each.state is not State.LEFT and each.name != hold.root]
    if len(hold.held) == len([each for each in others if each.state is not State.EXPECTED]):
        return "everybody" if len(hold.held) > 1 else hold.held[0]
    return ", ".join(hold.held)


def doing_in_words(standing: Standing) -> list[str]:
    """Say what somebody is doing who doesn't wait for anybody."""
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


def _waited_s(chain: HoldingChain, situation: Situation) -> float:
    standing = situation.standing(chain.who)
    return 0.0 if standing is None else standing.activity.seconds or 0.0


def _of_chain(chain: HoldingChain, situation: Situation, width: int) -> Iterator[str]:
    first = chain.whys[0]
    standing = situation.standing(chain.who)
    waited = None if standing is None else standing.activity.seconds
    doing = "lost" if standing is not None and standing.activity.lost else "waiting"
    since = "" if waited is None else f", {doing} for {seconds(waited)}"
    now = format_time(first.now) if standing is None or standing.exact else f"{format_time(first.now)} or later"
    yield f"{chain.who:<{width}}  at {now}{since}: {_wants(first)}"
    for why in chain.whys:
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


def _sends(why: Why, chain: HoldingChain) -> str:
    """Say when the holder may send, and if it waits itself, that it does."""
    waits = ", waits itself" if why.holder != chain.root or why is not chain.whys[-1] else ""
    return f"; {why.holder} may send from {format_time(why.holder_time)} on{waits}"


# A situation as plain values, for JSON: times in nanoseconds, null for never; with who is at the root of what.


def as_plain(situation: Situation) -> dict[str, Any]:
    """Return all that a situation says, and all that follows from it."""
    plain: dict[str, Any] = _without_forever(msgspec.to_builtins(situation))
    plain["whys"] = [
        {**why, "root": chain.root} for why, chain in zip(plain["whys"], chains(situation.whys), strict=True)
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
