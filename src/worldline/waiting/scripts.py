"""What everybody did in a run, and how long it took for it, as scripts that can be played again on another network.

A script is a list of *points*: times at which its participant could act, each with what it did there and how long that
took by the wall clock. What matters is what brought the participant to a point, since on another network that may come
at another time:

- a message that it was waiting for: then the point is where the message arrives,
- a time that it had asked for: then the point is as far from where it was first asked for as it was in the run.

Steps that a participant was granted ahead aren't asked for one by one. They show in what it sends then, and where it
says that it is; what it had asked for isn't known. Those at which a message arrived are taken for its reactions to that
message, if it ever waits for messages; the others for times of its own, at which it is whatever comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

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
from worldline.model.plan import Plan
from worldline.waiting.heard import Heard, HeardSending
from worldline.waiting.hearing import HearingAgain

MessageId = tuple[str, int]
"""A message's sender and its number."""


class Deed(Struct, frozen=True):
    """Something that a participant did, so many nanoseconds of the wall clock after the one before it."""

    spent: int
    event: Any  # Of the lock; its times are those of the run.


class Point(Struct):
    """A time at which a participant could act, and what it did there.

    It waited by `next`, or by `advance`, for `until`; that is None if it didn't have to ask. `woken` are the messages
    that it was woken by. `spent` is how long it took for what it did last there.
    """

    time: int
    sleeps: bool
    until: int | None
    woken: tuple[MessageId, ...]
    deeds: list[Deed]
    spent: int = 0


class RunScript(Struct):
    """All that one participant did. It joined `late` nanoseconds after the run had begun, if it was a newcomer."""

    name: str
    join: Join
    late: int
    points: list[Point]


def scripts_of(plan: Plan, noted: Iterable[Heard]) -> dict[str, RunScript]:
    """Make scripts out of what an arbiter heard."""
    writer = _Writer(plan)
    for heard, actions in writer.again.hear(noted):
        writer.take(heard, actions)
    return writer.scripts


class _Author:
    """One participant while its script is written."""

    def __init__(self, script: RunScript, wall: int) -> None:
        self.script = script
        self.ready = wall  # Since when it has been able to do something.
        self.asked: Next | Advance | Peek | None = None
        self.sleeps = False  # Whether it ever waits for messages.
        self.arrivals: dict[int, list[MessageId]] = {}
        self.horizon = 0


class _Writer:
    def __init__(self, plan: Plan) -> None:
        self.again = HearingAgain(plan)
        self.scripts: dict[str, RunScript] = {}
        self._authors: dict[str, _Author] = {}
        self._began: int | None = None

    def take(self, heard: Heard, actions: tuple[Any, ...]) -> None:
        events = heard.events
        if events and isinstance(events[0], Join):
            late = 0 if self._began is None else heard.wall - self._began
            self.scripts[heard.who] = RunScript(heard.who, events[0], late, [])
            self._authors[heard.who] = _Author(self.scripts[heard.who], heard.wall)
            events = events[1:]
        author = self._authors.get(heard.who)
        if author is not None and author.script.points:
            self._write(author, events, heard.wall)
        for action in actions:
            if isinstance(action, StartRun):
                self._start(self._authors[action.to], action.now, heard.wall)
            elif isinstance(action, Grant) and action.to in self._authors:
                self._grant(self._authors[action.to], action, heard.wall)

    def _start(self, author: _Author, now: int, wall: int) -> None:
        if self._began is None:
            self._began = wall
        author.ready, author.horizon = wall, now
        author.script.points.append(Point(now, False, None, (), []))

    def _grant(self, author: _Author, grant: Grant, wall: int) -> None:
        for message in grant.messages:
            author.arrivals.setdefault(message.arrival, []).append((message.sender, message.sequence))
        author.horizon = grant.horizon
        asked, author.asked = author.asked, None
        author.ready = max(author.ready, wall)
        if asked is None or isinstance(asked, Peek) or not author.script.points:
            return
        now = _now_of(self.again.arbiter, author.script.name)
        until = asked.until if isinstance(asked, Next) else asked.to
        sleeps = isinstance(asked, Next)
        woken = tuple(author.arrivals.get(now, ())) if sleeps and now < until else ()
        author.script.points.append(Point(now, sleeps, until, woken, []))

    def _write(self, author: _Author, events: tuple[Any, ...], wall: int) -> None:
        """Write down what was said at once; the time before it was spent for the first of it."""
        spent = max(0, wall - author.ready)
        author.ready = max(author.ready, wall)
        for event in events:
            point = author.script.points[-1]
            if isinstance(event, Next | Advance | Peek):
                author.asked = event
                author.sleeps = author.sleeps or isinstance(event, Next)
                point.spent += spent
            else:
                if (at := _moved(event)) is not None and point.time < at <= author.horizon:
                    point = self._local(author, at)
                if isinstance(event, HeardSending | Promise | Subscribe | Unsubscribe | Invite | Stop):
                    point.deeds.append(Deed(spent, event))
                else:
                    point.spent += spent
            spent = 0

    def _local(self, author: _Author, at: int) -> Point:
        """Add a point that the participant didn't have to ask for."""
        woken = tuple(author.arrivals.get(at, ())) if author.sleeps else ()
        point = Point(at, author.sleeps, None, woken, [])
        author.script.points.append(point)
        return point


def _moved(event: Any) -> int | None:
    """Return how far a participant has come that says this, as far as it shows."""
    if isinstance(event, HeardSending):
        return event.at
    return event.now if isinstance(event, Reached | Subscribe | Unsubscribe | Down | Leave) else None


def _now_of(arbiter: Arbiter, name: str) -> int:
    return arbiter.members[name].now
