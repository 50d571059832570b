"""What an arbiter was told, and when, without the payloads: enough to let an arbiter hear it again.

So every moment of a run can be looked at, and how long participants waited, for whom and through which links.
Wall-clock times are in nanoseconds since the log began. They are no part of any recording, since no two runs have the
same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd
from typing import Any, NamedTuple

from msgspec import Struct

from worldline.lock.arbiter import OPERATOR, Arbiter
from worldline.lock.events import (
    Action,
    Advance,
    CallOff,
    Event,
    Grant,
    Join,
    Lost,
    Next,
    OperatorEvent,
    Peek,
    Promise,
    Publish,
    StartRun,
    UnpublishedEvent,
)
from worldline.lock.member import Member
from worldline.lock.states import ASKING, Phase, State
from worldline.lock.why.reasons import Activity, Hop, Situation, situation_of
from worldline.lock.why.words import chains, least_way
from worldline.model.errors import UsageError, WorldlineError, shown
from worldline.model.plan import Plan
from worldline.model.time import US, format_time


class HeardSending(Struct, frozen=True, array_like=True, tag="sending", gc=False):
    """A message was published; of its payload only the size is kept, since links may go by that."""

    topic: str
    size: int
    at: int


HeardEvent = HeardSending | UnpublishedEvent | OperatorEvent


class Heard(Struct, frozen=True, array_like=True):
    """What a participant, or the operator, said at once, and when that was heard."""

    wall: int
    who: str
    events: tuple[HeardEvent, ...]


def stripped(events: Iterable[Any]) -> list[HeardEvent]:
    """Return what was said without the payloads."""
    return [
        HeardSending(each.topic, len(each.payload), each.at) if each.__class__ is Publish else each for each in events
    ]


def restored(events: Iterable[HeardEvent]) -> list[Event]:
    """Return what was said, with payloads of the same sizes."""
    return [
        Publish(each.topic, bytes(each.size), each.at) if isinstance(each, HeardSending) else each for each in events
    ]


def heard_again(arbiter: Arbiter, noted: Iterable[Heard]) -> Iterator[tuple[Heard, list[Action]]]:
    """Let an arbiter hear what was noted; yield it one after the other, with what has followed from it.

    What was refused then is refused again, and nothing follows from it.
    """
    for heard in noted:
        if arbiter.phase is Phase.OVER:
            return
        yield heard, _hear(arbiter, heard)


def _hear(arbiter: Arbiter, heard: Heard) -> list[Action]:
    if any(isinstance(event, Lost | CallOff) for event in heard.events) and heard.who == OPERATOR:
        return []  # The run was broken off: it is looked at as it was just then.
    events = restored(heard.events)
    is_known = heard.who == OPERATOR or heard.who in arbiter.members
    first = events[0] if events else None
    if not is_known and not isinstance(first, Join):
        raise UsageError(f"what was noted can't be: {shown(heard.who)} says something, and never joined")
    try:
        if not is_known and isinstance(first, Join):
            arbiter.enroll(heard.who, first)
        return arbiter.hear(heard.who, events)
    except WorldlineError:
        return []


# Looks at one moment of a run that was noted: the first at which it had come to a simulated time, or the last.


def situation_at(plan: Plan, name: str, noted: Iterable[Heard], at: int | None = None) -> Situation:
    """Return how a run stood: where nothing before `at` could happen any more, or at the end of what was noted."""
    arbiter = Arbiter(plan)
    since: dict[str, int] = {}  # By participant, since when it has been in its state, by the wall clock.
    wall = 0
    for heard, actions in heard_again(arbiter, noted):
        wall = heard.wall
        since[heard.who] = wall
        for action in actions:
            if isinstance(action, Grant | StartRun):
                since[action.to] = wall
        if at is not None and arbiter.phase is not Phase.GATHERING and arbiter.floor() >= at:
            break
    if at is not None and (came := arbiter.status().time) < at:
        raise UsageError(f"it never came to {format_time(at)}", advice=f"it ended at {format_time(came)}: --at end")
    activities = {
        each: Activity(seconds=(wall - since[each]) / 1e9)
        for each, member in arbiter.members.items()
        if each in since and (member.state in ASKING or member.state is State.COMPUTING)
    }
    status = arbiter.status()
    return situation_of(arbiter, name, activities, events=status.events, time=status.time, with_links=True)


# What participants ever did in a run that could be declared: the topics that it sent on, and the period of its sends.
#
# A declaration that one single send contradicts breaks the run. So this looks at all that was noted, unlike what is
# played again, for which a part is enough.

_SENDS_LEAST = 3


class Habit:
    """What one participant sent in all."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self._sends = 0
        self._common = 0  # The greatest time of which all sends are multiples.
        self._promises = False

    def add(self, event: object) -> None:
        if isinstance(event, HeardSending):
            self.topics.add(event.topic)
            self._sends += 1
            self._common = gcd(self._common, event.at)
        elif isinstance(event, Promise):
            self._promises = True

    @property
    def period(self) -> int | None:
        """A time of which all sends were multiples, if there is one that is worth being declared."""
        is_worth_it = self._sends >= _SENDS_LEAST and self._common >= US and not self._promises
        return self._common if is_worth_it else None


class Habits:
    """What was noted of a run, as far as it has been listened to: who joined, their habits, and how long it took."""

    def __init__(self, noted: Iterable[Heard] = ()) -> None:
        self.of: dict[str, Habit] = {}
        self.took = 0
        for _ in self.listening(noted):
            pass

    def listening(self, noted: Iterable[Heard]) -> Iterator[Heard]:
        """Pass on what was noted, and listen."""
        first: int | None = None
        for heard in noted:
            first = heard.wall if first is None else first
            self.took = heard.wall - first
            for event in heard.events:
                if isinstance(event, Join):
                    self.of.setdefault(heard.who, Habit())
                elif (habit := self.of.get(heard.who)) is not None:
                    habit.add(event)
            yield heard


