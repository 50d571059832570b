"""Seconds as floats, to and from whole nanoseconds."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.metasim.driving import Grid, as_nanoseconds
from worldline.model import MS, UsageError
from worldline.model.time import SECOND

PERIODS = st.sampled_from([0.001, 0.0025, 0.01, 0.05, 0.1, 1 / 3, 1 / 30, 1 / 60, 1e-9, 7.3e-5, 2.0])


@pytest.mark.parametrize(
    ("given", "expected"),
    [(0.01, 10 * MS), (0.0, 0), (1e-9, 1), (0.1 + 0.2, 300 * MS), ("10ms", 10 * MS), (timedelta(seconds=1), SECOND)],
    ids=str,
)
def test_times_that_users_give(given: Any, expected: int) -> None:
    assert as_nanoseconds(given, "a time") == expected


def test_floats_of_numpy_are_floats() -> None:
    numpy = pytest.importorskip("numpy", reason="numpy isn't installed")
    assert as_nanoseconds(numpy.float64(0.01), "a time") == 10 * MS
    assert as_nanoseconds(numpy.float32(0.5), "a time") == SECOND // 2


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (1, r'a time of 1 may be meant in seconds or in nanoseconds \(write 1\.0 or "1ns"\)'),
        (True, "may be meant in seconds"),
        (-0.5, "a time of -0.5 seconds isn't possible"),
        (float("nan"), "a time of nan seconds isn't possible"),
        (float("inf"), "a time of inf seconds isn't possible"),
        (1e10, "isn't possible"),
        (None, "a time is seconds or a text, not NoneType"),
        ("10 parsecs", "parsecs"),
    ],
    ids=str,
)
def test_times_that_are_refused(given: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        as_nanoseconds(given, "a time")


@given(PERIODS, st.sampled_from([0.0, 0.005, 0.3]), st.integers(0, 100_000))
def test_a_grid_has_the_floats_that_a_simulator_computes(period: float, offset: float, number: int) -> None:
    for fused, own in (
        (False, offset + number * period),
        (True, float(Fraction(offset) + Fraction(period) * number) if offset else number * period),
    ):
        grid = Grid(period, offset, fused=fused)
        time = round(Fraction(own) * SECOND)
        assert grid.float_at(time) == own
        if period > 1e-8:
            assert grid.float_at(time + 2) is None


@given(PERIODS, st.integers(0, 10_000), st.integers(-1, 1))
def test_the_next_time_on_a_grid(period: float, number: int, beside: int) -> None:
    grid = Grid(period)
    time = max(round(Fraction(number * period) * SECOND) + beside, 0)
    expected = min(
        at for k in range(max(number - 2, 0), number + 4) if (at := round(Fraction(k * period) * SECOND)) > time
    )
    assert grid.after(time) == expected
