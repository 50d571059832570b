"""The all-seeing oracle: searches everything that is under way for what happens next in the lab, and lets that happen.

It knows nothing of blocks, positions that are published or who runs when, and computes in decimals of 40 digits. In
the lab nothing has an effect on what is earlier, so the earliest event of all is always safe to execute. This is what
the core must come to for every agent on its own.

What comes to an agent at the same point is of two kinds. If it was emitted in one event at one point, or the agent
has jumped over all of it, floats too have it at the same time, and the lot decides. Otherwise decimals tell apart what
floats can't; then the oracle gives up with `NearTie`, whose `lab` says until when its story counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any

from tests.spacetime.worlds import Script, World
from worldline.model.randomness import key_of
from worldline.spacetime import Minkowski

D = Decimal
Numbers = list[Decimal]

_ZERO = D(0)
_NEAR = D("1e-9")


class NearTie(Exception):  # noqa: N818 - It isn't an error.
    def __init__(self, lab: float) -> None:
        super().__init__(lab)
        self.lab = lab


@dataclass(frozen=True)
class Happening:
    """What the oracle says about an agent's history."""

    kind: str
    channel: str
    order: int
    what: str
    at: tuple[float, ...]


@dataclass
class Item:
    order: int
    what: str
    emitted: Numbers
    event: tuple[str, int]  # The one that emitted it: whose, and which of its events.
    carried: Wire | None = None


@dataclass(eq=False)
class Wire:
    name: str
    source: Being
    target: Being
    items: list[Item] = field(default_factory=list)
    sent: int = 0
    is_open: bool = True
    is_blind: bool = False


@dataclass(eq=False)
class Being:
    name: str
    start: Numbers
    velocity: Numbers
    script: Script
    local_start: Decimal = _ZERO
    last: Decimal = _ZERO
    step: int = 0
    events: int = 0
    is_alive: bool = True
    died_at: Numbers | None = None
    inbox: list[Wire] = field(default_factory=list)
    channels: list[Wire] = field(default_factory=list)
    timers: list[tuple[Decimal, int]] = field(default_factory=list)
    timers_set: int = 0
    passed: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    story: list[Happening] = field(default_factory=list)
    dues: dict[int, tuple[Item, Decimal]] = field(default_factory=dict)  # Those worked out on this trajectory.

    def point(self) -> Numbers:
        return [x + v * self.last for x, v in zip(self.start, self.velocity, strict=True)]

    def count(self, what: str) -> int:
        self.counts[what] = self.counts.get(what, 0) + 1
        return self.counts[what]

    def move(self, start: Numbers, velocity: Numbers) -> None:
        self.local_start += self.last
        self.last = D(0)
        self.start, self.velocity = start, velocity
        self.dues = {}


@dataclass
class Candidate:
    """Something that could come next to an agent. `raw` is when it would have come, had it not been passed."""

    tau: Decimal
    raw: Decimal
    wire: Wire | None = None
    wall: int = -1


def dot(a: Numbers, b: Numbers) -> Decimal:
    return a[0] * b[0] - sum((x * y for x, y in zip(a[1:], b[1:], strict=True)), D(0))


def decimals(numbers: Any) -> Numbers:
    return [D(each) for each in numbers]


