"""The arbiter: decides who may go on, and up to when.

Theory of operation
-------------------
A sans-IO state machine. `handle(who, event)` takes typed events and returns a tuple of typed actions; it never
blocks, calls back, logs or reads a clock. An event that isn't legal raises and leaves the state as it was. What a
participant may do in which state is the table in `states`; who waits for whom is the calculus in `bounds`; who gets
which message is the `router`'s. This module ties them together.

A participant that has been granted up to a *horizon* knows everything that arrives before it. The arbiter gives it as
much as it can, not just the time asked for, and learns from later events how far it has come.

Invariants (`check_invariants` proves them for the present state, tests call it after every event)
--------------------------------------------------------------------------------------------------
A1. Safety: none is sent a message that arrives before its horizon, except by a subscription that it made since.
    Why: a horizon is at most the bound, and the bound is at most send + latency of all who can reach the
    participant; a send is never below the sender's promise, and a promise never shrinks. A new subscription adds
    edges, and takes the horizon back to the participant's own time. A newcomer adds edges too, and none is granted
    beyond a newcomer's start before it is there.
A2. Progress: a participant that waits has a bound below what it needs, or stands at the barrier or a newcomer's
    start. So none is forgotten.
A3. No deadlock: while the run goes on, a participant computes, or the barrier, the roster or a newcomer is what all
    wait for. Why: among the waiting, take the one that could act first. All others act later, and every latency
    is positive, so its bound lies beyond what it needs: it isn't waiting. One that peeks could act at its own time;
    it asks for no more than its reach after that, and none that acts then or later reaches it sooner.
A4. A promise is never below the participant's time, and a participant's time never above its horizon.

The order in which events of different participants come in shows in none of the results: messages are ordered by
their key, draws are keyed, the earliest stop counts, and an invitation counts from the earliest time it was given
for, before which the newcomer can't have started.

Not handled here: silence. Whether a participant is slow or dead is for the owner of the connection to find out; it
says `Lost`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from worldline.history.journal import run_digest
from worldline.history.monitor import checked_measure
from worldline.history.observer import DOWN, LOG, MEASURE, Observer
from worldline.history.outcome import Status
from worldline.history.plain import encoded
from worldline.lock import tuning
from worldline.lock.bounds import Bounds
from worldline.lock.events import (
    Abort,
    Action,
    Advance,
    Barrier,
    CallOff,
    Down,
    Event,
    Grant,
    Invite,
    Join,
    Leave,
    Log,
    Lost,
    Next,
    OperatorEvent,
    Over,
    ParticipantEvent,
    Peek,
    Promise,
    Publish,
    Reached,
    StartRun,
    Stop,
    Subscribe,
    Unsubscribe,
    Witness,
)
from worldline.lock.invariants import broken_grant, check_invariants
from worldline.lock.member import Member
from worldline.lock.refusals import (
    breaks_promise,
    control_too_early,
    impossible,
    no_control,
    not_subscribed,
    subscribed_already,
    takes_back_promise,
    too_large,
    undeclared,
)
from worldline.lock.remarks import Remarks, Standstill
from worldline.lock.router import Router
from worldline.lock.states import ASKING, PHASES, WAITING, Phase, State
from worldline.lock.why.reasons import Why, explain, waits_of
from worldline.model.draws.names import concerns
from worldline.model.errors import (
    ConfigurationError,
    PeerError,
    UsageError,
    WorldlineError,
    shown,
)
from worldline.model.lifecycle import LOG_KINDS, MEASURE_LINE
from worldline.model.links import as_buffer
from worldline.model.message import check_name
from worldline.model.payload import PAYLOAD_MAX, from_json
from worldline.model.plan import Plan, check_matched, check_plan
from worldline.model.reading import as_time
from worldline.model.time import FOREVER, TIME_MAX, format_time

if TYPE_CHECKING:
    import worldline.uncompiled as cython
else:
    try:
        import cython
    except ImportError:
        import worldline.uncompiled as cython

if not cython.compiled:  # Otherwise `arbiter.pxd` imports one in C.
    new_grant = Grant

# Looked up often.
_OVER = Phase.OVER
_COMPUTING, _ADVANCING, _AWAITING, _PEEKING, _JOINED = (
    State.COMPUTING,
    State.ADVANCING,
    State.AWAITING,
    State.PEEKING,
    State.JOINED,
)

_AS_AN_EVENT = 256  # Bytes of payloads that weigh as much as an event, for those who are told when much has happened.
_LINE = 100  # What a line that is logged takes, in bytes, besides its text; about.

DROPPED_BY_BUFFER = "dropped by its buffer"
NEVER_TAKEN = "never taken by its receiver"
"""Why a program wasn't given what had arrived: it had crashed, left or been ended before it could go on."""

