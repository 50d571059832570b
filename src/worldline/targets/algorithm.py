"""Distributed algorithms, ready to run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from worldline.history.observer import Observer
from worldline.history.outcome import Outcome
from worldline.history.status import Watch
from worldline.loading.parameters import parsed
from worldline.model.errors import ModelError, WorldlineError
from worldline.model.links import Network
from worldline.model.plan import Plan
from worldline.model.reading import as_time
from worldline.model.time import format_time
from worldline.nodes.ends import name_of
from worldline.nodes.testimony import testify
from worldline.nodes.trial import Trial
from worldline.targets.ready import Options
from worldline.workers.executor import Inline, as_executor


class ReadyTrial:
    """A trial that can be run."""

    kind = "nodes"
    members = "nodes"
    executor = "inline"
    is_main = True

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self.name = trial.algorithm.name
        self.seed = trial.seed

    def plan(self) -> Plan:
        number = self._trial.graph().num_nodes
        names = tuple(name_of(node, number) for node in range(number))
        return Plan(roster=names, network=Network(default=self._trial.link()), seed=self.seed, end=self._trial.end())

    def run(self, observer: Observer | None = None, watch: Watch | None = None) -> Outcome:
        scheduler = self._trial.scheduler(trace=observer is not None)
        failure: WorldlineError | None = None
        try:
            scheduler.run(self._trial.end(), events_max=self._trial.events_max, watch=watch)
        except ModelError as error:
            failure = error
        if observer is not None:
            testify(scheduler, observer)
            if failure is not None:
                observer.passed(scheduler.now + 2)
        result = scheduler.result()
        return Outcome(
            digest=result.digest,
            now=scheduler.now,
            events=result.events,
            members=result.members,
            dropped=result.dropped,
            failure=failure,
        )

    def extent(self, outcome: Outcome) -> str:
        return format_time(outcome.now)

    def told(self, outcome: Outcome) -> list[str]:
        return [f"holds {each}" for each in self._trial.algorithm.properties]


def ready(
    trial: Trial, texts: Mapping[str, str], options: Options, others: Mapping[str, Any] | None = None
) -> ReadyTrial:
    """Take a trial, and what is said of its run; `others` are parameters of what has made it, which are set."""
    if options.executor is not None:
        as_executor(options.executor, (Inline,))
    algorithm = trial.algorithm
    settings = parsed(algorithm.name, {**(others or {}), **algorithm.parameters()}, texts)
    return ReadyTrial(
        structs.replace(
            trial,
            seed=trial.seed if options.seed is None else options.seed,
            until=trial.until if options.until is None else as_time(options.until, "the end"),
            parameters={**trial.parameters, **settings},
        )
    )
