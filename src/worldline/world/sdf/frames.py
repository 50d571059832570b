"""Poses as SDF writes them, and the named frames that they may be relative to.

A world and each model is a scope. Its links, joints, frames and models have names that poses can be relative to;
`inner::arm` is `arm` in the scope of the nested model `inner`. A scope resolves a name to a pose relative to its own
origin, whatever the order in which things are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

from worldline.model.errors import nearest, shown
from worldline.world.pose import ORIGIN, Pose
from worldline.world.sdf.element import SdfElement

MODEL_FRAME = "__model__"
WORLD_FRAME = "world"
_CHAIN_MAX = 100  # Frames that are relative to frames that are relative to …: deeper is a mistake or hostile.


def local_pose(element: SdfElement | None) -> Pose:
    """Read a <pose> by itself, whatever it is relative to."""
    if element is None:
        return ORIGIN
    form = element.attribute("rotation_format") or "euler_rpy"
    degrees = (element.attribute("degrees") or "false").strip().lower() in ("true", "1")
    if not element.words():
        return ORIGIN
    with element.blamed():
        if form == "quat_xyzw":
            x, y, z, qx, qy, qz, qw = element.numbers(7)
            return Pose.from_quaternion((x, y, z), (qw, qx, qy, qz))
        if form != "euler_rpy":
            raise element.error(f"{shown(form)} is no rotation_format", "there are euler_rpy and quat_xyzw")
        x, y, z, *angles = element.numbers(6)
        roll, pitch, yaw = (angle * pi / 180 for angle in angles) if degrees else angles
        return Pose.from_rpy((x, y, z), roll, pitch, yaw)


@dataclass(slots=True)
class _Frame:
    element: SdfElement
    pose: SdfElement | None
    base: str | None
    """What its pose is relative to if it doesn't say so; None for the scope's origin."""
    link: str | None
    """The link that it moves with; None if `base` tells."""


class FrameScope:
    """The names in a world or a model. `origin` is what the origin itself is called."""

    def __init__(self, owner: SdfElement, origin: str) -> None:
        self._owner = owner
        self._origin = origin
        self._frames: dict[str, _Frame] = {}
        self._nested: dict[str, FrameScope] = {}
        self._known: dict[str, Pose] = {}
        self.canonical_link: str | None = None

    def add(
        self, element: SdfElement, base: str | None = None, link: str | None = None, nested: FrameScope | None = None
    ) -> None:
        name = element.name()
        if name in (WORLD_FRAME, MODEL_FRAME) or "::" in name:
            raise element.error(f"{shown(name)} can't name a <{element.shown_tag}>", "SDF reserves that name")
        earlier = self._frames.get(name)
        if earlier is not None:
            if earlier.element.tag == element.tag:
                raise element.error(
                    f"there are two <{element.shown_tag}> {shown(name)} in this <{self._owner.shown_tag}>"
                )
            return  # Older files call a joint like its link. Whoever names it means the link.
        self._frames[name] = _Frame(element, element.child("pose"), base, link)
        if nested is not None:
            self._nested[name] = nested

    def check(self) -> None:
        """Work out every pose, so that a mistake in one that nobody needs is found, too."""
        for name, frame in self._frames.items():
            with frame.element.blamed():
                self.pose_of(name, frame.element)

    def pose_of(self, name: str, asker: SdfElement, depth: int = 0) -> Pose:
        """Return where a name is, relative to this scope's origin."""
        if name == self._origin:
            return ORIGIN
        if name not in self._known:
            self._known[name] = self._resolve(name, asker, depth)
        return self._known[name]

    def _resolve(self, name: str, asker: SdfElement, depth: int) -> Pose:
        outer, nested, inner = self._split(name, asker)
        if nested is not None and inner:
            return self.pose_of(outer, asker, depth + 1).compose(nested.pose_of(inner, asker, depth + 1))
        frame = self._frames[name]
        return self.resolve(frame.pose, frame.base, frame.element, depth)

    def resolve(self, pose: SdfElement | None, base: str | None, asker: SdfElement, depth: int = 0) -> Pose:
        """Return a pose relative to this scope's origin; `base` is what it is relative to unless it says so itself."""
        if depth > _CHAIN_MAX:
            raise asker.error("its pose is relative to itself, or to too many others in turn")
        said = self.relative_to(pose)
        if said is not None:
            base = said
        here = local_pose(pose)
        if base is None or base == self._origin:
            return here
        return self.pose_of(base, pose or asker, depth + 1).compose(here)

    def resolve_in(self, link: str, pose: SdfElement | None, asker: SdfElement) -> Pose:
        """Return a pose relative to a link, which is also what it is relative to unless it says so itself."""
        if self.relative_to(pose) in (None, link):
            return local_pose(pose)
        return self.pose_of(link, asker).inverse().compose(self.resolve(pose, link, asker))

    def link_of(self, name: str, asker: SdfElement, depth: int = 0) -> str:
        """Return the link that a frame moves with, by its name in this scope."""
        if depth > _CHAIN_MAX:
            raise asker.error(f"{shown(name)} is attached to itself, or to too many others in turn")
        if name == self._origin:
            if self.canonical_link is None:
                raise asker.error(f"{shown(name)} has no link")
            return self.canonical_link
        outer, nested, inner = self._split(name, asker)
        if nested is not None:
            return f"{outer}::{nested.link_of(inner or nested._origin, asker, depth + 1)}"
        frame = self._frames[name]
        if frame.link is not None:
            return frame.link if frame.link == name else self.link_of(frame.link, asker, depth + 1)
        return self.link_of(frame.base or self._origin, asker, depth + 1)

    @staticmethod
    def relative_to(pose: SdfElement | None) -> str | None:
        """Return what a pose says that it is relative to."""
        said = pose.attribute("relative_to") if pose is not None else None
        return said.strip() or None if said is not None else None

    def _split(self, name: str, asker: SdfElement) -> tuple[str, FrameScope | None, str]:
        """Return the first part of a name, its scope if it is a model, and the rest."""
        outer, _, inner = name.partition("::")
        if outer not in self._frames or (inner and outer not in self._nested):
            raise asker.error(f"there is nothing called {shown(name)} here", nearest(name, self._frames))
        return outer, self._nested.get(outer), inner
