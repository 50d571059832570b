"""A Drake diagram as a simulator that can be driven: exact send times, and messages that are there when they arrive.

Theory of operation
-------------------
The systems of the diagram speak LCM over objects of ours that lead nowhere (``memq://``): one takes what they publish,
the other gives them what arrives. They can't be told apart from a network by the systems, so nothing in a diagram
changes but that object.

- A publish event only queues its message, without a time. Drake calls the simulator's monitor after every step, when
  all publish events of that time have happened: whatever is queued then was published at that time. What Python code
  publishes on the diagram's LCM object, in an update for instance, is noted with the time at which it does.
- ``AdvanceTo(t)`` makes the publish events at t and leaves the updates at t pending. So what arrives at t is put into
  the context between the two. A subscriber looks at its queue in an update of its own, which would come too late; its
  initialization event does the same at once.
- A stop between two steps of its own shows (see `driving`), so it stops nowhere else than where it is told to, and
  where events clash.
- Events lie at float multiples of their periods: see `Grid`. At one nanosecond all publishes come first, then what
  arrives, then all updates. Mostly it is enough to stop at the last float of a publish, or else at the first of an
  update. Where an update's float lies before a publish's, it stops at the first of them; then *twins*, other simulators
  of the same context, make the publishes of the following floats, and after what arrives they make the updates.
- Of events that aren't in `EventTimes`, the monitor ends the step at the first before the nanosecond's own float.
- Times on a grid whose period isn't a whole number of nanoseconds are rounded, and so are delays: what is to arrive at
  such a time may come 1 ns sooner or later, and counts as if it came then.
"""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, inf, nextafter
from typing import Any, Literal, NoReturn
from weakref import WeakKeyDictionary

from pydrake.lcm import DrakeLcm
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.analysis import InitializeParams, Simulator, SimulatorStatus
from pydrake.systems.framework import Context, EventStatus, LeafSystem, PublishEvent, System
from pydrake.systems.lcm import LcmPublisherSystem
from pydrake.systems.primitives import VectorLogSink

from worldline.federation.participant.program import is_normal_end
from worldline.metasim.driving import Grid, Send, SimulatorEnded, nanoseconds
from worldline.model import TIME_MAX, Message, ModelError, PeerError, UsageError, WorldlineError, format_time
from worldline.model.blame import described, said_of
from worldline.model.errors import shown
from worldline.model.time import SECOND

Monitor = Callable[[Context], Any]

_BESIDE = 4  # Multiples of periods that mean the same differ by fewer floats.
_ECHO = -1  # What arrives, on an object that serves both ways, isn't sent.
_GOES_ON = (EventStatus.Severity.kDidNothing, EventStatus.Severity.kSucceeded)


class DiagramLcm(DrakeLcm):
    """An LCM object that tells when Python code publishes something on it; Drake's own systems don't come by here."""

    tell: Callable[[str, bytes, float | None], None] | None = None

    def Publish(self, channel: str, buffer: bytes, time_sec: float | None = None) -> None:  # noqa: N802 # Drake's name.
        super().Publish(channel, buffer, time_sec)
        if self.tell is not None:
            self.tell(channel, buffer, time_sec)


@dataclass
class Instant:
    """A nanosecond at which a diagram stands, or which it goes to."""

    time: int = 0
    clashing: list[float] = field(default_factory=list)  # Its floats, if its events clash.
    stops_early: bool = False  # Whether the first step that ends at it is the last.
    updates: bool = False  # Whether its updates are under way, if its events clash.


