"""Axes of numbers: ticks at round numbers, labels that are short and mean what they say."""

from __future__ import annotations

import pytest

from worldline.pictures.axis import ticks_between


def test_ticks_are_round_and_no_more_than_wanted() -> None:
    ticks = ticks_between(-0.3, 1.2, 8)
    assert ticks.labels == ["−0.2", "0", "0.2", "0.4", "0.6", "0.8", "1", "1.2"]
    assert ticks.values == pytest.approx([-0.2, 0, 0.2, 0.4, 0.6, 0.8, 1, 1.2])
    assert ticks.titled("x") == "x"
    assert ticks_between(0, 100, 5).labels == ["0", "20", "40", "60", "80", "100"]
    assert ticks_between(0, 100, 1.5).labels == ["0", "100"]


@pytest.mark.parametrize("size", [1e-90, 1e-9, 1e-3, 1.0, 7.3e4, 1e9, 1e90])
@pytest.mark.parametrize("begin", [-0.7, 0.0, 0.4])
def test_labels_mean_their_values_at_every_size(size: float, begin: float) -> None:
    ticks = ticks_between(begin * size, (begin + 1) * size, 7)
    assert 2 <= len(ticks.values) <= 8
    for value, label in zip(ticks.values, ticks.labels, strict=True):
        assert begin * size - 1e-9 * size <= value <= (begin + 1.000001) * size
        assert len(label) <= 8
        meant = ticks.base + float(label.replace("−", "-")) * float(f"1e{ticks.exponent}")
        assert meant == pytest.approx(value, rel=1e-12)


def test_large_numbers_that_are_close_are_counted_from_the_first() -> None:
    ticks = ticks_between(1e9, 1e9 + 10, 5)
    assert ticks.labels == ["0", "2", "4", "6", "8", "10"]
    assert ticks.titled("t") == "t − 1000000000"
    assert ticks_between(-1e9, -1e9 + 10, 5).titled("t") == "t + 1000000000"
    assert ticks_between(0, 3e-9, 3).titled("t") == "t (× 1e-9)"


def test_where_nothing_is_long_there_is_one_tick() -> None:
    assert ticks_between(2.5, 2.5, 10).labels == ["2.5"]
