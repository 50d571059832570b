"""Runs programs on a wall clock that is simulated, with what each step costs: what a run would really do, exactly.

A program is a generator of its participant. It yields what it waits for: `me.advance(to)`, `me.next(until)`, which is
answered with messages, or `me.spend(ms)`, in which it computes. So nothing here knows of scripts: what it measures is
what advice must be right about.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from heapq import heappop, heappush
from typing import Any, NamedTuple

from worldline.lock import Arbiter, Join, Ledger, Over, RunEnded, StartRun, Subscription
from worldline.lock.why.heard import Heard, stripped
from worldline.model import MS, Message, Plan

TELL_AFTER, PULSE = 500_000, 50 * MS

Waiting = tuple[str, int | None]
Play = Generator[Waiting, Any, None]


class Role(NamedTuple):
    """A program and what it declares."""

    program: Callable[[Actor], Play]
    publishes: tuple[str, ...] | None = ()
    subscribes: tuple[str, ...] = ()
    period: int = 0


class Actor:
    """One participant, as its program sees it."""

    def __init__(self, name: str, role: Role) -> None:
        join = Join(role.publishes, tuple(Subscription(topic) for topic in role.subscribes))
        self.name = name
        self.ledger = Ledger(name, join, period=role.period)
        self.play = role.program(self)
        self.begun = False
        self.asked: int | None = None
        self.told = 0
        self.theater: Theater | None = None
        self.answer: list[Message] = []

    @property
    def now(self) -> int:
        return self.ledger.now

    def advance(self, to: int) -> Waiting:
        return "advance", to

    def next(self, until: int | None = None) -> Waiting:
        return "next", until

    def spend(self, ms: float) -> Waiting:
        return "spend", round(ms * MS)

    def publish(self, topic: str) -> None:
        self.ledger.publish(topic, b"")
        assert self.theater is not None
        self.theater.say(self)


class Outcome(NamedTuple):
    """What a run came to, in nanoseconds of the wall clock."""

    waited: int
    took: int
    digest: bytes
    heard: list[Heard]


class Theater:
    """One run."""

    def __init__(self, plan: Plan, roles: Mapping[str, Role]) -> None:
        self.arbiter = Arbiter(plan)
        self.arbiter.witness = self.hears
        self.actors = {name: Actor(name, role) for name, role in roles.items()}
        self.heard: list[Heard] = []
        self.due: list[tuple[int, int, str]] = []
        self.serial = self.wall = self.waited = 0
        self.digest = b""
        for actor in self.actors.values():
            actor.theater = self

    def hears(self, who: str, events: list[Any]) -> None:
        self.heard.append(Heard(self.wall, who, tuple(stripped(events))))

    def run(self) -> Outcome:
        for actor in self.actors.values():
            self.tell(actor)
        while self.due and not self.digest:
            self.wall, _, name = heappop(self.due)
            self.go_on(self.actors[name])
        return Outcome(self.waited, self.wall, self.digest, self.heard)

    def later(self, actor: Actor, after: int = 0) -> None:
        self.serial += 1
        heappush(self.due, (self.wall + after, self.serial, actor.name))

    def say(self, actor: Actor) -> None:
        """Tell what only tells, as clients do: half a millisecond after the last word, or later."""
        if self.wall - actor.told >= TELL_AFTER:
            actor.ledger.tell_time()
            self.tell(actor)

    def tell(self, actor: Actor) -> None:
        said: list[Any] = actor.ledger.take_outbox()
        actor.told = self.wall
        for action in self.arbiter.hear(actor.name, said) if said else ():
            if isinstance(action, Over):
                self.digest = action.digest
                continue
            to = self.actors[action.to]
            if not isinstance(action, StartRun):
                assert to.asked is not None
                self.waited += self.wall - to.asked
            to.asked = None
            to.answer = to.ledger.receive(action)
            self.later(to)

    def go_on(self, actor: Actor) -> None:
        if not self.plays_on(actor):
            actor.ledger.leave()
            self.tell(actor)

    def plays_on(self, actor: Actor) -> bool:
        """Let an actor play until it has to wait, or is done; whether it isn't."""
        try:
            if actor.ledger.ended:
                return False
            wanted = actor.play.send(actor.answer) if actor.begun else next(actor.play)
            actor.begun = True
            while (served := self.serve(actor, *wanted)) is not None and not actor.ledger.ended:
                wanted = actor.play.send(served)
        except (StopIteration, RunEnded):
            return False
        return served is None

    def serve(self, actor: Actor, kind: str, value: int | None) -> list[Message] | None:
        """Let an actor have what it waits for, if it needn't wait."""
        if kind == "spend":
            assert value is not None
            if value >= PULSE:
                actor.ledger.tell_time()
                self.tell(actor)
            actor.answer = []
            self.later(actor, value)
            return None
        served = actor.ledger.next(value) if kind == "next" else actor.ledger.advance(value or 0)
        if served is None:
            actor.asked = self.wall
            self.tell(actor)
        else:
            self.say(actor)
        return served


def run(plan: Plan, roles: Mapping[str, Role]) -> Outcome:
    return Theater(plan, roles).run()
