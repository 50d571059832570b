"""Works out what would make a run wait less, by trying it: the arbiter runs again with that one thing changed.

Three kinds of changes are tried, for those who are waited for most:

- **A period**: a participant that only ever sent at multiples of a time could declare that. No result of this run
  changes.
- **Topics**: a participant that declares topics on which it never sends, or doesn't declare any, could declare those
  it uses. No result of this run changes.
- **A latency**: a link that is waited for could have a greater one. That is another model, with other results.

What comes out is what the change would have saved in the run that was noted, on a machine with a core for each
participant.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

from worldline.lock.arbiter import Arbiter
from worldline.lock.events import (
    Advance,
    Down,
    Grant,
    Invite,
    Join,
    Leave,
    Next,
    Peek,
    Promise,
    Reached,
    StartRun,
    Stop,
    Subscribe,
    Unsubscribe,
)
from worldline.lock.ledger import Ledger, RunEnded
from worldline.lock.states import Phase
from worldline.lock.why.heard import ComputingTally, Habits, Heard, HeardSending, WaitingTally, heard_again, waits_in
from worldline.lock.why.reasons import Hop
from worldline.lock.why.words import seconds, way
from worldline.model.latency import Exponential, Fixed, Latency, Normal, Table, Uniform
from worldline.model.links import Rule
from worldline.model.message import Message
from worldline.model.path import Paths
from worldline.model.plan import Plan
from worldline.model.text import counted
from worldline.model.time import FOREVER, MS, SECOND, TIME_MAX, format_time

# Plays scripts on a wall clock that is itself simulated: the arbiter runs again, on another network if need be.
#
# Each takes as long for what it does as it did in the run, and waits as long as the arbiter has it wait. None takes a
# core from another, and what a machine adds for having more to do at once isn't known here. The ledgers are
# real ones, so what was granted ahead is used as it would be; and what only tells is told when a client would tell it.

# What participants did in a run, and how long they took for it, as scripts that can be played again on another network.
#
# A script is a list of *points*: times at which its participant could act, each with what it did there and how long
# that took by the wall clock. What matters is what brought the participant to a point, since on another network that
# may come at another time:
#
# - a message that it was waiting for: then the point is where the message arrives,
# - a time that it had asked for: then the point is as far from where it was first asked for as it was in the run.
#
# Steps that a participant was granted ahead aren't asked for one by one. They show in what it sends then, and where it
# says that it is; what it had asked for isn't known. Those at which a message arrived are taken for its reactions to
# that message, if it ever waits for messages; the others for times of its own, at which it is whatever comes.

MessageId = tuple[str, int]
"""A message's sender and its number."""


class Point(Struct):
    """A time at which a participant could act, and what it did there.

    It waited by `next`, or by `advance`, for `until`; that is None if it didn't have to ask. `woken` are the messages
    that it was woken by. `deeds` are events of the lock, with the times of the run, each with how many nanoseconds of
    the wall clock it took after the one before. `spent` is how long it took for what it did last there.
    """

    time: int
    sleeps: bool
    until: int | None
    woken: tuple[MessageId, ...]
    deeds: list[tuple[int, Any]]
    spent: int = 0


class RunScript(Struct):
    """All that one participant did. It joined `late` nanoseconds after the run had begun, if it was a newcomer."""

    name: str
    join: Join
    late: int
    points: list[Point]