class DiagramSimulator:
    """A diagram with its simulator, as a `MessageSimulator`.

    Of its LCM objects, `outward` take what it publishes, and `inward` give it what arrives. `subscribers` are the
    systems that listen to a channel.
    """

    def __init__(
        self,
        simulator: Simulator,
        outward: Sequence[DrakeLcm],
        inward: Sequence[DrakeLcm],
        subscribers: Mapping[str, list[Any]],
        event_times: EventTimes,
    ) -> None:
        self.name = ""  # The participant's, once it is one.
        self.monitor: Monitor | None = None  # The user's own, called after each step.
        self._simulator = simulator
        self._outward, self._inward, self._subscribers = outward, inward, subscribers
        self._event_times = event_times
        self._send: Send | None = None  # None: it hasn't begun.
        self._instant = Instant()
        self._told = 0  # The time that it was told to advance to last: it sends nothing before.
        self._early: list[Message] = []  # What is to take effect 1 ns later.
        # What is to be handled that Python code has published, and when; or what arrives, and _ECHO.
        self._noted: deque[tuple[str, bytes, int]] = deque()
        self._step: Literal["asked for", "monitored", "stopped"] = "monitored"
        self._twins: list[Simulator] = []
        # Drake's objects hold what they call where Python's garbage collector doesn't see it: no cycle would ever go.
        this = weakref.proxy(self)
        for lcm in outward:
            lcm.SubscribeAllChannels(lambda channel, data: this._published(channel, data))
            if isinstance(lcm, DiagramLcm):
                lcm.tell = lambda channel, data, seconds: this._note(channel, data, seconds)
        simulator.set_monitor(lambda context: this._after_step(context))

    @property
    def _context(self) -> Context:
        return self._simulator.get_mutable_context()

    # --- As a MessageSimulator ---

    def begin(self, now: int, send: Send) -> None:
        if now:
            floats = self._event_times.floats(now)
            self._instant = Instant(now, _between(floats))
            self._context.SetTime(floats[0] if floats else now / SECOND)
        elif self._context.get_time():
            raise UsageError(
                f"its simulator stands at {self._context.get_time()} seconds already, and the run begins at 0",
                participant=self.name,
                advice="leave the time of its context to the client",
            )
        self._send_published()  # If it was initialized before: that is done again, and now it counts.
        self._send, self._told = send, now
        self._run(self._simulator.Initialize)

    def due(self) -> int | None:
        return self._event_times.next_send(self._instant.time)

    def advance_to(self, time: int) -> None:
        if self._early and time > self._instant.time:
            self._go_to(self._instant.time + 1)
            early, self._early = self._early, []
            self._take(early)
        # Updates 1 ns before wait for what arrives now.
        waits = self._event_times.is_rounded(time - 1) and not self._event_times.floats(time)
        self._go_to(time - 1 if waits else time)
        self._told = time

    def receive(self, messages: list[Message]) -> None:
        if self._event_times.is_rounded(self._instant.time + 1):
            self._early += messages
        else:
            self._take(messages)

    # --- Inside ---

    def _go_to(self, time: int) -> None:
        while (clash := self._event_times.clash(self._instant.time, time)) is not None:
            self._advance(clash, _between(self._event_times.floats(clash)))
        if time > self._instant.time:
            self._advance(time, [])

    def _advance(self, time: int, clashing: list[float]) -> None:
        if self._instant.clashing:
            self._update()
        if clashing:
            stop = clashing[0]
        elif published := self._event_times.published(time):
            stop = max(published)
        else:
            stop = min(self._event_times.updated(time), default=time / SECOND)
        self._instant = Instant(time, clashing, stops_early=not (clashing or published))
        self._run(self._simulator.AdvanceTo, stop)

    def _publish_later(self) -> None:
        """Make the publishes of the following floats of this instant now, before anything arrives or is updated."""
        first, *later = self._instant.clashing
        while len(self._twins) < len(later):
            self._twins.append(Simulator(self._simulator.get_system(), self._context))
        for twin, at in zip(self._twins, later, strict=False):
            self._context.SetTime(at)
            _check(twin.Initialize(ONLY_EVENTS))
            for publish in self._event_times.overlooked(self._instant.time, at):
                publish(self._context)
        self._context.SetTime(first)

    def _update(self) -> None:
        """Make the updates of this instant, one float after the other, and stand at the last of them."""
        self._instant.updates = True
        self._run(self._simulator.AdvancePendingEvents)  # The monitor sets the time.
        (_, *later), self._instant.clashing = self._instant.clashing, []
        try:
            for twin, at in zip(self._twins, later, strict=False):
                self._context.SetTime(at)
                _check(twin.AdvancePendingEvents())
            self._send_published()
        except (Exception, SystemExit) as error:
            self._blame(error)
        self._instant.updates = False

    def _take(self, messages: list[Message]) -> None:
        try:
            for lcm in self._inward:
                for message in messages:
                    DrakeLcm.Publish(lcm, message.topic, message.payload)
                    if lcm in self._outward:
                        self._noted.append((message.topic, message.payload, _ECHO))
                lcm.HandleSubscriptions(0)
            for last in {message.topic: message for message in messages}.values():  # On each channel, it alone counts.
                for subscriber in self._subscribers.get(last.topic, ()):
                    self._read(subscriber, last)
            self._send_published()  # By force, by what listens.
        except (Exception, SystemExit) as error:
            self._blame(error)

    def _run(self, step: Callable[..., SimulatorStatus], *given: float) -> None:
        self._step = "asked for"
        try:
            status = step(*given)
        except (Exception, SystemExit) as error:
            self._blame(error)
        if self._step == "asked for":
            raise UsageError(
                "its simulator's monitor has been replaced, so it isn't known any more when it publishes",
                participant=self.name,
                at=self._time(),
                advice="call set_monitor of the client instead",
            )
        if self._step != "stopped":
            _check(status)

    def _blame(self, error: BaseException) -> NoReturn:
        """Raise anew what was raised in the diagram, with the participant and the time."""
        if isinstance(error, WorldlineError) or is_normal_end(error):
            raise error
        # With SystemExit, Drake reports a failed assertion.
        gives_up = isinstance(error, SystemExit)
        problem = f"Drake has given up: {error}" if gives_up else f"its diagram raised {said_of(error)}"
        raise ModelError(problem, participant=self.name, at=self._time()) from error

    def _after_step(self, context: Context) -> Any:
        self._step = "monitored"
        if self._instant.updates:
            self._send_published()
            self._context.SetTime(self._instant.clashing[-1])
            return None
        if self._instant.clashing and context.get_time() == self._instant.clashing[0]:
            self._publish_later()
        status = None if self.monitor is None else self.monitor(context)
        if status is not None and not isinstance(status, EventStatus):
            raise UsageError(
                f"its monitor returned {shown(status)}",
                participant=self.name,
                at=self._time(),
                advice="return an EventStatus, or nothing",
            )
        self._send_published()
        if self._instant.stops_early and not _ends(status) and nanoseconds(context.get_time()) == self._instant.time:
            self._step = "stopped"
            return EventStatus.ReachedTermination(self._simulator.get_system(), "")
        return status

    def _send_published(self) -> None:
        for lcm in self._outward:
            lcm.HandleSubscriptions(0)

    def _note(self, channel: str, data: bytes, seconds: float | None) -> None:
        """Note that Python code publishes something now; that counts as soon as it is handled."""
        now = self._time()
        if seconds is not None and nanoseconds(seconds) != now and self._send is not None:
            raise UsageError(
                f"it publishes on {channel!r} with a time_sec of {seconds!r}, which isn't now",
                participant=self.name,
                at=now,
                advice="leave time_sec out: a message is sent when it is published",
            )
        self._noted.append((channel, data, now))

    def _published(self, channel: str, data: bytes) -> None:
        at = self._time()
        if self._noted and self._noted[0][:2] == (channel, data):
            at = self._noted.popleft()[2]
            if at == _ECHO:
                return
        elif self._instant.updates:
            return  # By a step of no length, after what was published at this instant.
        if self._send is not None:
            self._send(channel, data, max(at, self._told))

    def _read(self, subscriber: Any, message: Message) -> None:
        try:
            subscriber.ExecuteInitializationEvents(subscriber.GetMyMutableContextFromRoot(self._context))
        except (Exception, SystemExit) as error:  # From Python and from C++, respectively.
            raise PeerError(
                f"it can't read what {message.sender} has sent on {message.topic!r} at {format_time(message.sent)}: "
                f"{described(error)}",
                participant=self.name,
                at=message.arrival,
                advice="both ends of a channel use the same type",
            ) from error

    def _time(self) -> int:
        return nanoseconds(self._context.get_time())


