"""Whatever befalls participants, in any interleaving, the lock delivers what an all-seeing oracle delivers."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lock.fated import FatedHarness, FatedOracle, make_fated_world
from tests.lock.oracle import History
from tests.soaking import later
from worldline.history.observer import DOWN
from worldline.lock.arbiter import DROPPED_BY_BUFFER, NEVER_TAKEN
from worldline.model import FOREVER
from worldline.model.links import ESTOP_TOPIC


def compare(number: int | Random, seed: int, seen: Counter[str]) -> None:
    world, fates = make_fated_world(number if isinstance(number, Random) else Random(number))
    expected = FatedOracle(world, fates).run()
    harness = FatedHarness(world, fates, Random(seed), seen)
    found = harness.run()
    assert {name: comparable(each) for name, each in found.items()} == {
        name: comparable(each) for name, each in expected.items()
    }, f"world {number}: {fates}\n{world}"

    told = harness.onlooker.fates(world.plan.end or FOREVER)
    for name, history in found.items():
        compare_with_told(history, told.get(name, {}), f"world {number}, {name}: {fates}\n{world}")


def compare_with_told(
    history: History, told: dict[tuple[int, int, str, int, int, str], str | None], world: str
) -> None:
    """Whoever looks on sees as lost what was lost while a receiver was down, and as arrived what it got, at least."""
    arrived = {key for key, lost in told.items() if lost is None and key[5] != ESTOP_TOPIC}
    received = {message[:6] for _, message in history.received}
    assert received <= arrived, world
    not_given = Counter(key[5] for key in arrived - received)
    lost = Counter(key[5] for key, reason in told.items() if reason == DOWN)
    for (topic, reason), count in history.dropped.items():
        if reason == DOWN:
            lost[topic] -= count
        elif reason in (DROPPED_BY_BUFFER, NEVER_TAKEN):
            not_given[topic] -= count
    assert not any(lost.values()), world
    assert not any(not_given.values()), world


def comparable(history: History) -> tuple[object, ...]:
    reasons = (DROPPED_BY_BUFFER, DOWN, NEVER_TAKEN)
    ungiven = {what: count for what, count in history.dropped.items() if what[1] in reasons}
    return history.received, history.sent, history.left, ungiven


@given(st.randoms(use_true_random=False), st.integers(0, 2**32))
@settings(max_examples=20)
def test_faults_do_what_the_oracle_says(random: Random, seed: int) -> None:
    compare(random, seed, Counter())


@pytest.mark.parametrize("number", [4769])
def test_a_world_in_which_a_fault_was_found(number: int) -> None:
    """What has arrived with an emergency stop comes with the next call at once, and may be answered at once."""
    compare(number, 2 * number, Counter())


@pytest.mark.parametrize("first", [0, *later(range(100, 8000, 100))])
def test_seeded_worlds_with_faults_agree_with_the_oracle(first: int) -> None:
    seen: Counter[str] = Counter()
    count = 100 if first else 50
    for number in range(first, first + count):
        for interleaving in (2 * number, 2 * number + 1):
            compare(number, interleaving, seen)
    assert seen["crash"] > 0.4 * count
    assert seen["crash for good"] > 0.04 * count
    assert seen["wait made of several"] > 0.4 * count
    assert seen["told of an emergency stop"] > 0.2 * count
    assert seen["send that waits for a period"] > 0.2 * count
