"""Works out, from what an arbiter heard and when, how long everybody waited, and for whom, through which links.

A wait begins when a request is heard, and ends when something is heard that lets it be granted. Whoever said that was
the last one to be waited for: before it spoke, the bound of the one that waited was below what it needed, and nobody
else has moved since. The way from the one to the other leads over those who sleep, since what they do next depends on
what comes to them. All links of the way share in it: with a greater lookahead on any of them, it would have been over
sooner. So the waiting per link adds up to more than the waiting in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from worldline.lock.arbiter import OPERATOR, Arbiter
from worldline.lock.events import Advance, Grant, Next, Peek
from worldline.lock.member import Member
from worldline.lock.states import State
from worldline.lock.why.heard import Heard, HearingAgain
from worldline.lock.why.reasons import Hop, Situation
from worldline.lock.why.words import chains
from worldline.model.plan import Plan

REQUESTS = (Advance, Next, Peek)


class WaitSpan(NamedTuple):
    """Somebody waited: from when to when by the wall clock, at which simulated time, for whom, and over which links.

    The holder is empty if it was the operator, or the wall clock.
    """

    who: str
    began: int
    ended: int
    now: int
    holder: str
    path: tuple[Hop, ...]

    @property
    def length(self) -> int:
        return self.ended - self.began


class LinkTally(NamedTuple):
    """All waiting that a link had a part in, in nanoseconds of the wall clock, and how many waits that were."""

    hop: Hop
    waited: int
    waits: int


class WaitingTally:
    """All waits of a run, added up."""

    def __init__(self, waits: Iterable[WaitSpan] = ()) -> None:
        self.waited = 0  # By all for participants, together.
        self.waits = 0
        self.held = 0  # By all, for the operator or the wall clock.
        self.by_participant: dict[str, int] = {}
        self.by_holder: dict[str, int] = {}
        self._links: dict[Hop, list[int]] = {}
        for wait in waits:
            self.add(wait)

    def add(self, wait: WaitSpan) -> None:
        if not wait.holder:
            self.held += wait.length
            return
        self.waited += wait.length
        self.waits += 1
        self.by_participant[wait.who] = self.by_participant.get(wait.who, 0) + wait.length
        self.by_holder[wait.holder] = self.by_holder.get(wait.holder, 0) + wait.length
        for hop in wait.path:
            entry = self._links.setdefault(hop, [0, 0])
            entry[0] += wait.length
            entry[1] += 1

    def links(self) -> list[LinkTally]:
        """Return the links that were waited for, the one with most of it first."""
        found = [LinkTally(hop, waited, waits) for hop, (waited, waits) in self._links.items()]
        return sorted(found, key=lambda each: (-each.waited, each.hop.sender, each.hop.receiver, each.hop.topic or ""))


def waits_in(plan: Plan, noted: Iterable[Heard]) -> Iterator[WaitSpan]:
    """Yield all waits of a run, in the order in which they ended."""
    again = HearingAgain(plan)
    asked: dict[str, tuple[int, int]] = {}
    last = 0
    for heard, actions in again.hear(noted):
        last = heard.wall
        granted = {action.to: action for action in actions if isinstance(action, Grant)}
        is_request = bool(heard.events) and isinstance(heard.events[-1], REQUESTS)
        if is_request and heard.who not in granted and heard.who not in asked:
            asked[heard.who] = (heard.wall, again.arbiter.members[heard.who].now)
        for name in granted:
            if name in asked and name != heard.who:
                began, now = asked.pop(name)
                path = () if heard.who == OPERATOR else way_between(again.arbiter, heard.who, name, granted)
                yield WaitSpan(name, began, heard.wall, now, heard.who, path)
    for why in again.arbiter.why():  # Of a run that was broken off: these waits never ended.
        if why.participant in asked:
            began, now = asked[why.participant]
            yield WaitSpan(why.participant, began, last, now, why.holder or "", why.path)


def way_between(arbiter: Arbiter, holder: str, waiting: str, granted: Iterable[str] = ()) -> tuple[Hop, ...]:
    """Return the links with the least lookahead in all from a holder, over those who sleep, to one that has waited.

    Those who were `granted` with it may have slept until then.
    """
    target, woken = arbiter.members[waiting], frozenset(granted)
    queue: list[tuple[int, int, Member, tuple[Hop, ...]]] = [(0, 0, target, ())]
    met: set[str] = set()
    serial = 0
    while queue:
        distance, _, member, path = heappop(queue)
        if member.name == holder:
            return path
        if member.name in met or (member is not target and not _slept(member, woken)):
            continue
        met.add(member.name)
        for sender, latency in member.ins:
            if isinstance(sender, Member) and sender.name not in met and sender.state is not State.EXPECTED:
                serial += 1
                hop = Hop(sender.name, member.name, arbiter.router.edges.named(sender, member)[1], latency)
                heappush(queue, (distance + latency, serial, sender, (hop, *path)))
    return ()


def _slept(member: Member, woken: frozenset[str]) -> bool:
    return member.state is State.AWAITING or member.name in woken


# Adds up who waited for whom, from situations that are looked at one after the other.
#
# Whoever waits at a look is taken to have waited since the look before it, for the links that it waits for now. That is
# a sample, as in `top`: exact enough after some hundred looks, and it costs the run nothing but those.


class LinkWaiting(NamedTuple):
    """How long somebody waited, in wall-clock time, for what might come over a link, and how often."""

    hop: Hop
    seconds: float
    times: int


class WaitingSample:
    """What has been seen so far: the waiting per link, and per participant at the root of it."""

    def __init__(self) -> None:
        self._links: dict[Hop, list[float]] = {}
        self._roots: dict[str, float] = {}
        self.seconds = 0.0  # How long everybody has waited, together,
        self.elapsed = 0.0  # and for how long it has been looked.

    def add(self, situation: Situation, elapsed: float) -> None:
        """Take in a look, so many seconds after the one before it."""
        self.elapsed += elapsed
        for chain in chains(situation.whys):
            hops = {hop: None for why in chain.whys for hop in why.path}
            if not hops:
                continue
            self.seconds += elapsed
            for hop in hops:
                entry = self._links.setdefault(hop, [0.0, 0])
                entry[0] += elapsed
                entry[1] += 1
            if chain.root is not None:
                self._roots[chain.root] = self._roots.get(chain.root, 0.0) + elapsed

    def links(self) -> list[LinkWaiting]:
        """Return the links that were waited for, the one with most of it first."""
        found = [LinkWaiting(hop, seconds, int(times)) for hop, (seconds, times) in self._links.items()]
        return sorted(found, key=lambda each: (-each.seconds, each.hop.sender, each.hop.receiver))

    def roots(self) -> list[tuple[str, float]]:
        """Return who was at the root of it, and for how many seconds in all, the most first."""
        return sorted(self._roots.items(), key=lambda item: (-item[1], item[0]))
