"""Runs to be drawn: real ones, and records as they would be traced."""

from __future__ import annotations

from typing import Any

from worldline.spacetime import (
    Agent,
    AgentRecord,
    Channel,
    ForwardSimulation,
    LambdaField,
    Minkowski,
    SpacetimeOutcome,
    box,
)
from worldline.spacetime.boundary import Action


class Player(Agent):
    """Sends back whatever comes."""

    other: Channel

    def ping(self) -> None:
        self.other.send("ping")


def ping(n: int = 2, until: float = 12.0, apart: float = 3.0, field: LambdaField | None = None) -> SpacetimeOutcome:
    simulation = ForwardSimulation(Minkowski(n), field, trace=True)
    with simulation:
        alice, bob = Player(), Player()
        alice.name, bob.name = "alice", "bob"
        bob.jump_to((0.0,) * (n - 1) + (apart,) if n > 1 else (0.0,))
        alice.other, bob.other = Channel(alice, bob), Channel(bob, alice)
        alice.ping()
    return simulation.run(until=until)


class Walker(Agent):
    """Turns, tells others, makes children and dies, all as it draws."""

    others: list[Channel]

    def start(self) -> None:
        self.turn()
        self.after(self.random.uniform(0.2, 2), "beat")

    def turn(self) -> None:
        self.velocity = self.space.velocity(*(self.random.uniform(-0.5, 0.5) for _ in range(self.space.n - 1)))

    def beat(self) -> None:
        for channel in self.others[:1]:
            if channel.is_open:
                channel.send("hear")
        self.turn()
        self.after(self.random.uniform(0.5, 3), "beat")
        drawn = self.random.random()
        if drawn < 0.04:
            self.log("farewell")
            self.die()
        elif drawn < 0.08:
            child = Walker()
            child.others = [Channel(child, self)]
            child.start()

    def hear(self) -> None:
        self.others.reverse()


def crowd(
    count: int, n: int = 3, until: float = 12.0, side: float = 6.0, action: Action = "reflect"
) -> SpacetimeOutcome:
    walls = box([-side] * (n - 1), [side] * (n - 1), action) if n > 1 else []
    simulation = ForwardSimulation(Minkowski(n), LambdaField(c=0.01), walls, trace=True, seed=5)
    with simulation:
        walkers = [Walker() for _ in range(count)]
        for number, walker in enumerate(walkers):
            walker.name = f"w{number}"
            walker.jump_to((0.0, *(walker.random.uniform(-side * 0.9, side * 0.9) for _ in range(n - 1))))
        for number, walker in enumerate(walkers):
            ends = dict.fromkeys((number + step) % count for step in (1, 2))
            walker.others = [Channel(walker, walkers[end]) for end in ends if end != number]
            walker.start()
    return simulation.run(until=until)


def straight(name: str, *points: tuple[float, ...], **facts: Any) -> list[AgentRecord]:
    """Return the records of an agent that goes from point to point and ends at the last."""
    kinds = ["born", *["turned"] * (len(points) - 2), "ended"]
    return [
        AgentRecord(name, number, kind, tuple(map(float, at)), 0.5 * number, **(facts if kind == "born" else {}))
        for number, (kind, at) in enumerate(zip(kinds, points, strict=True))
    ]


def lambdas(source: str, target: str, *ways: tuple[tuple[float, ...], tuple[float, ...]]) -> list[AgentRecord]:
    """Return the records of lambdas that are absorbed, from where to where."""
    found = []
    for order, (start, end) in enumerate(ways):
        common: dict[str, Any] = {"channel": f"{source}:{target}", "order": order, "what": "call"}
        found.append(AgentRecord(source, 100 + order, "sent", start, 0.0, peer=target, **common))
        found.append(AgentRecord(target, 200 + order, "absorbed", end, 0.0, peer=source, emitted=start, **common))
    return found
