"""Federations to which things happen: a generator, an oracle of its own, and a harness.

The oracle knows faults as plain spans of time, and clocks as sums; it decides by looking at everything. It shares with
the lock only what `oracle.py` shares with it: the model of links, and what participants do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from random import Random
from typing import Any

from msgspec.structs import replace as replace_fields

from tests.lock.harness import Driver, Harness
from tests.lock.oracle import History
from tests.lock.worlds import Behavior, Member, Op, Result, World, behave, make_world
from worldline.history.observer import DOWN, Observer
from worldline.lock import Action, Arbiter, Crashed, EmergencyStop, State, ledger_of
from worldline.lock.arbiter import DROPPED_BY_BUFFER, NEVER_TAKEN
from worldline.model import FOREVER, Link, Message, Network
from worldline.model.clock import ClockJump, LocalClock, RateWalk
from worldline.model.faults import FaultTrigger, ParticipantFault
from worldline.model.latency import Fixed, Latency, Uniform
from worldline.model.lifecycle import Lifecycle
from worldline.model.links import ESTOP_TOPIC
from worldline.model.path import Path, Paths
from worldline.model.randomness import draw_bits, key_of, unit
from worldline.recording.pending import Pending, Publication

KEPT = ("advance", "next", "publish")


@dataclass(frozen=True)
class Befalling:
    """Something that happens to a participant, at a time or after its nth event of a kind on a topic."""

    verb: str
    at: int
    lasts: int | None
    delay: int = 0
    after: tuple[str, str, int] | None = None

    def fault(self, name: str) -> ParticipantFault:
        after = None if self.after is None else FaultTrigger(name, *self.after)  # type: ignore[arg-type]
        at = 0 if after is not None else self.at
        return ParticipantFault(
            at=at,
            verb=self.verb,  # type: ignore[arg-type]
            participant=name,
            delay=self.delay,
            lasts=self.lasts,
            after=after,
        )


@dataclass(frozen=True)
class Fate:
    """What happens to a participant, which topics are durable, how long it boots, and by which clock it sends."""

    befalling: tuple[Befalling, ...]
    durable: tuple[str, ...]
    boot: Latency | None
    period: int
    clock: LocalClock | None


Fates = dict[str, Fate]


def make_fated_world(random: Random) -> tuple[World, Fates]:
    world = make_world(random)
    estop = random.choice((None, None, 2, 6))
    members = {
        name: Member(
            replace_fields(member.join, controls=False, latency_least=_least(member.join.latency_least, estop)),
            _script(random, member, estop is not None),
            member.replies,
        )
        for name, member in world.members.items()
        if name in world.plan.roster
    }
    fates = {
        name: Fate(
            _befalling(random, world.plan.end),
            _durable(random, members[name]),
            _boot(random),
            random.choice((0, 0, 1, 3, 7)),
            _clock(random),
        )
        for name in members
    }
    network = replace_fields(_corrupting(random, world.plan.network), estop=estop)
    return replace(world, plan=replace_fields(world.plan, network=network), members=members), fates


def _least(latency: int, estop: int | None) -> int:
    """Return a least latency that an emergency stop can keep to."""
    return latency if estop is None else min(latency, estop)


def _script(random: Random, member: Member, has_estop: bool) -> tuple[tuple[Any, ...], ...]:
    script = [step for step in member.script if step[0] in KEPT]
    if has_estop and random.random() < 0.5:
        script.insert(random.randint(0, len(script)), ("estop",))
    return tuple(script)


def _boot(random: Random) -> Latency | None:
    return random.choice((None, None, Fixed(random.randint(0, 5)), Uniform(0, random.choice((3, 20)))))


def _clock(random: Random) -> LocalClock | None:
    """Draw a clock that is off by a lot: a run takes some dozens of nanoseconds."""
    percent = 10**7
    return random.choice(
        (
            None,
            LocalClock(offset=random.randint(-9, 9), drift=random.choice((-40, -3, 0, 7, 50)) * percent),
            LocalClock(offset=Uniform(-9, 9), drift=Uniform(-50 * percent, 50 * percent)),
            LocalClock(
                drift=random.choice((0, 20 * percent)),
                wander=RateWalk(step=15 * percent, every=random.choice((1, 4)), within=30 * percent),
                jumps=(ClockJump(random.randint(1, 15), 5), ClockJump(random.randint(16, 30), -6)),
            ),
        )
    )


class PlainClock:
    """What a local clock shows, worked out from the beginning each time."""

    def __init__(self, fate: Fate, seed: int, name: str) -> None:
        self.described = fate.clock or LocalClock()
        self.seed, self.name = seed, name
        self.offset = self._drawn(self.described.offset, "clock offset")
        self.drift = self._drawn(self.described.drift, "clock drift")

    def _drawn(self, quantity: int | Latency, what: str) -> int:
        return (
            quantity if isinstance(quantity, int) else quantity.draw(draw_bits(key_of(self.seed, what, self.name), 0))
        )

    def local(self, time: int) -> int:
        walk, wandering, gained = self.described.wander, 0, Fraction(0)
        for passed in range(time):
            if walk is not None and passed and passed % walk.every == 0:
                bits = draw_bits(key_of(self.seed, "clock", self.name), passed // walk.every)
                step = (bits * (2 * walk.step + 1) >> 64) - walk.step
                wandering = max(-walk.within, min(walk.within, wandering + step))
            gained += Fraction(self.drift + wandering, 10**9)
        return time + self.offset + floor(gained) + sum(jump.by for jump in self.described.jumps if jump.at <= time)

    def due(self, period: int, time: int) -> int:
        """Return the first time from then on at which it comes to a multiple of a period."""
        while not self._is_due(period, time):
            time += 1
        return time

    def _is_due(self, period: int, time: int) -> bool:
        shows = self.local(time)
        return shows % period == 0 if time == 0 else shows // period > self.local(time - 1) // period


def _corrupting(random: Random, network: Network) -> Network:
    def corrupted(link: Link) -> Link:
        return replace_fields(link, corruption=random.choice((0.0, 0.0, 0.3, 1.0)))

    rules = tuple(replace_fields(rule, link=corrupted(rule.link)) for rule in network.rules)
    return replace_fields(network, default=corrupted(network.default), rules=rules)


def _durable(random: Random, member: Member) -> tuple[str, ...]:
    return tuple(each.topic for each in member.join.subscribes if random.random() < 0.3)


def _befalling(random: Random, end: int | None) -> tuple[Befalling, ...]:
    found, down_until = [], -1
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        verb = random.choice(("crash", "crash", "hang", "slow"))
        at, lasts = random.randint(0, 30), random.choice((1, 2, 5, 10, None))
        if verb == "hang" and end is None:
            lasts = lasts or 20
        delay = random.choice((1, 2, 4)) if verb == "slow" else 0
        after = None
        if random.random() < 0.3:
            after = (random.choice(("sends", "receives")), random.choice(("red", "green")), random.choice((1, 1, 2)))
        elif verb == "crash":  # Nobody crashes while it is down.
            at += down_until + 1
            down_until = FOREVER if lasts is None else at + lasts
        if at >= (end or FOREVER):
            continue
        found.append(Befalling(verb, at, lasts, delay, after))
    return tuple(found)


@dataclass
class _Actor:
    name: str
    behavior: Behavior | None
    history: History
    befalling: list[Befalling]
    durable: tuple[str, ...]
    alarm: Message | None = None  # The first emergency stop that it is sent,
    known_before: int = 0  # what has come to it with that: everything that arrives before then,
    is_alarmed: bool = False  # whether that is what it goes on with,
    knows: bool = False  # whether it knows of one,
    calls: list[tuple[int, int, str]] = field(default_factory=list)  # and all: when it can know, when called, by whom.
    spans: list[tuple[str, int, int, int]] = field(default_factory=list)  # Verb, from, to, delay.
    now: int = 0
    op: Op | None = None
    batch: list[Message] | None = None  # What it will be given when it goes on,
    resumes: int = 0  # and when that is.
    down_until: int | None = None
    down_since: int = 0
    arrivals: list[Message] = field(default_factory=list)
    gone: set[tuple[int, int, str, int, int]] = field(default_factory=set)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def waiting(self) -> list[Message]:
        return sorted(message for message in self.arrivals if message[:5] not in self.gone)

    def crash_at(self) -> int:
        return min([start for verb, start, _, _ in self.spans if verb == "crash"], default=FOREVER)


class FatedOracle:
    def __init__(self, world: World, fates: Fates) -> None:
        self.world = world
        self.paths = Paths(world.plan.network, world.plan.seed)
        self.end = world.plan.end or FOREVER
        self.open_paths: dict[tuple[str, str, str], Path] = {}
        self.numbers: Counter[tuple[str, str]] = Counter()
        self.actors = {
            name: _Actor(name, None, History(), list(fates[name].befalling), fates[name].durable)
            for name in world.members
        }
        self.fates = fates
        self.clocks = {name: PlainClock(fate, world.plan.seed, name) for name, fate in fates.items()}

    def run(self) -> dict[str, History]:
        for _, actor in sorted(self.actors.items()):
            for each in [each for each in actor.befalling if each.after is None]:
                self.befall(actor, each, each.at)
            boot = self.fates[actor.name].boot
            seed = self.world.plan.seed
            booted = 0 if boot is None else boot.draw(draw_bits(key_of(seed, "boot", actor.name), 0))
            actor.down_until = self.on_time(actor, booted)
        while moments := [(self.moment(actor), name) for name, actor in self.actors.items() if self.is_there(actor)]:
            time, name = min(moments)
            self.act(self.actors[name], time)
        return {name: actor.history for name, actor in self.actors.items()}

    def on_time(self, actor: _Actor, time: int) -> int:
        """Return the first time from then on at which it may send."""
        period = self.fates[actor.name].period
        return self.clocks[actor.name].due(period, time) if period and time < FOREVER else time

    def is_there(self, actor: _Actor) -> bool:
        return actor.down_until is not None or actor.op is not None

    def befall(self, actor: _Actor, each: Befalling, at: int) -> None:
        actor.spans.append((each.verb, at, FOREVER if each.lasts is None else at + each.lasts, each.delay))

    def moment(self, actor: _Actor) -> int:
        if actor.down_until is not None:
            return min(actor.down_until, self.end, self.doom(actor))
        crash = actor.crash_at()
        if actor.batch is not None:
            return min(actor.resumes, crash, self.end)
        assert actor.op is not None
        if self.is_pending(actor):
            return actor.now
        times = [actor.op.time, crash, self.end]
        if actor.alarm is not None and not actor.knows:
            times.append(max(actor.alarm.arrival, actor.now))
        if actor.op.kind == "next":
            times += [max(message.arrival, actor.now) for message in actor.waiting()]
        return min(times)

    def is_pending(self, actor: _Actor) -> bool:
        """Whether an emergency stop has arrived that it doesn't know of."""
        return not actor.knows and actor.alarm is not None and actor.alarm.arrival < actor.now

    def doom(self, actor: _Actor) -> int:
        """Return when somebody that is down crashes for good."""
        spans = [span for span in actor.spans if span[0] == "crash" and span[2] == FOREVER]
        until = FOREVER if actor.down_until is None else actor.down_until
        return max(actor.now, min([span[1] for span in spans if span[1] <= until], default=FOREVER))

    def act(self, actor: _Actor, time: int) -> None:
        was_pending = self.is_pending(actor)
        actor.now = time
        if actor.down_until is not None:
            if time < actor.down_until or self.doom(actor) <= time:
                self.leave(actor)
            else:
                self.rise(actor, time)
            return
        op = actor.op
        assert op is not None
        is_last = time == self.end
        if actor.batch is not None:
            if actor.crash_at() <= time:
                self.crash(actor)
            elif time < actor.resumes:
                assert is_last
                self.lose(actor, actor.batch)
                self.give(actor, [], ended=True)
            elif actor.behavior is not None and (actor.is_alarmed or self.is_pending(actor)):
                self.tell(actor)
            else:
                self.give(actor, actor.batch)
            return
        backlog = [message for message in actor.waiting() if message.arrival < max(time, actor.known_before)]
        here = [message for message in actor.waiting() if message.arrival == time]
        if self.is_roused(actor, time, bool(backlog)):
            actor.known_before = time + 1
            self.rouse(actor, time)
            return
        if was_pending:
            self.rouse(actor, time)
            return
        if op.kind == "next" and backlog:
            batch, ended = backlog, False
        elif op.kind == "next" and here and time < op.time and time < actor.crash_at() and time != self.end:
            batch, ended = here, False
            actor.known_before = time + 1
        else:
            batch, ended = backlog, is_last and time < op.time
            if not ended and actor.crash_at() <= time:
                self.crash(actor)
                return
        actor.gone.update(message[:5] for message in batch)
        kept = [message for message in batch if self.survives(actor, message, batch)]
        unkept = [(message.topic, DROPPED_BY_BUFFER) for message in batch if message not in kept]
        if ended:
            actor.history.dropped.update(unkept)
            self.give(actor, kept, ended=True)
            return
        for message in kept:
            self.count(actor, "receives", message.topic, time)
        if actor.crash_at() <= time:
            actor.batch = batch
            self.crash(actor)
            return
        actor.history.dropped.update(unkept)
        actor.batch = kept
        actor.resumes = self.resumption(actor, time)
        if actor.resumes == time:
            self.give(actor, kept)

    def is_roused(self, actor: _Actor, time: int, has_backlog: bool) -> bool:
        """Whether an emergency stop comes just now, and it waits for longer, without having to be given anything."""
        op = actor.op
        assert op is not None
        if actor.knows or actor.alarm is None or actor.alarm.arrival != time:
            return False
        return time < min(op.time, actor.crash_at(), self.end) and not (op.kind == "next" and has_backlog)

    def rouse(self, actor: _Actor, time: int) -> None:
        """Let it go on with the news of an emergency stop: what has arrived waits."""
        actor.batch, actor.is_alarmed = [], True
        if actor.crash_at() <= time:
            self.crash(actor)
            return
        actor.resumes = self.resumption(actor, time)
        if actor.resumes == time:
            self.tell(actor)

    def tell(self, actor: _Actor) -> None:
        actor.gone.difference_update(message[:5] for message in actor.batch or ())
        actor.is_alarmed, actor.knows = False, True
        self.give(actor, [], alarmed=True)

    def resumption(self, actor: _Actor, time: int) -> int:
        """Step by step through time: as long as it hangs it does nothing, and being slow delays it once."""

        def after_hangs(time: int) -> int:
            while ends := [end for verb, start, end, _ in actor.spans if verb == "hang" and start <= time < end]:
                time = ends[0]
            return time

        reached, time = time, after_hangs(time)
        delays = [delay for verb, start, end, delay in actor.spans if verb == "slow" and start <= time < end]
        time = after_hangs(time + max(delays)) if delays and time < FOREVER else time
        return self.on_time(actor, time) if time > reached else time

    def survives(self, actor: _Actor, message: Message, batch: list[Message]) -> bool:
        buffer = self.buffer(actor, message.topic)
        rivals = [other for other in batch if other.topic == message.topic]
        place = rivals.index(message) if buffer.oldest else len(rivals) - 1 - rivals.index(message)
        return buffer.limit is None or place < buffer.limit

    def buffer(self, actor: _Actor, topic: str):  # type: ignore[no-untyped-def]
        found = [each.buffer for each in self.world.members[actor.name].join.subscribes if each.topic == topic]
        return found[0] if found else None

    def lose(self, actor: _Actor, messages: list[Message]) -> None:
        """Let it never be given these: they have arrived while it was down, or had before."""
        actor.gone.update(message[:5] for message in messages)
        for message in messages:
            was_down = actor.down_until is not None and message.arrival >= actor.down_since
            is_lost = was_down and message.topic not in actor.durable
            actor.history.dropped[message.topic, DOWN if is_lost else NEVER_TAKEN] += 1

    def crash(self, actor: _Actor) -> None:
        due = [span for span in actor.spans if span[0] == "crash" and span[1] <= actor.now]
        actor.spans = [span for span in actor.spans if span not in due]
        until = max(end for _, _, end, _ in due)
        actor.down_since, actor.down_until = actor.now, self.on_time(actor, until)
        if until == FOREVER:
            self.lose(actor, actor.batch or [])
        else:
            actor.gone.difference_update(message[:5] for message in actor.batch or ())  # They wait, if durable.
        actor.op = actor.batch = None
        actor.is_alarmed = False
        if until == FOREVER:
            self.leave(actor)

    def leave(self, actor: _Actor) -> None:
        known_before = max(actor.now, actor.known_before)
        self.lose(actor, [message for message in actor.waiting() if message.arrival < known_before])
        actor.history.left = actor.now
        actor.op = actor.batch = actor.down_until = None

    def rise(self, actor: _Actor, time: int) -> None:
        assert actor.down_until is not None
        meanwhile = [span for span in actor.spans if span[0] == "crash" and span[1] <= time]
        if meanwhile:
            actor.spans = [span for span in actor.spans if span not in meanwhile]
            actor.down_until = self.on_time(actor, max(time, *(end for _, _, end, _ in meanwhile)))
            if actor.down_until == FOREVER:
                self.leave(actor)
            elif actor.down_until <= time:
                self.rise(actor, time)
            return
        lost = [m for m in actor.waiting() if m.arrival < time and m.topic not in actor.durable]
        self.lose(actor, lost)
        actor.down_until = None
        actor.op = Op("start", time)
        actor.batch = []
        actor.behavior = None
        actor.resumes = self.resumption(actor, time)
        if actor.resumes == time:
            self.give(actor, [])

    def give(self, actor: _Actor, batch: list[Message], *, ended: bool = False, alarmed: bool = False) -> None:
        actor.batch = None
        batch = [self.corrupted(actor, message) for message in batch]
        if ended and actor.behavior is None:  # It was never started.
            self.leave(actor)
            return
        actor.history.received += [(actor.now, message) for message in batch]
        try:
            if actor.behavior is None:
                start = Result(actor.now, stopped_by=self.stopped_by(actor))
                actor.behavior = behave(self.world.members[actor.name], start)
                op = next(actor.behavior)
            else:
                stopped_by = self.stopped_by(actor)
                op = actor.behavior.send(Result(actor.now, batch, ended, alarmed=alarmed, stopped_by=stopped_by))
            while op.kind in ("publish", "estop"):
                if op.kind == "publish":
                    op = replace(op, time=self.on_time(actor, op.time))
                    self.publish(actor, op)
                    self.count(actor, "sends", op.topic, op.time)
                else:
                    self.call_estop(actor)
                if actor.crash_at() <= actor.now:
                    self.crash(actor)
                    return
                op = actor.behavior.send(Result(actor.now))
            actor.op = op
        except StopIteration:
            self.leave(actor)

    def publish(self, actor: _Actor, op: Op) -> None:
        sequence = len(actor.history.sent)
        actor.history.sent.append((op.time, op.topic, op.payload))
        number = self.numbers[actor.name, op.topic]
        self.numbers[actor.name, op.topic] += 1
        least = self.world.members[actor.name].join.latency_least
        for receiver in self.actors.values():
            buffer = self.buffer(receiver, op.topic)
            if receiver is actor:
                continue
            key = (op.topic, actor.name, receiver.name)
            if key not in self.open_paths:
                self.open_paths[key] = self.paths.open(*key, latency_least=least, opened=0)
            arrivals, lost = self.open_paths[key].carry(op.time, number, len(op.payload))
            if op.topic == ESTOP_TOPIC:
                alarm = Message(arrivals[0], op.time, actor.name, sequence, 0, op.topic, op.payload)
                receiver.alarm = alarm if receiver.alarm is None else min(alarm, receiver.alarm)
                receiver.calls.append((alarm.arrival, op.time, actor.name))
            elif lost is None and buffer is not None and buffer.limit != 0:
                for copy, arrival in enumerate(arrivals):
                    message = Message(arrival, op.time, actor.name, sequence, copy, op.topic, op.payload)
                    receiver.arrivals.append(message)

    def call_estop(self, actor: _Actor) -> None:
        if not actor.knows and not self.is_pending(actor):
            at = self.on_time(actor, actor.now)
            self.publish(actor, Op("publish", at, ESTOP_TOPIC, b"stop"))
            actor.calls.append((-1, at, actor.name))
        actor.knows = True

    def stopped_by(self, actor: _Actor) -> str:
        """Return who has called the first emergency stop that it knows of: by the time of the call, then by name."""
        if not actor.knows:
            return ""
        known_before = max(actor.now, actor.known_before)
        return min(call[1:] for call in actor.calls if call[0] < known_before)[1]

    def corrupted(self, actor: _Actor, message: Message) -> Message:
        """Look at every bit of a payload, and flip the one that was drawn, if any."""
        way = (message.topic, message.sender, actor.name)
        key = key_of(self.world.plan.seed, "corruption", *way)
        share = self.paths.link(*way).corruption
        if not message.payload or unit(draw_bits(key, message.sequence, 2 * message.copy)) >= share:
            return message
        length = 8 * len(message.payload)
        drawn = draw_bits(key, message.sequence, 2 * message.copy + 1) * length >> 64
        bits = list(f"{int.from_bytes(message.payload):0{length}b}")
        bits[drawn] = "10"[int(bits[drawn])]
        return message._replace(payload=int("".join(bits), 2).to_bytes(len(message.payload)))

    def count(self, actor: _Actor, verb: str, topic: str, at: int) -> None:
        actor.counts[verb, topic] += 1
        for each in list(actor.befalling):
            if each.after == (verb, topic, actor.counts[verb, topic]):
                actor.befalling.remove(each)
                self.befall(actor, each, at)


