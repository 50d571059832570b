"""Patterns match what Python's regular expressions match, in a time that no pattern can stretch."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worldline.metasim.public.broker import ChannelPattern
from worldline.model.errors import UsageError

_ATOMS = ["a", "b", "/", ".", "[ab]", "[^a]", "[a-c1]", "[]a]", "[a-]", r"\d", r"\W", r"\.", r"[\d/]", "(?:ab)"]
patterns = st.recursive(
    st.sampled_from(_ATOMS),
    lambda inner: (
        st.builds("".join, st.lists(inner, max_size=3))
        | st.builds("({}|{})".format, inner, inner)
        | st.builds("({}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{1,}", "{,2}", "*?"]))
    ),
    max_leaves=6,
)


@settings(max_examples=80)
@given(patterns, st.lists(st.text("ab/1.]-", max_size=6), max_size=8))
def test_it_matches_what_python_matches(pattern: str, names: list[str]) -> None:
    ours, theirs = ChannelPattern(pattern), re.compile(pattern)
    assert [ours.matches(name) for name in names] == [theirs.fullmatch(name) is not None for name in names]


members = st.sampled_from([*"adswzADSWZ059-^]", r"\d", r"\s", r"\w", r"\D", r"\S", r"\W", r"\]", r"\-", r"\^"])
sets = st.builds(
    "[{}{}]".format,
    st.sampled_from(["", "^"]),
    st.lists(st.builds("{}-{}".format, members, members) | members, min_size=1, max_size=5).map("".join),
)


@settings(max_examples=120)
@given(sets, st.lists(st.characters(min_codepoint=32, max_codepoint=126), max_size=20))
def test_a_set_is_what_it_is_for_python(pattern: str, characters: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Of sets within sets, which Python may have one day.
        try:
            theirs = re.compile(pattern)
        except re.error:
            with pytest.raises(UsageError, match="can't be subscribed to"):
                ChannelPattern(pattern)
            return
    ours = ChannelPattern(pattern)
    for character in characters:
        assert ours.matches(character) is (theirs.fullmatch(character) is not None), character


@pytest.mark.parametrize(
    ("pattern", "name", "is_match"),
    [
        ("STATE/[^>]*", "STATE/plant", True),
        ("STATE/[^>]*", "STATE/plant>controller", False),
        (".*>controller", "STATE/plant>controller", True),
        ("^STATE.*$", "STATE/plant", True),
        ("STATE", "STATE/plant", False),
        (re.escape("STATE/plant>viewer-2"), "STATE/plant>viewer-2", True),
        ("", "", True),
        ("[d-z]", "e", True),
        ("[d-z]", "-", False),
        ("[S-Z]TATE", "UTATE", True),
    ],
)
def test_names_of_the_public_lcm(pattern: str, name: str, is_match: bool) -> None:
    assert ChannelPattern(pattern).matches(name) is is_match


@pytest.mark.parametrize(
    "pattern", ["(a|a)*b", "(a*)*b", "(a+)+b", "(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)b", "(a?){60}b"]
)
def test_patterns_that_take_python_years(pattern: str) -> None:
    assert not ChannelPattern(pattern).matches("a" * 63)


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "a)", "[a", "*", "a|*", "a{x}", "a{}", "a{9999}", "(a{100}){100}", r"\1", r"\b", "(?=a)", "(?i)a"),
        *("\\", "(" * 200 + ")" * 200, "[" + "abcdefgh" * 4 + "]", "a" * 600),
        *("a**", "a*?*", "a+{2}", "a" + "*" * 1000, "a{3,2}", "[z-a]", r"[\d-z]", r"[a-\w]"),
    ],
)
def test_others_are_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="can't be subscribed to"):
        ChannelPattern(pattern)