def _between(floats: list[float]) -> list[float]:
    """Return the floats at and beside these, from the first of them to the last; none, if they are one.

    Those beside them are for events that aren't in `EventTimes`. All others may be too many: periods that differ, such
    as 1/60 and 0.016666667, may meet in a nanosecond with 10^8 floats between them.
    """
    near = set(floats)
    for at in floats:
        below = above = at
        for _ in range(_BESIDE):
            below, above = nextafter(below, -inf), nextafter(above, inf)
            near |= {below, above}
    found = sorted(at for at in near if floats[0] <= at <= floats[-1])
    return found if len(found) > 1 else []


def _check(status: SimulatorStatus) -> None:
    if not status.succeeded():
        raise SimulatorEnded(status.FormatMessage())


def _ends(status: EventStatus | None) -> bool:
    """Whether a user's monitor wants the simulator to end, or has failed."""
    return status is not None and status.severity() not in _GOES_ON


# When the events of a diagram's systems are, of which Drake tells Python little.
#
# - What a system in Python declares is noted when it does, from the import of this module on.
# - A publisher or a logger of Drake's own is run alone: for want of an input it fails at its first event, before it has
# done anything, and that tells its period.
# - Of other systems, Drake tells the period of discrete updates if all of one system have the same.

ONLY_EVENTS = InitializeParams(suppress_initialization_events=True)

