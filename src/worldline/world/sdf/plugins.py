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
a model's drive what to do from a time on, as a command does: a velocity in the model's frame, or only the speed ahead
and the rate of turning. A <command> with a <topic> and a <value> tells the motors that hear it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from math import inf

from worldline.model.errors import shown
from worldline.world.description import (
    DiffDrive,
    Drive,
    DriveCommand,
    Joint,
    JointMotor,
    MotorCommand,
    PidGains,
    RigidLink,
    ScriptedMotion,
    SpeedLimits,
    VelocityDrive,
    Waypoint,
)
from worldline.world.pose import ZERO, Vector
from worldline.world.sdf.element import SdfElement, local_pose

# What they do is done for every world, whether its file asks for it or not.
_SYSTEMS = "gz::sim::systems::"
_BUILT_IN = tuple(_SYSTEMS + name for name in ("Physics", "UserCommands", "SceneBroadcaster"))

# They only look at what moves, or tell others of it.
_COSMETIC = frozenset(
    _SYSTEMS + name
    for name in (
        *("AirPressure", "AirSpeed", "Altimeter", "CameraVideoRecorder", "Contact", "DopplerVelocityLogSystem"),
        *("EntitySemantics", "ForceTorque", "Imu", "JointStatePublisher", "KineticEnergyMonitor", "Label"),
        *("LogRecord", "LogVideoRecorder", "LogicalAudioSensorPlugin", "LogicalCamera", "Magnetometer", "NavSat"),
        *("OdometryPublisher", "OpticalTactilePlugin", "ParticleEmitter", "PerformerDetector", "PosePublisher"),
        *("SceneBroadcaster", "Sensors", "ShaderParam", "ThermalSensor", "Thermal", "TouchPlugin"),
    )
)
_SYSTEM_FILE = re.compile(r"(?:lib)?(?:gz-sim|ignition-gazebo)[0-9]*-([a-z0-9-]{1,80})-system(?:\.so)?")


@dataclass(slots=True)
class ModelParts:
    """What a model and those nested in it have, what its plugins say, and the elements that it was read from."""

    static: bool
    links: list[RigidLink] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    drive: Drive | None = None
    commands: tuple[DriveCommand, ...] = ()
    motion: ScriptedMotion | None = None
    motors: list[JointMotor] = field(default_factory=list)
    motor_commands: tuple[MotorCommand, ...] = ()
    about: dict[tuple[str, int], SdfElement] = field(default_factory=dict)


def plugin_name(element: SdfElement) -> str:
    """Return a plugin's name as Gazebo writes it today. If it isn't that of a system, its file may tell which it is."""
    name = element.attribute("name")
    file = _SYSTEM_FILE.fullmatch(element.attribute("filename"))
    if file and "::" not in name:
        return _SYSTEMS + "".join(word.capitalize() for word in file[1].split("-"))
    return "gz::sim" + name.removeprefix("ignition::gazebo") if name.startswith("ignition::gazebo") else name


def note_plugin(element: SdfElement) -> None:
    """Note that a plugin isn't supported, unless it asks for what there is anyway."""
    name = plugin_name(element)
    element.discard()
    if name not in _BUILT_IN:
        element.note(f"plugin {shown(name)} isn't supported", is_cosmetic=name in _COSMETIC)


