"""Two agents at rest send each other a function, back and forth.

Alice is at 0, and Bob at some distance from her. What one emits at X is absorbed by the other at Y where
(Y − X)·(Y − X) = c. Both are at rest, so that a way of the length d takes √(d² + c) of lab time: with c = 0 they hear
each other at the speed of light, and a c makes both a little slower.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from worldline.spacetime import Agent, Channel, ForwardSimulation, LambdaField, Minkowski, SpacetimeOutcome

UNTIL = 10.0


class Ping(Agent):
    """Answers every ping."""

    to_other: Channel
    pings = 0
    last = 0.0

    def ping(self) -> None:
        self.pings += 1
        self.last = self.position.t
        self.log(f"ping from {self.position}")
        self.to_other.send(Ping.ping)


def model(*, seed: int = 0, distance: float = 1.0, c: float = 0.0) -> ForwardSimulation:
    """Put Bob at a distance from Alice, who begins."""
    simulation = ForwardSimulation(Minkowski(4), LambdaField(c=c), seed=seed)
    with simulation:
        alice, bob = Ping(), Ping()
        alice.name, bob.name = "Alice", "Bob"
        bob.jump_to((0, 0, 0, distance))
        alice.to_other = Channel(alice, bob)
        bob.to_other = Channel(bob, alice)
        alice.ping()
    return simulation


def outcome(simulation: ForwardSimulation, result: SpacetimeOutcome) -> str:
    """Every way takes the time that the formula says, and the two take turns."""
    alice: Any = simulation["Alice"]
    bob: Any = simulation["Bob"]
    distance = bob.position[3]
    way = sqrt(distance**2 + simulation.field.c)
    ways = alice.pings + bob.pings - 1
    assert alice.pings - bob.pings in (0, 1)
    assert abs(max(alice.last, bob.last) - ways * way) <= 1e-9 * ways
    assert (ways + 1) * way > result.until - 1e-6
    return f"{ways} ways of {way:.6g} each"
