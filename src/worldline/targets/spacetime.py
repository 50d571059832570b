"""Simulations of agents in spacetime, ready to run."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from worldline.history.observer import Observer
from worldline.history.outcome import Outcome
from worldline.history.status import Watch
from worldline.loading.definition import Definition
from worldline.model.errors import UsageError
from worldline.model.plan import Plan
from worldline.spacetime.loading import check_handed_on, example_of
from worldline.spacetime.nanoseconds import nanoseconds
from worldline.spacetime.simulation import EXECUTORS, ForwardSimulation
from worldline.spacetime.told import check_end
from worldline.targets.ready import Options
from worldline.workers.executor import as_executor


@dataclass(kw_only=True)
class ReadySpacetime:
    """Agents that can be run until a lab time."""

    found: Definition
    simulation: ForwardSimulation
    end: float

    kind = "spacetime"
    members = ("agent", "agents")

    @property
    def name(self) -> str:
        return self.found.name

    @property
    def seed(self) -> int:
        return self.simulation.seed

    @property
    def executor(self) -> str:
        return str(self.simulation.executor)

    @property
    def is_main(self) -> bool:
        return self.simulation.is_main

    def plan(self) -> Plan:
        check_end(self.end)
        return Plan(roster=tuple(self.simulation.agents), seed=self.seed, end=nanoseconds(self.end))

    def run(self, observer: Observer | None = None, watch: Watch | None = None) -> Outcome:
        return self.simulation.run(until=self.end, observer=observer if self.is_main else None, watch=watch)

    def extent(self, outcome: Outcome) -> str:
        return f"{self.end:g} of lab time"

    def told(self, outcome: Outcome) -> list[str]:
        return self.found.judged(self.simulation, outcome).splitlines()


def ready(found: Definition, simulation: ForwardSimulation, options: Options) -> ReadySpacetime:
    """Take a simulation that was made, and what is said of its run."""
    executor = None if options.executor is None else as_executor(options.executor, EXECUTORS)
    check_handed_on(found.where, simulation, executor, options.seed, trace=False)
    return ReadySpacetime(found=found, simulation=simulation, end=_end(found, options.until))


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
