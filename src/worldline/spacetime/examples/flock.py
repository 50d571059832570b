"""A flock that expands: birds fly apart, and each takes on the course of those that it hears.

The world has two dimensions of space. Birds set out near each other, each on a course of its own, and away from the
middle. Whenever a bird beats its wings, by its own clock, it tells those that were nearest at the start how it flies.
Who hears that takes on a little of that course. What a bird hears is old: the farther apart they are, the later it
comes. So the flock agrees first where it is dense, and what it agrees on lies between the courses at the start.

Birds meet, so that the field has a c: even one that is right beside hears nothing before √c of its own time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, dist, pi, sin
from typing import Any

from worldline.spacetime import Agent, Channel, ForwardSimulation, LambdaField, Minkowski, SpacetimeOutcome, Vector
from worldline.spacetime.loading import at_least

UNTIL = 60.0

REACTION = 0.1  # √c: how long it takes to hear a bird right beside.
TURNS = 0.05  # So much of another's course a bird takes on at once.
AGREES = 0.05  # Within this of a speed, two birds fly at the same speed.


class Bird(Agent):
    """Flies as its neighbors do."""

    neighbors: list[Channel]
    beat: float
    courses: dict[str, tuple[float, float]]
    first_course: tuple[float, float]
    is_agreed = False

    def set_out(self, place: tuple[float, float], course: tuple[float, float], beat: float) -> None:
        self.neighbors = []
        self.courses = {}
        self.beat = beat
        self.first_course = course
        self.jump_to((0.0, *place))
        self.velocity = self.space.velocity(*course)
        self.after(beat * (0.5 + self.random.random()), Bird.flap)

    def flap(self) -> None:
        for channel in self.neighbors:
            channel.send(Bird.hear, self.name, course_of(self.velocity))
        self.after(self.beat, Bird.flap)

    def hear(self, name: str, course: tuple[float, float]) -> None:
        """Turn by a part of the difference."""
        self.courses[name] = course
        mine = course_of(self.velocity)
        self.velocity = self.space.velocity(*(own + TURNS * (its - own) for own, its in zip(mine, course, strict=True)))
        self._look()

    def _look(self) -> None:
        """Say when it flies as all those do that it has heard."""
        mine = course_of(self.velocity)
        if not self.is_agreed and all(dist(mine, course) < AGREES for course in self.courses.values()):
            self.is_agreed = True
            self.log(f"flies like those that it hears, {len(self.courses)} of them")


def course_of(velocity: Vector) -> tuple[float, float]:
    """Return the ordinary velocity of a 4-velocity."""
    return velocity[1] / velocity[0], velocity[2] / velocity[0]


def model(
    *,
    seed: int = 0,
    birds: int = 20,
    neighbors: int = 4,
    beat: float = 1.0,
) -> ForwardSimulation:
    """Let so many birds set out on a disc; each listens to so many that are nearest, and is heard by them."""
    at_least(2, birds=birds)
    at_least(1, neighbors=neighbors)
    field = LambdaField(c=REACTION**2)
    simulation = ForwardSimulation(Minkowski(3), field, seed=seed)
    with simulation:
        flock = [Bird() for _ in range(birds)]
        places = []
        for number, bird in enumerate(flock):
            bird.name = f"bird-{number:02}"
            draw = bird.random.random
            out, angle, aside = draw() ** 0.5, 2 * pi * draw(), 2 * pi * draw()
            places.append((3 * out * cos(angle), 3 * out * sin(angle)))
            course = 0.2 + 0.3 * out * cos(angle) + 0.1 * cos(aside), 0.3 * out * sin(angle) + 0.1 * sin(aside)
            bird.set_out(places[-1], course, beat)
        for number, bird in enumerate(flock):
            others = sorted(range(birds), key=lambda other: (dist(places[number], places[other]), other))
            bird.neighbors = [Channel(bird, flock[other]) for other in others[1 : neighbors + 1]]
    return simulation


def outcome(simulation: ForwardSimulation, _: SpacetimeOutcome) -> str:
    """No bird has a course that isn't between those at the start."""
    flock: list[Any] = list(simulation.agents.values())
    first = [bird.first_course for bird in flock]
    last = [course_of(bird.velocity) for bird in flock]
    for before, after in zip(zip(*first, strict=True), zip(*last, strict=True), strict=True):
        assert min(before) - 1e-9 <= min(after) <= max(after) <= max(before) + 1e-9
    width = _spread([bird.position[1:] for bird in flock])
    return f"courses differ by {_spread(last):.3f}, and did by {_spread(first):.3f}; the flock is {width:.1f} wide"


def _spread(points: Sequence[tuple[float, ...]]) -> float:
    """Return how far points are from their middle, on average."""
    middle = [sum(axis) / len(points) for axis in zip(*points, strict=True)]
    return sum(dist(point, middle) for point in points) / len(points)
