"""Points, lines and curves in the plane, and room for labels."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from worldline.pictures.plane import (
    LabelSpace,
    at_origin,
    between,
    distance,
    distance_from_line,
    fading,
    looks_of,
    on_curve,
    text_discs,
    toward,
)
from worldline.pictures.svg import PALETTE


def test_points_of_a_line() -> None:
    assert distance((1.0, 1.0), (4.0, 5.0)) == 5.0
    assert between((0.0, 0.0), (4.0, 8.0), 0.25) == (1.0, 2.0)


def test_toward_another_point_is_never_beyond_the_middle() -> None:
    assert toward((0.0, 0.0), (10.0, 0.0), 3.0) == (3.0, 0.0)
    assert toward((0.0, 0.0), (10.0, 0.0), 30.0) == (5.0, 0.0)
    assert toward((2.0, 2.0), (2.0, 2.0), 3.0) == (2.0, 2.0)


@pytest.mark.parametrize(
    ("point", "expected"), [((5.0, 3.0), 3.0), ((-3.0, 4.0), 5.0), ((13.0, -4.0), 5.0), ((7.0, 0.0), 0.0)]
)
def test_a_line_ends_where_its_ends_are(point: tuple[float, float], expected: float) -> None:
    assert distance_from_line(point, (0.0, 0.0), (10.0, 0.0)) == expected


def test_a_line_without_length_is_a_point() -> None:
    assert distance_from_line((3.0, 4.0), (0.0, 0.0), (0.0, 0.0)) == 5.0


def test_a_curve_goes_from_end_to_end_and_half_of_the_way_to_its_bend() -> None:
    curve = ((0.0, 0.0), (5.0, 10.0), (10.0, 0.0))
    assert [on_curve(curve, share) for share in (0.0, 0.5, 1.0)] == [(0.0, 0.0), (5.0, 5.0), (10.0, 0.0)]


def test_points_are_moved_to_the_origin_together() -> None:
    assert at_origin([(3.0, -1.0), (5.0, 4.0)]) == [(0.0, 0.0), (2.0, 5.0)]


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


def test_room_that_is_taken_is_not_free() -> None:
    room = LabelSpace()
    room.take(text_discs((100.0, 100.0), 60, 10))
    assert not room.is_free(text_discs((125.0, 104.0), 20, 10))
    assert room.is_free(text_discs((100.0, 116.0), 60, 10))
    assert room.is_free(text_discs((100.0, 140.0), 60, 10, (0.0, 1.0)))
    assert not room.is_free(text_discs((100.0, 120.0), 60, 10, (0.0, 1.0)))
