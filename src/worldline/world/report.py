"""What a world's file says, in lines for a person: what is there, what is always loaded, what isn't supported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from worldline.model.text import printable
from worldline.model.time import format_time
from worldline.world.description import (
    DiffDrive,
    Level,
    LoadingNote,
    Performer,
    WorldDescription,
    WorldModel,
    absolute_topic,
)
from worldline.world.pose import Vector


def world_report(world: WorldDescription, found: Sequence[LoadingNote] = ()) -> list[str]:
    """Return the lines of `worldline world --check`. `found` is what an engine has to say of the world's beginning."""
    return [printable(line) for line in _lines(world, (*found, *world.notes))]


def load_remarks(world: WorldDescription, found: Sequence[LoadingNote] = ()) -> list[str]:
    """Return what to say before a run: all that changes motion, and how much else there is."""
    notes = (*found, *world.notes)
    lines = [str(note) for note in notes if not note.is_cosmetic]
    others = [note for note in notes if note.is_cosmetic]
    if others:
        number = (
            "1 thing isn't supported, but changes"
            if len(others) == 1
            else f"{len(others)} things aren't supported, but change"
        )
        lines.append(f"{number} no motion: --check lists them")
    return [printable(line) for line in lines]


def _lines(world: WorldDescription, notes: Sequence[LoadingNote]) -> Iterator[str]:
    models = list(world.models.values())
    factor = f"{world.real_time_factor:g} × real time" if world.real_time_factor else "as fast as it goes"
    yield f"world {world.name}: steps of {format_time(world.step)}, {factor}, gravity {_vector(world.gravity)}"
    links, joints = sum(len(each.links) for each in models), sum(len(each.joints) for each in models)
    static = sum(each.static for each in models)
    yield f"{_count(len(models), 'model')}, {static} of them static, {_count(links, 'link')}, {_count(joints, 'joint')}"
    for model in models:
        if moved := _moved(model):
            yield f"  {model.name}: {moved}"
        for motor in model.motors:
            topic = absolute_topic(motor.topic, model.name)
            yield f"  {model.name}: {motor.kind} of joint {motor.joint}, told by {topic}"
    yield _count(len(world.performers), "performer")
    for performer in world.performers:
        yield f"  {_performer(performer)}"
    yield _count(len(world.levels), "level")
    for level in world.levels:
        yield f"  {_level(level)}"
    yield f"always loaded: {', '.join(world.default_entities) or 'nothing'}"
    for is_cosmetic, heading in (
        (False, "not supported, or not as one might expect:"),
        (True, "not supported, but nothing moves in another way because of it:"),
    ):
        if any(note.is_cosmetic == is_cosmetic for note in notes):
            yield heading
            yield from (f"  {note}" for note in notes if note.is_cosmetic == is_cosmetic)
    if not notes:
        yield "everything in the file is supported"


def _moved(model: WorldModel) -> str:
    """Say what moves a model besides physics."""
    if model.motion is not None:
        loop = ", over and over" if model.motion.loop else ""
        return f"scripted motion, {_count(len(model.motion.waypoints), 'waypoint')}{loop}"
    if model.drive is None:
        return ""
    wheels = model.drive
    what = (
        f"differential drive on {_count(len(wheels.left_joints) + len(wheels.right_joints), 'wheel')}"
        if isinstance(wheels, DiffDrive)
        else "velocity drive"
    )
    return f"{what}, {_count(len(model.commands), 'scripted command')}"


def _performer(performer: Performer) -> str:
    return f"{performer.name}: model {performer.model}, box {_vector(performer.size)}"


def _level(level: Level) -> str:
    entities = ", ".join(level.entities) or "nothing"
    return f"{level.name}: box {_vector(level.size)} at {_vector(level.center)}, buffer {level.buffer:g}: {entities}"


def _vector(vector: Vector) -> str:
    return " ".join(f"{part:g}" for part in vector)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
