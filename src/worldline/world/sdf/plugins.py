"""Reads the plugins of a model that move it: Gazebo's drives, and scripts of our own.

    <plugin filename="worldline" name="worldline::ScriptedMotion">
      <loop>true</loop>
      <waypoint><time>0</time><pose>0 0 0.5 0 0 0</pose></waypoint>
      <waypoint><time>4.5</time><pose>2 0 0.5 0 0 1.57</pose></waypoint>
    </plugin>

    <plugin filename="worldline" name="worldline::ScriptedCommands">
      <command><time>0</time><linear>0.5</linear></command>
      <command><time>2</time><linear>0.5</linear><angular>0.3</angular></command>
    </plugin>

Times are seconds. The first moves a model whatever is in its way, between poses relative to the world. The second tells
a model's drive what to do from a time on, as if somebody had sent it a command: a velocity in the model's frame, or
only the speed ahead and the rate of turning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from worldline.model.errors import shown
from worldline.world.description import (
    DiffDrive,
    Drive,
    DriveCommand,
    LoadingNote,
    ScriptedMotion,
    SpeedLimits,
    VelocityDrive,
    Waypoint,
)
from worldline.world.pose import ZERO, Vector
from worldline.world.sdf.element import SdfElement
from worldline.world.sdf.frames import local_pose

# What they do is done for every world, whether its file asks for it or not.
_BUILT_IN = tuple(f"gz::sim::systems::{name}" for name in ("Physics", "UserCommands", "SceneBroadcaster"))


@dataclass(slots=True)
class Movers:
    """What a model's plugins say, and the elements that what they name was read from."""

    drive: Drive | None = None
    commands: tuple[DriveCommand, ...] = ()
    motion: ScriptedMotion | None = None
    about: dict[tuple[str, int], SdfElement] = field(default_factory=dict)


def plugin_name(element: SdfElement) -> str:
    """Return a plugin's name as Gazebo writes it today."""
    name = (element.attribute("name") or "").strip()
    element.attribute("filename")
    return "gz::sim" + name.removeprefix("ignition::gazebo") if name.startswith("ignition::gazebo") else name


def note_plugin(element: SdfElement, name: str, notes: list[LoadingNote]) -> None:
    """Note that a plugin isn't supported, unless it asks for what there is anyway."""
    element.discard()
    if name not in _BUILT_IN:
        notes.append(LoadingNote(element.line, f"plugin {shown(name)} isn't supported", element.owner))


def read_plugins(model: SdfElement, notes: list[LoadingNote]) -> Movers:
    movers = Movers()
    kinds: set[str] = set()
    for element in model.children("plugin"):
        name = plugin_name(element)
        kind = _KINDS.get(name)
        if kind is None:
            note_plugin(element, name, notes)
            continue
        if kind in kinds:
            raise element.error(f"this model has a {kind} already")
        kinds.add(kind)
        with element.blamed():
            if name == _DIFF_DRIVE:
                movers.drive = _diff_drive(element)
                wheels = element.children("left_joint") + element.children("right_joint")
                movers.about |= {("wheel", index): each for index, each in enumerate(wheels)}
            elif name == _VELOCITY_CONTROL:
                movers.drive = _velocity_drive(element)
            elif name == _COMMANDS:
                movers.commands = _commands(element)
                movers.about |= {("command", index): each for index, each in enumerate(element.children("command"))}
            else:
                movers.motion = _motion(element)
    return movers


_DIFF_DRIVE = "gz::sim::systems::DiffDrive"
_VELOCITY_CONTROL = "gz::sim::systems::VelocityControl"
_COMMANDS = "worldline::ScriptedCommands"
_MOTION = "worldline::ScriptedMotion"
_KINDS = {_DIFF_DRIVE: "drive", _VELOCITY_CONTROL: "drive", _COMMANDS: "script of commands", _MOTION: "scripted motion"}


def _diff_drive(element: SdfElement) -> DiffDrive:
    separation, radius = element.child("wheel_separation"), element.child("wheel_radius")
    return DiffDrive(
        left_joints=tuple(each.word() for each in element.children("left_joint")),
        right_joints=tuple(each.word() for each in element.children("right_joint")),
        wheel_separation=1.0 if separation is None else separation.number(),
        wheel_radius=0.2 if radius is None else radius.number(),
        linear=_speed_limits(element, "linear"),
        angular=_speed_limits(element, "angular"),
    )


def _speed_limits(element: SdfElement, which: str) -> SpeedLimits:
    """Read limits of a speed: those for this one, or those for both."""

    def limit(bound: str, quantity: str, default: float) -> float:
        both, own = element.child(f"{bound}_{quantity}"), element.child(f"{bound}_{which}_{quantity}")
        given = both if own is None else own
        return default if given is None else given.limit()

    return SpeedLimits(
        speed_min=limit("min", "velocity", -inf),
        speed_max=limit("max", "velocity", inf),
        acceleration_min=limit("min", "acceleration", -inf),
        acceleration_max=limit("max", "acceleration", inf),
    )


def _velocity_drive(element: SdfElement) -> VelocityDrive:
    linear, angular = element.child("initial_linear"), element.child("initial_angular")
    return VelocityDrive(
        linear=ZERO if linear is None else linear.vector(), angular=ZERO if angular is None else angular.vector()
    )


def _commands(element: SdfElement) -> tuple[DriveCommand, ...]:
    return tuple(
        DriveCommand(
            time=each.needed("time").nanoseconds(),
            linear=_velocity(each.child("linear"), 0),
            angular=_velocity(each.child("angular"), 2),
        )
        for each in element.children("command")
    )


def _velocity(element: SdfElement | None, axis: int) -> Vector:
    """Read a velocity, or only its part along one axis."""
    if element is None:
        return ZERO
    if len(element.words()) != 1:
        return element.vector()
    number = element.number()
    return (number, 0.0, 0.0) if axis == 0 else (0.0, 0.0, number)


def _motion(element: SdfElement) -> ScriptedMotion:
    loop = element.child("loop")
    waypoints = element.children("waypoint")
    with element.blamed({("waypoint", index): each for index, each in enumerate(waypoints)}):
        return ScriptedMotion(
            waypoints=tuple(
                Waypoint(time=each.needed("time").nanoseconds(), pose=local_pose(each.needed("pose")))
                for each in waypoints
            ),
            loop=loop is not None and loop.boolean(),
        )