def read_plugins(model: SdfElement, parts: ModelParts) -> None:
    kinds: set[str] = set()
    controllers: list[SdfElement] = []
    for element in model.children("plugin"):
        name = plugin_name(element)
        kind = _KINDS.get(name)
        if name in _MOTORS:
            controllers.append(element)
            continue
        if kind is None:
            note_plugin(element)
            continue
        if kind in kinds:
            raise element.error(f"this model has a {kind} already")
        kinds.add(kind)
        with element.blamed():
            if name == _DIFF_DRIVE:
                parts.drive = _diff_drive(element)
                wheels = element.children("left_joint") + element.children("right_joint")
                parts.about |= {("wheel", index): each for index, each in enumerate(wheels)}
            elif name == _VELOCITY_CONTROL:
                linear, angular = (element.vector_in(f"initial_{which}", ZERO) for which in ("linear", "angular"))
                parts.drive = VelocityDrive(linear=linear, angular=angular)
            elif name == _COMMANDS:
                commands = element.children("command")
                told = [each for each in commands if each.child("topic") is not None]
                driven = [each for each in commands if each not in told]
                parts.commands = tuple(
                    DriveCommand(
                        time=each.needed("time").nanoseconds(),
                        linear=_velocity(each.child("linear"), 0),
                        angular=_velocity(each.child("angular"), 2),
                    )
                    for each in driven
                )
                parts.motor_commands = tuple(
                    MotorCommand(
                        time=each.needed("time").nanoseconds(),
                        topic=_own(each.needed("topic").word(), model.name()),
                        value=each.needed("value").number(),
                    )
                    for each in told
                )
                parts.about |= {("command", index): each for index, each in enumerate(driven)}
                parts.about |= {("motor command", index): each for index, each in enumerate(told)}
            else:
                parts.motion = _motion(element)
    movable = {} if parts.static else {each.name: each for each in parts.joints}
    _leave_out_locked_drive(parts, movable)
    _add_motors(parts, controllers, model.name(), movable)


def _leave_out_locked_drive(parts: ModelParts, joints: dict[str, Joint]) -> None:
    """Leave out a drive, and what it is told, if one of its wheels can't turn."""
    if not isinstance(parts.drive, DiffDrive):
        return
    for index, wheel in enumerate((*parts.drive.left_joints, *parts.drive.right_joints)):
        joint = joints.get(wheel)
        if joint is not None and joint.kind == "revolute" and joint.is_locked:
            parts.about["wheel", index].remark(
                f"nothing is moved by a drive of joint {shown(wheel)}: its limits leave it a single position"
            )
            parts.drive, parts.commands = None, ()
            return


def _add_motors(parts: ModelParts, plugins: list[SdfElement], model: str, joints: dict[str, Joint]) -> None:
    """Add the motors of joints. Gazebo goes on without those that can't move anything, and complains; so does this."""
    paced = {*parts.drive.left_joints, *parts.drive.right_joints} if isinstance(parts.drive, DiffDrive) else set()
    for element in plugins:
        with element.blamed():
            motors = _motors(element, model)
        index = element.child("joint_index")
        if index is not None and index.number():
            index.remark("joints have one axis each, so nothing is moved by a motor with a <joint_index> other than 0")
            continue
        for named, motor in zip(element.children("joint_name"), motors, strict=True):
            joint = joints.get(motor.joint)
            if joint is None or joint.is_locked or joint.kind not in ("revolute", "prismatic"):
                named.remark(f"nothing is moved by a motor of joint {shown(motor.joint)}: there is none that can move")
            elif motor.sets_speed and motor.joint in paced:
                named.remark(f"joint {shown(motor.joint)} moves at a speed already, and another motor doesn't count")
            else:
                parts.motors.append(motor)
                if motor.sets_speed:
                    paced.add(motor.joint)


_DIFF_DRIVE = _SYSTEMS + "DiffDrive"
_VELOCITY_CONTROL = _SYSTEMS + "VelocityControl"
_POSITION_MOTOR = _SYSTEMS + "JointPositionController"
_SPEED_MOTOR = _SYSTEMS + "JointController"
_FORCE_MOTOR = _SYSTEMS + "ApplyJointForce"
_MOTORS = (_POSITION_MOTOR, _SPEED_MOTOR, _FORCE_MOTOR)
_COMMANDS = "worldline::ScriptedCommands"
_MOTION = "worldline::ScriptedMotion"
_KINDS = {_DIFF_DRIVE: "drive", _VELOCITY_CONTROL: "drive", _COMMANDS: "script of commands", _MOTION: "scripted motion"}


def _diff_drive(element: SdfElement) -> DiffDrive:
    return DiffDrive(
        left_joints=tuple(each.word() for each in element.children("left_joint")),
        right_joints=tuple(each.word() for each in element.children("right_joint")),
        wheel_separation=element.number_in("wheel_separation", 1.0),
        wheel_radius=element.number_in("wheel_radius", 0.2),
        linear=_speed_limits(element, "linear"),
        angular=_speed_limits(element, "angular"),
    )


