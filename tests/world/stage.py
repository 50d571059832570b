"""A small world with all kinds of shapes, and a made-up run of it that spectators are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import cos, sin
from struct import pack

from worldline.model.time import MS
from worldline.world.description import (
    Collision,
    Level,
    Performer,
    RigidLink,
    Visual,
    WorldDescription,
    WorldModel,
)
from worldline.world.pose import Pose, Vector
from worldline.world.shapes import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    EllipsoidShape,
    PlaneShape,
    Shape,
    SphereShape,
)
from worldline.world.spectator import Spectator

HASH = bytes(range(16))


def shaped(name: str, shape: Shape, at: Vector, *, static: bool = False) -> WorldModel:
    link = RigidLink(name="body", collisions=(Collision(name="c", shape=shape),))
    return WorldModel(name=name, pose=Pose(at), static=static, links=(link,))


def vehicle(name: str, at: Vector) -> WorldModel:
    """Its frame isn't that of a link."""
    body = Visual(name="v", shape=BoxShape((1.0, 0.5, 0.3)), color=(1.0, 0.0, 0.0, 1.0))
    links = (
        RigidLink(name="arm", pose=Pose((0.4, 0.0, 0.5)), collisions=(Collision(name="c", shape=SphereShape(0.1)),)),
        RigidLink(name="chassis", pose=Pose((0.0, 0.0, 0.2)), visuals=(body,)),
    )
    return WorldModel(name=name, pose=Pose(at), links=links, canonical_link="chassis")


def stage(vehicles: Iterable[str] = ("left", "right"), levels: Iterable[str] = ("west", "east")) -> WorldDescription:
    """Two levels along x, with a box in each; vehicles start in the first."""
    west, east = levels
    models = [
        shaped("ground", PlaneShape(), (0.0, 0.0, 0.0), static=True),
        shaped("wall", BoxShape((0.2, 4.0, 1.0)), (-6.0, 0.0, 0.5), static=True),
        shaped("pillar", CylinderShape(0.4, 2.0), (0.0, 5.0, 1.0), static=True),
        shaped("west_box", BoxShape((0.5, 0.5, 0.5)), (-3.0, 3.0, 0.25)),
        shaped("east_box", CapsuleShape(0.2, 0.5), (6.0, 3.0, 0.25)),
        shaped("east_egg", EllipsoidShape((0.3, 0.2, 0.1)), (7.0, -3.0, 0.2), static=True),
        *(vehicle(name, (-3.0, -2.0 * place, 0.0)) for place, name in enumerate(vehicles)),
    ]
    return WorldDescription(
        name="stage",
        step=10 * MS,
        models={model.name: model for model in models},
        levels=(
            Level(name=west, center=(-2.5, 0.0, 2.0), size=(6.0, 10.0, 4.0), buffer=0.5, entities=("west_box",)),
            Level(
                name=east, center=(6.5, 0.0, 2.0), size=(6.0, 10.0, 4.0), buffer=0.5, entities=("east_box", "east_egg")
            ),
        ),
        performers=tuple(Performer(name=f"{name} one", model=name, size=(1.0, 1.0, 1.0)) for name in vehicles),
    )


def packed(model: WorldModel, pose: Pose) -> bytes:
    """Return where the links of a model at a pose are: 7 little-endian doubles for each."""
    poses = [pose.compose(link.pose) for link in model.links]
    return b"".join(pack("<7d", *each.position, *each.quaternion) for each in poses)


def loaded(world: WorldDescription, *but: str) -> dict[str, WorldModel]:
    return {name: model for name, model in world.models.items() if name not in but}


def affinities(models: Mapping[str, WorldModel], secondary: str = "s0") -> dict[str, str]:
    return {name: secondary for name, model in models.items() if not model.static}


def poses_at(models: Mapping[str, WorldModel], share: float) -> dict[str, bytes]:
    """Vehicles drive in a bow to the east; everything else stays."""
    found = {}
    for name, model in models.items():
        if model.static:
            continue
        x, y, z = model.pose.position
        if len(model.links) > 1:
            pose = Pose.from_rpy((x + 10.0 * share, y + sin(3.0 * share), z), 0.0, 0.0, cos(3.0 * share) * 0.3)
        else:
            pose = model.pose
        found[name] = packed(model, pose)
    return found


def perform(spectator: Spectator, world: WorldDescription, iterations: int = 100) -> None:
    """Tell a run in which the eastern level takes over half-way, and with it another secondary."""
    spectator.began(world)
    east, west = loaded(world, "west_box"), loaded(world, "east_box", "east_egg")
    half = iterations // 2
    for iteration in range(iterations + 1):
        models = west if iteration < half else east
        if iteration in (0, half):
            spectator.changed(iteration, iteration, models, affinities(models, "s0" if iteration < half else "s1"))
        wanted = spectator.every and iteration % spectator.every == 0
        spectator.stepped(iteration, iteration, poses_at(models, iteration / iterations) if wanted else {}, HASH)
    spectator.ended(iterations, iterations)
