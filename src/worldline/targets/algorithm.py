"""Distributed algorithms, ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from worldline.files.parameters import parsed
from worldline.history.observer import Observer
from worldline.history.outcome import Outcome, Watch
from worldline.kernel.simulation import EXECUTORS
from worldline.model.plan import Plan
from worldline.model.time import rounded_time
from worldline.nodes.trial import Trial
from worldline.processes.executor import Executor, as_executor
from worldline.search.searching import TrialOutcome
from worldline.targets.ready import Ready, RunOptions, end_of


class ReadyTrial(Ready):
    """A trial that can be run."""

    kind = "nodes"
    members = ("node", "nodes")

    def __init__(self, trial: Trial, chosen: Executor) -> None:
        self._trial = trial
        self.name = trial.algorithm.name
        self.seed = trial.seed
        self.chosen = chosen

    def plan(self) -> Plan:
        return self._trial.plan()

    def run(self, observer: Observer | None = None, watch: Watch | None = None) -> Outcome:
        return self._trial.run(executor=self.chosen, observer=observer, watch=watch)

    def extent(self, outcome: Outcome) -> str:
        return rounded_time(outcome.now)

    def verify(self, outcome: Outcome) -> list[str]:
        unseen = outcome.unseen if isinstance(outcome, TrialOutcome) else ()
        return [f"holds {each}" for each in self._trial.algorithm.properties if str(each) not in unseen]


def ready(
    trial: Trial, texts: Mapping[str, str], options: RunOptions, others: Mapping[str, Any] | None = None
) -> ReadyTrial:
    """Take a trial, and what is said of its run; `others` are parameters of what has made it, which are set."""
    chosen = as_executor(options.executor or "inline", EXECUTORS)
    algorithm = trial.algorithm
    settings = parsed(algorithm.name, {**(others or {}), **algorithm.parameters()}, texts)
    return ReadyTrial(
        structs.replace(
            trial,
            seed=trial.seed if options.seed is None else options.seed,
            until=trial.until if options.until is None else end_of(options),
            parameters={**trial.parameters, **settings},
        ),
        chosen,
    )