class _Author:
    """One participant while its script is written."""

    def __init__(self, script: RunScript, wall: int) -> None:
        self.script = script
        self.ready = wall  # Since when it has been able to do something.
        self.asked: Next | Advance | Peek | None = None
        self.sleeps = False  # Whether it ever waits for messages.
        self.arrivals: dict[int, list[MessageId]] = {}
        self.horizon = 0

    def start(self, now: int, wall: int) -> None:
        self.ready, self.horizon = wall, now
        self.script.points.append(Point(now, False, None, (), []))

    def grant(self, grant: Grant, now: int, wall: int) -> None:
        for message in grant.messages:
            self.arrivals.setdefault(message.arrival, []).append((message.sender, message.sequence))
        self.horizon = grant.horizon
        asked, self.asked = self.asked, None
        self.ready = max(self.ready, wall)
        if asked is None or isinstance(asked, Peek) or not self.script.points:
            return
        sleeps = isinstance(asked, Next)
        until = asked.until if isinstance(asked, Next) else asked.to
        woken = tuple(self.arrivals.get(now, ())) if sleeps and now < until else ()
        self.script.points.append(Point(now, sleeps, until, woken, []))

    def write(self, events: tuple[Any, ...], wall: int) -> None:
        """Write down what was said at once; the time before it was spent for the first of it."""
        spent = max(0, wall - self.ready)
        self.ready = max(self.ready, wall)
        points = self.script.points
        for event in events:
            if isinstance(event, Next | Advance | Peek):
                self.asked = event
                self.sleeps = self.sleeps or isinstance(event, Next)
            elif (at := _moved(event)) is not None and points[-1].time < at <= self.horizon:
                # A point that the participant didn't have to ask for.
                woken = tuple(self.arrivals.get(at, ())) if self.sleeps else ()
                points.append(Point(at, self.sleeps, None, woken, []))
            if isinstance(event, HeardSending | Promise | Subscribe | Unsubscribe | Invite | Stop):
                points[-1].deeds.append((spent, event))
            else:
                points[-1].spent += spent
            spent = 0


def scripts_of(plan: Plan, noted: Iterable[Heard]) -> dict[str, RunScript]:
    """Make scripts out of what an arbiter heard."""
    arbiter = Arbiter(plan)
    authors: dict[str, _Author] = {}
    began: int | None = None
    for heard, actions in heard_again(arbiter, noted):
        events, wall = heard.events, heard.wall
        if events and isinstance(events[0], Join):
            late = 0 if began is None else wall - began
            authors[heard.who] = _Author(RunScript(heard.who, events[0], late, []), wall)
            events = events[1:]
        author = authors.get(heard.who)
        if author is not None and author.script.points:
            author.write(events, wall)
        for action in actions:
            if isinstance(action, StartRun):
                began = wall if began is None else began
                authors[action.to].start(action.now, wall)
            elif isinstance(action, Grant) and action.to in authors:
                authors[action.to].grant(action, arbiter.members[action.to].now, wall)
    return {name: author.script for name, author in authors.items()}


def _moved(event: Any) -> int | None:
    """Return how far a participant has come that says this, as far as it shows."""
    if isinstance(event, HeardSending):
        return event.at
    return event.now if isinstance(event, Reached | Subscribe | Unsubscribe | Down | Leave) else None


# What a player yields besides how long it takes for something: that it has done something which only tells, or others
# may wait for, or that it waits for an answer.
_SAYS, _TELLS, _ASKS = -1, -2, -3

# When clients tell what only tells: with the first of it so long after they have last said something, or so late.
_TELL_AFTER = 500_000
_PULSE = 50_000_000

_Acting = Generator[int, None, None]


class Played(NamedTuple):
    """How it went: how long all together waited, by the wall clock, and how long it took, in nanoseconds."""

    waited: int
    took: int


def play(
    scripts: Mapping[str, RunScript],
    plan: Plan,
    joins: Mapping[str, Join] | None = None,
    periods: Mapping[str, int] | None = None,
) -> Played:
    """Play all scripts by a plan, with what some say at joining, and the periods they keep to, otherwise than then."""
    joins, periods = joins or {}, periods or {}
    players = {
        name: _Player(script, plan, joins.get(name, script.join), periods.get(name, 0))
        for name, script in sorted(scripts.items())
    }
    return _Stage(players, plan).play()


