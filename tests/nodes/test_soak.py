"""Every algorithm on many seeds, as it is and with the faults that it claims to stand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from worldline.nodes.algorithms import NAMES, find
from worldline.nodes.faults import parse_kinds
from worldline.nodes.trial import Trial, search

SEEDS = range(10_000, 11_000)  # Others than those that the short tests try.


@pytest.mark.soak
@pytest.mark.parametrize("disturbed", [False, True], ids=["calm", "claimed"])
@pytest.mark.parametrize("name", NAMES)
def test_it_holds(name: str, disturbed: bool, record_property: Callable[[str, object], None]) -> None:
    algorithm = find(name)
    report = search(Trial(algorithm=algorithm, kinds=parse_kinds(algorithm.faults) if disturbed else {}), SEEDS)
    assert report.failure is None, f"seed {report.failure.seed}: {report.failure.failure}"
    record_property("summary", {"events": report.events, "faults": report.faults, "seeds": report.tried})
