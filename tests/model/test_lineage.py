"""Names of those who are made during a run."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worldline.model.message import NAME_LENGTH_MAX, descendant, is_short


def lineage(place: str, own: str, generations: int) -> list[str]:
    names = [place]
    for _ in range(generations):
        names.append(descendant(place, names[-1], own))
    return names


def test_a_name_is_the_makers_and_its_own_as_long_as_that_is_short_enough() -> None:
    assert lineage("a", "1", 3) == ["a", "a/1", "a/1/1", "a/1/1/1"]
    assert descendant("a/b", "a/b", "kim") == "a/b/kim"  # A place's name may have a / in it.
    longest = descendant("a", "a", "x" * (NAME_LENGTH_MAX - 2))
    assert len(longest) == NAME_LENGTH_MAX
    assert descendant("a", "a", "x" * (NAME_LENGTH_MAX - 1)).startswith("a/~")


def test_later_generations_have_a_hash_for_their_makers_name() -> None:
    names = lineage("a", "kim", 500)
    assert len(set(names)) == 501
    first = next(number for number, name in enumerate(names) if "~" in name)
    assert len(names[first - 1] + "/kim") > NAME_LENGTH_MAX
    assert all(re.fullmatch("a/~[0-9a-f]{32}/kim", name) for name in names[first:])


def test_names_depend_on_nothing_but_names() -> None:
    # These are in the digests of runs.
    assert lineage("a", "1", 128)[-1] == "a/~df538fe0cdd77fc5faf4a9c03b331362/1"
    assert lineage("a", "1", 1_000)[-1] == "a/~dce44cb6bb02f72b4385cde1fd6667a3/1"


@pytest.mark.parametrize("place", ["x" * NAME_LENGTH_MAX, "a/b", "ü", "~", "a/~", "a/~" + "0" * 32 + "/b"])
def test_a_name_begins_with_its_place_whatever_that_is_called(place: str) -> None:
    for own in ("1", "y" * NAME_LENGTH_MAX):
        names = lineage(place, own, 300)
        assert len(set(names)) == 301
        assert all(name.startswith(f"{place}/") and name.endswith(f"/{own}") for name in names[1:])
        assert len(names[-1]) <= len(place) + len(own) + 35


def test_descendants_of_one_that_merely_looks_hashed_keep_their_names() -> None:
    assert descendant("a", "a/~kim", "1") == "a/~kim/1"
    assert descendant("a", "a/b/~" + "0" * 32, "1") == "a/b/~" + "0" * 32 + "/1"


@given(st.lists(st.lists(st.sampled_from(["1", "2", "long" * 20, "~"]), max_size=12), max_size=8))
def test_different_lineages_have_different_names(lineages: list[list[str]]) -> None:
    named = {}
    for own in lineages:
        name = "a"
        for each in own:
            name = descendant("a", name, each)
        assert named.setdefault(name, own) == own


@pytest.mark.parametrize(
    ("part", "verdict"),
    [("~" + "0a" * 16, True), ("~" + "0A" * 16, False), ("~" + "0" * 31, False), ("0" * 33, False), ("~", False)],
)
def test_what_stands_for_a_makers_name_can_be_told(part: str, verdict: bool) -> None:
    assert is_short(part) is verdict
