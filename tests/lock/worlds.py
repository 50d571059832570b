"""Random small federations: their networks and what their participants do.

A world is plain data made from a `random.Random`, so the same generator serves Hypothesis (which shrinks it) and long
seeded sweeps. Times are a few nanoseconds, so that ties, one-nanosecond races and exhausted lookahead come up all the
time.

What a participant does is a generator that yields operations and is sent their results. The oracle and the
lock drive the same generator; that is all they share, apart from the model room.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from worldline.lock import Join, Subscription
from worldline.model import (
    DISCARD,
    FOREVER,
    MAILBOX,
    UNBOUNDED,
    Link,
    Message,
    Network,
    Outage,
    Plan,
    Rule,
    newest,
    oldest,
)
from worldline.model.latency import Exponential, Fixed, Latency, Normal, Table, Uniform
from worldline.model.links import Buffer
from worldline.model.path import Paths

TOPICS = ("red", "green", "blue")
BUFFERS = (UNBOUNDED, UNBOUNDED, UNBOUNDED, UNBOUNDED, MAILBOX, MAILBOX, newest(2), oldest(2), DISCARD)
NAMES = ("a", "b", "c", "d", "e")
GUESTS = ("guest1", "guest2", "a0")


@dataclass(frozen=True)
class Op:
    """An operation with its absolute time, if it has one."""

    kind: str
    time: int = 0
    topic: str = ""
    payload: bytes = b""
    buffer: Buffer = UNBOUNDED
    name: str = ""


@dataclass
class Result:
    """What an operation gave: the participant's time, its messages, and whether the run has ended."""

    now: int
    messages: list[Message] = field(default_factory=list)
    ended: bool = False
    refused: bool = False
    peeked: int = 0
    alarmed: bool = False  # By an emergency stop.
    stopped_by: str = ""  # Who has called the emergency stop that counts, as far as it knows.


@dataclass(frozen=True)
class Member:
    join: Join
    script: tuple[tuple[Any, ...], ...]
    replies: tuple[str, ...]  # Topics on which it replies to what it receives by `next`.


@dataclass(frozen=True)
class World:
    plan: Plan
    members: dict[str, Member]  # Guests included.

    def __str__(self) -> str:
        lines = [f"seed={self.plan.seed} end={self.plan.end} {self.plan.network}"]
        lines += [f"  {name}: {member}" for name, member in self.members.items()]
        return "\n".join(lines)


Behavior = Generator[Op, Result, None]


def behave(member: Member, start: Result) -> Behavior:
    """Turn a script of relative operations into absolute ones, following the participant's own time."""
    now, promised = start.now, start.now
    subscribed = {subscription.topic for subscription in member.join.subscribes}
    can_peek = True
    said, stopped_by = 0, start.stopped_by
    for step in member.script:
        kind, *rest = step
        if kind in ("advance", "next"):
            result = yield Op(kind, now + rest[0])
            now, stopped_by = result.now, result.stopped_by
            if result.ended or (result.alarmed and not member.replies):
                return
            if result.alarmed:
                said += 1
                yield Op("publish", max(now, promised), member.replies[0], b"stopping %d" % said)
            elif kind == "next":
                for message in result.messages[:2]:
                    for topic in member.replies:
                        said += 1
                        yield Op("publish", max(now, promised), topic, b"re%d:" % said + message.payload[:6])
        elif kind == "peek" and can_peek:
            distance, topics, onward = rest
            result = yield Op("peek", now + distance)
            if result.ended:
                return
            for place, topic in enumerate(topics):  # What it sends on the way, each at its own time.
                said += 1
                at = max(now, promised, min(now + place, result.peeked))
                yield Op("publish", at, topic, b"on the way %d" % said)
            if onward:
                result = yield Op(onward, result.peeked)
                now = result.now
                if result.ended:
                    return
        elif kind == "publish":
            topic, size, delay = rest
            said += 1
            yield Op("publish", max(now, promised) + delay, topic, b"%d" % said + stopped_by.encode() + b"." * size)
        elif kind == "estop":
            yield Op("estop", now)
        elif kind == "promise":
            promised = max(now, promised) + rest[0]
            yield Op("promise", promised)
        elif kind == "break" and promised > now:
            result = yield Op("break", promised - 1, rest[0], b"never")
            assert result.refused
        elif kind == "subscribe" and rest[0] not in subscribed:
            subscribed.add(rest[0])
            can_peek = False
            yield Op("subscribe", now, rest[0], buffer=rest[1])
        elif kind == "unsubscribe" and rest[0] in subscribed:
            subscribed.discard(rest[0])
            yield Op("unsubscribe", now, rest[0])
        elif kind == "invite":
            yield Op("invite", max(now, promised) + rest[1], name=rest[0])
        elif kind == "stop":
            yield Op("stop", max(now, promised) + rest[0])