# How long participants waited, for whom, and through which links.
#
# A wait begins when a request is heard, and ends when something is heard that lets it be granted. The participant that
# said that was the last one to be waited for: before it spoke, the bound of the one that waited was below what it
# needed, and no other has moved since. The way from the one to the other leads over those who sleep, since what they do
# next depends on what comes to them. All links of the way share in it: with a greater lookahead on any of them, it
# would have been over sooner. So the waiting per link adds up to more than the waiting in all.


class WaitSpan(NamedTuple):
    """A participant waited: from when to when by the wall clock, at which simulated time, for whom, over which links.

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
        if not wait.holder and not wait.path:
            self.held += wait.length
            return
        self.waited += wait.length
        self.waits += 1
        self.by_participant[wait.who] = self.by_participant.get(wait.who, 0) + wait.length
        if wait.holder:
            self.by_holder[wait.holder] = self.by_holder.get(wait.holder, 0) + wait.length
        for hop in wait.path:
            entry = self._links.setdefault(hop, [0, 0])
            entry[0] += wait.length
            entry[1] += 1

    def sample(self, situation: Situation, elapsed: int) -> None:
        """Add who waits in a situation that is looked at, so many nanoseconds after the one before it.

        Those who wait are taken to have waited since then, for the links that they wait for now. That is exact enough
        after some hundred looks, as in `top`, and costs the run nothing but those.
        """
        for chain in chains(situation.whys):
            path = tuple(dict.fromkeys(hop for why in chain for hop in why.path))
            if path:
                self.add(WaitSpan(chain[0].participant, 0, elapsed, 0, chain[-1].holder or "", path))

    def links(self) -> list[LinkTally]:
        """Return the links that were waited for, the one with most of it first."""
        found = [LinkTally(hop, waited, waits) for hop, (waited, waits) in self._links.items()]
        return sorted(found, key=lambda each: (-each.waited, each.hop.sender, each.hop.receiver, each.hop.topic or ""))


class ComputingTally:
    """How long each participant computed: from what let it go on to what it asked for next.

    It can't tell a program that computes from one that waits for something else, or for a processor. A step is a time
    at which a participant sends or asks: what was granted ahead isn't asked for one by one.
    """

    def __init__(self) -> None:
        self.computed: dict[str, int] = {}
        self.steps: dict[str, int] = {}
        self._since: dict[str, int] = {}
        self._sent_at: dict[str, set[int]] = {}

    def let_go(self, name: str, wall: int) -> None:
        """A participant can go on from now."""
        self._since[name] = wall

    def hear(self, heard: Heard, *, is_request: bool) -> None:
        """A participant says something; if it is a request, it computes no more."""
        if heard.who not in self._since:
            return
        sent = self._sent_at.setdefault(heard.who, set())
        sent.update(each.at for each in heard.events if isinstance(each, HeardSending))
        if is_request:
            self.computed[heard.who] = self.computed.get(heard.who, 0) + heard.wall - self._since.pop(heard.who)
            self.steps[heard.who] = self.steps.get(heard.who, 0) + max(1, len(sent))
            sent.clear()

    def per_step(self, name: str) -> int:
        return self.computed[name] // self.steps[name]


def waits_in(plan: Plan, noted: Iterable[Heard], computing: ComputingTally | None = None) -> Iterator[WaitSpan]:
    """Yield all waits of a run, in the order in which they ended; add up what was computed in between."""
    arbiter = Arbiter(plan)
    asked: dict[str, tuple[int, int]] = {}
    last = 0
    computing = ComputingTally() if computing is None else computing
    for heard, actions in heard_again(arbiter, noted):
        last = heard.wall
        granted = {action.to: action for action in actions if isinstance(action, Grant)}
        is_request = bool(heard.events) and isinstance(heard.events[-1], Advance | Next | Peek)
        computing.hear(heard, is_request=is_request)
        for action in actions:
            if isinstance(action, Grant | StartRun):
                computing.let_go(action.to, heard.wall)
        if is_request and heard.who not in granted and heard.who not in asked:
            asked[heard.who] = (heard.wall, arbiter.members[heard.who].now)
        for name in granted:
            if name in asked and name != heard.who:
                began, now = asked.pop(name)
                path = () if heard.who == OPERATOR else way_between(arbiter, heard.who, name, granted)
                yield WaitSpan(name, began, heard.wall, now, heard.who, path)
    for why in arbiter.why():  # Of a run that was broken off: these waits never ended.
        if why.participant in asked:
            began, now = asked[why.participant]
            yield WaitSpan(why.participant, began, last, now, why.holder or "", why.path)


def way_between(arbiter: Arbiter, holder: str, waiting: str, granted: Iterable[str] = ()) -> tuple[Hop, ...]:
    """Return the links with the least lookahead in all from a holder, over those who sleep, to one that has waited.

    Those who were `granted` with it may have slept until then.
    """
    woken = frozenset(granted)

    def onward(name: str) -> Iterator[tuple[str, Hop]]:
        member = arbiter.members[name]
        if name != waiting and member.state is not State.AWAITING and name not in woken:
            return
        for sender, latency in member.ins:
            if isinstance(sender, Member) and sender.state is not State.EXPECTED:
                topic = arbiter.router.edges.named(sender, member)[1]
                yield sender.name, Hop(sender.name, name, topic, latency)

    return least_way(waiting, holder, onward)[::-1]
