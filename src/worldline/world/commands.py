"""The console's language: one command per line, read into interactions and queries, and written back."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

from worldline.model import as_time
from worldline.model.errors import UsageError, shown
from worldline.model.nearest import nearest
from worldline.model.time import format_time
from worldline.world.interactions import (
    AnyInteraction,
    CommandMotors,
    InsertPerformer,
    Play,
    Quit,
    RemovePerformer,
    Reset,
    RunTo,
    SetCommand,
    SetPose,
    StandStill,
    StepBy,
)
from worldline.world.pose import UPRIGHT, ZERO, Pose, Quaternion, Vector

_DIGITS_MAX = 15


class StatusQuery(NamedTuple):
    """Where the run is."""


class WhereQuery(NamedTuple):
    """Where one model is, or each that can move."""

    model: str | None = None


class LevelsQuery(NamedTuple):
    """Which levels are active."""


class HelpQuery(NamedTuple):
    """What can be said, or how one command is written."""

    command: str | None = None


Query = StatusQuery | WhereQuery | LevelsQuery | HelpQuery
"""Commands that change nothing, not even how fast it goes."""

ConsoleCommand = AnyInteraction | Query


class _CommandForm(NamedTuple):
    """How a command is written, what it does, and what reads the words after its name."""

    usage: str
    does: str
    read: Callable[[list[str]], ConsoleCommand]


def parse_command(line: str) -> ConsoleCommand | None:
    """Read a line; one that is blank or only a comment is None."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise UsageError(f"{shown(line.strip())} can't be read: {error}", advice="close the quotes") from error
    if not words:
        return None
    name, *rest = words
    form = _FORMS.get(name)
    if form is None:
        raise UsageError(f"there is no command {shown(name)}", advice=nearest(name, _FORMS) or "`help` lists them")
    try:
        return form.read(rest)
    except UsageError as error:
        advice = f"{error.advice}; write: {form.usage}" if error.advice else f"write: {form.usage}"
        raise UsageError(f"{name}: {error.problem}", advice=advice) from error


def format_command(interaction: AnyInteraction) -> str:
    """Write an interaction as the command that is read back as it, to the last bit."""
    match interaction:
        case StepBy(steps):
            return f"step {steps}"
        case RunTo(until):
            return f"run to {format_time(until)}"
        case SetCommand(entity, linear, angular):
            return _joined("command", entity, *linear, *(() if _is_same(angular, ZERO) else angular))
        case CommandMotors(topic, value):
            return _joined("motor", topic, value)
        case SetPose(entity, position, quaternion):
            return _joined("pose", entity, *_pose_words(position, quaternion))
        case InsertPerformer(name, like, position, quaternion, size):
            sized = () if size is None else ("size", *size)
            return _joined("insert", name, "like", like, "at", *_pose_words(position, quaternion), *sized)
        case RemovePerformer(name):
            return _joined("remove", name)
        case Play() | StandStill() | Reset() | Quit():
            return str(interaction.__struct_config__.tag)


def help_lines(command: str | None = None) -> list[str]:
    """Return what `help` says, of one command or of all."""
    if command is None:
        width = max(len(form.usage) for form in _FORMS.values())
        return [f"{form.usage:{width}}  {form.does}" for form in _FORMS.values()]
    form = _FORMS.get(command)
    if form is None:
        raise UsageError(f"there is no command {shown(command)}", advice=nearest(command, _FORMS))
    return [form.usage, form.does]


# --- Words to commands ---


def _plain(command: ConsoleCommand) -> Callable[[list[str]], ConsoleCommand]:
    def read(words: list[str]) -> ConsoleCommand:
        _no_more(words)
        return command

    return read


def _step(words: list[str]) -> StepBy:
    steps = words.pop(0) if words else "1"
    _no_more(words)
    if not (steps.isascii() and steps.isdecimal() and len(steps) <= _DIGITS_MAX):
        raise UsageError(f"{shown(steps)} is no number of steps")
    return StepBy(int(steps))


def _run(words: list[str]) -> RunTo:
    _take_keyword(words, "to")
    until = _take(words, "a time")
    _no_more(words)
    return RunTo(as_time(until))


def _command(words: list[str]) -> SetCommand:
    entity = _take(words, "a model")
    linear, *rest = _vectors(_numbers(words), 1, 2)
    _no_more(words)
    return SetCommand(entity, linear, rest[0] if rest else ZERO)


def _motor(words: list[str]) -> CommandMotors:
    topic = _take(words, "a topic")
    numbers = _numbers(words)
    _no_more(words)
    if len(numbers) != 1:
        raise UsageError(f"it takes 1 number, not {len(numbers)}")
    return CommandMotors(topic, numbers[0])


def _pose(words: list[str]) -> SetPose:
    entity = _take(words, "a model")
    position, quaternion = _read_pose(_numbers(words))
    _no_more(words)
    return SetPose(entity, position, quaternion)


