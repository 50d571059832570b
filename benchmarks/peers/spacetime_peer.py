"""Our agents in the scenarios of their benchmark."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Any

from worldline.kernel import inline, processes
from worldline.processes.executor import Executor
from worldline.spacetime import Agent, Channel, ForwardSimulation, LambdaField, Minkowski, Trajectory, Vector, build

if __package__:
    from . import apart
else:
    import apart

SEED = 1
WORK_S = 50e-6

Facts = dict[str, Any]


class Place(Agent):
    """Hands on what it gets to the next one."""

    onward: Channel

    def __init__(self) -> None:
        self.seen = 0

    def hop(self) -> None:
        self.seen += 1
        self.onward.send(HOP)


HOP = Place.hop  # Looked up once, as the SimPy version does it.


def ring(size: int, hops: int, blind: int, tokens: int) -> Facts:
    """Tokens go round a ring of agents at rest, in three dimensions of space, a unit apart."""
    space = Minkowski(4)
    simulation = ForwardSimulation(space, LambdaField(c=1e-4))
    with simulation:
        places = [Place() for _ in range(size)]
        radius = 0.5 / math.sin(math.pi / size)
        for number, place in enumerate(places):
            angle = 2 * math.pi * number / size
            place.jump_to((0.0, radius * math.cos(angle), radius * math.sin(angle), 0.0))
        for number, place in enumerate(places):
            place.onward = Channel(place, places[(number + 1) % size], blind=bool(blind))
        for number in range(tokens):
            places[number * size // tokens].hop()
    return _timed(simulation, hops + 0.5)


class Bird(Agent):
    """Moves on in another direction whenever it hears from a neighbor, and tells one of its own neighbors."""

    neighbors: list[Channel]
    work_s = 0.0

    def __init__(self) -> None:
        self.neighbors = []
        self.turns = 0

    def hear(self, heading: float) -> None:
        if self.work_s:
            until = time.perf_counter() + self.work_s
            while time.perf_counter() < until:
                pass
        self.turns += 1
        draws = self.random
        if self.turns % 10 == 0:
            self.velocity = self.space.velocity(0.01 * heading, 0.01 * draws.random(), 0.01 * draws.random())
        self.neighbors[self.turns % len(self.neighbors)].send(HEAR, draws.random() - 0.5)


HEAR = Bird.hear


class BusyBird(Bird):
    """One that has something to think about."""

    work_s = WORK_S


def flock(size: int, neighbors: int, until: int, work: int, workers: int) -> Facts:
    """A flock in three dimensions of space; everybody has channels to its nearest neighbors."""
    executor: Executor = inline() if workers == 0 else processes(workers)
    space = Minkowski(4)
    simulation = ForwardSimulation(space, LambdaField(c=0.25), executor=executor, seed=SEED)
    draws = random.Random(SEED)
    side = size ** (1 / 3)
    places = [(draws.uniform(0, side), draws.uniform(0, side), draws.uniform(0, side)) for _ in range(size)]
    with simulation:
        birds = [BusyBird() if work else Bird() for _ in range(size)]
        for bird, place in zip(birds, places, strict=True):
            bird.jump_to((0.0, *place))
        for number, near in enumerate(_nearest(places, neighbors, side)):
            birds[number].neighbors = [Channel(birds[number], birds[other]) for other in near]
        for bird in birds:
            bird.hear(0.0)
    return _timed(simulation, float(until), by_wall=workers > 0 or bool(work))


def _nearest(places: list[tuple[float, ...]], count: int, side: float) -> list[list[int]]:
    """Return the nearest of each, found cell by cell."""
    cells: dict[tuple[int, ...], list[int]] = {}
    for number, place in enumerate(places):
        cells.setdefault(tuple(int(each / 2) for each in place), []).append(number)
    found = []
    for number, place in enumerate(places):
        x, y, z = (int(each / 2) for each in place)
        reach = 1
        near: list[int] = []
        while len(near) <= count and reach < side:
            span = range(-reach, reach + 1)
            near = [one for i in span for j in span for k in span for one in cells.get((x + i, y + j, z + k), ())]
            reach += 1
        near.sort(key=lambda other: (math.dist(place, places[other]), other))
        found.append([other for other in near if other != number][:count])
    return found


def meeting(times: int, *_: int) -> Facts:
    """How long it takes to find out where a trajectory meets a field, as the core asks for it, by Python's clock."""
    trajectory = Trajectory(Vector([0.0, 0.0, 0.0, 0.0]), Minkowski(4).velocity(0.1, 0.2, 0.3))
    emitted, field = Vector([5.0, 1.0, 2.0, 3.0]), LambdaField((1.0, 0.0, 0.0, 0.0), 0.5).of(4)
    meets = trajectory.meets
    repeats = range(times)

    def all_of_them() -> None:
        for _ in repeats:
            meets(emitted, field)

    seconds = apart.timed(all_of_them)
    return {"rate": times / seconds, "microseconds": 1e6 * seconds / times}


def _timed(simulation: ForwardSimulation, until: float, *, by_wall: bool = False) -> Facts:
    began = time.perf_counter()
    found = []
    seconds = apart.timed(lambda: found.append(simulation.run(until=until)))
    if by_wall:
        seconds = time.perf_counter() - began
    (result,) = found
    return {"events": result.events, "rate": result.events / seconds, "digest": result.digest.hex()}


SCENARIOS: dict[str, Callable[..., Facts]] = {"ring": ring, "flock": flock, "meeting": meeting}


if __name__ == "__main__":
    apart.answer(SCENARIOS, __doc__, {"build": build})
