"""The central test: whatever the interleaving, the arbiter delivers exactly what the all-seeing oracle delivers.

Three sweeps over the same generator: Hypothesis, which shrinks a failure; seeded random worlds, which count what they
cover; and every interleaving of very small worlds. `make soak` runs the first two for a long time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.lock.harness import Harness
from tests.lock.oracle import Oracle
from tests.lock.worlds import World, make_tiny_world, make_world
from tests.soaking import later

# What a sweep must have met, for the test to mean something: at least this often per thousand worlds.
COVERAGE = {
    "publish": 8000,
    "advance": 6000,
    "advance served ahead": 2500,
    "next": 8000,
    "next served ahead": 3000,
    "peek": 4000,
    "peek served ahead": 1000,
    "promise": 1500,
    "break": 100,
    "subscribe": 1500,
    "subscribe that takes a grant back": 800,
    "next while holding messages": 10,
    "unsubscribe": 1000,
    "invite": 800,
    "stop": 400,
    "barrier": 800,
    "ended by the run's end": 800,
    "guest that came": 300,
    "guest that came too late": 20,
    "message delivered": 6000,
    "message to a late subscriber": 100,
    "message duplicated": 200,
    "message lost at the sender": 200,
    "message lost at the receiver": 200,
    "message sent into a partition or an endless hold": 30,
    "message dropped by a buffer": 400,
}


def compare(world: World, seed: int, seen: Counter[str]) -> None:
    """Run the world under one interleaving and compare everything with the oracle."""
    expected = Oracle(world).run()
    harness = Harness(world, Random(seed), seen)
    found = harness.run()
    assert found == expected
    seen.update(harness.met())


@given(st.randoms(use_true_random=False), st.integers(0, 2**32))
@settings(max_examples=20)
def test_the_lock_delivers_what_the_oracle_delivers(random: Random, seed: int) -> None:
    compare(make_world(random), seed, Counter())


@pytest.mark.soak
@given(st.randoms(use_true_random=False), st.integers(0, 2**32))
@settings(max_examples=5_000)
def test_soak_the_lock_delivers_what_the_oracle_delivers(random: Random, seed: int) -> None:
    compare(make_world(random), seed, Counter())


def sweep(first: int, count: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for number in range(first, first + count):
        world = make_world(Random(number))
        try:
            for interleaving in (2 * number, 2 * number + 1):
                compare(world, interleaving, seen)
        except BaseException:
            print(f"world {number}, to repeat: sweep({number}, 1)\n{world}")
            raise
    return seen


@pytest.mark.parametrize("first", [0, *later(range(200, 4000, 200))])
def test_seeded_worlds_agree_with_the_oracle_and_cover_every_operation(first: int) -> None:
    seen = sweep(first, 200)
    if first == 0:  # What 200 worlds cover varies: the first ones are known to cover everything.
        missing = {what: (seen[what], least) for what, least in COVERAGE.items() if seen[what] < least // 6}
        assert not missing


@pytest.mark.long
@pytest.mark.parametrize("first", [5000, *later([5100, 5200, 5300, 5400])])
def test_worlds_agree_with_the_oracle_when_nothing_is_kept_longer_than_it_must(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is void, lost or retained is cleared away now and then, which small worlds would never see.
    monkeypatch.setattr("worldline.lock.tuning.FORGET_EVERY", 1)
    monkeypatch.setattr("worldline.lock.tuning.TOPICS_KEPT", 0)
    monkeypatch.setattr("worldline.lock.tuning.GHOSTS_KEPT", 0)
    monkeypatch.setattr("worldline.lock.tuning.RIDERS_KEPT", 1)
    monkeypatch.setattr("worldline.lock.tuning.GONE_KEPT", 0)
    monkeypatch.setattr("worldline.lock.tuning.SLEEPERS_MAX", 1)
    monkeypatch.setattr("worldline.lock.tuning.FAN_IN_SMALL", 0)
    sweep(first, 100)


@pytest.mark.parametrize("first", [100_000, *later(range(100_150, 101_500, 150))])
def test_the_operator_ends_a_run_as_its_plan_would(first: int) -> None:
    """All rest at a time, and the run is ended there: the same history as with that end from the beginning."""
    seen: Counter[str] = Counter()
    for number in range(first, first + 150):
        world, random = make_world(Random(number)), Random(number)
        stop = random.choice((1, 3, 7, 15, 30, 60))
        end = stop if world.plan.end is None else min(stop, world.plan.end)
        expected = Oracle(World(replace(world.plan, end=end), world.members)).run()
        assert Harness(world, random, seen, stop=stop).run() == expected, f"world {number} stopped at {stop}"
    assert seen["stop by the operator"] > 35
    if first == 100_000:
        assert seen["stop by the operator when all had left"] > 0


@pytest.mark.parametrize("number", [*range(5), *later(range(5, 60))])
def test_every_interleaving_of_tiny_worlds_agrees_with_the_oracle(number: int) -> None:
    world = make_tiny_world(Random(number))
    expected = Oracle(world).run()
    choices: list[int] | None = []
    digests, interleavings = set(), 0
    while choices is not None and interleavings < 600:
        enumeration = Enumeration(choices)
        harness = Harness(world, enumeration, Counter(), check=False, barriers=False)
        assert harness.run() == expected, f"interleaving {choices} of\n{world}"
        digests.add(harness.digest)
        choices = enumeration.following()
        interleavings += 1
    assert len(digests) == 1


class Enumeration(Random):
    """Answers `choice` from a given list, and knows the next list in depth-first order. Frames are never held back."""

    def __init__(self, choices: list[int]) -> None:
        super().__init__(0)
        self._choices = choices
        self._taken: list[tuple[int, int]] = []

    def choice(self, options):  # type: ignore[no-untyped-def, override]
        place = len(self._taken)
        taken = self._choices[place] if place < len(self._choices) else 0
        self._taken.append((taken, len(options)))
        return options[taken]

    def random(self) -> float:
        return 0.0

    def following(self) -> list[int] | None:
        taken = list(self._taken)
        while taken:
            choice, of = taken.pop()
            if choice + 1 < of:
                return [*(earlier for earlier, _ in taken), choice + 1]
        return None


@pytest.mark.soak
@pytest.mark.parametrize("part", range(2))
def test_soak_many_worlds(part: int, record_property: Callable[[str, object], None]) -> None:
    count = int(os.environ.get("WORLDLINE_WORLDS", "50000"))
    seen = sweep(1_000_000 + part * 10**9, count)
    record_property("summary", {"federations": count, **seen})  # Added up and printed when all parts are done.