_SOON, _NEVER = 1e-12, 1e15  # In seconds: before all that is periodic, and after it.
_MANY = 2**20

Publish = Callable[[Context], Any]
"""Publishes what a system does at a time of its own, given the system's context."""

Times = dict[tuple[float, float], list[Publish]]
"""Periods and offsets, in seconds, and what is published at these."""


_declared: WeakKeyDictionary[System, tuple[Times, Times]] = WeakKeyDictionary()
"""What systems publish and what they update."""


class EventTimes:
    """When the systems of a diagram publish and update something periodically, as far as that is known.

    By the run's rule, everything is published before anything is updated at one nanosecond. Drake goes by floats: where
    an update's lies before a publish's, the two *clash*. `sending` are the periods with which the diagram sends; None:
    that isn't known.
    """

    def __init__(self, leaves: Iterable[System], sending: Iterable[float] | None = None) -> None:
        self._sending = None if sending is None else [Grid(period) for period in sending]
        publishes: dict[tuple[float, float], list[tuple[System, Publish]]] = {}
        updates: Times = {}
        self.steps: dict[float, None] = {}  # Periods of the discrete updates that Drake tells of.
        for leaf in leaves:
            (published, updated), told = _declared.get(leaf, ({}, {})), _told(leaf)
            for each, actions in (*published.items(), *_tried(leaf).items()):
                publishes.setdefault(each, []).extend((leaf, publish) for publish in actions)
            updates |= updated | told
            self.steps |= {period: None for period, _ in told}
        self.publishes = [Grid(*each, fused=_fuses()) for each in publishes]
        self.updates = [Grid(*each, fused=_fuses()) for each in updates]
        self._publishers = list(zip(self.publishes, publishes.values(), strict=True))
        self._rounded = [grid for grid in (*self.publishes, *self.updates) if grid.is_rounded]
        self._pairs = [
            (publish, update)
            for publish in self.publishes
            for update in self.updates
            if (publish.period, publish.offset) != (update.period, update.offset)  # Those of one grid have one float.
        ]
        self._searched = 0
        self._found: int | None = None  # The clash up to which it has searched.

    def next_send(self, now: int) -> int | None:
        """Return the next time after now at which anything is sent; None if that isn't known."""
        if self._sending is None:
            return None
        return min((grid.after(now) for grid in self._sending), default=TIME_MAX)

    def clash(self, now: int, until: int) -> int | None:
        """Return the first time after now, up to another, at which something clashes. Now never goes back."""
        if not self._pairs:
            return None
        if self._found is None or self._found <= now:
            self._searched, self._found = max(self._searched, now), None
            if self._searched < until:
                found = (_clash_of(publish, update, self._searched, until) for publish, update in self._pairs)
                self._found = min((time for time in found if time is not None), default=None)
                self._searched = until if self._found is None else self._found
        return self._found if self._found is not None and self._found <= until else None

    def published(self, time: int) -> list[float]:
        """Return the floats of all publishes at a time in nanoseconds."""
        return [each for grid in self.publishes if (each := grid.float_at(time)) is not None]

    def updated(self, time: int) -> list[float]:
        """Return the floats of all updates at a time in nanoseconds."""
        return [each for grid in self.updates if (each := grid.float_at(time)) is not None]

    def floats(self, time: int) -> list[float]:
        """Return the floats of all that happens at a time in nanoseconds, in order."""
        return sorted(self.published(time) + self.updated(time))

    def overlooked(self, time: int, at: float) -> list[Publish]:
        """Return what is published at a float of a time in nanoseconds, but not if Drake begins there.

        Given the root's context, each publishes.
        """
        return [
            lambda context, leaf=leaf, publish=publish: publish(leaf.GetMyContextFromRoot(context))  # type: ignore[misc]
            for grid, publishers in self._publishers
            if grid.float_at(time) == at and _is_overlooked(grid, at)
            for leaf, publish in publishers
        ]

    def is_rounded(self, time: int) -> bool:
        """Whether this is a time of something whose period isn't a whole number of nanoseconds."""
        return bool(self._rounded) and any(grid.float_at(time) is not None for grid in self._rounded)


