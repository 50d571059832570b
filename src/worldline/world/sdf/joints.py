"""Reads <joint>."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any, cast

from worldline.model.errors import shown
from worldline.model.nearest import nearest
from worldline.world.description import JOINT_KINDS, Joint, JointKind, LoadingNote
from worldline.world.pose import Pose, Vector, length
from worldline.world.sdf.element import SdfElement
from worldline.world.sdf.frames import MODEL_FRAME, FrameScope, local_pose

_UNSUPPORTED = ("gearbox", "revolute2", "screw", "universal")


def read_joint(element: SdfElement, scope: FrameScope, prefix: str, notes: list[LoadingNote]) -> Joint | None:
    """Read a joint; return None if it is of a kind that isn't supported, which is then noted."""
    name, kind = element.name(), (element.attribute("type") or "").strip()
    if kind in _UNSUPPORTED:
        element.discard()
        problem = f"joint {shown(name)} is of type {kind}, which isn't supported: it connects nothing"
        notes.append(LoadingNote(element.line, problem, element.owner))
        return None
    if kind == "continuous":
        kind = "revolute"
    elif kind not in JOINT_KINDS:
        known = (*JOINT_KINDS, "continuous")
        raise element.error(
            f"{shown(kind)} is no type of joint", nearest(kind, known) or f"there are {', '.join(known)}"
        )
    parent, child = element.needed("parent"), element.needed("child")
    held = scope.link_of(child.word(), child)
    anchor = _anchor(element, child.word(), held, scope)
    axis = element.child("axis") if kind in ("revolute", "prismatic") else None
    with element.blamed():
        joint = Joint(
            name=prefix + name,
            kind=cast(JointKind, kind),
            child=prefix + held,
            parent=None if parent.word() == "world" else prefix + scope.link_of(parent.word(), parent),
            anchor=anchor.position,
        )
    if axis is None:
        return joint
    with axis.blamed():
        joint = replace(joint, axis=_direction(axis, held, scope, anchor), **_dynamics(axis))
        return replace(joint, **_limits(axis, is_continuous=(element.attribute("type") or "").strip() == "continuous"))


def note_unused_speed(element: SdfElement) -> None:
    """Note that a joint's limit of speed isn't simulated."""
    axis = element.child("axis")
    limit = axis.child("limit") if axis is not None else None
    velocity = limit.child("velocity") if limit is not None else None
    if velocity is not None:
        velocity.remark("<velocity> in <limit> isn't simulated for joints that nothing moves at a speed")


def _anchor(element: SdfElement, child: str, held: str, scope: FrameScope) -> Pose:
    """Return the joint's frame relative to the link that it holds."""
    pose = element.child("pose")
    if child == held and FrameScope.relative_to(pose) in (None, held):
        return local_pose(pose)
    return scope.pose_of(held, element).inverse().compose(scope.resolve(pose, child, element))


def _direction(axis: SdfElement, held: str, scope: FrameScope, anchor: Pose) -> Vector:
    """Return the axis in the frame of the link that the joint holds. It is written in the joint's own frame."""
    xyz = axis.child("xyz")
    vector = (0.0, 0.0, 1.0) if xyz is None else xyz.vector()
    size = length(vector)
    if xyz is not None and not 1e-9 < size < 1e9:
        raise xyz.error("an axis needs some length")
    unit = (vector[0] / size, vector[1] / size, vector[2] / size)
    frame = xyz.attribute("expressed_in") if xyz is not None else None
    older = axis.child("use_parent_model_frame")
    if older is not None and older.boolean():
        frame = MODEL_FRAME
    if not frame:
        return anchor.rotate(unit)
    if frame == held:
        return unit
    return scope.pose_of(held, axis).inverse().rotate(scope.pose_of(frame, axis).rotate(unit))


def _dynamics(axis: SdfElement) -> dict[str, Any]:
    dynamics = axis.child("dynamics")
    found = {tag: dynamics.child(tag) for tag in ("damping", "friction")} if dynamics is not None else {}
    return {tag: given.number() for tag, given in found.items() if given is not None}


def _limits(axis: SdfElement, *, is_continuous: bool) -> dict[str, Any]:
    """Read a joint's limits. Of effort and velocity, SDF writes -1 for none."""
    limit = axis.child("limit")
    tags = ("effort", "velocity") if is_continuous else ("lower", "upper", "effort", "velocity")
    found = {tag: limit.child(tag) for tag in tags} if limit is not None else {}
    numbers = {tag: given.limit() for tag, given in found.items() if given is not None}
    return {tag: inf if tag in ("effort", "velocity") and number < 0 else number for tag, number in numbers.items()}
