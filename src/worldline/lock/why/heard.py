"""What an arbiter was told, and when, without the payloads: enough to let an arbiter hear it again.

Wall-clock times are in nanoseconds since the log began. They are no part of any recording, since no two runs have the
same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import gcd
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, msgpack

from worldline.lock.arbiter import OPERATOR, Arbiter
from worldline.lock.events import (
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
    Peek,
    Promise,
    Publish,
    Reached,
    StartRun,
    Stop,
    Subscribe,
    Unsubscribe,
)
from worldline.lock.states import ASKING, Phase, State
from worldline.lock.why.reasons import Activity, Situation, situation_of
from worldline.model.errors import PeerError, UsageError, WorldlineError, shortened, shown
from worldline.model.plan import Plan
from worldline.model.time import US, format_time


class HeardSending(Struct, frozen=True, array_like=True, tag="sending", gc=False):
    """A message was published; of its payload only the size is kept, since links may go by that."""

    topic: str
    size: int
    at: int


HeardEvent = (
    Join
    | HeardSending
    | Promise
    | Reached
    | Subscribe
    | Unsubscribe
    | Down
    | Invite
    | Stop
    | Log
    | Advance
    | Next
    | Peek
    | Leave
    | Barrier
    | Lost
    | CallOff
)


class Heard(Struct, frozen=True, array_like=True):
    """What somebody said at once, and when that was heard."""

    wall: int
    who: str
    events: tuple[HeardEvent, ...]


class TimingHeader(Struct, frozen=True, kw_only=True):
    """What is known of a run before it begins."""

    name: str
    plan: Plan


_encode = msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder(order="deterministic").encode
_decode_heard = msgpack.Decoder(list[Heard]).decode
_decode_header = msgspec.json.Decoder(TimingHeader).decode


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


def encode_heard(heard: Sequence[Heard | tuple[int, str, list[HeardEvent]]]) -> bytes:
    """Write a portion of a log: a tuple in the place of a `Heard` costs whoever notes it less."""
    return _encode(heard)


def encode_header(header: TimingHeader) -> bytes:
    return _encode_json(header)


def decode_heard(data: bytes) -> list[Heard]:
    """Read a portion of a log."""
    try:
        return _decode_heard(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise PeerError(f"it isn't what was noted: {shortened(str(error))}") from error


def decode_header(data: bytes) -> TimingHeader:
    """Read the beginning of a log."""
    try:
        return _decode_header(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise PeerError(f"its beginning isn't what was noted: {shortened(str(error))}") from error


# Lets an arbiter hear again what another one heard, in the same order: so every moment of a run can be looked at.


class Repeated(NamedTuple):
    """Something that was heard again, and what has followed from it."""

    heard: Heard
    actions: tuple[Action, ...]


class HearingAgain:
    """An arbiter that hears what was noted. `arbiter` is as it was after what was heard last."""

    def __init__(self, plan: Plan) -> None:
        self.arbiter = Arbiter(plan)

    def hear(self, noted: Iterable[Heard]) -> Iterator[Repeated]:
        """Hear it all, one after the other. What was refused then is refused again, and nothing follows from it."""
        for heard in noted:
            if self.arbiter.phase is Phase.OVER:
                return
            yield Repeated(heard, self._hear(heard))

    def _hear(self, heard: Heard) -> tuple[Action, ...]:
        arbiter = self.arbiter
        if any(isinstance(event, Lost | CallOff) for event in heard.events) and heard.who == OPERATOR:
            return ()  # The run was broken off: it is looked at as it was just then.
        events = restored(heard.events)
        is_known = heard.who == OPERATOR or heard.who in arbiter.members
        first = events[0] if events else None
        if not is_known and not isinstance(first, Join):
            raise UsageError(f"what was noted can't be: {shown(heard.who)} says something, and never joined")
        try:
            if not is_known and isinstance(first, Join):
                arbiter.enroll(heard.who, first)
            return tuple(arbiter.hear(heard.who, events))
        except WorldlineError:
            return ()


# Looks at one moment of a run that was noted: the first at which it had come to a simulated time, or the last.


def situation_at(plan: Plan, name: str, noted: Iterable[Heard], at: int | None = None) -> Situation:
    """Return how a run stood: where nothing before `at` could happen any more, or at the end of what was noted."""
    again = HearingAgain(plan)
    since: dict[str, int] = {}  # By participant, since when it has been in its state, by the wall clock.
    wall = 0
    for heard, actions in again.hear(noted):
        wall = heard.wall
        since[heard.who] = wall
        for action in actions:
            if isinstance(action, Grant | StartRun):
                since[action.to] = wall
        if at is not None and again.arbiter.phase is not Phase.GATHERING and again.arbiter.floor() >= at:
            break
    arbiter = again.arbiter
    if at is not None and (came := arbiter.status().time) < at:
        raise UsageError(f"it never came to {format_time(at)}", advice=f"it ended at {format_time(came)}: --at end")
    activities = {
        each: Activity(seconds=(wall - since[each]) / 1e9)
        for each, member in arbiter.members.items()
        if each in since and (member.state in ASKING or member.state is State.COMPUTING)
    }
    status = arbiter.status()
    return situation_of(arbiter, name, activities, events=status.events, time=status.time, with_links=True)


# What everybody ever did in a run that could be declared: the topics that it sent on, and the period of its sends.
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
