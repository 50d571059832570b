"""Lines of several kinds."""

from __future__ import annotations

from xml.etree import ElementTree

from worldline.pictures.plane import fading, looks_of
from worldline.pictures.svg import PALETTE


def test_kinds_differ_first_in_color_then_in_dashes() -> None:
    looks = looks_of(f"kind {number}" for number in range(4 * len(PALETTE)))
    assert len(set(looks.values())) == len(looks) == 4 * len(PALETTE)
    assert [look.color for look in looks.values()][: len(PALETTE)] == list(PALETTE)
    assert [look.dashes for look in looks.values()][: len(PALETTE) + 1] == [*[None] * len(PALETTE), "9 3"]


def test_a_fading_line_has_all_its_length_and_less_and_less_ink() -> None:
    parts = [ElementTree.fromstring(part) for part in fading((0.0, 0.0), (10.0, 0.0))]
    shades = [float(part.get("stroke-opacity", "")) for part in parts]
    assert shades == sorted(shades, reverse=True)
    assert shades[-1] < 0.2
    assert [part.get("d") for part in parts] == ["M0 0L2 0", "M2 0L4 0", "M4 0L6 0", "M6 0L8 0", "M8 0L10 0"]
