"""Tries algorithms on many seeds, as tests do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import structs

from worldline.nodes.algorithm import Algorithm
from worldline.nodes.node import Node
from worldline.nodes.scheduler import Scheduler
from worldline.nodes.topology import Topology
from worldline.nodes.trial import Trial
from worldline.search.properties import Property, Violation


def tried(algorithm: Algorithm, seed: int, topology: str | Topology | None = None, **options: Any) -> Scheduler:
    """Run an algorithm, properties and all, and return the run; a failure is raised."""
    trial = Trial(algorithm=algorithm, topology=topology, seed=seed, **options)
    run = trial.scheduler()
    run.run(trial.end(), events_max=trial.events_max)
    return run


def tried_all(algorithm: Algorithm, seeds: Iterable[int], **options: Any) -> None:
    for seed in seeds:
        tried(algorithm, seed, **options)


def violated(algorithm: Algorithm, node: type[Node], only: Property, seed: int = 0, **options: Any) -> str:
    """Run a node that is wrong, watched by one property, and return why that doesn't hold; for a right one it does."""
    right = structs.replace(algorithm, properties=(only,))
    tried(right, seed, **options)
    with pytest.raises(Violation, match=re.escape(only.text)) as caught:
        tried(structs.replace(right, node=node), seed, **options)
    return str(caught.value)


def noticed(
    algorithm: Algorithm, node: type[Node], text: str, reason: str, seeds: Iterable[int] = (0,), **options: Any
) -> None:
    """See that the properties with a text in them notice a node that is wrong, on one of the seeds, for a reason.

    Others may notice as well, and earlier.
    """
    judges = tuple(each for each in algorithm.properties if text in each.text)
    with pytest.raises(Violation, match=reason):
        tried_all(structs.replace(algorithm, node=node, properties=judges), seeds, **options)
