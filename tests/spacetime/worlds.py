"""Small random worlds as data: agents that move, channels, walls, and scripts of what agents do at their events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import sqrt
from random import Random
from typing import Any

from worldline.spacetime import Agent, Boundary, Channel, ForwardSimulation, LambdaField, Minkowski, SpacetimeOutcome

Action = tuple[Any, ...]
Script = tuple[tuple[Action, ...], ...]


@dataclass(frozen=True)
class Start:
    """Where an agent begins, how fast, what it does at each of its events, and when it wakes itself up first."""

    at: tuple[float, ...]
    speeds: tuple[float, ...]
    script: Script
    wakes: float | None


@dataclass(frozen=True)
class Wall:
    normal: tuple[float, ...]
    offset: float
    action: str
    period: tuple[float, ...] | None = None


@dataclass(frozen=True)
class World:
    n: int
    R: tuple[float, ...] | None
    c: float
    until: float
    starts: tuple[Start, ...]
    channels: tuple[tuple[int, int, bool], ...]  # Source, target, whether it is blind.
    walls: tuple[Wall, ...] = ()
    seed: int = 0

    @property
    def has_lookahead(self) -> bool:
        return self.R is not None or self.c > 0

    @property
    def space(self) -> Minkowski:
        return Minkowski(self.n)

    @property
    def field(self) -> LambdaField:
        return LambdaField(self.R, self.c)

    def until_before(self, lab: float) -> World:
        """Return the same world, which ends a little before a lab time."""
        return replace(self, until=lab - 1e-5)


# -- In the simulation


class Actor(Agent):
    """Does what its script says: one step of it at each call and each timer."""

    script: Script
    step: int
    channels: list[Channel]

    def prepare(self, script: Script) -> None:
        self.script = script
        self.step = 0
        self.channels = []

    def hear(self) -> None:
        actions = self.script[self.step] if self.step < len(self.script) else ()
        self.step += 1
        for action, *details in actions:
            getattr(self, f"do_{action}")(*details)
            if action == "die":
                break

    def meet(self, reference: Any) -> None:
        self.channels.append(Channel(self, reference))
        self.hear()

    def open_channel(self, number: int) -> Channel | None:
        channel = self.channels[number % len(self.channels)] if self.channels else None
        return channel if channel is not None and channel.is_open else None

    def do_send(self, number: int) -> None:
        channel = self.open_channel(number)
        if channel is not None:
            channel.send(Actor.hear)

    def do_introduce(self, number: int, other: int) -> None:
        to, of = self.open_channel(number), self.open_channel(other)
        if to is not None and of is not None and to.lane.target is not of.lane.target:
            to.send(Actor.meet, of.target())

    def do_offer(self, number: int) -> None:
        to = self.open_channel(number)
        if to is not None and to.lane.target is not self._wl_body:
            to.send(Actor.meet, self.reference())

    def do_close(self, number: int) -> None:
        channel = self.open_channel(number)
        if channel is not None:
            channel.close()

    def do_turn(self, speeds: tuple[float, ...]) -> None:
        self.velocity = self.space.velocity(*speeds)

    def do_jump(self, by: tuple[float, ...]) -> None:
        self.jump_to(self.position + by)

    def do_wait(self, delay: float) -> None:
        self.after(delay, "hear")

    def do_die(self) -> None:
        self.die()

    def do_spawn(self, by: tuple[float, ...], speeds: tuple[float, ...], script: Script) -> None:
        child = Actor()
        child.prepare(script)
        child.jump_to(self.position + by)
        child.velocity = self.space.velocity(*speeds)
        self.channels.append(Channel(self, child))
        child.channels.append(Channel(child, self))
        child.after(0.5, "hear")


def simulate(world: World, executor: Any = "inline", *, trace: bool = True) -> SpacetimeOutcome:
    walls = [Boundary(each.normal, each.offset, each.action, period=each.period) for each in world.walls]
    simulation = ForwardSimulation(world.space, world.field, walls, executor, seed=world.seed, trace=trace)
    with simulation:
        actors = [Actor() for _ in world.starts]
        for actor, start in zip(actors, world.starts, strict=True):
            actor.prepare(start.script)
            actor.jump_to(start.at)
            actor.velocity = world.space.velocity(*start.speeds)
        for source, target, blind in world.channels:
            actors[source].channels.append(Channel(actors[source], actors[target], blind=blind))
        for actor, start in zip(actors, world.starts, strict=True):
            if start.wakes is not None:
                actor.after(start.wakes, "hear")
    return simulation.run(until=world.until)


# -- Drawing them


@dataclass
class _Maker:
    random: Random
    n: int
    has_lookahead: bool
    speed_max: float = field(init=False)

    def __post_init__(self) -> None:
        self.speed_max = self.random.choice((0.5, 0.9, 0.99)) if self.has_lookahead else 0.05

    def within(self, size: float) -> tuple[float, ...]:
        """Draw a vector of space that isn't longer than that."""
        if self.n == 1:
            return ()
        drawn = [self.random.gauss(0, 1) for _ in range(self.n - 1)]
        length = self.random.random() * size / (sqrt(sum(each * each for each in drawn)) or 1.0)
        return tuple(round(each * length, 12) for each in drawn)

    def speeds(self) -> tuple[float, ...]:
        return (0.0,) * (self.n - 1) if self.random.random() < 0.3 else self.within(self.speed_max)

    def ahead(self) -> tuple[float, ...]:
        """Draw a way into the future."""
        time = self.random.uniform(0.5, 4.0)
        return (time, *self.within(0.95 * time))

    def action(self, depth: int) -> Action:
        kinds = ["send"] * 14 + ["turn", "turn", "wait", "wait", "jump", "introduce", "offer", "close", "die", "spawn"]
        kind = self.random.choice(kinds)
        channel = self.random.randrange(12)
        if kind == "turn":
            return kind, self.speeds()
        if kind == "jump":
            return kind, self.ahead()
        if kind == "wait":
            return kind, self.random.uniform(0.1, 3.0)
        if kind == "introduce":
            return kind, channel, self.random.randrange(12)
        if kind == "die":
            return (kind,) if self.random.random() < 0.4 else ("send", channel)
        if kind == "spawn":
            return (kind, self.ahead(), self.speeds(), self.script(depth + 1)) if depth < 2 else ("send", channel)
        return kind, channel

    def script(self, depth: int = 0) -> Script:
        steps = self.random.randrange(3, 15 - 5 * depth)
        return tuple(tuple(self.action(depth) for _ in range(self.random.randrange(5))) for _ in range(steps))

    def start(self, place: int) -> Start:
        across = list(self.within(5.0))
        if not self.has_lookahead:
            across[0] += 12.0 * place
        wakes = self.random.uniform(0.1, 4.0) if self.random.random() < 0.8 else None
        return Start((self.random.uniform(0.0, 1.0), *across), self.speeds(), self.script(), wakes)

    def walls(self) -> tuple[Wall, ...]:
        if self.n == 1 or not self.has_lookahead or self.random.random() < 0.3:
            return ()
        action = self.random.choice(("reflect", "reflect", "stop", "remove", "wrap"))
        drift = self.random.choice((0.0, 0.0, 0.05)) if action in ("reflect", "stop") else 0.0
        made = []
        for axis in range(1, self.n):
            for side in (1.0, -1.0):
                normal, period = [0.0] * self.n, [0.0] * self.n
                normal[axis], normal[0], period[axis] = side, drift, -11.0 * side
                made.append(Wall(tuple(normal), 5.5, action, tuple(period)))
        return tuple(made)


def make_world(random: Random) -> World:
    n = random.choice((1, 2, 2, 3, 4))
    has_lookahead = n == 1 or random.random() < 0.8
    maker = _Maker(random, n, has_lookahead)
    kind = random.choice(("R", "c", "both")) if has_lookahead else ""
    delay = random.uniform(0.1, 1.5)
    reach = (delay, *maker.within(random.choice((0.0, 0.9 * delay)))) if kind in ("R", "both") else None
    c = random.uniform(0.05, 2.0) if kind in ("c", "both") else 0.0
    count = random.randrange(2, 6)
    channels = [
        (source, target, random.random() < 0.3)
        for source in range(count)
        for target in range(count)
        if random.random() < (0.6 if source != target else 0.1 if has_lookahead else 0.0)
    ]
    if random.random() < 0.15:
        channels += channels[:2]
    return World(
        n=n,
        R=reach,
        c=c,
        until=random.uniform(8.0, 25.0) if has_lookahead else random.uniform(30.0, 80.0),
        starts=tuple(maker.start(place) for place in range(count)),
        channels=tuple(channels),
        walls=maker.walls(),
        seed=random.randrange(1000),
    )
