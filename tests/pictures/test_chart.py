"""Curves over time: where they are drawn, and that every viewer can show them."""

from __future__ import annotations

from tests.pictures.portable import strange
from worldline.pictures.chart import Marks, Panel, Series, chart

PICTURE = chart(
    "Tom & Ann's clocks",
    "",
    seconds=range(3),
    panels=(
        Panel("off", (-1, 0, 1), (Series("line", "#0000ff", [(0, 0), (2, 5)]),)),
        Panel("set", (0, 1), (Series("stairs", "#ff0000", [(0, 0), (2, 1)], steps=True),)),
        Panel("nothing", (0, 1), (Series("nothing", "#00ff00", []),)),
    ),
    marks=(Marks("here", "#123456", [1.0]),),
)


def test_a_curve_goes_from_edge_to_edge_and_not_beyond_its_panel() -> None:
    assert '<path d="M64.0 162.0L810.0 92.0" fill="none" stroke="#0000ff"' in PICTURE


def test_steps_hold_until_the_next() -> None:
    assert '<path d="M64.0 412.0L810.0 412.0L810.0 272.0" fill="none" stroke="#ff0000"' in PICTURE


def test_a_curve_without_points_is_none() -> None:
    assert 'stroke="#00ff00" stroke-width="1.8"' not in PICTURE


def test_every_viewer_can_show_it() -> None:
    assert "Tom &amp; Ann" in PICTURE
    assert strange(PICTURE) == []
