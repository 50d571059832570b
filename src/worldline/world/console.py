"""A world that is run by commands: those of a script, or those that somebody types.

All of them take effect between steps. A script says at which: each command at the step at which the one before ended.
Whoever types decides by being there at that moment; the log of interactions has the step, and repeats it.
"""

from __future__ import annotations

import os
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import NamedTuple, Protocol

from worldline.model import as_time
from worldline.model.errors import UsageError, shown
from worldline.model.nearest import nearest
from worldline.model.time import TimeLike, format_time
from worldline.world.commands import (
    ConsoleCommand,
    HelpQuery,
    LevelsQuery,
    StatusQuery,
    WhereQuery,
    format_command,
    help_lines,
    parse_command,
)
from worldline.world.interactions import Play, Quit, RunTo, StandStill, StepBy
from worldline.world.run import World

_WAIT_S = 0.05  # Between looks at the keyboard while it is paused.
_READ_SIZE = 65536
_GOING = (Play, StepBy, RunTo)


class ScriptLine(NamedTuple):
    """A command of a script, and where it is written."""

    place: str
    command: ConsoleCommand


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
            lines.append(ScriptLine(place, command))
    return lines


def check_script(script: Sequence[ScriptLine], until: TimeLike | None) -> None:
    """Refuse a script that would never end; whoever starts others for it asks before that."""
    for place, command in script:
        if isinstance(command, Play) and until is None:
            raise UsageError(
                f"{place}: nothing would ever stop `play` in a script",
                advice="write `run to TIME`, or say until when the world is to run",
            )


class CommandFeed(Protocol):
    """Where lines come from while a world runs."""

    def poll(self) -> str | None:
        """Return the next line, None if there is none yet, and "" at the end, again and again."""


class LineFeed:
    """The lines of an open file, terminal or pipe, without waiting for them.

    It asks the system whether there is something to read, so there is no thread, which would have to be stopped while
    it waits for somebody's keyboard.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")
        self._text = ""
        self._is_over = False

    def poll(self) -> str | None:
        if "\n" not in self._text and not self._is_over and select([self._descriptor], [], [], 0)[0]:
            data = os.read(self._descriptor, _READ_SIZE)
            self._is_over = not data
            self._text += self._decoder.decode(data, final=self._is_over)
        line, end, rest = self._text.partition("\n")
        if not end and not self._is_over:
            return None
        self._text = rest
        return line + end


class _Console:
    """Carries out commands, whoever gives them, and says what took effect."""

    def __init__(
        self, world: World, write: Callable[[str], object], pace: float | None, until: TimeLike | None
    ) -> None:
        self._world = world
        self._write = write
        self._pace = pace
        self._until = None if until is None else as_time(until, "a time to play to")
        self._is_over = False

    def _carry_out(self, command: ConsoleCommand, between: Callable[[], object] | None = None) -> None:
        match command:
            case StatusQuery() | WhereQuery() | LevelsQuery() | HelpQuery():
                for line in self._answer(command):
                    self._write(line)
            case Play():
                self._say("playing")
                self._world.play(self._until, pace=self._pace, between=between)
                self._say("paused")
            case StepBy(steps):
                self._world.step_by(steps, pace=self._pace, between=between)
                self._say("paused")
            case RunTo(until):
                self._world.run_to(until, pace=self._pace, between=between)
                self._say("paused")
            case StandStill():
                self._say("paused")
            case Quit():
                self._is_over = True
                self._world.end()
                self._say("quit")
            case _:
                self._world.interact(command)
                self._say(format_command(command))

    def _say(self, what: str) -> None:
        self._write(f"step {self._world.step} ({format_time(self._world.time)}): {what}")

    def _play_out(self) -> None:
        """Go on to the end after the last command, if somebody has said when that is."""
        if self._until is not None and self._world.time < self._until:
            self._carry_out(Play())
        self._carry_out(Quit())

    # --- Queries ---

    def _answer(self, query: StatusQuery | WhereQuery | LevelsQuery | HelpQuery) -> list[str]:
        match query:
            case StatusQuery():
                return [self._status()]
            case WhereQuery(model):
                return self._where(model)
            case LevelsQuery():
                return self._levels()
            case HelpQuery(command):
                return help_lines(command)

    def _status(self) -> str:
        world = self._world
        state = "paused" if world.is_paused else "playing"
        return (
            f"time {format_time(world.time)}, step {world.step}, iteration {world.iteration}, {state}, "
            f"state hash {world.state_hash.hex()}"
        )

    def _where(self, model: str | None) -> list[str]:
        world = self._world
        positions, performers, hosts = world.positions, world.performers, world.affinities
        if model is not None and model not in positions:
            raise UsageError(f"no model {shown(model)} is there to move", advice=nearest(model, positions))
        lines = []
        for name in positions if model is None else (model,):
            x, y, z = (round(each, 3) + 0.0 for each in positions[name])  # Nobody wants to read -0.000.
            line = f"{name}: at {x:.3f} {y:.3f} {z:.3f}"
            if name in performers:
                line += f", in {', '.join(world.levels_of(name)) or 'no level'}"
            if name in hosts:
                line += f", on {hosts[name]}"
            lines.append(line)
        return lines or ["nothing that can move is loaded"]

    def _levels(self) -> list[str]:
        world = self._world
        inside: dict[str, list[str]] = {level.name: [] for level in world.description.levels}
        for performer in world.performers:
            for level in world.levels_of(performer):
                inside[level].append(performer)
        return [
            f"{level}: {'active, with ' + ', '.join(names) if names else 'not active'}"
            for level, names in inside.items()
        ] or ["the world has no levels"]


class ScriptSession(_Console):
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
        super().__init__(world, write, pace, until)
        self._script = script
        check_script(script, until)

    def run(self) -> None:
        for place, command in self._script:
            with _located(place):
                self._carry_out(command)
            if self._is_over:
                return
        self._play_out()


class ConsoleSession(_Console):
    """Runs a world by lines that come while it does. `prompt` is for a terminal: it is called to ask for a line.

    While it plays, other commands are carried out between steps, and it plays on, unless they say how far to go. What
    comes during `step` and `run to` is done after them, as if it were a script that somebody has pasted; but `pause`
    stops them, unless it was meant for what waits already. What can't be done is said, and it goes on. At the end of
    the input it quits. Without a prompt, `step` and `run to` are done before the next line is read, and after the last
    one it plays on to `until`, both as in a script.
    """

    def __init__(
        self,
        world: World,
        feed: CommandFeed,
        write: Callable[[str], object],
        *,
        pace: float | None = None,
        until: TimeLike | None = None,
        prompt: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(world, write, pace, until)
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
            case StandStill() if not any(isinstance(each, _GOING) for each in self._held) or self._plays:
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
        line = self._feed.poll()
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
