"""Small worlds that a test can read at a glance, and a way to run them without processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import iter_unpack

from worldline.model.time import MS
from worldline.world.course import Course
from worldline.world.description import (
    Collision,
    DriveCommand,
    Level,
    Performer,
    RigidLink,
    VelocityDrive,
    WorldDescription,
    WorldModel,
)
from worldline.world.engines import open_engine
from worldline.world.engines.engine import SimulatedGroup
from worldline.world.hosting import LocalExchange
from worldline.world.pose import ZERO, Pose, Vector
from worldline.world.shapes import BoxShape
from worldline.world.spectator import Spectator

STEP = 10 * MS
Story = list[tuple[int, int, bytes]]


def cube(size: float = 0.2) -> RigidLink:
    return RigidLink(name="body", collisions=(Collision(name="body", shape=BoxShape((size, size, size))),))


def runner(
    name: str, x: float, y: float = 0.0, speed: float = 0.0, commands: Mapping[int, Vector] | None = None
) -> WorldModel:
    """Return a model that goes along x, in meters per second, or as commanded at steps."""
    return WorldModel(
        name=name,
        pose=Pose((x, y, 0.0)),
        links=(cube(),),
        drive=VelocityDrive(linear=(speed, 0.0, 0.0)),
        commands=tuple(DriveCommand(time=step * STEP, linear=way) for step, way in sorted((commands or {}).items())),
    )


def thing(name: str, x: float, y: float = 0.0, *, static: bool = False) -> WorldModel:
    return WorldModel(name=name, pose=Pose((x, y, 0.0)), links=(cube(),), static=static)


def level(name: str, x: float, entities: Iterable[str] = (), *, size: float = 2.0, buffer: float = 0.5) -> Level:
    return Level(name=name, center=(x, 0.0, 0.0), size=(size, 50.0, 10.0), buffer=buffer, entities=tuple(entities))


def stage(
    models: Sequence[WorldModel], levels: Sequence[Level] = (), performers: Sequence[str] = ()
) -> WorldDescription:
    """Return a world without gravity, in steps of 10 ms; performers are points."""
    return WorldDescription(
        name="stage",
        gravity=ZERO,
        step=STEP,
        models={model.name: model for model in models},
        levels=tuple(levels),
        performers=tuple(Performer(name=name, model=name, size=(0.001, 0.001, 0.001)) for name in performers),
    )


def link_poses(group: SimulatedGroup) -> dict[str, list[Pose]]:
    """Return where all links are, by mover, in the order of its links."""
    poses = (Pose(numbers[:3], numbers[3:]) for numbers in iter_unpack("<7d", group.packed_poses()))
    return {name: [next(poses) for _ in track.model.links] for name, track in group._tracks.items()}


def model_poses(group: SimulatedGroup) -> dict[str, Pose]:
    """Return where all movers are, which follows from their canonical links."""
    found = {}
    for name, poses in link_poses(group).items():
        model = group._tracks[name].model
        (canonical,) = (number for number, link in enumerate(model.links) if link.name == model.canonical_link)
        found[name] = poses[canonical].compose(model.links[canonical].pose.inverse())
    return found


class Listener(Spectator):
    """Keeps all that it is told."""

    every = 0

    def __init__(self, every: int = 0) -> None:
        self.every = every
        self.story: Story = []
        self.changes: list[tuple[int, tuple[str, ...], dict[str, str]]] = []
        self.interactions: list[tuple[int, object]] = []
        self.poses: dict[int, dict[str, bytes]] = {}
        self.end: int | None = None

    def changed(
        self, iteration: int, step: int, models: Mapping[str, WorldModel], affinities: Mapping[str, str]
    ) -> None:
        self.changes.append((iteration, tuple(models), dict(affinities)))

    def stepped(self, iteration: int, step: int, poses: Mapping[str, bytes], state_hash: bytes) -> None:
        self.story.append((iteration, step, state_hash))
        if poses:
            self.poses[iteration] = dict(poses)

    def interacted(self, iteration: int, step: int, interaction: object) -> None:
        self.interactions.append((iteration, interaction))

    def ended(self, iteration: int, step: int) -> None:
        self.end = iteration

    @property
    def loads(self) -> dict[int, tuple[str, ...]]:
        """Return what was loaded from which iteration on, where that changed."""
        found: dict[int, tuple[str, ...]] = {}
        for iteration, models, _ in self.changes:
            if not found or models != list(found.values())[-1]:
                found[iteration] = models
        return found


def local(world: WorldDescription, names: Iterable[str] = ("a",), engine: str = "kinematic") -> LocalExchange:
    return LocalExchange(lambda: open_engine(engine, world), names)


def course_of(
    world: WorldDescription,
    names: Iterable[str] = ("a",),
    spectator: Spectator | None = None,
    *,
    run_ahead: int = 1,
    engine: str = "kinematic",
) -> Course:
    return Course(open_engine(engine, world), names, spectator, run_ahead=run_ahead)


def run(course: Course, exchange: LocalExchange, iteration: int) -> Course:
    """Go on to an iteration, as `World` does."""
    while course.iteration < iteration:
        exchange.trade(course.begin(iteration - course.iteration), course.take)
        course.settle()
    return course


def played(
    world: WorldDescription,
    iterations: int,
    names: Iterable[str] = ("a",),
    *,
    run_ahead: int = 1,
    engine: str = "kinematic",
) -> Listener:
    """Return what a spectator saw of a run."""
    listener = Listener()
    names = tuple(names)
    run(course_of(world, names, listener, run_ahead=run_ahead, engine=engine), local(world, names, engine), iterations)
    return listener