class _Stage:
    """The arbiter, all players, and the wall clock."""

    def __init__(self, players: Mapping[str, _Player], plan: Plan) -> None:
        self._arbiter = Arbiter(plan)
        self._players = players
        self._due: list[tuple[int, int, str]] = []  # A heap of (wall, serial, who goes on then).
        self._serial = 0
        self._uninvited: list[str] = []
        self._wall = 0
        self._waited = 0

    def play(self) -> Played:
        for name, player in self._players.items():
            self._schedule(name, player.script.late)
        while self._due and self._arbiter.phase is not Phase.OVER:
            self._wall, _, name = heappop(self._due)
            self._go_on(self._players[name])
        return Played(self._waited, self._wall)

    def _schedule(self, name: str, after: int = 0) -> None:
        self._serial += 1
        heappush(self._due, (self._wall + after, self._serial, name))

    def _go_on(self, player: _Player) -> None:
        """Let a participant play until it takes time for something, or has to wait."""
        name = player.script.name
        if not player.has_joined:
            if name not in self._arbiter.members and not self._arbiter.plan.vacancies:
                self._uninvited.append(name)
                return
            if name not in self._arbiter.members:
                self._arbiter.enroll(name, player.script.join)
            player.has_joined = True
            self._tell(player)
            return
        for said in player.acting:
            if said == _ASKS:
                player.asked = self._wall
                self._tell(player)
                return
            if said == _TELLS or said >= _PULSE or (said == _SAYS and self._wall - player.told >= _TELL_AFTER):
                player.ledger.tell_time()
                self._tell(player)
            if said >= 0:
                self._schedule(name, said)
                return
        player.ledger.leave()
        self._tell(player)

    def _tell(self, player: _Player) -> None:
        """Let the arbiter hear what a participant has to say; those who are answered go on at once."""
        said: list[Any] = player.ledger.take_outbox()
        player.told = self._wall
        for action in self._arbiter.hear(player.script.name, said) if said else ():
            answered = self._players.get(getattr(action, "to", ""))
            if answered is None:
                continue
            if not isinstance(action, StartRun):
                self._waited += self._wall - answered.asked
            answered.given = answered.ledger.receive(action) or []
            self._schedule(answered.script.name)
        for name in [name for name in self._uninvited if name in self._arbiter.members]:
            self._uninvited.remove(name)
            self._schedule(name)


