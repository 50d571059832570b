"""Tries algorithms on many seeds, as tests do."""

from __future__ import annotations

from typing import Any

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.trial import Trial


def tried(algorithm: Algorithm, seed: int, topology: str | None = None, **options: Any) -> Scheduler:
    """Run an algorithm, properties and all, and return the run; a failure is raised."""
    trial = Trial(algorithm=algorithm, topology=topology, seed=seed, **options)
    run = trial.scheduler()
    run.run(trial.end(), events_max=trial.events_max)
    return run
