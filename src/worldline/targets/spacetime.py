"""Simulations of agents in spacetime, ready to run."""

from __future__ import annotations

from math import isfinite

from worldline.files.loading import Definition
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Watch
from worldline.model.errors import UsageError
from worldline.model.plan import Plan
from worldline.processes.executor import as_executor
from worldline.spacetime.loading import check_handed_on, example_of
from worldline.spacetime.outcome import SpacetimeOutcome
from worldline.spacetime.simulation import EXECUTORS, ForwardSimulation
from worldline.targets.ready import ReadyMade, RunOptions


class ReadySpacetime(ReadyMade[ForwardSimulation]):
    """Agents that can be run until a lab time."""

    kind = "spacetime"
    members = ("agent", "agents")

    def __init__(self, found: Definition, simulation: ForwardSimulation, end: float) -> None:
        super().__init__(found, simulation, simulation.executor)
        self._end = end

    def plan(self) -> Plan:
        return self.simulation.plan(self._end)

    def run(self, observer: Observer | None = None, watch: Watch | None = None) -> SpacetimeOutcome:
        return self.simulation.run(until=self._end, observer=observer if self.is_main else None, watch=watch)

    def extent(self, outcome: Outcome) -> str:
        return f"{self._end:g} of lab time"


def ready(found: Definition, simulation: ForwardSimulation, options: RunOptions) -> ReadySpacetime:
    """Take a simulation that was made, and what is said of its run."""
    check_handed_on(found.where, simulation, options.seed)
    if options.executor is not None:
        simulation.executor = as_executor(options.executor, EXECUTORS)
    return ReadySpacetime(found, simulation, _end(found, options.until))


def _end(found: Definition, said: str | None) -> float:
    if said is None:
        end = example_of(found).until
        if end is None:
            raise UsageError(f"{found.where} doesn't say when it ends", advice="use --until, or write UNTIL = 100.0")
        return end
    try:
        end = float(said)
    except ValueError:
        end = float("nan")
    if not isfinite(end):
        raise UsageError(f"a run can't end at {said}", advice="give a lab time: --until 100")
    return end
