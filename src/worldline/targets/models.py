"""Kernel simulations, distributed algorithms and agents in spacetime, ready to run: one class, and how each is made so.

Each room is loaded where it is used: a run needs few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from worldline.files.loading import Definition, parsed
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Watch
from worldline.model.errors import ConfigurationError, UsageError
from worldline.model.plan import Plan
from worldline.model.time import rounded_time
from worldline.processes.executor import Executor, as_executor
from worldline.targets.ready import Ready, RunOptions, end_in, end_of

if TYPE_CHECKING:
    from worldline.kernel.simulation import Simulation
    from worldline.nodes.trial import Trial
    from worldline.spacetime.simulation import ForwardSimulation

_MEMBERS = {"kernel": ("entity", "entities"), "nodes": ("node", "nodes"), "spacetime": ("agent", "agents")}
_INLINE = "inline"


class ReadyModel(Ready):
    """A model that can be run in this program and its workers. `kind` is its room; the functions are that room's.

    `run` takes an observer and a watch. `judge` refuses what may not come of it, and returns what there is to say.
    `lab_time` is until when it runs, if that isn't in seconds.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        seed: int,
        chosen: Executor,
        *,
        plan: Callable[[], Plan],
        run: Callable[[Observer | None, Watch | None], Outcome],
        judge: Callable[[Outcome], list[str]],
        lab_time: float | None = None,
    ) -> None:
        self.kind, self.members = kind, _MEMBERS[kind]
        self.name = name
        self.seed = seed
        self.chosen = chosen
        self._functions = plan, run, judge
        self._lab_time = lab_time

    def plan(self) -> Plan:
        return self._functions[0]()

    def run(self, observer: Observer | None = None, watch: Watch | None = None) -> Outcome:
        return self._functions[1](observer, watch)

    def verify(self, outcome: Outcome) -> list[str]:
        return self._functions[2](outcome)

    def extent(self, outcome: Outcome) -> str:
        return rounded_time(outcome.now) if self._lab_time is None else f"{self._lab_time:g} of lab time"


def ready_simulation(found: Definition, simulation: Simulation, options: RunOptions) -> ReadyModel:
    """Take a kernel simulation that a definition has made; it runs until its end, or as long as anything happens."""
    from worldline.kernel.simulation import EXECUTORS

    chosen = as_executor(options.executor or _INLINE, EXECUTORS)
    if options.seed is not None and simulation.seed != options.seed:
        raise ConfigurationError(
            f"{found.where}: its model doesn't pass on its seed",
            advice="write def model(*, seed=0), and Simulation(seed=seed) in it",
        )
    end = end_in(found) if options.until is None else end_of(options)
    return ReadyModel(
        "kernel",
        found.name,
        simulation.seed,
        chosen,
        plan=lambda: simulation.plan(end),
        run=lambda observer, watch: simulation.run(end, executor=chosen, observer=observer, watch=watch),
        judge=lambda outcome: found.judged(simulation, outcome).splitlines(),
    )


def ready_algorithm(
    trial: Trial, texts: Mapping[str, str], options: RunOptions, others: Mapping[str, Any] | None = None
) -> ReadyModel:
    """Take a trial, and what is said of its run; `others` are parameters of what has made it, which are set."""
    from worldline.kernel.simulation import EXECUTORS

    chosen = as_executor(options.executor or _INLINE, EXECUTORS)
    algorithm = trial.algorithm
    settings = parsed(algorithm.name, {**(others or {}), **algorithm.parameters()}, texts)
    return ready_trial(
        replace(
            trial,
            seed=trial.seed if options.seed is None else options.seed,
            until=trial.until if options.until is None else end_of(options),
            parameters={**trial.parameters, **settings},
        ),
        chosen,
    )


def ready_trial(trial: Trial, chosen: Executor) -> ReadyModel:
    """Take a trial as it is."""
    from worldline.search.searching import TrialOutcome

    def judge(outcome: Outcome) -> list[str]:
        unseen = outcome.unseen if isinstance(outcome, TrialOutcome) else ()
        return [f"holds {each}" for each in trial.algorithm.properties if str(each) not in unseen]

    return ReadyModel(
        "nodes",
        trial.algorithm.name,
        trial.seed,
        chosen,
        plan=trial.plan,
        run=lambda observer, watch: trial.run(executor=chosen, observer=observer, watch=watch),
        judge=judge,
    )


def ready_agents(found: Definition, simulation: ForwardSimulation, options: RunOptions) -> ReadyModel:
    """Take a simulation of agents that a definition has made, and what is said of its run."""
    from worldline.spacetime.loading import check_handed_on, example_of
    from worldline.spacetime.simulation import EXECUTORS

    check_handed_on(found.where, simulation, options.seed)
    if options.executor is not None:
        simulation.executor = as_executor(options.executor, EXECUTORS)
    end = example_of(found).until if options.until is None else _lab_time(options.until)
    if end is None:
        raise UsageError(f"{found.where} doesn't say when it ends", advice="use --until, or write UNTIL = 100.0")
    return ready_spacetime(found, simulation, end)


def _lab_time(text: str) -> float:
    try:
        end = float(text)
    except ValueError:
        end = float("nan")
    if not isfinite(end):
        raise UsageError(f"a run can't end at {text}", advice="give a lab time: --until 100")
    return end


def ready_spacetime(found: Definition, simulation: ForwardSimulation, end: float) -> ReadyModel:
    """Take a simulation of agents as it is, until a lab time."""
    chosen = simulation.executor

    def run(observer: Observer | None, watch: Watch | None) -> Outcome:
        return simulation.run(until=end, observer=observer if chosen.is_main else None, watch=watch)

    return ReadyModel(
        "spacetime",
        found.name,
        simulation.seed,
        chosen,
        plan=lambda: simulation.plan(end),
        run=run,
        judge=lambda outcome: found.judged(simulation, outcome).splitlines(),
        lab_time=end,
    )
