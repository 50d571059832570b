"""Reads <model>: links, joints, frames, plugins, and the models nested in it.

Nested models become part of the outer one: their links and joints are called `inner::name`, and move as the joints
between them say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from worldline.world.description import DiffDrive, Joint, LoadingNote, RigidLink, WorldModel
from worldline.world.pose import ORIGIN, Pose
from worldline.world.sdf.element import SdfElement
from worldline.world.sdf.frames import MODEL_FRAME, FrameScope
from worldline.world.sdf.joints import note_unused_speed, read_joint
from worldline.world.sdf.library import SdfLibrary
from worldline.world.sdf.links import read_link
from worldline.world.sdf.plugins import Movers, note_plugin, plugin_name, read_plugins

_NESTED_MAX = 20


@dataclass(slots=True)
class ModelOutline:
    """A model's elements and the names in it, before any of its poses can be worked out."""

    element: SdfElement
    frames: FrameScope
    nested: list[ModelOutline]


def outline(element: SdfElement, library: SdfLibrary, depth: int = 0) -> ModelOutline:
    """Collect all names in a model and in those nested in it, for poses may name what is written later."""
    if depth > _NESTED_MAX:
        raise element.error(f"models are nested more than {_NESTED_MAX} deep", "does a file include itself?")
    frames = FrameScope(element, MODEL_FRAME)
    links = element.children("link")
    for link in links:
        frames.add(link, link=link.name())
    nested = [outline(each, library, depth + 1) for each in library.models_in(element)]
    for inner in nested:
        frames.add(inner.element, nested=inner.frames)
    for joint in element.children("joint"):
        child = joint.child("child")
        held = child.word() if child is not None else None
        frames.add(joint, base=held, link=held)
    add_frames(element, frames)
    canonical = element.attribute("canonical_link")
    if canonical:
        frames.canonical_link = frames.link_of(canonical, element)
    elif links:
        frames.canonical_link = links[0].name()
    elif nested:
        frames.canonical_link = frames.link_of(nested[0].element.name(), element)
    return ModelOutline(element, frames, nested)


def add_frames(element: SdfElement, frames: FrameScope) -> None:
    """Add the plain frames of a world or model."""
    for frame in element.children("frame"):
        attached = frame.attribute("attached_to")
        frames.add(frame, base=attached or None)


@dataclass(slots=True)
class _Parts:
    """What a model and those nested in it have, and the elements it was read from."""

    static: bool
    links: list[RigidLink] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    about: dict[tuple[str, int], SdfElement] = field(default_factory=dict)


def read_model(model: ModelOutline, pose: Pose, notes: list[LoadingNote]) -> WorldModel:
    """Read a model of the world, at its pose there."""
    element = model.element
    static, self_collide = element.child("static"), element.child("self_collide")
    is_static = static is not None and static.boolean()
    parts = _Parts(is_static)
    _collect(model, ORIGIN, "", parts, notes)
    movers = read_plugins(element, parts.joints, is_static, notes)
    _note_unused_speeds(parts, movers)
    for inner in model.nested:
        _note_nested(inner, is_static, notes)
    with element.blamed(parts.about | movers.about):
        return WorldModel(
            name=element.name(),
            pose=pose,
            static=is_static,
            self_collide=self_collide is not None and self_collide.boolean(),
            links=tuple(parts.links),
            joints=tuple(parts.joints),
            canonical_link=model.frames.canonical_link or "",
            drive=movers.drive,
            commands=movers.commands,
            motion=movers.motion,
            motors=tuple(movers.motors),
            motor_commands=movers.motor_commands,
        )


def _collect(model: ModelOutline, placed: Pose, prefix: str, parts: _Parts, notes: list[LoadingNote]) -> None:
    """Add the links and joints of a model whose frame is `placed` in the outermost one."""
    model.frames.check()
    for element in model.element.children("link"):
        parts.about["link", len(parts.links)] = element
        parts.links.append(read_link(element, model.frames, placed, prefix, static=parts.static))
    for element in model.element.children("joint"):
        joint = read_joint(element, model.frames, prefix, notes)
        if joint is not None:
            parts.about["joint", len(parts.joints)] = element
            parts.joints.append(joint)
    for inner in model.nested:
        name = inner.element.name()
        with inner.element.blamed():
            inner_placed = placed.compose(model.frames.pose_of(name, inner.element))
        _collect(inner, inner_placed, f"{prefix}{name}::", parts, notes)


def _note_unused_speeds(parts: _Parts, movers: Movers) -> None:
    """Note limits of speed that aren't simulated: those of joints that nothing moves at a speed."""
    paced = {motor.joint for motor in movers.motors if motor.sets_speed}
    if isinstance(movers.drive, DiffDrive):
        paced.update(movers.drive.left_joints, movers.drive.right_joints)
    for index, joint in enumerate(parts.joints):
        if joint.velocity < inf and not (joint.is_locked or joint.name in paced or parts.static):
            note_unused_speed(parts.about["joint", index])


def _note_nested(inner: ModelOutline, is_static: bool, notes: list[LoadingNote]) -> None:
    """Note what a nested model asks for that only an outermost one can have."""
    static = inner.element.child("static")
    if static is not None and static.boolean() and not is_static:
        text = "a model nested in one that moves can't be static: it moves along"
        notes.append(LoadingNote(static.line, text, static.owner))
    for plugin in inner.element.children("plugin"):
        note_plugin(plugin, plugin_name(plugin), notes)
    for each in inner.nested:
        _note_nested(each, is_static, notes)
