"""The front of spacetime: a simulation is set up, and run on whatever executes it."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from worldline.history.guarding import GuardedObserver, check_observer
from worldline.history.observer import Observer
from worldline.history.outcome import Watch
from worldline.model.errors import ConfigurationError, UsageError, WorldlineError, nearest, shown
from worldline.model.plan import Plan
from worldline.model.randomness import Stream
from worldline.model.text import counted
from worldline.processes.executor import Executor, Kind, as_executor
from worldline.processes.failures import begin_run, is_from_outside
from worldline.processes.status_timer import Look, looks
from worldline.spacetime.agent import Agent
from worldline.spacetime.boundary import Boundary, check_boundaries, end_of_time
from worldline.spacetime.core import Core, make_current
from worldline.spacetime.functions import blamed
from worldline.spacetime.geometry import COORDINATE_MAX, LambdaField
from worldline.spacetime.outcome import (
    AgentRecord,
    Scene,
    SpacetimeOutcome,
    check_end,
    outcome_of,
    report_of,
    scene_of,
    tell,
)
from worldline.spacetime.space import Minkowski, nanoseconds, shown_time

_LOOK_EVERY = 10_000

EXECUTORS: tuple[Kind, ...] = ("inline", "processes", "mpi", "shuffled")
"""What agents run on."""


class ForwardSimulation:
    """Agents in a space, and one history of what they do to each other.

    Set it up under ``with simulation:``, where code is executed by the initializing agent, in whose future everything
    lies; then call ``simulation.run(until=100)``, in lab time. `boundary` is one `Boundary`, or several.
    """

    def __init__(
        self,
        space: Minkowski,
        field: LambdaField | None = None,
        boundary: Boundary | Iterable[Boundary] = (),
        executor: Executor | str = "inline",
        *,
        seed: int = 0,
        trace: bool = False,
    ) -> None:
        if not isinstance(space, Minkowski):
            raise ConfigurationError(f"{shown(space)} isn't a space", advice="use Minkowski(4), for instance")
        if field is not None and not isinstance(field, LambdaField):
            raise ConfigurationError(f"{shown(field)} isn't a field", advice="use LambdaField(R=..., c=...)")
        if type(seed) is not int or not -(2**63) <= seed < 2**63:
            raise ConfigurationError("the seed isn't a whole number of at most 64 bits")
        self.space = space
        self.field = LambdaField() if field is None else field
        self.seed = seed
        self._executor = as_executor(executor, EXECUTORS)
        self.records_of_failure: list[AgentRecord] | None = None
        """What had happened when a run that was traced failed, up to the failure and with it."""
        self.failure_of_observer: WorldlineError | None = None
        """Why an observer couldn't be told of a run that has failed itself."""
        self.is_traced = trace
        self._core = Core(space, self.field, check_boundaries(boundary, space.n), seed)
        self._core.trace = []  # Until the run begins it isn't known whether it will be observed.
        self._outer: Any = None
        self._is_over = False

    def __enter__(self) -> ForwardSimulation:
        if self._is_over:
            raise UsageError("the simulation is over", advice="make a new one")
        self._core.setting_up = True
        self._outer = make_current(self._core)
        return self

    def __exit__(self, *_: object) -> None:
        self._core.setting_up = False
        self._core.stamp += 1  # From now on no agent has just been made.
        make_current(self._outer)

    def _look_at_all(self) -> None:
        for body in self._core.register.bodies.values():
            failure: WorldlineError | None = None
            try:
                if not body.done:
                    self._core.look(body)
            except BaseException as error:  # It is the user's code, and can raise anything.
                if is_from_outside(error):
                    raise
                failure = blamed(error, body.name, body.point, "shown_as")
            if failure is not None:
                raise failure

    @property
    def executor(self) -> Executor:
        """What runs it, unless `run` is given another one."""
        return self._executor

    @executor.setter
    def executor(self, executor: Executor | str) -> None:
        self._executor = as_executor(executor, EXECUTORS)

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that prints: under MPI, one of them does."""
        return self._executor.is_main

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        return tuple(self._core.boundaries)

    @property
    def agents(self) -> dict[str, Agent]:
        """All agents by name, to inspect before and after a run. Those made during the run are gone if they died."""
        return {name: body.agent for name, body in sorted(self._core.register.bodies.items())}

    def __getitem__(self, name: str) -> Agent:
        """Return an agent."""
        if name not in self._core.register.bodies:
            gone = "one that is made during a run is gone when it has died" if "/" in str(name) else None
            raise UsageError(
                f"there is no agent named {shown(name)}", advice=gone or nearest(name, self._core.register.bodies)
            )
        agent: Agent = self._core.register.bodies[name].agent
        return agent

    def __repr__(self) -> str:
        return f"<ForwardSimulation of {counted(len(self._core.register.bodies), 'agent')} in {self.space}>"

    def scene(self, until: float) -> Scene:
        """Return what a run until then takes place in."""
        return scene_of(self.space.n, self.field, self.boundaries, until)

    def plan(self, until: float) -> Plan:
        """Return what determines a run apart from the agents themselves, for the header of a recording."""
        check_end(until)
        return Plan(roster=tuple(self.agents), seed=self.seed, end=nanoseconds(until))

    def run(
        self,
        until: float | None = None,
        *,
        executor: Executor | str | None = None,
        observer: Observer | None = None,
        watch: Watch | None = None,
    ) -> SpacetimeOutcome:
        """Run everything that happens before `until`, in lab time; return the outcome.

        The outcome is the same whatever the executor. Without `until`, a boundary must end time for every agent.
        `observer` is told everything when the run is over; under MPI, on each rank that has one. `watch` is told the
        status now and then, with times in billionths of lab time.
        """
        if self._is_over:
            raise UsageError("the simulation is over", advice="make a new one")
        if self._core.setting_up:
            raise UsageError("the simulation is still being set up", advice="run it after the with block")
        if executor is not None:
            self.executor = executor
        if observer is not None:
            check_observer(observer)
        end = self._end(until)
        core = self._core
        is_observed = self._is_observed(observer)
        if is_observed:
            check_end(end)
        if is_observed or self.is_traced:
            self._look_at_all()
        else:
            core.trace = None
        begin_run()
        self._is_over = True
        if until is not None:
            core.boundaries = [end_of_time(self.space.n, end), *core.boundaries]  # First, so that it wins ties.
        outcome = self._executed(end, watch)
        if observer is not None:
            self._tell(observer, outcome)
        outcome = replace(outcome, kept=outcome.kept if self.is_traced else None, scene=self.scene(outcome.until))
        if outcome.failure is not None:
            self.records_of_failure = outcome.kept
            raise outcome.failure
        return outcome

    def _is_observed(self, observer: Observer | None) -> bool:
        """Whether the run is observed: under MPI on any rank, since they all have to look at the same."""
        if self._executor.kind != "mpi":
            return observer is not None
        from worldline.spacetime.worker import is_said_by_any

        return is_said_by_any(self._executor, observer is not None)

    def _tell(self, observer: Observer, outcome: SpacetimeOutcome) -> None:
        """Tell an observer what has happened. If it can't take that, an error of the run stays the one to be told."""
        try:
            members = outcome.members if outcome.failure is None else None
            tell(GuardedObserver(observer), self.scene(outcome.until), outcome.records, members)
        except WorldlineError as error:
            if outcome.failure is None:
                raise
            self.failure_of_observer = error

    def _executed(self, end: float, watch: Watch | None) -> SpacetimeOutcome:
        shown_end = shown_time(end)
        if self._executor.kind not in ("processes", "mpi"):
            return self._run_inline(end, looks(watch, shown_end))
        from worldline.spacetime.worker import run_elsewhere

        return run_elsewhere(self._executor, self._core, end, watch, shown_end)

    def _run_inline(self, end: float, look: Look) -> SpacetimeOutcome:
        core = self._core
        if self._executor.kind == "shuffled":
            core.turns.shuffle = Stream(self._executor.seed, "shuffled").shuffle
        self._run_down(look)
        steps = -1
        while core.live and not core.failures and core.steps > steps:
            steps = core.steps
            gc.collect()  # A channel that is only garbage holds no agent up, whenever it is found to be.
            self._run_down(look)
        return outcome_of([report_of(core)], end, is_traced=core.trace is not None)

    def _run_down(self, look: Look) -> None:
        while self._core.run(_LOOK_EVERY):
            look(shown_time(self._core.lab), self._core.events)

    def _end(self, until: float | None) -> float:
        if until is None:
            ends = [each for each in self._core.boundaries if each.normal[0] < 0 and not any(list(each.normal)[1:])]
            if not ends:
                raise UsageError("the run has no end", advice="say until when it runs, in lab time: run(until=100)")
            return float(min(each.offset / -each.normal.t for each in ends))
        if isinstance(until, bool) or not isinstance(until, int | float) or not abs(until) <= COORDINATE_MAX:
            raise UsageError(f"{shown(until)} isn't an end", advice="it's a lab time: run(until=100)")
        if until < 0:
            raise UsageError(f"a run can't end at {until:g}: it begins at 0", advice="give a lab time of 0 or later")
        return float(until)
