"""Points, lines and curves in the plane."""

from __future__ import annotations

import pytest

from worldline.pictures.plane import at_origin, between, distance, distance_from_line, on_curve, toward


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