def _is_overlooked(grid: Grid, at: float) -> bool:
    """Whether Drake doesn't find what is due at a float of a grid, if it looks from the float before that.

    With an offset, the number of periods until then may be rounded to one that is more than whole, and the next counts.
    """
    before = nextafter(at, -inf) - grid.offset
    return before > 0 and ceil(before / grid.period) * grid.period > before + grid.period / 2


def _clash_of(publish: Grid, update: Grid, after: int, until: int) -> int | None:
    slower = max(publish, update, key=lambda grid: grid.period)
    while (after := slower.after(after)) <= until:
        updated, published = update.float_at(after), publish.float_at(after)
        if updated is not None and published is not None and updated < published:
            return after
    return None


@functools.cache
def _fuses() -> bool:
    """Whether this build of Drake rounds offset + k × period once: on ARM it does, and on x86-64 it doesn't.

    Twice rounded, 0.3 + 3 × 0.01 is less than 0.33. A simulator that stops beside its own float may skip what is due.
    """
    times: list[float] = []
    system = LeafSystem()
    system.DeclarePeriodicPublishEvent(0.01, 0.3, lambda context: times.append(context.get_time()))
    Simulator(system).AdvanceTo(0.335)
    return times[-1] == 0.33  # That float, and no other.


def _told(leaf: System) -> Times:
    """Return period and offset of a system's discrete updates, if all of them have the same."""
    if isinstance(leaf, MultibodyPlant):  # It doesn't tell in the common way.
        return {(leaf.time_step(), 0.0): []} if leaf.time_step() else {}
    told = leaf.GetUniquePeriodicDiscreteUpdateAttribute()
    return {} if told is None else {(told.period_sec(), told.offset_sec()): []}


def _tried(leaf: System) -> Times:
    """Return when a publisher or a logger acts; nothing, if it does so in every step, or never by itself."""
    if not isinstance(leaf, LcmPublisherSystem | VectorLogSink):
        return {}
    first = _first_event(leaf, _SOON)
    if first in (None, _SOON):
        return {}
    assert first is not None
    if _first_event(leaf, 0.0) == 0.0:
        return {(first, 0.0): [leaf.ForcedPublish]}
    second = _first_event(leaf, nextafter(first, inf))
    assert second is not None
    # The difference lacks the last bits. That of a later one has them; a power of two adds no error of its own.
    later = _first_event(leaf, first + (_MANY - 0.5) * (second - first))
    assert later is not None
    return {(float((Fraction(later) - Fraction(first)) / _MANY), first): [leaf.ForcedPublish]}


def _first_event(leaf: System, start: float) -> float | None:
    """Return when a system fails that is run alone, which is where it lacks an input."""
    context = leaf.CreateDefaultContext()
    context.SetTime(start)
    simulator = Simulator(leaf, context)
    try:
        simulator.Initialize(ONLY_EVENTS)
        simulator.AdvanceTo(_NEVER)
    except (Exception, SystemExit):
        return float(context.get_time())
    return None


def _noting(declare: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """Return a method by which a system declares an event, which also notes when it is."""

    @functools.wraps(declare)
    def noting(self: System, period_sec: float, offset_sec: float, *given: Any, **named: Any) -> Any:
        result = declare(self, period_sec, offset_sec, *given, **named)
        event = given[0] if given else named.get("event")
        publishes = isinstance(event, PublishEvent) if kind == "event" else kind == "publish"
        published, updated = _declared.setdefault(self, ({}, {}))
        actions = (published if publishes else updated).setdefault((float(period_sec), float(offset_sec)), [])
        if kind == "publish":
            actions.append(given[0] if given else named["publish"])
        return result

    return noting


for _method, _kind in {
    "DeclarePeriodicPublishEvent": "publish",
    "DeclarePeriodicDiscreteUpdateEvent": "update",
    "DeclarePeriodicUnrestrictedUpdateEvent": "update",
    "DeclarePeriodicEvent": "event",
}.items():
    setattr(LeafSystem, _method, _noting(getattr(LeafSystem, _method), _kind))
