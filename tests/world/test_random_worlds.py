"""Random worlds in which somebody interferes: one history, one course and one end, however it is distributed."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import pytest

from tests.world.crowd import ground, pendulum, robot, solid, thing, wall
from tests.world.small_worlds import Listener, Story, local
from worldline.model.errors import UsageError, WorldlineError
from worldline.model.time import MS
from worldline.world.description import (
    Level,
    Performer,
    ScriptedMotion,
    VelocityDrive,
    Waypoint,
    WorldDescription,
    WorldModel,
)
from worldline.world.interactions import (
    AnyInteraction,
    InsertPerformer,
    RemovePerformer,
    Reset,
    SetCommand,
    SetPose,
)
from worldline.world.pose import UPRIGHT, Pose, Vector
from worldline.world.run import World
from worldline.world.shapes import BoxShape, CylinderShape, SphereShape

WAYS: tuple[tuple[tuple[str, ...], int, int], ...] = (
    (("q", "b", "c"), 1, 0),
    (("a", "b"), 7, 3),
    (("s",), 10, 0),
    (("a", "b", "zz"), 25, 1),
)
"""Names of secondaries, how far they run ahead, and how often somebody wants to see poses."""


def random_world(random: Random) -> WorldDescription:
    """Robots, a hoverer, a scripted pusher, things to push, walls and a pendulum, in levels that overlap."""

    def place(z: float) -> Vector:
        return random.uniform(-3, 3), random.uniform(-3, 3), z

    def pace() -> float:
        return random.uniform(-3, 3)

    models = [ground()]
    performing = []
    for number in range(random.randint(2, 4)):
        models.append(robot(f"r{number}", pace(), pace(), pace(), pace(), turning=random.uniform(-1, 1)))
        performing.append(f"r{number}")
    if random.random() < 0.6:
        drive = VelocityDrive(linear=(random.uniform(0, 3), 0.0, 0.0), angular=(0.0, 0.0, random.uniform(-2, 2)))
        box = solid("body", BoxShape((0.4, 0.4, 0.4)), 3.0)
        models.append(WorldModel(name="hoverer", pose=Pose(place(0.5)), links=(box,), drive=drive))
        performing.append("hoverer")
    entities = []
    for number in range(random.randint(2, 5)):
        shape = random.choice([BoxShape((0.3, 0.3, 0.3)), SphereShape(0.15), CylinderShape(0.15, 0.3)])
        entities.append(thing(f"t{number}", shape, place(0.16), 10 ** random.uniform(-1, 1), random.uniform(0, 3)))
    entities += [
        wall(f"w{number}", place(0.5), (0.2, random.uniform(0.5, 2), 1.0)) for number in range(random.randint(0, 3))
    ]
    if random.random() < 0.5:
        entities.append(pendulum("pendulum", pace(), pace()))
    if random.random() < 0.6:
        here, there = place(0.3), place(0.3)
        ways = [Waypoint(time=at * MS, pose=Pose(each)) for at, each in ((0, here), (400, there), (800, here))]
        motion = ScriptedMotion(waypoints=tuple(ways), loop=True)
        box = solid("body", BoxShape((0.4, 1.0, 0.4)))
        entities.append(WorldModel(name="pusher", pose=Pose(here), links=(box,), motion=motion))
    levels = [
        Level(
            name=f"L{number}",
            center=place(0.0),
            size=(random.uniform(0.5, 3), random.uniform(0.5, 3), 4.0),
            buffer=random.choice([0.0, 0.1, 0.5]),
            entities=tuple(each.name for each in entities if random.random() < 0.35),
        )
        for number in range(random.randint(1, 5))
    ]
    return WorldDescription(
        name="random",
        step=random.choice([1, 2, 5]) * MS,
        models={model.name: model for model in (*models, *entities)},
        levels=tuple(levels),
        performers=tuple(Performer(name=name, model=name, size=(0.4, 0.4, 0.4)) for name in performing),
    )


Script = list[tuple[int, AnyInteraction]]


def random_script(random: Random, world: WorldDescription, iterations: int) -> Script:
    """Interactions with their iterations; some can't be done."""
    names = [*world.models, "x", "y", "z"]

    def place() -> Vector:
        return random.uniform(-3, 3), random.uniform(-3, 3), random.uniform(0.2, 0.6)

    def interaction() -> AnyInteraction:
        match random.choices(["command", "pose", "insert", "remove", "reset"], [25, 25, 22, 20, 8])[0]:
            case "command":
                ways = (random.uniform(-4, 4), 0.0, 0.0), (0.0, 0.0, random.uniform(-2, 2))
                return SetCommand(random.choice(names), *ways)
            case "pose":
                return SetPose(random.choice(names), place(), UPRIGHT)
            case "insert":
                like = random.choice(list(world.models))
                return InsertPerformer(random.choice("xyz"), like, place(), UPRIGHT, (0.3, 0.3, 0.3))
            case "remove":
                return RemovePerformer(random.choice(names))
            case _:
                return Reset()

    times = sorted(random.randint(0, iterations) for _ in range(random.randint(3, 12)))
    return [(time, interaction()) for time in times for _ in range(random.choice([1, 1, 2, 3]))]


class RunSeen(NamedTuple):
    """All that is to be seen of a run, and what became of it."""

    story: Story
    answers: list[object]
    loads: dict[int, tuple[str, ...]]
    end: str


def run_seen(
    world: WorldDescription,
    script: Script,
    iterations: int,
    engine: str,
    names: tuple[str, ...] = ("a",),
    run_ahead: int = 1,
    every: int = 0,
) -> RunSeen:
    listener = Listener(every)
    running = World(
        world, engine=engine, exchange=local(world, names, engine), spectators=[listener], run_ahead=run_ahead
    )
    answers: list[object] = []
    end = "fine"
    try:
        for iteration, interaction in script:
            running.advance_to(iteration)
            try:
                running.interact(interaction)
            except UsageError as error:
                answers.append(str(error))
            answers.append((running.positions, running.loaded, running.active_levels, running.performers))
        running.advance_to(iterations)
    except WorldlineError as error:
        end = f"{type(error).__name__}: {error}"
    return RunSeen(listener.story, answers, listener.loads, end)


def check(seed: int, engine: str) -> None:
    random = Random(seed)
    world = random_world(random)
    iterations = random.randint(60, 160)
    script = random_script(random, world, iterations)
    alone = run_seen(world, script, iterations, engine)
    for names, run_ahead, every in WAYS:
        assert run_seen(world, script, iterations, engine, names, run_ahead, every) == alone, (seed, names, run_ahead)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["kinematic", "mujoco"])
@pytest.mark.parametrize("seed", range(3))
def test_some_random_worlds_have_one_history(seed: int, engine: str) -> None:
    check(seed, engine)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 1300, 20))
def test_many_random_worlds_have_one_history(first: int) -> None:
    for seed in range(first, first + 20):
        check(seed, "mujoco")
        check(seed, "kinematic")
