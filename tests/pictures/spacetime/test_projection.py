"""What is drawn of space: an axis, the direction in which agents are spread most, or columns."""

from __future__ import annotations

import math

import pytest

from tests.pictures.spacetime.runs import straight
from worldline.model.errors import UsageError
from worldline.pictures.spacetime.frame import projection_of
from worldline.pictures.spacetime.happenings import told


def direction(points: list[tuple[float, ...]]) -> list[float]:
    records = [each for number, at in enumerate(points) for each in straight(f"a{number}", (0, *at), (1, *at))]
    n = len(points[0]) + 1
    return list(projection_of(told(records, n, None, None), n, None).direction)


def test_a_diagonal_is_found() -> None:
    assert direction([(0, 0), (1, 1), (2, 2), (5, 5)]) == pytest.approx([math.sqrt(0.5)] * 2)
    found = direction([(0, 0, 0), (3, -4, 0.01), (6, -8, -0.01), (-3, 4, 0)])
    assert found == pytest.approx([-0.6, 0.8, 0], abs=0.01)


@pytest.mark.parametrize("size", [1e-99, 1.0, 1e99])
def test_size_and_offset_dont_matter(size: float) -> None:
    points = [(0.0, 0.0), (3.0, 1.0), (6.0, 2.0), (7.0, 2.0)]
    moved = [(x * size, y * size) for x, y in points]
    assert direction(moved) == pytest.approx(direction([(x + 40, y - 9) for x, y in points]))


def test_what_is_nearly_an_axis_is_one() -> None:
    assert direction([(0, 0.0), (0.01, 9), (0.02, 20)]) == [0.0, 1.0]
    assert direction([(1, 1), (1, -1), (-1, 1), (-1, -1)]) == [1.0, 0.0]
    assert direction([(3, 3), (3, 3)]) == [1.0, 0.0]


def test_titles_name_what_is_drawn() -> None:
    story = told(straight("a", (0, 0, 0, 0), (2, 1, 1, 0)), 4, None, None)
    assert projection_of(story, 4, None).title == "0.71 x1 + 0.71 x2"
    assert projection_of(story, 4, 3).title == "x3"
    assert projection_of(told([], 2, None, None), 2, None).title == "x"


def test_without_space_agents_have_columns() -> None:
    records = [*straight("b2", (0,), (1,)), *straight("b10", (0,), (1,))]
    projection = projection_of(told(records, 1, None, None), 1, None)
    assert [projection.of(name, (0.5,)) for name in ("b2", "b10")] == [0.0, 1.0]
    assert not projection.has_space


@pytest.mark.parametrize(("n", "axis"), [(3, 0), (3, 3), (3, -1), (3, True), (2, 2), (1, 1)])
def test_an_axis_that_isnt_there_is_refused(n: int, axis: int) -> None:
    with pytest.raises(UsageError, match="axis"):
        projection_of(told([], n, None, None), n, axis)