class Oracle:
    def __init__(self, world: World) -> None:
        self.world = world
        self.space = Minkowski(world.n)
        self.reach = decimals(world.R or (0.0,) * world.n)
        self.c = D(world.c)
        self.walls: list[Any] = [([D(-1)] + [D(0)] * (world.n - 1), D(world.until), "end", None)]  # The end wins ties.
        self.walls += [(decimals(each.normal), D(each.offset), each.action, each.period) for each in world.walls]
        self.beings: list[Being] = []
        self.news: dict[str, Wire] = {}

    def run(self) -> dict[str, list[Happening]]:
        with localcontext() as context:
            context.prec = 40
            self._set_up()
            while self._next():
                pass
        return {being.name: being.story for being in self.beings}

    def _set_up(self) -> None:
        for place, start in enumerate(self.world.starts, 1):
            velocity = decimals(self.space.velocity(*start.speeds))
            being = Being(f"Actor-{place}", decimals(start.at), velocity, start.script)
            self.beings.append(being)
            self._tell(being, "born", what="Actor", at=[D(0)] * self.world.n)
        for number, (source, target, blind) in enumerate(self.world.channels, 1):
            self._connect(f":{number}", self.beings[source], self.beings[target], blind=blind)
        for being, start in zip(self.beings, self.world.starts, strict=True):
            if start.wakes is not None:
                self._set_timer(being, start.wakes)

    # -- What comes next

    def _next(self) -> bool:
        found: tuple[Decimal, Being, list[Candidate]] | None = None
        for being in self.beings:
            candidates = sorted(self._candidates(being), key=lambda each: each.tau) if being.is_alive else []
            if not candidates:
                continue
            lab = being.start[0] + being.velocity[0] * candidates[0].tau
            if found is None or lab < found[0]:
                found = lab, being, candidates
        if found is None:
            return False
        lab, being, candidates = found
        self._execute(being, self._first(being, candidates, lab))
        return True

    def _candidates(self, being: Being) -> Iterator[Candidate]:
        for wire in being.inbox:
            if wire.items:
                raw = self._due(being, wire)
                yield Candidate(max(raw, being.last), raw, wire)
        if being.timers:
            raw = being.timers[0][0] - being.local_start
            yield Candidate(max(raw, being.last), raw)
        still = []
        for place, (normal, offset, _, _) in enumerate(self.walls):
            speed = dot(normal, being.velocity)
            if speed >= 0:
                continue
            if place in being.passed:
                still.append(place)
                continue
            raw = -(dot(normal, being.start) + offset) / speed
            yield Candidate(max(raw, being.last), raw, wall=place)
        being.passed = still

    def _due(self, being: Being, wire: Wire) -> Decimal:
        """Return the larger root of (D + Vτ)·(D + Vτ) = c."""
        item = wire.items[0]
        known = being.dues.get(id(wire))
        if known is None or known[0] is not item:
            apart = [x - a - r for x, a, r in zip(being.start, item.emitted, self.reach, strict=True)]
            square, half = dot(being.velocity, being.velocity), dot(being.velocity, apart)
            rest = half * half - square * (dot(apart, apart) - self.c)
            known = being.dues[id(wire)] = item, (max(rest, D(0)).sqrt() - half) / square
        return known[1]

    def _first(self, being: Being, candidates: list[Candidate], lab: Decimal) -> Candidate:
        first = candidates[0]
        near = [each for each in candidates if each.tau - first.tau < _NEAR * (1 + abs(first.tau))]
        if len(near) == 1:
            return first
        walls = [each for each in near if each.wall >= 0]
        passed = [each for each in near if each.raw < being.last - _NEAR]
        if walls and all(each in passed for each in walls):  # A boundary wins against lambdas.
            return min(walls, key=lambda each: each.wall)
        if len(passed) == len(near):
            return min(near, key=self._lot)
        fronts = [each.wire.items[0] for each in near if each.wire is not None]
        emitted = [(each.event, each.emitted) for each in fronts]
        if len(emitted) == len(near) and all(each == emitted[0] for each in emitted):
            return min(near, key=self._lot)
        raise NearTie(float(lab))

    def _lot(self, candidate: Candidate) -> int:
        assert candidate.wire is not None
        key = key_of(self.world.seed, "channel", candidate.wire.name) & (2**60 - 1)
        return hash((0, 0, 0, 0, key, candidate.wire.items[0].order, 0)) & (2**60 - 1)

    # -- What happens then

    def _execute(self, being: Being, chosen: Candidate) -> None:
        if chosen.wire is not None and chosen.wire.name.endswith("!"):
            self._learn(being, chosen.wire)
            return
        being.last = chosen.tau
        being.events += 1
        if chosen.wall >= 0:
            self._cross(being, chosen.wall)
        elif chosen.wire is None:
            _, number = being.timers.pop(0)
            self._tell(being, "timer", f"{being.name}:timer", number, "hear")
            self._step(being)
        else:
            self._absorb(being, chosen.wire)

    def _learn(self, being: Being, news: Wire) -> None:
        """Let a being know of a death, which is no event: the channel that the news belong to is closed."""
        being.inbox.remove(news)
        for channel in being.channels:
            if channel.name == news.name[:-1]:
                channel.is_open = False

    def _absorb(self, being: Being, wire: Wire) -> None:
        item = wire.items.pop(0)
        self._tell(being, "absorbed", wire.name, item.order, item.what)
        if item.what == "attach":
            assert item.carried is not None
            being.inbox.append(item.carried)
        else:
            if item.carried is not None:
                being.channels.append(item.carried)
                self._watch(item.carried)
            self._step(being)

    def _cross(self, being: Being, place: int) -> None:
        normal, _, action, period = self.walls[place]
        name = f"the end, at {self.world.until:g}" if action == "end" else str(place - 1)
        self._tell(being, "crossed", what=name)
        being.passed.append(place)
        if action == "end":
            self._tell(being, "ended")
            being.is_alive = False
        elif action == "remove":
            self.do_die(being)
        elif action == "stop":
            being.move(being.point(), [D(1)] + [D(0)] * (self.world.n - 1))
        elif action == "reflect":
            share = 2 * dot(being.velocity, normal) / dot(normal, normal)
            across = [v - share * x for v, x in zip(being.velocity, normal, strict=True)][1:]
            being.move(being.point(), [(1 + sum(each * each for each in across)).sqrt(), *across])
        else:
            way = decimals(period)
            way[0] = (-dot(way, way)).sqrt()
            self._jump(being, way)

    def _step(self, being: Being) -> None:
        actions = being.script[being.step] if being.step < len(being.script) else ()
        being.step += 1
        for action, *details in actions:
            getattr(self, f"do_{action}")(being, *details)
            if action == "die":
                break

    def _channel(self, being: Being, number: int) -> Wire | None:
        wire = being.channels[number % len(being.channels)] if being.channels else None
        return wire if wire is not None and wire.is_open else None

    def _name(self, being: Being) -> str:
        return f"{being.name}:{being.count(':')}"

    def _connect(self, name: str, source: Being, target: Being, *, blind: bool) -> Wire:
        wire = Wire(name, source, target, is_blind=blind)
        source.channels.append(wire)
        target.inbox.append(wire)
        self._watch(wire)
        return wire

    def _watch(self, wire: Wire) -> None:
        if wire.is_blind or wire.source is wire.target:
            return
        news = self.news[wire.name] = Wire(f"{wire.name}!", wire.target, wire.source)
        wire.source.inbox.append(news)
        if wire.target.died_at is not None:
            news.items.append(self._obituary(wire.target))

    def _send(self, wire: Wire, what: str, carried: Wire | None = None) -> None:
        if wire.target.is_alive:
            source = wire.source
            wire.items.append(Item(wire.sent, what, source.point(), (source.name, source.events), carried))
        wire.sent += 1

    def _set_timer(self, being: Being, delay: float) -> None:
        being.timers.append((being.local_start + being.last + D(delay), being.timers_set))
        being.timers.sort()
        being.timers_set += 1

    def _jump(self, being: Being, by: Any) -> None:
        being.move([x + D(each) for x, each in zip(being.point(), by, strict=True)], being.velocity)
        being.passed = []

    def do_send(self, being: Being, number: int) -> None:
        wire = self._channel(being, number)
        if wire is not None:
            self._send(wire, "Actor.hear")

    def do_introduce(self, being: Being, number: int, other: int) -> None:
        to, of = self._channel(being, number), self._channel(being, other)
        if to is not None and of is not None and to.target is not of.target:
            wire = Wire(self._name(being), to.target, of.target)
            self._send(of, "attach", wire)
            self._send(to, "Actor.meet", wire)

    def do_offer(self, being: Being, number: int) -> None:
        to = self._channel(being, number)
        if to is not None and to.target is not being:
            wire = Wire(self._name(being), to.target, being)
            being.inbox.append(wire)
            self._send(to, "Actor.meet", wire)

    def do_close(self, being: Being, number: int) -> None:
        wire = self._channel(being, number)
        if wire is not None:
            wire.is_open = False
            news = self.news.pop(wire.name, None)
            if news in being.inbox:
                being.inbox.remove(news)

    def do_turn(self, being: Being, speeds: tuple[float, ...]) -> None:
        being.move(being.point(), decimals(self.space.velocity(*speeds)))

    def do_jump(self, being: Being, by: tuple[float, ...]) -> None:
        self._jump(being, by)

    def do_wait(self, being: Being, delay: float) -> None:
        self._set_timer(being, delay)

    def do_die(self, being: Being) -> None:
        self._tell(being, "died")
        being.is_alive = False
        being.died_at = being.point()
        for wire in self.news.values():
            if wire.source is being:
                wire.items.append(self._obituary(being))

    def _obituary(self, being: Being) -> Item:
        assert being.died_at is not None
        return Item(0, "death", being.died_at, (being.name, being.events))

    def do_spawn(self, being: Being, by: tuple[float, ...], speeds: tuple[float, ...], script: Script) -> None:
        at = being.point()
        name = f"{being.name}/Actor-{being.count('Actor')}"
        child = Being(name, at, decimals(self.space.velocity(*speeds)), script)
        self._tell(child, "born", what="Actor")
        self._jump(child, by)
        self.beings.append(child)
        self._connect(self._name(being), being, child, blind=False)
        self._connect(self._name(being), child, being, blind=False)
        self._set_timer(child, 0.5)

    def _tell(
        self, being: Being, kind: str, channel: str = "", order: int = -1, what: str = "", at: Numbers | None = None
    ) -> None:
        point = being.point() if at is None else at
        being.story.append(Happening(kind, channel, order, what, tuple(map(float, point))))