OPERATOR = ""
"""Who speaks when it isn't a participant: no participant can have this name."""


class Arbiter:
    """The lock of one run. Its attributes may be read, by `explain` and the like; only its events change them."""

    def __init__(self, plan: Plan, observer: Observer | None = None) -> None:
        check_plan(plan)
        self.plan = plan
        self.phase = Phase.GATHERING
        self.events = 0  # How many were handled.
        self.end = FOREVER if plan.end is None else plan.end
        self.barrier = FOREVER
        self.ceiling = FOREVER  # The barrier or the first newcomer's start: none is granted more.
        self.topics_max: int | None = None  # How many topics a participant may have to do with.
        self.payload_max = PAYLOAD_MAX
        self.witness: Witness | None = None  # Told of all that is said, before anything follows from it.
        self.logs_max: int | None = None  # How many bytes one may log at one time of its own: they may all be kept.
        self.bounds = Bounds()
        self.newcomers: dict[str, Member] = {}  # Invited, and not started.
        self.router = Router(plan, self.bounds, observer, self.newcomers)
        self._observer = observer
        self._tell_every = self._tells_at = tuning.TELL_EVERY
        self.remarks = Remarks()  # For the end of the run.
        self._replaced: set[int] = set()  # The places of rows that have matched draws of participants.
        self.members = {name: Member(name, 0) for name in sorted(plan.roster)}
        # Those of the roster who haven't joined; and those of the roster and who came later, less those who have left.
        self._absent = self._present = len(self.members) + plan.vacancies
        self._enrolled: set[str] = set()  # Those of them who have taken a vacancy.
        self._capped: list[tuple[int, int, Member, int]] = []  # A heap of (goal, serial, who, its request).
        self._requests = 0
        self._rewired: dict[str, Member] = {}  # Those whose subscriptions have changed, and their edges not yet.
        self._actions: list[Action] = []
        # All that can be said but `Publish`, `Next` and `Advance`, which are said most.
        self._handlers: dict[type, Callable[[Member, Any], None]] = {
            Join: self._join,
            Promise: self._promise,
            Reached: self._reached,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Down: self._go_down,
            Invite: self._invite,
            Stop: self._stop,
            Log: self._log,
            Peek: self._peek,
            Leave: self._leave,
        }

    # --- In and out ---

    def handle(self, who: str, *events: Event) -> tuple[Action, ...]:
        """Do as `hear`, with the events one by one."""
        return tuple(self.hear(who, list(events)))

    def hear(self, who: str, events: list[Event] | list[ParticipantEvent]) -> list[Action]:
        """Take what a participant, or the operator, says at once, and return what follows from it.

        If one of several isn't legal, those before it have been taken, and what follows from them is returned with
        the next.
        """
        self.tell_if_due()
        if self.witness is not None:
            self.witness(who, events)
        member = self.members.get(who)
        if member is None:
            for event in events:
                self._without_member(who, event)
        else:
            for event in events:
                self._take(member, event)
        self.events += len(events)
        if self.phase is not _OVER:
            self._settle()
        actions, self._actions = self._actions, []
        return actions

    def _take(self, member: Member, event: Any) -> None:
        kind = type(event)
        if kind not in member.legal or self.phase is _OVER:
            raise self._illegal(member, event)
        try:
            if kind is Publish:
                self._publish(member, event)
            elif kind is Next:
                self._next(member, event)
            elif kind is Advance:
                self._advance(member, event)
            else:
                self._handlers[kind](member, event)
        except WorldlineError as error:
            raise error.concerning(member.name, member.now)  # noqa: B904 - the same error, not another.

    def _without_member(self, who: str, event: Event) -> None:
        if who != OPERATOR:
            raise UsageError(
                f"unexpected participant {who!r}",
                participant=who,
                advice=f"expected are {', '.join(sorted(self.members))}",
            )
        if event.__class__ not in PHASES[self.phase] or not isinstance(event, OperatorEvent):
            raise UsageError(f"{type(event).__name__} isn't possible: the run is {self.phase.value}")
        if self.phase is Phase.OVER:
            return
        if isinstance(event, Barrier):
            self._move_barrier(event.until)
        elif isinstance(event, Stop):
            self._stop_all(event.at)
        elif isinstance(event, Lost):
            self._lose(event)
        elif isinstance(event, CallOff):
            self._abort(event.cause)

    def _illegal(self, member: Member, event: Event) -> WorldlineError:
        what = type(event).__name__
        if self.phase is Phase.OVER:
            return PeerError(f"{what} isn't possible: the run is over", participant=member.name, at=member.now)
        possible = ", ".join(sorted([kind.__name__ for kind in member.legal])) or "nothing"
        error = impossible(what, member.state, f"possible now: {possible}", PeerError)
        return error.concerning(member.name, member.now)

    # --- Coming ---

    def enroll(self, name: str, join: Join) -> None:
        """Put a newly known name on the roster, in a place that is vacant, if it can join as it wants to."""
        check_name(name, "a participant")
        if not self.plan.vacancies or self.phase is not Phase.GATHERING or name in self.members:
            raise UsageError(f"there is no place for {name!r}")
        self._check_join(join)
        self._enrolled.add(name)
        self._fill({**self.members, name: Member(name, 0)})

    def _fill(self, members: dict[str, Member]) -> None:
        """Let these have places; all others are vacant."""
        self.members = dict(sorted(members.items()))
        places = len(self.plan.roster) + self.plan.vacancies
        self.plan = replace(self.plan, roster=tuple(self.members), vacancies=places - len(self.members))

    def _check_join(self, join: Join) -> None:
        topics = [subscription.topic for subscription in join.subscribes]
        for topic in (*topics, *(join.publishes or ())):
            check_name(topic, "a topic")
        for topic, times in Counter(topics).items():
            if times > 1:
                raise ConfigurationError(f"it subscribes to {topic!r} twice")
        for subscription in join.subscribes:
            as_buffer(subscription.buffer)
        as_time(join.latency_least, "the least latency of a participant's sends")
        self._check_topics(len(join.publishes or ()) + len(topics))

    def _join(self, member: Member, join: Join) -> None:
        self._check_join(join)
        for topic in join.publishes or ():
            self.remarks.publishes(topic)
        member.introduce(join)
        member.since = self.events
        member.move(Join)
        if member.name in self.newcomers:
            self.bounds.rewire(member, self.router.edges.controls_into(member))
            self._expect(member)
            return
        self._absent -= 1
        if not self._absent:
            self.phase = Phase.RUNNING
            for founder in self.members.values():
                self.bounds.add(founder)
            self._start(list(self.members.values()))

    def missing(self) -> list[str]:
        """Return who of the roster isn't there yet."""
        return [name for name, member in self.members.items() if member.state is State.EXPECTED]

    def _start(self, members: list[Member]) -> None:
        """Let members begin: all of the roster together, or a newcomer at its time."""
        for member in members:
            self.router.admit(member)
        for member in members:
            self.bounds.rewire(member, self.router.edges.into(member))
        for member in members:
            member.move(StartRun)
            self.bounds.change(member, member.start, member.start)
            if self._observer is not None:
                self._observer.began(member.name, member.start)
            member.reach = member.declared_reach = self.router.edges.reach(member)
            plan, name = self.plan, member.name
            draws = tuple([row for row in plan.draws if concerns(row.name, name)])
            control_latency = plan.network.control_latency
            self._actions.append(StartRun(name, member.start, plan.seed, control_latency, member.reach, draws))

    # --- Acting ---

    def _publish(self, member: Member, event: Publish) -> None:
        at, topic, payload = event.at, event.topic, event.payload
        if at < member.promise or at > TIME_MAX or len(payload) > self.payload_max:
            raise self._bad_publish(member, event)
        if topic not in member.publications:
            if not member.may_publish(topic):
                raise self._bad_publish(member, event)
            if topic not in member.spent:
                self._check_topics(member.topics + 1)
            self.remarks.publishes(check_name(topic, "a topic"))
        self._tells_at -= len(payload) // _AS_AN_EVENT
        for waiting in self.router.publish(member, topic, payload, at):
            self._ask(waiting)

    def _bad_publish(self, member: Member, event: Publish) -> WorldlineError:
        if not member.may_publish(event.topic):
            return undeclared(event.topic, member.publishes or ())
        if len(event.payload) > self.payload_max:
            return too_large(len(event.payload), self.payload_max)
        if event.at > TIME_MAX:
            as_time(event.at, "a send time")
        return breaks_promise(event.at, member.promise)

    def _check_topics(self, count: int) -> None:
        """Refuse to keep something for ever more topics; those declared or published on count, in use or not."""
        if self.topics_max is not None and count > self.topics_max:
            raise UsageError(
                f"it has to do with more than {self.topics_max:,} topics",
                advice="use fewer topics, or raise limits.topics",
            )

    def _promise(self, member: Member, event: Promise) -> None:
        if event.until < member.promise:
            raise takes_back_promise(event.until, member.promise, PeerError)
        as_time(event.until, "a promise")
        self.bounds.change(member, member.base, event.until)

    def _reached(self, member: Member, event: Reached) -> None:
        self._check_now(member, event.now)
        self._move(member, event.now)

    def _check_now(self, member: Member, now: int) -> None:
        if not member.now <= now <= max(member.now, member.granted) or now >= FOREVER:
            raise PeerError(
                f"it can't be at {format_time(now)}", advice=f"it was granted up to {format_time(member.granted)}"
            )

    def _check_edge(self, member: Member, now: int, edge: int) -> None:
        """A subscription begins and ends at the participant's time, or just after it."""
        if edge not in (now, now + 1):
            raise PeerError(
                f"a subscription can't begin or end at {format_time(edge)}", participant=member.name, at=now
            )

    def _move(self, member: Member, now: int) -> None:
        member.now = now
        self.bounds.change(member, now, max(member.promise, now))

    def _subscribe(self, member: Member, event: Subscribe) -> None:
        topic = event.subscription.topic
        check_name(topic, "a topic")
        as_buffer(event.subscription.buffer)
        if topic in member.subscriptions:
            raise subscribed_already(topic, PeerError)
        self._check_topics(member.topics + 1)
        self._check_now(member, event.now)
        self._check_edge(member, event.now, event.since)
        member.hears(topic, event.subscription.buffer.limit != 0)
        member.granted = event.now  # All that was granted ahead is taken back: the new topic may have more to say (A1).
        self.router.subscribe(member, event.subscription, event.since)
        self._rewired[member.name] = member
        self._move(member, event.now)

    def _unsubscribe(self, member: Member, event: Unsubscribe) -> None:
        if event.topic not in member.subscriptions:
            raise not_subscribed(event.topic, PeerError)
        self._check_now(member, event.now)
        self._check_edge(member, event.now, event.until)
        member.hears(event.topic, False)
        self.router.unsubscribe(member, event.topic, event.until)
        self._rewired[member.name] = member
        self._move(member, event.now)

    def _go_down(self, member: Member, event: Down) -> None:
        self._check_now(member, event.now)
        if not event.now <= event.until <= FOREVER:
            raise PeerError(f"it can't be down until {format_time(event.until)}", participant=member.name, at=event.now)
        for topic, since in event.lost.items():
            if topic not in member.subscriptions:
                raise not_subscribed(topic, PeerError)
            self._check_edge(member, event.now, since)
        self.router.bring_down(member, event.lost, event.until)
        self._move(member, event.now)

    def _log(self, member: Member, event: Log) -> None:
        if event.kind and event.kind not in LOG_KINDS:
            raise PeerError(f"it can't log a line of the kind {shown(event.kind)}")
        size = len(event.text.encode())
        if size > self.payload_max:
            raise too_large(size, self.payload_max)
        if member.logged_at < member.now:
            member.logged_at, member.logged = member.now, 0
        member.logged += size + _LINE
        if self.logs_max is not None and member.logged > self.logs_max:
            raise UsageError(
                f"it has logged {member.logged:,} bytes without going on",
                advice=f"limits.flood is {self.logs_max:,}",
            )
        if event.kind == MEASURE_LINE:
            self._measured(member, event.text.encode())
            return
        if self.plan.network.estop is not None:
            self.remarks.logged(member.name, member.now, event.text, event.kind)
        if self._observer is not None:
            line = {"text": event.text, "kind": event.kind} if event.kind else {"text": event.text}
            self._observer.noted(member.name, LOG, member.now, encoded(line))

    def _measured(self, member: Member, line: bytes) -> None:
        """Keep a number that a participant has measured: an object with one field."""
        try:
            ((what, value),) = from_json(line, dict[str, int | float]).items()
            what, value = checked_measure(what, value)
        except (WorldlineError, ValueError) as error:
            raise PeerError(f"it can't measure {shown(line)}", advice='a measure is {"NAME": NUMBER}') from error
        self.remarks.monitors.of(member.name, what).record(member.now, value)
        if self._observer is not None:
            self._observer.noted(member.name, MEASURE, member.now, line)

    def _leave(self, member: Member, event: Leave) -> None:
        self._check_now(member, event.now)
        if event.waited is not None and not 0 <= event.waited <= event.now:
            raise PeerError(f"it can't have waited since {format_time(event.waited)}")
        self._check_topics(max(map(len, (event.dropped, event.missed, event.awaited, event.untaken))))
        member.now = event.now
        member.digest = event.digest
        for topic, count in event.dropped.items():
            member.inbox.dropped[topic, DROPPED_BY_BUFFER] = count
        for topic, count in event.missed.items():
            member.inbox.dropped[topic, DOWN] = count
        for topic, count in event.untaken.items():
            member.inbox.dropped[topic, NEVER_TAKEN] = count
        if event.replaced:
            self._note_replaced(member.name, event.replaced)
        member.move(Leave)
        self.remarks.left(member.name, member.subscriptions, event.waited)
        for fault in self.plan.faults if event.awaited else ():
            if fault.participant == member.name and str(fault) in event.awaited:
                self.remarks.awaited(fault, event.awaited[str(fault)])
        self.router.dismiss(member, event.now + event.complete)
        if self._observer is not None:
            self._observer.ended(member.name, event.now, event.digest)
        self.bounds.rewire(member, [])
        self.bounds.change(member, FOREVER, FOREVER)
        self._present -= 1
        self._finish_if_deserted()

    def _note_replaced(self, name: str, replaced: Iterable[int]) -> None:
        """Note which rows of the table of draws a participant's streams have matched."""
        told = [place for place, row in enumerate(self.plan.draws) if concerns(row.name, name)]
        for place in replaced:
            if not 0 <= place < len(told):
                raise PeerError(f"it can't have replaced draws by row {place}: it was told {len(told)} rows")
            self._replaced.add(told[place])

    def check_draws(self) -> None:
        """After the run, refuse its table of draws if some row of it has matched none."""
        draws = self.router.draws
        if draws is not None:
            check_matched(self.plan.draws, self._replaced.union(draws.matched))

    def _finish_if_deserted(self) -> None:
        """End the run when all have left, and none comes any more."""
        if self._present or True in [newcomer.start <= self.end for newcomer in self.newcomers.values()]:
            return
        self.phase = Phase.OVER
        for name, newcomer in self.newcomers.items():
            # Invited for a time that never came: no part of the run, whether it was there or not.
            del self.members[name]
            if newcomer.state is State.JOINED:
                self._actions.append(Grant(name, self.end, [], final=True))
        self._actions.append(Over(self.digest()))

    # --- Controlling ---

    def _invite(self, member: Member, event: Invite) -> None:
        check_name(event.newcomer, "a participant")
        self._check_control(member, "invite", event.at)
        if event.newcomer in self.plan.roster:
            raise UsageError(f"{event.newcomer!r} is on the roster already")
        member.granted = min(member.granted, event.at)  # The newcomer may have something to say from then on (A1).
        newcomer = self.members.get(event.newcomer)
        if newcomer is None:
            newcomer = self.members[event.newcomer] = self.newcomers[event.newcomer] = Member(event.newcomer, event.at)
            self.bounds.add(newcomer)
        elif event.newcomer not in self.newcomers or event.at >= newcomer.start:
            return
        newcomer.begin_at(event.at)
        self.ceiling = self._highest()
        self._expect(newcomer)

    def _stop(self, member: Member, event: Stop) -> None:
        self._check_control(member, "stop", event.at)
        if event.at < self.end:
            member.granted = min(member.granted, event.at)
            self._end_at(event.at)

    def _stop_all(self, at: int) -> None:
        """End the run where the operator says, which must be where none has been allowed to pass."""
        as_time(at, "the time to stop")
        if at < self.farthest():
            raise UsageError(
                f"a participant has passed {format_time(at)} already", advice="hold all of them there first"
            )
        if at < self.end:
            self._end_at(at)

    def _end_at(self, at: int) -> None:
        self.end = at
        for newcomer in self.newcomers.values():
            self._expect(newcomer)
        for other in self.members.values():
            if other.state in WAITING and other.awaits > at:
                self._ask(other)
        self._raise_ceiling()
        self._finish_if_deserted()

    def _check_control(self, member: Member, verb: str, at: int) -> None:
        if not member.controls:
            raise no_control(verb)
        as_time(at, f"the time to {verb}")
        earliest = member.promise + self.plan.network.control_latency
        if at < earliest:
            raise control_too_early(verb, at, earliest)

    def _expect(self, newcomer: Member) -> None:
        """Let the run wait for a newcomer, unless it ends before that one's start."""
        if newcomer.start > self.end:
            # It may yet be invited for an earlier time, so it isn't told anything before the run is over.
            self.bounds.change(newcomer, FOREVER, FOREVER)
        elif newcomer.state is State.JOINED:
            self._ask(newcomer)
        else:
            self.bounds.change(newcomer, newcomer.start, newcomer.start)

    # --- Waiting and going on ---

    def _advance(self, member: Member, event: Advance) -> None:
        to = event.to
        if not member.now <= to <= TIME_MAX:
            raise _bad_request(to)
        member.move(Advance)
        self._wait(member, to)

    def _next(self, member: Member, event: Next) -> None:
        until, held = event.until, event.held
        if not (member.now <= until <= TIME_MAX or until == FOREVER) or held < member.now:
            raise _bad_request(until)
        member.move(Next)
        member.held = held
        self._wait(member, until)

    def _peek(self, member: Member, event: Peek) -> None:
        farthest = min(member.now + member.reach, TIME_MAX)
        if not member.now <= event.until <= farthest or event.held < member.now:
            raise _bad_request(event.until)
        member.move(Peek)
        member.held = event.held
        self._wait(member, event.until)

    def _wait(self, member: Member, until: int) -> None:
        if until == member.now:  # It is there already; nothing that it could still learn arrives before.
            member.move(Grant)
            self._actions.append(Grant(member.name, max(member.granted, until), []))
            return
        member.expects = member.state is not _ADVANCING
        member.awaits = until
        member.since = self.events
        self._ask(member)

    def goal(self, member: Member) -> int:
        """Return the bound that a waiting member needs to go on."""
        awaits = member.awaits if member.awaits < self.end else self.end  # Or to be told that the run has ended.
        if member.expects:
            first = member.inbox.first if member.inbox.first < member.held else member.held
            if first < awaits:
                return first + 1  # All that arrives at this very time must be known too.
        return awaits

    def _acts(self, member: Member) -> int:
        """Return when a waiting member acts, as far as it alone decides."""
        if member.state is _PEEKING:
            return member.now  # From now on, whatever comes.
        ends = member.awaits > self.end
        if member.expects:
            first = member.inbox.first if member.inbox.first < member.held else member.held
            if first < (self.end if ends else member.awaits):
                return first
        return FOREVER if ends else member.awaits  # Told that the run has ended, it does nothing more.

    def _ask(self, member: Member) -> None:
        """Put what a waiting member needs before the calculus, unless the ceiling is in the way."""
        goal = self.goal(member)
        if self._is_capped(goal):
            self._cap(member, goal)
            goal = 0
        elif not goal:
            goal = 1  # Stopped at the very start; 0 would be none. Nothing arrives before.
        self.bounds.change(member, self._acts(member), member.promise, goal, member.state is _AWAITING)

    def _is_capped(self, goal: int) -> bool:
        """Whether the ceiling is in the way. To learn that nothing can come any more, none has to pass a barrier."""
        return goal > self.ceiling and (goal != FOREVER or len(self.newcomers) > 0)

    def _cap(self, member: Member, goal: int) -> None:
        """Remember who stands at the ceiling, and forget those who have gone on since."""
        self._requests += 1
        heappush(self._capped, (goal, self._requests, member, member.since))
        if len(self._capped) > 2 * len(self.members) + 8:
            latest = {entry[2].name: entry for entry in sorted(self._capped, key=lambda entry: entry[1])}
            self._capped = [entry for entry in latest.values() if entry[2].since == entry[3]]
            heapify(self._capped)

    def _settle(self) -> None:
        """Grant all who are ready, and those whom that sets free, until none is."""
        if self._rewired:  # Once, however many subscriptions there were: edges aren't looked at before now.
            for rewired in self._rewired.values():
                self.bounds.rewire(rewired, self.router.edges.into(rewired))
            self._rewired.clear()
        while ready := self.bounds.take_ready():
            begun = False
            for member in ready:
                assert isinstance(member, Member)
                if member.state is _COMPUTING or member.state not in ASKING:
                    continue  # It was asked for twice, and has been granted.
                if begun or self._is_capped(self.goal(member)):
                    self._ask(member)  # The ceiling has come down since it asked, or a newcomer can reach it now.
                elif member.state is _JOINED:
                    self._begin(member)
                    begun = True
                else:
                    self._grant(member, member.reached)

    def _grant(self, member: Member, bound: int) -> None:
        end = self.end
        horizon = FOREVER if self.goal(member) == FOREVER else min(bound, self.ceiling, end)
        messages = member.inbox.take(horizon)
        arrives = FOREVER
        if messages:
            first = messages[0]
            arrives = first.arrival
        now = acts = member.awaits
        if now > end:
            now, acts = end, FOREVER
        elif now == FOREVER:
            now = member.now  # Nothing can come any more, and there is no end to go to.
        if member.expects:
            member.expects = False
            wakes = arrives if arrives < member.held else member.held
            if member.state is _PEEKING:
                now = acts = member.now
            elif wakes < member.awaits and wakes < horizon:
                now = acts = wakes
        if now < member.now or now > horizon or arrives < member.granted:
            raise broken_grant(member, now, messages)
        assert member.inbox.first >= horizon, "A1: what isn't handed over arrives at the horizon or later"
        member.now = now
        member.granted = horizon
        member.move(Grant)
        if acts == FOREVER:
            member.retire()
            self.bounds.change(member, FOREVER, FOREVER)
        else:
            promise = member.promise
            self.bounds.change(member, acts, now if now > promise else promise)
        self._actions.append(new_grant(member.name, horizon, messages, horizon == end))

    def _begin(self, newcomer: Member) -> None:
        """A newcomer's start is settled: none can invite it for an earlier time any more."""
        del self.newcomers[newcomer.name]
        self._present += 1
        self._start([newcomer])
        for other in self.members.values():
            if other is newcomer or other.state in (State.LEFT, State.EXPECTED):
                continue
            if other.state is State.JOINED:  # Another newcomer: only an earlier invitation or the end concern it yet.
                latency = self.plan.network.control_latency if newcomer.controls else FOREVER
            else:
                latency = self.router.edges.least(newcomer, other)
            if latency < FOREVER:
                self.bounds.connect(newcomer, other, latency)
        self._raise_ceiling()

    # --- Operating ---

    def _move_barrier(self, until: int) -> None:
        self.barrier = until if until == FOREVER else as_time(until, "a barrier")
        self._raise_ceiling()

    def _raise_ceiling(self) -> None:
        """Bring the ceiling up to date and ask again for those who are no longer above it."""
        self.ceiling = self._highest()
        while self._capped and self._capped[0][0] <= self.ceiling:
            _, _, member, since = heappop(self._capped)
            if member.since == since and member.state in WAITING:
                self._ask(member)
            elif member.state is State.JOINED:
                self._expect(member)

    def _highest(self) -> int:
        starts = [newcomer.start for newcomer in self.newcomers.values() if newcomer.start <= self.end]
        return min(self.barrier, *starts, FOREVER)

    def _lose(self, event: Lost) -> None:
        member = self.members.get(event.name)
        if member is None or member.state in (State.LEFT, State.EXPECTED):
            return  # It had nothing more to say, or has said nothing yet.
        if member.state is State.JOINED:
            self._await(member)
        else:
            self._abort(event.cause, member)

    def _await(self, member: Member) -> None:
        """Expect a participant again that has gone before its start: it has had no effect on anything."""
        member.move(Lost)
        if member.name in self.newcomers:
            self.bounds.rewire(member, [])
            self._expect(member)
            return
        self._absent += 1
        if member.name in self._enrolled:  # The one that comes next may have another name.
            self._enrolled.remove(member.name)
            self._fill({name: each for name, each in self.members.items() if each is not member})

    def _abort(self, cause: str, culprit: Member | None = None) -> None:
        self.phase = Phase.OVER
        for name, member in self.members.items():
            if member.state not in (State.LEFT, State.EXPECTED) and member is not culprit:
                at = None if culprit is None else culprit.now
                self._actions.append(Abort(name, cause, None if culprit is None else culprit.name, at))

    # --- Telling ---

    def digest(self) -> bytes:
        """Return the digest of the run, of all that have left so far."""
        left = [member for member in self.members.values() if member.state is State.LEFT]
        return run_digest([(member.name, member.now, member.digest) for member in left])

    def participants(self) -> dict[str, tuple[State, int]]:
        """Return the states and times of all, by name."""
        return {name: (self.members[name].state, self.members[name].now) for name in sorted(self.members)}

    def dropped(self) -> dict[tuple[str, str, str], int]:
        """Return how many messages were lost, by (receiver, topic, reason); final for those who have left."""
        return {
            (name, topic, reason): count
            for name, member in sorted(self.members.items())
            for (topic, reason), count in sorted(member.inbox.dropped.items())
        }

    def standstill(self) -> Standstill | None:
        """Return the standstill that the run, now over, ended in, if it did, and wasn't stopped."""
        if self.end != (FOREVER if self.plan.end is None else self.plan.end) or self.router.latest >= self.end:
            return None  # It was stopped, or something was under way that would have come too late.
        return self.remarks.standstill(self.members, self.plan.end)

    def farthest(self) -> int:
        """Return the earliest time that none can have passed: where the run can still be ended."""
        started = [member for name, member in self.members.items() if name not in self.newcomers]
        return max([member.now if member.is_done else member.granted for member in started], default=0)

    def rests(self) -> bool:
        """Whether the run has begun and none does anything: all stand at the barrier, or wait for those."""
        return self.phase is Phase.RUNNING and State.COMPUTING not in [member.state for member in self.members.values()]

    def floor(self) -> int:
        """Return a time before which all is settled: none acts there, and what arrives there is received or lost.

        Those who have been told of the end do nothing more, but until they have left, what is under way to them at
        the end isn't settled.
        """
        if self.phase is Phase.GATHERING:
            return 0
        return min(self.bounds.floor(), self.end) if self._present else self.bounds.floor()

    def tell_if_due(self) -> None:
        """Tell the observer what is settled, if much has happened: so little has to be kept until then.

        For the arbiter's driver, when others have been given their answers and compute. It is told before more is
        heard in any case.
        """
        if self._observer is not None and self.events >= self._tells_at:
            self.tell_passed()

    def tell_passed(self) -> None:
        """Tell the observer what is settled. For the arbiter's driver, now and then, and at the end."""
        if self._observer is not None:
            self._tells_at = self.events + self._tell_every
            self._observer.passed(self.floor())

    def status(self) -> Status:
        """Say how far the run is. Where all have ended, that is as far as they have come."""
        floor = self.floor()
        if floor == FOREVER:
            floor = max([member.now for member in self.members.values()], default=0)
        return Status(floor, self.end, self.events, lambda: waits_of(self))

    def time_of(self, name: str) -> int:
        """Return how far a participant has said that it has come."""
        member = self.members.get(name)
        return 0 if member is None else member.now

    def why(self) -> tuple[Why, ...]:
        """Say of all who wait who keeps them waiting, in the order of their names."""
        return explain(self)

    def check_invariants(self) -> None:
        """Raise if the state isn't one that the head of this module promises; slow, for tests."""
        check_invariants(self)


def _bad_request(asked: int) -> PeerError:
    return PeerError(f"it can't ask for {format_time(asked)}")