class _Player:
    """One participant that does what its script says."""

    def __init__(self, script: RunScript, plan: Plan, join: Join, period: int) -> None:
        self.script = script
        self._period = period
        self._control_latency = plan.network.control_latency
        self.ledger = Ledger(script.name, join, period=period)
        self.acting = self._act()
        self.has_joined = False
        self.asked = 0  # Since when it waits, by the wall clock,
        self.told = 0  # and when it has last said something.
        self.given: list[Message] = []  # What it was answered last.
        self._received: set[MessageId] = set()
        self._promised = 0
        self._until = (-1, -1)  # What it has asked for, in the run and now.
        self._shift = 0  # How much later it was at the last time of its own than in the run.

    def _act(self) -> _Acting:
        before: Point | None = None
        try:
            for point in self.script.points:
                if before is not None:
                    yield from self._reach(point, self.ledger.now - before.time)
                if self.ledger.ended:
                    return
                for spent, event in point.deeds:
                    if spent:
                        yield spent
                    self._do(event, self.ledger.now - point.time)
                    yield _TELLS if isinstance(event, Promise | Invite | Stop) else _SAYS
                if point.spent:
                    yield point.spent
                before = point
        except RunEnded:
            return

    # --- Going on ---

    def _reach(self, point: Point, delta: int) -> _Acting:
        """Go to where a point is now. `delta` is how much later the one before it was than in the run."""
        ledger = self.ledger
        until = FOREVER if point.until is None else self._mapped(point.until, delta)
        if point.woken:
            while not ledger.ended and not self._received.issuperset(point.woken):
                if ledger.now >= until:
                    until = FOREVER  # What it reacted to comes later now than it would have waited.
                yield from self._wait(until, sleeps=True)
            return
        if point.until != point.time:
            until = point.time + self._shift
        while not ledger.ended and ledger.now < until:
            yield from self._wait(min(until, TIME_MAX), sleeps=point.sleeps)
        self._shift = ledger.now - point.time

    def _mapped(self, until: int, delta: int) -> int:
        """Return the time that is asked for now: the same as before if it was in the run, or as far off as it was."""
        if until >= FOREVER:
            return FOREVER
        if until != self._until[0]:
            self._until = (until, max(self.ledger.now, until + delta))
        return self._until[1]

    def _wait(self, until: int, *, sleeps: bool) -> _Acting:
        ledger = self.ledger
        messages = ledger.next(None if until >= FOREVER else until) if sleeps else ledger.advance(until)
        if messages is None:
            yield _ASKS
            messages = self.given
        else:
            yield _SAYS
        self._received.update((message.sender, message.sequence) for message in messages)

    # --- Acting ---

    def _do(self, event: Any, delta: int) -> None:
        ledger = self.ledger
        if isinstance(event, HeardSending):
            ledger.publish(event.topic, _payload(event.size), self._send_time(event.at + delta))
        elif isinstance(event, Promise):
            until = max(event.until + delta, ledger.now)
            if until > self._promised and not self._period:
                self._promised = until
                ledger.promise(until)
        elif isinstance(event, Subscribe):
            ledger.subscribe(event.subscription.topic, event.subscription.buffer)
        elif isinstance(event, Unsubscribe):
            ledger.unsubscribe(event.topic)
        else:
            at = max(event.at + delta, max(ledger.now, self._promised) + self._control_latency)
            if isinstance(event, Invite):
                ledger.invite(event.newcomer, at)
            elif isinstance(event, Stop):
                ledger.stop(at)

    def _send_time(self, at: int) -> int:
        at = max(at, self.ledger.now, self._promised)
        return -(-at // self._period) * self._period if self._period else at


_payloads: dict[int, bytes] = {}


def _payload(size: int) -> bytes:
    """Return bytes of a size, the same each time: they aren't looked at."""
    if size not in _payloads:
        if len(_payloads) > 64:
            _payloads.clear()
        _payloads[size] = bytes(size)
    return _payloads[size]


HEARD_MAX = 5_000
"""How much of a timing is played again, in frames: what comes later is mostly more of the same."""

_LINKS_TRIED = 4
_WORTH = 0.02  # Of the waiting: less isn't worth a word.
_NEARLY = 0.9  # Of what the greatest latency saves: a smaller one that saves as much is better.
_FACTORS = (2, 5, 10)


class Advice(NamedTuple):
    """A change, in words; how much waiting there would be with it, and without; whether results stay as they are."""

    text: str
    before: Played
    after: Played
    is_harmless: bool

    @property
    def share(self) -> float:
        """How much of the waiting it removes."""
        return 1 - self.after.waited / self.before.waited if self.before.waited else 0.0


class Advisor:
    """Tries changes on one run: its plan, what was heard of it, or the first part of that, and all of its habits."""

    def __init__(self, plan: Plan, noted: Sequence[Heard], habits: Habits | None = None) -> None:
        self._plan = plan
        self._habits = Habits(noted) if habits is None else habits
        self.scripts = scripts_of(plan, noted)
        self.tally = WaitingTally(waits_in(plan, noted))
        self.before = play(self.scripts, plan)

    def advice(self) -> list[Advice]:
        """Return what would help: first what leaves results as they are, and of that the best first."""
        found = [each for each in (*self._periods(), *self._topics(), *self._latencies()) if each.share >= _WORTH]
        return sorted(found, key=lambda each: (not each.is_harmless, -round(each.share, 2), each.text))

    def try_latency(self, hop: Hop, latency: int) -> Advice:
        """Try another latency for a link."""
        assert hop.topic is not None
        plan = with_latency(self._plan, hop.sender, hop.receiver, hop.topic, latency - hop.latency)
        text = f"{hop.sender} → {hop.receiver} ({hop.topic}) {format_time(hop.latency)} → {format_time(latency)}"
        return Advice(text, self.before, play(self.scripts, plan), is_harmless=False)

    def _periods(self) -> Iterable[Advice]:
        for name in self._awaited():
            period = self._habits.of[name].period
            if period is not None:
                after = play(self.scripts, self._plan, periods={name: period})
                yield Advice(f'period = "{format_time(period)}" for {name}', self.before, after, is_harmless=True)

    def _topics(self) -> Iterable[Advice]:
        for name in self._awaited():
            script = self.scripts[name]
            used = tuple(sorted(self._habits.of[name].topics))
            declared = script.join.publishes
            if declared is None or set(used) < set(declared):
                after = play(self.scripts, self._plan, joins={name: structs.replace(script.join, publishes=used)})
                listed = ", ".join(f'"{topic}"' for topic in used)
                yield Advice(f"publishes = [{listed}] for {name}", self.before, after, is_harmless=True)

    def _latencies(self) -> Iterable[Advice]:
        """Try the links that are waited for most: the least latency that helps nearly as much as any."""
        links = [each.hop for each in self.tally.links() if each.hop.topic is not None]
        for hop in links[:_LINKS_TRIED]:
            tried = [self.try_latency(hop, latency) for latency in self._longer(hop)]
            best = max((each.share for each in tried), default=0.0)
            yield from [each for each in tried if each.share >= _NEARLY * best][:1]

    def _longer(self, hop: Hop) -> list[int]:
        """Return latencies to try: a few times as long, and as long as it is from one message to the next."""
        deeds = [event for point in self.scripts[hop.sender].points for _, event in point.deeds]
        sends = [event.at for event in deeds if isinstance(event, HeardSending) and event.topic == hop.topic]
        gaps = sorted(later - earlier for earlier, later in pairwise(sends))
        usual = [gaps[len(gaps) // 2]] if gaps else []
        found = {factor * hop.latency for factor in _FACTORS} | set(usual)
        return sorted(each for each in found if hop.latency < each < TIME_MAX)

    def _awaited(self) -> list[str]:
        """Return who is waited for, the one that costs most first."""
        return sorted(
            (name for name in self.tally.by_holder if name in self.scripts),
            key=lambda name: (-self.tally.by_holder[name], name),
        )


def with_latency(plan: Plan, sender: str, receiver: str, topic: str, longer: int) -> Plan:
    """Return a plan in which what a sender sends a receiver on a topic takes so much longer."""
    link = Paths(plan.network, plan.seed).link(topic, sender, receiver)
    rule = Rule(
        topic=topic,
        sender=sender,
        receiver=receiver,
        link=structs.replace(link, latency=_longer_latency(link.latency, longer)),
    )
    others = tuple(
        each for each in plan.network.rules if (each.topic, each.sender, each.receiver) != (topic, sender, receiver)
    )
    return structs.replace(plan, network=structs.replace(plan.network, rules=(*others, rule)))


def _longer_latency(latency: Latency, longer: int) -> Latency:
    if isinstance(latency, Fixed):
        return Fixed(latency.latency + longer)
    if isinstance(latency, Uniform):
        return Uniform(latency.minimum + longer, latency.maximum + longer)
    if isinstance(latency, Normal):
        return Normal(latency.mean + longer, latency.deviation, latency.minimum + longer)
    if isinstance(latency, Exponential):
        return Exponential(latency.minimum + longer, latency.mean)
    assert isinstance(latency, Table)
    return Table(tuple(value + longer for value in latency.values))


# What was noted of a run, in words and as plain values: how long participants waited, for what, and what would help.

_LINKS_SHOWN = 20


class RunAccount(NamedTuple):
    """Where the time of a run went."""

    habits: Habits
    waiting: WaitingTally
    computing: ComputingTally

    @property
    def took(self) -> int:
        return self.habits.took


def account_of(plan: Plan, noted: Iterable[Heard]) -> RunAccount:
    """Add up what was noted of a run."""
    habits, computing = Habits(), ComputingTally()
    return RunAccount(habits, WaitingTally(waits_in(plan, habits.listening(noted), computing)), computing)


def account_in_words(name: str, run: RunAccount) -> list[str]:
    """Say how long participants waited in a run and for what, and how long they computed."""
    people, took, tally = len(run.habits.of), run.took, run.waiting
    together = f"together they waited {lasting(tally.waited)} for each other"
    share = f"{_share(tally.waited, took * people)} of their time"
    lines = [f"{name}: {counted(people, 'participant')}, {lasting(took)}; {together}, {share}"]
    if tally.held:
        lines.append(f"and {lasting(tally.held)} for an operator or the wall clock")
    links = tally.links()
    if not links:
        return lines
    width = max(len(way((each.hop,))) for each in links[:_LINKS_SHOWN])
    lines += ["", f"{'waited for':<{width}}  {'waited':>10}  {'share':>5}  {'waits':>9}"]
    lines += [
        f"{way((each.hop,)):<{width}}  {lasting(each.waited):>10}  {_share(each.waited, tally.waited):>5}  "
        f"{each.waits:>9,}"
        for each in links[:_LINKS_SHOWN]
    ]
    waited, awaited = _ranked(tally.by_participant), _ranked(tally.by_holder)
    lines += ["", f"who waited          {waited}", f"who was waited for  {awaited}"]
    if run.computing.computed:
        lines.append(f"who computed        {_computed(run.computing)}")
    return lines


def _computed(computing: ComputingTally) -> str:
    ranked = sorted(computing.computed.items(), key=lambda item: (-item[1], item[0]))
    each = (f"{name} {lasting(spent)}, {per_step(computing.per_step(name))}" for name, spent in ranked[:8] if spent)
    return "; ".join(each)


def per_step(nanoseconds: int) -> str:
    """Say how long a step takes."""
    return f"{nanoseconds / MS:.3g} ms a step"


def advice_in_words(advice: Sequence[Advice]) -> list[str]:
    """Say what would help, the best first."""
    if not advice:
        return ["nothing that was tried would remove as much as 2 % of the waiting"]
    return [_told(each) for each in advice]


def account_as_plain(name: str, run: RunAccount, advice: Sequence[Advice]) -> dict[str, Any]:
    """Return the same for JSON; times are in nanoseconds, the simulated ones and those of the wall clock."""
    tally = run.waiting
    return {
        "name": name,
        "took": run.took,
        "participants": list(run.habits.of),
        "waited": tally.waited,
        "waits": tally.waits,
        "held": tally.held,
        "links": [
            {**msgspec.to_builtins(each.hop), "waited": each.waited, "waits": each.waits} for each in tally.links()
        ],
        "by_participant": tally.by_participant,
        "by_holder": tally.by_holder,
        "computed": run.computing.computed,
        "steps": run.computing.steps,
        "advice": [
            {
                "text": each.text,
                "share": round(each.share, 4),
                "waited": each.after.waited,
                "instead_of": each.before.waited,
                "changes_results": not each.is_harmless,
            }
            for each in advice
        ],
    }


def _told(advice: Advice) -> str:
    before, after = advice.before, advice.after
    results = "no result of this run changes" if advice.is_harmless else "a different model"
    sooner = f", the run takes {1 - after.took / before.took:.0%} less" if after.took < 0.99 * before.took else ""
    return f"{advice.text} would remove {advice.share:.0%} of the waiting{sooner} ({results})"


def lasting(wall: int) -> str:
    """Write a time of the wall clock that was measured, in nanoseconds."""
    return f"{wall / MS:.0f} ms" if wall < 10 * SECOND else seconds(wall / SECOND)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "0%"


def _ranked(by_name: dict[str, int]) -> str:
    ranked = sorted(by_name.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {lasting(waited)}" for name, waited in ranked[:8] if waited)


# What got slower between two runs that were noted: who computes longer, and what is waited for longer.


_LEAST = 0.02  # Of the longer run: less is luck.
_SHOWN_MAX = 12


class Change(NamedTuple):
    """How long one thing takes in the first run and in the second, in nanoseconds of the wall clock."""

    what: str
    before: int
    after: int

    @property
    def more(self) -> int:
        return self.after - self.before


def changes(first: RunAccount, second: RunAccount) -> list[Change]:
    """Return what takes longer or less long, most first: what is computed, and then what is waited for on each link.

    What is computed comes first, because waiting follows from it.
    """
    least = _LEAST * max(first.took, second.took)
    computed = first.computing.computed, second.computing.computed
    before, after = ({way((each.hop,)): each.waited for each in run.waiting.links()} for run in (first, second))
    return [*_changed("{} computes", *computed, least), *_changed("waiting for {}", before, after, least)]


def _changed(what: str, first: Mapping[str, int], second: Mapping[str, int], least: float) -> list[Change]:
    names = sorted({*first, *second})
    found = [Change(what.format(name), first.get(name, 0), second.get(name, 0)) for name in names]
    return sorted((each for each in found if abs(each.more) >= least), key=lambda each: -abs(each.more))


def slower_in_words(names: tuple[str, str], first: RunAccount, second: RunAccount) -> list[str]:
    """Say what got slower, and by how much."""
    more = second.took - first.took
    than = f"{lasting(abs(more))} {'more' if more >= 0 else 'less'} than the {lasting(first.took)} of {names[0]}"
    lines = [f"{names[1]} took {lasting(second.took)}, {than}"]
    found = changes(first, second)
    if not found:
        return [*lines, "nothing that a participant computes or waits for differs by as much as 2 % of that"]
    for each in found[:_SHOWN_MAX]:
        longer = "longer" if each.more > 0 else "less"
        lines.append(
            f"{each.what}  {lasting(abs(each.more))} {longer}: {lasting(each.after)} instead of {lasting(each.before)}"
            f"{_steps(each, first, second)}"
        )
    return lines


def _steps(change: Change, first: RunAccount, second: RunAccount) -> str:
    name = change.what.removesuffix(" computes")
    tallies = first.computing, second.computing
    if name == change.what or not all(name in each.computed for each in tallies):
        return ""
    before, after = (each.per_step(name) for each in tallies)
    return f", {per_step(after)} instead of {per_step(before)}"
