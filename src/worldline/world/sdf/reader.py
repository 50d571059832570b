"""Reads a world from an SDF file.

Whatever is wrong is a `WorldFileError` with file and line. Whatever is right and not supported becomes a note of the
description, with its line: see `element` for how that is made sure of.
"""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass, field, replace
from pathlib import Path

from worldline.model.errors import shown
from worldline.model.time import MS, format_time
from worldline.world.description import Level, LoadingNote, Performer, WorldDescription
from worldline.world.pose import UPRIGHT
from worldline.world.sdf.element import WORLD_FRAME, FrameScope, SdfElement, local_pose
from worldline.world.sdf.library import SdfLibrary, resource_paths
from worldline.world.sdf.models import add_frames, outline, read_box, read_model
from worldline.world.sdf.plugins import note_plugin, plugin_name

_GRAVITY = (0.0, 0.0, -9.8)  # As SDF says.


def read_world(path: str | Path) -> WorldDescription:
    """Read a world from an SDF file, and check it. Models that it includes are also looked for as Gazebo does."""
    library = SdfLibrary(Path(path), resource_paths(os.environ))
    root = library.open(Path(path))
    with root.blamed():
        world = _read(root, library)
    notes = [*world.notes, *(note for each in library.roots for note in each.unread())]
    own = [replace(note, file="") if note.file == root.owner else note for note in notes]
    return replace(world, notes=tuple(own))


def _read(root: SdfElement, library: SdfLibrary) -> WorldDescription:
    notes: list[LoadingNote] = []
    _check_version(root, notes)
    worlds = root.children("world")
    if not worlds:
        raise root.error("there is no <world> in this file")
    if len(worlds) > 1:
        raise worlds[1].error("there is a second <world>, and only one can be simulated")
    world = worlds[0]
    name = world.name()
    frames = FrameScope(world, WORLD_FRAME)
    outlines = [outline(each, library) for each in library.models_in(world)]
    for each in outlines:
        frames.add(each.element, nested=each.frames)
    add_frames(world, frames)
    frames.check()
    models = {}
    for each in outlines:
        with each.element.blamed():
            model = read_model(each, frames.pose_of(each.element.name(), each.element), notes)
        models[model.name] = model
    unsimulated = {each.attributes.get("name", "") for each in world.content if each.tag in ("actor", "light")}
    stage = read_stage(_level_plugins(world, notes), unsimulated - models.keys(), notes)
    step, factor = _physics(world, notes)
    gravity = world.child("gravity")
    with world.blamed(stage.about):
        return WorldDescription(
            name=name,
            gravity=_GRAVITY if gravity is None else gravity.vector(),
            step=step,
            real_time_factor=factor,
            models=models,
            levels=tuple(stage.levels),
            performers=tuple(stage.performers),
            notes=tuple(notes),
        )


def _check_version(root: SdfElement, notes: list[LoadingNote]) -> None:
    version = (root.attribute("version") or "").strip()
    if version in ("1.0", "1.2", "1.3", "1.4"):
        text = f"this is SDF {version}; the axes of its joints are read as in 1.5 and later, in the joints' own frames"
        notes.append(LoadingNote(root.line, text, root.owner))


def _level_plugins(world: SdfElement, notes: list[LoadingNote]) -> list[SdfElement]:
    """Return the plugins that have levels, and note the others."""
    found = []
    for plugin in world.children("plugin"):
        name = plugin_name(plugin)
        if name == LEVELS_PLUGIN:
            found.append(plugin)
        else:
            note_plugin(plugin, name, notes)
    return found


def _physics(world: SdfElement, notes: list[LoadingNote]) -> tuple[int, float]:
    """Return the step in nanoseconds and the real-time factor. Of several <physics>, the default one or the first."""
    profiles = world.children("physics")
    if not profiles:
        return MS, 1.0
    chosen = next(
        (each for each in profiles if (each.attribute("default") or "").strip() in ("true", "1")), profiles[0]
    )
    for each in profiles:
        each.attribute("default")
        if each is not chosen:
            each.discard()
            notes.append(LoadingNote(each.line, "this <physics> isn't the one that is used", each.owner))
    chosen.attribute("name")
    chosen.attribute("type")
    step, factor = chosen.child("max_step_size"), chosen.child("real_time_factor")
    nanoseconds = MS
    if step is not None:
        nanoseconds = step.nanoseconds()
        if nanoseconds == 0:
            raise step.error(f"a step of {shown(step.word())} s is too small", "the least is a nanosecond")
        if not step.is_whole_nanoseconds():
            text = f"a step of {shown(step.word())} s is rounded to {format_time(nanoseconds)}"
            notes.append(LoadingNote(step.line, text, step.owner))
    if factor is not None and factor.number() < 0:
        raise factor.error(f"a real-time factor must be at least 0, not {shown(factor.word())}")
    return nanoseconds, 1.0 if factor is None else factor.number()


# Reads levels and performers: Gazebo's plugin `gz::sim` of a world.

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
