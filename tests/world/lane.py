"""A small world for tests of runs: a lane of levels, and robots that drive along it."""

from __future__ import annotations

from collections.abc import Iterable

from worldline.model.time import MS
from worldline.world.description import (
    Collision,
    Level,
    Performer,
    RigidLink,
    ScriptedMotion,
    VelocityDrive,
    Waypoint,
    WorldDescription,
    WorldModel,
)
from worldline.world.engines import open_engine
from worldline.world.hosting import LocalExchange
from worldline.world.pose import Pose
from worldline.world.run import World
from worldline.world.shapes import BoxShape
from worldline.world.spectator import Spectator


def _box(name: str) -> RigidLink:
    return RigidLink(name=name, collisions=(Collision(name=name, shape=BoxShape((0.4, 0.4, 0.4))),))


def _driven(name: str, x: float, speed: float) -> WorldModel:
    drive = VelocityDrive(linear=(speed, 0.0, 0.0))
    return WorldModel(name=name, pose=Pose((x, 0.0, 1.0)), links=(_box("body"),), drive=drive)


def lane(speed: float = 20.0) -> WorldDescription:
    """Three levels of 2 m, one after the other, each with a thing that moves and one that doesn't; steps of 2 ms.

    The robots get from one level to the next in 50 steps.
    """
    models = [_driven("robot_1", 0.0, speed), _driven("robot_2", 2.0, -speed)]
    levels = []
    for number in range(3):
        x = 2.0 * number
        models.append(_driven(f"mover_{number}", x, 0.5))
        models.append(
            WorldModel(name=f"pillar_{number}", static=True, pose=Pose((x, 5.0, 1.0)), links=(_box("pillar"),))
        )
        entities = (f"mover_{number}", f"pillar_{number}")
        levels.append(Level(name=f"level_{number}", center=(x, 0, 1), size=(2, 4, 4), buffer=0.1, entities=entities))
    models.append(WorldModel(name="crate", pose=Pose((0.0, 7.0, 1.0)), links=(_box("crate"),)))
    ways = (Waypoint(time=0, pose=Pose((0.0, 9.0, 1.0))), Waypoint(time=100 * MS, pose=Pose((1.0, 9.0, 1.0))))
    models.append(WorldModel(name="tram", links=(_box("car"),), motion=ScriptedMotion(waypoints=ways)))
    return WorldDescription(
        name="lane",
        step=2 * MS,
        models={model.name: model for model in models},
        levels=tuple(levels),
        performers=tuple(Performer(name=name, model=name, size=(0.4, 0.4, 0.4)) for name in ("robot_1", "robot_2")),
    )


def open_lane(
    spectators: Iterable[Spectator] = (),
    *,
    secondaries: int = 1,
    run_ahead: int = 1,
    world: WorldDescription | None = None,
) -> World:
    described = lane() if world is None else world
    exchange = LocalExchange(
        lambda: open_engine("kinematic", described), [f"secondary_{number}" for number in range(secondaries)]
    )
    return World(described, engine="kinematic", exchange=exchange, spectators=spectators, run_ahead=run_ahead)
