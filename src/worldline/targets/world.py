"""Worlds from SDF files, ready to run: in this process, or by secondaries on this machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from worldline.files.loading import pairs, parsed
from worldline.history.guarding import GuardedObserver
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Watch
from worldline.model.errors import ModelError, UsageError
from worldline.model.plan import Plan, plan
from worldline.model.text import counted
from worldline.model.time import rounded_time
from worldline.processes.executor import Executor, Kind, as_executor
from worldline.processes.status_timer import looks
from worldline.targets.ready import Ready, RunOptions, end_of
from worldline.world.description import WorldDescription
from worldline.world.foxglove import WorldTeller, world_recorder
from worldline.world.hosting import Exchange
from worldline.world.run import World
from worldline.world.sdf import read_world
from worldline.world.spectator import WORLD_MEMBER

if TYPE_CHECKING:
    from worldline.recording.output import RecordingTarget
    from worldline.recording.writer import Recorder

EXECUTORS: tuple[Kind, ...] = ("inline", "processes")
"""What worlds run on."""

_ENGINE, _RUN_AHEAD = "engine", "run-ahead"
_PARAMETERS = {_ENGINE: "mujoco", _RUN_AHEAD: 1}


def watched(world: World, watch: Watch | None, end: int) -> Callable[[], None]:
    """Return what tells a watcher between steps, now and then, how far a world is."""
    look, due = looks(watch, end), 0

    def between() -> None:
        nonlocal due
        if world.iteration >= due:
            due = world.iteration + look(world.time, world.iteration)

    return between


class ReadyWorld(Ready):
    """A world that can be run until `end`. It draws nothing, so there is only one seed."""

    kind = "world"
    event = "step"
    has_messages = False
    seed = 0

    def __init__(
        self, file: Path, world: WorldDescription, chosen: Executor, end: int, *, engine: str, run_ahead: int
    ) -> None:
        self._file = file
        self._world = world
        self._engine = engine
        self._run_ahead = run_ahead
        self._made()  # What can't be simulated is refused here.
        self._plan = plan([WORLD_MEMBER], until=end)
        self._end = end
        self.name = world.name
        self.chosen = chosen

    def plan(self) -> Plan:
        return self._plan

    def recorder(self, target: RecordingTarget) -> Recorder:
        return world_recorder(target, self.name, self._plan, provenance=self.provenance())

    def telling_settings(self) -> tuple[str, ...]:
        return tuple(each for each in self.options.settings if each.partition("=")[0].strip() != _RUN_AHEAD)

    def run(self, observer: Observer | None = None, watch: Watch | None = None) -> Outcome:
        with self._exchange() as exchange:
            world = self._made(observer, exchange)
            try:
                return world.run(self._end, between=watched(world, watch, self._end))
            except ModelError as error:
                if error.of_observer:
                    raise
                return replace(world.outcome, failure=error)

    def _made(self, observer: Observer | None = None, exchange: Exchange | None = None) -> World:
        tellers = [] if observer is None else [WorldTeller(GuardedObserver(observer))]
        return World(self._world, engine=self._engine, exchange=exchange, spectators=tellers, run_ahead=self._run_ahead)

    def _exchange(self) -> AbstractContextManager[Exchange | None]:
        if self.chosen.kind != "processes":
            return nullcontext()
        from worldline.world.distributed import local_secondaries

        return local_secondaries(self._file, self.chosen.count, engine=self._engine)

    def taking_part(self, outcome: Outcome) -> str:
        if self._world.performers:
            return counted(len(self._world.performers), "performer")
        return counted(len(self._world.models), "model")

    def extent(self, outcome: Outcome) -> str:
        return rounded_time(outcome.now)

    def verify(self, outcome: Outcome) -> list[str]:
        count = len(self._world.notes)
        of_file = f"of {self._file}: `worldline world {self._file} --check` lists what isn't supported"
        return [f"{counted(count, 'note')} {of_file}"] if count else []


def from_file(file: Path, options: RunOptions) -> ReadyWorld:
    """Take a world's file, and what is said of its run."""
    world = read_world(file)
    if options.seed is not None:
        raise UsageError(f"{file}: a world draws nothing, so it has no seed", advice="leave --seed out")
    settings = parsed(str(file), _PARAMETERS, pairs(options.settings))
    end = end_of(options)
    if end is None:
        raise UsageError(f"{file}: a world doesn't say when it ends", advice="use --until 10s")
    values = {**_PARAMETERS, **settings}
    return ReadyWorld(
        file,
        world,
        as_executor(options.executor or "inline", EXECUTORS),
        end,
        engine=values[_ENGINE],
        run_ahead=values[_RUN_AHEAD],
    )
