"""A world as its file describes it, whatever the file's format: plain, frozen, sorted and checked.

Units: meters, kilograms, radians, newtons, seconds; but times are whole nanoseconds. Poses: a model's is relative to
the world, a link's to its model, a shape's to its link. Everything with a name is sorted by it, so that two files that
say the same thing in another order make one world. Nothing here knows where in a file it was written; an error about
one of several has the fact `about`, a kind and an index, by which a reader finds the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from hashlib import blake2b
from itertools import pairwise
from math import cos, inf, sin
from typing import Literal, TypeVar

from worldline.model.errors import ConfigurationError, nearest, shown
from worldline.model.message import check_name
from worldline.model.time import MS, format_time, is_time
from worldline.world.pose import ORIGIN, ZERO, Pose, Vector, length
from worldline.world.shapes import (
    UNIT_INERTIA,
    Inertia,
    PlaneShape,
    Shape,
    check_finite,
    check_not_negative,
    check_size,
)

_NamedPart = TypeVar("_NamedPart", "Collision", "Visual", "RigidLink", "Joint", "Level", "Performer")

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, from 0 to 1."""

GRAY: Color = (0.7, 0.7, 0.7, 1.0)


@dataclass(frozen=True, slots=True)
class LoadingNote:
    """Something that a file says and that isn't simulated, or isn't simulated as one might expect."""

    line: int
    """0 if it is about no line of its own."""
    text: str
    file: str = ""
    """The included file that says it; empty for the world's own."""
    is_cosmetic: bool = False
    """Whether nothing moves in another way because of it: lights, sensors, what is drawn."""

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{self.file}: {where}{self.text}" if self.file else f"{where}{self.text}"


