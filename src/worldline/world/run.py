"""A world that runs: steps, pauses, interactions. One class, whether it runs in one process or in many."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Self

from msgspec import MsgspecError, convert, to_builtins

from worldline.history.journal import run_digest
from worldline.history.outcome import End, Outcome
from worldline.model import as_time
from worldline.model.errors import ConfigurationError, UsageError, shown
from worldline.model.time import SECOND, TimeLike, format_time
from worldline.world.course import Course
from worldline.world.description import WorldDescription
from worldline.world.engines import open_engine
from worldline.world.engines.engine import PhysicsEngine, agreement
from worldline.world.hosting import Exchange, LocalExchange
from worldline.world.interactions import (
    AnyInteraction,
    Begin,
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
from worldline.world.pose import UPRIGHT, ZERO, Quaternion, Vector
from worldline.world.sdf import read_world
from worldline.world.spectator import WORLD_MEMBER, SeveralSpectators, Spectator

_ROUND_MAX = 1 << 30


class World:
    """A world of models, ready to step.

    `world` is a description or the path of an SDF file, and `engine` the name of a physics engine, or what makes one.
    Spectators see everything. Without an `exchange` it is simulated right here. Secondaries may `run_ahead` by some
    steps; the result is the same.

    `run` runs it to its end. Else it is paused except while one of `step_by`, `run_to` and `play` is at work.
    Interactions take effect before the next step, and are told to the spectators with the iteration.
    """

    def __init__(
        self,
        world: WorldDescription | Path | str,
        *,
        engine: str | Callable[[WorldDescription], PhysicsEngine] = "mujoco",
        exchange: Exchange | None = None,
        spectators: Iterable[Spectator] = (),
        run_ahead: int = 1,
    ) -> None:
        self.description = world if isinstance(world, WorldDescription) else read_world(Path(world))
        opened = self._engine(engine)
        self._exchange = exchange or LocalExchange(lambda: self._engine(engine))
        _check_agreement(agreement(opened), self._exchange.agreement)
        self._spectator = SeveralSpectators(spectators)
        self._course = Course(opened, self._exchange.secondaries, self._spectator, run_ahead=run_ahead)
        self._stopping = False
        self._going = 0
        self._over = False
        self._told(Begin(self.description.name, self.description.content_hash()))

    def _engine(self, engine: str | Callable[[WorldDescription], PhysicsEngine]) -> PhysicsEngine:
        return open_engine(engine, self.description) if isinstance(engine, str) else engine(self.description)

    # --- What is ---

    @property
    def iteration(self) -> int:
        """How many steps the run has made; it never goes back."""
        return self._course.iteration

    @property
    def step(self) -> int:
        """The world's own count of steps, which a reset takes back to 0."""
        return self._course.step

    @property
    def time(self) -> int:
        """The world's time in nanoseconds: step × step size."""
        return self._course.time

    @property
    def state_hash(self) -> bytes:
        """The hash of all that moves, as it was after the last step; zeros if there was none since the beginning."""
        return self._course.state_hash

    @property
    def digest(self) -> bytes:
        """The digest of the run, if it ended here: it stands for all state hashes so far."""
        return run_digest([(WORLD_MEMBER, self.iteration * self.description.step, self._course.chain)])

    @property
    def outcome(self) -> Outcome:
        """What comes of the run, if it ended here."""
        now = self.iteration * self.description.step
        members = {WORLD_MEMBER: End(now, self._course.chain)}
        return Outcome(digest=self.digest, now=now, events=self.iteration, members=members)

    @property
    def is_paused(self) -> bool:
        """Whether it stands still; between the steps of `play` it doesn't."""
        return not self._going

    @property
    def performers(self) -> tuple[str, ...]:
        return self._course.cast.levels.performers()

    @property
    def affinities(self) -> dict[str, str]:
        """Which secondary each mover is on."""
        return dict(self._course.affinities)

    @property
    def loaded(self) -> tuple[str, ...]:
        return tuple(self._course.cast.loaded())

    @property
    def active_levels(self) -> tuple[str, ...]:
        return self._course.cast.levels.active()

    @property
    def positions(self) -> dict[str, Vector]:
        """Where each mover is now."""
        return self._course.positions()

    def levels_of(self, performer: str) -> tuple[str, ...]:
        return self._course.cast.levels.of(performer)

    def __repr__(self) -> str:
        state = "ended" if self._over else "paused" if self.is_paused else "playing"
        return f"<World {shown(self.description.name)}: {state} at step {self.step} ({format_time(self.time)})>"

    # --- Time ---

    def run(
        self, until: TimeLike, *, pace: float | None = None, between: Callable[[], object] | None = None
    ) -> Outcome:
        """Run it from here to the first step at or after a time, and end it; `pace` and `between` are as in `play`."""
        self.play(until, pace=pace, between=between)
        return self.end()

    def step_by(self, steps: int, *, pace: float | None = None, between: Callable[[], object] | None = None) -> None:
        """Go on by exactly so many steps; `pace` and `between` are as in `play`."""
        if type(steps) is not int or steps < 0:
            raise UsageError(f"it can't go {shown(steps)} steps", advice="give a whole number from 0 on")
        self._told(StepBy(steps))
        end = self.iteration + steps
        self._go(lambda: end - self.iteration, pace, between)

    def run_to(
        self, until: TimeLike, *, pace: float | None = None, between: Callable[[], object] | None = None
    ) -> None:
        """Go on to the first step at or after a time of the world's; `pace` and `between` are as in `play`."""
        target = as_time(until, "a time to run to")
        if target < self.time:
            raise UsageError(
                f"it can't go back to {format_time(target)} from {format_time(self.time)}", advice="reset it"
            )
        self._told(RunTo(target))
        self._go(lambda: self.steps_to(target), pace, between)

    def play(
        self, until: TimeLike | None = None, *, pace: float | None = None, between: Callable[[], object] | None = None
    ) -> None:
        """Go on until `pause` is called, or to a time; `between` is called after each round, and may interact.

        A round is one step, or as many as secondaries `run_ahead`.

        With a `pace`, the world's time passes at most so many times as fast as the wall clock.
        """
        target = None if until is None else as_time(until, "a time to play to")
        self._told(Play())
        self._go(lambda: _ROUND_MAX if target is None else self.steps_to(target), pace, between)

    def advance_to(self, iteration: int, *, pace: float | None = None) -> None:
        """Go on to an iteration without telling the spectators of an interaction: in a replay there is none."""
        self._check_running()
        self._go(lambda: iteration - self.iteration, pace, None)

    def steps_to(self, target: int) -> int:
        """Return how many steps it is to the first one at or after a time of the world's; none if that has passed."""
        return max(0, -(-target // self.description.step) - self.step)

    def pause(self) -> None:
        """Have it stand still after the step under way. From `between`, or from another thread."""
        self._stopping = True

    def wait(self, seconds: float) -> None:
        """Let time of the wall clock pass; secondaries that go meanwhile are noticed."""
        if seconds > 0:
            self._exchange.wait(seconds)

    def _go(self, left: Callable[[], int], pace: float | None, between: Callable[[], object] | None) -> None:
        """Go on while there are steps left to go, and it is neither paused nor ended."""
        if pace is not None and not (isfinite(pace) and pace > 0):
            raise UsageError(f"{shown(pace)} is no pace", advice="1 is that of the wall clock, 2 is twice as fast")
        self._stopping = False
        self._going += 1
        begun, begun_at = time.monotonic(), self.iteration
        try:
            while not self._over and (steps := left()) > 0:
                if self._stopping:
                    self._told(StandStill())
                    break
                self._advance(steps)
                if pace is not None:
                    due = (self.iteration - begun_at) * self.description.step / SECOND / pace
                    self.wait(begun + due - time.monotonic())
                if between is not None:
                    between()
        finally:
            self._going -= 1

    def _advance(self, steps: int) -> None:
        """Go on by at least one step, and at most so many.

        Rounds of no steps, which only look, are part of the next step: if interactions could come between them, the
        result would depend on how often it looks.
        """
        before = self.iteration
        while self.iteration == before:
            orders = self._course.begin(steps)
            if orders:
                self._exchange.trade(orders, self._course.take)
            self._course.settle()

    # --- Interactions ---

    def reset(self) -> None:
        """Have everything as it is in the file, at step 0."""
        self.interact(Reset())

    def command(self, model: str, linear: Vector = ZERO, angular: Vector = ZERO) -> None:
        """Have a model's drive move like this until its next command: velocities in its own frame."""
        self.interact(SetCommand(model, linear, angular))

    def command_motors(self, topic: str, value: float) -> None:
        """Have the motors that hear a topic move their joints like this until their next command."""
        self.interact(CommandMotors(topic, value))

    def set_pose(self, model: str, position: Vector, quaternion: Quaternion = UPRIGHT) -> None:
        """Put a model somewhere else, at rest."""
        self.interact(SetPose(model, position, quaternion))

    def insert_performer(
        self,
        name: str,
        like: str,
        position: Vector,
        quaternion: Quaternion = UPRIGHT,
        size: Vector | None = None,
    ) -> None:
        """Add a performer: a copy of a model of the file. Its box is that of the model's, unless a size is given."""
        self.interact(InsertPerformer(name, like, position, quaternion, size))

    def remove_performer(self, name: str) -> None:
        """Take a performer out of the world, by the name of its model."""
        self.interact(RemovePerformer(name))

    def interact(self, interaction: AnyInteraction) -> None:
        """Do what an interaction says; what isn't possible raises and changes nothing."""
        self._check_running()
        try:
            interaction = convert(to_builtins(interaction), AnyInteraction)
        except (MsgspecError, TypeError) as error:
            raise UsageError(f"{shown(interaction)} is nothing that can be done to a world: {error}") from error
        match interaction:
            case StepBy(steps):
                self.step_by(steps)
            case RunTo(until):
                self.run_to(until)
            case Play():
                self.play()
            case StandStill():
                self.pause()
            case Quit():
                self.end()
            case _:
                self._course.interact(interaction)

    # --- The end ---

    def end(self) -> Outcome:
        """End the run here, and return what came of it. Secondaries end when their exchange does."""
        if not self._over:
            self._told(Quit())
            self._over = True
            self._spectator.ended(self.iteration, self.step)
        return self.outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.end()

    def _told(self, interaction: Interaction) -> None:
        self._check_running()
        self._spectator.interacted(self.iteration, self.step, interaction)

    def _check_running(self) -> None:
        if self._over:
            raise UsageError("the run is over", advice="make another World")


def _check_agreement(ours: Mapping[str, str], theirs: Mapping[str, str]) -> None:
    """Refuse secondaries that would simulate something else."""
    for what, value in ours.items():
        if theirs.get(what) != value:
            raise ConfigurationError(
                f"the {what} of the secondaries isn't the one here: {theirs.get(what)} and {value}",
                advice="give World what they were started with: the same file, and the same engine",
            )
