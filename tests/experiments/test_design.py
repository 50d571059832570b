"""Designs: which combinations are run, and what can't be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from worldline.errors import UsageError
from worldline.experiments.sweeping import as_settings, made_design, split_levels


def test_all_combinations_in_the_order_of_the_settings() -> None:
    design = made_design(["doctors=2,3", "arrival=4min,5min"])
    assert design.parameters == ("doctors", "arrival")
    assert design.points == (("2", "4min"), ("2", "5min"), ("3", "4min"), ("3", "5min"))
    assert design.settings(1) == ("doctors=2", "arrival=5min")
    assert design.cells(1) == (2, "5min")
    assert made_design([]).points == ((),)


def test_commas_in_brackets_part_nothing() -> None:
    assert split_levels("uniform(1ms, 5ms), 3ms") == ["uniform(1ms, 5ms)", "3ms"]


def test_python_values_are_settings() -> None:
    assert as_settings({"a": [1, 2.5], "b": True, "c": "x", "d": range(2)}) == ("a=1,2.5", "b=yes", "c=x", "d=0,1")


def test_a_table_has_words_for_what_isnt_a_finite_number() -> None:
    design = made_design(["limit=nan,inf,1e3"])
    assert [design.cells(point) for point in range(3)] == [("nan",), ("inf",), (1000.0,)]


def test_a_latin_hypercube_has_a_value_in_each_stratum() -> None:
    design = made_design(["rate=0..1.0", "count=1..10", "pause=1s..3s", "kind=a,b"], "latin:10", seed=3)
    rates, counts, pauses, kinds = zip(*design.points, strict=True)
    assert sorted(int(float(rate) * 10) for rate in rates) == list(range(10))
    assert sorted(map(int, counts)) == list(range(1, 11))
    assert sorted(kinds) == ["a"] * 5 + ["b"] * 5
    assert all(pause.endswith("s") for pause in pauses)
    assert design == made_design(["rate=0..1.0", "count=1..10", "pause=1s..3s", "kind=a,b"], "latin:10", seed=3)
    assert design.points != made_design(["rate=0..1.0", "count=1..10", "pause=1s..3s", "kind=a,b"], "latin:10").points


def test_random_points_stay_in_their_ranges() -> None:
    points = made_design(["rate=-1..1", "count=3..4"], "random:200").points
    assert {int(rate) for rate, _ in points} == {-1, 0, 1}
    assert {count for _, count in points} == {"3", "4"}


def test_a_file_has_a_point_in_each_line(tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text("doctors,arrival\n2,4min\n\n3, 5min\n")
    design = made_design(["until=1h"], str(file))
    assert design.parameters == ("doctors", "arrival", "until")
    assert design.points == (("2", "4min", "1h"), ("3", "5min", "1h"))


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        (["a=1,1"], "grid", "has 1 twice"),
        (["a=1", "a=2"], "grid", "given twice"),
        (["a=1,,2"], "grid", "empty value"),
        (["a"], "grid", "sets nothing"),
        (["a=0..1"], "grid", "is a range"),
        (["a=1..0"], "latin:4", "is no range"),
        (["a=x..y"], "latin:4", "no range of numbers or times"),
        ([], "latin:4", "needs parameters"),
        (["a=1..2"], "latin:0", "no number of points"),
        (["a=1..2"], "latin", "there is no design"),
        (["a=1..2"], "spiral:4", "there is no design"),
        (["a=1..2"], "random:2000000", "at most 1,000,000"),
        ([f"{name}={','.join(map(str, range(200)))}" for name in "abc"], "grid", "8,000,000 runs"),
        ([], "nowhere.csv", "can't be read"),
    ],
)
def test_what_is_no_design_is_refused(settings: list[str], kind: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made_design(settings, kind)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no points"),
        ("a,b\n", "no points"),
        ("a,b\n1\n", "line 2 has 1 value"),
        ("a,a\n1,2\n", "each parameter once"),
        ("a,\n1,2\n", "each parameter once"),
    ],
)
def test_a_file_without_points_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "points.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        made_design([], str(file))
