"""A world that is run by commands: those of a script, or those that a user types.

All of them take effect between steps. A script says at which: each command at the step at which the one before ended.
A typed command takes effect when it comes; the log of interactions has the step, and repeats it.
"""

from __future__ import annotations

import os
import shlex
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import isfinite
from pathlib import Path
from select import select
from typing import Literal, NamedTuple

from msgspec import MsgspecError, Struct, json

from worldline.files.saving import save
from worldline.history.outcome import Outcome
from worldline.model import as_time
from worldline.model.errors import UsageError, nearest, shown
from worldline.model.time import TimeLike, format_time
from worldline.recording import Recording
from worldline.world.description import WorldDescription
from worldline.world.foxglove import INTERACTIONS
from worldline.world.interactions import (
    AnyInteraction,
    Begin,
    Change,
    CommandMotors,
    InsertPerformer,
    Interaction,
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
from worldline.world.run import World
from worldline.world.spectator import WORLD_MEMBER, Spectator

# The console's language: one command per line, read into interactions and queries, and written back.

_DIGITS_MAX = 15


class Query(NamedTuple):
    """A command that changes nothing; `about` is a model for `where`, and a command for `help`."""

    what: Literal["status", "where", "levels", "help"]
    about: str | None = None


ConsoleCommand = AnyInteraction | Query


def parse_command(line: str) -> ConsoleCommand | None:
    """Read a line; one that is blank or only a comment is None."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        raise UsageError(f"{shown(line.strip())} can't be read: {error}", advice="close the quotes") from error
    if not words:
        return None
    name = words.pop(0)
    if name not in _COMMANDS:
        raise UsageError(f"there is no command {shown(name)}", advice=nearest(name, _COMMANDS) or "`help` lists them")
    usage, _, read = _COMMANDS[name]
    try:
        command = read(words)
        _check_all_read(words)
    except UsageError as error:
        advice = f"{error.advice}; write: {usage}" if error.advice else f"write: {usage}"
        raise UsageError(f"{name}: {error.problem}", advice=advice) from error
    return command


def format_command(interaction: AnyInteraction) -> str:
    """Write an interaction as the command that is read back as it, to the last bit."""
    parts: tuple[str | float, ...]
    match interaction:
        case StepBy(steps):
            return f"step {steps}"
        case RunTo(until):
            return f"run to {format_time(until)}"
        case SetCommand(entity, linear, angular):
            parts = (entity, *linear, *(() if _is_same(angular, ZERO) else angular))
        case CommandMotors(topic, value):
            parts = (topic, value)
        case SetPose(entity, position, quaternion):
            parts = (entity, *_pose_words(position, quaternion))
        case InsertPerformer(name, like, position, quaternion, size):
            sized = () if size is None else ("size", *size)
            parts = (name, "like", like, "at", *_pose_words(position, quaternion), *sized)
        case RemovePerformer(name):
            parts = (name,)
        case Play() | StandStill() | Reset() | Quit():
            parts = ()
    # Numbers are as short as can be read back: 1, not 1.0.
    words = (part if isinstance(part, str) else str(part).removesuffix(".0") for part in parts)
    return shlex.join((str(interaction.__struct_config__.tag), *words))


def _pose_words(position: Vector, quaternion: Quaternion) -> tuple[float, ...]:
    return position if _is_same(quaternion, UPRIGHT) else (*position, *quaternion)


def _is_same(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return str(one) == str(other)  # 0.0 == -0.0, but what comes of them may differ.


def help_lines(command: str | None = None, without: Container[str] = ()) -> list[str]:
    """Return what `help` says, of one command or of all, without some."""
    if command is None:
        told = [(usage, does) for name, (usage, does, _) in _COMMANDS.items() if name not in without]
        width = max(len(usage) for usage, _ in told)
        return [f"{usage:{width}}  {does}" for usage, does in told]
    if command not in _COMMANDS:
        raise UsageError(f"there is no command {shown(command)}", advice=nearest(command, _COMMANDS))
    return list(_COMMANDS[command][:2])


def interacted(world: World, line: str) -> str:
    """Do to a world what a line says, between two steps, and say what took effect; time passes by other means."""
    command = parse_command(line)
    if command is None:
        raise UsageError("there is no command in it", advice="`help` lists them")
    match command:
        case Query("help", about) if about not in _OF_TIME:
            return "\n".join(help_lines(about, without=_OF_TIME))
        case Query("status"):
            return _status(world)  # Not whether it plays: the page may hold it, and shows that.
        case Query("where" | "levels"):
            return "\n".join(answer(world, command))
    if not isinstance(command, Change):
        raise UsageError(f"{shown(line.strip())} is no interaction", advice="pause, step and resume have buttons")
    world.interact(command)
    return f"step {world.step} ({format_time(world.time)}): {format_command(command)}"


def answer(world: World, query: Query) -> list[str]:
    """Return the lines that answer a query."""
    match query.what:
        case "status":
            return [_status(world, "paused" if world.is_paused else "playing")]
        case "where":
            return _where(world, query.about)
        case "levels":
            inside: dict[str, list[str]] = {level.name: [] for level in world.description.levels}
            for performer in world.performers:
                for level in world.levels_of(performer):
                    inside[level].append(performer)
            return [
                f"{level}: {'active, with ' + ', '.join(names) if names else 'not active'}"
                for level, names in inside.items()
            ] or ["the world has no levels"]
    return help_lines(query.about)


def _status(world: World, *state: str) -> str:
    when = f"time {format_time(world.time)}, step {world.step}, iteration {world.iteration}"
    return ", ".join((when, *state, f"state hash {world.state_hash.hex()}"))


def _where(world: World, model: str | None) -> list[str]:
    positions, performers, hosts = world.positions, world.performers, world.affinities
    if model is not None and model not in positions:
        raise UsageError(f"no model {shown(model)} is there to move", advice=nearest(model, positions))
    lines = []
    for name in positions if model is None else (model,):
        x, y, z = (round(each, 3) + 0.0 for each in positions[name])  # 0.000 rather than -0.000.
        line = f"{name}: at {x:.3f} {y:.3f} {z:.3f}"
        if name in performers:
            line += f", in {', '.join(world.levels_of(name)) or 'no level'}"
        if name in hosts:
            line += f", on {hosts[name]}"
        lines.append(line)
    return lines or ["nothing that can move is loaded"]


# --- Words to commands: each of these takes from the front of a list of words ---


def _step(words: list[str]) -> StepBy:
    steps = words.pop(0) if words else "1"
    if not (steps.isascii() and steps.isdecimal() and len(steps) <= _DIGITS_MAX):
        raise UsageError(f"{shown(steps)} is no number of steps")
    return StepBy(int(steps))


def _command(words: list[str]) -> SetCommand:
    entity = _take(words, "a model")
    numbers = _numbers(words, 3, 6)
    return SetCommand(entity, _vector(numbers), _vector(numbers[3:]) if numbers[3:] else ZERO)


def _insert(words: list[str]) -> InsertPerformer:
    name = _take(words, "a name")
    like = _take_after("like", words, "a model")
    position, quaternion = _pose(words, "at")
    size = _vector(_numbers(words, 3, keyword="size")) if words else None
    return InsertPerformer(name, like, position, quaternion, size)


def _help(words: list[str]) -> Query:
    query = Query("help", words.pop(0) if words else None)
    help_lines(query.about)  # An unknown command is refused here, like everything else.
    return query


def _check_all_read(words: list[str]) -> None:
    if words:
        raise UsageError(f"{shown(words[0])} is too much")


def _take(words: list[str], what: str) -> str:
    if not words:
        raise UsageError(f"{what} is missing")
    return words.pop(0)


def _take_after(keyword: str, words: list[str], what: str) -> str:
    found = _take(words, f'"{keyword}"')
    if found != keyword:
        raise UsageError(f'{shown(found)} is where "{keyword}" should be')
    return _take(words, what)


def _numbers(words: list[str], *counts: int, keyword: str = "") -> list[float]:
    """Take all words as numbers, up to the size, after a keyword if there is one."""
    if keyword:
        words.insert(0, _take_after(keyword, words, "a number"))
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
    if counts and len(numbers) not in counts:
        wanted = f"{' or '.join(map(str, counts))} number{'' if counts == (1,) else 's'}"
        raise UsageError(f"it takes {wanted}, not {len(numbers)}")
    return numbers


def _vector(numbers: Sequence[float]) -> Vector:
    return numbers[0], numbers[1], numbers[2]


def _pose(words: list[str], keyword: str = "") -> tuple[Vector, Quaternion]:
    match numbers := _numbers(words, keyword=keyword):
        case [x, y, z]:
            pose = Pose((x, y, z))
        case [x, y, z, roll, pitch, yaw]:
            pose = Pose.from_rpy((x, y, z), roll, pitch, yaw)
        case [x, y, z, qw, qx, qy, qz]:
            pose = Pose((x, y, z), (qw, qx, qy, qz))
        case _:
            raise UsageError(f"a pose takes 3, 6 or 7 numbers, not {len(numbers)}")
    return pose.position, pose.quaternion


_COMMANDS: dict[str, tuple[str, str, Callable[[list[str]], ConsoleCommand]]] = {
    "play": ("play", "go on until something stops it", lambda _: Play()),
    "pause": ("pause", "stand still", lambda _: StandStill()),
    "step": ("step [N]", "advance exactly N steps, by default 1, and pause", _step),
    "run": (
        "run to TIME",
        "go on to the first step at or after a time, such as 1.5s, and pause",
        lambda words: RunTo(as_time(_take_after("to", words, "a time"))),
    ),
    "reset": ("reset", "have everything as in the file, at step 0", lambda _: Reset()),
    "command": ("command MODEL X Y Z [RX RY RZ]", "have a drive move at these velocities, in m/s and rad/s", _command),
    "motor": (
        "motor TOPIC VALUE",
        "have motors of joints go to this position, speed or force, as --check lists",
        lambda words: CommandMotors(_take(words, "a topic"), *_numbers(words, 1)),
    ),
    "pose": (
        "pose MODEL X Y Z [ROLL PITCH YAW]",
        "put a model there, at rest; W X Y Z instead is a quaternion",
        lambda words: SetPose(_take(words, "a model"), *_pose(words)),
    ),
    "insert": (
        "insert NAME like MODEL at X Y Z [ROLL PITCH YAW] [size X Y Z]",
        "add a performer, a copy of a model",
        _insert,
    ),
    "remove": ("remove NAME", "take a performer out", lambda words: RemovePerformer(_take(words, "a name"))),
    "status": ("status", "show time, step, iteration and state hash", lambda _: Query("status")),
    "where": (
        "where [MODEL]",
        "show positions, levels and secondaries",
        lambda words: Query("where", words.pop(0) if words else None),
    ),
    "levels": ("levels", "show which levels are active, and who is in them", lambda _: Query("levels")),
    "help": ("help [COMMAND]", "show this, or how a command is written", _help),
    "quit": ("quit", "end the run", lambda _: Quit()),
}
"""By name: how a command is written, what it does, and what reads the words after its name."""

_OF_TIME = ("play", "pause", "step", "run", "quit")
"""Those that let time pass, or not: all but changes and queries."""


# Scripts, and lines that come while a world runs.

_WAIT_S = 0.05  # Between looks at the keyboard while it is paused.
_READ_SIZE = 65536

ScriptLine = tuple[str, ConsoleCommand]
"""Where a command of a script is written, and the command."""


def read_script(path: Path | str) -> list[ScriptLine]:
    """Read a whole script, so that what can't be read in it is refused before anything starts."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from error
    return parse_script(text, str(path))


def parse_script(text: str, name: str = "script") -> list[ScriptLine]:
    """Read the lines of a script; `name` is that of its file, for errors."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{name}: line {number}"
        with _located(place):
            command = parse_command(line)
        if command is not None:
            lines.append((place, command))
    return lines


def check_script(script: Sequence[ScriptLine], until: TimeLike | None) -> None:
    """Refuse a script that would never end; a caller that starts processes for it asks before that."""
    for place, command in script:
        if isinstance(command, Play) and until is None:
            raise UsageError(
                f"{place}: nothing would ever stop `play` in a script",
                advice="write `run to TIME`, or say until when the world is to run",
            )


def line_feed(descriptor: int) -> Iterator[str | None]:
    """Yield the lines of an open file, terminal or pipe, without waiting for them: None if there is none yet.

    It asks the system whether there is something to read, so there is no thread, which would have to be stopped while
    it waits for a keyboard.
    """
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    text, is_over = "", False
    while text or not is_over:
        if "\n" not in text and not is_over and select([descriptor], [], [], 0)[0]:
            data = os.read(descriptor, _READ_SIZE)
            is_over = not data
            text += decoder.decode(data, final=is_over)
        line, end, rest = text.partition("\n")
        if end or is_over:
            text = rest
            yield line + end
        else:
            yield None


class ScriptSession:
    """Runs a world by a script, then plays on to `until` if there is one, and quits.

    What can't be carried out ends the run, with its place in the script. `play` needs an `until`: nothing else would
    ever stop it.
    """

    def __init__(
        self,
        world: World,
        script: Sequence[ScriptLine],
        write: Callable[[str], object],
        *,
        pace: float | None = None,
        until: TimeLike | None = None,
    ) -> None:
        check_script(script, until)
        self._world = world
        self._script = script
        self._write = write
        self._pace = pace
        self._until = None if until is None else as_time(until, "a time to play to")
        self._is_over = False

    def run(self) -> None:
        for place, command in self._script:
            with _located(place):
                self._carry_out(command)
            if self._is_over:
                return
        self._play_out()

    def _carry_out(self, command: ConsoleCommand, between: Callable[[], object] | None = None) -> None:
        """Do what a command says, and write what took effect."""
        match command:
            case Query():
                for line in answer(self._world, command):
                    self._write(line)
                return
            case Play():
                self._say("playing")
                self._world.play(self._until, pace=self._pace, between=between)
            case StepBy(steps):
                self._world.step_by(steps, pace=self._pace, between=between)
            case RunTo(until):
                self._world.run_to(until, pace=self._pace, between=between)
            case Quit():
                self._is_over = True
                self._world.end()
            case StandStill():
                pass
            case _:
                self._world.interact(command)
        self._say(format_command(command) if isinstance(command, Change | Quit) else "paused")

    def _say(self, what: str) -> None:
        self._write(f"step {self._world.step} ({format_time(self._world.time)}): {what}")

    def _play_out(self) -> None:
        """Go on to the end after the last command, if it is known when that is."""
        if self._until is not None and self._world.time < self._until:
            self._carry_out(Play())
        self._carry_out(Quit())


class ConsoleSession(ScriptSession):
    """Runs a world by lines that come while it does. `prompt` is for a terminal: it is called to ask for a line.

    `feed` yields lines, and None while there is none yet. While it plays, other commands are carried out between steps,
    and it plays on, unless they say how far to go. What comes during `step` and `run to` is done after them, as if it
    were a script that was pasted; but `pause` stops them, unless it was meant for what waits already. What can't be
    done is said, and it goes on. At the end of the input it quits. Without a prompt, `step` and `run to` are done
    before the next line is read, and after the last one it plays on to `until`, both as in a script.
    """

    def __init__(
        self,
        world: World,
        feed: Iterator[str | None],
        write: Callable[[str], object],
        *,
        pace: float | None = None,
        until: TimeLike | None = None,
        prompt: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(world, (), write, pace=pace, until=until)
        self._feed = feed
        self._prompt = prompt
        self._is_asked = False
        self._is_input_over = False
        self._plays = False  # It goes on because of `play`, rather than for some steps.
        self._held: deque[ConsoleCommand] = deque()  # What came while it was going, and is to be done after that.

    def run(self) -> None:
        while not self._is_over:
            command = self._next()
            if command is not None:
                self._plays = isinstance(command, Play)
                self._try(command, self._listen if self._plays or self._prompt is not None else None)
                self._plays = False
            elif not self._is_input_over:
                self._world.wait(_WAIT_S)
            elif self._prompt is None:
                self._play_out()
            else:
                self._carry_out(Quit())

    def _listen(self) -> None:
        """Carry out what comes while it is going, if that is the time for it."""
        command = self._next() if self._plays else self._hear()
        match command:
            case None:
                if self._is_input_over and not self._held and (self._until is None or self._prompt is not None):
                    self._world.pause()
            case StandStill() if self._plays or not any(isinstance(each, Play | StepBy | RunTo) for each in self._held):
                self._world.pause()
            case _ if not self._plays:  # It goes for some steps, and the command is meant for what comes after them.
                self._held.append(command)
            case Play():
                self._say("playing")
            case StepBy() | RunTo() | Quit():
                self._held.appendleft(command)
                self._world.pause()
            case _:
                self._try(command)

    def _next(self) -> ConsoleCommand | None:
        """Return the next command to carry out, if there is one."""
        if self._held:
            return self._held.popleft()
        if self._prompt is not None and not self._is_asked:
            self._is_asked = True
            self._prompt()
        return self._hear()

    def _hear(self) -> ConsoleCommand | None:
        """Return what the next line says, if there is one."""
        line = next(self._feed, "")
        if line is None:
            return None
        self._is_asked = False
        self._is_input_over = not line
        try:
            return parse_command(line)
        except UsageError as error:
            self._write(error.text())
            return None

    def _try(self, command: ConsoleCommand, between: Callable[[], object] | None = None) -> None:
        try:
            self._carry_out(command, between)
        except UsageError as error:
            if error.of_observer:
                raise
            self._write(error.text())


@contextmanager
def _located(place: str) -> Iterator[None]:
    """Have what is wrong with a command say where that is written."""
    try:
        yield
    except UsageError as error:
        if not error.of_observer:
            error.problem = f"{place}: {error.problem}"
            error.args = (error.text(),)
        raise


# Interactions, written down and repeated: with the world's file they are enough to repeat a run, bit for bit.
#
# A log is lines of JSON, each an interaction with the iteration and the step after which it took effect; the first says
# of which world it is. A recording has the same, as messages of the world's on a topic of their own.

_MCAP = b"\x89MCAP"


class LoggedInteraction(Struct, frozen=True, forbid_unknown_fields=True):
    """An interaction, and when it took effect: after this iteration, at which the world was at that step."""

    iteration: int
    step: int
    interaction: AnyInteraction | Begin


class InteractionHistory(NamedTuple):
    """All interactions of a run, and the world it was of."""

    begin: Begin
    entries: tuple[LoggedInteraction, ...]

    def save(self, path: Path | str) -> None:
        """Write a log, whole or not at all."""
        first = LoggedInteraction(0, 0, self.begin)
        save(Path(path), b"".join(json.encode(entry) + b"\n" for entry in (first, *self.entries)))


class InteractionsLog(Spectator):
    """Remembers all interactions of a run."""

    every = 0

    def __init__(self) -> None:
        self._entries: list[LoggedInteraction] = []

    def interacted(self, iteration: int, step: int, interaction: Interaction) -> None:
        self._entries.append(LoggedInteraction(iteration, step, interaction))  # type: ignore[arg-type]

    @property
    def history(self) -> InteractionHistory:
        """Return what has happened so far."""
        return _history(self._entries, "the log")

    def write(self, path: Path) -> None:
        self.history.save(path)


def read_interactions(path: Path | str) -> InteractionHistory:
    """Read a log, or the interactions in a recording."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            is_recording = file.read(len(_MCAP)) == _MCAP
        lines = _recorded(path) if is_recording else enumerate(path.read_bytes().splitlines(), 1)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from error
    what = "message" if is_recording else "line"
    return _history((_entry(line, f"{path}: {what} {number}") for number, line in lines), str(path))


def replay(
    world: World,
    history: InteractionHistory,
    until: TimeLike | None = None,
    *,
    pace: float | None = None,
) -> Outcome:
    """Repeat a run, to where it ended or `until` a time of the world's, and end it.

    What changed the world does so again, at the same iterations. Pauses are passed over.
    """
    check_replay(world.description, history, until)
    target = None if until is None else as_time(until, "a time to play to")
    for entry in history.entries:
        if isinstance(entry.interaction, Quit):
            break
        if isinstance(entry.interaction, Change):
            if target is not None and world.iteration + world.steps_to(target) <= entry.iteration:
                break
            world.advance_to(entry.iteration, pace=pace)
            _repeat(world, entry, entry.interaction)
    if target is not None:
        world.advance_to(world.iteration + world.steps_to(target), pace=pace)
    else:
        world.advance_to(entry.iteration, pace=pace)
    return world.end()


def check_replay(world: WorldDescription, history: InteractionHistory, until: TimeLike | None = None) -> None:
    """Refuse interactions of another world or without an end; a caller that starts processes asks before that."""
    begin = history.begin
    if begin.world != world.name:
        raise UsageError(
            f"these interactions are of world {shown(begin.world)}, not {shown(world.name)}", advice=_OTHER
        )
    if begin.content_hash != world.content_hash():
        raise UsageError(
            f"the files of world {shown(world.name)} aren't what they were when the interactions were written",
            advice="use the files of that time",
        )
    if until is None and not any(isinstance(entry.interaction, Quit) for entry in history.entries):
        raise UsageError("these interactions don't say where the run ended", advice="say until when it is to be played")


def _repeat(world: World, entry: LoggedInteraction, change: Change) -> None:
    at = f"at iteration {entry.iteration}"
    try:
        world.interact(change)
    except UsageError as error:
        raise UsageError(f"{at}, what was done can't be repeated: {error.problem}", advice=error.advice) from error
    if world.step != entry.step:
        raise UsageError(f"{at}, the world was at step {entry.step} and now is at {world.step}", advice=_OTHER)


_OTHER = "the interactions must be those of a run of this world"


# --- Reading ---


def _recorded(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    for message in Recording(path).unheard():
        if message.topic == INTERACTIONS and message.sender == WORLD_MEMBER:
            number += 1
            yield number, message.payload


def _entry(line: bytes, place: str) -> LoggedInteraction:
    try:
        entry = _decoder.decode(line)
    except (MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"{place} is no interaction of a world: {error}") from error
    if entry.iteration < 0 or entry.step < 0:
        raise UsageError(f"{place} has an iteration or a step below 0")
    return entry


def _history(entries: Iterable[LoggedInteraction], source: str) -> InteractionHistory:
    found = list(entries)
    if not found:
        raise UsageError(f"{source} has no interactions", advice="use a log of them, or the recording of a world")
    begin = found[0].interaction
    if not isinstance(begin, Begin):
        raise UsageError(f"{source} doesn't say first of which world it is")
    for number, (earlier, later) in enumerate(pairwise(found), 2):
        if later.iteration < earlier.iteration:
            raise UsageError(
                f"{source}: interaction {number}, of iteration {later.iteration}, comes after one of iteration "
                f"{earlier.iteration}"
            )
        if isinstance(later.interaction, Begin):
            raise UsageError(f"{source}: a second run begins with interaction {number}")
        if isinstance(earlier.interaction, Quit):
            raise UsageError(f"{source}: interaction {number} comes after the end of the run")
    return InteractionHistory(begin, tuple(found[1:]))


_decoder = json.Decoder(LoggedInteraction)
