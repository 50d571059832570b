"""A relay race near the speed of light, and a judge who has a twin among the runners.

The track is a line. Runners wait along it, at rest; who gets the baton runs to the next one, for as long as its own
clock says: a way of L at the speed v takes L/v in the lab, and L/(γv) for the runner, γ = 1/√(1 − v²). The last one
runs to the finish and back to the start, where the judge waits, who is as old as all runners.

All are born at 0. A runner ages less. At the end the lab's clock, the judge's and those of the runners are compared
with what these formulas say. Two that hand over a baton are at one place, and there a lambda would take no time at
all; a c lets it take √c of the receiver's time.
"""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import Any

from worldline.spacetime import Agent, Channel, ForwardSimulation, LambdaField, Minkowski, SpacetimeOutcome
from worldline.spacetime.loading import at_least

UNTIL = 100.0

LEG = 6.0
HAND_OVER = 0.25  # √c


class Runner(Agent):
    """Runs a leg of the race."""

    to_next: Channel
    speed: float
    is_last = False
    age_at_end = -1.0

    def shown_as(self) -> str:
        """Have a color of its own in pictures."""
        return self.name

    def take(self, legs_run: int) -> None:
        """Run to the next one; the last one to the finish."""
        self.log(f"takes the baton at the age of {self.local_time:.4f}, and runs at {self.speed:g}")
        self.velocity = self.space.velocity(self.speed)
        self.after(self._own_time(1), Runner.turn if self.is_last else Runner.arrive, legs_run + 1)

    def arrive(self, legs_run: int) -> None:
        self.velocity = self.space.rest
        self.age_at_end = self.local_time
        self.to_next.send(Runner.take, legs_run)

    def turn(self, legs_run: int) -> None:
        self.log(f"finishes at the age of {self.local_time:.4f}, and turns")
        self.velocity = self.space.velocity(-self.speed)
        self.after(self._own_time(legs_run), Runner.come_home)

    def come_home(self) -> None:
        self.velocity = self.space.rest
        self.age_at_end = self.local_time
        self.to_next.send(Judge.compare, self.name, self.local_time)

    def _own_time(self, legs: int) -> float:
        return legs * LEG / self.speed * sqrt(1.0 - self.speed**2)


class Judge(Agent):
    """Waits at the start."""

    to_first: Channel
    age_at_end = -1.0

    def shown_as(self) -> str:
        return self.name

    def compare(self, name: str, age: float) -> None:
        self.age_at_end = self.local_time
        self.log(f"is {self.local_time:.4f} old, and {name} was {age:.4f} when it came home")


def model(
    *,
    seed: int = 0,
    runners: int = 3,
    slowest: float = 0.6,
    fastest: float = 0.96,
) -> ForwardSimulation:
    """Let so many run, each faster than the one before."""
    at_least(1, runners=runners)
    simulation = ForwardSimulation(Minkowski(2), LambdaField(c=HAND_OVER**2), seed=seed)
    with simulation:
        judge = Judge()
        judge.name = "judge"
        team = [Runner() for _ in range(runners)]
        for number, runner in enumerate(team):
            runner.name = f"runner-{number + 1}"
            runner.speed = slowest + (fastest - slowest) * number / max(runners - 1, 1)
            runner.jump_to((0.0, LEG * number))
        for runner, following in pairwise(team):
            runner.to_next = Channel(runner, following)
        team[-1].is_last = True
        team[-1].to_next = Channel(team[-1], judge)
        team[0].take(0)
    return simulation


def outcome(simulation: ForwardSimulation, result: SpacetimeOutcome) -> str:
    """All clocks show what the formulas say."""
    judge: Any = simulation["judge"]
    team: list[Any] = [simulation[f"runner-{number}"] for number in range(1, result.agents)]
    if judge.age_at_end < 0.0:
        return "the race isn't over yet"
    lab = 0.0
    for runner in team:
        legs = len(team) + 1 if runner.is_last else 1
        gamma = 1.0 / sqrt(1.0 - runner.speed**2)
        expected = lab + legs * LEG / runner.speed / gamma
        assert abs(runner.age_at_end - expected) < 1e-9, (runner.name, runner.age_at_end, expected)
        lab += legs * LEG / runner.speed + HAND_OVER
    assert abs(judge.age_at_end - lab) < 1e-9, (judge.age_at_end, lab)
    younger = judge.age_at_end - HAND_OVER - team[-1].age_at_end
    return f"the judge is {lab:.4f} old, and the last runner {younger:.4f} younger"