class FatedDriver(Driver):
    """A participant whose program is started again after a crash."""

    def __init__(self, name: str, world: World, fates: Fates, random: Random, seen: Counter[str]) -> None:
        super().__init__(name, world, random, seen)
        fate, network = fates[name], world.plan.network
        life = Lifecycle(
            faults=tuple(each.fault(name) for each in fate.befalling),
            durable=fate.durable,
            boot=fate.boot,
            estop=network.estop,
            network=network,
        )
        self.period = fate.period
        self.ledger = ledger_of(name, self.member.join, life, keep_journal=True, period=fate.period, clock=fate.clock)
        self.frames = [self.ledger.take_outbox()]
        self.starting = True

    def answer(self, action: Action) -> None:
        try:
            messages = self.ledger.receive(action)
        except Crashed:
            self.crashed()
            return
        except EmergencyStop:
            self.go_on(self.alarmed())
            return
        if messages is None:
            self.seen["wait made of several"] += 1
            self.frames.append(self.ledger.take_outbox())
        elif self.starting:
            self.start()
        else:
            self.go_on(Result(self.ledger.now, messages, self.ledger.ended))

    def start(self) -> None:
        self.starting = False
        if self.ledger.is_crashed or self.ledger.ended:
            self.ledger.leave()
            self.frames.append(self.ledger.take_outbox())
            return
        self.behavior = behave(self.member, self.informed(Result(self.ledger.now)))
        self.go_on(None)

    def go_on(self, result: Result | None) -> None:
        try:
            super().go_on(None if result is None else self.informed(result))
        except Crashed:
            self.crashed()

    def informed(self, result: Result) -> Result:
        """Return a result that says whose emergency stop counts."""
        notice = self.ledger.estopped
        return replace(result, stopped_by="" if notice is None else notice.by)

    def do(self, op: Op) -> Result | None:
        if op.kind == "estop":
            self.seen["emergency stop"] += 1
            self.ledger.estop("stop")
            return Result(self.ledger.now)
        if op.kind == "publish" and self.period:
            due = self.ledger.clock.due(self.period, op.time)
            self.seen["send that waits for a period"] += due > op.time
            op = replace(op, time=due)
        try:
            result = super().do(op)
        except EmergencyStop:
            result = self.alarmed()
        return None if result is None else self.informed(result)

    def alarmed(self) -> Result:
        self.seen["told of an emergency stop"] += 1
        return Result(self.ledger.now, alarmed=True)

    def crashed(self) -> None:
        self.seen["crash"] += 1
        self.seen["crash for good"] += self.ledger.state is State.LEFT
        self.starting = True
        if self.ledger.revive() is None:
            self.frames.append(self.ledger.take_outbox())
        else:
            self.start()


