"""Reads levels and performers: Gazebo's plugin `gz::sim` of a world."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from worldline.model.errors import shown
from worldline.world.description import Level, LoadingNote, Performer
from worldline.world.pose import UPRIGHT
from worldline.world.sdf.element import SdfElement
from worldline.world.sdf.frames import local_pose
from worldline.world.sdf.models import read_box

LEVELS_PLUGIN = "gz::sim"


@dataclass(slots=True)
class LevelSet:
    """The levels and performers of a world, and the elements they were read from."""

    levels: list[Level] = field(default_factory=list)
    performers: list[Performer] = field(default_factory=list)
    about: dict[tuple[str, int], SdfElement] = field(default_factory=dict)


def read_stage(plugins: list[SdfElement], unsimulated: Container[str], notes: list[LoadingNote]) -> LevelSet:
    """Read all levels and performers. `unsimulated` are names of what the world has and nobody simulates: lights."""
    stage = LevelSet()
    for plugin in plugins:
        for element in plugin.children("performer"):
            stage.about["performer", len(stage.performers)] = element
            stage.performers.append(_performer(element))
        for element in plugin.children("level"):
            stage.about["level", len(stage.levels)] = element
            stage.levels.append(_level(element, unsimulated, notes))
    return stage


def _performer(element: SdfElement) -> Performer:
    name = element.name()
    with element.blamed():
        return Performer(
            name=name,
            model=element.needed("ref", f"performer {shown(name)}").word(),
            size=read_box(element, f"performer {shown(name)}").size,
        )


def _level(element: SdfElement, unsimulated: Container[str], notes: list[LoadingNote]) -> Level:
    name = element.name()
    pose, buffer = element.child("pose"), element.child("buffer")
    placed = local_pose(pose)
    if pose is not None and placed.quaternion != UPRIGHT:
        notes.append(
            LoadingNote(
                pose.line, f"level {shown(name)} is turned; its box lies along the axes all the same", pose.owner
            )
        )
    entities = []
    for ref in element.children("ref"):
        if ref.word() in unsimulated:
            problem = f"level {shown(name)} names {shown(ref.word())}, which isn't simulated"
            notes.append(LoadingNote(ref.line, problem, ref.owner))
        else:
            entities.append(ref.word())
    with element.blamed():
        return Level(
            name=name,
            center=placed.position,
            size=read_box(element, f"level {shown(name)}").size,
            buffer=0.0 if buffer is None else buffer.number(),
            entities=tuple(entities),
        )