def make_world(random: Random) -> World:
    """Make a federation of one to five participants and up to three guests."""
    roster = NAMES[: random.choice((1, 2, 2, 3, 3, 3, 4, 5))]
    control_latency = random.choice((1, 3, 7))
    with_guests = random.random() < 0.4
    guests = GUESTS[: random.randint(1, 3)] if with_guests else ()
    plan = Plan(
        roster=roster,
        network=_network(random, roster, control_latency),
        seed=random.randint(0, 3),
        end=random.choice((None, None, None, 25, 60)),
    )
    members = {name: _member(random, guests, control_latency) for name in (*roster, *guests)}
    return World(plan, members)


def make_tiny_world(random: Random) -> World:
    """Make a federation of three participants with up to three operations each."""
    roster = NAMES[:3]
    guests = GUESTS[:1] if random.random() < 0.2 else ()
    plan = Plan(roster=roster, network=_network(random, roster, 2), seed=random.randint(0, 3))
    members = {name: _member(random, guests, 2, length=random.choice((1, 2, 3))) for name in (*roster, *guests)}
    return World(plan, members)


def _network(random: Random, roster: tuple[str, ...], control_latency: int) -> Network:
    rules: dict[tuple[str | None, str | None, str | None], Rule] = {}
    for _ in range(random.choice((0, 0, 1, 2, 4))):
        selection = (
            random.choice((None, *TOPICS)),
            random.choice((None, *roster)),
            random.choice((None, *roster)),
        )
        if selection != (None, None, None):
            topic, sender, receiver = selection
            rules[selection] = Rule(link=_link(random), topic=topic, sender=sender, receiver=receiver)
    outages = []
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        start = random.randint(0, 20)
        outages.append(
            Outage(
                verb=random.choice(("partition", "hold")),
                start=start,
                end=random.choice((start + random.randint(1, 15), start + random.randint(1, 15), FOREVER)),
                topic=random.choice((None, None, *TOPICS)),
                sender=random.choice((None, *roster)),
                receiver=random.choice((None, *roster)),
            )
        )
    return Network(
        default=_link(random), rules=tuple(rules.values()), outages=tuple(outages), control_latency=control_latency
    )


def _link(random: Random) -> Link:
    plain = random.random() < 0.4
    return Link(
        latency=Fixed(random.choice((1, 1, 2, 3, 5, 10))) if plain else _latency(random),
        loss_at_sender=0.0 if plain else random.choice((0.0, 0.0, 0.3)),
        loss_at_receiver=0.0 if plain else random.choice((0.0, 0.0, 0.3)),
        duplication=0.0 if plain else random.choice((0.0, 0.0, 0.4)),
        fifo=not plain and random.random() < 0.3,
        bandwidth=None if plain else random.choice((None, None, None, 200_000_000, 2_000_000_000)),
    )