@dataclass(frozen=True, slots=True)
class Friction:
    """Coefficients of sliding along two directions, and of spinning in place, in meters."""

    mu: float = 1.0
    mu2: float = 1.0
    torsion: float = 0.0

    def __post_init__(self) -> None:
        check_not_negative("a coefficient of friction", self.mu, self.mu2, self.torsion)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collision:
    name: str
    shape: Shape
    pose: Pose = ORIGIN
    friction: Friction = Friction()

    def __post_init__(self) -> None:
        check_name(self.name, "a collision")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visual:
    name: str
    shape: Shape
    pose: Pose = ORIGIN
    color: Color = GRAY

    def __post_init__(self) -> None:
        check_name(self.name, "a visual")
        if not all(0 <= part <= 1 for part in self.color):
            raise ConfigurationError(f"the parts of a color must be from 0 to 1, not {shown(self.color)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RigidLink:
    """A rigid part of a model. If no joint holds it, it moves freely, unless its model is static."""

    name: str
    pose: Pose = ORIGIN
    inertia: Inertia = UNIT_INERTIA
    collisions: tuple[Collision, ...] = ()
    visuals: tuple[Visual, ...] = ()
    gravity: bool = True

    def __post_init__(self) -> None:
        check_name(self.name, "a link")
        object.__setattr__(self, "collisions", by_name("collision", self.collisions))
        object.__setattr__(self, "visuals", by_name("visual", self.visuals))


JointKind = Literal["revolute", "prismatic", "fixed", "ball"]
JOINT_KINDS: tuple[JointKind, ...] = ("revolute", "prismatic", "fixed", "ball")
_JOINT_FAR = 1e9  # Radians or meters.


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Holds a link (`child`) to another, or to the world if `parent` is None.

    `anchor` and `axis` are in the child's frame; the axis has length 1 and is of no use to fixed and ball joints.
    `lower` and `upper` limit the angle or the way from where the file puts the links. `effort` and `velocity` limit
    what a motor can do. `damping` is per speed, `friction` is the effort it takes to move the joint at all.
    """

    name: str
    kind: JointKind
    child: str
    parent: str | None
    anchor: Vector = ZERO
    axis: Vector = (0.0, 0.0, 1.0)
    lower: float = -inf
    upper: float = inf
    effort: float = inf
    velocity: float = inf
    damping: float = 0.0
    friction: float = 0.0

    def __post_init__(self) -> None:
        check_name(self.name, "a joint")
        if self.kind not in JOINT_KINDS:
            raise ConfigurationError(f"{shown(self.kind)} is no kind of joint: {', '.join(JOINT_KINDS)}")
        check_finite("a joint's anchor", *self.anchor)
        if not abs(length(self.axis) - 1) < 1e-6:
            raise ConfigurationError(f"a joint needs an axis of length 1, not {shown(self.axis)}")
        if not (self.lower <= self.upper and self.lower <= _JOINT_FAR and self.upper >= -_JOINT_FAR):
            raise ConfigurationError(f"a joint can't move between {shown(self.lower)} and {shown(self.upper)}")
        for what, number in (("effort", self.effort), ("velocity", self.velocity)):
            if not number >= 0:
                raise ConfigurationError(f"a joint's {what} must be at least 0, not {shown(number)}")
        check_not_negative("a joint's damping", self.damping)
        check_not_negative("a joint's friction", self.friction)

    @property
    def is_locked(self) -> bool:
        """Whether its limits leave it a single position."""
        return self.kind in ("revolute", "prismatic") and self.lower == self.upper

    @property
    def locked_pose(self) -> Pose:
        """Where a locked joint has its child, seen from where the file puts it."""
        at, (x, y, z), (a, b, c) = self.lower, self.axis, self.anchor
        if self.kind == "prismatic":
            return Pose((x * at, y * at, z * at))
        half = sin(at / 2)
        turn = Pose.from_quaternion(ZERO, (cos(at / 2), x * half, y * half, z * half))
        p, q, r = turn.rotate(self.anchor)
        return Pose((a - p, b - q, c - r), turn.quaternion)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedLimits:
    """What a drive makes of commands: speeds are kept in range, and change no faster than the accelerations allow."""

    speed_min: float = -inf
    speed_max: float = inf
    acceleration_min: float = -inf
    acceleration_max: float = inf

    def __post_init__(self) -> None:
        for what, low, high in (
            ("speeds", self.speed_min, self.speed_max),
            ("accelerations", self.acceleration_min, self.acceleration_max),
        ):
            if not (low <= 0 <= high):
                raise ConfigurationError(
                    f"a drive's {what} must reach from 0 or less to 0 or more, not {low} to {high}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffDrive:
    """Wheels to the left and right. Its command is a speed ahead (m/s) and a rate of turning to the left (rad/s)."""

    left_joints: tuple[str, ...]
    right_joints: tuple[str, ...]
    wheel_separation: float
    wheel_radius: float
    linear: SpeedLimits = SpeedLimits()
    angular: SpeedLimits = SpeedLimits()

    def __post_init__(self) -> None:
        check_size("differential drive", "wheel separation", self.wheel_separation)
        check_size("differential drive", "wheel radius", self.wheel_radius)
        if not self.left_joints or not self.right_joints:
            raise ConfigurationError("a differential drive needs a joint on either side")


@dataclass(frozen=True, slots=True, kw_only=True)
class VelocityDrive:
    """Moves the whole model as commanded, without wheels: velocities in its own frame, here those at the start."""

    linear: Vector = ZERO
    angular: Vector = ZERO

    def __post_init__(self) -> None:
        check_finite("a velocity", *self.linear, *self.angular)


Drive = DiffDrive | VelocityDrive


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveCommand:
    """From `time` on, a model's drive is to move like this, in the model's frame. A DiffDrive uses x and the last."""

    time: int
    linear: Vector = ZERO
    angular: Vector = ZERO

    def __post_init__(self) -> None:
        _check_time("a command", self.time)
        check_finite("a command", *self.linear, *self.angular)


@dataclass(frozen=True, slots=True, kw_only=True)
class PidGains:
    """A controller's gains, as Gazebo has them: the integral and the output are kept between a minimum and a maximum.

    A minimum above its maximum is no limit.
    """

    p: float = 1.0
    i: float = 0.0
    d: float = 0.0
    i_min: float = -1.0
    i_max: float = 1.0
    output_min: float = -1000.0
    output_max: float = 1000.0
    output_offset: float = 0.0


MotorKind = Literal["position", "velocity", "force"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMotor:
    """Moves a joint by what is commanded on its topic: a position, a velocity, or a force (for a turn, a torque).

    With `gains`, a controller works out a force that leads there. Without them, the joint moves at the velocity that
    is commanded or that leads to the position in one step, but no faster than `speed_max`. A topic that doesn't begin
    with a slash is the model's own, below `/model/NAME/`.
    """

    joint: str
    kind: MotorKind
    topic: str
    initial: float = 0.0
    gains: PidGains | None = None
    speed_max: float = inf

    def __post_init__(self) -> None:
        check_topic(self.topic)
        check_finite("a motor's first command", self.initial)
        if not self.speed_max >= 0:
            raise ConfigurationError(f"a motor's fastest speed must be at least 0, not {shown(self.speed_max)}")

    @property
    def sets_speed(self) -> bool:
        """Whether it moves the joint at a speed, whatever force that takes, rather than by a force."""
        return self.gains is None and self.kind != "force"

    def hears(self, topic: str, model: str) -> bool:
        """Whether it takes the commands on a topic, if it is this model's."""
        return absolute_topic(self.topic, model) == absolute_topic(topic, model)


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorCommand:
    """From `time` on, the motors that hear a topic are to do this. The topic may be the model's own, as a motor's."""

    time: int
    topic: str
    value: float

    def __post_init__(self) -> None:
        check_topic(self.topic)
        _check_time("a command", self.time)
        check_finite("a command", self.value)


def _check_time(what: str, time: object) -> None:
    if not is_time(time):
        raise ConfigurationError(f"{what} needs a time in whole nanoseconds, not {shown(time)}")


def absolute_topic(topic: str, model: str) -> str:
    return topic if topic.startswith("/") else f"/model/{model}/{topic}"


def check_topic(topic: str) -> None:
    if not topic.strip("/") or len(topic) > _TOPIC_LENGTH_MAX:
        raise ConfigurationError(f"{shown(topic)} is no topic")


_TOPIC_LENGTH_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Waypoint:
    """Where a scripted model is at a time: a pose relative to the world."""

    time: int
    pose: Pose

    def __post_init__(self) -> None:
        _check_time("a waypoint", self.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedMotion:
    """Moves a model whatever is in its way: straight from waypoint to waypoint, turning evenly.

    Before the first waypoint it is there, and after the last one it stays, or starts again if it is a `loop`: then the
    last waypoint's time is also the first's of the next round.
    """

    waypoints: tuple[Waypoint, ...]
    loop: bool = False

    def __post_init__(self) -> None:
        if not self.waypoints:
            raise ConfigurationError("a scripted motion needs at least one waypoint")
        check_ascending("waypoint", [each.time for each in self.waypoints])
        if self.loop and len(self.waypoints) < 2:
            raise ConfigurationError("a scripted motion that loops needs at least two waypoints")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldModel:
    """A robot, or any other thing. Its pose is that of its frame at the start.

    Later on, its pose follows from that of its `canonical_link`, by default the first by name. Links that no joint
    connects move on their own. Its links collide with each other only if it says `self_collide`, and never across a
    joint. A joint that is locked is fixed, and its links are where it has them.
    """

    name: str
    pose: Pose = ORIGIN
    static: bool = False
    self_collide: bool = False
    links: tuple[RigidLink, ...]
    joints: tuple[Joint, ...] = ()
    canonical_link: str = ""
    drive: Drive | None = None
    commands: tuple[DriveCommand, ...] = ()
    motion: ScriptedMotion | None = None
    motors: tuple[JointMotor, ...] = ()
    motor_commands: tuple[MotorCommand, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name, "a model")
        object.__setattr__(self, "links", by_name("link", self.links))
        self._check_joints()
        self._fix_locked_joints()
        object.__setattr__(self, "joints", by_name("joint", self.joints))
        if not self.links:
            raise ConfigurationError(f"model {shown(self.name)} has no link")
        if not self.canonical_link:
            object.__setattr__(self, "canonical_link", self.links[0].name)
        elif self.canonical_link not in {link.name for link in self.links}:
            raise ConfigurationError(f"model {shown(self.name)} has no link {shown(self.canonical_link)} to go by")
        check_ascending("command", [each.time for each in self.commands])
        self._check_planes()
        self._check_movers()
        self._check_motors()

    def _check_joints(self) -> None:
        links = {link.name for link in self.links}
        held: dict[str, Joint] = {}
        for index, joint in enumerate(self.joints):
            about = ("joint", index)
            for end in (joint.child, joint.parent):
                if end is not None and end not in links:
                    raise ConfigurationError(
                        f"joint {shown(joint.name)} names link {shown(end)}, which model {shown(self.name)} hasn't",
                        about=about,
                    )
            if joint.child in held:
                raise ConfigurationError(
                    f"joints {shown(held[joint.child].name)} and {shown(joint.name)} both hold link "
                    f"{shown(joint.child)}; loops of joints aren't supported",
                    about=about,
                )
            held[joint.child] = joint
        try:
            TopologicalSorter({child: [joint.parent] for child, joint in held.items() if joint.parent}).prepare()
        except CycleError as error:
            index = next(index for index, joint in enumerate(self.joints) if joint.child in error.args[1])
            problem = f"joint {shown(self.joints[index].name)} is part of a circle of joints"
            raise ConfigurationError(problem, about=("joint", index)) from None

    def _fix_locked_joints(self) -> None:
        """Have locked joints fixed, with all that hangs on them where they hold it. There is no circle of joints."""
        locked = sorted((joint for joint in self.joints if joint.is_locked), key=lambda joint: joint.name)
        if not locked:
            return
        below: dict[str, list[str]] = {}
        for joint in self.joints:
            if joint.parent is not None:
                below.setdefault(joint.parent, []).append(joint.child)
        poses = {link.name: link.pose for link in self.links}
        for joint in locked:
            if joint.lower:
                at = poses[joint.child]
                moved = at.compose(joint.locked_pose).compose(at.inverse())
                hanging = [joint.child]
                while hanging:
                    link = hanging.pop()
                    poses[link] = moved.compose(poses[link])
                    hanging += below.get(link, [])
        links = (link if poses[link.name] is link.pose else replace(link, pose=poses[link.name]) for link in self.links)
        object.__setattr__(self, "links", tuple(links))
        fixed = (replace(joint, kind="fixed") if joint.is_locked else joint for joint in self.joints)
        object.__setattr__(self, "joints", tuple(fixed))

    def _check_planes(self) -> None:
        if not self.static:
            for link in self.links:
                if any(isinstance(collision.shape, PlaneShape) for collision in link.collisions):
                    raise ConfigurationError(
                        f"link {shown(link.name)} has a plane to collide with, which can't move",
                        advice=f"model {shown(self.name)} must be static for it",
                    )

    def _check_movers(self) -> None:
        if self.motion is not None and (self.static or self.joints or self.drive is not None):
            raise ConfigurationError(
                f"model {shown(self.name)} has a scripted motion, so it can't be static or have joints or a drive"
            )
        if self.drive is None:
            if self.commands:
                raise ConfigurationError(f"model {shown(self.name)} is given commands and has no drive")
            return
        if self.static:
            raise ConfigurationError(f"model {shown(self.name)} is static and can't have a drive")
        if isinstance(self.drive, DiffDrive):
            self._check_wheels(self.drive)

    def _check_wheels(self, drive: DiffDrive) -> None:
        kinds = {joint.name: joint.kind for joint in self.joints}
        seen: set[str] = set()
        for index, wheel in enumerate((*drive.left_joints, *drive.right_joints)):
            if wheel not in kinds:
                raise ConfigurationError(
                    f"the drive names joint {shown(wheel)}, which model {shown(self.name)} hasn't",
                    about=("wheel", index),
                )
            if kinds[wheel] != "revolute":
                raise ConfigurationError(
                    f"the drive turns joint {shown(wheel)}, which is {kinds[wheel]} and not revolute",
                    about=("wheel", index),
                )
            if wheel in seen:
                raise ConfigurationError(f"the drive names joint {shown(wheel)} twice", about=("wheel", index))
            seen.add(wheel)

    def _check_motors(self) -> None:
        if self.static and self.motors:
            raise ConfigurationError(f"model {shown(self.name)} is static and can't have motors")
        kinds = {joint.name: joint.kind for joint in self.joints}
        drive = self.drive
        paced = {*drive.left_joints, *drive.right_joints} if isinstance(drive, DiffDrive) else set()
        for motor in self.motors:
            if kinds.get(motor.joint) not in ("revolute", "prismatic"):
                raise ConfigurationError(
                    f"a motor is to move joint {shown(motor.joint)}, and model {shown(self.name)} has none that moves"
                )
            if motor.sets_speed:
                if motor.joint in paced:
                    raise ConfigurationError(f"joint {shown(motor.joint)} can't move at two speeds at once")
                paced.add(motor.joint)
        times = [each.time for each in self.motor_commands]
        if times != sorted(times):
            raise ConfigurationError("commands of motors are given in the order of their times")
        for index, command in enumerate(self.motor_commands):
            if not any(motor.hears(command.topic, self.name) for motor in self.motors):
                raise ConfigurationError(
                    f"model {shown(self.name)} has no motor that hears {shown(command.topic)}",
                    about=("motor command", index),
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A box in the world, along its axes, whose models are simulated only while a performer is about.

    It becomes active when a performer's box touches its own, and stays so until none touches the box that is larger by
    `buffer` on every side. `entities` are the names of models, sorted.
    """

    name: str
    center: Vector
    size: Vector
    buffer: float = 0.0
    entities: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name, "a level")
        check_finite("a level's center", *self.center)
        check_size("level", "size", *self.size)
        check_not_negative("a level's buffer", self.buffer)
        object.__setattr__(self, "entities", tuple(sorted(set(self.entities))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Performer:
    """A model that makes the levels it is in active. `size` is that of a box around the model's position."""

    name: str
    model: str
    size: Vector

    def __post_init__(self) -> None:
        check_name(self.name, "a performer")
        check_size("performer", "size", *self.size)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WorldDescription:
    """A whole world. `step` is in nanoseconds. A `real_time_factor` of 0 means: as fast as it goes.

    `default_entities` are the models that no level names: they are always loaded. Performers are among them.
    """

    name: str
    gravity: Vector = (0.0, 0.0, -9.8)
    step: int = MS
    real_time_factor: float = 1.0
    models: Mapping[str, WorldModel]
    levels: tuple[Level, ...] = ()
    performers: tuple[Performer, ...] = ()
    notes: tuple[LoadingNote, ...] = ()
    default_entities: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_name(self.name, "a world")
        check_finite("gravity", *self.gravity)
        if not is_time(self.step) or self.step == 0:
            raise ConfigurationError(f"a step is a whole number of nanoseconds from 1 on, not {shown(self.step)}")
        check_not_negative("a real-time factor", self.real_time_factor)
        for name, model in self.models.items():
            if name != model.name:
                raise ConfigurationError(f"model {shown(model.name)} is listed as {shown(name)}")
        check_levels(self.levels, self.performers, self.models)
        object.__setattr__(self, "models", {name: self.models[name] for name in sorted(self.models)})
        object.__setattr__(self, "levels", by_name("level", self.levels))
        object.__setattr__(self, "performers", by_name("performer", self.performers))
        object.__setattr__(self, "notes", tuple(sorted(self.notes, key=_note_order)))
        named = {entity for level in self.levels for entity in level.entities}
        object.__setattr__(self, "default_entities", tuple(name for name in self.models if name not in named))

    def __repr__(self) -> str:
        parts = f"{len(self.models)} models, {len(self.levels)} levels, {len(self.performers)} performers"
        return f"<WorldDescription {shown(self.name)}: {parts}>"

    def content_hash(self) -> str:
        """Return what stands for all that is simulated, wherever it was read from: other worlds have others."""
        content = (self.name, self.gravity, self.step, self.models, self.levels, self.performers)
        return blake2b(repr(content).encode(), digest_size=16).hexdigest()  # Floats are written exactly.


def _note_order(note: LoadingNote) -> tuple[bool, str, int, str]:
    """What changes motion comes first."""
    return note.is_cosmetic, note.file, note.line, note.text


def check_levels(levels: Sequence[Level], performers: Sequence[Performer], models: Iterable[str]) -> None:
    """Check that levels and performers name models that exist, and that each model has one part to play."""
    known = frozenset(models)
    performing: dict[str, Performer] = {}
    for index, performer in enumerate(performers):
        if performer.model not in known:
            raise ConfigurationError(
                f"performer {shown(performer.name)} names model {shown(performer.model)}, and there is none",
                advice=nearest(performer.model, sorted(known)),
                about=("performer", index),
            )
        if performer.model in performing:
            raise ConfigurationError(
                f"performers {shown(performing[performer.model].name)} and {shown(performer.name)} are one model, "
                f"{shown(performer.model)}",
                about=("performer", index),
            )
        performing[performer.model] = performer
    for index, level in enumerate(levels):
        for entity in level.entities:
            if entity not in known:
                raise ConfigurationError(
                    f"level {shown(level.name)} names model {shown(entity)}, and there is none",
                    advice=nearest(entity, sorted(known)),
                    about=("level", index),
                )
            if entity in performing:
                raise ConfigurationError(
                    f"level {shown(level.name)} names model {shown(entity)}, which is a performer",
                    advice="performers are always loaded, and belong to no level",
                    about=("level", index),
                )


def by_name(what: str, parts: Sequence[_NamedPart]) -> tuple[_NamedPart, ...]:
    """Return the parts sorted by name, which must differ."""
    found: dict[str, _NamedPart] = {}
    for index, part in enumerate(parts):
        if part.name in found:
            raise ConfigurationError(f"there are two {what}s {shown(part.name)}", about=(what, index))
        found[part.name] = part
    return tuple(found[name] for name in sorted(found))


def check_ascending(what: str, times: Sequence[int]) -> None:
    for index, (earlier, later) in enumerate(pairwise(times), 1):
        if not earlier < later:
            raise ConfigurationError(
                f"a {what} at {format_time(later)} comes after one at {format_time(earlier)}",
                advice=f"{what}s are given in the order of their times, one for each",
                about=(what, index),
            )
