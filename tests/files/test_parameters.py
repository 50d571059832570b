"""Parameters as texts: each is of the kind of its default."""

from __future__ import annotations

from datetime import timedelta

import pytest

from worldline.files.loading import pairs, parsed
from worldline.model.errors import ConfigurationError, UsageError

DEFAULTS = {
    "size": 3,
    "share": 0.5,
    "name": "a",
    "fast": True,
    "free": None,
    "places": (1, 2),
    "wait": timedelta(seconds=1),
}


def test_a_time_is_written_as_everywhere() -> None:
    assert parsed("mine", DEFAULTS, {"wait": "5ms"}) == {"wait": timedelta(milliseconds=5)}


def test_texts_become_what_their_defaults_are() -> None:
    given = pairs(["size=7", "share = 1e-3", "name=x=y", "fast=no", "free=5"])
    assert parsed("mine", DEFAULTS, given) == {"size": 7, "share": 0.001, "name": "x=y", "fast": False, "free": "5"}


@pytest.mark.parametrize("text", ["size", "=3", ""])
def test_what_sets_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="sets nothing"):
        pairs([text])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sise=3", "mine has no parameter 'sise'.*size=3"),
        ("size=3.5", "size can't be '3.5'.*a value like 3"),
        ("fast=perhaps", "fast can't be 'perhaps'.*a value like True"),
        ("wait=soon", "'soon' isn't a value of wait .write a number and a unit"),
        ("wait=5ns", "a value of wait can't be 5ns .a timedelta is in whole microseconds"),
        ("places=(3, 4)", "places can't be set here"),
    ],
)
def test_what_cannot_be_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        parsed("mine", DEFAULTS, pairs([text]))