def _latency(random: Random) -> Latency:
    least = random.choice((1, 1, 2, 4))
    return random.choice(
        (
            Fixed(least),
            Uniform(least, least + random.randint(0, 9)),
            Normal(random.randint(1, 8), random.randint(0, 4), least),
            Exponential(least, random.randint(0, 5)),
            Table((least, least + 1, least + random.randint(0, 9))),
        )
    )


def _member(random: Random, guests: tuple[str, ...], control_latency: int, length: int = 0) -> Member:
    publishes = random.choice((None, None, TOPICS[:1], TOPICS[:2], TOPICS[1:], TOPICS, ()))
    speaks = TOPICS if publishes is None else publishes
    controls = random.random() < (0.5 if guests else 0.15)
    join = Join(
        publishes=publishes,
        subscribes=tuple(
            Subscription(topic, random.choice(BUFFERS))
            for topic in random.sample(TOPICS, random.choice((0, 1, 2, 2, 3)))
        ),
        latency_least=random.choice((0, 0, 0, 3)),
        controls=controls,
    )
    length = length or random.choice((2, 4, 6, 10, 15))
    script = tuple(_step(random, speaks, controls, guests, control_latency) for _ in range(length))
    if length > 3:
        script += (("next", 8),) * random.choice((0, 3)) + (
            ("advance", random.choice((0, 10, 30))),
        )  # So that it hears.
    replies = tuple(topic for topic in speaks if random.random() < 0.3)
    return Member(join, script, replies)


def _step(
    random: Random, speaks: tuple[str, ...], controls: bool, guests: tuple[str, ...], control_latency: int
) -> tuple[Any, ...]:
    kinds = ["advance"] * 3 + ["next"] * 4 + ["peek"] * 4 + ["subscribe"] * 2 + ["unsubscribe", "promise"]
    if speaks:
        kinds += ["publish"] * 5 + ["break"]
    if controls:
        kinds += ["stop"] + ["invite"] * 3 * bool(guests)
    kind = random.choice(kinds)
    if kind == "advance":
        return kind, random.choice((0, 1, 1, 2, 3, 5, 10, 15))
    if kind == "next":
        return kind, random.choice((0, 1, 5, 10, 25, 40))
    if kind == "peek":
        topics = tuple(random.choice(speaks) for _ in range(random.choice((0, 1, 3)) if speaks else 0))
        return kind, random.choice((0, 1, 5, 20)), topics, random.choice((None, "advance", "next"))
    if kind == "publish":
        return kind, random.choice(speaks), random.choice((0, 0, 1, 4)), random.choice((0, 0, 0, 1, 4))
    if kind == "promise":
        return kind, random.choice((0, 1, 3, 8))
    if kind == "break":
        return kind, random.choice(speaks)
    if kind == "subscribe":
        return kind, random.choice(TOPICS), random.choice(BUFFERS)
    if kind == "unsubscribe":
        return kind, random.choice(TOPICS)
    if kind == "invite":
        return kind, random.choice(guests), control_latency + random.choice((0, 1, 4, 12))
    return "stop", control_latency + random.choice((0, 5, 20, 40))


def reach(world: World, name: str) -> int:
    """Return the least time in which anybody could reach a participant on what it has subscribed to at joining."""
    plan, paths = world.plan, Paths(world.plan.network, world.plan.seed)
    founders = {other: world.members[other].join for other in plan.roster if other != name}
    topics = [each.topic for each in world.members[name].join.subscribes if each.buffer.limit != 0]
    ways = [
        max(paths.link(topic, other, name).latency.minimum, join.latency_least)
        for other, join in founders.items()
        for topic in topics
        if join.publishes is None or topic in join.publishes
    ]
    if any(world.members[each].join.controls for each in plan.roster):
        # Anybody may be invited, of whom the rules may say anything.
        for topic in topics:
            ways += [
                each.link.latency.minimum
                for each in plan.network.rules
                if each.receiver in (None, name) and each.topic in (None, topic)
            ]
            ways.append(plan.network.default.latency.minimum)
        ways.append(plan.network.control_latency)
    return min(ways, default=FOREVER)
