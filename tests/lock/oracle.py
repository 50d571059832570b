"""The oracle: an all-seeing, sequential simulator of a federation, simple enough to be obviously right.

It keeps every message ever published and, for each participant, when every one of them arrives there. Then it lets
the participant whose next moment is earliest act, again and again. Nothing sent at a moment arrives at that moment,
since every latency is at least 1 ns, so whoever is earliest knows its whole past. There are no bounds, promises,
grants, horizons or retention here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.lock.worlds import Behavior, Op, Result, World, behave, reach
from worldline.lock.arbiter import DROPPED_BY_BUFFER
from worldline.model import FOREVER, Message
from worldline.model.links import Buffer
from worldline.model.path import Path, Paths


@dataclass
class History:
    """What a participant received (with its time), sent and peeked, and when it left."""

    received: list[tuple[int, Message]] = field(default_factory=list)
    sent: list[tuple[int, str, bytes]] = field(default_factory=list)
    peeked: list[tuple[int, int]] = field(default_factory=list)
    left: int = 0
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass
class _Subscription:
    topic: str
    start: int
    buffer: Buffer
    end: int = FOREVER
    given: int = -1  # The last moment whose arrivals it was given completely, by `next`.


@dataclass
class _Actor:
    name: str
    behavior: Behavior
    start: int
    now: int
    history: History
    waits_for: Op | None = None
    subscriptions: list[_Subscription] = field(default_factory=list)
    arrivals: list[tuple[Message, str | None]] = field(
        default_factory=list
    )  # Everything, with the reason if it gets lost.
    delivered: set[tuple[int, int, str, int, int]] = field(default_factory=set)

    def buffer(self, message: Message) -> Buffer | None:
        for subscription in self.subscriptions:
            if subscription.topic == message.topic and subscription.start <= message.arrival < subscription.end:
                return subscription.buffer
        return None

    def undelivered(self) -> list[Message]:
        return sorted(
            message
            for message, lost in self.arrivals
            if lost is None
            and message.arrival >= self.now
            and message[:5] not in self.delivered
            and (buffer := self.buffer(message)) is not None
            and buffer.limit != 0
        )


class Oracle:
    def __init__(self, world: World) -> None:
        self.world = world
        self.paths = Paths(world.plan.network, world.plan.seed)
        self.end = world.plan.end or FOREVER
        self.published: list[
            tuple[str, int, int, int, str, bytes]
        ] = []  # sender, number, sequence, sent, topic, payload
        self.numbers: Counter[tuple[str, str]] = Counter()  # How many messages a sender has published on a topic.
        self.open_paths: dict[tuple[str, str, str], Path] = {}
        self.actors: dict[str, _Actor] = {}
        self.invited: dict[str, int] = {}

    def run(self) -> dict[str, History]:
        for name in sorted(self.world.plan.roster):
            self.enter(name, 0)
        while moments := self.moments():
            time, name = min(moments)
            if name in self.invited:
                del self.invited[name]
                self.enter(name, time)
            else:
                self.wake(self.actors[name], time)
        return {name: actor.history for name, actor in self.actors.items()}

    def moments(self) -> list[tuple[int, str]]:
        coming = [(time, name) for name, time in self.invited.items() if time <= self.end]
        for actor in self.actors.values():
            op = actor.waits_for
            if op is not None:
                moment = actor.now if op.kind == "peek" else min(op.time, self.end)
                if op.kind == "next":
                    moment = min([moment, *(message.arrival for message in actor.undelivered())])
                coming.append((moment, actor.name))
        return coming

    def enter(self, name: str, start: int) -> None:
        join = self.world.members[name].join
        actor = self.actors[name] = _Actor(
            name, behave(self.world.members[name], Result(start)), start, start, History()
        )
        actor.subscriptions = [_Subscription(s.topic, start, s.buffer) for s in join.subscribes]
        for published in self.published:
            self.carry(actor, *published)
        self.act(actor, None)

    def wake(self, actor: _Actor, time: int) -> None:
        op = actor.waits_for
        assert op is not None
        waiting = actor.undelivered()
        if op.kind == "peek":
            self.peek(actor, op, waiting)
            return
        ended = time == self.end < op.time
        if op.kind == "next" and not ended and waiting and waiting[0].arrival == time and time < op.time:
            batch = [message for message in waiting if message.arrival == time]
        else:
            batch = [message for message in waiting if message.arrival < time]
        actor.delivered.update(message[:5] for message in batch)
        actor.now = time
        if batch and batch[0].arrival == time:  # It was given all of this moment, on every topic that it keeps.
            for subscription in actor.subscriptions:
                if subscription.end == FOREVER and subscription.buffer.limit != 0:
                    subscription.given = time
        kept = [message for message in batch if self.survives(actor, message, batch)]
        actor.history.dropped.update((message.topic, DROPPED_BY_BUFFER) for message in batch if message not in kept)
        batch = kept
        actor.history.received += [(time, message) for message in batch]
        self.act(actor, Result(time, batch, ended))

    def peek(self, actor: _Actor, op: Op, waiting: list[Message]) -> None:
        """Everybody else acts at its time or later: too late to reach it within its reach."""
        sight = min(op.time, actor.now + reach(self.world, actor.name))
        known = min([sight, self.end, *(message.arrival for message in waiting)])
        actor.history.peeked.append((actor.now, known))
        self.act(actor, Result(actor.now, ended=actor.now == self.end < sight, peeked=known))

    def survives(self, actor: _Actor, message: Message, batch: list[Message]) -> bool:
        buffer = actor.buffer(message)
        assert buffer is not None
        rivals = [other for other in batch if other.topic == message.topic]
        place = rivals.index(message) if buffer.oldest else len(rivals) - 1 - rivals.index(message)
        return buffer.limit is None or place < buffer.limit

    def act(self, actor: _Actor, result: Result | None) -> None:
        """Let a participant act until it waits or leaves."""
        actor.waits_for = None
        try:
            op = actor.behavior.send(result) if result is not None else next(actor.behavior)
            while op.kind not in ("advance", "next", "peek"):
                self.do(actor, op)
                op = actor.behavior.send(Result(actor.now, refused=op.kind == "break"))
            actor.waits_for = op
        except StopIteration:
            actor.history.left = actor.now
            self.count_losses(actor)

    def do(self, actor: _Actor, op: Op) -> None:
        if op.kind == "publish":
            sequence = len(actor.history.sent)
            actor.history.sent.append((op.time, op.topic, op.payload))
            number = self.numbers[actor.name, op.topic]
            self.numbers[actor.name, op.topic] += 1
            self.published.append((actor.name, number, sequence, op.time, op.topic, op.payload))
            for receiver in self.actors.values():
                self.carry(receiver, *self.published[-1])
        elif op.kind == "subscribe":
            actor.subscriptions.append(_Subscription(op.topic, actor.now, op.buffer))
        elif op.kind == "unsubscribe":
            for subscription in actor.subscriptions:
                if subscription.topic == op.topic and subscription.end == FOREVER:
                    subscription.end = actor.now + (subscription.given == actor.now)
        elif op.kind == "stop":
            self.end = min(self.end, op.time)
        elif op.kind == "invite" and op.name not in self.actors:
            self.invited[op.name] = min(op.time, self.invited.get(op.name, FOREVER))

    def carry(
        self, receiver: _Actor, sender: str, number: int, sequence: int, sent: int, topic: str, payload: bytes
    ) -> None:
        if receiver.name == sender:
            return
        key = (topic, sender, receiver.name)
        if key not in self.open_paths:
            least = self.world.members[sender].join.latency_least
            self.open_paths[key] = self.paths.open(*key, latency_least=least, opened=receiver.start)
        arrivals, lost = self.open_paths[key].carry(sent, number, len(payload))
        for copy, arrival in enumerate(arrivals):
            receiver.arrivals.append((Message(arrival, sent, sender, sequence, copy, topic, payload), lost))

    def count_losses(self, actor: _Actor) -> None:
        for subscription in actor.subscriptions:
            if subscription.end == FOREVER:
                subscription.end = actor.now + (subscription.given == actor.now)
        for message, lost in actor.arrivals:
            buffer = actor.buffer(message)
            if lost and buffer is not None and buffer.limit != 0:
                actor.history.dropped[message.topic, lost] += 1