class Onlooker(Observer):
    """Keeps what becomes of each message at each receiver, once that is final."""

    def __init__(self) -> None:
        self.pending = Pending(1)
        self.publications: list[Publication] = []

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self.pending.sent(who, number, topic, at, payload, until)

    def arrives(self, sender: str, number: int, receiver: str, at: int, copy: int, lost: str | None) -> None:
        self.pending.arrives(sender, number, receiver, at, copy, lost)

    def lasts(self, sender: str, number: int, until: int) -> None:
        self.pending.lasts(sender, number, until)

    def closed(self, receiver: str, topic: str, at: int) -> None:
        self.pending.closed(receiver, topic, at)

    def passed(self, time: int) -> None:
        self.publications += self.pending.advance(time)

    def fates(self, end: int) -> dict[str, dict[tuple[int, int, str, int, int, str], str | None]]:
        """Return, by receiver, why each message was lost that reached it, or would have; None: it wasn't."""
        found: dict[str, dict[tuple[int, int, str, int, int, str], str | None]] = {}
        for each in [*self.publications, *self.pending.finish(end)]:
            assert each.number is not None
            for at, receiver, copy, lost in each.fates():
                key = (at, each.sent, each.sender, each.number, copy, each.topic)
                found.setdefault(receiver, {})[key] = lost
        return found


class FatedHarness(Harness):
    def __init__(self, world: World, fates: Fates, random: Random, seen: Counter[str]) -> None:
        self.onlooker = Onlooker()
        super().__init__(world, random, seen, lambda plan: Arbiter(plan, self.onlooker))
        self.drivers = {name: FatedDriver(name, world, fates, random, seen) for name in world.members}

    def handle(self, who: str, *events: object) -> None:
        super().handle(who, *events)
        self.arbiter.tell_passed()
