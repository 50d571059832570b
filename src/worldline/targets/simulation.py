"""Simulations of the kernel, ready to run."""

from __future__ import annotations

from worldline.files.loading import Definition
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Watch
from worldline.kernel.simulation import EXECUTORS, Simulation
from worldline.model.errors import ConfigurationError
from worldline.model.plan import Plan
from worldline.model.time import rounded_time
from worldline.processes.executor import Executor, as_executor
from worldline.targets.ready import ReadyMade, RunOptions, end_in, end_of


class ReadySimulation(ReadyMade[Simulation]):
    """A simulation that can be run, until `end` or as long as anything happens."""

    kind = "kernel"
    members = ("entity", "entities")

    def __init__(self, found: Definition, simulation: Simulation, chosen: Executor, end: int | None) -> None:
        super().__init__(found, simulation, chosen)
        self._end = end

    def plan(self) -> Plan:
        return self.simulation.plan(self._end)

    def run(self, observer: Observer | None = None, watch: Watch | None = None) -> Outcome:
        return self.simulation.run(self._end, executor=self.chosen, observer=observer, watch=watch)

    def extent(self, outcome: Outcome) -> str:
        return rounded_time(outcome.now)


def ready(found: Definition, simulation: Simulation, options: RunOptions) -> ReadySimulation:
    """Take a simulation that was made, and what is said of its run."""
    chosen = as_executor(options.executor or "inline", EXECUTORS)
    if options.seed is not None and simulation.seed != options.seed:
        raise ConfigurationError(
            f"{found.where}: its model doesn't pass on its seed",
            advice="write def model(*, seed=0), and Simulation(seed=seed) in it",
        )
    end = end_in(found) if options.until is None else end_of(options)
    return ReadySimulation(found, simulation, chosen, end)