def _insert(words: list[str]) -> InsertPerformer:
    name = _take(words, "a name")
    _take_keyword(words, "like")
    like = _take(words, "a model")
    _take_keyword(words, "at")
    position, quaternion = _read_pose(_numbers(words))
    size = None
    if words:
        _take_keyword(words, "size")
        (size,) = _vectors(_numbers(words), 1, 1)
    _no_more(words)
    return InsertPerformer(name, like, position, quaternion, size)


def _remove(words: list[str]) -> RemovePerformer:
    name = _take(words, "a name")
    _no_more(words)
    return RemovePerformer(name)


def _where(words: list[str]) -> WhereQuery:
    model = words.pop(0) if words else None
    _no_more(words)
    return WhereQuery(model)


def _help(words: list[str]) -> HelpQuery:
    command = words.pop(0) if words else None
    _no_more(words)
    help_lines(command)  # So that what nobody can answer is refused here, like everything else.
    return HelpQuery(command)


def _take(words: list[str], what: str) -> str:
    if not words:
        raise UsageError(f"{what} is missing")
    return words.pop(0)


def _take_keyword(words: list[str], keyword: str) -> None:
    found = _take(words, f'"{keyword}"')
    if found != keyword:
        raise UsageError(f'{shown(found)} is where "{keyword}" should be')


def _no_more(words: Sequence[str]) -> None:
    if words:
        raise UsageError(f"{shown(words[0])} is too much")


def _numbers(words: list[str]) -> list[float]:
    """Take all words as numbers, up to the size."""
    numbers: list[float] = []
    while words and words[0] != "size":
        word = words.pop(0)
        try:
            number = float(word)
        except ValueError:
            raise UsageError(f"{shown(word)} is no number") from None
        if not isfinite(number):
            raise UsageError(f"{shown(word)} is no finite number")
        numbers.append(number)
    return numbers


def _vectors(numbers: Sequence[float], least: int, most: int) -> list[Vector]:
    if len(numbers) % 3 or not least <= len(numbers) // 3 <= most:
        counts = " or ".join(str(3 * count) for count in range(least, most + 1))
        raise UsageError(f"it takes {counts} numbers, not {len(numbers)}")
    return [(numbers[i], numbers[i + 1], numbers[i + 2]) for i in range(0, len(numbers), 3)]


def _read_pose(numbers: Sequence[float]) -> tuple[Vector, Quaternion]:
    match numbers:
        case [x, y, z]:
            pose = Pose((x, y, z))
        case [x, y, z, roll, pitch, yaw]:
            pose = Pose.from_rpy((x, y, z), roll, pitch, yaw)
        case [x, y, z, qw, qx, qy, qz]:
            pose = Pose((x, y, z), (qw, qx, qy, qz))
        case _:
            raise UsageError(f"a pose takes 3, 6 or 7 numbers, not {len(numbers)}")
    return pose.position, pose.quaternion


# --- Commands to words ---


def _pose_words(position: Vector, quaternion: Quaternion) -> tuple[float, ...]:
    return position if _is_same(quaternion, UPRIGHT) else (*position, *quaternion)


def _is_same(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return str(one) == str(other)  # 0.0 == -0.0, but what comes of them may differ.


def _joined(*parts: str | float) -> str:
    return shlex.join(part if isinstance(part, str) else _number(part) for part in parts)


def _number(number: float) -> str:
    """Write a number as short as can be read back: 1, not 1.0."""
    return str(number).removesuffix(".0")


_FORMS: dict[str, _CommandForm] = {
    "play": _CommandForm("play", "go on until something stops it", _plain(Play())),
    "pause": _CommandForm("pause", "stand still", _plain(StandStill())),
    "step": _CommandForm("step [N]", "advance exactly N steps, by default 1, and pause", _step),
    "run": _CommandForm("run to TIME", "go on to the first step at or after a time, such as 1.5s, and pause", _run),
    "reset": _CommandForm("reset", "have everything as in the file, at step 0", _plain(Reset())),
    "command": _CommandForm(
        "command MODEL X Y Z [RX RY RZ]", "have a drive move at these velocities, in m/s and rad/s", _command
    ),
    "motor": _CommandForm(
        "motor TOPIC VALUE", "have motors of joints go to this position, speed or force, as --check lists", _motor
    ),
    "pose": _CommandForm(
        "pose MODEL X Y Z [ROLL PITCH YAW]", "put a model there, at rest; W X Y Z instead is a quaternion", _pose
    ),
    "insert": _CommandForm(
        "insert NAME like MODEL at X Y Z [ROLL PITCH YAW] [size X Y Z]", "add a performer, a copy of a model", _insert
    ),
    "remove": _CommandForm("remove NAME", "take a performer out", _remove),
    "status": _CommandForm("status", "show time, step, iteration and state hash", _plain(StatusQuery())),
    "where": _CommandForm("where [MODEL]", "show positions, levels and secondaries", _where),
    "levels": _CommandForm("levels", "show which levels are active, and who is in them", _plain(LevelsQuery())),
    "help": _CommandForm("help [COMMAND]", "show this, or how a command is written", _help),
    "quit": _CommandForm("quit", "end the run", _plain(Quit())),
}
