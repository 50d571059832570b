"""Time axes: ticks at round times, and what is written at them."""

from __future__ import annotations

import pytest

from worldline.model.time import HOUR, MS, SECOND
from worldline.pictures.axis import decimal, ticks


@pytest.mark.parametrize(
    ("end", "most", "expected"),
    [
        (1_500 * MS, 10, ("ms", 200 * MS)),
        (10 * SECOND, 10, ("s", SECOND)),
        (10 * SECOND, 3, ("s", 5 * SECOND)),
        (7, 10, ("ns", 1)),
        (0, 10, ("ns", 1)),
        (30 * HOUR, 8, ("h", 5 * HOUR)),
    ],
)
def test_ticks_are_at_round_times(end: int, most: int, expected: tuple[str, int]) -> None:
    unit, _, step = ticks(0, end, most)
    assert (unit, step) == expected


def test_times_at_ticks_are_exact() -> None:
    assert [decimal(time, SECOND) for time in (0, 500 * MS, 2 * SECOND, 1)] == ["0", "0.5", "2", "0.000000001"]
