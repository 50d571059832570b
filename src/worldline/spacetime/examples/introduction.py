"""Bob knows Alice and Carol, who don't know each other, and introduces them.

He sends Carol a reference to Alice. With it Carol makes a channel of her own, and greets Alice, with a reference to
herself, so that Alice can answer. References travel inside functions, as fast as light. While one is under way, no
agent knows where it will end up; yet Alice never gets past the point at which Carol's greeting has to reach her: her
clock, which ticks all the time, has the greeting in its place.

All are at rest at the corners of a triangle. So the greeting comes when light has gone from Bob to Carol and on to
Alice, and the answer when it has gone back from there.
"""

from __future__ import annotations

from math import dist, hypot
from typing import Any

from worldline.spacetime import Agent, Channel, ForwardSimulation, Minkowski, RemoteReference, SpacetimeOutcome

UNTIL = 20.0

PLACES = {"Alice": (0.0, 0.0), "Bob": (4.0, 0.0), "Carol": (4.0, 3.0)}


class Alice(Agent):
    """Counts the time, and answers greetings."""

    to_friend: Channel
    ticks = 0
    ticks_before_greeting = -1

    def tick(self) -> None:
        self.ticks += 1
        self.after(1.0, Alice.tick)

    def greet(self, friend: RemoteReference) -> None:
        self.ticks_before_greeting = self.ticks
        self.log(f"{friend.name} greets me, after {self.ticks} ticks")
        self.to_friend = Channel(self, friend)
        self.to_friend.send(Carol.hear)


class Bob(Agent):
    """Introduces the others to each other."""

    to_alice: Channel
    to_carol: Channel

    def introduce(self) -> None:
        alice = self.to_alice.target()
        self.log("Carol, meet Alice")
        self.to_carol.send(lambda carol: carol.meet(alice))


class Carol(Agent):
    """Greets whom she meets."""

    to_friend: Channel
    met_at = -1.0
    heard_at = -1.0

    def meet(self, friend: RemoteReference) -> None:
        self.met_at = self.position.t
        self.log(f"hello, {friend.name}")
        self.to_friend = Channel(self, friend)
        self.to_friend.send(Alice.greet, self.reference())

    def hear(self) -> None:
        self.heard_at = self.position.t
        self.log(f"{self.to_friend.target().name} answers")


def model(*, seed: int = 0, wait: float = 2.5) -> ForwardSimulation:
    """Let Bob wait for so long, and then introduce the others."""
    simulation = ForwardSimulation(Minkowski(3), seed=seed)
    with simulation:
        alice, bob, carol = Alice(), Bob(), Carol()
        for agent in (alice, bob, carol):
            agent.name = type(agent).__name__
            agent.jump_to((0.0, *PLACES[agent.name]))
        bob.to_alice = Channel(bob, alice)
        bob.to_carol = Channel(bob, carol)
        alice.after(1.0, Alice.tick)
        bob.after(wait, Bob.introduce)
    return simulation


def outcome(simulation: ForwardSimulation, result: SpacetimeOutcome) -> str:
    """The greeting and the answer have taken the ways that light takes."""
    alice: Any = simulation["Alice"]
    carol: Any = simulation["Carol"]
    if carol.heard_at < 0.0:
        return f"no agent has answered until {result.until:g}"
    there = dist(PLACES["Bob"], PLACES["Carol"])
    back = hypot(*PLACES["Carol"])
    began = carol.met_at - there
    assert alice.ticks_before_greeting == int(began + there + back)
    assert abs(carol.heard_at - (began + there + 2 * back)) < 1e-9
    return f"introduced at {began:g}, answered at {carol.heard_at:g}"
