"""Legends: every entry has its sample beside it, in rows that are no wider than they may be."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from worldline.pictures.labels import Entry, Legend
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
