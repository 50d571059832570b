"""A disease among people who walk about in a room, and turn back at its walls.

Who is ill coughs, by its own clock, and all others hear of that as light gets there. Who was near enough to where the
cough came from catches the disease with some probability, which its own draws decide: what others draw doesn't matter.
Who has been ill for long enough recovers, and closes its channels, since it will never cough again. Pictures show who
is well, ill and immune, and when.

An illness lasts equally long for all, in one's own time. Walkers' clocks go slower than those in the lab, by
γ = 1/√(1 − v²). A wall that stands still changes where one walks to and not how fast, so that γ stays as it is, and
the lab sees an illness of γ times its length.
"""

from __future__ import annotations

from math import cos, dist, pi, sin
from typing import Any

from worldline.spacetime import Agent, Channel, ForwardSimulation, LambdaField, Minkowski, SpacetimeOutcome, Vector, box
from worldline.spacetime.loading import at_least

UNTIL = 120.0

SIDE = 10.0
REACTION = 0.1  # √c: people meet, and even then what one coughs takes its time.
ILLNESS = 15.0


class Person(Agent):
    """Walks straight on; is well, ill or immune."""

    others: list[Channel]
    reach: float
    risk: float
    state = "well"
    infected_at = -1.0
    recovered_at = -1.0

    def shown_as(self) -> str:
        return self.state

    def cough(self) -> None:
        if self.state == "ill":
            for channel in self.others:
                channel.send(Person.breathe, self.name, self.position)
            self.after(1.0, Person.cough)

    def breathe(self, name: str, source: Vector) -> None:
        is_near = dist(source[1:], self.position[1:]) < self.reach
        if self.state == "well" and is_near and self.random.random() < self.risk:
            self.fall_ill(name)

    def fall_ill(self, source: str) -> None:
        self.log(f"falls ill, by {source}")
        self.state = "ill"
        self.infected_at = self.position.t
        self.after(ILLNESS, Person.recover)
        self.after(self.random.random(), Person.cough)

    def recover(self) -> None:
        self.state = "immune"
        self.recovered_at = self.position.t
        self.log(f"recovers, after {self.recovered_at - self.infected_at:.3f} in the lab")
        for channel in self.others:
            channel.close()
        self.others = []


def model(
    *,
    seed: int = 0,
    people: int = 24,
    reach: float = 2.0,
    risk: float = 0.25,
    speed: float = 0.4,
) -> ForwardSimulation:
    """Let so many people walk, at up to this speed, with one of them ill. What they can't reach, no cough infects."""
    at_least(1, people=people)
    simulation = ForwardSimulation(
        Minkowski(3),
        LambdaField(c=REACTION**2),
        box((0.0, 0.0), (SIDE, SIDE), "reflect"),
        seed=seed,
    )
    with simulation:
        crowd = [Person() for _ in range(people)]
        for number, person in enumerate(crowd):
            person.name = f"person-{number:02}"
            person.reach, person.risk = reach, risk
            draw = person.random.random
            person.jump_to((0.0, SIDE * draw(), SIDE * draw()))
            pace, angle = speed * draw(), 2 * pi * draw()
            person.velocity = simulation.space.velocity(pace * cos(angle), pace * sin(angle))
        for person in crowd:
            person.others = [Channel(person, other) for other in crowd if other is not person]
        crowd[0].fall_ill("chance")
    return simulation


def outcome(simulation: ForwardSimulation, _: SpacetimeOutcome) -> str:
    """Every walker is still in the room, and has been ill for as long as its own clock says."""
    crowd: list[Any] = list(simulation.agents.values())
    immune = [person for person in crowd if person.state == "immune"]
    for person in immune:
        gamma = person.velocity[0]
        assert abs(person.recovered_at - person.infected_at - gamma * ILLNESS) < 1e-6
    assert all(-1e-6 <= each <= SIDE + 1e-6 for person in crowd for each in person.position[1:])
    counts = {state: sum(person.state == state for person in crowd) for state in ("well", "ill", "immune")}
    return ", ".join(f"{count} {state}" for state, count in counts.items())
