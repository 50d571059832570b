"""What diagrams share: legends, ticks at round times and numbers, and labels that mean what they say."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from worldline.model.time import HOUR, MS, SECOND
from worldline.pictures.sheet import Entry, Legend, decimal, ticks, ticks_between
from worldline.pictures.svg import element


def square(x: float, y: float) -> str:
    return element("rect", x=x, y=y, width=6, height=6)


ENTRIES = [Entry(text, square) for text in ("one", "another", "the last of three")]


@pytest.mark.parametrize(("width", "rows"), [(1_000.0, 1), (200.0, 2), (10.0, 3)])
def test_entries_are_in_as_many_rows_as_it_takes(width: float, rows: int) -> None:
    legend = Legend(ENTRIES, width)
    (drawn,) = legend.drawn(20.0, 50.0)
    entries = list(ElementTree.fromstring(drawn))
    assert [text.text for _, text in entries] == [entry.text for entry in ENTRIES]
    places = [(float(text.get("x", "")), float(text.get("y", ""))) for _, text in entries]
    assert len({y for _, y in places}) == rows
    assert legend.height == 18.0 * rows
    for (sample, _), (x, y) in zip(entries, places, strict=True):
        assert (sample.get("x"), sample.get("y")) == (f"{x - 30:g}", f"{y - 4:g}")
    assert places[0] == (50.0, 50.0)
    assert len(set(places)) == 3


def test_a_legend_of_nothing_takes_no_room() -> None:
    legend = Legend([], 100.0)
    assert (legend.height, legend.drawn(20.0, 50.0)) == (0.0, [])


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