def _speed_limits(element: SdfElement, which: str) -> SpeedLimits:
    """Read limits of a speed: those for this one, or those for both."""

    def limit(bound: str, quantity: str, default: float) -> float:
        both = element.limit_in(f"{bound}_{quantity}", default)
        return element.limit_in(f"{bound}_{which}_{quantity}", both)

    return SpeedLimits(
        speed_min=limit("min", "velocity", -inf),
        speed_max=limit("max", "velocity", inf),
        acceleration_min=limit("min", "acceleration", -inf),
        acceleration_max=limit("max", "acceleration", inf),
    )


def _motors(element: SdfElement, model: str) -> list[JointMotor]:
    """Read the motors of a controller: one for each joint that it names, and all with one topic."""
    joints = [each.word() for each in element.children("joint_name")]
    if not joints:
        raise element.error("a motor needs a <joint_name>")
    name = plugin_name(element)
    if name == _FORCE_MOTOR:
        motor = JointMotor(joint="", kind="force", topic=_topic(element, model, f"joint/{joints[0]}/cmd_force"))
    elif name == _SPEED_MOTOR:
        gains = _gains(element, PidGains())
        motor = JointMotor(
            joint="",
            kind="velocity",
            topic=_topic(element, model, f"joint/{joints[0]}/cmd_vel"),
            initial=element.number_in("initial_velocity", 0.0),
            gains=gains if element.boolean_in("use_force_commands") else None,
        )
    else:
        number = int(element.number_in("joint_index", 0.0))
        by_speed, gains = element.boolean_in("use_velocity_commands"), _gains(element, PidGains(p=1.0, i=0.1, d=0.01))
        motor = JointMotor(
            joint="",
            kind="position",
            topic=_topic(element, model, f"joint/{joints[0]}/{number}/cmd_pos"),
            initial=element.number_in("initial_position", 0.0),
            gains=None if by_speed else gains,
            speed_max=abs(gains.output_max) if by_speed and element.child("cmd_max") is not None else inf,
        )
    return [replace(motor, joint=joint) for joint in joints]


_GAINS = ("p_gain", "i_gain", "d_gain", "i_min", "i_max", "cmd_min", "cmd_max", "cmd_offset")
"""The tags of a controller's gains, in the order of `PidGains`."""


def _gains(element: SdfElement, usual: PidGains) -> PidGains:
    numbers = zip(fields(usual), _GAINS, strict=True)
    return PidGains(**{each.name: element.number_in(tag, getattr(usual, each.name)) for each, tag in numbers})


def _topic(element: SdfElement, model: str, usual: str) -> str:
    """Return a motor's topic. What is below the model's own is kept relative to that, so copies have their own."""
    whole, below = element.child("topic"), element.child("sub_topic")
    if whole is not None:
        return _own(whole.word(), model)
    return "_".join((usual if below is None else below.word().strip("/")).split())


def _own(topic: str, model: str) -> str:
    """Return a topic as Gazebo makes it valid, without the part before what is the model's own."""
    return ("/" + "_".join(topic.split()).lstrip("/")).removeprefix("_".join(f"/model/{model}/".split()))


def _velocity(element: SdfElement | None, axis: int) -> Vector:
    """Read a velocity, or only its part along one axis."""
    if element is None:
        return ZERO
    if len(element.words()) != 1:
        return element.vector()
    number = element.number()
    return (number, 0.0, 0.0) if axis == 0 else (0.0, 0.0, number)


def _motion(element: SdfElement) -> ScriptedMotion:
    waypoints = element.children("waypoint")
    with element.blamed({("waypoint", index): each for index, each in enumerate(waypoints)}):
        return ScriptedMotion(
            waypoints=tuple(
                Waypoint(time=each.needed("time").nanoseconds(), pose=local_pose(each.needed("pose")))
                for each in waypoints
            ),
            loop=element.boolean_in("loop"),
        )
