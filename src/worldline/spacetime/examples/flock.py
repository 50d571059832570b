"""A flock that expands: birds fly apart, and each takes on the course of those that it hears.

The world has two dimensions of space. Birds set out near each other, each on a course of its own, and away from the
middle. Whenever a bird beats its wings, by its own clock, it tells those that were nearest at the start where it is and
how it flies. Who hears that turns a little towards it, and away from it if it is near. What a bird hears is old: the
farther apart they are, the later it comes. So the flock agrees first where it is dense.

Birds meet, so that the field has a c: even one that is right beside hears nothing before √c of its own time.
"""

from __future__ import annotations

from math import cos, dist, hypot, pi, sin
from typing import Any

from worldline.spacetime import Agent, Channel, ForwardSimulation, LambdaField, Minkowski, Result, Vector
from worldline.spacetime.examples.limits import at_least

UNTIL = 60.0

REACTION = 0.1  # √c: how long it takes to hear somebody right beside.
NEAR = 0.5  # Who is nearer than that is too near.
AGREES = 0.05  # Within this of a speed, two birds fly alike.


class Bird(Agent):
    """Flies as its neighbours do, and not into them."""

    neighbours: list[Channel]
    beat: float
    courses: dict[str, tuple[float, float]]
    first_course: tuple[float, float]
    is_agreed = False

    def set_out(self, place: tuple[float, float], course: tuple[float, float], beat: float) -> None:
        self.neighbours = []
        self.courses = {}
        self.beat = beat
        self.first_course = course
        self.jump_to((0.0, *place))
        self.velocity = self.space.velocity(*course)
        self.after(beat * (0.5 + self.random.random()), Bird.flap)

    def flap(self) -> None:
        for channel in self.neighbours:
            channel.send(Bird.hear, self.name, self.position, course_of(self.velocity))
        self.after(self.beat, Bird.flap)

    def hear(self, name: str, there: Vector, course: tuple[float, float]) -> None:
        """Turn by a part of the difference; and away, if the other was near."""
        self.courses[name] = course
        mine = course_of(self.velocity)
        away = [here - other for here, other in zip(self.position[1:], there[1:], strict=True)]
        distance = hypot(*away)
        push = 0.02 / distance if 0.0 < distance < NEAR else 0.0
        turned = [own + 0.03 * (its - own) + push * aside for own, its, aside in zip(mine, course, away, strict=True)]
        too_fast = max(1.0, hypot(*turned) / 0.9)
        self.velocity = self.space.velocity(*(each / too_fast for each in turned))
        self._look()

    def _look(self) -> None:
        """Say when it flies as all of its neighbours do, and when it no longer does."""
        mine = course_of(self.velocity)
        agreed = len(self.courses) == len(self.neighbours) and all(
            dist(mine, course) < AGREES for course in self.courses.values()
        )
        if agreed != self.is_agreed:
            self.is_agreed = agreed
            self.log("flies as its neighbours do" if agreed else "has lost its neighbours' course")


def course_of(velocity: Vector) -> tuple[float, float]:
    """Return the ordinary velocity of a 4-velocity."""
    return velocity[1] / velocity[0], velocity[2] / velocity[0]


def build(
    *,
    executor: Any = "inline",
    seed: int = 0,
    trace: bool = False,
    birds: int = 20,
    neighbours: int = 4,
    beat: float = 1.0,
) -> ForwardSimulation:
    """Let so many birds set out on a disc; each listens to so many that are nearest, and is heard by them."""
    at_least(2, birds=birds)
    at_least(1, neighbours=neighbours)
    field = LambdaField(c=REACTION**2)
    simulation = ForwardSimulation(Minkowski(3), field, executor=executor, seed=seed, trace=trace)
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
            bird.neighbours = [Channel(bird, flock[other]) for other in others[1 : neighbours + 1]]
    return simulation


def outcome(simulation: ForwardSimulation, result: Result) -> str:
    """The flock has grown, and its courses differ less than they did."""
    flock: list[Any] = list(simulation.agents.values())
    before = _spread([bird.first_course for bird in flock])
    after = _spread([course_of(bird.velocity) for bird in flock])
    radius = _spread([bird.position[1:] for bird in flock])
    if result.until >= UNTIL:
        assert radius > 3.0
        assert after < before
    return f"courses differ by {after:.3f}, and did by {before:.3f}; the flock is {radius:.1f} wide"


def _spread(points: list[tuple[float, float]]) -> float:
    """Return how far points are from their middle, on average."""
    middle = [sum(axis) / len(points) for axis in zip(*points, strict=True)]
    return sum(dist(point, middle) for point in points) / len(points)
