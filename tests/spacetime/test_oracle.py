"""The central test of spacetime: every agent's history is the one that the all-seeing oracle finds."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.soaking import later
from tests.spacetime.oracle import Happening, NearTie, Oracle
from tests.spacetime.worlds import World, make_world, simulate
from worldline.model.errors import Stuck
from worldline.spacetime import AgentRecord, Shuffled, SpacetimeOutcome
from worldline.spacetime.causality import check

# What a sweep must have met, for the test to mean something: at least this often in a hundred worlds.
COVERAGE = {
    "world": 95,
    "1 dimensions": 8,
    "2 dimensions": 20,
    "3 dimensions": 8,
    "4 dimensions": 8,
    "world without R and c": 10,
    "absorbed Actor.hear": 700,
    "absorbed Actor.meet": 50,
    "absorbed attach": 15,
    "timer": 400,
    "crossed a wall": 60,
    "died": 50,
    "born by another": 80,
}

_KINDS = ("born", "absorbed", "timer", "crossed", "died", "ended")


def told(result: SpacetimeOutcome) -> dict[str, list[AgentRecord]]:
    stories: dict[str, list[AgentRecord]] = {}
    for record in result.records:
        if record.kind in _KINDS:
            stories.setdefault(record.agent, []).append(record)
    for story in stories.values():
        story.sort(key=lambda record: record.number)
    return stories


def foretold(world: World) -> tuple[World, dict[str, list[Happening]]]:
    """Return what the oracle says, until just before it can't tell what is first."""
    while True:
        try:
            return world, Oracle(world).run()
        except NearTie as tie:
            world = world.until_before(tie.lab)


def compare(world: World, seen: Counter[str], shuffles: int = 3) -> None:
    world, expected = foretold(world)
    try:
        result = simulate(world)
    except Stuck:
        assert not world.has_lookahead
        seen["world in which agents meet without R and c"] += 1
        return
    found = told(result)
    assert found.keys() == expected.keys()
    for name, story in expected.items():
        for happening, record in zip(story, found[name], strict=False):
            what = happening.what if happening.kind != "crossed" else record.what
            assert (record.kind, record.channel, record.order, record.what) == (
                happening.kind,
                happening.channel,
                happening.order,
                what,
            ), f"{name}: {record} instead of {happening}"
            assert record.at == pytest.approx(happening.at, rel=1e-7, abs=1e-7), f"{name}: {record}"
            seen[f"{record.kind} {record.what}".strip() if record.kind == "absorbed" else record.kind] += 1
            seen["crossed a wall"] += record.kind == "crossed" and not record.what.startswith("the end")
            seen["born by another"] += record.kind == "born" and record.peer != ""
        assert len(story) == len(found[name]), f"{name}: {found[name][len(story) :]} {story[len(found[name]) :]}"
    verdict = check(result.records, world.space, world.field)
    assert verdict.is_clean, str(verdict)
    seen["lambdas checked"] += verdict.absorbed
    for shuffle in range(shuffles):
        assert simulate(world, Shuffled(shuffle), trace=False).digest == result.digest, f"shuffle {shuffle}"
    seen["world"] += 1
    seen[f"{world.n} dimensions"] += 1
    seen["world without R and c"] += not world.has_lookahead


def sweep(first: int, count: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for number in range(first, first + count):
        world = make_world(Random(number))
        try:
            compare(world, seen)
        except BaseException:
            print(f"world {number}, to repeat: sweep({number}, 1)\n{world}")
            raise
    return seen


@given(st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_agents_live_through_what_the_oracle_foretells(random: Random) -> None:
    compare(make_world(random), Counter())


@pytest.mark.soak
@given(st.randoms(use_true_random=False))
@settings(max_examples=1_000)
def test_soak_agents_live_through_what_the_oracle_foretells(random: Random) -> None:
    compare(make_world(random), Counter())


@pytest.mark.long
@pytest.mark.parametrize("first", [0, 100, *later([200, 300])])
def test_seeded_worlds_agree_with_the_oracle_and_cover_everything(first: int) -> None:
    seen = sweep(first, 100)
    missing = {what: (seen[what], least) for what, least in COVERAGE.items() if seen[what] < least // 2}
    assert not missing


@pytest.mark.parametrize("number", [30028])
def test_worlds_that_have_failed_before_agree_with_the_oracle(number: int) -> None:
    assert sweep(number, 1)["world"] == 1


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 41000, 1000))
def test_many_worlds_agree_with_the_oracle(first: int, record_property: pytest.RecordProperty) -> None:
    record_property("summary", dict(sweep(first, 1000)))
