"""Reads a world from an SDF file.

What is wrong is a `WorldFileError` with file and line. What is right and not supported becomes a note of the
description, with its line: see `element` for how that is made sure of.
"""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import replace
from pathlib import Path

from worldline.model.errors import shown
from worldline.model.time import MS, format_time
from worldline.world.description import Level, Performer, WorldDescription
from worldline.world.pose import UPRIGHT
from worldline.world.sdf.element import WORLD_FRAME, FrameScope, SdfElement, local_pose
from worldline.world.sdf.library import SdfLibrary, resource_paths
from worldline.world.sdf.models import outline, read_box, read_model
from worldline.world.sdf.plugins import note_plugin, plugin_name

_GRAVITY = (0.0, 0.0, -9.8)  # As SDF says.


def read_world(path: str | Path) -> WorldDescription:
    """Read a world from an SDF file, and check it. Models that it includes are also looked for as Gazebo does."""
    library = SdfLibrary(Path(path), resource_paths(os.environ))
    root = library.open(Path(path))
    with root.blamed():
        world = _read(root, library)
    notes = [*library.notes, *(note for each in library.roots for note in each.unread())]
    own = [replace(note, file="") if note.file == root.owner else note for note in notes]
    return replace(world, notes=tuple(own))


def _read(root: SdfElement, library: SdfLibrary) -> WorldDescription:
    version = root.attribute("version")
    if version in ("1.0", "1.2", "1.3", "1.4"):
        root.note(
            f"this is SDF {version}; the axes of its joints are read as in 1.5 and later, in the joints' own frames"
        )
    worlds = root.children("world")
    if not worlds:
        raise root.error("there is no <world> in this file")
    if len(worlds) > 1:
        raise worlds[1].error("there is a second <world>, and only one can be simulated")
    world = worlds[0]
    name = world.name()
    frames = FrameScope(world, WORLD_FRAME, [outline(each, library) for each in library.models_in(world)])
    frames.add_nested()
    frames.add_frames()
    frames.check()
    models = {}
    for each in frames.nested:
        with each.owner.blamed():
            model = read_model(each, frames.pose_of(each.owner.name(), each.owner))
        models[model.name] = model
    unsimulated = {each.attributes.get("name", "") for each in world.content if each.tag in ("actor", "light")}
    about: dict[tuple[str, int], SdfElement] = {}
    levels: list[Level] = []
    performers: list[Performer] = []
    for plugin in world.children("plugin"):
        if plugin_name(plugin) != LEVELS_PLUGIN:
            note_plugin(plugin)
            continue
        for element in plugin.children("performer"):
            about["performer", len(performers)] = element
            performers.append(_performer(element))
        for element in plugin.children("level"):
            about["level", len(levels)] = element
            levels.append(_level(element, unsimulated - models.keys()))
    step, factor = _physics(world)
    with world.blamed(about):
        return WorldDescription(
            name=name,
            gravity=world.vector_in("gravity", _GRAVITY),
            step=step,
            real_time_factor=factor,
            models=models,
            levels=tuple(levels),
            performers=tuple(performers),
        )


def _physics(world: SdfElement) -> tuple[int, float]:
    """Return the step in nanoseconds and the real-time factor. Of several <physics>, the default one or the first."""
    profiles = world.children("physics")
    if not profiles:
        return MS, 1.0
    chosen = ([each for each in profiles if each.says("default")] or profiles)[0]
    for each in profiles:
        if each is not chosen:
            each.discard()
            each.note("this <physics> isn't the one that is used")
    chosen.attribute("name")
    chosen.attribute("type")
    step, factor = chosen.child("max_step_size"), chosen.child("real_time_factor")
    nanoseconds = MS
    if step is not None:
        nanoseconds = step.nanoseconds()
        if nanoseconds == 0:
            raise step.error(f"a step of {shown(step.word())} s is too small", "the least is a nanosecond")
        if not step.is_whole_nanoseconds():
            step.note(f"a step of {shown(step.word())} s is rounded to {format_time(nanoseconds)}")
    if factor is not None and factor.number() < 0:
        raise factor.error(f"a real-time factor must be at least 0, not {shown(factor.word())}")
    return nanoseconds, 1.0 if factor is None else factor.number()


# Levels and performers, in Gazebo's plugin `gz::sim` of a world.

LEVELS_PLUGIN = "gz::sim"


def _performer(element: SdfElement) -> Performer:
    name = element.name()
    with element.blamed():
        return Performer(
            name=name,
            model=element.needed("ref", f"performer {shown(name)}").word(),
            size=read_box(element, f"performer {shown(name)}").size,
        )


def _level(element: SdfElement, unsimulated: Container[str]) -> Level:
    name = element.name()
    pose = element.child("pose")
    placed = local_pose(pose)
    if pose is not None and placed.quaternion != UPRIGHT:
        pose.note(f"level {shown(name)} is turned; its box lies along the axes all the same")
    entities = []
    for ref in element.children("ref"):
        if ref.word() in unsimulated:
            ref.note(f"level {shown(name)} names {shown(ref.word())}, which isn't simulated")
        else:
            entities.append(ref.word())
    with element.blamed():
        return Level(
            name=name,
            center=placed.position,
            size=read_box(element, f"level {shown(name)}").size,
            buffer=element.number_in("buffer", 0.0),
            entities=tuple(entities),
        )
