"""Random models happen on Worldline's SimPy as on SimPy itself, event by event."""

from __future__ import annotations

import pytest
import simpy

import worldline.simpy as ours
from tests.simpy.random_models import RandomModel

MODELS, MODELS_OF_SOAK = 150, 10_000


def compare(number: int) -> int:
    """Compare one model, untraced and traced; return how many events it had."""
    digests = []
    for is_traced in (False, True):
        expected = RandomModel(simpy, number, is_traced=is_traced).run()
        model = RandomModel(ours, number, is_traced=is_traced)
        assert model.run() == expected, f"model {number}, traced: {is_traced}"
        digests.append(model.env.digest)
    assert digests[0] == digests[1], f"model {number}: the digest depends on whether it is traced"
    return int(model.env.events_processed)


def test_random_models() -> None:
    assert sum(map(compare, range(MODELS))) > 20 * MODELS


@pytest.mark.soak
def test_very_many_random_models(record_property: pytest.RecordProperty) -> None:
    events = sum(map(compare, range(MODELS, MODELS + MODELS_OF_SOAK)))
    record_property("summary", {"random SimPy models": MODELS_OF_SOAK, "events of random SimPy models": events})
