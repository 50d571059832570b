"""Placement against all assignments: every small case, random ones, long histories; and against another flow solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import cycle, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.soaking import later
from tests.world.brute import fewest_moves, try_all
from worldline.world.groups import Group, Mover, find_groups, place


def by_levels(levels: Mapping[str, tuple[str, ...]]) -> tuple[Group, ...]:
    """Return the groups of performers in these levels, all of them far apart."""
    nothing = (0.0, 0.0, 0.0)
    return find_groups(
        [
            Mover(name, (100.0 * number, 0.0, 0.0), nothing, 0.0, inside, True)
            for number, (name, inside) in enumerate(sorted(levels.items()))
        ],
        0,
    )


def check(groups: tuple[Group, ...], secondaries: list[str], after: dict[str, str]) -> None:
    """What holds for any distribution, whatever led to it."""
    for group in groups:
        assert {after[member] for member in group.members()} == {after[group.name]}
    performing = [group for group in groups if group.performers]
    held = Counter(level for group in performing for level in group.levels)
    assert all(count == 1 for count in held.values())  # One level, one group, and so one secondary.
    assert len({after[group.name] for group in performing}) == min(len(performing), len(secondaries))


def hosts(groups: Iterable[Group], after: dict[str, str]) -> dict[str, str]:
    """Return the secondary of each group."""
    return {group.name: after[group.name] for group in groups}


def moves(before: dict[str, str], after: dict[str, str]) -> int:
    """Return how many performers and entities change their secondary, or come to their first."""
    return sum(before.get(name) != where for name, where in after.items())


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 3])
def test_every_case_of_three_performers(count: int) -> None:
    """All groupings and former places, each with one of the changes in turn."""
    changed = cycle(("", "p", "q", "pr", "qr"))
    secondaries = [f"S{number}" for number in range(count)]
    for levels in product(("A", "B", "C", None), repeat=3):
        inside = {name: (level,) if level else () for name, level in zip("pqr", levels, strict=True)}
        groups = by_levels(inside)
        for places in product((None, *secondaries), repeat=3):
            before = {name: where for name, where in zip("pqr", places, strict=True) if where is not None}
            who = next(changed)
            after = place(groups, secondaries, before, who)
            assert hosts(groups, after) == try_all(groups, secondaries, before, who), (inside, before, who)


names = st.sampled_from("abcdefg")
levels_of = st.lists(st.sampled_from("KLMNO"), max_size=2, unique=True).map(lambda found: tuple(sorted(found)))


@settings(max_examples=50)
@given(
    st.dictionaries(names, levels_of, max_size=6),
    st.dictionaries(names, st.sampled_from("wxyz")),
    st.sets(names),
    st.integers(1, 4),
)
def test_any_affinities(
    levels: dict[str, tuple[str, ...]], affinities: dict[str, str], changed: set[str], count: int
) -> None:
    """Also those that no history leads to: they need more and longer paths."""
    secondaries = list("wxyz"[:count])
    before = {name: where for name, where in affinities.items() if where in secondaries}
    groups = by_levels(levels)
    after = place(groups, secondaries, before, changed)
    assert hosts(groups, after) == try_all(groups, secondaries, before, changed)
    check(groups, secondaries, after)


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=5), min_size=1, max_size=12), st.integers(1, 5))
def test_the_number_of_moves_by_another_solver(places: list[list[int]], count: int) -> None:
    """More groups than brute force can try, with performers from all over."""
    secondaries = [f"S{number}" for number in range(count)]
    groups = tuple(
        Group(f"{index:02}-0", tuple(f"{index:02}-{number}" for number in range(len(found))), (), (f"L{index}",))
        for index, found in enumerate(places)
    )
    before = {
        name: f"S{where % count}"
        for group, found in zip(groups, places, strict=True)
        for name, where in zip(group.performers, found, strict=True)
    }
    after = place(groups, secondaries, before)
    check(groups, secondaries, after)
    assert moves(before, after) == fewest_moves(groups, secondaries, before)


@pytest.mark.parametrize("seed", [0, *later(range(1, 21))])
def test_crowded_worlds_far_from_the_best(seed: int) -> None:
    """Many performers in few groups, anywhere: most of these need paths, some by way of several secondaries."""
    draw = Random(seed)
    for _ in range(20 if not seed else 1000):
        secondaries = list("wxyz"[: draw.randint(2, 4)])
        levels: dict[str, tuple[str, ...]] = {}
        for level in range(draw.randint(1, {2: 9, 3: 6, 4: 5}[len(secondaries)])):
            levels |= {f"p{level}{number}": (f"L{level}",) for number in range(draw.randint(1, 5))}
        before = {name: draw.choice(secondaries[: draw.randint(1, 4)]) for name in levels if draw.random() < 0.9}
        changed = [name for name in levels if draw.random() < 0.4]
        groups = by_levels(levels)
        after = place(groups, secondaries, before, changed)
        assert hosts(groups, after) == try_all(groups, secondaries, before, changed), (levels, before, changed)


class PlacementHistory(RuleBasedStateMachine):
    """A world whose performers wander between levels, come and go; brute force looks on while it is small enough."""

    @initialize(count=st.integers(1, 4), levels=st.dictionaries(names, levels_of, max_size=5))
    def start(self, count: int, levels: dict[str, tuple[str, ...]]) -> None:
        self.secondaries = list("wxyz"[:count])
        self.levels = levels
        self.affinities: dict[str, str] = {}
        self.look(set())

    def look(self, changed: set[str]) -> None:
        groups = by_levels(self.levels)
        after = place(groups[::-1], self.secondaries[::-1], dict(reversed(self.affinities.items())), changed)
        assert after == place(groups, self.secondaries, self.affinities, frozenset(changed))
        check(groups, self.secondaries, after)
        if len(self.secondaries) ** len(groups) <= 1024:
            assert hosts(groups, after) == try_all(groups, self.secondaries, self.affinities, changed)
        self.affinities = after
        assert place(groups, self.secondaries, self.affinities, changed) == self.affinities

    @rule(found=st.dictionaries(names, levels_of, min_size=1, max_size=3))
    def wander(self, found: dict[str, tuple[str, ...]]) -> None:
        moved = {name: inside for name, inside in found.items() if self.levels.get(name, inside) != inside}
        self.levels |= moved
        self.look(set(moved))

    @rule(found=st.dictionaries(names, levels_of, min_size=1, max_size=2))
    def come(self, found: dict[str, tuple[str, ...]]) -> None:
        new = {name: inside for name, inside in found.items() if name not in self.levels}
        self.levels |= new
        self.look(set(new))

    @rule(name=names)
    def go(self, name: str) -> None:
        self.levels.pop(name, None)
        self.look(set())


PlacementHistory.TestCase.settings = settings(max_examples=15, stateful_step_count=20)
TestPlacementHistory = PlacementHistory.TestCase


def test_a_long_history_of_a_large_world() -> None:
    """Performers crowd into a few of many levels and spread again, so that groups merge, split and make way."""
    secondaries = [f"S{number}" for number in range(12)]
    levels = {f"p{number:02}": (f"L{number * 7 % 20:02}",) for number in range(50)}
    affinities: dict[str, str] = {}
    met: Counter[int] = Counter()
    for step in range(40):
        crowd = 3 + abs(step % 20 - 10)
        changed = {f"p{(step * 13 + number * 11) % 50:02}": (f"L{(step + number) % crowd:02}",) for number in range(9)}
        levels |= changed
        groups = by_levels(levels)
        after = place(groups, secondaries, affinities, changed)
        check(groups, secondaries, after)
        if affinities:
            assert moves(affinities, after) == fewest_moves(groups, secondaries, affinities)
            met[len(groups)] += 1
        affinities = after
    assert min(met) < len(secondaries) < max(met)
