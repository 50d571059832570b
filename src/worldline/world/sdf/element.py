"""An XML element of a world's file, read piece by piece so that what isn't read can be listed.

`child`, `children`, `attribute` and `words` mark what they return as read. `unread` then finds all that a file says and
no reader has asked for: nothing is dropped in silence, not even what a reader has never heard of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from math import inf, isfinite, pi

from worldline.model.errors import ConfigurationError, nearest, shortened, shown
from worldline.model.time import TIME_MAX
from worldline.world.description import LoadingNote
from worldline.world.pose import ORIGIN, Pose, Vector

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_NUMBER_LENGTH_MAX = 100
_INFINITE = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
_UNLIMITED = 1e16  # What SDF's own defaults write for a limit that is none.
_NOTED_MAX = 200  # Names in a note are cut; a hostile one could be megabytes long.

# Nothing moves in another way because of these, nor because of anything in them.
_COSMETIC = frozenset(
    (
        *("visual", "material", "light", "scene", "gui", "projector", "particle_emitter", "road", "laser_retro"),
        *("sensor", "audio_sink", "audio_source", "battery", "atmosphere", "magnetic_field", "spherical_coordinates"),
        *("real_time_update_rate", "topic", "sub_topic", "odom_topic", "tf_topic", "frame_id", "child_frame_id"),
        *("odom_publish_frequency", "odom_publisher_frequency"),
    )
)


class WorldFileError(ConfigurationError):
    """A world's file that can't be simulated as written. Facts: `file`, and `line` if it is about one."""

    @classmethod
    def found(cls, file: str, line: int | None, problem: str, advice: str | None = None) -> WorldFileError:
        where = file if line is None else f"{file}: line {line}"
        return cls(f"{where}: {problem}", advice=advice, file=file, line=line)


@dataclass(slots=True, eq=False)
class SdfElement:
    """A tag with what it encloses. `owner` is the file's name as errors show it; `notes` are those of all files."""

    tag: str
    attributes: dict[str, str]
    line: int
    owner: str
    notes: list[LoadingNote]
    text: str = ""
    content: list[SdfElement] = field(default_factory=list)
    _read: bool = False
    _repeated: bool = False
    _text_read: bool = False
    _attributes_read: set[str] = field(default_factory=set)
    _remarks: list[str] = field(default_factory=list)

    def error(self, problem: str, advice: str | None = None) -> WorldFileError:
        return WorldFileError.found(self.owner, self.line, problem, advice)

    def remark(self, text: str) -> None:
        """Have something noted about this element and all others of which the same is said, at the first of them."""
        self._remarks.append(text)

    def note(self, text: str, *, is_cosmetic: bool = False) -> None:
        """Have something noted about this element alone."""
        self.notes.append(LoadingNote(self.line, text, self.owner, is_cosmetic))

    @contextmanager
    def blamed(self, about: Mapping[tuple[str, int], SdfElement] | None = None) -> Iterator[None]:
        """Give this element's line to whatever is found wrong inside, or that of the part that it is about."""
        try:
            yield
        except WorldFileError:
            raise
        except ConfigurationError as error:
            blamed = (about or {}).get(error.facts.get("about", ("", 0)), self)
            raise blamed.error(error.problem, error.advice) from None

    # What it encloses.

    def child(self, tag: str) -> SdfElement | None:
        """Return the enclosed element with this tag. If there are several, the first counts."""
        found: SdfElement | None = None
        for each in self.content:
            if each.tag == tag:
                if found is None:
                    found = each
                    each._read = True
                else:
                    each._repeated = True
        return found

    def children(self, *tags: str) -> list[SdfElement]:
        found = [each for each in self.content if each.tag in tags]
        for each in found:
            each._read = True
        return found

    def at(self, *tags: str) -> SdfElement | None:
        """Return the element that is enclosed by one that is enclosed by …, if all are there."""
        found: SdfElement | None = self
        for tag in tags:
            found = found.child(tag) if found is not None else None
        return found

    def needed(self, tag: str, what: str = "") -> SdfElement:
        found = self.child(tag)
        if found is None:
            raise self.error(f"{what or f'<{self.shown_tag}>'} needs a <{tag}>")
        return found

    def attribute(self, name: str) -> str:
        """Return an attribute without blanks around it; one that isn't there is empty."""
        self._attributes_read.add(name)
        return self.attributes.get(name, "").strip()

    def says(self, attribute: str) -> bool:
        """Return whether an attribute is true."""
        return self.attribute(attribute).lower() in ("true", "1")

    def name(self) -> str:
        name = self.attribute("name")
        if not name:
            raise self.error(f"<{self.shown_tag}> needs a name")
        return name

    def discard(self) -> None:
        """Mark all of it as read: it is noted already that it isn't supported as a whole."""
        self._read = self._text_read = True
        self._attributes_read.update(self.attributes)
        for each in self.content:
            each.discard()

    def discard_but(self, tag: str) -> None:
        """Mark all of it as read but what has this tag: that is why the rest counts for nothing, and will be noted."""
        self._attributes_read.update(self.attributes)
        for each in self.content:
            if each.tag != tag:
                each.discard()

    @property
    def shown_tag(self) -> str:
        return shortened(self.tag[:_NOTED_MAX])

    # Its text.

    def words(self) -> list[str]:
        self._text_read = True
        return self.text.split()

    def word(self) -> str:
        """Return all of the text, which may have blanks inside: a name, a path."""
        self._text_read = True
        word = self.text.strip()
        if not word:
            raise self.error(f"<{self.shown_tag}> is empty")
        return word

    def numbers(self, count: int) -> list[float]:
        words = self.words()
        if len(words) != count:
            wanted = "a number" if count == 1 else f"{count} numbers"
            raise self.error(f"<{self.shown_tag}> needs {wanted}, not {shown(self.text.strip())}")
        return [self._number(word) for word in words]

    def number(self) -> float:
        return self.numbers(1)[0]

    def number_in(self, tag: str, default: float) -> float:
        """Return the number in an enclosed element, or the default if there is none."""
        found = self.child(tag)
        return default if found is None else found.number()

    def limit_in(self, tag: str, default: float) -> float:
        found = self.child(tag)
        return default if found is None else found.limit()

    def vector(self) -> Vector:
        x, y, z = self.numbers(3)
        return (x, y, z)

    def vector_in(self, tag: str, default: Vector) -> Vector:
        found = self.child(tag)
        return default if found is None else found.vector()

    def boolean_in(self, tag: str, default: bool = False) -> bool:
        found = self.child(tag)
        return default if found is None else found.boolean()

    def boolean(self) -> bool:
        word = " ".join(self.words()).lower()
        if word not in ("true", "false", "1", "0"):
            raise self.error(f"<{self.shown_tag}> is true or false, not {shown(self.text.strip())}")
        return word in ("true", "1")

    def limit(self) -> float:
        """Read a number that may be infinite, or as large as makes no difference."""
        infinite = _INFINITE.fullmatch(self.word())
        if infinite:
            return -inf if infinite[1] == "-" else inf
        number = self.number()
        return number if abs(number) < _UNLIMITED else (inf if number > 0 else -inf)

    def nanoseconds(self) -> int:
        """Read a time in seconds, rounded to whole nanoseconds as decimals, not as floats."""
        if self.number() < 0 or self.number() * 1e9 > TIME_MAX:
            raise self.error(f"<{self.shown_tag}> needs seconds from 0 to 36 years, not {shown(self.text.strip())}")
        return round(Decimal(self.word()) * 10**9)

    def is_whole_nanoseconds(self) -> bool:
        return Decimal(self.word()) * 10**9 % 1 == 0

    def _number(self, word: str) -> float:
        if len(word) <= _NUMBER_LENGTH_MAX and _NUMBER.fullmatch(word):
            number = float(word)
            if isfinite(number):
                return number
        raise self.error(f"<{self.shown_tag}> needs a finite number, not {shown(word)}")

    # What isn't read.

    def unread(self) -> Iterator[LoadingNote]:
        """Yield a note for each kind of thing in here that no reader has asked for, with its first line."""
        found: dict[tuple[str, bool], list[SdfElement]] = {}
        for what, element, is_cosmetic in self._unread(False):
            found.setdefault((what, is_cosmetic), []).append(element)
        for (what, is_cosmetic), elements in found.items():
            more = {1: "", 2: ", here and in one more place"}.get(
                len(elements), f", here and in {len(elements) - 1} more places"
            )
            yield LoadingNote(elements[0].line, f"{what}{more}", elements[0].owner, is_cosmetic)

    def _unread(self, is_cosmetic: bool) -> Iterator[tuple[str, SdfElement, bool]]:
        is_cosmetic = is_cosmetic or self.tag in _COSMETIC
        for text in self._remarks:
            yield text, self, is_cosmetic
        for name in self.attributes:
            if name not in self._attributes_read and not name.startswith("xmlns"):
                what = f"the attribute {shortened(name[:_NOTED_MAX])} of <{self.shown_tag}> isn't supported"
                yield what, self, is_cosmetic
        if not self._text_read and self.text.strip():
            yield f"<{self.shown_tag}> has text, which isn't supported", self, is_cosmetic
        for each in self.content:
            if each._read:
                yield from each._unread(is_cosmetic)
                continue
            what = (
                f"only the first <{each.shown_tag}> of a <{self.shown_tag}> counts"
                if each._repeated
                else f"<{each.shown_tag}> in <{self.shown_tag}> isn't supported"
            )
            yield what, each, is_cosmetic or each.tag in _COSMETIC


