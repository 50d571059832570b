"""Groups: who shares a level, who could touch, and that neither rounding nor order shows."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.errors import ModelError
from worldline.model.time import MS, SECOND
from worldline.world.groups import Group, Mover, find_groups


def robot(name: str, x: float, levels: str = "", speed: float = 1.0) -> Mover:
    return Mover(name, (x, 0.0, 0.0), (0.5, 0.5, 0.5), speed, tuple(levels.split()), True)


def box(name: str, x: float, levels: str = "", speed: float = 0.0) -> Mover:
    return Mover(name, (x, 0.0, 0.0), (0.5, 0.5, 0.5), speed, tuple(levels.split()))


def members(movers: list[Mover], span_ns: int = 0) -> list[str]:
    return [" ".join(sorted(group.members())) for group in find_groups(movers, span_ns)]


def test_performers_at_a_border_are_one_group_before_they_meet() -> None:
    """Robots in different levels, ten meters apart, both at 2 m/s: they can meet after 2.5 s."""
    movers = [robot("a", 0, "L1", speed=2), robot("b", 11, "L2", speed=2)]
    assert members(movers, 2 * SECOND) == ["a", "b"]
    assert members(movers, 25 * SECOND // 10) == ["a b"]
    assert find_groups(movers, 3 * SECOND) == (Group("a", ("a", "b"), (), ("L1", "L2")),)


def test_rounding_separates_nobody_who_could_touch() -> None:
    """Their boxes meet at 1.1; by plain sums, one ends at 1.0999999999999999 and the other starts at 1.1."""
    movers = [robot(name, x, speed=0.1)._replace(half=(0.7, 0.7, 0.7)) for name, x in (("a", 0.3), ("b", 1.9))]
    assert could_touch(*movers, SECOND, Fraction(0))
    assert members(movers, SECOND) == ["a b"]


def test_entities_that_a_performer_could_push_are_in_its_group_and_those_that_they_could() -> None:
    movers = [robot("r", 0, "L1"), box("far", 9, "L1"), box("near", 1, "L2"), box("next", 2, "L1")]
    assert find_groups(movers, 0) == (
        Group("far", (), ("far",), ("L1",)),  # Loose: its level connects it to nobody.
        Group("near", ("r",), ("near", "next"), ("L1",)),
    )


def test_loose_entities_form_groups_of_their_own() -> None:
    assert find_groups([box("a", 0, "L2"), box("b", 1, "L1"), box("c", 5, "L1")], 0) == (
        Group("a", (), ("a", "b"), ("L1", "L2")),
        Group("c", (), ("c",), ("L1",)),
    )


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (robot("r", nan), "the center of 'r' is .nan"),
        (robot("r", inf), "the center of 'r' is .inf"),
        (robot("r", 0, speed=-1), "the speed of 'r' is -1"),
        (robot("r", 0, speed=inf), "the speed of 'r' is inf"),
        (robot("r", 0)._replace(half=(1.0, -1.0, 1.0)), "the half of 'r'"),
    ],
)
def test_figures_must_be_finite(bad: Mover, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        find_groups([robot("a", 0), bad], MS)


def test_huge_figures_that_are_finite_do_no_harm() -> None:
    assert members([robot("a", 1e308), robot("b", 1e308), robot("c", -1e308, speed=1e308)]) == ["a b", "c"]
    assert members([robot("a", 1e308), robot("c", -1e308, speed=1e308)], 10**18) == ["a c"]


# --- Against a naive model ---

tenths = st.integers(-30, 30).map(lambda number: number / 10)
mover_lists = st.lists(
    st.builds(
        Mover,
        st.sampled_from([f"m{number}" for number in range(12)]),
        st.tuples(tenths, tenths, st.sampled_from([0.0, 0.3])),
        st.tuples(*[st.integers(0, 4).map(lambda number: number / 10)] * 3),
        st.integers(0, 9).map(lambda number: number / 10),
        st.lists(st.sampled_from("ABC"), max_size=1).map(tuple),
        st.booleans(),
    ),
    max_size=9,
    unique_by=lambda mover: mover.name,
)


def could_touch(one: Mover, other: Mover, span_ns: int, slack: Fraction) -> bool:
    way = (Fraction(one.speed) + Fraction(other.speed)) * span_ns / SECOND + slack
    return all(
        abs(Fraction(a) - Fraction(b)) <= Fraction(half) + Fraction(other_half) + way
        for a, b, half, other_half in zip(one.center, other.center, one.half, other.half, strict=True)
    )


def naive(movers: list[Mover], span_ns: int, slack: Fraction) -> list[set[str]]:
    """Merge until nothing changes."""
    parts = [{mover.name} for mover in movers]
    for one, other in combinations(movers, 2):
        shared = one.performs and other.performs and set(one.levels) & set(other.levels)
        if shared or could_touch(one, other, span_ns, slack):
            joined = [part for part in parts if one.name in part or other.name in part]
            parts = [part for part in parts if part not in joined] + [set().union(*joined)]
    return sorted(parts, key=min)


@given(mover_lists, st.sampled_from([0, MS, SECOND]))
def test_groups_are_those_of_a_naive_model(movers: list[Mover], span_ns: int) -> None:
    """Whoever could touch by exact arithmetic is in one group; nobody else is, but by a hair."""
    found = [set(group.members()) for group in find_groups(movers, span_ns)]
    for part in naive(movers, span_ns, Fraction(0)):
        assert any(part <= group for group in found)
    closest = naive(movers, span_ns, Fraction(1, 10**12))
    for group in found:
        assert any(group <= part for part in closest)


@given(mover_lists, st.randoms(use_true_random=False))
def test_the_order_of_movers_never_shows(movers: list[Mover], shuffler: Any) -> None:
    assert find_groups(shuffler.sample(movers, len(movers)), MS) == find_groups(movers, MS)
