"""What shrinking is made of: as few things, and as short times, as it takes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.time import MS, SECOND, US
from worldline.search.shrinking import lessened, reduced


@given(st.integers(1, 10**12), st.data())
def test_a_time_is_lessened_until_the_round_one_before_does_not_fail(time: int, data: st.DataObject) -> None:
    least = data.draw(st.integers(1, time))
    tried: list[int] = []

    def fails(other: int) -> bool:
        tried.append(other)
        return other >= least

    found = lessened(time, fails)
    assert least <= found <= time
    assert found == next((other for other in reversed(tried) if other >= least), time)
    assert all(other < least for other in tried if other < found)
    assert len(tried) < 20


@given(st.sets(st.integers(0, 30)), st.data())
def test_what_is_left_is_what_failed_last(items: set[int], data: st.DataObject) -> None:
    needed = data.draw(st.sets(st.sampled_from(sorted(items)))) if items else set()
    failing = sorted(items)

    def fails(rest: Sequence[int]) -> bool:
        nonlocal failing
        does = needed <= set(rest)
        failing = list(rest) if does else failing
        return does

    assert reduced(sorted(items), fails) == failing == sorted(needed)


@pytest.mark.parametrize(
    ("time", "least", "found"),
    [
        (190 * MS, 1, MS),
        (190 * MS, 41 * MS, 50 * MS),
        (44 * MS, 41 * MS, 41 * MS),
        (3 * SECOND, 1_400 * MS, 2 * SECOND),
        (700 * US, 1, US),
        (700, 650, 650),
        (MS, MS, MS),
        (1, 1, 1),
    ],
)
def test_times_stay_round(time: int, least: int, found: int) -> None:
    assert lessened(time, lambda other: other >= least) == found