# Poses as SDF writes them, and the named frames that they may be relative to.
#
# A world and each model is a scope. Its links, joints, frames and models have names that poses can be relative to;
# `inner::arm` is `arm` in the scope of the nested model `inner`. A scope resolves a name to a pose relative to its own
# origin, whatever the order in which things are written.

MODEL_FRAME = "__model__"
WORLD_FRAME = "world"
_CHAIN_MAX = 100  # Frames that are relative to frames that are relative to …: deeper is a mistake or hostile.


def local_pose(element: SdfElement | None) -> Pose:
    """Read a <pose> by itself, whatever it is relative to."""
    if element is None:
        return ORIGIN
    form = element.attribute("rotation_format") or "euler_rpy"
    degrees = element.says("degrees")
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


_Frame = tuple[SdfElement, str | None, str | None]
"""An element; what its pose is relative to if it doesn't say so, None for the scope's origin; and the link that it
moves with, None if that tells."""


class FrameScope:
    """The names in a world or a model, and the models `nested` in it. `origin` is what the origin itself is called."""

    def __init__(self, owner: SdfElement, origin: str, nested: Sequence[FrameScope] = ()) -> None:
        self.owner = owner
        self.nested = nested
        self._origin = origin
        self._frames: dict[str, _Frame] = {}
        self._nested: dict[str, FrameScope] = {}
        self._known: dict[str, Pose] = {}
        self.canonical_link: str | None = None

    def add_nested(self) -> None:
        for scope in self.nested:
            self.add(scope.owner, nested=scope)

    def add_frames(self) -> None:
        """Add the plain frames of a world or model."""
        for frame in self.owner.children("frame"):
            self.add(frame, base=frame.attribute("attached_to") or None)

    def add(
        self, element: SdfElement, base: str | None = None, link: str | None = None, nested: FrameScope | None = None
    ) -> None:
        name = element.name()
        if name in (WORLD_FRAME, MODEL_FRAME) or "::" in name:
            raise element.error(f"{shown(name)} can't name a <{element.shown_tag}>", "SDF reserves that name")
        earlier = self._frames.get(name)
        if earlier is not None:
            if earlier[0].tag == element.tag:
                raise element.error(
                    f"there are two <{element.shown_tag}> {shown(name)} in this <{self.owner.shown_tag}>"
                )
            return  # Older files call a joint like its link. The name means the link.
        self._frames[name] = (element, base, link)
        element.child("pose")  # It is read even if no other pose needs it.
        if nested is not None:
            self._nested[name] = nested

    def check(self) -> None:
        """Work out every pose, so that a mistake in one that isn't needed is found, too."""
        for name, (element, _, _) in self._frames.items():
            with element.blamed():
                self.pose_of(name, element)

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
        element, base, _ = self._frames[name]
        placed = self.resolve(element.child("pose"), base, element, depth)
        frame = element.attribute("placement_frame") if nested is not None else ""
        # The pose of a model is that of its own frame, or of another that it names.
        return placed.compose(nested.pose_of(frame, element, depth + 1).inverse()) if nested and frame else placed

    def resolve(self, pose: SdfElement | None, base: str | None, asker: SdfElement, depth: int = 0) -> Pose:
        """Return a pose relative to this scope's origin; `base` is what it is relative to unless it says so itself."""
        if depth > _CHAIN_MAX:
            raise asker.error("its pose is relative to itself, or to too many others in turn")
        base = self.relative_to(pose) or base
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
        _, base, link = self._frames[name]
        if link is not None:
            return link if link == name else self.link_of(link, asker, depth + 1)
        return self.link_of(base or self._origin, asker, depth + 1)

    @staticmethod
    def relative_to(pose: SdfElement | None) -> str | None:
        """Return what a pose says that it is relative to."""
        return (pose.attribute("relative_to") or None) if pose is not None else None

    def _split(self, name: str, asker: SdfElement) -> tuple[str, FrameScope | None, str]:
        """Return the first part of a name, its scope if it is a model, and the rest."""
        outer, _, inner = name.partition("::")
        if outer not in self._frames or (inner and outer not in self._nested):
            raise asker.error(f"there is nothing called {shown(name)} here", nearest(name, self._frames))
        return outer, self._nested.get(outer), inner
