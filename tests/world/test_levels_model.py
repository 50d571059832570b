"""Levels against a naive model: long random histories, with numbers that meet at edges all the time."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.world.plain import PlainLevel
from worldline.world.levels import Levels
from worldline.world.pose import Vector as Point

ENTITIES = [f"e{number}" for number in range(5)]

# Tenths aren't doubles, so edges that should meet miss each other by a bit; next to each there are its neighbors.
coordinates = st.builds(
    lambda tenths, nudge: tenths / 10 if not nudge else nextafter(tenths / 10, nudge * inf),
    st.integers(-12, 12),
    st.sampled_from([0, 0, 0, -1, 1]),
)
lengths = st.integers(0, 12).map(lambda tenths: tenths / 10)
points = st.tuples(coordinates, st.sampled_from([0.0, 0.0, 0.5]), st.just(0.0))
sizes = st.tuples(lengths, st.sampled_from([0.1, 0.3]), st.just(0.1))
level_lists = st.lists(
    st.builds(
        PlainLevel,
        st.sampled_from("ABCDEFG"),
        points,
        st.tuples(lengths, st.sampled_from([0.5, 2.0]), st.just(1.0)),
        st.sampled_from([0.0, 0.1, 0.3, 0.7]),
        st.lists(st.sampled_from(ENTITIES), max_size=3, unique=True).map(tuple),
    ),
    max_size=5,
    unique_by=lambda level: level.name,
)
names = st.sampled_from("pqrs")


def touches(level: PlainLevel, buffer: float, size: Point, position: Point) -> bool:
    return all(
        abs(Fraction(at) - Fraction(center)) * 2 <= Fraction(length) + Fraction(width) + 2 * Fraction(buffer)
        for at, center, length, width in zip(position, level.center, level.size, size, strict=True)
    )


class NaiveLevels:
    """The rules at the head of `levels`, by sets, from scratch in every step."""

    def __init__(self, levels: list[PlainLevel]) -> None:
        self.levels = levels
        self.sizes: dict[str, Point] = {}
        self.positions: dict[str, Point] = {}
        self.inside: set[tuple[str, str]] = set()

    def look(self) -> tuple[set[tuple[str, str]], set[str], set[str]]:
        active = {level for _, level in self.inside}
        loaded = set(ENTITIES).difference(*(level.entities for level in self.levels))
        return self.inside, active, loaded.union(*(level.entities for level in self.levels if level.name in active))

    def settle(self, before: set[tuple[str, str]]) -> None:
        self.inside = {
            (name, level.name)
            for name, position in self.positions.items()
            for level in self.levels
            if touches(level, 0.0, self.sizes[name], position)
            or ((name, level.name) in before and touches(level, level.buffer, self.sizes[name], position))
        }

    def update(
        self, positions: dict[str, Point], added: dict[str, tuple[Point, Point]], removed: list[str]
    ) -> tuple[str, ...]:
        inside = self.inside
        for name in removed:
            del self.sizes[name], self.positions[name]
        self.positions |= positions
        for name, (size, position) in added.items():
            self.sizes[name], self.positions[name] = size, position
        self.settle({pair for pair in inside if pair[0] not in removed})
        return tuple(sorted({name for name, _ in inside ^ self.inside}))


class LevelHistory(RuleBasedStateMachine):
    @initialize(levels=level_lists, reversal=st.booleans())
    def start(self, levels: list[PlainLevel], reversal: bool) -> None:
        self.naive = NaiveLevels(levels)
        self.levels = Levels(levels[::-1] if reversal else levels, ENTITIES[::-1] if reversal else ENTITIES)

    def both(self, positions: dict[str, Point], added: dict[str, tuple[Point, Point]], removed: list[str]) -> None:
        backwards = dict(reversed(positions.items()))
        assert self.levels.update(backwards, added=added, removed=removed) == self.naive.update(
            positions, added, removed
        )

    @rule(found=st.dictionaries(names, points, min_size=1), everybody=points, together=st.booleans())
    def step(self, found: dict[str, Point], everybody: Point, together: bool) -> None:
        positions = {name: everybody if together else found.get(name) for name in self.naive.positions}
        self.both({name: position for name, position in positions.items() if position is not None}, {}, [])

    @rule(added=st.dictionaries(names, st.tuples(sizes, points), min_size=1), moved=points)
    def come(self, added: dict[str, tuple[Point, Point]], moved: Point) -> None:
        new = {name: each for name, each in added.items() if name not in self.naive.positions}
        self.both(dict.fromkeys(self.naive.positions, moved), new, [])

    @precondition(lambda self: self.naive.positions)
    @rule(index=st.integers(0, 3), successor=st.none() | st.tuples(sizes, points))
    def go(self, index: int, successor: tuple[Point, Point] | None) -> None:
        name = sorted(self.naive.positions)[index % len(self.naive.positions)]
        self.both({}, {name: successor} if successor else {}, [name])

    @invariant()
    def same(self) -> None:
        if hasattr(self, "naive"):
            inside, active, loaded = self.naive.look()
            assert {(name, level) for name in self.levels.performers() for level in self.levels.of(name)} == inside
            assert self.levels.performers() == tuple(sorted(self.naive.positions))
            assert (self.levels.active(), self.levels.loaded()) == (tuple(sorted(active)), tuple(sorted(loaded)))


LevelHistory.TestCase.settings = settings(max_examples=15, stateful_step_count=20)
TestLevelHistory = LevelHistory.TestCase


@given(level_lists, st.lists(st.tuples(sizes, points), max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_the_input_never_shows(
    levels: list[PlainLevel], performers: list[tuple[Point, Point]], shuffler: Any
) -> None:
    """Names, positions and levels come in any order; the answer, which is all tuples, is one."""
    added = {f"p{number}": each for number, each in enumerate(performers)}

    def told() -> list[Any]:
        shuffled = Levels(shuffler.sample(levels, len(levels)), shuffler.sample(ENTITIES, len(ENTITIES)))
        first = shuffled.update({}, added=dict(shuffler.sample(sorted(added.items()), len(added))))
        moves = {name: (x + 0.1, y, z) for name, (_, (x, y, z)) in shuffler.sample(sorted(added.items()), len(added))}
        return [first, shuffled.update(moves), shuffled.update({}, removed=shuffler.sample(sorted(added), len(added)))]

    assert told() == told() == told()
